"""The solvers, and the classes of their states. A new solver is a file of this package, and a line here.

Users may give the `name` of those that solve any problem without more options (`named_solvers`). The classes of a
state's parts have a line in `STATES`, so that checkpoints can hold them.
"""

from typing import Any

from primalsvm.losses.base import QuadraticPiece
from primalsvm.solvers.ascent import Shrinking, VisitedRows
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.block_ascent import BlockAscent, BlockState
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.cutting_planes import CuttingPlanes, CuttingState
from primalsvm.solvers.dual_ascent import DualAscent, DualState, WorkingSet
from primalsvm.solvers.interior_point import InteriorPoint, InteriorState
from primalsvm.solvers.joint_ascent import Group, JointAscent, JointState
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton, NewtonState, RowState, Sample
from primalsvm.solvers.nu_working_sets import NuWorkingSets
from primalsvm.solvers.pair_pegasos import PairPegasos
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.planes import Planes
from primalsvm.solvers.protocol import Member, Point, Run
from primalsvm.solvers.proximal import Proximal
from primalsvm.solvers.sampling import Sampler
from primalsvm.solvers.screening import PathMemory, PathStart
from primalsvm.solvers.sequence import Mark, SequenceState, StageProgress
from primalsvm.solvers.several import LastStage, SeveralState
from primalsvm.solvers.steps import Iterate, Settings, Tail
from primalsvm.solvers.stochastic import Bucket, RunOptions, StochasticState
from primalsvm.solvers.watched import Watched
from primalsvm.solvers.working_sets import WorkingSets, WorkingSetState

# These are not chosen by name.
SPECIAL = (
    BlockAscent,
    CuttingPlanes,
    JointAscent,
    KernelPegasos,
    NuWorkingSets,
    PairPegasos,
    Watched,
    WorkingSets,
)
SOLVERS: dict[str, Any] = {  # by the names of their classes
    kind.__name__: kind for kind in (Asset, DualAscent, InteriorPoint, Newton, Pegasos, *SPECIAL)
}
STATES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(DualState, BlockState, WorkingSet, VisitedRows, Shrinking),
        *(JointState, Group),
        *(NewtonState, RowState, Sample, Proximal, Curvature),
        *(InteriorState, WorkingSetState, QuadraticPiece),
        *(StochasticState, RunOptions, Sampler, Settings, Iterate, Tail, Bucket),
        *(CuttingState, Planes),
        *(SeveralState, SequenceState, StageProgress, Mark, LastStage),
        *(Run, Member, Point, PathStart, PathMemory),
    )
}


def named_solvers() -> dict[str, Any]:
    """The solvers by the names that users may give."""
    return {kind.name: kind for kind in SOLVERS.values() if kind not in SPECIAL}
