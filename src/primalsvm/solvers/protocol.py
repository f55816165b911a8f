"""What the driver expects of a solver: frozen options, an explicit state, and four verbs."""

from typing import Any, NamedTuple, Protocol

from primalsvm.objective import Evaluation
from primalsvm.rows import Batch, Vector
from primalsvm.team import Team


class Run(NamedTuple):
    """What a solver may know of the run it is part of."""

    target: float  # relative gap to reach
    certify: bool
    max_iter: int  # epochs at most
    seed: int
    shared: bool = False  # other problems take turns on the same rows: chunks should fit the cache


class Point(NamedTuple):
    """Where a solver may begin: what another one hands over, or what is known from elsewhere."""

    alpha: Vector  # a dual point
    b: float
    w: Vector | None = None  # None: w(α)


class State(Protocol):
    """What the driver reads of a solver's state. A state is picklable and is the solver's only memory."""

    epoch: float
    steps: int
    operations: float  # work so far (`costs`); inf: not counted
    target: float  # relative gap to reach
    finished: bool  # the solver has done all it was asked to do
    worth_evaluating: bool  # the gap may have reached the target, or an evaluation is due


class Solver(Protocol):
    """A solver: `start` makes a state, `advance` consumes one and returns it one chunk of rows later.

    The problem is of the kind that the solver is for: most know `Problem`, some an objective of its own.
    """

    @property
    def name(self) -> str:
        """What the history calls it."""

    @property
    def precise(self) -> bool:
        """Whether small problems can be solved to machine precision."""

    @property
    def self_paced(self) -> bool:
        """Whether the solver runs to an end of its own, whatever `tol` and `max_iter` say."""

    def start(self, problem: Any, batch: Batch, run: Run, team: Team, previous: Any = None) -> Any:
        """A fresh state, or one that goes on from a previous state where that fits."""

    def advance(self, problem: Any, batch: Batch, state: Any, team: Team) -> Any:
        """One chunk of work. The arrays inside the state are updated in place."""

    def evaluate(self, problem: Any, batch: Batch, state: Any, team: Team) -> Evaluation:
        """The solution that the state stands for, with P and D."""

    def iterate(self, problem: Any, batch: Batch, state: Any) -> tuple[Vector, float]:
        """The solver's own point, at no cost in passes over the rows; `evaluate` may find a better b, or w."""
