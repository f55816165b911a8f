"""Atomic writes: a file is written beside its place and renamed once all of it is on the disk."""

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


def partial_path(path: Path) -> Path:
    """Where to write what is then renamed to `path`. Removes what processes that are gone have left there."""
    host = re.sub(r"\W", "_", platform.node())
    for left in path.parent.glob(f"{_escape(path.name)}{PARTIAL}{host}-*"):
        process = left.name.rsplit("-", 2)[-2]
        if not _alive(process):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}{PARTIAL}{host}-{os.getpid()}-{secrets.token_hex(4)}")


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to. It replaces what is at `path` once all is written; after an error that stays as it was."""
    path = path.resolve()  # what a link points to is replaced, not the link
    if path.exists() and not path.is_file():  # a pipe, or a device such as /dev/null
        with path.open("wb") as file:
            yield file
        return
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def atomic_write(path: Path, data: bytes) -> None:
    """Write a file, or leave what is there as it was."""
    try:
        with atomic_file(path) as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(error.errno, f"cannot write {path} ({reason}); what was there is as it was") from None


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _escape(name: str) -> str:
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
