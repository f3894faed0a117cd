import mmap
import os
import platform
import statistics
import sys
from pathlib import Path

import pytest
from tests.experimental import experimental_config

torch = pytest.importorskip("torch")

from selftime import __version__  # noqa: E402 - torch is looked for first
from selftime.capture import Profile  # noqa: E402 - likewise
from selftime.capture.facts.machine import (  # noqa: E402 - likewise
    cgroup_cpu_quota,
    processor_name,
    rank_and_world,
)
from selftime.capture.facts.step_overhead import StepOverhead  # noqa: E402 - likewise

pytestmark = pytest.mark.torch


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_process_is_described() -> None:
    with Profile(record_shapes=True) as prof:
        torch.ones(4).sum()
    facts = prof.facts()

    assert facts["format"] == "selftime.facts/1"
    assert facts["version"] == __version__
    assert facts["torch"] == str(torch.__version__)
    assert facts["python"] == platform.python_version()
    assert facts["pid"] == os.getpid()
    assert facts["argv"] == sys.argv
    assert facts["threads"] == torch.get_num_threads()
    assert facts["flags"]["record_shapes"]
    assert not facts["flags"]["with_stack"]
    assert facts["partial"] is None
    assert facts["cores"]["effective"] <= facts["cores"]["logical"]
    assert set(facts["cores"]) == {"logical", "affinity", "quota", "load", "effective"}
    assert facts["processor"] == processor_name()
    assert facts["steps"] == {
        "source": "prof.step()",
        "unprofiled_ns": [],
        "profiled_ns": [],
        "unprofiled_page_faults": [],
    }
    assert facts["overhead"]["ratio"] is None


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD  EPYC 7B13 \n\nprocessor\t: 1\n", "AMD EPYC 7B13"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "Arm 0x41, part 0xd0c"),
    ],
)
def test_the_processor_is_named_as_the_system_names_it(
    lines: str, name: str, tmp_path: Path
) -> None:
    write(tmp_path, "proc/cpuinfo", lines)
    assert processor_name(tmp_path) == name


def test_paths_are_absolute_and_longest_first() -> None:
    with Profile() as prof:
        torch.ones(4).sum()
    paths = prof.facts()["paths"]

    assert all(Path(path).is_absolute() for path in paths)
    assert [len(path) for path in paths] == sorted((len(path) for path in paths), reverse=True)


def test_operators_have_what_the_trace_lacks() -> None:
    config = experimental_config(capture_overload_names=True)
    with Profile(with_flops=True, experimental_config=config) as prof:
        torch.ones(4, 5) @ torch.ones(5, 6)
    operators = prof.facts()["ops"]

    assert operators["flops"]["value"] == [2 * 4 * 5 * 6]
    assert operators["async"] == []
    assert len(operators["id"]) == len(operators["overload"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell")
def test_steps_outside_a_recording_tell_what_pages_they_took() -> None:
    plan = torch.profiler.schedule(wait=3, warmup=1, active=1, repeat=1)
    kept = []
    with Profile(schedule=plan) as prof:
        for _ in range(6):
            kept.append(torch.ones(4_000_000))
            prof.step()
    pages = prof.facts()["steps"]["unprofiled_page_faults"]
    assert len(pages) == len(prof.facts()["steps"]["unprofiled_ns"]) > 0
    usual = statistics.median(pages)  # other threads of the process take pages now and then
    assert 0 < usual * mmap.PAGESIZE <= 2 * 16_000_000


def test_steps_are_timed_by_what_the_schedule_did_with_them() -> None:
    plan = torch.profiler.schedule(skip_first=3, wait=0, warmup=1, active=2, repeat=1)
    with Profile(schedule=plan) as prof:
        for _ in range(8):
            torch.ones(4).sum()
            prof.step()

    assert len(prof.step_times.unprofiled) == 2 + 2  # the first step warms the program up
    assert len(prof.step_times.profiled) == 2


def test_overhead_is_a_ratio_of_undisturbed_steps_or_unknown() -> None:
    times = StepOverhead("x", unprofiled=[20, 20, 20, 900, 900], profiled=[900, 30, 30])

    assert times.overhead_ratio_and_medians() == {
        "ratio": 1.5,
        "unprofiled_median_ns": 20,
        "profiled_median_ns": 30,
    }
    single = StepOverhead("x", unprofiled=[10], profiled=[30])
    assert single.overhead_ratio_and_medians()["ratio"] == 3.0
    assert StepOverhead("x", profiled=[30]).overhead_ratio_and_medians()["ratio"] is None
    without_duration = StepOverhead("x", unprofiled=[0], profiled=[30])
    assert without_duration.overhead_ratio_and_medians()["ratio"] is None


def test_the_rank_comes_from_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert rank_and_world() == (None, None)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert rank_and_world() == (3, 8)


def test_the_quota_is_that_of_the_tightest_group_around(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/outer/inner\n")
    write(tmp_path, "sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n")
    write(tmp_path, "sys/fs/cgroup/outer/cpu.max", "150000 100000\n")

    assert cgroup_cpu_quota(tmp_path) == 1.5


def test_a_container_sees_its_own_groups_as_the_root(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/../../host/path\n")
    write(tmp_path, "sys/fs/cgroup/cpu.max", "400000 100000\n")

    assert cgroup_cpu_quota(tmp_path) == 4.0


def test_the_older_control_groups_are_read_too(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n")
    write(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n")
    write(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")

    assert cgroup_cpu_quota(tmp_path) == 0.5


@pytest.mark.parametrize("text", [None, "0::/\n"])
def test_without_a_limit_there_is_no_quota(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path, "proc/self/cgroup", text)
        write(tmp_path, "sys/fs/cgroup/cpu.max", "max 100000\n")

    assert cgroup_cpu_quota(tmp_path) is None


@pytest.mark.sweep(1)
@pytest.mark.parametrize("asked", [True, False, None])
def test_whether_collections_are_recorded_is_told(*, asked: bool | None) -> None:
    """By our own configuration, and by one that the user passes."""
    named = torch._C._profiler._ExperimentalConfig
    config = None if asked is None else named(record_python_gc_info=asked)
    for frames in (True, False):
        with Profile(with_stack=frames, experimental_config=config) as prof:
            torch.ones(2)
        told = prof.facts()["flags"]["record_python_gc_info"]
        assert told is (frames and asked is not False)
