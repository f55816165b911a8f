"""A path: the same problem at many λ, from strong regularisation to weak, each point started from those before.

    for λ₁ > λ₂ > …:
        start from the last point (dual ascent: `screening` predicts which rows do not move)
        solve to the tolerance

With dual ascent a point costs a pass over all rows, for its certificate, and sweeps over the rows near the margin.
Several problems (one class against the rest) each start from their own last point.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from primalsvm.data import InMemory, Vector, Weights, as_dataset, as_numbers, as_targets, thread_pool
from primalsvm.labels import class_signs, label_codes
from primalsvm.losses import Loss, by_name
from primalsvm.objective import Objective, Objectives, Problem
from primalsvm.one_vs_one import PairObjectives
from primalsvm.solution import Solution, Status
from primalsvm.solvers.costs import Size
from primalsvm.solvers.drive import Progress, drive
from primalsvm.solvers.policy import choose
from primalsvm.solvers.protocol import JointSolver, Solver
from primalsvm.solvers.several import Single, as_previous, replace_state
from primalsvm.solvers.stops import Stops

DECADES = 4.0  # from the largest λ to the smallest, by default


@dataclass(frozen=True)
class SVMPath:
    """Solutions along a path; the points are in the order in which `lams` were given.

    Attributes
    ----------
    lams : ndarray of shape (n,)
    classes : the classes, sorted; None of a regression
    coefs : ndarray of shape (n, d); of more than two classes (n, n_classes, d)
    intercepts : ndarray of shape (n,) or (n, n_classes)
    certificates : list of `Certificate`, or of lists of them, one for each class
    statuses : list of `Status`, or of lists of them
    epochs : ndarray of shape (n,); of several classes the most
    seconds : ndarray of shape (n,), the time that each point took
    """

    lams: npt.NDArray[np.float64]
    classes: npt.NDArray[Any] | None
    coefs: npt.NDArray[np.float64] = field(repr=False)
    intercepts: npt.NDArray[np.float64] = field(repr=False)
    certificates: list[Any] = field(repr=False)
    statuses: list[Any]
    epochs: npt.NDArray[np.float64] = field(repr=False)
    seconds: npt.NDArray[np.float64] = field(repr=False)


def svm_path(
    X: Any,
    y: npt.ArrayLike,
    lams: npt.ArrayLike | None = None,
    *,
    loss: str | Loss = "hinge",
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    solver: str | Solver = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> SVMPath:
    """Solve min λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) for many λ, each to a relative duality gap of `tol`.

    Parameters
    ----------
    X : ndarray or SciPy sparse matrix of shape (m, d)
    y : any two classes; more are solved one against the rest. For a regression loss, numbers
    lams : the λ's, in any order; None: 20, evenly spaced in log λ, from `largest_lam` down four decades
    loss : "hinge", "squared_hinge", "smoothed_hinge", "logistic", or a loss object
    sample_weight : weights cᵢ ≥ 0, one per row
    fit_intercept, penalize_intercept : whether there is a b, and whether it counts in ‖w‖²
    solver : "auto", "dual_ascent", "newton", "interior_point", or a solver object
    tol, max_iter : relative gap to reach, and epochs at most, at each point; None limits the work (`Stops`)
    n_jobs : threads; None is one, −1 all cores
    random_state : seed
    verbose : 1 prints a line a point

    Returns
    -------
    SVMPath

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: no part of a path is returned.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import svm_path
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> path = svm_path(X, y, lams=[1e-3, 1e-1])
    >>> path.coefs.shape, max(proof.relative_gap for proof in path.certificates) < 1e-9
    ((2, 5), True)
    """
    chosen_loss = by_name(loss)
    problem = Problem(chosen_loss, 1.0, "none" if not fit_intercept else "penalized" if penalize_intercept else "free")
    stops = Stops(tol, max_iter)
    with thread_pool(n_jobs) as threads:
        data = as_dataset(X, sample_weight, threads=threads)
        classes, objectives = problems_of(problem, data, as_targets(y))
        K = len(objectives)
        if lams is None:
            top = max(largest_lam(objectives[k]) for k in range(K))
            lams = np.geomspace(top, top * 10.0**-DECADES, 20)
        grid = check_positive_vector("lams", lams)
        chosen = choose(solver, Size.of(data), chosen_loss, count=K, jointly=True)
        found: dict[float, list[Solution]] = {}
        for lam, point in follow(objectives, grid, chosen, stops, seed=random_state):
            found[lam] = [replace(one, state=None) for one in point]
            if verbose:
                print(f"svm_path: lam {lam:.3g} {point[0].message}")
    points = [found[lam] for lam in grid.tolist()]
    coefs = np.array([[one.w for one in point] for point in points])
    intercepts = np.array([[one.b for one in point] for point in points])
    return SVMPath(
        lams=grid,
        classes=classes,
        coefs=coefs[:, 0] if K == 1 else coefs,
        intercepts=intercepts[:, 0] if K == 1 else intercepts,
        certificates=[point[0].certificate if K == 1 else [one.certificate for one in point] for point in points],
        statuses=[point[0].status if K == 1 else [one.status for one in point] for point in points],
        epochs=np.array([max(one.n_epochs for one in point) for point in points]),
        seconds=np.array([max(one.seconds for one in point) for point in points]),
    )


def problems_of(
    problem: Problem, data: InMemory, y: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any] | None, Single | Objectives]:
    """The classes in y (None of a regression), and the problems: one for two classes, else one for each class."""
    m = data.shape[0]
    if y.shape[:1] != (m,):
        raise ValueError(f"X has {m} rows but y has shape {y.shape}")
    if not problem.loss.is_classification:
        return None, Single(problem.on(data, as_numbers(y, m)))
    if y.ndim != 1:
        raise ValueError(f"y must be a vector of classes, got an array of shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity")
    classes, codes = label_codes(y)
    counted = np.bincount(codes, data.weight_array(), len(classes)) > 0
    if np.count_nonzero(counted) < 2:
        raise ValueError("y holds one class only: at least two classes are needed")
    codes = np.where(counted, np.cumsum(counted) - 1, -1)[codes]
    classes = classes[counted]
    signs = class_signs(codes, len(classes))
    if len(classes) == 2:
        return classes, Single(problem.on(data, signs[:, 0]))
    return classes, Objectives(problem, data, signs)


def check_positive_vector(name: str, given: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A vector of positive numbers, at least one.

    Examples
    --------
    >>> check_positive_vector("Cs", [1.0, -1.0])
    Traceback (most recent call last):
    ValueError: Cs must be positive and finite, got -1.0
    """
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a vector of numbers, got {given!r}") from None
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a vector of at least one number, got {given!r}")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise ValueError(f"{name} must be positive and finite, got {values[bad][0]}")
    return values


def largest_lam(objective: Objective) -> float:
    """λ_max, above which solutions are simple:  λ_max = max |⟨g, xᵢ⟩|,  g = (1/Σc) Σ cᵢ αᵢ xᵢ,  αᵢ = −ℓ'(yᵢ, 0).

    For the hinge without intercept, w = g/λ exactly for λ ≥ λ_max: no row is beyond the margin, so all have
    αᵢ = yᵢ. Otherwise it is of that order; a free intercept needs Σ cᵢ αᵢ = 0, so α is balanced first.

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> largest_lam(Problem(Hinge(), 1.0).on(as_dataset(np.array([[2.0], [-1.0]])), np.array([1.0, -1.0])))
    3.0
    """
    data, total = objective.data, objective.total
    alpha = objective.balance_alpha(data.map(np.negative, objective.slopes_at(data.zeros(), 0.0)))
    scores = data.scores(data.combine(alpha) / total)
    b = objective.balance(alpha) / total if objective.intercept == "penalized" else 0.0
    largest = data.reduce(partial(largest_score, b), data.weights, scores, merge=max)
    return largest if largest > 0.0 else 1.0


def largest_score(b: float, weight: Weights, scores: Vector) -> float:
    """max |scoreᵢ + b| over the rows of positive weight."""
    counted = scores if weight.stride == 0 else scores[weight.values > 0]
    return float(np.abs(counted + b).max(initial=0.0))


def follow(
    objectives: Single | Objectives | PairObjectives,
    lams: npt.NDArray[np.float64],
    solver: JointSolver,
    stops: Stops,
    *,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Iterator[tuple[float, list[Solution]]]:
    """Each λ once, from the largest to the smallest, with the solution of every problem.

    The next point starts from the states in the solutions, and changes them.
    """
    point: list[Solution] | None = None
    memories: list[Any] = [None] * len(objectives)
    for lam in np.unique(lams)[::-1].tolist():
        at_lam, start = objectives.with_lam(lam), None
        if point is not None:
            found = [path_start(*pair, lam) for pair in zip(point, memories, strict=True)]
            start, memories = [state for state, _ in found], [memory for _, memory in found]
        point = drive(at_lam, solver, stops, seed=seed, start=start, on_progress=on_progress)
        if start is not None and any(one.status in (Status.STALLED, Status.MAX_ITER) for one in point):
            # a start from a distant point may be worse than none (Newton, if weights differ by orders of magnitude)
            again = drive(at_lam, solver, stops, seed=seed, on_progress=on_progress)
            point = [min(pair, key=gap_of) for pair in zip(point, again, strict=True)]
        if any(one.status is Status.INTERRUPTED for one in point):
            raise KeyboardInterrupt
        yield lam, point


def path_start(solution: Solution, memory: Any, lam: float) -> tuple[Any, Any]:
    """The start at the next λ, from the solution at the last one and the solver's memory of those before."""
    state = as_previous(solution.state)
    if state is None or not hasattr(solution.solver, "path_start"):
        return solution.state, None
    begin, memory = solution.solver.path_start(state, memory, lam)
    return replace_state(solution.state, begin), memory


def gap_of(solution: Solution) -> float:
    """The certified relative gap; inf without a certificate."""
    return np.inf if solution.certificate is None else solution.certificate.relative_gap
