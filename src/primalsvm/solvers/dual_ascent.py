"""Dual coordinate ascent: the precise solver.

    maximise D(α) over one αᵢ at a time                       (Hsieh et al. 2008; Shalev-Shwartz and Zhang 2013)

    v = Σ cᵢ αᵢ xᵢ,  s = 1/(λ Σc),  w = s v
    for i in a fresh order of the rows that are awake:
        p  = s ⟨v, xᵢ⟩ + b
        q  = s cᵢ (‖xᵢ‖² + ρ) / ω
        α' = argmax −ℓ*(−α') − p (α' − αᵢ) − q/2 (α' − αᵢ)²         `Loss.dual_step`
        v += cᵢ (α' − αᵢ) xᵢ;  β += cᵢ (α' − αᵢ);  αᵢ = α'

Intercept. b = b₀ + ρ s β with β = Σ cᵢ αᵢ: the weight of a constant feature of strength ρ around a centre b₀.
Penalised: ρ = 1, b₀ = 0. Free: b₀ is the best constant at first, and moves to b after every sweep: a proximal-point
method whose limit has β = 0.

Over-relaxation. ω = 1 at first, then 1.4 as in SOR. The step maximises a q-strongly concave model, so it raises that by
at least q/2 (α' − αᵢ)², and D by that less (ω − 1) q/2 (α' − αᵢ)²: it never falls for ω < 2.

First sweep. Where λm is large, the first sweep solves the problem of the rows seen so far: s = 1/(λ Σ_seen c).

Shrinking. A row that does not move, nor would if its score changed by `SLACK`, sleeps for 1, 3, 7, … sweeps, and starts
over when it moves. Nothing has to be undone: everyone wakes up, and the certificate looks at all rows.

Copies. Once few rows move, they lie far apart, and reading them costs more than the arithmetic. They are then copied
side by side, and `COPIED_SWEEPS` sweeps over the copies (in the cache, if it holds them) follow each sweep over all.
Where a path has foreseen who sleeps (`path`), copies of all others are swept over until an evaluation tells who should
not have, unless these are many.

Primal point. w(α) swings about on its way to w*: what is returned is a running mean of w over the sweeps, longer the
slower they progress, whose P is lower by a quarter on text, while D is that of α itself.

Threads. Each member takes a part of a chunk with its own copy of v. All pull v the same way at first, so a member
counts its own changes as many times as there are members (as CoCoA+, Ma et al. 2015), later half as cautiously. The
changes are added with the step in [0, 1] that is best for D along their sum (D is concave), so a chunk never makes D
worse; the same `n_jobs` gives the same bits.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import Batch, Vector, in_memory, shape, stored_bytes, take_batch
from primalsvm.solution import relative_gap
from primalsvm.solvers.ascent import (
    LONGEST_NAP,
    SLACK,
    Copies,
    DualState,
    Part,
    chunk_length,
    close_sweep,
    foresee,
    judged,
    own_point,
    start_state,
    visit,
)
from primalsvm.solvers.order import interleave, room_for_order, run_length, shuffled_runs
from primalsvm.solvers.protocol import Point, Run
from primalsvm.team import Team

COPIED_SWEEPS = 4  # over the copies, for each one over all rows (text: 3 to 5 best)
COPIED_SHARE = 0.07  # of the input's bytes, that the copies may take
FORESEEN_SWEEPS = 30  # over the copies of those who are foreseen to move, before an evaluation looks at the others
FORESEEN_SHARE = 0.2  # of the input's bytes, that they may take
TRUST_V_UNTIL = 1e-7  # relative gap below which v is recomputed from α first: its rounding may add up to 1e-12
WORK_PER_EVALUATION = 5.0  # evaluations stay under a fifth of the work


@dataclass(frozen=True)
class DualAscent:
    """Dual coordinate ascent over mixed blocks of rows: accurate; the choice for many features.

    Parameters
    ----------
    shrinking : bool
        Let rows that do not move sleep for some sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1), X, [1, 1, -1, -1], solver=DualAscent())
    >>> solution.certificate.relative_gap < 1e-9
    True
    """

    shrinking: bool = True
    name: ClassVar[str] = "dual_ascent"
    precise: ClassVar[bool] = True
    self_paced: ClassVar[bool] = False

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> DualState:
        """α = 0, or the α of a previous state of as many rows."""
        m, _ = shape(in_memory(batch.rows))
        state = start_state(problem, batch, run, team, previous, np.zeros(m), m)
        if not self.shrinking:
            state.sleep, state.nap, state.foreseen = state.sleep[:0], state.nap[:0], 0
        return state

    def advance(self, problem: Problem, batch: Batch, state: DualState, team: Team) -> DualState:
        """One chunk of coordinate steps; at the end of a sweep, the intercept's centre and the estimate of the gap."""
        if state.position >= state.awake:
            self._begin_sweep(batch, state)
        part = state.part(batch)
        order = part.order[state.position : min(state.position + chunk_length(batch, team, state.shared), state.awake)]
        visit(problem, part, state, order, team)
        if state.copies is not None:
            state.alpha[state.copies.chosen[order]] = part.alpha[order]
        state.position += order.shape[0]
        state.worth_evaluating = False
        if state.position >= state.awake:
            self._end_sweep(problem, batch, state)
        return state

    def _begin_sweep(self, batch: Batch, state: DualState) -> None:
        """Choose what to sweep over, and in which order."""
        if state.copied_sweeps > 0:
            state.copied_sweeps -= 1
        elif state.copies is not None:
            state.copies = None
        elif state.foreseen:
            copy_moving(batch, state, state.nap < LONGEST_NAP, FORESEEN_SHARE, FORESEEN_SWEEPS)
        elif self.shrinking and state.epoch > 2.0:
            copy_moving(batch, state, state.nap == 0, COPIED_SHARE, COPIED_SWEEPS)
        part = state.part(batch)
        m = part.alpha.shape[0]
        state.awake = interleave(shuffled_runs(state.rng, m), run_length(m), m, part.sleep, part.order)
        state.position = 0
        state.sweep_gap = 0.0

    def _end_sweep(self, problem: Problem, batch: Batch, state: DualState) -> None:
        state.epoch += 1.0
        promising = close_sweep(problem, batch, state)
        if state.awake == 0:
            state.worth_evaluating, state.copied_sweeps = state.foreseen > 0, 0
            return
        if state.copies is not None and not state.foreseen:  # the other rows have a say too
            state.copied_sweeps = 0 if promising else state.copied_sweeps
            return
        others = state.copies is not None and state.copied_sweeps == 0
        state.worth_evaluating = promising or others or state.work >= WORK_PER_EVALUATION * batch.y.shape[0]
        state.finished = not (state.certify or state.rough) and state.estimate <= state.target

    def evaluate(self, problem: Problem, batch: Batch, state: DualState, team: Team) -> Evaluation:
        """P at the running mean of w, with the best b if it is free; D at α."""
        if state.target < TRUST_V_UNTIL:
            state.v = team.combine(batch, state.alpha)
        dual = problem.lower_bound(batch, state.alpha, team, state.v)
        w, b = own_point(problem, state)
        b, primal, scores = problem.evaluate_primal(batch, w, b, team)
        scores += b
        state.scores = scores
        evaluation = judged(state, w, b, primal, dual)
        if state.foreseen and relative_gap(primal, dual) > state.target:
            foresee(batch, problem.loss, scores, SLACK, state.alpha, state.sleep, state.nap)
            state.foreseen, state.copies, state.copied_sweeps = state.foreseen - 1, None, 0
        return evaluation

    def iterate(self, problem: Problem, batch: Batch, state: DualState) -> tuple[Vector, float]:
        """The running mean of w, and b (if free, its centre)."""
        return own_point(problem, state)

    def hand_over(self, problem: Problem, batch: Batch, state: DualState) -> Point:
        """α, and the running mean of w."""
        w, b = own_point(problem, state)
        return Point(state.alpha, b, w)


def copy_moving(batch: Batch, state: DualState, moving: Vector, share: float, sweeps: int) -> None:
    """Have the next sweeps go over copies of the rows that move, with what is kept of each, if these are few."""
    chosen = np.flatnonzero(moving)
    if not 0 < stored_bytes(batch.rows, chosen) <= share * stored_bytes(batch.rows):
        return
    part = Part(
        batch=take_batch(batch, chosen),
        alpha=state.alpha[chosen],
        norms=state.norms[chosen],
        sleep=state.sleep[chosen],
        nap=state.nap[chosen],
        order=room_for_order(chosen.shape[0]),
    )
    state.copies, state.copied_sweeps = Copies(chosen, part), sweeps - 1


def sharpen(problem: Problem, batch: Batch, alpha: Vector, centre: float, sweeps: int, team: Team) -> Vector:
    """A dual point better than α, by some sweeps of dual ascent around the intercept `centre`."""
    solver = DualAscent(shrinking=False)
    run = Run(target=TRUST_V_UNTIL, certify=True, max_iter=sweeps, seed=0)
    state = solver.start(problem, batch, run, team, Point(alpha, centre))
    while state.epoch < sweeps:
        state = solver.advance(problem, batch, state, team)
    found: Vector = state.alpha
    return found
