"""Which solver: the one place that decides, by counting operations (`costs`), and what follows if that was wrong.

    "auto"   dual ascent   few sweeps tell whether it will get there; cheap rows, many features, strong regularisation
             Newton        the next one, where its systems are cheap; first, where a look by dual ascent costs too much
             interior point  robust, at a higher cost: unscaled features, separable rows, weak regularisation

Each hands its point over to the next when its progress says that it will take longer than that one would
(`sequence`). The choice depends on the shape of the rows, the loss and the work done, never on the clock, the load or
the memory at hand: the same fit uses the same solvers everywhere.
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
from primalsvm.solvers.registry import NAMED_SOLVERS
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.several import Several, as_joint
from primalsvm.solvers.stops import SMALL

FEW_FEATURES, DENSE_FEATURES = 256, 512  # of sparse rows and of dense ones, for which BLAS is fast
ROW_BYTES = 90  # that Newton keeps of each row (measured)
LOOK = 2.0  # sweeps of dual ascent before its first mark; a forecast takes two
LOOK_SHARE = 0.15  # of what the next solver is expected to take: a look by dual ascent may cost so much
HOPE = 1.0  # times the expected operations of the next solver: how much work dual ascent may still seem to need,
WORTH_TRYING = 0.5  # times the interior-point method's operations: what Newton may be expected to take
DOUBT = 0.7  # … and how much Newton may take: its progress is no guide to what is left


def choose(
    solver: Any, size: Size, loss: Loss, *, mapped: bool = False, count: int = 1, jointly: bool = False
) -> JointSolver:
    """The solver of a name, or of an object, for K problems.

    Parameters
    ----------
    solver : "auto", "asset", "dual_ascent", "interior_point", "newton", "pegasos", or a solver object
    size : of the rows that it is for
    loss : the interior-point method is for piecewise quadratic ones
    mapped : the rows are features of a kernel: they vary together, so that dual ascent crawls, and where they are many
        they are kept in a form for passes over all of them
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
    chosen = plan(size, loss, mapped=mapped) if isinstance(solver, str) and solver == "auto" else solver_of(solver)
    if count > 1 and jointly:
        chosen = with_joint_stage(chosen, size, count)
    found: JointSolver = as_joint(chosen)
    return found


def solver_of(solver: Any) -> Any:
    """The solver object of a name, or the object itself."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "advance"):
            raise TypeError(f"solver must be a name or a solver object such as DualAscent(), got {solver!r}")
        return solver
    check_choice("solver", solver, ("auto", *NAMED_SOLVERS), "or give a solver object")
    return NAMED_SOLVERS[solver]()


def plan(size: Size, loss: Loss, *, mapped: bool = False) -> SolverSequence:
    """The solvers to try, in this order, each with its patience."""
    newton = costs.newton(size)
    interior = costs.interior_point(size) if fits_interior(size, loss) else math.inf
    look = LOOK * costs.visits(size)
    stages = []
    small = size.m * size.d < SMALL
    if look <= LOOK_SHARE * min(newton, interior) and not mapped and not small:
        stages.append(Stage(DualAscent(), HOPE * min(newton, interior), look))
    if newton <= WORTH_TRYING * interior:
        stages.append(Stage(Newton(), DOUBT * interior))
    if math.isfinite(interior):
        stages.append(Stage(InteriorPoint()))
    return SolverSequence(tuple(stages))


def with_joint_stage(solver: Any, size: Size, count: int) -> Any:
    """Some sweeps of dual ascent on all problems at once, before each goes on alone.

    A sequence that begins with another solver gets some sweeps too, unless the problems are small: over all problems
    they cost less than its first steps for each of them.
    """
    look = LOOK * costs.joint_visits(size, count)
    if not isinstance(solver, SolverSequence):
        if solver.name != DualAscent.name:
            return solver
        return SolverSequence((Stage(JointAscent(), first_mark=look), Stage(solver)))
    first = solver.stages[0]
    if first.solver.name != DualAscent.name and size.m * size.d < SMALL:
        return solver
    return SolverSequence((Stage(JointAscent(), first.patience, look), *solver.stages))


def choose_mapped(solver: Any, m: int, d: int, problem: Problem, count: int, jointly: bool) -> JointSolver:
    """The solver for m rows of d features of a kernel.

    Dual ascent is tried for the one-class problem: its λ is ν, never weak (512 features: a tenth of Newton's time).
    """
    size = Size(m, d, m * d, False)
    return choose(solver, size, problem.loss, mapped=not problem.tilt, count=count, jointly=jointly)


def choose_out_of_core(solver: Any, size: Size, loss: Loss, budget: float) -> tuple[JointSolver, bool]:
    """The solver for rows in files, as they do not fit in memory, and whether it reads blocks of them by itself.

    Newton makes passes over all rows, which a mapping of the files serves as well as any way does, but keeps some
    numbers of each row. Coordinate ascent goes over blocks.
    """
    if isinstance(solver, str) and solver == "auto":
        few = size.d <= few_features(size) <= size.m and ROW_BYTES * size.m <= budget
        return (Several(Newton()), False) if few else (Several(BlockAscent()), True)
    chosen = solver_of(solver)
    if chosen.name == DualAscent.name:
        return Several(BlockAscent()), True
    if chosen.name == InteriorPoint.name or chosen.traits.rows == "block":
        raise ValueError(f"solver={chosen!r} needs the rows in memory, and those of this source are too many")
    return as_joint(chosen), chosen.traits.rows == "take"


def few_features(size: Size) -> int:
    """Up to how many features Newton's systems cost about as much as a few sweeps of dual ascent."""
    return FEW_FEATURES if size.sparse else DENSE_FEATURES


def fits_interior(size: Size, loss: Loss) -> bool:
    """Whether the interior-point method is for this loss and this many rows and features."""
    return hasattr(loss, "pieces") and min(size.m, size.d) < LARGEST_FACTOR
