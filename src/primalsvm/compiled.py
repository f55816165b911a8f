"""How kernels are compiled and cached: one decorator, `kernel`.

Numba stamps an on-disk cache entry with the one file the kernel lives in. Our kernels are assembled from several files
(a solver, the losses, the rows), so an edit to `losses.py` would silently run old code. Here the stamp is a digest of
all of the package's sources instead. Where no cache folder can be written, kernels are simply compiled again.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

# Sums may be reassociated (that is what makes them vectorise) and multiply-adds contracted. NaN and inf keep their
# meaning: the checks for them must survive.
FASTMATH = {"reassoc", "contract", "nsz"}


@functools.cache
def source_digest() -> str:
    """Digest of every source file of this package: the stamp of all cached kernels."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _PackageCache(FunctionCache):
    """Numba's function cache, stamped with the whole package and never fatal."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=source_digest(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged entry: reading a broken pickle may raise anything, and compiling again mends it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # a full or read-only disk, a damaged index: costs the next process a compilation only
            return


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call, without the GIL, cached on disk under the package's digest."""
    return _compiled(function, FASTMATH)


def exact_kernel(function: Callable[..., Any]) -> Any:
    """The same without any liberty in floating-point arithmetic."""
    return _compiled(function, set())


def _compiled(function: Callable[..., Any], fastmath: set[str]) -> Any:
    dispatcher = numba.njit(nogil=True, fastmath=fastmath or False, error_model="numpy")(function)
    try:
        dispatcher._cache = _PackageCache(function)
    except (RuntimeError, OSError):  # no folder can be written: Numba has no locator for the cache
        dispatcher._cache = NullCache()
    return dispatcher


def is_kind(numba_type: object, kind: type) -> bool:
    """Whether a Numba type is the NamedTuple class `kind` (used by `@overload` to choose an implementation)."""
    return isinstance(numba_type, types.BaseNamedTuple) and numba_type.instance_class is kind
