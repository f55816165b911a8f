"""Files are there whole, or as they were."""

import os
import subprocess
import sys

import pytest

from primalsvm.whole import PARTIAL, beside, write_whole, written_whole


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"first")
    with written_whole(path) as file:
        file.write(b"sec")
        file.flush()
        assert path.read_bytes() == b"first"
        file.write(b"ond")
    assert path.read_bytes() == b"second" and list(tmp_path.iterdir()) == [path]


def test_what_was_there_stays_if_writing_fails(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"first")
    with pytest.raises(TypeError), written_whole(path) as file:
        file.writelines([b"half", None])
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match=r"cannot write .*what was there is as it was"):
        write_whole(tmp_path / "no" / "folder", b"x")


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    names = {
        "file": tmp_path / f"run[1]{PARTIAL}{int(dead.stdout)}",
        "folder": tmp_path / f"run[1]{PARTIAL}{int(dead.stdout)}0000000000",
        "alive": tmp_path / f"run[1]{PARTIAL}{os.getppid()}",
        "other": tmp_path / f"run1{PARTIAL}{int(dead.stdout)}",
    }
    for name, path in names.items():
        path.mkdir() if name == "folder" else path.write_bytes(b"")
    place = beside(tmp_path / "run[1]")
    assert place.name == f"run[1]{PARTIAL}{os.getpid()}"
    assert sorted(tmp_path.iterdir()) == sorted([names["alive"], names["other"]])
