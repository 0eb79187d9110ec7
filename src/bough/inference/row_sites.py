"""A site for every row of a log, all made again at once: expectation propagation where rewards come in contexts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.row_sites import LEAST, remake_rows, triangles_of_rows

STILL = 1e-9  # how far, in standard deviations, a site may move its row's score once settled
MOST_SWEEPS = 500
_BOLD, _CAREFUL = 10, 40  # sweeps of full steps, then of half ones, then of small ones: all at once may overshoot
_WELL = 0.7  # of the distance before: where less is left, full steps go on


class ContextRows(NamedTuple):
    """The counts of a log in contexts, those of one leaf one after the other.

    Those of one leaf in one and the same context are one row: totals and exposures add up, and the likelihood is the
    product of theirs.
    """

    leaves: Nodes
    """(leaves,) ascending, each once."""
    first: Integers
    """(leaves + 1,) where the rows of each begin."""
    contexts: Floats
    totals: Floats
    exposure: Floats

    @classmethod
    def of(cls, leaves: Nodes, contexts: Floats, totals: Floats, exposure: Floats) -> ContextRows:
        """The rows of a log in any order."""
        order = np.lexsort((*contexts.T[::-1], leaves))
        leaves, contexts = leaves[order], contexts[order]
        other_leaf = np.append(True, leaves[1:] != leaves[:-1])
        start = np.flatnonzero(other_leaf | np.append(True, (contexts[1:] != contexts[:-1]).any(axis=1)))
        first = np.append(np.flatnonzero(other_leaf[start]), len(start))
        sums = [np.add.reduceat(column[order], start) for column in (totals, exposure)]
        return cls(leaves[start[first[:-1]]], first, np.ascontiguousarray(contexts[start]), *sums)

    def scores(self, of_leaves: Floats) -> Floats:
        """(n,) the product of each context with what its leaf has, (leaves, d)."""
        return np.asarray(np.einsum("nd,nd->n", np.repeat(of_leaves, np.diff(self.first), axis=0), self.contexts))


class RowSites:
    """The Gaussian factors exp(information t - precision t^2 / 2) that stand for counts, t their score's deviation."""

    def __init__(self, family: int, rows: ContextRows, means: Floats) -> None:
        self._family, self._rows = family, rows
        self.means = means
        """(n,) of the scores, under the prior."""
        self._off, self._goes_well = 0.0, False
        self.forget()
        self.surplus = 0.0
        """How much more probable, as a logarithm, the counts are than their sites, in the cavities."""
        self.triangles = np.empty((len(rows.leaves), rows.contexts.shape[1], rows.contexts.shape[1] + 1))
        """(leaves, d, d + 1) [R | z] of unit noise, which say of a leaf what all of its sites do."""

    def forget(self) -> None:
        """Have all sites say nothing."""
        n = len(self._rows.totals)
        self.precision, self.information = np.full(n, LEAST), np.zeros(n)

    def remake(self, leaf_means: Floats, leaf_covariances: Floats, sweep: int) -> float:
        """Make all sites again, from the posterior of each leaf as it is with them; how far they were off.

        `sweep` is how many times that has been done since anything else changed. The distance is the largest, in
        standard deviations of a row's score.
        """
        bold = sweep < _BOLD or self._goes_well
        size = 0.2 if sweep >= _CAREFUL else 1.0 if bold else 0.5
        _, first, contexts, totals, exposure = self._rows
        self.surplus, furthest = remake_rows(
            self._family, size, first, totals, exposure, self.means, contexts, leaf_means, leaf_covariances,
            self.precision, self.information,
        )  # fmt: skip
        self._goes_well = furthest <= _WELL * self._off
        self._off = furthest
        return furthest

    def collect(self) -> None:
        """Have `triangles` say what the sites do."""
        triangles_of_rows(
            self._rows.first, self._rows.contexts, self.means, self.precision, self.information, self.triangles
        )
