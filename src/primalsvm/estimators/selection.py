"""Choosing C (and γ) by cross-validation: what `LinearSVCCV` and `SVCCV` share.

    for each γ (once for a linear model):
        for each fold, in parallel:
            for each C, from small to large, each started from the previous ones (`solvers.path`):
                score the held-out rows
    refit on all rows with the C (and γ) of the best mean score, the smallest C if several are equal

Folds share the rows without copies: held-out rows have weight 0, which is equivalent to leaving them out. As in
scikit-learn, λ = 1/(C Σc) in a fold with Σc of its training rows.
"""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from primalsvm.data import ALONE, Dataset, Vector, as_weights, thread_pool
from primalsvm.estimators.calibration import KnownScores
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.encoders import Classes, Encoded, Labels
from primalsvm.estimators.loading import Rows, validate
from primalsvm.estimators.parameters import check_parameters, draw_seed
from primalsvm.estimators.pipeline import choose_solver, fitted_names, make_objectives, store_fitted
from primalsvm.estimators.progress import counting_bar
from primalsvm.estimators.transformers import gamma_of
from primalsvm.estimators.warning import warn
from primalsvm.options import check_integer
from primalsvm.solvers.path import DECADES, check_positive_vector, follow, largest_lam
from primalsvm.solvers.protocol import JointSolver
from primalsvm.solvers.stops import Stops
from primalsvm.sources.opening import is_source
from primalsvm.sources.source import LoadedRows

ROUNDING_OF_MEANS = 1e-12  # relative difference up to which mean scores are equal
OF_THE_CHOICE = ("Cs_", "C_", "lam_", "gammas_", "scores_", "best_score_")
SPAN = 10.0  # the default γ's lie between "scale"/SPAN and "scale"·SPAN


class Fold(NamedTuple):
    """Rows to train on and rows to score."""

    training: Vector  # a mask
    held_out: Vector  # indices


class SelectingClassifier(Classifier):
    """Base class of classifiers that choose C; all fits are those of `_base_class`, with the same parameters."""

    _base_class: type[Classifier]
    probability: ClassVar[bool] = False

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Choose parameters by cross-validation, then fit to all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,), optional
            Used in training and in scoring. An integer `cv` divides the rows of positive weight only.

        Returns
        -------
        self
        """
        select(self, X, y, sample_weight)
        return self

    def base_estimator(self) -> Classifier:
        """The fitted `LinearSVC` or `SVC` with the chosen parameters."""
        check_is_fitted(self, "intercept_")
        chosen = {name: getattr(self, f"{name}_") for name in ("C", "gamma") if hasattr(self, f"{name}_")}
        model = self._base_class(**shared_parameters(self), **chosen)
        for name in fitted_names(self):
            if name not in OF_THE_CHOICE:
                setattr(model, name, getattr(self, name))
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted `LinearSVC` or `SVC` with the chosen parameters to a model file.

        Parameters
        ----------
        path : the file; an existing one is replaced once the new one is complete
        """
        self.base_estimator().save(path)

    @property
    def partial_fit(self) -> NoReturn:
        """Not available, as cross-validation needs all rows."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: choosing parameters needs all rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


def select(estimator: Any, X: Any, y: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> None:
    """Score all candidates by cross-validation, then fit the best one to all rows."""
    if is_source(X):
        raise TypeError("choosing parameters needs arrays: X, y = source.to_arrays()")
    check_candidates(estimator)
    model: Any = estimator._base_class(**shared_parameters(estimator))
    check_parameters(model)
    with ExitStack() as resources:
        threads = resources.enter_context(thread_pool(model.n_jobs))
        rows = validate(model, LoadedRows(X, y), sample_weight, threads)
        encoded = model._task.encode(model, rows)
        if isinstance(encoded.decoder, Labels):
            raise ValueError("y has several columns: choose the parameters of each label on its own")
        Cs, gammas = c_grid(estimator, encoded), gamma_grid(estimator, rows)
        candidates: list[dict[str, float]] = [{}] if gammas is None else [{"gamma": gamma} for gamma in gammas.tolist()]
        scorer = Scorer(estimator.scoring, rows)
        folds, seed = folds_of(estimator, rows, encoded), draw_seed(model.random_state)
        total = len(candidates) * len(folds) * len(Cs)
        tick = resources.enter_context(counting_bar(estimator.verbose, type(estimator).__name__, total))
        scores, short = [], []  # of each candidate, fold and C
        for parameters in candidates:
            model.set_params(**parameters)
            features = model._features.fit(model, rows, None, seed, None)
            solver, data = choose_solver(model, rows, features, encoded, resources)
            found = score_folds(model, rows, encoded, data, solver, folds, Cs, seed, scorer, tick)
            scores.append(found[0])
            short.append(found[1])
    means: npt.NDArray[np.float64] = np.mean(scores, axis=1)
    if not np.isfinite(means).any():
        raise ValueError("no score is a number: nothing can be chosen by it")
    best_set, best = best_of(means, Cs)
    warn_of_short(estimator, short[best_set][:, best])
    choice = {"Cs_": Cs, "C_": float(Cs[best]), "best_score_": float(np.nanmax(means))}
    choice |= {"scores_": scores[0]} if gammas is None else {"scores_": np.array(scores), "gammas_": gammas}
    choice |= {f"{name}_": value for name, value in candidates[best_set].items()}
    choice["lam_"] = 1.0 / (choice["C_"] * encoded.data.total_weight)
    if estimator.refit:
        model = estimator._base_class(**shared_parameters(estimator), C=choice["C_"], **candidates[best_set])
        model.fit(X, y, sample_weight)
    else:
        vars(model).update(encoded.decoder.attributes, n_samples_fit_=rows.data.shape[0])
    store_fitted(estimator, {name: getattr(model, name) for name in fitted_names(model)} | choice, None)


# ---- the candidates --------------------------------------------------------------------------------------------------


def check_candidates(estimator: Any) -> None:
    """Raise an error if the candidates are invalid."""
    check_grid("Cs", estimator.Cs)
    if not hasattr(estimator, "gammas"):
        return
    check_grid("gammas", estimator.gammas)
    if isinstance(estimator.approximation, str) and estimator.approximation == "exact":
        raise ValueError("approximation='exact' has no features to share: choose 'nystroem' or 'fourier'")
    own = getattr(estimator.approximation, "gamma", None)
    if own is not None:
        raise ValueError(f"the approximation has a gamma of its own ({own!r}): leave it None, or use SVC")
    if estimator.__sklearn_tags__().input_tags.pairwise:
        raise ValueError("a precomputed kernel has no gamma to choose: use SVC and scikit-learn's GridSearchCV")


def check_grid(name: str, given: Any) -> None:
    """Raise an error unless `given` is a number of values, or the values."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        check_integer(name, given)
    else:
        check_positive_vector(name, given)


def shared_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that the base class also has."""
    names = set(estimator._base_class._get_param_names())
    return {name: value for name, value in estimator.get_params(deep=False).items() if name in names}


def c_grid(estimator: Any, encoded: Encoded) -> npt.NDArray[np.float64]:
    """The values of C: as given, or evenly spaced in log C over four decades from 1/(λ_max Σc)."""
    if not isinstance(estimator.Cs, Integral):
        return check_positive_vector("Cs", estimator.Cs)
    objectives = make_objectives(encoded, encoded.data, None)
    top = max(largest_lam(objectives[k]) for k in range(len(objectives)))
    least = 1.0 / (top * encoded.data.total_weight)
    return np.geomspace(least, least * 10.0**DECADES, int(estimator.Cs))


def gamma_grid(estimator: Any, rows: Rows) -> npt.NDArray[np.float64] | None:
    """The values of γ: as given, or evenly spaced in log γ around "scale"; None for linear models."""
    if not hasattr(estimator, "gammas"):
        return None
    if not isinstance(estimator.gammas, Integral):
        return check_positive_vector("gammas", estimator.gammas)
    scale, n = gamma_of("scale", rows.matrix, rows.sample_weight), int(estimator.gammas)
    return np.geomspace(scale / SPAN, scale * SPAN, n) if n > 1 else np.array([scale])


def best_of(means: npt.NDArray[np.float64], Cs: npt.NDArray[np.float64]) -> tuple[int, int]:
    """The indices of the γ and the C of the best of the mean scores, with the smallest C if several are equal.

    Examples
    --------
    >>> best_of(np.array([[0.5, 0.9, 0.9]]), np.array([1.0, 10.0, 0.1]))
    (0, 2)
    """
    best_score = float(np.nanmax(means))
    best = means >= best_score - ROUNDING_OF_MEANS * max(1.0, abs(best_score))
    _, g, c = min((float(Cs[c]), g, c) for g, c in np.argwhere(best).tolist())
    return g, c


def warn_of_short(estimator: Any, short: npt.NDArray[np.bool_]) -> None:
    """Warn if fits with the chosen parameters fell short of `tol`."""
    if short.any():
        warn(
            f"{type(estimator).__name__}: {short.sum()} of {len(short)} fits in folds fell short of tol "
            f"{estimator.tol:g} with the parameters that were chosen; raise max_iter, scale the features, or leave out "
            "the largest C",
            ConvergenceWarning,
        )


# ---- the folds -------------------------------------------------------------------------------------------------------


def folds_of(estimator: Any, rows: Rows, encoded: Encoded) -> list[Fold]:
    """Folds of scikit-learn's `check_cv`; each must train on every class and hold out rows of positive weight."""
    from sklearn.model_selection import check_cv  # slow to import

    assert isinstance(encoded.decoder, Classes)
    classes, codes, cv = encoded.decoder.classes, encoded.decoder.codes, estimator.cv
    m = len(codes)
    counting = encoded.data.weight_array() > 0
    which = np.flatnonzero(counting) if isinstance(cv, Integral | None) else np.arange(m)
    labels = classes[codes[which]]
    splitter = check_cv(cv, labels, classifier=True)
    try:
        splits = list(splitter.split(rows.matrix if len(which) == m else which, labels))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError("cv needs groups: give the splits themselves, cv=list(cv.split(X, y, groups))") from None
    folds: list[Fold] = []
    for train, held_out in splits:
        mask = np.zeros(m, bool)
        mask[which[train]] = True
        mask &= counting
        tested = which[held_out]
        fold = Fold(mask, tested[counting[tested]])
        missing = np.setdiff1d(np.arange(len(classes)), codes[mask])
        if missing.size:
            name = classes[missing[0]].item()
            raise ValueError(f"fold {len(folds)} has no rows of the class {name!r} to train on: use fewer folds")
        if not fold.held_out.size:
            raise ValueError(f"fold {len(folds)} holds out no rows that count: there is nothing to score")
        folds.append(fold)
    if not folds:
        raise ValueError(f"cv={cv!r} makes no folds")
    return folds


def score_folds(
    model: Any,
    rows: Rows,
    encoded: Encoded,
    data: Dataset,
    solver: JointSolver,
    folds: list[Fold],
    Cs: npt.NDArray[np.float64],
    seed: int,
    scorer: "Scorer",
    tick: Callable[[], None],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The score of each fold and C, and whether its fit fell short of `tol`; folds run in parallel."""
    stops, stop = Stops(model.tol, model.max_iter), threading.Event()

    def path(k: int) -> tuple[list[float], list[bool]]:
        fold = folds[k]
        fold_data, decoder = in_fold(model, rows, encoded, data, fold)
        lams = 1.0 / (Cs * fold_data.total_weight)
        scores: dict[float, float] = {}
        short: dict[float, bool] = {}
        try:
            for lam, point in follow(make_objectives(encoded, fold_data, None), lams, solver, stops, seed=seed):
                W, b = np.stack([one.w for one in point]), np.array([one.b for one in point])
                found = fold_data.to_array(fold_data.scores(W))[fold.held_out] + b
                scores[lam] = scorer.score(found, fold.held_out, decoder)
                short[lam] = any(one.status.fell_short for one in point)
                tick()
                if stop.is_set():
                    break
        except BaseException:  # Ctrl-C is raised in one thread only
            stop.set()
            raise
        given = lams.tolist()
        return [scores.get(lam, np.nan) for lam in given], [short.get(lam, True) for lam in given]

    with data.threads.blas_limited(working=True):
        found = data.threads.run(path, [(k,) for k in range(len(folds))])
    return np.array([scores for scores, _ in found]), np.array([short for _, short in found])


def in_fold(model: Any, rows: Rows, encoded: Encoded, data: Any, fold: Fold) -> tuple[Dataset, Classes]:
    """The rows with their weights in a fold, on one thread, and the classes with theirs."""
    given = np.where(fold.training, 1.0 if rows.sample_weight is None else rows.sample_weight, 0.0)
    decoder = encoded.decoder
    assert isinstance(decoder, Classes)
    if isinstance(model.class_weight, str):  # "balanced" counts the training rows
        decoder = decoder.with_class_weight(model.class_weight, given)
    weights = as_weights(decoder.row_weights(given), len(given))
    return data.with_weights(weights).with_threads(ALONE), decoder


class Scorer:
    """Scores held-out rows as scikit-learn does; only a scorer that is a callable of the user gets the rows."""

    def __init__(self, scoring: Any, rows: Rows) -> None:
        from sklearn.metrics import check_scoring, get_scorer

        self.sample_weight = rows.sample_weight
        self.scorer = check_scoring(KnownScores(None, None), "accuracy" if scoring is None else scoring)
        made = type(get_scorer("accuracy"))  # made from metrics, these use predictions only
        self.X = None if isinstance(self.scorer, made) else rows.matrix

    def score(self, scores: npt.NDArray[np.float64], held_out: Vector, decoder: Classes) -> float:
        """The score of the held-out rows, weighted as in the fit, given a column of scores for each problem."""
        classes, codes = decoder.classes, decoder.codes[held_out]
        model = KnownScores(classes, scores[:, 0] if scores.shape[1] == 1 else scores)
        X = held_out[:, None] if self.X is None else self.X[held_out]
        weights = 1.0 if self.sample_weight is None else self.sample_weight[held_out]
        if decoder.weights is not None:
            weights = weights * decoder.weights[codes]
        # a callable of the user has the arguments (estimator, X, y) and no weights
        given = {} if np.ndim(weights) == 0 or self.X is not None else {"sample_weight": weights}
        try:
            return float(self.scorer(model, X, classes[codes], **given))
        except AttributeError as error:
            raise ValueError("scoring needs probabilities, and there are scores and classes only") from error
