"""A site for every row of a log, all made again at once: expectation propagation where rewards come in contexts."""

from __future__ import annotations

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.sites import sites_of_all

STILL = 1e-9  # how far, in standard deviations, a site may move its row's score once settled
MOST_SWEEPS = 500
_BOLD, _CAREFUL = 10, 40  # sweeps of full steps, then of half ones, then of small ones: all at once may overshoot
LEAST = 1e-12  # the smallest precision of a row: it has to say where it is


class RowSites:
    """The Gaussian factors exp(information t - precision t^2 / 2) that stand for counts, t their score's deviation."""

    def __init__(self, family: int, totals: Floats, exposure: Floats, means: Floats) -> None:
        self._counts = (family, totals, exposure, means)
        self.forget()
        self.surplus = 0.0
        """How much more probable, as a logarithm, the counts are than their sites, in the cavities."""

    def forget(self) -> None:
        """Have all sites say nothing."""
        n = len(self._counts[1])
        self.precision, self.information = np.full(n, LEAST), np.zeros(n)

    def remake(self, mean: Floats, variance: Floats, sweep: int) -> bool:
        """Make all sites again, from the posterior of each score as it is with them; False where none moves.

        `sweep` is how many times that has been done since anything else changed.
        """
        tau, nu = self.precision, self.information
        left = np.maximum(1.0 - variance * tau, 1e-10)  # above zero but for rounding
        offset, width = (mean - variance * nu) / left, variance / left
        fresh_tau, fresh_nu, probability = np.empty(len(tau)), np.empty(len(tau)), np.empty(len(tau))
        sites_of_all(*self._counts, offset, width, fresh_tau, fresh_nu, probability)
        np.maximum(fresh_tau, LEAST, out=fresh_tau)
        gain = 1.0 / (1.0 + width * tau)
        of_site = gain * (nu * offset - 0.5 * tau * offset**2 + 0.5 * width * nu**2) - 0.5 * np.log1p(width * tau)
        self.surplus = float((probability - of_site).sum())
        moved = np.abs(fresh_nu - nu - (fresh_tau - tau) * mean) * np.sqrt(variance)
        if max(moved.max(), (np.abs(fresh_tau - tau) * variance).max()) <= STILL:
            return False
        size = 1.0 if sweep < _BOLD else 0.5 if sweep < _CAREFUL else 0.2
        self.precision = tau + size * (fresh_tau - tau)
        self.information = nu + size * (fresh_nu - nu)
        return True
