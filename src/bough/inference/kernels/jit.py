"""The one place that says how kernels are compiled, and when a compiled one may be used again.

Compiled when first called and cached on disk. No `fastmath` (results must not depend on the machine's
vector width) and no `parallel` (runs are parallel, not kernels).

numba's own cache looks at the kernel's file alone, and would keep a kernel after an edit of what it calls in another.
Here a compiled kernel is kept under a *stamp*: a hash of this file, of the kernel's file, and of all files of the
same folder, or of packages in it, that these import, directly or not. What is imported from elsewhere does not count,
so what is compiled into a kernel, functions and constants, comes from its own folder.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """The function, compiled on its first call."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if dispatcher is not function:  # as it is under NUMBA_DISABLE_JIT
        _remember(_file_of(function))
        try:
            dispatcher._cache = _Cache(function, none=dispatcher._cache)
        except AttributeError as problem:
            _warn(problem)
    return cast(_F, dispatcher)


# -- the stamp -------------------------------------------------------------------------------------

_HERE = os.path.abspath(__file__)
_texts: dict[str, bytes] = {}  # by path: the files of kernels, as they were when the first kernel of a folder was made


def _file_of(function: Callable[..., Any]) -> str:
    return os.path.abspath(function.__code__.co_filename)


def stamp(path: str) -> str:
    """A hash of the texts of a file of kernels, of this file, and of what it imports from its folder."""
    _remember(path)
    folder = os.path.dirname(path)
    digest = hashlib.sha256(hashlib.sha256(_texts[_HERE]).digest())
    for file in sorted(_reached(path)):
        digest.update(os.path.relpath(file, folder).encode() + b"\0" + hashlib.sha256(_texts[file]).digest())
    return digest.hexdigest()


def _remember(path: str) -> None:
    """Reads a file of kernels and those beside it, before an edit can make them differ from what has been imported."""
    if path in _texts:
        return
    for folder, below, names in itertools.chain(os.walk(os.path.dirname(_HERE)), os.walk(os.path.dirname(path))):
        below[:] = [name for name in below if os.path.exists(os.path.join(folder, name, "__init__.py"))]
        for name in names:
            if name.endswith(".py"):
                file = os.path.join(folder, name)
                text = _read(file)
                if text is not None:
                    _texts.setdefault(file, text)


def _read(file: str) -> bytes | None:
    """The bytes of a file; None where there are none, as for the link that an editor leaves beside a file in use."""
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return None


def _unchanged(path: str) -> bool:
    """Whether what `stamp` hashes is still what is on disk."""
    return all(_read(file) == _texts[file] for file in (_HERE, *_reached(path)))


@functools.cache
def _reached(path: str) -> frozenset[str]:
    """The file, and all files of its folder that it imports, directly or not."""
    found = {path}
    unread = [path]
    while unread:
        new = set(_imports(unread.pop(), os.path.dirname(path))) - found
        found |= new
        unread += new
    return frozenset(found)


def _imports(path: str, folder: str) -> Iterator[str]:
    """The files of the folder, and of packages in it, that a file imports: rather one too many than one too few."""
    parents = Path(folder).parts
    for level, name in _imported_names(path):
        parts = tuple(name.split("."))
        places = []
        if level:
            places.append((str(Path(path).parents[level - 1]), parts, 0))
        else:
            # In the folder a/b, `a.b.c` is c.py. Where the folder is itself on Python's path, `c` is.
            for known in range(len(parts) + 1):
                if parents[len(parents) - known :] == parts[:known]:
                    places.append((folder, parts[known:], 0 if known else 1))
        for start, rest, shortest in places:
            for end in range(shortest, len(rest) + 1):
                place = os.path.join(start, *rest[:end])
                for file in (place + ".py", os.path.join(place, "__init__.py")):
                    if file in _texts and file.startswith(folder + os.sep):
                        yield file


@functools.cache
def _imported_names(path: str) -> list[tuple[int, str]]:
    """What a file's import statements name, wherever they stand, each with its number of leading dots."""
    names: list[tuple[int, str]] = []
    unread: list[ast.AST] = [ast.parse(_texts[path])]
    while unread:
        node = unread.pop()
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [(node.level, ".".join(filter(None, (node.module, alias.name)))) for alias in node.names]
        else:
            unread += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    return names


# -- the cache -------------------------------------------------------------------------------------


class _Cache:
    """numba's cache of one function, under our stamp, and opened when it is first asked for something."""

    def __init__(self, function: Callable[..., Any], none: Any) -> None:
        self._function = function
        self._none = none  # the dispatcher's own, which keeps nothing

    @functools.cached_property
    def _opened(self) -> Any:
        try:
            return _open(self._function) or self._none
        except Exception as problem:  # a folder, or a numba, that is not as we know it: rather slow than wrong
            _warn(problem)
            return self._none

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)


def _open(function: Callable[..., Any]) -> Any:
    """numba's cache of the function with files under our stamp; None where the stamp is not that of what was imported.

    Nothing but this relies on the inside of numba: on names, which are missing here where they have changed.
    """
    path = _file_of(function)
    current = stamp(path)
    if not _unchanged(path):
        return None
    caching: Any = importlib.import_module("numba.core.caching")
    cache = caching.FunctionCache(function)
    if not isinstance(cache._cache_file, caching.IndexDataCacheFile):
        raise TypeError(f"numba {numba.__version__} keeps its files in a {type(cache._cache_file).__name__}")
    files = caching.IndexDataCacheFile(cache.cache_path, cache._impl.filename_base, source_stamp=current)
    cache._cache_file = _Sealed(files, current)
    return cache


class _Sealed:
    """The files of a cache, where what is loaded is known to be what was saved under the same stamp and signature.

    numba writes the index before the data, and many processes may write both. Without the seal, one that starts in
    between could load what an older version, or another signature, had left under the same name.
    """

    def __init__(self, files: Any, stamp: str) -> None:
        self._files = files
        self._stamp = stamp

    def save(self, key: Any, data: Any) -> None:
        self._files.save(key, (self._stamp, key, data))

    def load(self, key: Any) -> Any:
        kept = self._files.load(key)
        return kept[2] if kept is not None and kept[:2] == (self._stamp, key) else None

    def flush(self) -> None:
        self._files.flush()


_warned: list[Exception] = []


def _warn(problem: Exception) -> None:
    """Says once that there is no cache."""
    if not _warned:
        _warned.append(problem)
        warnings.warn(
            f"compiled kernels cannot be kept on disk, so every process compiles its own: {problem}. "
            "NUMBA_CACHE_DIR may name a folder for them",
            RuntimeWarning,
            stacklevel=2,
        )
