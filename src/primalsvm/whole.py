"""Files that are there whole, or as they were: written beside their place and renamed when they are on the disk."""

import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial-"


def beside(path: Path) -> Path:
    """Where to write what is going to be renamed to `path`. What a killed process left there is cleared away."""
    host = re.sub(r"\W", "_", platform.node())
    for left in path.parent.glob(f"{_escaped(path.name)}{PARTIAL}{host}-*"):
        process = left.name.rsplit("-", 2)[-2]
        if not _alive(process):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}{PARTIAL}{host}-{os.getpid()}-{secrets.token_hex(4)}")


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of what is there when all is written; if not, that stays as it was."""
    path = path.resolve()  # what a link points to is replaced, not the link
    if path.exists() and not path.is_file():  # a pipe, or a device such as /dev/null
        with path.open("wb") as file:
            yield file
        return
    partial = beside(path)
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or leave what is there as it was."""
    try:
        with written_whole(path) as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(error.errno, f"cannot write {path} ({reason}); what was there is as it was") from None


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
    if os.name == "nt":  # where asking would be a signal
        return True
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        return True
    return True
