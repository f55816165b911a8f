"""The choice of solvers, by counting operations (`costs`).

    "auto"   dual ascent     for cheap rows, many features, strong regularisation; a few sweeps show whether it will
                             reach the target in time
             Newton          where its systems are cheap; it comes first where a trial of dual ascent costs too much
             interior point  robust, at a higher cost: unscaled features, separable rows, weak regularisation

A solver hands its point over to the next one when its progress suggests that it needs more operations than the next
one (`sequence`). The choice depends on the shape of the rows, the loss and the work done, never on the clock, the load
or the memory at hand: the same fit uses the same solvers everywhere.
"""

import math
from typing import Any

from primalsvm.losses import Loss
from primalsvm.objective import Problem
from primalsvm.options import check_choice
from primalsvm.solvers import costs
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.solvers.costs import LARGEST_FACTOR, Size
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.interior_point import InteriorPoint
from primalsvm.solvers.joint_ascent import JointAscent
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.protocol import JointSolver
from primalsvm.solvers.registry import named_solvers
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.several import Several, as_joint
from primalsvm.solvers.stops import SMALL_PROBLEM

# Up to this many features, of sparse and of dense rows, Newton's systems cost about as much as a few sweeps of dual
# ascent. For dense rows BLAS is fast.
FEW_FEATURES, DENSE_FEATURES = 256, 512
# Newton keeps this many bytes of each row (measured).
ROW_BYTES = 90
# Dual ascent makes this many sweeps before its first mark. A forecast needs two marks.
TRIAL_SWEEPS = 2.0
# The first mark comes after this share of the next solver's expected operations, if that is later. (105 classes of text
# at C = 100: after three sweeps P still rises, and half of the forecasts were 10⁴ times too long.)
TRIAL_OF_NEXT = 0.03
# … or after this share of the interior-point method's, whose number of steps varies more. (One of 105 classes of text
# at C = 10⁴ takes it 20 steps, twice as many as expected and ten times as long as dual ascent.)
TRIAL_OF_INTERIOR = 0.1
# A trial of dual ascent may cost this share of the operations that the next solver is expected to take.
TRIAL_SHARE = 0.15
# Dual ascent goes on while its forecast is below this multiple of what the next solver is expected to take.
ASCENT_BUDGET = 1.0
# Newton is tried if its expected operations are at most this multiple of the interior-point method's.
NEWTON_THRESHOLD = 0.5
# Newton may use this multiple of the interior-point method's expected operations. There is no forecast: its progress
# does not show how much work is left.
NEWTON_BUDGET = 0.7


def choose(
    solver: Any, size: Size, loss: Loss, *, mapped: bool = False, count: int = 1, jointly: bool = False
) -> JointSolver:
    """The solver of a name, or of an object, for K problems.

    Parameters
    ----------
    solver : "auto", "asset", "dual_ascent", "interior_point", "newton", "pegasos", or a solver object
    size : of the rows that it is for
    loss : the interior-point method is for piecewise quadratic ones
    mapped : the rows are features of a kernel: these are correlated, so dual ascent is slow, and large ones are kept in
        a form that is read in passes only
    count : K
    jointly : whether dual ascent may go over all problems at once: it needs a block, and a certificate

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> [stage.solver.name for stage in choose("auto", Size(20_000, 100, 2_000_000, False), Hinge()).stages]
    ['dual_ascent', 'newton', 'interior_point']
    >>> choose("newton", Size(5, 3, 15, False), Hinge())
    Several(solver=Newton())
    """
    chosen = (
        default_sequence(size, loss, mapped=mapped)
        if isinstance(solver, str) and solver == "auto"
        else solver_of(solver)
    )
    if count > 1 and jointly:
        chosen = with_joint_stage(chosen, size, count)
    return as_joint(chosen)


def solver_of(solver: Any) -> Any:
    """The solver object of a name, or the object itself."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "advance"):
            raise TypeError(f"solver must be a name or a solver object such as DualAscent(), got {solver!r}")
        return solver
    known = named_solvers()
    check_choice("solver", solver, ("auto", *known), "or give a solver object")
    return known[solver]()


def default_sequence(size: Size, loss: Loss, *, mapped: bool = False) -> SolverSequence:
    """The solvers to try, in this order, each with its budget."""
    newton = costs.newton(size)
    fits_interior = hasattr(loss, "quadratic_pieces") and min(size.m, size.d) < LARGEST_FACTOR
    interior = costs.interior_point(size) if fits_interior else math.inf
    trial = TRIAL_SWEEPS * costs.sweep(size)
    small = size.m * size.d < SMALL_PROBLEM
    stages = []
    if newton <= NEWTON_THRESHOLD * interior:
        stages.append(Stage(Newton(), NEWTON_BUDGET * interior))
    if math.isfinite(interior):
        stages.append(Stage(InteriorPoint()))
    if trial <= TRIAL_SHARE * min(newton, interior) and not mapped and not small:
        budget = ASCENT_BUDGET * min(newton, interior)
        stages.insert(0, Stage(DualAscent(), budget, max(trial, trial_of(stages[0].solver) * budget)))
    return SolverSequence(tuple(stages))


def trial_of(following: Any) -> float:
    """The share of the operations of the following solver after which the first mark comes."""
    return TRIAL_OF_INTERIOR if following.name == InteriorPoint.name else TRIAL_OF_NEXT


def with_joint_stage(solver: Any, size: Size, count: int) -> Any:
    """Some sweeps of dual ascent on all problems at once, before each goes on alone.

    A sequence that begins with another solver gets some sweeps too, unless the problems are small: joint sweeps cost
    less than the first steps of that solver on each problem.
    """
    trial = TRIAL_SWEEPS * costs.joint_sweep(size, count)
    if not isinstance(solver, SolverSequence):
        if solver.name != DualAscent.name:
            return solver
        return SolverSequence((Stage(JointAscent(), first_mark=trial), Stage(solver)))
    first = solver.stages[0]
    if first.solver.name != DualAscent.name and size.m * size.d < SMALL_PROBLEM:
        return solver
    if first.solver.name == DualAscent.name and len(solver.stages) > 1:
        trial = max(trial, trial_of(solver.stages[1].solver) * first.budget)
    return SolverSequence((Stage(JointAscent(), first.budget, trial), *solver.stages))


def choose_mapped(solver: Any, m: int, d: int, problem: Problem, count: int, jointly: bool) -> JointSolver:
    """The solver for m rows of d features of a kernel.

    Dual ascent is tried for the one-class problem, because its λ = ν is never small (512 features: a tenth of
    Newton's time).
    """
    size = Size(m, d, m * d, False)
    return choose(solver, size, problem.loss, mapped=not problem.nu, count=count, jointly=jointly)


def choose_out_of_core(solver: Any, size: Size, budget: float) -> JointSolver:
    """The solver for rows that stay in files, because they do not fit in memory.

    Newton makes passes over all rows, for which mapped files are as good as any other way of reading, but keeps some
    numbers of each row. Coordinate ascent reads blocks.
    """
    if isinstance(solver, str) and solver == "auto":
        most = FEW_FEATURES if size.sparse else DENSE_FEATURES
        few = size.d <= most <= size.m and ROW_BYTES * size.m <= budget
        return Several(Newton() if few else BlockAscent())
    chosen = solver_of(solver)
    if chosen.name == DualAscent.name:
        return Several(BlockAscent())
    if chosen.name == InteriorPoint.name or chosen.traits.rows == "block":
        raise ValueError(f"solver={chosen!r} needs the rows in memory, and those of this source are too many")
    return as_joint(chosen)
