"""How kernels are compiled and cached: one decorator, `kernel`.

Numba stamps an on-disk cache entry with the one file the kernel lives in. Our kernels are assembled from several files
(a solver, the losses, the blocks of rows), so an edit to a loss would silently run old code. Here the stamp is a digest
of that file and of all files of the package that it imports, directly or not. The sources of other code are not known:
kernels outside the package, and those for losses and rows defined there, are not cached. Where no cache folder can be
written, kernels are simply compiled again.
"""

import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.extending import overload

# Sums may be reassociated (that is what makes them vectorise) and multiply-adds contracted. NaN and inf keep their
# meaning: the checks for them must survive.
FASTMATH = {"reassoc", "contract", "nsz"}


PACKAGE = Path(__file__).parent
IMPORT = re.compile(r"^\s*(?:from|import) primalsvm([\w.]*)(?: import (?:\(([^)]*)\)|([^\n#]*)))?", re.MULTILINE)


@functools.cache
def source_digest(module: str) -> str:
    """Digest of the sources that a module of this package consists of: the stamp of the kernels in it.

    Examples
    --------
    >>> source_digest("primalsvm.sums") == source_digest("primalsvm.compiled")
    False
    """
    digest = hashlib.sha256()
    for path in sorted(sources_of(module)):
        digest.update(str(path.relative_to(PACKAGE)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def sources_of(module: str) -> set[Path]:
    """The file of a module of this package, and those of all modules of the package that it imports."""
    found: set[Path] = set()
    left = [module.removeprefix("primalsvm").strip(".")]
    while left:
        paths = _files(left.pop()) - found
        found |= paths
        for path in paths:
            left += _imports(path)
    return found


@functools.cache
def _imports(path: Path) -> list[str]:
    """The modules of this package that a file imports, as dotted names within it."""
    names = []
    for inside, listed, same_line in IMPORT.findall(path.read_text()):
        own = inside.strip(".")
        names.append(own)
        names += [f"{own}.{name.split()[0]}".strip(".") for name in (listed or same_line).split(",") if name.strip()]
    return names


def _files(name: str) -> set[Path]:
    """The file of a module, and those of the packages that it is in; empty if there is no such module."""
    parts = name.split(".") if name else []
    path = PACKAGE.joinpath(*parts)
    own = path.with_suffix(".py") if parts else path
    packages = {PACKAGE.joinpath(*parts[:k], "__init__.py") for k in range(1, len(parts) + 1)}
    return {file for file in (own, *packages) if file.is_file()}


def has_foreign_part(kinds: Any) -> bool:
    """Whether types of arguments contain a NamedTuple from outside this package, such as a user's loss."""
    return any(
        has_foreign_part(getattr(kind, "types", ()))
        or (isinstance(kind, types.BaseNamedTuple) and not is_own(kind.instance_class.__module__))
        for kind in kinds
    )


def is_own(module: str) -> bool:
    """Whether a module is of this package."""
    return module.partition(".")[0] == "primalsvm"


class _PackageCache(FunctionCache):
    """Numba's function cache, stamped with the sources of the kernel and never fatal."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=source_digest(py_func.__module__),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if has_foreign_part(sig):
            return None
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged entry: reading a broken pickle may raise anything, and compiling again mends it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if has_foreign_part(sig):
            return
        try:
            super().save_overload(sig, data)
        except Exception:  # a full or read-only disk, a damaged index: costs the next process a compilation only
            return


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call, without the GIL, cached on disk."""
    return _compile(function, FASTMATH)


def exact_kernel(function: Callable[..., Any]) -> Any:
    """The same, with the arithmetic exactly as written."""
    return _compile(function, set())


def _compile(function: Callable[..., Any], fastmath: set[str]) -> Any:
    dispatcher = numba.njit(nogil=True, fastmath=fastmath or False, error_model="numpy")(function)
    try:
        dispatcher._cache = _PackageCache(function) if is_own(function.__module__) else NullCache()
    except (RuntimeError, OSError):  # no folder can be written: Numba has no locator for the cache
        dispatcher._cache = NullCache()
    return dispatcher


def implement(function: Callable[..., Any], kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Implement a function in compiled code, for first arguments of one kind, by the decorated function.

    A first argument of any other kind is a compilation error.
    """

    def register(text: Callable[..., Any]) -> Callable[..., Any]:
        def choose(first: Any, *rest: Any) -> Any:
            return text if isinstance(first, types.BaseNamedTuple) and first.instance_class is kind else None

        overload(function, strict=False)(choose)
        return text

    return register
