"""The command line."""

import pytest
from typer.testing import CliRunner

import primalsvm
from primalsvm.cli import app


def test_version():
    assert CliRunner().invoke(app, ["version"]).output.strip() == primalsvm.__version__


def test_demo_prints_the_certificate_and_draws_the_convergence(tmp_path):
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(app, ["demo", "--rows", "5000", "--lam", "1e-3", "--output", str(picture)])
    assert result.exit_code == 0, result.output
    assert "relative gap" in result.output and "converged" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments", [["demo", "--rows", "-1"], ["nonsense"]])
def test_a_wrong_call_is_refused(arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2
