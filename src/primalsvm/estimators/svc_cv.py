"""`SVCCV`: a kernel classifier that chooses its C and its γ by cross-validation."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from primalsvm.estimators.classifier import Classifier
from primalsvm.estimators.kernel import IN_DOUBLE
from primalsvm.estimators.learner import Examples, keep_parameters
from primalsvm.estimators.selection import Selecting
from primalsvm.estimators.svc import SVC
from primalsvm.estimators.transformers import components_of, gamma_of
from primalsvm.inputs import as_multiplicity
from primalsvm.losses import Loss
from primalsvm.options import check_integer
from primalsvm.rows import Distant, Vector, shape
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.path import check_strengths
from primalsvm.solvers.policy import plan_features
from primalsvm.solvers.protocol import Solver

SPAN = 10.0  # times γ = "scale", to both sides


class SVCCV(Selecting, SVC):
    """`SVC` with C and γ chosen by cross-validation.

    For each γ the features are computed once and shared by all folds; each fold is a path over the C's. Afterwards it
    is an `SVC` fitted to all rows with the best C and γ; of equal ones, the smallest C, then the first γ.

    Landmarks are drawn from all rows, without a look at the labels: what folds know of the rows that they hold out is
    where they lie, not what they are. (The landmarks of the last fit may lean to the margin, as `SVC`'s do.)

    Parameters
    ----------
    Cs : int or array of C's, default=10
        So many, evenly spaced in log C: from a C at which solutions are simple up four decades, as `LinearSVCCV`'s.
    gammas : int or array of γ's, default=3
        So many, evenly spaced in log γ around the "scale" of `SVC`: from a tenth of it to ten times as much; one is
        "scale" itself.
    cv, scoring, refit
        As in `LinearSVCCV`.
    kernel, degree, coef0, approximation, n_components, loss, solver, tol, max_iter, fit_intercept, penalize_intercept,
    class_weight, memory, random_state
        As in `SVC`; the kernel has a γ, and the approximation is "nystroem", "fourier" or such an object.
    n_jobs : int or None, default=None
        Threads: folds side by side, then those of the last fit.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_, gamma_, lam_ : float
        The choice; λ = 1/(C Σc) of all rows.
    Cs_, gammas_ : ndarray
    scores_ : ndarray of shape (n_gammas, n_folds, n_Cs)
    best_score_ : float
    coef_, feature_map_, classes_, certificate_, …
        As in `SVC`. `save` writes an `SVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from primalsvm import SVCCV
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], n_components=50, cv=3, random_state=0).fit(X, y)
    >>> clf.gamma_, clf.scores_.shape, clf.score(X, y) > 0.95
    (1.0, (2, 3, 3), True)
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = 3,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "nystroem",
        n_components: int | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def _plain(self) -> type[Classifier]:
        return SVC

    def _check_choices(self) -> None:
        super()._check_choices()
        if isinstance(self.gammas, Integral) and not isinstance(self.gammas, bool):
            check_integer("gammas", self.gammas)
        else:
            check_strengths("gammas", self.gammas)
        if isinstance(self.approximation, str) and self.approximation == "exact":
            raise ValueError("approximation='exact' has no features to share: choose 'nystroem' or 'fourier'")
        own = getattr(self.approximation, "gamma", None)
        if own is not None:
            raise ValueError(f"the approximation has a gamma of its own ({own!r}): leave it None, or use SVC")
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError("a precomputed kernel has no gamma to choose: use SVC and scikit-learn's GridSearchCV")

    def _sets(self) -> int:
        return int(self.gammas) if isinstance(self.gammas, Integral) else len(self.gammas)

    def _feature_sets(
        self, model: Any, X: Any, rows: Examples, seed: int, sample_weight: npt.ArrayLike | None
    ) -> Iterator[tuple[Examples, Solver]]:
        m, _ = shape(rows.batch.rows)
        self.gammas_ = self._gammas(X, as_multiplicity(sample_weight, m))
        for gamma in self.gammas_.tolist():
            model.set_params(gamma=gamma)
            approximation = model._approximation()
            double = m * components_of(approximation.n_components, m) <= IN_DOUBLE
            precision = np.dtype(np.float64 if double else np.float32)
            model._build_map(approximation, X, rows.batch, precision, seed, sample_weight)
            solver, apart = plan_features(self.solver, m, model.feature_map_.n_components, model._problem(rows.batch))
            features = model._in_features(rows, apart)
            if isinstance(features.batch.rows, Distant) and self.solver == "auto":
                solver = Newton()
            yield features, solver

    def _gammas(self, X: Any, weight: Vector | None) -> npt.NDArray[np.float64]:
        """The γ's: those given, or so many around "scale"."""
        if not isinstance(self.gammas, Integral):
            return check_strengths("gammas", self.gammas)
        scale, n = gamma_of("scale", X, weight), int(self.gammas)
        return np.geomspace(scale / SPAN, scale * SPAN, n) if n > 1 else np.array([scale])

    def _keep_choice(self, scores: npt.NDArray[np.float64], best: int) -> dict[str, Any]:
        self.scores_, self.gamma_ = scores, float(self.gammas_[best])
        return {"gamma": self.gamma_}
