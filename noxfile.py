"""The package in fresh environments without extras.

`make matrix` goes through every supported Python with the lowest and the newest dependencies, as far as these Pythons
are on the machine; `make package` takes the one that is at hand.
"""

import shutil
import sys
import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = False

ROOT = Path(__file__).parent
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def lowest() -> list[str]:
    """The dependencies of the base install, each at the lowest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [one.replace(">=", "==", 1) for one in project["dependencies"]]


@nox.session(python=False)
def build(session: nox.Session) -> None:
    """The wheel and the sdist, in dist/, with metadata that an index would take."""
    shutil.rmtree(DIST, ignore_errors=True)
    session.run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT), silent=True)
    session.run(sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))


@nox.session(python=PYTHONS)
@nox.parametrize("dependencies", ["lowest", "newest"])
def clean(session: nox.Session, dependencies: str) -> None:
    """The wheel and the sdist install without extras, import, and do the first steps."""
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    session.install(str(wheel), *(lowest() if dependencies == "lowest" else ()))
    session.run("python", "tests/package/first_steps.py")
    session.install("--force-reinstall", "--no-deps", str(sdist))
    session.run("python", "tests/package/first_steps.py")
