"""What the solvers and the data sets share. benchopt runs this file before it loads any other of the benchmark."""

import sys
from pathlib import Path

# The contestants, the data sets and the judge are those of `make bench`, which are not installed: `import benchmarks`
# has to find them from whichever folder benchopt is run in.
ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
