"""Shared settings: properties are checked on the same examples every run, however long a first compilation takes."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.reference import sparse_noisy

settings.register_profile(
    "primalsvm", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primalsvm")

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rows_file(tmp_path):
    """A file of svmlight text with `sparse_noisy(300, 40)`."""
    from primalsvm.sources.svmlight import write_svmlight  # tests of the layers below do without it

    path = tmp_path / "rows.svm"
    write_svmlight(path, *sparse_noisy(300, 40))
    return path
