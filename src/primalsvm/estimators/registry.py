"""The estimators, by their names. A new one is a line here, and a public name of `primalsvm`."""

from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.linear_one_class_svm import LinearOneClassSVM
from primalsvm.estimators.linear_ranker import LinearRanker
from primalsvm.estimators.linear_svc import LinearSVC
from primalsvm.estimators.linear_svc_cv import LinearSVCCV
from primalsvm.estimators.linear_svr import LinearSVR
from primalsvm.estimators.nu_svc import NuSVC
from primalsvm.estimators.nu_svr import NuSVR
from primalsvm.estimators.one_class_svm import OneClassSVM
from primalsvm.estimators.svc import SVC
from primalsvm.estimators.svc_cv import SVCCV
from primalsvm.estimators.svr import SVR
from primalsvm.estimators.transformers import FourierFeatures, Nystroem

ESTIMATORS: dict[str, type[Estimator]] = {  # those that model files hold
    kind.__name__: kind
    for kind in (LinearOneClassSVM, LinearRanker, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, SVC, SVR)
}
SELECTING: dict[str, type[Estimator]] = {"LinearSVCCV": LinearSVCCV, "SVCCV": SVCCV}  # are saved as what they choose
TRANSFORMERS: dict[str, type] = {"FourierFeatures": FourierFeatures, "Nystroem": Nystroem}
