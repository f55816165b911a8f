"""Learning from streams: `partial_fit` visits each row once, in constant memory.

Each call tests the model on its rows (progressive validation), then takes the solver's steps over them. The length of
the steps follows from the first `solver.sample` rows. Until these have arrived, each call repeats the steps over all
rows so far, so that the result does not depend on how the stream is divided into batches.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from primalsvm.data import Batch, InMemory, Vector, as_block, as_multiplicity, as_targets, as_weights
from primalsvm.estimators.loading import check_arrays
from primalsvm.estimators.parameters import check_parameters
from primalsvm.estimators.pipeline import store_fitted
from primalsvm.estimators.protocols import Features, StreamFeatures, StreamTask
from primalsvm.objective import SIGNS, Bounds, Problem
from primalsvm.solvers import stochastic
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.stochastic import StochasticState
from primalsvm.solvers.streams import absorb, widen


def has_lam(estimator: Any) -> bool:
    """Whether λ is given; raises an AttributeError if not."""
    if estimator.lam is None:
        raise AttributeError("partial_fit needs lam: C is relative to a number of rows that a stream does not tell")
    return True


class Stream(NamedTuple):
    """What is kept between two calls."""

    features: StreamFeatures
    solver: Asset | Pegasos
    states: list[StochasticState]  # one for each problem
    first_rows: Batch | None  # all rows so far, while they are too few to fix the length of the steps
    class_totals: Vector  # Σc of each class so far
    classes: npt.NDArray[Any] | None
    n_rows: int = 0
    tested: float = 0.0  # the total weight of the rows that were tested before they were learnt
    error: float = 0.0  # the total weighted error of these rows


def partial_fit(estimator: Any, X: Any, y: Any, classes: npt.ArrayLike | None, sample_weight: Any) -> None:
    """Test an estimator on the next rows of a stream, then fit it to them. It is unchanged if that fails."""
    check_parameters(estimator)
    solver = online_solver(estimator)
    with unchanged_on_error(estimator):
        task: StreamTask = estimator._task
        strategy: Features = estimator._features
        stream: Stream | None = estimator._stream
        X, y = check_arrays(estimator, X, y, reset=stream is None)
        block = as_block(X)
        y = as_targets(y) if task.labelled else np.zeros(block.shape[0])
        Y, known = task.encode_stream(y, classes, None if stream is None else stream.classes)
        multiplicity = as_multiplicity(sample_weight, Y.shape[0])
        given = np.ones(Y.shape[0]) if multiplicity is None else multiplicity
        before = np.zeros(0) if stream is None else stream.class_totals
        weights, class_totals = task.stream_weights(estimator, known, Y, given, before)
        counting = np.flatnonzero(weights)
        if counting.shape[0] < weights.shape[0]:
            if stream is not None and not counting.size:
                return
            X, block, Y = X[counting], block.take(counting), Y[counting]
            given, weights = given[counting], weights[counting]
            multiplicity = None if multiplicity is None else given
        rows = Batch(block, Y, as_weights(weights, Y.shape[0]))
        if stream is None:
            data = InMemory(block, rows.weight)
            features = strategy.begin_stream(estimator, X, data, multiplicity)
            stream = Stream(features, solver, [], None, class_totals, known)
        rows = rows._replace(rows=stream.features.of_stream(block, stream.n_rows))
        if stream.n_rows:
            stream = add_progressive_errors(estimator, stream, rows, given)
        stream = learn_rows(task.problem(estimator, float(weights.sum())), stream, rows)
        keep_stream(estimator, stream._replace(class_totals=class_totals, n_rows=stream.n_rows + Y.shape[0]))


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def online_solver(estimator: Any) -> Asset | Pegasos:
    """The stochastic solver that the parameter `solver` means."""
    solver: Any = estimator.solver
    if isinstance(solver, str):
        default = estimator._features.stream_solver
        solver = {"auto": default, "asset": Asset(), "pegasos": Pegasos()}.get(solver, solver)
    if not isinstance(solver, Asset | Pegasos):
        raise ValueError(f"partial_fit needs a stochastic solver, Asset() or Pegasos(), not {solver!r}")
    if solver.run_options.n_iter is not None:
        raise ValueError("n_iter has no meaning in a stream: it takes as many steps as it has rows")
    if solver.run_options.average == "random":
        raise ValueError("average='random' needs to know the number of steps, which a stream does not tell")
    return solver


def add_progressive_errors(estimator: Any, stream: Stream, rows: Batch, weight: Vector) -> Stream:
    """Progressive validation: add up the errors of the model on rows that it has not been fitted to."""
    W = np.atleast_2d(stream.features.weights(estimator))
    scores = InMemory(rows.rows, rows.weight).scores(W) + estimator.intercept_
    errors = estimator._task.stream_errors(scores, rows.y)
    return stream._replace(tested=stream.tested + float(weight.sum()), error=stream.error + float(weight @ errors))


def learn_rows(problem: Problem, stream: Stream, rows: Batch) -> Stream:
    """Take the steps of every problem."""
    states, too_few = stream.states, None
    if not states or stream.first_rows is not None:
        rows = rows if stream.first_rows is None else stream.first_rows.join(rows)
        states, wanted = first_states(problem, stream, rows)
        too_few = rows if rows.y.shape[0] < wanted else None
    else:
        states = copy.deepcopy(states)  # they are changed in place, and the call may fail or be interrupted
    with np.errstate(all="ignore"):  # values that are not finite are refused below
        states = [absorb(problem.loss, with_column(rows, k), state) for k, state in enumerate(states)]
        points = [stochastic.output(state) for state in states]
    if not all(np.isfinite(w).all() and np.isfinite(b) for w, b in points):
        raise ValueError(
            "the steps diverge: these rows are longer or heavier than the first ones, and "
            f"{problem.loss!r} has no bounded slope; use a loss that has, or scale the weights"
        )
    return stream._replace(states=states, first_rows=too_few)


def first_states(problem: Problem, stream: Stream, rows: Batch) -> tuple[list[StochasticState], int]:
    """The states before the first step, and the number of rows needed to fix the length of the steps."""
    solver, unit = stream.solver, stream.features.unit_length
    any_rows_will_do = unit and np.isfinite(problem.loss.slope_bound) and problem.loss.is_classification
    wanted = 1 if any_rows_will_do else solver.sample
    some = np.arange(min(wanted, rows.y.shape[0]))
    first = with_column(rows, 0).take(some)
    typical = InMemory(first.rows, first.weight)
    objective = problem.on(typical, first.y)
    if not problem.nu:  # targets to come may be larger
        bounds = Bounds(*(max(pair) for pair in zip(objective.bounds, SIGNS, strict=True)))
        objective = replace(objective, bounds=bounds)
    norms = np.ones(1) if unit else typical.squared_norms(wanted)
    settings = solver.settings(objective, norms, heaviest=float(typical.weights.values.max()))
    return [stochastic.begin(solver.run_options, settings, objective) for _ in range(rows.y.shape[1])], wanted


def with_column(rows: Batch, k: int) -> Batch:
    """The rows with the targets of problem k only."""
    return rows._replace(y=rows.y[:, k].astype(np.float64))


def keep_stream(estimator: Any, stream: Stream) -> None:
    """Store the fitted attributes of a stream."""
    points = [stochastic.output(state) for state in stream.states]
    fitted = stream.features.attributes([w for w, _ in points])
    fitted |= {
        "intercept_": np.array([b for _, b in points]),
        "certificate_": None,
        "n_samples_seen_": stream.n_rows,
        "progressive_error_": stream.error / stream.tested if stream.tested else np.nan,
        "n_steps_": sum(state.steps for state in stream.states),
        "n_iter_": np.ones(len(points), np.int32) if estimator._n_iter_is_array else 1,
        "solver_": stream.solver,
    }
    if stream.classes is not None:
        fitted |= {"classes_": stream.classes, "multilabel_": False}
    store_fitted(estimator, fitted, None)
    estimator._stream = stream


def widen_features(estimator: Any, n_features: int) -> None:
    """Allow more columns in the next rows of a linear stream; all earlier rows have zeros there."""
    stream: Stream = estimator._stream
    rows = stream.first_rows
    if rows is not None:
        rows = rows.widen(n_features)
    states = [widen(state, n_features) for state in stream.states]
    keep_stream(estimator, stream._replace(states=states, first_rows=rows))
    estimator.n_features_in_ = n_features
