"""`SVC`: a kernel support vector classifier by low-dimensional features, with a certificate."""

from typing import Any, Literal

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.kernel_machine import KernelMachine
from primalsvm.estimators.parameters import store_parameters
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


@fill_parameters
class SVC(KernelMachine, Classifier):
    """Kernel support vector classification through features that approximate the kernel.

    Maps rows to d features φ(x) with ⟨φ(s), φ(t)⟩ ≈ k(s, t) and minimises
    P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, φ(xᵢ)⟩ + b) until the relative duality gap is at most `tol`.

    Attributes
    ----------
    feature_map_ : the map φ
    coef_ : ndarray of shape (1, d)
        w in the space of the features; with "exact", the coefficients of the support vectors.
    intercept_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, s), with Nyström features and with "exact"
        α_S: the score is Σ α_l k(t_l, x) + b over the landmarks or support vectors t_l.
    landmarks_ : array of shape (s, n_features), with Nyström features
    support_ : ndarray, with "exact"
        Indices of the support vectors.
    classes_, multilabel_, calibration_, certificate_, certificates_, history_, status_, solver_, n_iter_, n_steps_,
    n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate is that of the mapped problem.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from primalsvm import SVC
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> clf = SVC(gamma=2.0, C=10.0, random_state=0).fit(X, y)
    >>> clf.certificate_.relative_gap < 1e-3, clf.score(X, y) > 0.95
    (True, True)
    """

    _features = KernelFeatures()
    _n_iter_is_array = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "auto",
        n_components: int | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        shrinking: bool = True,
        cache_size: float | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        probability: bool | Literal["sigmoid", "isotonic", "deprecated"] = False,
        certify: bool = True,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Checkpoint | None = None,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
