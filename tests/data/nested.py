"""How nested.csv and nested_gpboost.csv were made: three nested levels, uneven counts, fitted by gpboost.

Run from this folder: python nested.py
"""

import csv
from importlib.metadata import version

import gpboost
import numpy as np


def main() -> None:
    rng = np.random.default_rng(7)
    rows = []
    for i in range(15):
        first = rng.normal(0.0, 1.5)
        for j in range(rng.integers(1, 7)):
            second = rng.normal(0.0, 0.7)
            for k in range(rng.integers(1, 9)):
                third = rng.normal(0.0, 1.1)
                for _ in range(1 + rng.poisson(1.5)):
                    rows.append(
                        (f"{i}", f"{i}.{j}", f"{i}.{j}.{k}", 2.0 + first + second + third + rng.normal(0.0, 0.8))
                    )
    groups = np.array([row[:3] for row in rows])
    y = np.array([row[3] for row in rows])
    model = gpboost.GPModel(group_data=groups, likelihood="gaussian", matrix_inversion_method="cholesky")
    model.fit(
        y=y,
        X=np.ones((len(y), 1)),
        params={"optimizer_cov": "fisher_scoring", "delta_rel_conv": 1e-14, "maxit": 10_000},
    )
    estimates = np.asarray(model.get_cov_pars()).ravel()
    with open("nested.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("first", "second", "third", "y"), *rows])
    with open("nested_gpboost.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("what", "value"))
        writer.writerows(zip(("noise", "first", "second", "third"), map(repr, estimates.tolist()), strict=True))
        writer.writerow(("mean", repr(float(np.asarray(model.get_coef()).ravel()[0]))))
        writer.writerow(("log likelihood", repr(-float(model.get_current_neg_log_likelihood()))))
        writer.writerow(("gpboost", version("gpboost")))


if __name__ == "__main__":
    main()
