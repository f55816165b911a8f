"""`LinearSVCCV`: a linear classifier that chooses its C by cross-validation."""

from typing import Any, Literal

from primalsvm.estimators.linear_svc import LinearSVC
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.selection import SelectingClassifier
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class LinearSVCCV(SelectingClassifier, LinearSVC):
    """`LinearSVC` with C chosen by cross-validation, along paths that begin with strong regularisation.

    Each fold is a path over the C's, each point begun where those before lead to, each certified; folds share the rows
    in memory. Afterwards it is a `LinearSVC` fitted to all rows with the best C; of equal ones, the smallest.

    Parameters
    ----------
    Cs : int or array of C's, default=20
        So many, evenly spaced in log C: from the C at which solutions are simple (`svm_path`'s λ_max) up four decades.
    cv : int, splitter or iterable of splits, default=5
        As in scikit-learn: an integer makes stratified folds.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is the accuracy. Sample weights count. A function of your own gets copies of rows.
    refit : bool, default=True
        Fit to all rows; without, only the choice is made.
    loss, solver, tol, max_iter, fit_intercept, penalize_intercept, class_weight, random_state
        As in `LinearSVC`; in folds, too. "balanced" is by the rows that a fold trains on. Class weights count in the
        scores, as in scikit-learn's RidgeClassifierCV: they are as if rows were repeated.
    n_jobs : int or None, default=None
        Threads: of the folds in parallel, then of the last fit.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_, lam_ : float
        The choice; λ = 1/(C Σc) of all rows.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_folds, n_Cs)
    best_score_ : float
        The mean of the scores of C_.
    coef_, intercept_, classes_, certificate_, …
        As in `LinearSVC`. `save` writes a `LinearSVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import LinearSVCCV
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> clf = LinearSVCCV(Cs=[0.01, 0.1, 1.0], cv=3, random_state=0).fit(X, y)
    >>> clf.C_ in clf.Cs_, clf.scores_.shape, clf.certificate_.relative_gap < 1e-9
    (True, (3, 3), True)
    """

    _base_class = LinearSVC

    def __init__(
        self,
        *,
        Cs: Any = 20,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
