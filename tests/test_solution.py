"""What a solve returns: certificate, status, trace."""

import pickle

import numpy as np
import pandas as pd
import pytest

from primalsvm.solution import TRACE_DTYPE, Certificate, Status, Trace


def test_certificate_arithmetic():
    certificate = Certificate.of(primal=0.5, dual=0.4)
    assert certificate.gap == pytest.approx(0.1) and certificate.relative_gap == pytest.approx(0.2)
    assert certificate.exact and not Certificate.of(0.5, 0.4, exact=False).exact


def test_relative_gap_is_relative_to_the_larger_side():
    assert Certificate.of(primal=-0.1, dual=-0.4).relative_gap == pytest.approx(0.75)
    assert Certificate.of(primal=0.0, dual=0.0).relative_gap == 0.0


@pytest.mark.parametrize(("primal", "dual"), [(1.0, -np.inf), (np.inf, 1.0), (np.nan, 0.0), (np.inf, -np.inf)])
def test_without_a_bound_the_relative_gap_is_infinite(primal, dual):
    assert Certificate.of(primal, dual).relative_gap == np.inf


def test_certificate_reads_as_in_the_readme():
    shown = "Certificate(primal=0.238360, dual=0.238148, gap=2.1e-04, relative_gap=8.9e-04, exact=True)"
    assert repr(Certificate.of(0.238360, 0.238148)) == shown


def test_certificate_pickles():
    assert pickle.loads(pickle.dumps(Certificate.of(1.0, 0.5))) == Certificate.of(1.0, 0.5)


def test_statuses_that_fall_short():
    short = {status.value for status in Status if status.fell_short}
    assert short == {"stalled", "max_iter", "max_seconds", "interrupted"}


def test_trace_becomes_a_table():
    trace = Trace()
    assert trace.array().shape == (0,) and trace.array().dtype == TRACE_DTYPE
    trace.append(1.0, 10, 0.1, 0.5, 0.25, np.nan)
    trace.append(2.0, 20, 0.2, 0.4, 0.375, 0.05)
    table = pd.DataFrame(trace.array())
    assert list(table.columns)[:6] == ["epoch", "steps", "seconds", "primal", "dual", "gap"]
    assert table.gap.tolist() == pytest.approx([0.25, 0.025])
    assert table.steps.tolist() == [10, 20]
