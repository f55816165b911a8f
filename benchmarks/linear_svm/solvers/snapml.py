import snapml  # noqa: F401  # its absence is how benchopt knows that it is not installed
from benchmark_utils.contestant import IterationSolver


class Solver(IterationSolver):
    name = "snapml"
    requirements = ["pip::snapml"]
    parameters = {"threads": [1, 2]}
