"""`LinearSVCCV`: a linear classifier that chooses its C by cross-validation."""

from typing import Any, Literal

from primalsvm.estimators.linear_svc import LinearSVC
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.selection import SelectingClassifier
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class LinearSVCCV(SelectingClassifier, LinearSVC):
    """`LinearSVC` with C chosen by cross-validation.

    Each fold computes a path over the values of C from small to large; each solution starts from the previous ones and
    has a certificate. The folds share the rows in memory. The final model is a `LinearSVC` fitted to all rows with the
    best C, the smallest one if several are equally good.

    Parameters
    ----------
    Cs : int or array of floats, default=20
        Values of C. An integer is their number: they are evenly spaced in log C over four decades, from the C of
        `svm_path`'s λ_max upwards.
    cv : int, splitter or iterable of splits, default=5
        As in scikit-learn: an integer makes stratified folds.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is the accuracy, weighted by the sample weights. A callable gets copies of the rows.
    refit : bool, default=True
        Fit to all rows with the best C; if False, only choose it.
    loss, solver, tol, max_iter, fit_intercept, penalize_intercept, class_weight, random_state
        As in `LinearSVC`. "balanced" uses the class frequencies of a fold's training rows. Class weights also weight
        the scores, as in scikit-learn's RidgeClassifierCV.
    n_jobs : int or None, default=None
        Number of threads, first for the folds in parallel, then for the final fit.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_, lam_ : float
        The best C, and λ = 1/(C Σc) for all rows.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_folds, n_Cs)
    best_score_ : float
        The mean score of C_.
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
