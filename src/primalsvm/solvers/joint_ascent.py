"""Dual coordinate ascent on many problems at once: the same rows, different labels (one class against the rest).

    V = [v₁ … v_K],  v_k = Σ cᵢ α_ik xᵢ                                     one row of V for each feature
    for i in a fresh order of the active rows:
        p  = s Vᵀxᵢ + b                                                    one pass over the row, for all k
        α'_k = argmax −ℓ*(−α') − p_k (α' − α_ik) − q/2 (α' − α_ik)²          `Loss.dual_step`, for each k
        V += xᵢ (cᵢ (α' − α_i))ᵀ                                            one more pass, if any α_ik has moved

Each problem is solved as in `dual_ascent`, with the same steps, intercepts, over-relaxation and running mean. A row is
read once for all problems, and the K numbers that multiply an entry of it are stored side by side (`data.vectors`). A
row is inactive if no problem would move it. A solved problem is taken out, and the others go on. After `MOST_SWEEPS`
sweeps all problems are handed over, to be solved one by one, as rows that are inactive in one are active in others.

Threads. The problems are divided into a group for each thread, and the groups are independent of one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import ALONE, Vector, inner, prefetch_row, squared_norm, weight_of
from primalsvm.data.blocks import add_outer, dots, width
from primalsvm.data.vectors import (
    combine_many,
    many_scores_of,
    selected_vectors,
    squared_vector_norms,
    transpose,
    vector_of,
    vector_rows,
    zero_vectors,
)
from primalsvm.losses import conjugate, dual_step, value
from primalsvm.objective import Evaluation, Objective, Objectives
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.ascent import (
    LEAST_DENOMINATOR,
    LEAST_RATIO,
    RELAXATION,
    RELAXED_FROM,
    SWEEP_CHUNK,
    Shrinking,
    gap_ratio,
    known_point,
    memory_after,
    strength_of,
)
from primalsvm.solvers.dual_ascent import DualAscent, check_in_memory
from primalsvm.solvers.order import PREFETCH_DISTANCE, empty_order, write_order
from primalsvm.solvers.protocol import JointSolverState, Member, Point, Run, Traits
from primalsvm.solvers.screening import LONGEST_PAUSE, SLACK
from primalsvm.solvers.several import as_previous

# The number of sweeps over all problems at once; then each goes on alone.
MOST_SWEEPS = 100
# For targets down to this relative gap V and α are in single precision (half the bytes). P and D never are.
SINGLE_UNTIL = 1e-4
# A group is evaluated after this many sweeps, later after a quarter of the sweeps so far: sooner if the estimates are
# small enough, later if they are far too large.
SWEEPS_PER_EVALUATION = 10
# A group is evaluated as soon as this share of its problems seems to have reached the target.
PROMISING_SHARE = 0.9
# The true gap / estimate before it is known (text, digits, letters: 0.3 to 0.7).
FIRST_RATIO = 0.5


class SweepFrame(NamedTuple):
    """What all problems share in a sweep."""

    lam: float
    total: float  # Σc
    strength: float  # ρ
    relaxation: float  # ω


@kernel
def sweep(rows, weight, signs, loss, scalars, centre, norms, order, alpha, V, beta, square, gap, gain, skip, pause):  # type: ignore[no-untyped-def]  # compiled
    """Coordinate steps on the rows in `order`, for all problems; everything after `order` is updated."""
    K = np.uint64(alpha.shape[1])
    p = np.zeros(width(rows, V), V.dtype)
    change = np.zeros(width(rows, V), V.dtype)
    at, new = np.empty(K), np.empty(K)
    s = 1.0 / (scalars.lam * scalars.total)
    n = order.shape[0]
    for r in range(n):
        if r + PREFETCH_DISTANCE < n:
            prefetch_row(rows, order[r + PREFETCH_DISTANCE])
        i = np.uint64(order[r])
        c = weight_of(weight, i)
        if c == 0.0:
            continue
        dots(rows, i, V, p)
        if norms[i] < 0.0:
            norms[i] = squared_norm(rows, i)
        q = s * c * (norms[i] + scalars.strength) / scalars.relaxation
        y, old = signs[i], alpha[i]
        # short loops, each over few arrays, so that the compiler vectorises them
        for k in range(K):
            at[k] = s * p[k] + centre[k] + scalars.strength * s * beta[k]
        for k in range(K):
            new[k] = alpha.dtype.type(dual_step(loss, at[k], np.float64(y[k]), np.float64(old[k]), q))
        for k in range(K):
            conjugate_old = conjugate(loss, -np.float64(old[k]), np.float64(y[k]))
            gap[k] += c * (value(loss, at[k], np.float64(y[k])) + conjugate_old + old[k] * at[k])
        moved = False
        for k in range(K):
            moved |= new[k] != old[k]
        if moved:
            for k in range(K):
                conjugate_old = conjugate(loss, -np.float64(old[k]), np.float64(y[k]))
                gain[k] += c * (conjugate_old - conjugate(loss, -new[k], np.float64(y[k])))
            for k in range(K):
                change[k] = c * (new[k] - old[k])
                old[k] = new[k]
            for k in range(K):
                square[k] += change[k] * (2.0 * p[k] + change[k] * norms[i])
                beta[k] += change[k]
            add_outer(rows, i, change, V)
            pause[i] = 0
            continue
        inactive = True
        for k in range(K):
            sign, old_k = np.float64(y[k]), np.float64(old[k])
            below = dual_step(loss, at[k] - SLACK, sign, old_k, q)
            inactive &= below == old_k and dual_step(loss, at[k] + SLACK, sign, old_k, q) == old_k
        if inactive:
            pause[i] = min(2 * pause[i] + 1, LONGEST_PAUSE)
            skip[i] = pause[i]


@kernel
def average(V, past, mean):  # type: ignore[no-untyped-def]  # compiled
    """mean ← past · mean + (1 − past) V."""
    old, new = V.dtype.type(past), V.dtype.type(1.0 - past)
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            mean[j, k] = old * mean[j, k] + new * V[j, k]


@kernel
def loss_sums(loss, signs, weight, scores, b):  # type: ignore[no-untyped-def]  # compiled
    """Σ cᵢ ℓ(y_ik, scores_ik + b_k), for each k."""
    out = np.zeros(b.shape[0])
    for i in range(np.uint64(scores.shape[0])):
        c = weight_of(weight, i)
        for k in range(np.uint64(b.shape[0])):
            out[k] += c * value(loss, scores[i, k] + b[k], np.float64(signs[i, k]))
    return out


@kernel
def dual_sums(loss, signs, weight, alpha, balance):  # type: ignore[no-untyped-def]  # compiled
    """Σ cᵢ (−ℓ*(−α_ik)), for each k; balance[k] ← Σ cᵢ α_ik."""
    out = np.zeros(balance.shape[0])
    balance[:] = 0.0
    for i in range(np.uint64(alpha.shape[0])):
        c = weight_of(weight, i)
        if c > 0.0:
            for k in range(np.uint64(balance.shape[0])):
                a = np.float64(alpha[i, k])
                out[k] -= c * conjugate(loss, -a, np.float64(signs[i, k]))
                balance[k] += c * a
    return out


@dataclass(kw_only=True)
class Group:
    """Problems that one thread solves; arrays have a column or an entry for each, except those of rows."""

    problems: Vector  # their numbers
    signs: Vector  # m × K
    alpha: Vector  # m × K
    V: Vector  # as `data.vectors` has it
    mean: Vector  # its running mean over the sweeps
    beta: Vector  # Σ cᵢ α_ik
    mean_beta: Vector
    centre: Vector  # b₀
    square: Vector  # ‖v_k‖²
    dual_sum: Vector  # Σ cᵢ (−ℓ*(−α_ik))
    gap: Vector  # the sums of row gaps in this sweep so far
    gain: Vector  # change of `dual_sum` in this sweep
    lagging_gap: Vector  # the gaps from the last sweep
    ratio: Vector  # true gap / estimate, at the last evaluation
    norms: Vector  # ‖xᵢ‖²; −1: not known yet
    shrinking: Shrinking
    order: Vector  # of the rows in this sweep
    rng: np.random.Generator
    visit_cost: float  # operations of a visit to a row, for each problem
    n_active: int = 0  # rows in this sweep
    position: int = 0  # how many of them have been visited
    epoch: int = 0
    since: int = 0  # sweeps since the last evaluation

    OF_ROWS: ClassVar = ("signs", "alpha")
    OF_FEATURES: ClassVar = ("V", "mean")
    OF_PROBLEMS: ClassVar = (
        *("problems", "beta", "mean_beta", "centre", "square", "dual_sum", "gap", "gain", "lagging_gap", "ratio"),
    )

    def select(self, rows: Any, columns: Vector) -> "Group":
        """The group of some of the problems."""
        if columns.size == self.problems.size:
            return self
        found: dict[str, Any] = {name: np.ascontiguousarray(getattr(self, name)[:, columns]) for name in self.OF_ROWS}
        found |= {name: selected_vectors(rows, getattr(self, name), columns) for name in self.OF_FEATURES}
        found |= {name: getattr(self, name)[columns] for name in self.OF_PROBLEMS}
        return replace(self, **found)

    def mean_or_current(self) -> tuple[Vector, Vector]:
        """The running means of V and β; before the first sweep has ended, V and β themselves."""
        return (self.mean, self.mean_beta) if self.epoch else (self.V, self.beta)


@dataclass
class JointState(JointSolverState):
    """The state between two chunks."""

    count: int  # problems in a group, at the start
    strength: float  # ρ
    groups: list[Group] = field(default_factory=list)

    def parts(self, chosen: Sequence[int]) -> list[tuple[Group, Vector]]:
        """The groups with some of the chosen problems, each with the columns of these problems."""
        wanted = set(chosen)
        parts = [(group, [i for i, k in enumerate(group.problems.tolist()) if k in wanted]) for group in self.groups]
        return [(group, np.array(columns)) for group, columns in parts if columns]

    def find(self, k: int) -> tuple[Group, int]:
        """The group of a problem, and the column of the problem in it."""
        ((group, columns),) = self.parts([k])
        return group, int(columns[0])


@dataclass(frozen=True)
class JointAscent:
    """Dual coordinate ascent on all problems at once, for some sweeps.

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> from primalsvm.losses import Hinge
    >>> from primalsvm.objective import Problem
    >>> from primalsvm.solvers.drive import drive
    >>> from primalsvm.solvers.stops import Stops
    >>> signs = np.array([[1, -1], [-1, 1], [-1, 1]])
    >>> first, second = drive(Objectives(Problem(Hinge(), 0.1), as_dataset(np.eye(3)), signs), JointAscent(), Stops())
    >>> first.status.value, bool(np.allclose(first.w, -second.w))
    ('converged', True)
    """

    name: ClassVar[str] = DualAscent.name
    traits: ClassVar[Traits] = Traits("block", precise=True, simultaneous=True)

    def start(self, objectives: Objectives, run: Run, chosen: Sequence[int], previous: Sequence[Any]) -> JointState:
        """α = 0, or the α of previous runs."""
        data = objectives.data
        check_in_memory(data)
        numbers = np.array(list(chosen))
        ranges = [(first, last) for first, last in data.threads.ranges(numbers.size) if first < last]
        state = JointState(
            target=run.target,
            members=[None] * len(objectives),
            count=max(last - first for first, last in ranges),
            strength=strength_of(objectives.problem, float(data.squared_norms().mean())),
        )
        for k in chosen:
            state.members[k] = Member()
        dtype = np.dtype(np.float32 if run.target >= SINGLE_UNTIL else np.float64)
        own, rows = on_one_thread(objectives), data.block_for(state.count)

        def start(first: int, last: int) -> Group:
            return start_group(own, rows, numbers[first:last], previous, dtype, run.seed)

        state.groups = data.threads.run(start, ranges)
        return state

    def advance(self, objectives: Objectives, state: JointState) -> JointState:
        """A chunk of a sweep in each group."""
        rows = objectives.data.block_for(state.count)
        still_open = [k for k, member in enumerate(state.members) if member is not None]
        state.groups = [group.select(rows, columns) for group, columns in state.parts(still_open)]

        def advance(group: Group) -> None:
            members: list[Any] = [state.members[k] for k in group.problems]
            for member in members:
                member.worth_evaluating = False
            sweep_chunk(objectives, rows, group, state.strength)
            if group.position >= group.n_active:
                close_sweep(objectives, group, members, state)

        objectives.data.threads.run(advance, [(group,) for group in state.groups])
        return state

    def evaluate(self, objectives: Objectives, state: JointState, chosen: Sequence[int]) -> list[Evaluation]:
        """For each problem: P at the running mean of w, with the best b if it is free; D at α."""
        own, rows = on_one_thread(objectives), objectives.data.block_for(state.count)
        found: dict[int, Evaluation] = {}

        def evaluate(group: Group, columns: Vector) -> None:
            group = group.select(rows, columns)
            found.update(zip(group.problems.tolist(), evaluations(own, rows, group), strict=True))

        objectives.data.threads.run(evaluate, state.parts(chosen))
        return [found[k] for k in chosen]

    def iterate(self, objectives: Objectives, state: JointState, k: int) -> tuple[Vector, float]:
        """The running mean of w, and b (if free, its centre)."""
        group, column = state.find(k)
        s = 1.0 / (objectives.problem.lam * objectives.data.total_weight)
        V, beta = group.mean_or_current()
        w = s * vector_of(objectives.data.block_for(state.count), V, column).astype(np.float64)
        free = objectives.problem.intercept == "free"
        return w, float(group.centre[column] if free else s * state.strength * beta[column])

    def observe(self, objectives: Objectives, state: JointState, k: int, evaluation: Evaluation) -> None:
        """Store the true gap and its ratio to the estimate."""
        member, (group, column) = state.members[k], state.find(k)
        assert member is not None
        reached = relative_gap(evaluation.primal, evaluation.dual)
        group.ratio[column] = gap_ratio(reached, member.estimate)
        member.estimate = reached

    def hand_over(self, objectives: Objectives, state: JointState, k: int) -> Point:
        """α, and the running mean of w."""
        group, column = state.find(k)
        w, b = self.iterate(objectives, state, k)
        return Point(group.alpha[:, column].astype(np.float64), b, w)

    def close(self, objectives: Objectives, state: JointState, k: int) -> tuple[DualAscent, Point]:
        """A solver that can go on with the problem alone, and the point; later chunks are without this problem."""
        point = self.hand_over(objectives, state, k)
        state.members[k] = None
        return DualAscent(), point


def on_one_thread(objectives: Objectives) -> Objectives:
    """The same problems, for a thread of the pool."""
    return Objectives(objectives.problem, objectives.data.with_threads(ALONE), objectives.Y)


def start_group(
    objectives: Objectives, rows: Any, problems: Vector, previous: Sequence[Any], dtype: Any, seed: int
) -> Group:
    """A group with α = 0, or with the α of previous runs of these problems."""
    data, problem = objectives.data, objectives.problem
    signs = np.ascontiguousarray(data.to_array(objectives.Y)[:, problems], np.int8)
    m, K = signs.shape
    alpha, centre, warm = np.zeros((m, K), dtype), np.zeros(K), False
    for column, k in enumerate(problems.tolist()):
        known = known_point(as_previous(previous[k]), m)
        if known is None and problem.intercept != "free":
            continue
        objective = objectives[k]
        if known is not None:
            alpha[:, column] = objective.clip_alpha(known[0])
            warm = True
        if objective.free:
            centre[column] = objective.best_constant() if known is None else known[1]
    V, beta = zero_vectors(rows, K, dtype), np.zeros(K)
    if warm:
        combine_many(rows, data.weights, alpha, V)
    return Group(
        problems=problems,
        signs=signs,
        alpha=alpha,
        V=V,
        mean=np.zeros_like(V),
        dual_sum=dual_sums(problem.loss, signs, data.weights, alpha, beta),
        beta=beta,
        mean_beta=np.zeros(K),
        centre=centre,
        square=squared_vector_norms(rows, V, K),
        gap=np.zeros(K),
        gain=np.zeros(K),
        lagging_gap=np.full(K, np.inf),
        ratio=np.full(K, FIRST_RATIO),
        norms=np.full(m, -1.0),
        shrinking=Shrinking.of(m),
        order=empty_order(m),
        rng=np.random.default_rng(seed),
        visit_cost=costs.joint_visit(costs.Size.of(data), K),
    )


def sweep_chunk(objectives: Objectives, rows: Any, group: Group, strength: float) -> None:
    """Coordinate steps on some rows; at the end of a sweep, a new one begins."""
    data, problem = objectives.data, objectives.problem
    if group.position >= group.n_active:
        group.n_active = write_order(group.rng, group.shrinking.skip, group.order)
        group.position = 0
        group.gap[:] = group.gain[:] = 0.0
    last = min(group.position + SWEEP_CHUNK, group.n_active)
    relaxation = RELAXATION if group.epoch >= RELAXED_FROM else 1.0
    scalars = SweepFrame(problem.lam, data.total_weight, strength, relaxation)
    sweep(
        rows, data.weights, group.signs, problem.loss, scalars, group.centre, group.norms,
        group.order[group.position : last], group.alpha, group.V, group.beta, group.square, group.gap, group.gain,
        *group.shrinking,
    )  # fmt: skip
    group.position = last


def close_sweep(objectives: Objectives, group: Group, members: list[Member], state: JointState) -> None:
    """Update the running means, the intercepts' centres and the estimates; decide whether to evaluate.

    See `ascent.close_sweep` and `ascent.estimate_gap`.
    """
    problem, total = objectives.problem, objectives.data.total_weight
    group.epoch += 1
    group.since += 1
    group.dual_sum += group.gain
    past = memory_after(group.epoch)
    average(group.V, past, group.mean)
    group.mean_beta = past * group.mean_beta + (1.0 - past) * group.beta
    s = 1.0 / (problem.lam * total)
    gap = group.gap / total
    if problem.intercept == "free":
        group.centre = group.centre + state.strength * s * group.beta
        gap += np.abs(group.centre * group.beta) / total
    dual = group.dual_sum / total - problem.penalty(s * s * group.square, s * group.beta)
    now = gap * np.minimum(1.0, gap / np.maximum(group.lagging_gap, LEAST_DENOMINATOR)) if group.epoch > 1 else gap
    group.lagging_gap = gap
    primal = dual + now
    estimate = now / np.maximum(np.maximum(np.abs(primal), np.abs(dual)), LEAST_DENOMINATOR)
    promising = np.mean(estimate * group.ratio <= state.target) >= PROMISING_SHARE
    most_sweeps = max(SWEEPS_PER_EVALUATION, group.epoch // 4)
    overdue = group.since >= most_sweeps and estimate.min() * LEAST_RATIO <= state.target
    worth_evaluating = bool(promising or overdue)
    for member, *found in zip(members, primal.tolist(), dual.tolist(), estimate.tolist(), strict=True):
        member.primal, member.dual, member.estimate = found
        member.epoch = float(group.epoch)
        member.steps += group.n_active
        member.operations += costs.SWEEP / len(members) + group.n_active * group.visit_cost
        member.worth_evaluating = worth_evaluating
        member.finished = group.epoch >= MOST_SWEEPS
    if worth_evaluating:
        group.since = 0


def evaluations(objectives: Objectives, rows: Any, group: Group) -> list[Evaluation]:
    """P at the running mean of w, with the best b if it is free, and D at α; all problems in two passes."""
    data, problem = objectives.data, objectives.problem
    s = 1.0 / (problem.lam * data.total_weight)
    m, K = group.alpha.shape
    free = problem.intercept == "free"
    own: list[Objective] = [objectives[k] for k in group.problems.tolist()] if free else []
    alpha = balance_alpha(own, group.alpha) if free else group.alpha
    V, balance = zero_vectors(rows, K, np.float64), np.zeros(K)  # certificates are summed in double precision
    combine_many(rows, data.weights, alpha, V)
    duals = dual_sums(problem.loss, group.signs, data.weights, alpha, balance) / data.total_weight
    duals -= problem.penalty(s * s * squared_vector_norms(rows, V, K), s * balance)
    mean, beta = group.mean_or_current()
    W, scores = vector_rows(rows, mean, K), np.empty((m, K))
    many_scores_of(rows, mean if rows.sparse else W, s, scores)
    W *= s
    b = s * beta if problem.intercept == "penalized" else np.zeros(K)
    if free:
        guesses = zip(own, transpose(scores), group.centre, strict=True)
        b[:] = [objective.best_intercept(column, float(centre)) for objective, column, centre in guesses]
    primals = loss_sums(problem.loss, group.signs, data.weights, scores, b) / data.total_weight
    primals += problem.penalty(np.array([inner(w, w) for w in W]), b)
    return [Evaluation(*point) for point in zip(W, b.tolist(), primals.tolist(), duals.tolist(), strict=True)]


def balance_alpha(objectives: list[Objective], alpha: Vector) -> Vector:
    """`Objective.balance_alpha`, column by column."""
    columns = transpose(alpha)
    for objective, column in zip(objectives, columns, strict=True):
        column[:] = objective.balance_alpha(column)
    return transpose(columns)
