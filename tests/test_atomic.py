"""Atomic writes: a file is there complete, or as it was."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from primalsvm.atomic import PARTIAL, atomic_file, atomic_write, partial_path


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "file"
    atomic_write(path, b"first")
    with atomic_file(path) as file:
        file.write(b"sec")
        file.flush()
        assert path.read_bytes() == b"first"
        file.write(b"ond")
    assert path.read_bytes() == b"second" and list(tmp_path.iterdir()) == [path]


def test_what_was_there_stays_if_writing_fails(tmp_path):
    path = tmp_path / "file"
    atomic_write(path, b"first")
    with pytest.raises(TypeError), atomic_file(path) as file:
        file.writelines([b"half", None])
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match=r"cannot write .*what was there is as it was"):
        atomic_write(tmp_path / "no" / "folder", b"x")


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    host = partial_path(tmp_path / "x").name.removeprefix(f"x{PARTIAL}").rsplit("-", 2)[0]
    names = {
        "file": tmp_path / f"run[1]{PARTIAL}{host}-{int(dead.stdout)}-0a",
        "folder": tmp_path / f"run[1]{PARTIAL}{host}-{int(dead.stdout)}-0b",
        "alive": tmp_path / f"run[1]{PARTIAL}{host}-{os.getppid()}-0c",
        "elsewhere": tmp_path / f"run[1]{PARTIAL}{host}x-{int(dead.stdout)}-0d",
        "other": tmp_path / f"run1{PARTIAL}{host}-{int(dead.stdout)}-0e",
    }
    for name, path in names.items():
        path.mkdir() if name == "folder" else path.write_bytes(b"")
    place = partial_path(tmp_path / "run[1]")
    assert place.name.startswith(f"run[1]{PARTIAL}{host}-{os.getpid()}-") and place != partial_path(tmp_path / "run[1]")
    assert sorted(tmp_path.iterdir()) == sorted(names[name] for name in ("alive", "elsewhere", "other"))


def test_links_and_devices(tmp_path):
    (tmp_path / "file").write_bytes(b"first")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    atomic_write(tmp_path / "link", b"second")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"second"
    atomic_write(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


def test_threads_that_write_the_same_file(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: atomic_write(tmp_path / "file", b"%d" % k), range(40)))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
