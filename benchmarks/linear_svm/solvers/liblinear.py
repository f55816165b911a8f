import liblinear  # noqa: F401  # its absence is how benchopt knows that it is not installed
from benchmark_utils.contestant import ToleranceSolver


class Solver(ToleranceSolver):
    name = "liblinear"
    requirements = ["pip::liblinear-official"]
