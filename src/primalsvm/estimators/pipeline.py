"""What `fit` does, from top to bottom.

An estimator is composed of a task (what y is) and features (what scores are inner products with); see `protocols`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

import primalsvm
from primalsvm.checkpoints import CheckpointWriter, check_solver, identity
from primalsvm.data import Dataset, thread_pool
from primalsvm.estimators.calibration import calibration_of, method_of
from primalsvm.estimators.encoders import Classes, Encoded, Units
from primalsvm.estimators.loading import Rows, load, validate
from primalsvm.estimators.parameters import check_parameters, draw_seed, stops_of
from primalsvm.estimators.progress import progress_bar
from primalsvm.estimators.protocols import Features, FittedFeatures, Task
from primalsvm.estimators.scaling import advice
from primalsvm.estimators.warning import warn
from primalsvm.objective import Objectives
from primalsvm.one_vs_one import PairObjectives
from primalsvm.solution import Certificate, Solution, Status, Trace
from primalsvm.solvers.drive import drive
from primalsvm.solvers.protocol import JointSolver
from primalsvm.solvers.several import Single
from primalsvm.solvers.stops import Stops
from primalsvm.sources.layout import TableLayout
from primalsvm.sources.opening import is_source
from primalsvm.sources.source import LoadedRows

OF_INPUT = ("n_features_in_", "feature_names_in_")  # fitted attributes that the validation of X sets


@dataclass(frozen=True)
class Previous:
    """What a warm start may continue from."""

    features: Any  # `FittedFeatures.kept`
    units: Units | None
    states: list[Any] | None  # of the solver, one for each problem; None without warm_start


def fit(
    estimator: Any,
    X: Any,
    y: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    qid: npt.ArrayLike | None = None,
) -> None:
    """Fit an estimator, from the arguments of the user to the fitted attributes."""
    check_parameters(estimator)
    task: Task = estimator._task
    strategy: Features = estimator._features
    stops = stops_of(estimator)
    previous = estimator._previous if estimator.warm_start else None
    with ExitStack() as resources:
        loaded = resources.enter_context(load(estimator, X, y))
        threads = resources.enter_context(thread_pool(estimator.n_jobs))
        rows = validate(estimator, loaded, sample_weight, threads, qid)
        encoded = task.encode(estimator, rows)
        seed = draw_seed(estimator.random_state)
        training, held_out = hold_out(estimator, rows, encoded, seed)
        features = strategy.fit(estimator, rows, encoded, seed, previous.features if previous else None)
        training = features.arrange(estimator, training)
        solver, data = choose_solver(estimator, rows, features, training, resources, validated=held_out is not None)
        units = task.units(encoded, data)
        validation = None
        if held_out is not None:
            validation = make_objectives(held_out, features.store(estimator, rows, held_out, "block", resources), units)
        start = starting_states(previous, features, units, training.count)
        found = constant_solution(training, data, stops)
        if found is None:
            found = solve(estimator, make_objectives(training, data, units), solver, stops, seed, validation, start)
    solutions = found if units is None else [units.restore(one) for one in found]
    fitted = fit_report(estimator, solutions) | decode(training, features, solutions)
    if method_of(getattr(estimator, "probability", None)) and fitted["status_"] is not Status.INTERRUPTED:
        fitted |= calibrate(estimator, rows, fitted)
    fitted |= source_attributes(loaded, fitted) if is_source(X) else {}
    states = [one.state for one in found] if estimator.warm_start else None
    store_fitted(estimator, fitted | {"n_samples_fit_": rows.data.shape[0]}, Previous(features.kept, units, states))
    warn_of(estimator, encoded, solutions)


# ---- the rows and the problems ---------------------------------------------------------------------------------------


def hold_out(estimator: Any, rows: Rows, encoded: Encoded, seed: int) -> tuple[Encoded, Encoded | None]:
    """The rows to train on and, with early stopping, those held out: the same share of each class."""
    if not getattr(estimator, "early_stopping", False):
        return encoded, None
    if rows.cache is not None:
        raise ValueError("early_stopping needs the rows in memory, and those of this source are too many")
    from sklearn.model_selection import train_test_split  # slow to import

    counting = np.flatnonzero(encoded.data.weight_array() > 0)
    strata = None if encoded.strata is None else encoded.strata[counting]
    parts = train_test_split(counting, test_size=estimator.validation_fraction, random_state=seed, stratify=strata)
    training, held_out = (encoded.subset(np.sort(part)) for part in parts)
    if encoded.decoder is not None:
        encoded.decoder.check_training(training.Y, training.data.weight_array())
    return training, held_out


def choose_solver(
    estimator: Any,
    rows: Rows,
    features: FittedFeatures,
    training: Encoded,
    resources: ExitStack,
    validated: bool = False,
) -> tuple[JointSolver, Dataset]:
    """The solver, and φ of the rows in the form that it reads.

    Several problems are first solved jointly, if kernels can visit the rows and every evaluation has a certificate.
    """
    solver = features.choose(estimator, rows, training)
    data = features.store(estimator, rows, training, solver.traits.rows, resources)
    jointly = data.block is not None and not data.kernel_rows and estimator.certify and not validated
    if training.count > 1 and jointly:
        solver = features.choose(estimator, rows, training, jointly=True)
    return solver, data


def make_objectives(encoded: Encoded, data: Dataset, units: Units | None) -> Single | Objectives | PairObjectives:
    """The objective of each problem."""
    if encoded.objective is not None:
        return Single(encoded.objective)
    problem, Y = encoded.problem, encoded.Y
    if encoded.pairs is not None and isinstance(encoded.decoder, Classes):
        return PairObjectives(problem, data, encoded.decoder.codes, encoded.pairs)
    if units is not None:
        problem, Y = units.problem(problem), units.targets(Y)
    return Objectives(problem, data, Y) if encoded.count > 1 else Single(problem.on(data, Y[:, 0]))


# ---- solutions -------------------------------------------------------------------------------------------------------


def starting_states(
    previous: Previous | None, features: FittedFeatures, units: Units | None, count: int
) -> list[Any] | None:
    """The states that a warm start begins with; None if the number of problems, the features or the units differ."""
    if previous is None or previous.states is None or len(previous.states) != count:
        return None
    if previous.features != features.kept:
        return None
    same_units = units is None or (previous.units is not None and units.near(previous.units))
    return previous.states if same_units else None


def solve(
    estimator: Any,
    objectives: Any,
    solver: JointSolver,
    stops: Stops,
    seed: int,
    validation: Any = None,
    start: list[Any] | None = None,
) -> list[Solution]:
    """Solve every problem, continuing from a checkpoint if there is one."""
    writer = resume = None
    checkpoint = getattr(estimator, "checkpoint", None)
    if checkpoint is not None:
        check_solver(solver)
        writer = CheckpointWriter(checkpoint, identity(objectives, solver, stops, seed), primalsvm.__version__)
        resume = writer.read_snapshot()
    with progress_bar(estimator.verbose, type(estimator).__name__) as on_progress:
        return drive(
            objectives, solver, stops,
            validation=validation, seed=seed, start=start, on_progress=on_progress, resume=resume, on_snapshot=writer,
        )  # fmt: skip


def constant_solution(encoded: Encoded, data: Dataset, stops: Stops) -> list[Solution] | None:
    """If all targets are equal and the intercept is free: w = 0 and b = 0, which is y, with P = D = 0."""
    problem = encoded.problem
    if encoded.decoder is not None or encoded.objective is not None or problem.nu or problem.intercept != "free":
        return None
    if np.ptp(encoded.Y[encoded.data.weight_array() > 0]) > 0.0 or problem.loss.value(0.0, 0.0) != 0.0:
        return None
    trace = Trace()
    trace.append(0.0, 0, 0.0, 0.0, 0.0)
    return [
        Solution(
            w=np.zeros(data.shape[1]),
            b=0.0,
            certificate=Certificate.of(0.0, 0.0) if stops.certify else None,
            status=Status.CONVERGED,
            message="all targets are equal",
            trace=trace.array(),
            n_epochs=0.0,
            n_steps=0,
            seconds=0.0,
            solver=None,
            state=None,
        )
    ]


def decode(encoded: Encoded, features: FittedFeatures, solutions: list[Solution]) -> dict[str, Any]:
    """The fitted attributes of the model."""
    vectors = [encoded.score_unit * solution.w for solution in solutions]
    b = encoded.score_unit * np.array([solution.b for solution in solutions])
    certificates = [solution.certificate if features.certifies else None for solution in solutions]
    fitted: dict[str, Any] = {"certificate_": total_certificate(certificates)}
    if encoded.decoder is not None:
        fitted |= encoded.decoder.attributes
    if encoded.decoder is not None and encoded.pairs is None:
        W, b, certificates = encoded.decoder.expand(np.vstack(vectors), b, certificates)
        vectors = list(W)
    fitted |= features.attributes(vectors, encoded)
    return fitted | {"intercept_": b, "certificates_": certificates}


def calibrate(estimator: Any, rows: Rows, fitted: dict[str, Any]) -> dict[str, Any]:
    """The fitted attributes that give probabilities; none if Ctrl-C interrupted their fit."""
    classes, multilabel = fitted["classes_"], fitted["multilabel_"]
    found = calibration_of(estimator, rows.matrix, rows.y, rows.sample_weight, classes, multilabel)
    if found is None:
        kind = type(estimator).__name__
        warn(f"{kind} was interrupted before its probabilities were fitted: it has none", ConvergenceWarning)
        return {}
    return {"calibration_": found}


def fit_report(estimator: Any, solutions: list[Solution]) -> dict[str, Any]:
    """The fitted attributes that report on the fit."""
    epochs = [max(1, int(np.ceil(one.n_epochs))) for one in solutions]
    worst = max(solutions, key=lambda one: (one.status is Status.INTERRUPTED, one.status.fell_short))
    return {
        "history_": solutions[0].trace if len(solutions) == 1 else join_traces([one.trace for one in solutions]),
        "status_": worst.status,
        "solver_": solutions[0].solver,
        "n_iter_": np.array(epochs, np.int32) if estimator._n_iter_is_array else max(epochs),
        "n_steps_": sum(one.n_steps for one in solutions),
    }


def source_attributes(loaded: LoadedRows, fitted: dict[str, Any]) -> dict[str, Any]:
    """The fitted attributes that follow from a source: its layout, the names of its classes and of its features."""
    found: dict[str, Any] = {"layout_": loaded.layout}
    if loaded.names is not None and "classes_" in fitted:
        found["classes_"] = loaded.names[fitted["classes_"].astype(np.intp)]
    if isinstance(loaded.layout, TableLayout):
        found["feature_names_in_"] = np.array(loaded.layout.feature_names, object)
    return found


def join_traces(traces: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The traces of several problems, concatenated, with the number of the problem as first column.

    Examples
    --------
    >>> from primalsvm.solution import Trace
    >>> trace = Trace()
    >>> trace.append(1.0, 10, 0.1, 0.5, 0.4, np.nan)
    >>> join_traces([trace.array(), trace.array()])["problem"]
    array([0, 1])
    """
    out = np.empty(sum(map(len, traces)), [("problem", np.int64), *traces[0].dtype.descr])
    out["problem"] = np.repeat(np.arange(len(traces)), [len(trace) for trace in traces])
    for name in traces[0].dtype.names or ():
        out[name] = np.concatenate([trace[name] for trace in traces])
    return out


def total_certificate(certificates: Sequence[Certificate | None]) -> Certificate | None:
    """The certificate of the sum of all problems: ΣD ≤ ΣP* ≤ ΣP.

    Examples
    --------
    >>> total_certificate([Certificate.of(2.0, 1.0), Certificate.of(3.0, 3.0)]).gap
    1.0
    """
    known = [certificate for certificate in certificates if certificate is not None]
    if len(known) < len(certificates):
        return None
    if len(known) == 1:
        return known[0]
    return Certificate.of(sum(one.primal for one in known), sum(one.dual for one in known))


# ---- the estimator ---------------------------------------------------------------------------------------------------


def store_fitted(estimator: Any, fitted: dict[str, Any], previous: Previous | None) -> None:
    """Replace all fitted attributes, and end a stream."""
    if estimator._coef_is_vector:
        fitted["coef_"] = fitted["coef_"][0]
    for name in fitted_names(estimator):
        if name not in OF_INPUT:
            delattr(estimator, name)
    vars(estimator).update(fitted)
    vars(estimator).pop("_stream", None)
    estimator._previous = previous


def fitted_names(estimator: Any) -> list[str]:
    """The names of the fitted attributes."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]


def warn_of(estimator: Any, encoded: Encoded, solutions: list[Solution]) -> None:
    """Warn if the fit fell short of `tol`, with the likely reason, and if the targets call for a warning."""
    kind = type(estimator).__name__
    short = [one for one in solutions if falls_short(one, estimator.tol)]
    if short:
        share = "" if len(solutions) == 1 else f"({len(short)} of {len(solutions)} problems) "
        names = getattr(estimator, "feature_names_in_", None)
        reason = advice(encoded.data, names, kind) if estimator._features.scalable else ""
        warn(f"{kind} {share}{short[0].message}{reason}", ConvergenceWarning)
    if encoded.decoder is not None and encoded.decoder.notice is not None:
        warn(encoded.decoder.notice, UserWarning)


def falls_short(solution: Solution, tol: float) -> bool:
    """Whether a solution is less accurate than `tol`."""
    proof = solution.certificate
    finished_short = solution.status is Status.FINISHED and proof is not None and proof.relative_gap > tol
    return solution.status.fell_short or finished_short
