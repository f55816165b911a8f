"""`SVC`: a kernel support vector classifier by low-dimensional features, with a certificate."""

from typing import Any, Literal

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.parameters import store_parameters
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class SVC(Classifier):
    """Kernel support vector classification through features that approximate the kernel.

    Maps rows to d features φ(x) with ⟨φ(s), φ(t)⟩ ≈ k(s, t) and minimises
    P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, φ(xᵢ)⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`. Needed by `partial_fit`.
    kernel : {"rbf", "laplacian", "chi2", "poly", "linear", "precomputed"} or function, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
        γ of the kernel; "scale" is 1/(n_features · Var X), in a stream of its first batch.
    degree : int, default=3
    coef0 : float, default=0.0
    approximation : {"nystroem", "fourier", "exact"} or a Nystroem or FourierFeatures object, default="nystroem"
        The features. Parameters that such an object leaves None are the classifier's. "exact" is no approximation:
        kernelised Pegasos over the whole kernel matrix.
    n_components : int or None, default=None
        Landmarks or Fourier features; None: 512, or the number of rows if there are fewer.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic"} or a loss object, default="hinge"
    solver : {"auto", "newton", "dual_ascent", "interior_point", "asset", "pegasos"} or a solver object, default="auto"
        With "exact", "pegasos" or a `Pegasos` object.
    tol : float, default=1e-3
        Relative duality gap of the mapped problem to reach, at least. Small problems are solved to 1e-10.
    max_iter : int or None, default=None
        Epochs at most. None stops after 1,000 epochs or 1e11 operations (a minute or two), whichever comes last.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=False
        Regularise the intercept with the weights.
    class_weight : dict, "balanced" or None, default=None
    probability : {"sigmoid", "isotonic"} or bool, default=False
        Fit also `predict_proba`, to the scores of rows that five more fits, to copies of the others, hold out in turn.
        True is "sigmoid".
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Keep the features of the previous fit and go on from its solution where the data have the same shape.
    early_stopping : bool, default=False
        Hold out a share of the rows and keep the point with the lowest error there.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
    checkpoint : Checkpoint or None, default=None
        Where to keep the state of the fit, to go on from there after a crash (`primalsvm.Checkpoint`). The features
        are made anew.
    memory : float or None, default=None
        Bytes that the features (with "exact": the kept rows of the kernel matrix) may take; None is half of what is
        available. Where they do not fit, they are computed again, block by block, in each pass.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one (and BLAS's own), -1 all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    feature_map_ : the map φ
    coef_ : ndarray of shape (1, d)
        w, in the space of the features; with "exact", the coefficients of the support vectors.
    intercept_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, s), with Nyström features and with "exact"
        α_S: the score is Σ α_l k(t_l, x) + b over the landmarks or support vectors.
    landmarks_ : array of shape (s, n_features), with Nyström features
    support_ : ndarray, with "exact"
        Which rows are support vectors.
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

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "nystroem",
        n_components: int | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        probability: bool | Literal["sigmoid", "isotonic"] = False,
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
