"""Warnings that point at the line of the user's code."""

import os
import sys
import warnings
from pathlib import Path

PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside this package."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=(PACKAGE,))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
