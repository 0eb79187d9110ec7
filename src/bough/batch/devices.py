"""Where a batch is computed: JAX's devices, what they have free, and what is wrong where there are none."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from bough._extras import install

_KINDS = ("gpu", "cpu")
_HOW = f"{install('gpu')}; or leave out device= for the compiled path, which takes no extra"


def jax_module() -> Any:
    """JAX itself; a `ModuleNotFoundError` that says how to get it where it is not installed."""
    try:
        return import_module("jax")
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise ModuleNotFoundError(f"batches on a device need JAX; {_HOW}", name="jax") from error


def device_of(kind: Any) -> Any:
    """The first of JAX's devices of a kind, "gpu" or "cpu"; a `ValueError` where there is none."""
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f'device is {kind!r}; give "gpu" or "cpu"')
    jax = jax_module()
    try:
        return jax.devices(kind)[0]
    except RuntimeError as error:
        found = ", ".join(sorted({one.platform for one in jax.devices()}))
        raise ValueError(
            f'device is {kind!r}, and JAX finds none here, only {found}; install JAX for the GPU, or give device="cpu"'
        ) from error


def double_digits() -> AbstractContextManager[Any]:
    """Have JAX compute with numbers of 64 bits where it is asked to."""
    jax = jax_module()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # type: ignore[no-any-return]
    return import_module("jax.experimental").enable_x64(True)  # type: ignore[no-any-return]


def all_bytes(device: Any) -> int | None:
    """How much memory a device has in all; None where it does not say."""
    about = device.memory_stats()
    return int(about["bytes_limit"]) if about and "bytes_limit" in about else None


def free_bytes(device: Any) -> int | None:
    """How much memory a device has left; None where it does not say."""
    room = all_bytes(device)
    return None if room is None else room - int(device.memory_stats().get("bytes_in_use", 0))
