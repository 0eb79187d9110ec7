"""What is observed: rows, sums over them, and logs of any kind."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bough.data.adapters import from_obp, to_obp

__all__ = ["from_obp", "to_obp"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bough.data' has no attribute {name!r}")
    return getattr(import_module("bough.data.adapters"), name)
