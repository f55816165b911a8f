"""Which solver: the one place that decides, by counting operations (`costs`), and what follows if that was wrong.

    "auto"   dual ascent   few sweeps tell whether it will get there; cheap rows, many features, strong regularisation
             Newton        the next one, where its systems are cheap; first, where a look by dual ascent costs too much
             interior point  robust, at a higher cost: unscaled features, separable rows, weak regularisation

Each hands its point over to the next when its progress says that it will take longer than that one would
(`sequence`). The choice depends on the shape of the rows, the loss and the work done, never on the clock, the load or
the memory at hand: the same fit uses the same solvers everywhere.
"""

import math

from primalsvm.losses import Loss
from primalsvm.objective import Problem
from primalsvm.options import check_choice
from primalsvm.solvers import costs
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.solvers.costs import LARGEST_FACTOR, Size
from primalsvm.solvers.drive import SMALL
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.interior_point import InteriorPoint
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Solver
from primalsvm.solvers.sequence import SolverSequence, Stage

FEW_FEATURES, DENSE_FEATURES = 256, 512  # of sparse rows and of dense ones, for which BLAS is fast
ROW_BYTES = 90  # that Newton keeps of each row (measured)
LOOK = 2.0  # sweeps of dual ascent before its first mark; a forecast takes two
LOOK_SHARE = 0.15  # of what the next solver is expected to take: a look by dual ascent may cost so much
HOPE = 1.0  # times the expected operations of the next solver: how much work dual ascent may still seem to need,
WORTH_TRYING = 0.5  # times the interior-point method's operations: what Newton may be expected to take
DOUBT = 0.7  # … and how much Newton may take: its progress is no guide to what is left


def choose(solver: "str | Solver", size: Size, loss: Loss, *, mapped: bool = False) -> Solver:
    """The solver object of a name, or the object itself.

    Parameters
    ----------
    solver : "auto", "asset", "dual_ascent", "interior_point", "newton", "pegasos", or a solver object
    size : of the rows that it is for
    loss : the interior-point method is for piecewise quadratic ones
    mapped : the rows are features of a kernel: they vary together, so that dual ascent crawls, and where they are many
        they are kept in a form for passes over all of them

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> [stage.solver.name for stage in choose("auto", Size(20_000, 100, 2_000_000, False), Hinge()).stages]
    ['dual_ascent', 'newton', 'interior_point']
    >>> choose("newton", Size(5, 3, 15, False), Hinge())
    Newton()
    """
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "advance"):
            raise TypeError(f"solver must be a name or a solver object such as DualAscent(), got {solver!r}")
        return solver
    by_name: dict[str, Solver] = {
        "asset": Asset(),
        "dual_ascent": DualAscent(),
        "interior_point": InteriorPoint(),
        "newton": Newton(),
        "pegasos": Pegasos(),
    }
    check_choice("solver", solver, ("auto", *by_name), "or give a solver object")
    return plan(size, loss, mapped=mapped) if solver == "auto" else by_name[solver]


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


def plan_features(solver: "str | Solver", m: int, d: int, problem: Problem) -> tuple[Solver, bool]:
    """The solver for m rows of d features of a kernel, and whether it only makes passes over all of them.

    Dual ascent is tried for the one-class problem: its λ is ν, never weak (512 features: a tenth of Newton's time).
    """
    chosen = choose(solver, Size(m, d, m * d, False), problem.loss, mapped=not problem.tilt)
    return chosen, all(stage.solver.name in ("newton", "interior_point") for stage in stages_of(chosen))


def plan_out_of_core(solver: "str | Solver", size: Size, loss: Loss, budget: float) -> tuple[Solver, bool]:
    """The solver for rows that are in files, as they do not fit in memory, and whether it reads them there by blocks.

    Newton reads rows in order, which a mapping of the files serves as well as any way does, but keeps some numbers of
    each row. Coordinate ascent goes over blocks.
    """
    if solver == "auto":
        few = size.d <= few_features(size) <= size.m and ROW_BYTES * size.m <= budget
        return (Newton(), False) if few else (BlockAscent(), True)
    chosen = choose(solver, size, loss)
    if isinstance(chosen, InteriorPoint | SolverSequence):
        raise ValueError(f"solver={chosen!r} needs the rows in memory, and those of this source are too many")
    if isinstance(chosen, DualAscent):
        return BlockAscent(), True
    return chosen, not isinstance(chosen, Newton)


def few_features(size: Size) -> int:
    """Up to how many features Newton's systems cost about as much as a few sweeps of dual ascent."""
    return FEW_FEATURES if size.sparse else DENSE_FEATURES


def stages_of(solver: Solver) -> tuple[Stage, ...]:
    """Those of a sequence; any other solver is one stage."""
    return solver.stages if isinstance(solver, SolverSequence) else (Stage(solver),)


def fits_interior(size: Size, loss: Loss) -> bool:
    """Whether the interior-point method is for this loss and this many rows and features."""
    return hasattr(loss, "pieces") and min(size.m, size.d) < LARGEST_FACTOR
