"""How much memory there is: what the system says, within the limits of control groups."""

import pytest

from primalsvm import memory


def fake(tmp_path, monkeypatch, files):
    """Let these be the files below / that the module reads."""
    for name, content in files.items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.setattr(memory, "Path", lambda name: tmp_path / str(name).lstrip("/"))


MEMINFO = "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n"


def test_without_a_limit(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, {"/proc/meminfo": MEMINFO, "/proc/self/cgroup": "0::/\n"})
    assert memory.available() == 8_192_000


def test_the_tightest_limit_of_the_groups_above(tmp_path, monkeypatch):
    group = "/sys/fs/cgroup/a/b"
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "0::/a/b\n",
        f"{group}/memory.max": "max\n",
        f"{group}/memory.current": "5\n",
        f"{group}/memory.stat": "inactive_file 0\n",
        "/sys/fs/cgroup/a/memory.max": "1000000\n",
        "/sys/fs/cgroup/a/memory.current": "300000\n",
        "/sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 100000\n",
    }
    fake(tmp_path, monkeypatch, files)
    assert memory.available() == 800_000


def test_the_older_kind_of_groups(tmp_path, monkeypatch):
    group = "/sys/fs/cgroup/memory/jobs"
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "5:cpu,cpuacct:/jobs\n4:memory:/jobs\n",
        f"{group}/memory.limit_in_bytes": "500\n",
        f"{group}/memory.usage_in_bytes": "700\n",
        f"{group}/memory.stat": "total_inactive_file 0\n",
    }
    fake(tmp_path, monkeypatch, files)
    assert memory.available() == 0
    with pytest.raises(MemoryError, match="a matrix would take 1e-06 GB, more than the 0 GB available: buy more"):
        memory.check_fits(1000, "a matrix", "buy more")
