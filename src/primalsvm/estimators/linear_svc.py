"""`LinearSVC`: a linear support vector classifier with a certificate."""

from typing import Any, Literal

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.parameters import store_parameters
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class LinearSVC(Classifier):
    """Linear support vector classification to a proven accuracy.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) until the relative duality gap is at most `tol`. Of
    more than two classes, each against the rest; of labels (a y of several columns), each by itself.

    Parameters
    ----------
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`. Needed by `partial_fit`.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic"} or a loss object, default="hinge"
    solver : {"auto", "dual_ascent", "newton", "interior_point", "pegasos", "asset"} or a solver object, default="auto"
    tol : float, default=1e-3
        Relative duality gap to reach, at least. Small problems are solved to 1e-10.
    max_iter : int or None, default=None
        Epochs at most. None stops after 1,000 epochs or 1e11 operations (a minute or two), whichever comes last.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=False
        Regularise the intercept with the weights, as LIBLINEAR does.
    class_weight : dict, "balanced" or None, default=None
    probability : {"sigmoid", "isotonic"} or bool, default=False
        Fit also `predict_proba`, to the scores of rows that five more fits, to copies of the others, hold out in turn.
        True is "sigmoid".
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Go on from the previous fit where the data have the same shape.
    early_stopping : bool, default=False
        Hold out a share of the rows and keep the point with the lowest error there. (`C` is still translated with the
        weight of all rows.)
    validation_fraction : float, default=0.1
        The share held out with `early_stopping`.
    n_iter_no_change : int, default=5
        Evaluations without a lower held-out error after which `early_stopping` stops.
    checkpoint : Checkpoint or None, default=None
        Where to keep the state of the fit, to go on from there after a crash (`primalsvm.Checkpoint`).
    memory : float or None, default=None
        Bytes that the rows of a source (`primalsvm.open`) may take; None is half of what is available. Of a larger
        source blocks of rows are read in each epoch, and dual ascent goes over these (`BlockAscent`).
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one, -1 all cores. The same `random_state` and `n_jobs` give the same bits.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), or (n_classes, n_features) if there are more than two classes, or labels
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,); of labels, their numbers
    multilabel_ : bool
        Whether y had several columns.
    certificate_ : Certificate or None
        Proof of accuracy: D ≤ P* ≤ P; of several problems, their sums.
    certificates_ : list
        The certificate of each problem; None for a label that all rows agree on, which is none.
    calibration_ : list, with `probability`
        The function of the score that each probability is.
    history_ : structured ndarray
        One row per evaluation: epoch, steps, seconds, primal, dual, gap, validation_error, solver; of several problems,
        first which problem it is of.
    status_ : Status
    solver_ : the solver object that ended the fit; `history_` tells which ones were at work before
    n_iter_ : int
        Epochs.
    n_steps_ : int
        Updates.
    n_features_in_, n_samples_fit_ : int
    feature_names_in_ : ndarray, if the input had names
    layout_ : how the rows of a source became features, after a fit to one

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
