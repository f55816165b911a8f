"""Files that are there whole, or as they were: written beside their place and renamed when they are on the disk."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial-"


def beside(path: Path) -> Path:
    """Where to write what is going to be renamed to `path`. What a killed process left there is cleared away."""
    for left in path.parent.glob(f"{_escaped(path.name)}{PARTIAL}*"):
        if not _alive(left.name.rpartition(PARTIAL)[2]):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}{PARTIAL}{os.getpid()}")


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of what is there when all is written; if not, that stays as it was."""
    partial = beside(path)
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(error.errno, f"cannot write {path} ({reason}); what was there is as it was") from None
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or leave what is there as it was."""
    with written_whole(path) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        return True
    return True
