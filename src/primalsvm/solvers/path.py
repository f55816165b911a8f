"""A path: the same problem at many λ, from strong regularisation to weak, each point begun with what those before tell.

    for λ₁ > λ₂ > …:
        r  = log(λ_{k+1}/λ_k) / log(λ_k/λ_{k−1})                     at most 1
        p⁰ = p_k + r (p_k − p_{k−1})                                 the scores p_k are those of the last certificate
        e  = `SPREAD` · rms(p_k − p⁰_k)                              how far off the last ones were (longer steps: more)
        rows that p⁰ ± e would not move sleep                        `ascent.foresee`
        sweeps of dual ascent from α_k, v_k over the others, until certified

A point so costs a pass over all rows, for its certificate, and sweeps over the rows near the margin. Neither v nor the
norms of the rows are computed anew. If rows slept that should not have, the certificate tells, and wakes them.

That scores move evenly in log λ is what is seen (text: off by 0.02 to 0.1; evenly in λ p(λ), which is piecewise linear
in λ for the hinge (Hastie et al. 2004), by 0.06 to 0.14). To continue α in the same way gains nothing: most rows that
move go all the way from one bound to the other between two points.

Other solvers, and several problems at once (one class against the rest), begin with what the last point ended with.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from primalsvm.compiled import kernel
from primalsvm.inputs import as_batch, as_targets
from primalsvm.losses import Loss, by_name
from primalsvm.objective import ALONE, Problem, check_targets
from primalsvm.rows import Batch, Vector, total_weight
from primalsvm.solution import Solution, Status
from primalsvm.solvers.ascent import SLACK, Ahead, DualState
from primalsvm.solvers.costs import Size
from primalsvm.solvers.drive import Progress, Stops, drive
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.newton import WARMER, NewtonState
from primalsvm.solvers.policy import choose
from primalsvm.solvers.protocol import Solver
from primalsvm.solvers.sequence import SequenceState, present
from primalsvm.solvers.together import drive_together
from primalsvm.team import Team

POINTS = 20
DECADES = 4.0
NEWTON_Q = 1.0  # where Newton begins at the next point, α and w as they were
FARTHEST = 1.0  # r: beyond, a line that is drawn through two points leads nowhere
SPREAD = 1.5  # errors that scores may be off, before a sleeping row would care (text: 1 too few, 2 as good)


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
    epochs, seconds : ndarray of shape (n,); of several classes the most, and the sum
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
    lams : the λ's, in any order; None: 20, evenly spaced in log λ, from `strongest` down four decades
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
        After Ctrl-C: a part of a path is none.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import svm_path
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> path = svm_path(X, y, lams=[1e-3, 1e-1])
    >>> path.coefs.shape, max(proof.relative_gap for proof in path.certificates) < 1e-9
    ((2, 5), True)
    """
    loss = by_name(loss)
    given = as_targets(y)
    first = as_batch(X, np.zeros(given.shape[:1]), sample_weight)
    counting = np.broadcast_to(first.weight.values, given.shape[:1]) > 0
    classes, labels = as_labels(given, counting) if loss.of_signs else (None, [np.asarray(y, np.float64)])
    batches = [first._replace(y=one) for one in labels]
    problem = Problem(loss, 1.0, "none" if not fit_intercept else "penalized" if penalize_intercept else "free")
    for batch in batches:
        check_targets(problem, batch)
    if lams is None:
        top = max(strongest(problem, batch) for batch in batches)
        lams = np.geomspace(top, top * 10.0**-DECADES, POINTS)
    strengths = check_strengths("lams", lams)
    chosen = choose(solver, Size.of(first.rows), loss)
    found: dict[float, list[Solution]] = {}
    for lam, point in follow(
        problem, strengths, batches, chosen, Stops(tol, max_iter), n_jobs=n_jobs, seed=random_state
    ):
        found[lam] = [replace(one, state=None) for one in point]
        if verbose:
            print(f"svm_path: lam {lam:.3g} {point[0].message}")
    points = [found[lam] for lam in strengths.tolist()]
    alone = len(batches) == 1
    coefs = np.array([[one.w for one in point] for point in points])
    intercepts = np.array([[one.b for one in point] for point in points])
    return SVMPath(
        lams=strengths,
        classes=classes,
        coefs=coefs[:, 0] if alone else coefs,
        intercepts=intercepts[:, 0] if alone else intercepts,
        certificates=[point[0].certificate if alone else [one.certificate for one in point] for point in points],
        statuses=[point[0].status if alone else [one.status for one in point] for point in points],
        epochs=np.array([max(one.n_epochs for one in point) for point in points]),
        seconds=np.array([sum(one.seconds for one in point) for point in points]),
    )


def as_labels(y: npt.NDArray[Any], counting: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[Any], list[Vector]]:
    """The classes of the rows that count, and ±1 for each problem: two classes make one, more as many as there are.

    Examples
    --------
    >>> as_labels(np.array(["no", "yes"]), np.array([True, True]))[1]
    [array([-1.,  1.])]
    """
    if y.ndim != 1:
        raise ValueError(f"y must be a vector of classes, got an array of shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity")
    classes = np.unique(y[counting])
    if len(classes) < 2:
        raise ValueError("y holds one class only: at least two classes are needed")
    return classes, [np.where(y == one, 1.0, -1.0) for one in (classes if len(classes) > 2 else classes[1:])]


def check_strengths(name: str, given: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A vector of positive numbers, at least one.

    Examples
    --------
    >>> check_strengths("Cs", [1.0, -1.0])
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


def strongest(problem: Problem, batch: Batch, team: Team = ALONE) -> float:
    """A λ from which on solutions are simple:  λ_max = max |⟨g, xᵢ⟩|,  g = (1/Σc) Σ cᵢ αᵢ xᵢ,  αᵢ = −ℓ'(yᵢ, 0).

    For the hinge without intercept, w = g/λ exactly for λ ≥ λ_max: no row is beyond the margin then, so all have
    αᵢ = yᵢ. Otherwise it is of that order; a free intercept needs Σ cᵢ αᵢ = 0, so α is balanced first.

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> strongest(Problem(Hinge(), 1.0), as_batch(np.array([[2.0], [-1.0]]), [1, -1]))
    3.0
    """
    m = batch.y.shape[0]
    alpha = problem.clipped(batch, -problem.slopes_at(batch, np.zeros(m), 0.0))
    alpha = problem.balanced(batch, alpha)
    total = total_weight(batch)
    scores = team.scores(batch.rows, team.combine(batch, alpha) / total)
    if problem.intercept == "penalized":
        scores += problem.balance(batch, alpha) / total
    counted = scores if batch.weight.stride == 0 else scores[batch.weight.values > 0]
    largest = float(np.abs(counted).max())
    return largest if largest > 0.0 else 1.0


def follow(
    problem: Problem,
    lams: npt.NDArray[np.float64],
    batches: Sequence[Batch],
    solver: Solver,
    stops: Stops,
    *,
    n_jobs: int | None = None,
    seed: int = 0,
    watch: Callable[[Progress], None] | None = None,
) -> Iterator[tuple[float, list[Solution]]]:
    """Each λ once, from the largest to the smallest, with the solution of every problem.

    The batches have the same rows and weights, and labels of their own. States live until the next point is asked for.
    """
    point: list[Solution] | None = None
    here: Known | None = None
    behind: Seen | None = None
    foreseen: Vector | None = None
    for lam in np.unique(lams)[::-1].tolist():
        now = replace(problem, lam=lam)
        start = None if point is None else [rounded(one) for one in point]
        if start is not None and here is not None:
            begun = ahead(lam, here, behind)
            start, foreseen = [replace(start[0], state=begun)], begun.scores
        point = solved(now, batches, solver, stops, n_jobs, seed, start, watch)
        if start is not None and any(one.status in (Status.STALLED, Status.MAX_ITER) for one in point):
            # a start from afar may do more harm than good (Newton, at weights that differ by orders of magnitude)
            again = solved(now, batches, solver, stops, n_jobs, seed, None, watch)
            point = [min(pair, key=gap_of) for pair in zip(point, again, strict=True)]
        behind = None if here is None else here.seen
        here = known(lam, solver, point[0].state, foreseen) if len(batches) == 1 else None
        if any(one.status is Status.INTERRUPTED for one in point):
            raise KeyboardInterrupt
        yield lam, point


def solved(
    problem: Problem,
    batches: Sequence[Batch],
    solver: Solver,
    stops: Stops,
    n_jobs: int | None,
    seed: int,
    start: list[Solution] | None,
    watch: Callable[[Progress], None] | None,
) -> list[Solution]:
    """One point: the solution of every problem."""
    if len(batches) > 1:
        return drive_together(problem, batches, solver, stops, n_jobs=n_jobs, seed=seed, start=start, watch=watch)
    begun = None if start is None else start[0]
    return [drive(problem, batches[0], solver, stops, n_jobs=n_jobs, seed=seed, start=begun, watch=watch)]


def gap_of(solution: Solution) -> float:
    """The relative gap that is proven."""
    return np.inf if solution.certificate is None else solution.certificate.relative_gap


def rounded(solution: Solution) -> Solution:
    """The same, but Newton's kinks are rounded again: at another λ the rows at the margin are others."""
    state = solution.state
    if isinstance(state, SequenceState) and isinstance(state.inner, NewtonState):
        return replace(solution, state=replace(state, inner=with_larger_q(state.inner)))
    return replace(solution, state=with_larger_q(state)) if isinstance(state, NewtonState) else solution


def with_larger_q(state: NewtonState) -> NewtonState:
    """A state of Newton from which it begins at `NEWTON_Q`."""
    return replace(state, q=max(NEWTON_Q / WARMER, state.q))


class Seen(NamedTuple):
    """How the rows score at the solution of one λ."""

    lam: float
    scores: Vector
    centre: float


class Known(NamedTuple):
    """What is known of the solution at one λ."""

    seen: Seen
    alpha: Vector
    v: Vector
    norms: Vector
    trust: float
    slack: float  # for the scores that are foreseen next


def known(lam: float, solver: Solver, state: Any, foreseen: Vector | None) -> Known | None:
    """What a state of dual ascent tells, if rows may sleep and its point was evaluated; with what had been foreseen."""
    solver, state = present(solver, state)
    if not (isinstance(solver, DualAscent) and solver.shrinking and isinstance(state, DualState)):
        return None
    if not state.scores.size:
        return None
    slack = SLACK if foreseen is None else SPREAD * float(rms_difference(state.scores, foreseen))
    return Known(Seen(lam, state.scores, state.centre), state.alpha, state.v, state.norms, state.trust, slack)


def ahead(lam: float, here: Known, behind: Seen | None) -> Ahead:
    """Where to begin at the next λ: at the last solution, with the scores that the last two lead to."""
    (last, scores, centre), slack = here.seen, here.slack
    if behind is not None:
        step = math.log(lam / last) / math.log(last / behind.lam)
        r = min(step, FARTHEST)
        scores = continued(scores, behind.scores, r)
        centre += r * (centre - behind.centre)
        slack *= step / r
    return Ahead(here.alpha, centre, here.v.copy(), here.norms, scores, slack, here.trust)


@kernel
def continued(here, behind, r):  # type: ignore[no-untyped-def]  # compiled
    """here + r (here − behind)."""
    out = np.empty_like(here)
    for i in range(np.uint64(here.shape[0])):
        out[i] = here[i] + r * (here[i] - behind[i])
    return out


@kernel
def rms_difference(x, y):  # type: ignore[no-untyped-def]  # compiled
    """√ mean (xᵢ − yᵢ)²."""
    total = 0.0
    for i in range(np.uint64(x.shape[0])):
        total += (x[i] - y[i]) ** 2
    return np.sqrt(total / x.shape[0])
