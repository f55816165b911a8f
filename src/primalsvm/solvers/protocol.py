"""What the driver expects of a solver: frozen options, an explicit state, and a few methods.

An algorithm for one problem is a `Solver`. The driver runs a `JointSolver`, which is for K problems on the same rows;
`several.Several` makes one of a `Solver`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from primalsvm.data import Dataset, Handle, Vector
from primalsvm.objective import Evaluation, Intercept


class Run(NamedTuple):
    """The options of a run that solvers may use."""

    target: float  # relative gap to reach
    certify: bool
    max_iter: int  # epochs at most
    seed: int
    shared: bool = False  # other problems take turns on the same rows: chunks should fit the cache


class Point(NamedTuple):
    """A point that a solver may start from: handed over by another solver, or known from elsewhere."""

    alpha: Handle  # a dual point
    b: float
    w: Vector | None = None  # None: w(α)


@dataclass(frozen=True)
class Traits:
    """What a solver needs, and what it can do.

    Parameters
    ----------
    rows : how it reads rows: "block" one by one in any order, from memory; "take" copies of some rows at a time;
        "passes" in passes over all of them
    precise : small problems can be solved to machine precision
    fixed_steps : it decides by itself when to end, whatever `tol` and `max_iter` are
    planned : its steps depend on `tol` and `max_iter`, so a run with other values cannot go on from a checkpoint
    simultaneous : all problems advance at once, so they are handed over together
    intercepts : the kinds of intercept that it supports; other problems are refused
    """

    rows: Literal["block", "take", "passes"]
    precise: bool = False
    fixed_steps: bool = False
    planned: bool = False
    simultaneous: bool = False
    intercepts: tuple[Intercept, ...] = ("none", "penalized", "free")


@dataclass(kw_only=True)
class SolverState:
    """The fields of a solver's state that the driver reads, and `target`, which it sets.

    A state is picklable and is the solver's only memory.
    """

    epoch: float = 0.0
    steps: int = 0
    operations: float = 0.0  # work so far (`costs`); 0 or inf: not counted: the driver limits epochs
    finished: bool = False  # the solver has ended its work, or only rounding is left
    worth_evaluating: bool = False  # the gap may have reached the target, or an evaluation is due
    target: float = 0.0  # relative gap to reach


class Solver(Protocol):
    """An algorithm for one problem.

    `start` makes a state; `advance` takes a state and returns it one chunk of work later. The objective is of the kind
    that the solver is for: mostly `Objective`, sometimes a kind of its own.

    Further methods are optional: `observe(objective, state, evaluation)` stores what the solver needs of an evaluation;
    `hand_over(objective, state)` gives the `Point` that another solver may start from; `path_start(state, memory, lam)`
    gives the start at the next λ of a path, if that is more than the last state, and a new memory. A state may have
    `release()`, which drops what a later run does not need.
    """

    @property
    def name(self) -> str:
        """How it is called in the history."""

    @property
    def traits(self) -> Traits:
        """What it needs, and what it can do."""

    def start(self, objective: Any, run: Run, previous: Any = None) -> Any:
        """A fresh state, or one that goes on from a previous state or a `Point` where that fits."""

    def advance(self, objective: Any, state: Any) -> Any:
        """One chunk of work. The arrays in the state are updated in place."""

    def evaluate(self, objective: Any, state: Any) -> Evaluation:
        """The solution that the state stands for, with P and D. The state is not changed.

        With a free intercept (`objective.free`) the solver's own b is not accurate enough for a certificate: take w, b
        and P from `objective.evaluate_primal(w, b)`, which finds the best b; `objective.lower_bound` moves α onto
        Σ cᵢ αᵢ = 0.
        """

    def iterate(self, objective: Any, state: Any) -> tuple[Vector, float]:
        """The solver's own point, at no cost in passes over the rows; `evaluate` may find a better b, or w."""


@dataclass
class Member(SolverState):
    """One of several problems between two chunks."""

    primal: float = float("inf")  # P, estimated from the last sweeps
    dual: float = 0.0  # D, estimated likewise
    estimate: float = float("inf")  # the relative gap of these two


@dataclass(kw_only=True)
class JointSolverState:
    """The fields of the state of a `JointSolver` that the driver, or a sequence of solvers, reads."""

    target: float  # relative gap to reach
    members: list[Any]  # of each problem a `SolverState`, such as a `Member`; None: not started yet, or closed
    waiting: dict[int, Any] = field(default_factory=dict)  # problems that are not started yet, with previous states


class ObjectiveSequence(Protocol):
    """K problems on the same rows."""

    @property
    def data(self) -> Dataset:
        """The rows."""

    def __len__(self) -> int: ...

    def __getitem__(self, k: int) -> Any:
        """The objective of problem k."""

    def trivial_bound(self, k: int) -> float:
        """A lower bound of at least this shows that w* = 0 in problem k; inf unless it has a ν."""

    def separate(self, k: int) -> Any:
        """The objective of problem k, on one thread if other threads solve other problems."""

    def forget(self, k: int) -> None:
        """Drop what is kept for problem k, which has ended."""


class JointSolver(Protocol):
    """A solver of K problems on the same rows; k counts the problems.

    Its state is a `JointSolverState`. `hand_over(objectives, state, k)` is optional. `close` is what tells it from a
    `Solver` (`several.as_joint`).
    """

    @property
    def name(self) -> str:
        """How it is called in the history."""

    @property
    def traits(self) -> Traits:
        """What it needs, and what it can do."""

    def start(self, objectives: Any, run: Run, chosen: Sequence[int], previous: Sequence[Any]) -> Any:
        """A state for the chosen problems, each from its previous state (None: without one)."""

    def advance(self, objectives: Any, state: Any) -> Any:
        """One chunk of work for the problems that are open."""

    def evaluate(self, objectives: Any, state: Any, chosen: Sequence[int]) -> list[Evaluation]:
        """For each chosen problem, the solution that the state stands for, with P and D. The state is not changed."""

    def iterate(self, objectives: Any, state: Any, k: int) -> tuple[Vector, float]:
        """The solver's own point of a problem, at no cost in passes over the rows."""

    def observe(self, objectives: Any, state: Any, k: int, evaluation: Evaluation) -> None:
        """Store what the solver needs of an evaluation."""

    def close(self, objectives: Any, state: Any, k: int) -> tuple[Any, Any]:
        """End a problem: the solver that it ended with, and the state that a later run may start from."""
