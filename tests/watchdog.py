"""What a fuzzer grants one file: so much time and memory, no more. A file that breaks something is kept."""

import faulthandler
import resource
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

STATM = Path("/proc/self/statm")
SECONDS = 300.0  # a first call may compile kernels
ROOM = 4 << 30  # bytes of addresses beyond those in use; thread stacks and compilers want some


@contextmanager
def watched(path):
    """Limits; and the file of a failure is kept."""
    try:
        with limited():
            yield
    except BaseException:
        kept = Path(tempfile.mkdtemp()) / path.name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, kept)
        print(f"what broke it is kept in {kept}", file=sys.stderr)
        raise


@contextmanager
def limited():
    """A hang ends the process, with a trace; memory ends where there is plenty."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if STATM.exists():
        used = int(STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, before)
