"""What does a program get: which cores, how much room for a trace on disk and in memory?"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selftime.capture.doctor.observations import Finding, Place, Seen, State, Subject
from selftime.capture.recorder.run_options import RunOptions
from selftime.units import bytes_text

_TRACE: Final = RunOptions().max_bytes
"""Bytes of the largest trace that `selftime run` makes: it must fit where it is first written."""
_SHARED: Final = 256 << 20
"""Bytes of shared memory below which workers of a DataLoader are in danger: two workers keep two
batches each ready, and 64 colour images of 224 x 224 in float32 are 39 MB, so they hold 154 MB, and
the batch in use and the one being made come on top. Containers begin with 64 MB."""


def cores(seen: Seen) -> Iterator[Finding]:
    host = seen.host.answer("host")
    if host is None:
        return
    yield _cores(host["cores"])
    yield _threads(host, seen.place.environment)


def _cores(cores: Mapping[str, Any]) -> Finding:
    effective, load = cores["effective"], cores["load"]
    if effective is None:
        told = "the system does not tell how many a program gets"
        return Finding("cores", Subject.machine, State.unknown, told)
    told = f"{effective:g} of {cores['logical']} can be used"
    if cores["quota"] is not None and cores["quota"] <= effective:
        told = f"{told}, by the limit of the container"
    if load is None or load <= effective:
        return Finding("cores", Subject.machine, State.ok, told)
    return Finding(
        "cores",
        Subject.machine,
        State.warning,
        f"{told}, and {load:.0f} processes want to run: times will vary",
        "record when the machine is quiet",
    )


def _threads(host: Mapping[str, Any], environment: Mapping[str, str]) -> Finding:
    threads, effective = host["threads"], host["cores"]["effective"]
    variable = environment.get("OMP_NUM_THREADS")
    told = f"PyTorch computes with {threads} on the CPU"
    if variable is not None:
        told = f"{told}; OMP_NUM_THREADS={variable}"
    if effective is None or threads <= max(1, effective):
        return Finding("threads", Subject.machine, State.ok, told)
    return Finding(
        "threads",
        Subject.machine,
        State.warning,
        f"{told}, and gets {effective:g} cores: threads wait for each other",
        f"set OMP_NUM_THREADS={max(1, int(effective))}",
    )


def space(seen: Seen) -> Iterator[Finding]:
    yield _temporary(seen.place)
    yield _output(seen.place)
    yield _shared(seen.place)
    yield _memory(seen.place)


def _temporary(place: Place) -> Finding:
    """The recorder writes its own file there before it is packed."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        return _no_temporary(str(error))
    why = _refused(folder)
    if why is not None:
        return _no_temporary(f"`{folder}`: {why}")
    wanted = place.environment.get("TMPDIR")
    if wanted and Path(wanted).absolute() != folder.absolute():  # Python takes another in silence
        return Finding(
            "temporary folder",
            Subject.machine,
            State.warning,
            f"`TMPDIR` is set to `{wanted}`, which cannot be written; {folder} is used",
            "make that folder, or set TMPDIR to another",
        )
    return _space("temporary folder", folder, "set TMPDIR to a folder with more")


def _no_temporary(told: str) -> Finding:
    cure = "set TMPDIR to a folder that you may write to"
    return Finding("temporary folder", Subject.machine, State.problem, told, cure)


def _output(place: Place) -> Finding:
    why = _refused(place.folder)
    if why is None:
        return _space("output folder", place.folder, "pass another folder: `selftime run -o DIR`")
    return Finding(
        "output folder",
        Subject.machine,
        State.warning,
        f"`{place.folder}` cannot be written: {why}",
        "pass another folder: `selftime run -o DIR`",
    )


def _refused(folder: Path) -> str | None:
    """Why nothing can be written there."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _space(check: str, folder: Path, cure: str) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        told = f"`{folder}`: {error.strerror}"
        return Finding(check, Subject.machine, State.unknown, told)
    told = f"{bytes_text(free)} free in {folder}"
    if free >= _TRACE:
        return Finding(check, Subject.machine, State.ok, told)
    told = f"{told}, and a trace may take {bytes_text(_TRACE)}"
    return Finding(check, Subject.machine, State.warning, told, f"{cure}, or `--max-bytes`")


def _shared(place: Place) -> Finding:
    size = _mounted(place, "/dev/shm")  # noqa: S108 - no file of ours is made there
    if size is None:
        told = "the system does not tell the size of /dev/shm"
        return Finding("shared memory", Subject.machine, State.unknown, told)
    told = f"{bytes_text(size)} in /dev/shm"
    if size >= _SHARED:
        return Finding("shared memory", Subject.machine, State.ok, told)
    return Finding(
        "shared memory",
        Subject.machine,
        State.warning,
        f"{told}: a DataLoader's workers die of a bus error when it is full",
        "start the container with `--shm-size=8g` or `--ipc=host`",
    )


def _mounted(place: Place, point: str) -> int | None:
    """The size of a file system in memory; by default that is half of the machine's."""
    for line in (place.text("proc/self/mounts") or "").splitlines():
        words = line.split()
        if len(words) > 3 and words[1] == point and words[2] == "tmpfs":
            sizes = [word[5:] for word in words[3].split(",") if word.startswith("size=")]
            if sizes:
                return _bytes(sizes[-1])
            total = _bytes(place.values("proc/meminfo").get("MemTotal", "").replace(" kB", "k"))
            return None if total is None else total // 2
    return None


def _bytes(text: str) -> int | None:
    units = {"k": 10, "m": 20, "g": 30}
    shift = units.get(text[-1:].lower(), 0)
    number = text[:-1] if shift else text
    return int(number) << shift if number.isdecimal() else None


def _memory(place: Place) -> Finding:
    told = place.values("proc/meminfo").get("MemAvailable", "").replace(" kB", "k")
    available = _bytes(told)
    limit = _limit(place)
    if available is None:
        return Finding(
            "memory", Subject.machine, State.unknown, "the system does not tell what is free"
        )
    room = available if limit is None else min(available, limit)
    text = f"{bytes_text(room)} can be had"
    if limit is not None and limit < available:
        text = f"{text} within the limit of the container"
    if room >= _TRACE:
        return Finding("memory", Subject.machine, State.ok, text)
    return Finding(
        "memory",
        Subject.machine,
        State.warning,
        f"{text}, and the largest recording takes {bytes_text(_TRACE)} and more beside the program",
        "record less: `selftime run --steps 1 --max-bytes 100000000 --no-stack`",
    )


def _limit(place: Place) -> int | None:
    """What the control group leaves, by version 2 or 1; a container sees its own as the root."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        numbers = [place.text(f"sys/fs/cgroup/{name}") or "" for name in (limit, used)]
        if all(number.isdecimal() for number in numbers):
            return max(0, int(numbers[0]) - int(numbers[1]))
    return None
