"""The policy: what is chosen, and that defaults converge where single solvers do not."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import DualAscent, Hinge, LinearSVC, Logistic, Newton, Pegasos, Problem, solve
from primalsvm.objective import Evaluation
from primalsvm.solvers import costs, stops
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.solvers.costs import LARGEST_FACTOR, Size
from primalsvm.solvers.policy import choose, choose_mapped, choose_out_of_core, default_sequence
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.several import Several
from primalsvm.solvers.stops import Stops
from tests.helpers import objective, solution_of
from tests.reference import noisy

HINGE = Hinge()


def names(size, loss=HINGE, **options):
    return [stage.solver.name for stage in default_sequence(size, loss, **options).stages]


def dense(m, d):
    return Size(m, d, m * d, False)


def test_choose():
    size = dense(10, 10)
    assert choose("dual_ascent", size, Hinge()) == Several(DualAscent())
    assert isinstance(choose("pegasos", size, Hinge()).solver, Pegasos)
    mine = Pegasos(n_iter=3)
    assert choose(mine, size, Hinge()).solver is mine
    with pytest.raises(ValueError, match=r"solver='simplex': choose .*dual_ascent"):
        choose("simplex", size, Hinge())


def test_plans():
    assert names(dense(50, 5)) == ["newton", "interior_point"]  # small: solved to the end
    assert names(dense(20_000, 1_000)) == ["dual_ascent", "newton", "interior_point"]
    assert names(dense(2_000, 5_000)) == ["dual_ascent", "interior_point"]  # fewer rows than features
    assert names(dense(20_000, 1_000), Logistic()) == ["dual_ascent", "newton"]  # not piecewise quadratic
    assert names(Size(800_000, 47_236, 60_000_000, True)) == ["dual_ascent", "newton"]  # no factorisation
    assert names(dense(60_000, 1_024), mapped=True) == ["newton", "interior_point"]


def test_no_plan_factorises_what_is_too_large():
    for m, d in [(50_000, 20_000), (20_000, 200_000), (LARGEST_FACTOR + 1,) * 2]:
        assert "interior_point" not in names(Size(m, d, 50 * m, True))
    assert "interior_point" in names(Size(3_000, 200_000, 150_000, True))


def test_features_of_a_kernel():
    chosen = choose_mapped("auto", 60_000, 1_024, Problem(Hinge(), 1e-4, "free"), 1, False)
    assert chosen.stages[0].solver == Newton() and chosen.traits.rows == "passes"
    assert choose_mapped("dual_ascent", 60_000, 1_024, Problem(Hinge(), 1e-4), 1, False).traits.rows == "block"


def test_several_problems_begin_with_sweeps_over_all_of_them():
    def kinds(chosen):
        return [type(getattr(stage.solver, "solver", stage.solver)).__name__ for stage in chosen.stages]

    many, small = dense(60_000, 784), dense(100, 10)
    assert kinds(choose("auto", many, Hinge(), count=10, jointly=True))[:2] == ["JointAscent", "DualAscent"]
    assert kinds(choose("dual_ascent", small, Hinge(), count=3, jointly=True)) == ["JointAscent", "DualAscent"]
    assert kinds(choose("auto", small, Hinge(), count=3, jointly=True))[0] == "Newton"
    assert kinds(choose("auto", many, Hinge(), count=10))[0] == "DualAscent"
    assert choose("newton", many, Hinge(), count=10, jointly=True) == Several(Newton())


def test_out_of_core():
    blocks = Several(BlockAscent())
    many = Size(10_000_000, 50_000, 800_000_000, True)
    assert choose_out_of_core("auto", many, 1e9) == blocks
    assert choose_out_of_core("dual_ascent", many, 1e9) == blocks
    few = dense(10_000_000, 50)
    assert choose_out_of_core("auto", few, 1e9) == Several(Newton())
    assert choose_out_of_core("auto", few, 1e6) == blocks  # too little for what Newton keeps
    assert choose_out_of_core("newton", many, 1e6) == Several(Newton())
    with pytest.raises(ValueError, match="needs the rows in memory"):
        choose_out_of_core("interior_point", few, 1e9)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("kind", ["dense", "scaled", "separable", "sparse", "wide", "one", "constant", "repeated"])
def test_defaults_converge(kind, C):
    """Small relatives of the data sets of `benchmarks/defaults.py`; LinearSVC warns, so fails, where it falls short."""
    rng = np.random.default_rng(0)
    m, d = {"wide": (150, 900), "one": (2_000, 1)}.get(kind, (1_500, 200))
    X = rng.normal(size=(m, d))
    y = np.sign(X @ rng.normal(size=d) + (0.0 if kind == "separable" else 0.7 * np.sqrt(d)) * rng.normal(size=m))
    if kind == "scaled":
        X *= 10.0 ** rng.uniform(-2, 2, d)
    if kind == "sparse":
        X = sp.csr_matrix(np.where(rng.random((m, d)) < 0.1, X, 0.0))
    if kind == "constant":
        X[:, ::2] = 1.0
    if kind == "repeated":
        X, y = np.repeat(X[:300], 5, axis=0), np.repeat(y[:300], 5)
    assert LinearSVC(C=C).fit(X, y).certificate_.relative_gap <= 1e-3


def test_newton_never_factorises_what_is_too_large(monkeypatch):
    """With a smaller limit: conjugate gradients in the place of factors, rows or features alike."""
    from primalsvm.solvers import curvature

    X, y = noisy(600, 90)
    expected = solve(Problem(Hinge(), 1e-3, "free"), X, y, solver=Newton()).certificate.primal
    monkeypatch.setattr(curvature, "LARGEST_FACTOR", 20)
    for rows in (X, sp.csr_matrix(X)):
        found = solve(Problem(Hinge(), 1e-3, "free"), rows, y, solver=Newton(), tol=1e-4)
        assert found.certificate.relative_gap <= 1e-4
        assert found.certificate.primal == pytest.approx(expected, rel=2e-4)


# ---- limits count work -----------------------------------------------------------------------------------------------


class Cheap(DualAscent):
    """Dual ascent that never gets there."""

    def evaluate(self, objective, state):
        return Evaluation(np.zeros(2), 0.0, 1.0, 0.0)

    def observe(self, objective, state, evaluation):
        state.work = 0


def test_cheap_epochs_are_not_limited_but_work_is(monkeypatch):
    monkeypatch.setattr(stops, "OPERATIONS_IF_SMALL", 4e8)
    rows = objective(Problem(Hinge(), 0.01), np.array([[2.0, 0.1], [1.0, 1.0], [-1.0, 0.5]]), [1, 1, -1])
    found = solution_of(rows, Cheap())
    assert found.n_epochs > 1000 and found.state.operations >= 4e8
    assert found.status.value == "max_iter" and "set max_iter" in found.message
    assert solution_of(rows, Cheap(), Stops(max_iter=7)).n_epochs == 7


def test_costs_grow_with_the_size():
    small, large = dense(1_000, 100), dense(10_000, 200)
    for cost in (costs.sweep, costs.newton, costs.interior_point, costs.squares, costs.one_pass):
        assert 0.0 < cost(small) < cost(large)
    assert costs.prefers_rows(dense(100, 5_000)) and not costs.prefers_rows(dense(5_000, 100))


def test_a_sequence_of_one_stage_begins_with_joint_sweeps():
    alone = SolverSequence((Stage(DualAscent(), 1e7, 1e6),))
    found = choose(alone, Size(5_000, 200, 1_000_000, False), Hinge(), count=3, jointly=True)
    assert [stage.solver.name for stage in found.stages] == [DualAscent.name, DualAscent.name]
