"""Choosing C (and γ) by cross-validation: what `LinearSVCCV` and `SVCCV` share.

    for each set of features (one; of a kernel machine one for each γ):
        for each fold, side by side:
            for each C, from strong regularisation to weak, each begun where those before lead to (`solvers.path`):
                score the rows that were held out
    refit on all rows with the C (and γ) of the best mean score; of equal ones, the stronger regularisation

Folds share the rows: those held out weigh 0, which is the same as no row. Nothing is copied. In a fold C means what it
means in scikit-learn, λ = 1/(C Σc) with Σc of the fold's training rows.
"""

import os
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from primalsvm.estimators.classifier import Classifier
from primalsvm.estimators.learner import Examples
from primalsvm.estimators.progress import counting_bar
from primalsvm.estimators.targets import Classes
from primalsvm.inputs import as_multiplicity, as_weights
from primalsvm.objective import ALONE
from primalsvm.options import check_integer
from primalsvm.rows import Vector, total_weight
from primalsvm.solvers.drive import Stops
from primalsvm.solvers.path import DECADES, check_strengths, follow, strongest
from primalsvm.solvers.protocol import Solver
from primalsvm.sources.opening import is_source
from primalsvm.team import team_for

ROUNDING = 1e-12  # of mean scores, that are equal up to it
OF_THE_CHOICE = ("Cs_", "C_", "lam_", "gammas_", "gamma_", "scores_", "best_score_")


class Fold(NamedTuple):
    """Rows to train on and rows to score."""

    training: Vector  # a mask
    held: Vector  # numbers


Table = list[tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]]  # scores, and which fits fell short


class Selecting(Classifier):
    """A classifier that chooses its own C; its parameters are those of the classes that derive.

    All the fitting is done by a plain classifier (`LinearSVC`, `SVC`), whose parameters have the same names.
    """

    probability: ClassVar[bool] = False

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Choose the parameters by cross-validation, then fit to all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,), optional
            Counts in training and in scoring. An integer `cv` cuts the rows of positive weight only.

        Returns
        -------
        self
        """
        if is_source(X):
            raise TypeError("choosing parameters needs arrays: X, y = source.to_arrays()")
        self._check_choices()
        model: Any = self._plain()(**self._shared_parameters())
        checked, rows = model._enter(X, y, sample_weight)
        if not isinstance(rows.targets, Classes):
            raise ValueError("y has several columns: choose the parameters of each label on its own")
        Cs = self._grid(model, rows)
        judge = Judge(self.scoring, checked, rows.targets, as_multiplicity(sample_weight, len(rows.targets.codes)))
        tables = self._tables(model, checked, rows, Cs, judge, sample_weight)
        scores = np.array([[score for score, _ in table] for table in tables])
        best_set, best = self._best(scores, Cs)
        self._warn_of_short([short[best] for _, short in tables[best_set]])
        self.Cs_, self.C_ = Cs, float(Cs[best])
        chosen = self._keep_choice(scores, best_set)
        self.lam_ = 1.0 / (self.C_ * total_weight(rows.batch))
        if self.refit:
            model = self._plain()(**self._shared_parameters(), C=self.C_, **chosen).fit(X, y, sample_weight)
        self.__dict__.pop("coef_", None)  # of a fit before
        for name, value in vars(model).items():
            if name.endswith("_") and (self.refit or name not in ("feature_map_", "landmarks_")):
                setattr(self, name, value)
        return self

    # ---- what a class that derives says of its features -------------------------------------------------------------

    @abstractmethod
    def _plain(self) -> type[Classifier]:
        """The classifier that this is, once the choice is made."""

    @abstractmethod
    def _feature_sets(
        self, model: Any, X: Any, rows: Examples, seed: int, sample_weight: npt.ArrayLike | None
    ) -> Iterator[tuple[Examples, Solver]]:
        """The sets of features to choose from, each with its solver."""

    @abstractmethod
    def _sets(self) -> int:
        """How many sets of features there are."""

    @abstractmethod
    def _keep_choice(self, scores: npt.NDArray[np.float64], best: int) -> dict[str, Any]:
        """Keep the table of scores (sets of features × folds × C's); the parameters of the best set of features."""

    # ---- the parts of fit --------------------------------------------------------------------------------------------

    def _check_choices(self) -> None:
        if isinstance(self.Cs, Integral) and not isinstance(self.Cs, bool):
            check_integer("Cs", self.Cs)
        else:
            check_strengths("Cs", self.Cs)

    def _shared_parameters(self) -> dict[str, Any]:
        """The parameters that a plain classifier has, too."""
        names = set(self._plain()._get_param_names())
        return {name: value for name, value in self.get_params(deep=False).items() if name in names}

    def _grid(self, model: Any, rows: Examples) -> npt.NDArray[np.float64]:
        """The C's: those given, or so many from 1/(λ_max Σc) up four decades."""
        if not isinstance(self.Cs, Integral):
            return check_strengths("Cs", self.Cs)
        problem = model._problem(rows.batch)
        top = max(strongest(problem, rows.of(k)) for k in range(rows.targets.count))
        least = 1.0 / (top * total_weight(rows.batch))
        return np.geomspace(least, least * 10.0**DECADES, int(self.Cs))

    def _tables(
        self,
        model: Any,
        X: Any,
        rows: Examples,
        Cs: npt.NDArray[np.float64],
        judge: "Judge",
        sample_weight: npt.ArrayLike | None,
    ) -> list[Table]:
        """For each set of features and each fold the scores at each C, and which fits fell short."""
        folds, seed = self._folds(X, rows), model._seed()
        with counting_bar(self.verbose, type(self).__name__, self._sets() * len(folds) * len(Cs)) as tick:
            return [
                self._scored_folds(model, features, solver, folds, Cs, seed, judge, tick)
                for features, solver in self._feature_sets(model, X, rows, seed, sample_weight)
            ]

    def _warn_of_short(self, short: list[bool]) -> None:
        """Say so if fits with what was chosen fell short; those with other parameters no longer matter."""
        if any(short):
            warnings.warn(
                f"{type(self).__name__}: {sum(short)} of {len(short)} fits in folds fell short of tol {self.tol:g} "
                "with the parameters that were chosen; raise max_iter, scale the features, or leave out the largest C",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _best(self, scores: npt.NDArray[np.float64], Cs: npt.NDArray[np.float64]) -> tuple[int, int]:
        """The numbers of the set of features and of the C with the best mean score; of equal ones, the smallest C."""
        means = scores.mean(axis=1)
        if not np.isfinite(means).any():
            raise ValueError("no score is a number: nothing can be chosen by it")
        self.best_score_ = float(np.nanmax(means))
        best = means >= self.best_score_ - ROUNDING * max(1.0, abs(self.best_score_))
        _, g, c = min((float(Cs[c]), g, c) for g, c in np.argwhere(best).tolist())
        return g, c

    def _folds(self, X: Any, rows: Examples) -> list[Fold]:
        """Folds of scikit-learn's `check_cv`; each must have every class to train on, and something to score."""
        from sklearn.model_selection import check_cv  # brings half of scikit-learn with it

        targets: Any = rows.targets
        m = len(targets.codes)
        counting = np.broadcast_to(rows.batch.weight.values, m) > 0
        which = np.flatnonzero(counting) if isinstance(self.cv, Integral | None) else np.arange(m)
        labels = targets.classes[targets.codes[which]]
        folds: list[Fold] = []
        splitter = check_cv(self.cv, labels, classifier=True)
        try:
            splits = list(splitter.split(X if len(which) == m else which, labels))
        except ValueError as error:
            if "groups" not in str(error):
                raise
            raise ValueError("cv needs groups: give the splits themselves, cv=list(cv.split(X, y, groups))") from None
        for train, held in splits:
            mask = np.zeros(m, bool)
            mask[which[train]] = True
            mask &= counting
            tested = which[held]
            fold = Fold(mask, tested[counting[tested]])
            missing = np.setdiff1d(np.arange(len(targets.classes)), targets.codes[mask])
            if missing.size:
                name = targets.classes[missing[0]].item()
                raise ValueError(f"fold {len(folds)} has no rows of the class {name!r} to train on: use fewer folds")
            if not fold.held.size:
                raise ValueError(f"fold {len(folds)} holds out no rows that count: there is nothing to score")
            folds.append(fold)
        if not folds:
            raise ValueError(f"cv={self.cv!r} makes no folds")
        return folds

    def _scored_folds(
        self,
        model: Any,
        features: Examples,
        solver: Solver,
        folds: list[Fold],
        Cs: npt.NDArray[np.float64],
        seed: int,
        judge: "Judge",
        tick: Callable[[], None],
    ) -> Table:
        """A path for each fold, side by side."""
        stops, stop = Stops(self.tol, self.max_iter), threading.Event()

        def path(k: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
            examples = self._in_fold(model, features, folds[k], judge.multiplicity)
            batches = [examples.of(j) for j in range(examples.targets.count)]
            lams = 1.0 / (Cs * total_weight(examples.batch))
            found, short = {}, {}
            try:
                for lam, point in follow(
                    model._problem(examples.batch), lams, batches, solver, stops, n_jobs=n_jobs, seed=seed
                ):
                    scores = [ALONE.scores(examples.batch.rows, one.w)[folds[k].held] + one.b for one in point]
                    found[lam] = judge.score(np.stack(scores, axis=1), folds[k].held, examples.targets)
                    short[lam] = any(one.status.fell_short for one in point)
                    tick()
                    if stop.is_set():
                        break
            except BaseException:  # Ctrl-C is told to one thread only
                stop.set()
                raise
            given = lams.tolist()
            return np.array([found.get(lam, np.nan) for lam in given]), np.array(
                [short.get(lam, True) for lam in given]
            )

        with team_for(self.n_jobs) as team, team.blas_limited(working=True):
            n_jobs = None if self.n_jobs is None else 1
            table: Table = team.run(path, [(k,) for k in range(len(folds))])
        return table

    def _in_fold(self, model: Any, features: Examples, fold: Fold, multiplicity: Vector | None) -> Examples:
        """The rows with the weights that they have in a fold."""
        targets: Any = features.targets
        given = np.where(fold.training, 1.0 if multiplicity is None else multiplicity, 0.0)
        if isinstance(self.class_weight, str):  # "balanced" is by the rows to train on
            targets = replace(targets, weights=model._class_weights(targets, given))
        weights = as_weights(targets.row_weights(given), len(given))
        return Examples(features.batch._replace(weight=weights), targets)

    # ---- the classifier without the choice ---------------------------------------------------------------------------

    def plain(self) -> Classifier:
        """The `LinearSVC` or `SVC` that this is after a fit, with what was chosen as its parameters."""
        check_is_fitted(self, "coef_")
        chosen = {name: getattr(self, f"{name}_") for name in ("C", "gamma") if hasattr(self, f"{name}_")}
        model: Classifier = self._plain()(**self._shared_parameters(), **chosen)
        for name, value in vars(self).items():
            if name.endswith("_") and name not in OF_THE_CHOICE:
                setattr(model, name, value)
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier that was chosen, as the `LinearSVC` or `SVC` that it is, into a model file.

        Parameters
        ----------
        path : the file; what is there already is replaced once the new one is whole
        """
        self.plain().save(path)

    @property
    def partial_fit(self) -> NoReturn:
        """There is none: what is chosen by cross-validation needs all rows."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: choosing parameters needs all rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


class _Foretold(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose scores are known."""

    def __init__(self, classes: Any, scores: Any) -> None:
        self.classes, self.scores = classes, scores
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> "_Foretold":
        return self

    def decision_function(self, X: Any) -> Any:
        return self.scores

    def predict(self, X: Any) -> Any:
        scores = self.scores
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


class Judge:
    """Scores held-out rows as scikit-learn does. A scorer that is a function of one's own is handed the rows."""

    def __init__(self, scoring: Any, X: Any, targets: Classes, multiplicity: Vector | None) -> None:
        from sklearn.metrics import check_scoring, get_scorer

        self.classes, self.codes, self.multiplicity = targets.classes, targets.codes, multiplicity
        self.scorer = check_scoring(_Foretold(None, None), "accuracy" if scoring is None else scoring)
        made = type(get_scorer("accuracy"))  # what scikit-learn makes of a metric looks at predictions only
        self.X = None if isinstance(self.scorer, made) else X

    def score(self, scores: npt.NDArray[np.float64], held: Vector, targets: Any) -> float:
        """The score of the held-out rows, given a column of scores for each problem; weights count as in the fit."""
        model = _Foretold(self.classes, scores[:, 0] if scores.shape[1] == 1 else scores)
        X = held[:, None] if self.X is None else self.X[held]
        weights = 1.0 if self.multiplicity is None else self.multiplicity[held]
        if targets.weights is not None:
            weights = weights * targets.weights[self.codes[held]]
        # a function of one's own is (estimator, X, y): it knows no weights
        given = {} if np.ndim(weights) == 0 or self.X is not None else {"sample_weight": weights}
        try:
            return float(self.scorer(model, X, self.classes[self.codes[held]], **given))
        except AttributeError as error:
            raise ValueError("scoring needs probabilities, and there are scores and classes only") from error
