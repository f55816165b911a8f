"""The kernels and feature maps. A new one is a class in a file of this package, and a line here."""

from collections.abc import Callable as Function
from dataclasses import fields
from typing import Any

from primalsvm.maps.fourier import FourierMap
from primalsvm.maps.kernels import (
    Callable,
    ChiSquared,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Tangent,
)
from primalsvm.maps.nystroem import KernelValues, NystroemMap

NAMED_KERNELS: dict[str, Any] = {  # by the values of the parameter `kernel`; their fields are parameters as well
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "chi2": ChiSquared,
    "poly": Polynomial,
    "sigmoid": Tangent,
    "linear": Linear,
}
KERNELS: dict[str, type] = {  # by the names of their classes, for files, which cannot hold functions
    kind.__name__: kind for kind in (*NAMED_KERNELS.values(), Precomputed)
}
MAPS: dict[str, type] = {kind.__name__: kind for kind in (FourierMap, KernelValues, NystroemMap)}


def kernel_by_name(kernel: str | Function[[Any, Any], Any], gamma: float, degree: int, coef0: float) -> Kernel:
    """The kernel of a name, or of a function.

    Examples
    --------
    >>> kernel_by_name("poly", gamma=0.5, degree=2, coef0=1.0)
    Polynomial(degree=2, gamma=0.5, coef0=1.0)
    """
    if callable(kernel):
        return Callable(kernel)
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a name or a function, got {kernel!r}")
    if kernel not in NAMED_KERNELS:
        known = sorted([*NAMED_KERNELS, "precomputed"])
        raise ValueError(f"kernel={kernel!r} is not known; choose one of {known} or give a function")
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    kind = NAMED_KERNELS[kernel]
    found: Kernel = kind(**{field.name: given[field.name] for field in fields(kind)})
    return found
