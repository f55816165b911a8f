"""`SVC`: a kernel support vector classifier, exact or by low-dimensional features, with a certificate."""

from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.exact_certificate import exact_certificates
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.kernel_machine import KernelMachine
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.pipeline import total_certificate
from primalsvm.losses import Loss
from primalsvm.solution import Certificate
from primalsvm.solvers.protocol import Solver


@fill_parameters
class SVC(KernelMachine, Classifier):
    """Kernel support vector classification, in the place of scikit-learn's.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, φ(xᵢ)⟩ + b) until the relative duality gap is at most `tol`.
    An exact machine has ⟨φ(s), φ(t)⟩ = k(s, t), and solves this for each pair of classes; an approximate one maps rows
    to d features with ⟨φ(s), φ(t)⟩ ≈ k(s, t), and solves this for each class against the rest.

    Attributes
    ----------
    approximation_ : str
        "exact", "nystroem" or "fourier": what `approximation` has come to mean.
    intercept_ : ndarray of shape (1,), (n_pairs,) or (n_classes,)
    support_ : ndarray of shape (s,), of exact machines
        Indices of the support vectors, class by class.
    support_vectors_ : array or sparse matrix of shape (s, n_features), of exact machines
    n_support_ : ndarray of shape (n_classes,), of exact machines
        The number of support vectors of each class.
    dual_coef_ : array or sparse matrix of shape (n_classes − 1, s), of exact machines
        Coefficients of the support vectors in the problems of their class, at most C in size, as scikit-learn's.
    coef_ : ndarray or sparse matrix of shape (1, n_features), (n_pairs, n_features) or (n_classes, n_features)
        w in the space of the rows; with the linear kernel only.
    feature_map_ : the map φ; of exact machines the support vectors with their kernel
    feature_coef_ : ndarray of shape (1, d) or (n_classes, d)
        w in the space of the features; of exact machines the same as `dual_coef_`.
    landmarks_ : array of shape (d, n_features), with Nyström features
    landmark_coef_ : ndarray of shape (1, d) or (n_classes, d), with Nyström features
        α_S: the score is Σ α_l k(t_l, x) + b over the landmarks t_l.
    gamma_ : float
        γ of the kernel, if it has one.
    fit_status_ : int
        0 if the fit ended as it should, 1 if it fell short.
    shape_fit_ : tuple
        The shape of the training rows.
    sparse_fit_ : bool
        Whether an exact machine was fitted to sparse rows.
    multiclass_ : str
        "ovo" if there is a problem for each pair of classes.
    n_iter_ : ndarray of shape (n_problems,)
        Number of epochs of each problem.
    classes_, class_weight_, multilabel_, calibration_, certificate_, certificates_, history_, status_, solver_,
    n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate of an approximate machine is that of the mapped problem.

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

    def exact_certificate(self, X: Any, y: Any, sample_weight: Any = None, *, tol: float | None = None) -> Certificate:
        """The certificate of this machine in the problem of the kernel itself; with Nyström features.

        `certificate_` of a machine with features compares it with the best machine that has these features. This one
        compares it with the best machine that has the kernel: P − D bounds by how much P would fall with
        ``approximation="exact"``. P is that of `certificate_` up to rounding. D is computed at the slopes of the losses
        at this machine's scores, scaled by the best factor, which may be far below the optimum; with `tol` it is
        improved until it is near. Costs a pass over support vectors × rows; with `tol` a good deal of an exact fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : array of shape (n_samples,), optional
        tol : float, optional
            Improve D until it is within this relative gap of the optimum of the exact problem.

        Returns
        -------
        Certificate
            With several classes that of the sum of all problems, one for each class.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from primalsvm import SVC
        >>> X, y = make_moons(400, noise=0.2, random_state=0)
        >>> clf = SVC(gamma=2.0, approximation="nystroem", n_components=30, random_state=0).fit(X, y)
        >>> found = clf.exact_certificate(X, y, tol=1e-4)
        >>> clf.certificate_.relative_gap < 1e-3 < found.relative_gap < 0.1
        True
        """
        check_is_fitted(self, "intercept_")
        if self.approximation_ == "exact":
            own: Certificate | None = self.certificate_
        else:
            own = total_certificate(exact_certificates(self, X, y, sample_weight, tol))
        if own is None:
            raise ValueError("this machine was fitted with certify=False: it has no certificate")
        return own
