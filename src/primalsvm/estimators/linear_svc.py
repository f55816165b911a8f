"""`LinearSVC`: a linear support vector classifier with a certificate."""

from typing import Any, Literal

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.parameters import store_parameters
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


@fill_parameters
class LinearSVC(Classifier):
    """Linear support vector classification to a proven accuracy.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) until the relative duality gap is at most `tol`. With
    more than two classes this is solved for each class against the rest; with several labels (columns of y), for each
    label.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        One row for two classes, else one for each class or label.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
        The classes, or the numbers of the labels.
    class_weight_ : ndarray of shape (n_classes,)
        The weights of the classes; without labels and streams.
    multilabel_ : bool
        Whether y had several columns.
    certificate_ : Certificate or None
        Proof of accuracy, D ≤ P* ≤ P; summed over the problems if there are several.
    certificates_ : list
        The certificate of each problem; None for a label that is the same in all rows.
    calibration_ : list, with `probability`
        The function from scores to probabilities of each problem.
    history_ : structured ndarray
        One row per evaluation: epoch, steps, seconds, primal, dual, gap, validation_error, solver. If there are several
        problems, the first column is the number of the problem.
    status_ : Status
    solver_ : solver object
        The last solver of the fit; `history_` lists all of them.
    n_iter_ : int
        Number of epochs.
    n_steps_ : int
        Number of updates.
    n_features_in_, n_samples_fit_ : int
    feature_names_in_ : ndarray, if the input had names
    layout_ : after a fit to a source, how its rows became features

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import LinearSVC
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> clf = LinearSVC(lam=1e-2).fit(X, y)
    >>> clf.certificate_.relative_gap < 1e-9
    True
    >>> float(clf.score(X, y))
    0.95
    """

    _features = LinearFeatures()

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        penalty: Literal["l2"] = "l2",
        loss: str | Loss = "hinge",
        dual: bool | Literal["auto"] = "auto",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        multi_class: Literal["ovr"] = "ovr",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
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
