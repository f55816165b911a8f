"""Linear models: the features are the rows themselves."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from primalsvm.estimators.learner import Examples
from primalsvm.estimators.scaling import advice
from primalsvm.estimators.streaming import Streaming
from primalsvm.inputs import as_rows
from primalsvm.memory import check_fits
from primalsvm.rows import Batch, Rows, Stored, Vector, shape
from primalsvm.solution import Solution
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.costs import Size
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.policy import choose, plan_out_of_core
from primalsvm.sources.filed import filed_rows, inspect_filed
from primalsvm.team import team_for, team_size

VECTORS = 3  # of a double for each feature: no solver keeps fewer (measured: 3 to 9)


class LinearModel(Streaming):
    """A learner of w and b on rows as they are, in memory, in files or in a stream."""

    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, cache: Path | None) -> Self:
        _, rows = self._enter(X, y, sample_weight, rows_checked=cache is not None)
        _, d = shape(rows.batch.rows)
        needed = VECTORS * 8 * d * rows.targets.count
        check_fits(needed, f"the weights of {d} features", "number the features that occur, or hash them")
        problem, seed = self._problem(rows.batch), self._seed()
        training, validation = self._hold_out(rows, seed, cache)
        size = Size.of(training.batch.rows)
        if cache is None:
            solver, by_blocks = choose(self.solver, size, problem.loss), False
        else:
            solver, by_blocks = plan_out_of_core(self.solver, size, problem.loss, self._budget())
        if cache is None or not by_blocks:
            if cache is not None:
                as_rows(rows.batch.rows)
            solutions = self._solve(problem, training, validation, seed, solver)
        else:
            sharing = min(team_size(self.n_jobs), rows.targets.count)  # threads, each with blocks of its own
            at_once, drop = int(self._budget() / 2 / sharing), self.memory is not None
            with filed_rows(cache, at_once, drop, self.n_jobs) as filed:
                inspect_filed(filed, self.n_jobs)
                in_files = Examples(training.batch._replace(rows=filed), training.targets)
                solutions = self._solve(problem, in_files, validation, seed, solver)
        self._keep(self._explained(solutions, rows.batch), rows.targets)
        self._end_stream()
        return self

    def _explained(self, solutions: list[Solution], batch: Batch) -> list[Solution]:
        """A fit that falls short says so if the features differ much in size."""
        short = [self._falls_short(solution) for solution in solutions]
        if not any(short):
            return solutions
        more = advice(batch, getattr(self, "feature_names_in_", None), type(self).__name__)
        return [replace(one, message=one.message + more * fell) for one, fell in zip(solutions, short, strict=True)]

    def _scores(self, rows: Stored) -> npt.NDArray[np.float64]:
        """⟨w, x⟩ + b for every row."""
        with team_for(self.n_jobs) as team:
            found = [team.scores(rows, w) + b for w, b in zip(np.atleast_2d(self.coef_), self.intercept_, strict=True)]
        return found[0] if len(found) == 1 else np.stack(found, axis=1)

    # ---- streams: the features are the rows themselves ---------------------------------------------------------------

    def _check_features(self) -> None:
        pass

    def _begin_features(self, X: Any, batch: Batch, multiplicity: Vector | None) -> None:
        self._solutions = None

    def _features_of(self, batch: Batch, position: int) -> Rows:
        return batch.rows

    def _unit_length(self) -> bool:
        return False

    def _default_online(self) -> Asset | Pegasos:
        return Pegasos()

    def _after_batch(self) -> None:
        pass
