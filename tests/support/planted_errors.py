"""Errors planted in the capped search, one at a time: a test of the tests that compare laws."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np

from bough.inference import capped
from bough.inference.kernels import capped as kernels
from bough.inference.kernels.lines import COUNT

# What the source of the kernel has, and what stands there instead.
IN_THE_SOURCE = {
    "no thinning": ("if offset >= -math.log1p(-min(fires, 1.0)):", "if False:"),
    "no stamp": ("if _found(other, stamped, n_stamped) >= 0:", "if False:"),
    "a fresh first point": (
        "next_point(lines, unit, within, whole(0), frame[here, 1])",
        "next_point(lines, unit, within, whole(0), -math.log1p(-uniforms[at]))",
    ),
    "bins without their lines": ("weight = (before - above) * some", "weight = (before - above) * fires"),
    "a shift of 1.5 D": (
        "needed = value - (best - lines.references[b])",
        "needed = value - 1.5 * (best - lines.references[b])",
    ),
}


def one_fewer(search: capped.CappedSearch) -> None:
    search._group[int(search._group[:, COUNT].argmax()), COUNT] -= 1
    search.remake()


def shorter(search: capped.CappedSearch) -> None:
    search._row *= np.float32(0.9)


IN_WHAT_IS_KEPT: dict[str, Callable[[capped.CappedSearch], None]] = {
    "a group's count off by one": one_fewer,
    "rates x 0.9": shorter,
}


@contextmanager
def planted(name: str, folder: Path) -> Iterator[None]:
    """Have decisions be made by kernels that are compiled anew, with this error in their source."""
    old, new = IN_THE_SOURCE[name]
    source = Path(kernels.__file__).read_text()
    assert source.count(old) == 1, f"the source does not have {old!r} once"
    (folder / "wrong_capped.py").write_text(source.replace(old, new))
    calls = Path(capped.kernels.__file__).read_text()
    wrong = calls.replace("bough.inference.kernels.capped import", "wrong_capped import")
    (folder / "wrong_calls.py").write_text(wrong)
    kept = capped.kernels
    sys.path.insert(0, str(folder))
    try:
        capped.kernels = _loaded("wrong_calls", folder)
        yield
    finally:
        capped.kernels = kept
        sys.path.remove(str(folder))
        for module in ("wrong_calls", "wrong_capped"):
            sys.modules.pop(module, None)


def _loaded(name: str, folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
