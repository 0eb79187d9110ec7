"""The figure of a fit, and how far a fit says that it is."""

import builtins

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import bough

matplotlib.use("Agg")

TREE = bough.Tree.balanced(4, 2)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def log(effect=1.0):
    rng = np.random.default_rng(0)
    actions = rng.choice(TREE.leaves, 200)
    kinds = rng.normal(size=TREE.n_nodes)[TREE.parent[actions]]
    return bough.Statistics.from_rows(actions, effect * kinds + rng.normal(size=200))


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_a_fit_is_drawn_as_variances_and_shares():
    fit = bough.fit_prior(TREE, log())
    variances, shares = fit.plot({"depth 1": "kind"})
    assert labels(variances) == ["kind", "depth 2", "noise"]
    drawn = variances.lines[0].get_xdata()
    np.testing.assert_allclose(drawn, [fit.estimates[name].value for name in ("depth 1", "depth 2", "noise")])
    assert sum(bar.get_width() for bar in shares.patches) == pytest.approx(1.0)
    assert variances.get_xscale() == "log"


def test_a_variance_of_zero_has_an_interval_and_no_point():
    fit = bough.fit_prior(TREE, log(0.0), penalty=None)
    zero = [name for name, one in fit.estimates.items() if name != "mean" and one.value == 0.0 and one.high > 0.0]
    assert zero
    variances, _ = fit.plot()
    drawn = dict(zip(labels(variances), variances.lines[0].get_xdata(), strict=True))
    assert all(np.isnan(drawn[name]) for name in zero)
    variances.figure.canvas.draw()


def test_fits_of_clicks_and_of_contexts_are_drawn():
    rng = np.random.default_rng(0)
    actions = rng.choice(TREE.leaves, 300)
    rewards, contexts = rng.normal(size=300), rng.normal(size=(300, 2))
    bough.fit_prior(TREE, bough.Statistics.from_rows(actions, rewards, contexts)).plot()
    clicks = bough.Statistics.from_rows(actions, (rewards > 0).astype(float))
    variances, _ = bough.fit_prior(TREE, clicks, model=bough.BernoulliModel).plot()
    assert "noise" not in labels(variances)


def test_a_fit_is_drawn_into_axes_that_are_given():
    _, axes = plt.subplots(1, 2)
    assert bough.fit_prior(TREE, log()).plot(axes=axes) is axes


def test_other_axes_and_names_are_refused():
    fit = bough.fit_prior(TREE, log())
    with pytest.raises(ValueError, match="give two of matplotlib's"):
        fit.plot(axes=plt.subplots()[1])
    with pytest.raises(ValueError, match="names is"):
        fit.plot(names=["kind"])


def test_a_fit_tells_its_steps_and_is_the_same():
    seen = []
    fit = bough.fit_prior(TREE, log(), progress=seen.append)
    assert len(seen) > 2
    assert set(seen) == {1}
    assert fit.log_evidence == bough.fit_prior(TREE, log()).log_evidence


def test_a_fit_shows_a_bar(capsys):
    bough.fit_prior(TREE, log(), progress=True)
    assert "fit: " in capsys.readouterr().err


def test_a_fit_refuses_odd_progress():
    with pytest.raises(ValueError, match="progress is 3; give True for a bar, or a function"):
        bough.fit_prior(TREE, log(), progress=3)


def test_a_bar_without_tqdm_is_an_error_that_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without_tqdm(name, *rest):
        if name == "tqdm":
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    with pytest.raises(ValueError, match=r"pip install '\.\[progress\]'"):
        bough.fit_prior(TREE, log(), progress=True)
