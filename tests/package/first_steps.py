"""What an installed bough must do without extras; noxfile.py runs it in environments that have nothing else."""

import importlib.resources
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import bough

CLONE = Path(__file__).parents[2]


def main() -> None:
    """Raises where something is not as it should be."""
    place = Path(bough.__file__).resolve()
    assert not place.is_relative_to(CLONE / "src"), f"this is the clone, {place}, and not what was installed"
    assert bough.__version__ == version("bough")
    assert importlib.resources.files("bough").joinpath("py.typed").is_file()
    for name in bough.__all__:
        if name != "write_dashboard":  # takes the extra dashboard
            getattr(bough, name)

    (code, *_) = re.findall(r"```python\n(.*?)```", (CLONE / "README.md").read_text(), re.DOTALL)
    exec(code, {})

    tree = bough.Tree.balanced(branching=5, height=2)
    truth = bough.GaussianModel(tree, 1.0, bough.by_depth([0.0, 1.0, 0.2]), 0.5)
    run = bough.simulate(truth, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=50, runs=4, seed=0)
    assert run.regret["HierTS"].shape == (4, 50)
    fit = bough.fit_prior(tree, bough.Statistics.from_rows(tree.leaves, [float(i % 5) for i in range(25)]))
    assert "based on" in fit.summary()
    contextual = bough.HierTS(bough.BernoulliModel(tree, mean=[-1.0, 0.0]), seed=0)
    contextual.update(contextual.decide([1.0, 0.5]), 1, [1.0, 0.5])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.bough"
        agent = fit.agent(seed=0)
        agent.save(path)
        assert bough.HierTS.load(path).decide_many(5) == agent.decide_many(5)
        words = [sys.executable, "-m", "bough", "decide", str(path), "--k", "3", "--json"]
        assert '"actions"' in subprocess.run(words, capture_output=True, text=True, check=True).stdout
    try:
        run.plot()
    except ModuleNotFoundError as error:
        assert "pip install '.[plot]' in a clone of bough, or 'bough[plot]'" in str(error)  # noqa: PT017, there is no pytest here
    else:
        raise AssertionError("matplotlib is installed here: this is no environment without extras")
    print(f"bough {bough.__version__} does its first steps on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
