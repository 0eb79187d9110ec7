"""Every kind of model, by the name that its rewards have in files and on the command line."""

from __future__ import annotations

from bough.model.bernoulli import BernoulliModel
from bough.model.gaussian import GaussianModel
from bough.model.model import Model
from bough.model.poisson import PoissonModel

MODELS: dict[str, type[Model]] = {model.kind.name: model for model in (GaussianModel, BernoulliModel, PoissonModel)}
