from benchmark_utils.contestant import IterationSolver


class Solver(IterationSolver):
    name = "Pegasos, the paper's"
