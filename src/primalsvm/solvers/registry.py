"""The solvers, and what their states consist of. A new solver is a file of this package, and a line here.

Classes whose objects are part of a state have a line in `STATES`, so that checkpoints can hold them.
"""

from typing import Any

from primalsvm.solvers.ascent import Shrinking, VisitedRows
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.block_ascent import BlockAscent, BlockState
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.cutting_planes import CuttingPlanes, CuttingState
from primalsvm.solvers.dual_ascent import DualAscent, DualState, WorkingSet
from primalsvm.solvers.interior_point import InteriorPoint, InteriorState
from primalsvm.solvers.joint_ascent import Group, JointAscent, JointState
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton, NewtonState, Sample, View
from primalsvm.solvers.pair_pegasos import PairPegasos
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.planes import Planes
from primalsvm.solvers.protocol import Member, Point, Run
from primalsvm.solvers.proximal import Proximal
from primalsvm.solvers.sampling import Sampler
from primalsvm.solvers.screening import PathMemory, PathStart
from primalsvm.solvers.sequence import Mark, Progress, SequenceState
from primalsvm.solvers.several import Left, SeveralState
from primalsvm.solvers.steps import Iterate, Settings, Tail
from primalsvm.solvers.stochastic import Bucket, Plan, StochasticState
from primalsvm.solvers.watched import Watched

NAMED_SOLVERS: dict[str, Any] = {  # by the names that users may give
    "asset": Asset,
    "dual_ascent": DualAscent,
    "interior_point": InteriorPoint,
    "newton": Newton,
    "pegasos": Pegasos,
}
OTHERS = (BlockAscent, CuttingPlanes, JointAscent, KernelPegasos, PairPegasos, Watched)
SOLVERS: dict[str, type] = {  # by the names of their classes, for files
    kind.__name__: kind for kind in (*NAMED_SOLVERS.values(), *OTHERS)
}
STATES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(DualState, BlockState, WorkingSet, VisitedRows, Shrinking),
        *(JointState, Group),
        *(NewtonState, View, Sample, Proximal, Curvature),
        InteriorState,
        *(StochasticState, Plan, Sampler, Settings, Iterate, Tail, Bucket),
        *(CuttingState, Planes),
        *(SeveralState, SequenceState, Progress, Mark, Left),
        *(Run, Member, Point, PathStart, PathMemory),
    )
}
