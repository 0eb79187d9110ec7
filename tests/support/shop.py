"""A shop in plain Python: what a catalogue, its rewards and its changes are, to compare agents with.

Nothing here knows how bough does it: names and their parents in a dictionary, rewards in a list, and the posterior by
dense algebra on a tree that is built anew.
"""

import numpy as np

import bough
from bough.inference.oracles.dense import DensePosterior


class Shop:
    """Names with their parents, rewards with their weights, and who is retired."""

    def __init__(self, parent: dict, covariance, mean, noise_variance=1.0):
        self.parent = dict(parent)
        self.covariance = covariance  # of a name, given its depth
        self.mean, self.noise_variance = mean, noise_variance
        self.rewards = []  # [name, reward, context, weight]
        self.retired = []

    # -- what there is -------------------------------------------------------------------------

    def children(self, name):
        return [one for one, above in self.parent.items() if above == name]

    @property
    def actions(self):
        inner = set(self.parent.values())
        return [name for name in self.parent if name not in inner]

    @property
    def categories(self):
        inner = set(self.parent.values())
        return [name for name in self.parent if name in inner]

    def path(self, name):
        return [] if name is None else [*self.path(self.parent[name]), name]

    def has_evidence(self, name):
        return any(row[0] == name for row in self.rewards)

    def tree(self):
        names = list(self.parent)
        place = {name: i for i, name in enumerate(names)}
        return bough.Tree.from_parents([place.get(self.parent[name], -1) for name in names], names)

    def model(self):
        covariance = {name: self.covariance(name, len(self.path(name)) - 1) for name in self.parent}
        return bough.GaussianModel(self.tree(), self.mean, bough.by_node(covariance), self.noise_variance)

    def dense(self):
        """The posterior by dense algebra: a reward of weight w has the noise variance divided by w."""
        dense = DensePosterior(self.model())
        for name, reward, context, weight in self.rewards:
            root = np.sqrt(weight)
            x = np.ones(1) if context is None else np.asarray(context)
            dense.update([name], [root * reward], [root * x])
        return dense

    # -- what happens --------------------------------------------------------------------------

    def update(self, name, reward, context=None, weight=1.0):
        self.rewards.append([name, reward, context, weight])

    def retract(self, row):
        self.rewards = [one for one in self.rewards if one is not row]

    def discount(self, factor):
        for row in self.rewards:
            row[3] *= factor

    def add(self, name, under):
        self.retired = [one for one in self.retired if one != under]
        self.parent[name] = under

    def move(self, name, under):
        above = self.parent[name]
        self.parent[name] = under
        self._drop_empty(above)

    def _drop_empty(self, name):
        while self.parent[name] is not None and not self.children(name):
            above = self.parent.pop(name)
            name = above

    def forget(self, name):
        self.rewards = [row for row in self.rewards if row[0] != name]

    def adopt(self, table, gone):
        """Go on with another dictionary of names and parents."""
        inner = set(table.values())
        listed = [name for name in table if name not in inner]
        before = dict(self.parent)
        lost = [name for name in self.actions if name not in listed]
        ghosts = [name for name in lost if name in self.retired]
        if gone == "forget":
            for name in set(lost) - set(ghosts):
                self.forget(name)
        else:
            ghosts = lost
        self.parent = dict(table)
        for name in ghosts:
            for one in reversed(_path(before, name)):
                if one in self.parent:
                    break
                self.parent[one] = before[one]
        self.retired = [name for name in self.retired if name in ghosts]
        self.retired += [name for name in ghosts if name not in self.retired]


def _path(parent, name):
    return [] if name is None else [*_path(parent, parent[name]), name]
