"""Support vector machines solved in the primal, with a proof of accuracy.

Names are imported when they are first used, so that `import primalsvm` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from primalsvm.checkpoints import Checkpoint
    from primalsvm.estimators.linear_one_class_svm import LinearOneClassSVM
    from primalsvm.estimators.linear_ranker import LinearRanker
    from primalsvm.estimators.linear_svc import LinearSVC
    from primalsvm.estimators.linear_svc_cv import LinearSVCCV
    from primalsvm.estimators.linear_svr import LinearSVR
    from primalsvm.estimators.model_files import load
    from primalsvm.estimators.nu_svc import NuSVC
    from primalsvm.estimators.nu_svr import NuSVR
    from primalsvm.estimators.one_class_svm import OneClassSVM
    from primalsvm.estimators.svc import SVC
    from primalsvm.estimators.svc_cv import SVCCV
    from primalsvm.estimators.svr import SVR
    from primalsvm.estimators.transformers import FourierFeatures, Nystroem
    from primalsvm.losses import (
        EpsilonInsensitive,
        Hinge,
        Huber,
        Logistic,
        OneSided,
        Pinball,
        SmoothedHinge,
        SquaredEpsilonInsensitive,
        SquaredHinge,
    )
    from primalsvm.objective import Problem
    from primalsvm.solution import Certificate, Solution, Status
    from primalsvm.solvers.asset import Asset
    from primalsvm.solvers.cutting_planes import CuttingPlanes
    from primalsvm.solvers.dual_ascent import DualAscent
    from primalsvm.solvers.interior_point import InteriorPoint
    from primalsvm.solvers.newton import Newton
    from primalsvm.solvers.path import svm_path
    from primalsvm.solvers.pegasos import Pegasos
    from primalsvm.solvers.solve import solve
    from primalsvm.sources.opening import open

__version__ = "0.1.0"

_HOME = {
    "Asset": "solvers.asset",
    "Certificate": "solution",
    "Checkpoint": "checkpoints",
    "CuttingPlanes": "solvers.cutting_planes",
    "DualAscent": "solvers.dual_ascent",
    "EpsilonInsensitive": "losses",
    "FourierFeatures": "estimators.transformers",
    "Hinge": "losses",
    "Huber": "losses",
    "InteriorPoint": "solvers.interior_point",
    "LinearOneClassSVM": "estimators.linear_one_class_svm",
    "LinearRanker": "estimators.linear_ranker",
    "LinearSVC": "estimators.linear_svc",
    "LinearSVCCV": "estimators.linear_svc_cv",
    "LinearSVR": "estimators.linear_svr",
    "Logistic": "losses",
    "Newton": "solvers.newton",
    "NuSVC": "estimators.nu_svc",
    "NuSVR": "estimators.nu_svr",
    "Nystroem": "estimators.transformers",
    "OneClassSVM": "estimators.one_class_svm",
    "OneSided": "losses",
    "Pegasos": "solvers.pegasos",
    "Pinball": "losses",
    "Problem": "objective",
    "SVC": "estimators.svc",
    "SVCCV": "estimators.svc_cv",
    "SVR": "estimators.svr",
    "SmoothedHinge": "losses",
    "Solution": "solution",
    "SquaredEpsilonInsensitive": "losses",
    "SquaredHinge": "losses",
    "Status": "solution",
    "load": "estimators.model_files",
    "open": "sources.opening",
    "solve": "solvers.solve",
    "svm_path": "solvers.path",
}

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "Asset",
    "Certificate",
    "Checkpoint",
    "CuttingPlanes",
    "DualAscent",
    "EpsilonInsensitive",
    "FourierFeatures",
    "Hinge",
    "Huber",
    "InteriorPoint",
    "LinearOneClassSVM",
    "LinearRanker",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "Logistic",
    "Newton",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OneSided",
    "Pegasos",
    "Pinball",
    "Problem",
    "SmoothedHinge",
    "Solution",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Status",
    "__version__",
    "load",
    "open",
    "solve",
    "svm_path",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'primalsvm' has no attribute {name!r}")
    found = getattr(import_module(f"primalsvm.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
