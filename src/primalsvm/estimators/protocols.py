"""The two parts of an estimator, as `pipeline.fit` and `streams.partial_fit` see them.

A `Task` knows what y is, and nothing of features. `Features` know what scores are inner products with, and of a task
only the problems, `Encoded`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, Protocol

import numpy.typing as npt

from primalsvm.data import Block, Dataset, InMemory, ThreadPool, Vector
from primalsvm.estimators.encoders import Encoded, Units
from primalsvm.estimators.loading import Rows
from primalsvm.objective import Problem
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import JointSolver


class Task(Protocol):
    """What y is, and the problems that follow from it."""

    checks: ClassVar[dict[str, Any]]  # options of scikit-learn's validation of X and y
    labelled: ClassVar[bool]  # whether there is a y
    numeric: ClassVar[bool]  # whether y must hold numbers

    def check_parameters(self, estimator: Any) -> None:
        """Raise an error if the parameters of the task are invalid."""

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        """The problems to solve."""

    def units(self, encoded: Encoded, data: Dataset) -> Units | None:
        """The units to solve the problems in; None: those of y."""


class StreamTask(Task, Protocol):
    """A task that can be learnt from a stream."""

    def problem(self, estimator: Any, total_weight: float) -> Problem:
        """The definition of each problem."""

    def encode_stream(
        self, y: npt.NDArray[Any], named: npt.ArrayLike | None, known: npt.NDArray[Any] | None
    ) -> tuple[Vector, npt.NDArray[Any] | None]:
        """Y of a batch, and all classes: those `known` from earlier batches, else those `named` by the user or in y."""

    def stream_weights(
        self, estimator: Any, classes: Any, Y: Vector, given: Vector, so_far: Vector
    ) -> tuple[Vector, Vector]:
        """The weights of the rows of a batch, and Σc of each class so far."""

    def stream_errors(self, scores: Vector, Y: Vector) -> Vector:
        """The error of each row."""


class FittedFeatures(Protocol):
    """φ: `LinearFeatures`, `MappedRows` or `KernelMatrixRows`."""

    @property
    def certifies(self) -> bool:
        """Whether P is convex, so that D is a lower bound of P*."""

    @property
    def kept(self) -> Any:
        """What a warm start compares, and may continue with."""

    def arrange(self, estimator: Any, training: Encoded) -> Encoded:
        """The problems in the form that these features are for: several classes one-vs-rest or one-vs-one."""

    def choose(self, estimator: Any, rows: Rows, training: Encoded, jointly: bool = False) -> JointSolver:
        """The solver."""

    def store(self, estimator: Any, rows: Rows, training: Encoded, reads: str, resources: ExitStack) -> Dataset:
        """φ(x) of the training rows, in the form that a solver with `Traits.rows == reads` needs."""

    def attributes(self, vectors: Sequence[Vector], encoded: Encoded | None = None) -> dict[str, Any]:
        """The fitted attributes that follow from the weights of each problem."""


class StreamFeatures(FittedFeatures, Protocol):
    """φ that can be computed batch by batch: all but `KernelMatrixRows`."""

    @property
    def unit_length(self) -> bool:
        """Whether E‖φ(x)‖² = 1 for every x."""

    def weights(self, estimator: Any) -> Vector:
        """w of a fitted estimator, in the space of φ."""

    def of_stream(self, block: Block, position: int) -> Any:
        """φ(x) of a batch, as a block; `position` is the number of its first row."""


class Features(Protocol):
    """What scores are inner products with: `LinearFeatures` or `KernelFeatures`."""

    @property
    def reads_files(self) -> bool:
        """Whether rows that exceed the memory budget may stay in their files."""

    @property
    def scalable(self) -> bool:
        """Whether scaling the features of X can make the problem easier."""

    @property
    def stream_solver(self) -> Asset | Pegasos:
        """The default solver of `partial_fit`."""

    def check_parameters(self, estimator: Any) -> None:
        """Raise an error if the parameters of the features are invalid."""

    def pairwise(self, estimator: Any) -> bool:
        """Whether X is a kernel matrix."""

    def fit(self, estimator: Any, rows: Rows, encoded: Encoded | None, seed: int, previous: Any) -> FittedFeatures:
        """φ, possibly that of a `previous` fit. Without `encoded` it does not depend on the targets."""

    def begin_stream(self, estimator: Any, X: Any, data: InMemory, multiplicity: Vector | None) -> StreamFeatures:
        """φ of a stream, given its first batch."""

    def scores(self, estimator: Any, block: Block, threads: ThreadPool) -> Vector:
        """⟨w, φ(x)⟩ of the rows of a block for each problem of a fitted estimator, without the intercepts."""
