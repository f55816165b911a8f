from benchmark_utils.contestant import ToleranceSolver


class Solver(ToleranceSolver):
    name = "primalsvm"
    parameters = {"threads": [1, 2]}
