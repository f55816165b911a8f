"""`solve`: solve a problem on arrays, without an estimator."""

from typing import Any

import numpy.typing as npt

from primalsvm.data import as_dataset, as_numbers, thread_pool
from primalsvm.objective import Problem, check_both_signs, check_signs
from primalsvm.solution import Solution
from primalsvm.solvers.costs import Size
from primalsvm.solvers.drive import drive
from primalsvm.solvers.policy import choose
from primalsvm.solvers.protocol import Solver
from primalsvm.solvers.several import Single
from primalsvm.solvers.stops import Stops


def solve(
    problem: Problem,
    X: Any,
    y: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    solver: "str | Solver" = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    certify: bool = True,
    validation: tuple[Any, npt.ArrayLike] | None = None,
    patience: int = 5,
    n_jobs: int | None = None,
    random_state: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Solve a problem on arrays.

    Parameters
    ----------
    problem : Problem
    X : ndarray or SciPy sparse matrix of shape (m, d)
    y : labels −1 and +1; for a regression loss, any numbers
    sample_weight : weights cᵢ ≥ 0, one per row
    solver : "auto", "asset", "dual_ascent", "interior_point", "newton", "pegasos", or a solver object
    tol, max_iter, max_seconds, certify, patience : see `Stops`
    validation : (X, y) held out; the point with the lowest error there is kept
    n_jobs : threads; None is one, −1 all cores
    random_state : seed
    start : a previous solution to go on from

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0], [1.0], [-1.0], [-3.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1, intercept="free"), X, [1, 1, -1, -1])
    >>> solution.w.round(6), round(solution.b, 6), solution.status.value
    (array([1.]), 0.0, 'converged')
    """
    with thread_pool(n_jobs) as threads:
        data = as_dataset(X, sample_weight, threads=threads)
        targets = as_numbers(y, data.shape[0])
        if problem.loss.is_classification:
            check_both_signs(targets, data.weights)
        held_out = None
        if validation is not None:
            rows = as_dataset(validation[0], threads=threads)
            labels = as_numbers(validation[1], rows.shape[0])
            if problem.loss.is_classification:
                check_signs(labels)
            if rows.shape[1] != data.shape[1]:
                raise ValueError("the validation rows have another number of features than X")
            held_out = Single(problem.on(rows, labels))
        (solution,) = drive(
            Single(problem.on(data, targets)),
            choose(solver, Size.of(data), problem.loss),
            Stops(tol, max_iter, max_seconds, certify, patience),
            validation=held_out,
            seed=random_state,
            start=None if start is None else [start.state],
        )
        return solution
