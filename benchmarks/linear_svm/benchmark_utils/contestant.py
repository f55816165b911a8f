"""A contestant of `make bench` as a solver of benchopt: each run is a fit from scratch with the next setting."""

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import INFINITY, SufficientProgressCriterion
from threadpoolctl import threadpool_limits

from benchmarks.peers import OURS, PEERS, PEGASOS, Contestant

CONTESTANTS: dict[str, Contestant] = {contestant.name: contestant for contestant in (OURS, *PEGASOS, *PEERS)}

# Neighbouring tolerances often give the same w and stochastic steps do not always descend: a curve ends after so many
# points in a row that gain less than this share of its largest step.
ENDS = {"eps": 1e-8, "patience": 5}


class _ContestantSolver(BaseSolver):
    @property
    def contestant(self) -> Contestant:
        return CONTESTANTS[self.name]

    def set_objective(self, X, y, lam):
        self.lam, self.n_features = lam, X.shape[1]
        self.seed = self.get_seed(use_repetition=True)
        self.threads = getattr(self, "threads", 1)  # a parameter of the solvers that can use more than one
        self.data = self.contestant.prepare(X, y)

    def warm_up(self):
        self.run_once(self.contestant.settings[0])  # kernels are compiled, libraries loaded

    def pre_run_hook(self, stop_val):
        threadpool_limits(self.threads)

    def run(self, stop_val):
        if stop_val == self.nothing:  # the first point of each curve
            self.w = np.zeros(self.n_features)
        else:
            self.w = self.contestant.fit(self.data, self.lam, stop_val, self.threads, self.seed)

    def get_result(self):
        return {"w": np.asarray(self.w, np.float64).ravel()}


class IterationSolver(_ContestantSolver):
    """For a knob that counts iterations or epochs."""

    sampling_strategy = "iteration"
    stopping_criterion = SufficientProgressCriterion(strategy="iteration", **ENDS)
    nothing = 0

    def get_next(self, stop_val):
        # whole ones: after a hundredth of an epoch Pegasos is so far off that benchopt takes it for diverging
        return next((setting for setting in self.contestant.settings if setting >= stop_val + 1), 2 * stop_val)


class ToleranceSolver(_ContestantSolver):
    """For a knob that is a tolerance."""

    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", **ENDS)
    nothing = INFINITY

    def get_next(self, stop_val):
        return next((setting for setting in self.contestant.settings if setting < stop_val), stop_val / 2)
