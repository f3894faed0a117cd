"""Checks CPU cores, threads, disk space, shared memory and free memory."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selftime.capture.doctor.observations import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    FindingSubject,
    MachineObservations,
)
from selftime.capture.recorder.run_options import RunOptions
from selftime.units import bytes_text

_DEFAULT_MAX_TRACE_BYTES: Final = RunOptions().max_bytes
"""Default size limit of a trace that `selftime run` writes, in bytes."""
_MIN_SHARED_MEMORY_BYTES: Final = 256 << 20
"""Bytes of shared memory below which DataLoader workers may fail. Two workers prefetch two batches
each; 64 colour images of 224 x 224 in float32 are 39 MB, so four batches take 154 MB, and the batch
in use and the one being made come on top. Containers have 64 MB by default."""


def check_cores(observations: MachineObservations) -> Iterator[DoctorFinding]:
    host = observations.host.answer("host")
    if host is None:
        return
    yield _usable_cores_finding(host["cores"])
    yield _cpu_threads_finding(host, observations.machine.environment)


def _usable_cores_finding(core_counts: Mapping[str, Any]) -> DoctorFinding:
    effective, load = core_counts["effective"], core_counts["load"]
    if effective is None:
        seen = "the system does not report how many a program can use"
        return DoctorFinding("cores", FindingSubject.machine, FindingState.unknown, seen)
    seen = f"{effective:g} of {core_counts['logical']} can be used"
    if core_counts["quota"] is not None and core_counts["quota"] <= effective:
        seen = f"{seen}, limited by the container"
    if load is None or load <= effective:
        return DoctorFinding("cores", FindingSubject.machine, FindingState.ok, seen)
    return DoctorFinding(
        "cores",
        FindingSubject.machine,
        FindingState.warning,
        f"{seen}, and {load:.0f} processes want to run: times will vary",
        "record when the machine is quiet",
    )


def _cpu_threads_finding(host: Mapping[str, Any], environment: Mapping[str, str]) -> DoctorFinding:
    threads, effective = host["threads"], host["cores"]["effective"]
    variable = environment.get("OMP_NUM_THREADS")
    seen = f"PyTorch uses {threads} on the CPU"
    if variable is not None:
        seen = f"{seen}; OMP_NUM_THREADS={variable}"
    if effective is None or threads <= max(1, effective):
        return DoctorFinding("threads", FindingSubject.machine, FindingState.ok, seen)
    return DoctorFinding(
        "threads",
        FindingSubject.machine,
        FindingState.warning,
        f"{seen}, but has {effective:g} cores: threads wait for each other",
        f"set OMP_NUM_THREADS={max(1, int(effective))}",
    )


def check_space_and_memory(observations: MachineObservations) -> Iterator[DoctorFinding]:
    yield _temporary_folder_finding(observations.machine)
    yield _output_folder_finding(observations.machine)
    yield _shared_memory_finding(observations.machine)
    yield _free_memory_finding(observations.machine)


def _temporary_folder_finding(machine: ExaminedMachine) -> DoctorFinding:
    """Checks that the profiler can write its uncompressed traces to the temporary folder."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        return _unwritable_temporary_folder_finding(str(error))
    why = _reason_not_writable(folder)
    if why is not None:
        return _unwritable_temporary_folder_finding(f"`{folder}`: {why}")
    wanted = machine.environment.get("TMPDIR")
    if wanted and Path(wanted).absolute() != folder.absolute():  # Python silently uses another
        return DoctorFinding(
            "temporary folder",
            FindingSubject.machine,
            FindingState.warning,
            f"`TMPDIR` is set to `{wanted}`, which cannot be written; {folder} is used",
            "make that folder, or set TMPDIR to another",
        )
    return _free_disk_space_finding("temporary folder", folder, "set TMPDIR to a folder with more")


def _unwritable_temporary_folder_finding(seen: str) -> DoctorFinding:
    cure = "set TMPDIR to a folder that you may write to"
    return DoctorFinding(
        "temporary folder", FindingSubject.machine, FindingState.problem, seen, cure
    )


def _output_folder_finding(machine: ExaminedMachine) -> DoctorFinding:
    why = _reason_not_writable(machine.working_folder)
    if why is None:
        return _free_disk_space_finding(
            "output folder", machine.working_folder, "pass another folder: `selftime run -o DIR`"
        )
    return DoctorFinding(
        "output folder",
        FindingSubject.machine,
        FindingState.warning,
        f"`{machine.working_folder}` cannot be written: {why}",
        "pass another folder: `selftime run -o DIR`",
    )


def _reason_not_writable(folder: Path) -> str | None:
    """Returns why no file can be written into a folder; None if files can be written."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _free_disk_space_finding(check_name: str, folder: Path, cure: str) -> DoctorFinding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        seen = f"`{folder}`: {error.strerror}"
        return DoctorFinding(check_name, FindingSubject.machine, FindingState.unknown, seen)
    seen = f"{bytes_text(free)} free in {folder}"
    if free >= _DEFAULT_MAX_TRACE_BYTES:
        return DoctorFinding(check_name, FindingSubject.machine, FindingState.ok, seen)
    seen = f"{seen}, and a trace may take {bytes_text(_DEFAULT_MAX_TRACE_BYTES)}"
    return DoctorFinding(
        check_name, FindingSubject.machine, FindingState.warning, seen, f"{cure}, or `--max-bytes`"
    )


def _shared_memory_finding(machine: ExaminedMachine) -> DoctorFinding:
    size = _tmpfs_capacity_bytes(machine, "/dev/shm")  # noqa: S108 - no file is created there
    if size is None:
        seen = "the system does not report the size of /dev/shm"
        return DoctorFinding("shared memory", FindingSubject.machine, FindingState.unknown, seen)
    seen = f"{bytes_text(size)} in /dev/shm"
    if size >= _MIN_SHARED_MEMORY_BYTES:
        return DoctorFinding("shared memory", FindingSubject.machine, FindingState.ok, seen)
    return DoctorFinding(
        "shared memory",
        FindingSubject.machine,
        FindingState.warning,
        f"{seen}: DataLoader workers die of a bus error when it is full",
        "start the container with `--shm-size=8g` or `--ipc=host`",
    )


def _tmpfs_capacity_bytes(machine: ExaminedMachine, mount_point: str) -> int | None:
    """Returns the capacity in bytes of the tmpfs at a mount point; None if unknown."""
    for line in (machine.read_text("proc/self/mounts") or "").splitlines():
        words = line.split()
        if len(words) > 3 and words[1] == mount_point and words[2] == "tmpfs":
            sizes = [word[5:] for word in words[3].split(",") if word.startswith("size=")]
            if sizes:
                return _parse_size_in_bytes(sizes[-1])
            total = _parse_size_in_bytes(
                machine.read_named_values("proc/meminfo").get("MemTotal", "").replace(" kB", "k")
            )
            return None if total is None else total // 2
    return None


def _parse_size_in_bytes(text: str) -> int | None:
    """Returns the number of bytes that a text such as `64m` states; None for other texts."""
    units = {"k": 10, "m": 20, "g": 30}
    shift = units.get(text[-1:].lower(), 0)
    number = text[:-1] if shift else text
    return int(number) << shift if number.isdecimal() else None


def _free_memory_finding(machine: ExaminedMachine) -> DoctorFinding:
    text = machine.read_named_values("proc/meminfo").get("MemAvailable", "").replace(" kB", "k")
    available = _parse_size_in_bytes(text)
    limit = _cgroup_memory_left_bytes(machine)
    if available is None:
        return DoctorFinding(
            "memory",
            FindingSubject.machine,
            FindingState.unknown,
            "the system does not report free memory",
        )
    room = available if limit is None else min(available, limit)
    seen = f"{bytes_text(room)} available"
    if limit is not None and limit < available:
        seen = f"{seen} within the limit of the container"
    if room >= _DEFAULT_MAX_TRACE_BYTES:
        return DoctorFinding("memory", FindingSubject.machine, FindingState.ok, seen)
    return DoctorFinding(
        "memory",
        FindingSubject.machine,
        FindingState.warning,
        f"{seen}, and the largest recording takes more than {bytes_text(_DEFAULT_MAX_TRACE_BYTES)}",
        "record less: `selftime run --steps 1 --max-bytes 100000000 --no-stack`",
    )


def _cgroup_memory_left_bytes(machine: ExaminedMachine) -> int | None:
    """Returns how many bytes the process may still use under its cgroup's limit; None if unlimited.

    A container sees its own control group as the root.
    """
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        numbers = [machine.read_text(f"sys/fs/cgroup/{name}") or "" for name in (limit, used)]
        if all(number.isdecimal() for number in numbers):
            return max(0, int(numbers[0]) - int(numbers[1]))
    return None
