"""Many decisions at once: `Scorer` has a posterior on a GPU, or on JAX's CPU; docs/howto/batch.md says how.

>>> import bough
>>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(branching=10, height=3)))
>>> bough.batch.Scorer(posterior, device="cpu").best(100, k=5)
Chosen(n=100, k=5)
"""

from __future__ import annotations

from bough.batch.chosen import Chosen
from bough.batch.scorer import Scorer

__all__ = ["Chosen", "Scorer"]
