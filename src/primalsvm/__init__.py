"""Support vector machines solved in the primal, with a proof of accuracy.

Names are imported when they are first used, so that `import primalsvm` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from primalsvm.checkpoints import Checkpoint
    from primalsvm.estimators.files import load
    from primalsvm.estimators.linear_svc import LinearSVC
    from primalsvm.estimators.svc import SVC
    from primalsvm.estimators.transformers import FourierFeatures, Nystroem
    from primalsvm.losses import Hinge, Logistic, SmoothedHinge, SquaredHinge
    from primalsvm.objective import Problem
    from primalsvm.solution import Certificate, Solution, Status
    from primalsvm.solvers.asset import Asset
    from primalsvm.solvers.drive import solve
    from primalsvm.solvers.dual_ascent import DualAscent
    from primalsvm.solvers.newton import Newton
    from primalsvm.solvers.pegasos import Pegasos
    from primalsvm.sources.opening import open

__version__ = "0.1.0"

_HOME = {
    "Asset": "solvers.asset",
    "Certificate": "solution",
    "Checkpoint": "checkpoints",
    "DualAscent": "solvers.dual_ascent",
    "FourierFeatures": "estimators.transformers",
    "Hinge": "losses",
    "LinearSVC": "estimators.linear_svc",
    "Logistic": "losses",
    "Newton": "solvers.newton",
    "Nystroem": "estimators.transformers",
    "Pegasos": "solvers.pegasos",
    "Problem": "objective",
    "SVC": "estimators.svc",
    "SmoothedHinge": "losses",
    "Solution": "solution",
    "SquaredHinge": "losses",
    "Status": "solution",
    "load": "estimators.files",
    "open": "sources.opening",
    "solve": "solvers.drive",
}

__all__ = [
    "SVC",
    "Asset",
    "Certificate",
    "Checkpoint",
    "DualAscent",
    "FourierFeatures",
    "Hinge",
    "LinearSVC",
    "Logistic",
    "Newton",
    "Nystroem",
    "Pegasos",
    "Problem",
    "SmoothedHinge",
    "Solution",
    "SquaredHinge",
    "Status",
    "__version__",
    "load",
    "open",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'primalsvm' has no attribute {name!r}")
    found = getattr(import_module(f"primalsvm.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
