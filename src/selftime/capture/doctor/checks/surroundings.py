"""What the machine is, and which clock it counts time by."""

from collections.abc import Iterator
from typing import Final

from selftime.capture.doctor.hardware import in_container, in_wsl
from selftime.capture.doctor.observations import Finding, Place, Seen, State, Subject

_SLOW: Final = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
"""Clocks that the kernel reads over a bus, in a microsecond or more, or that only tick every
millisecond: a recorder reads one twice for each operator (Documentation/timers of Linux)."""


def check(seen: Seen) -> Iterator[Finding]:
    yield _kind(seen.place)
    yield _clock(seen.place)


def _kind(place: Place) -> Finding:
    container = in_container(place)
    where = [f"in a container ({container})"] if container else []
    if in_wsl(place):
        return Finding(
            "system",
            Subject.machine,
            State.warning,
            " ".join(["WSL", *where]) + ": Windows owns the GPU, and its kernels are often not "
            "recorded",
            "update the driver of Windows, turn on `Manage GPU Performance Counters: allow all "
            "users` in the NVIDIA Control Panel; or record on Linux itself",
        )
    name = (place.text("proc/sys/kernel/ostype") or "").strip()
    release = (place.text("proc/sys/kernel/osrelease") or "").strip()
    if not name:
        told = "this system has no /proc: what it gives programs cannot be told"
        return Finding("system", Subject.machine, State.unknown, told)
    told = " ".join([name, release, *where]).strip()
    return Finding("system", Subject.machine, State.ok, told)


def _clock(place: Place) -> Finding:
    folder = "sys/devices/system/clocksource/clocksource0"
    current = (place.text(f"{folder}/current_clocksource") or "").strip()
    if not current:
        told = "the system does not tell by what it counts time"
        return Finding("clock", Subject.machine, State.unknown, told)
    if current not in _SLOW:
        told = f"{current}, which is read fast"
        return Finding("clock", Subject.machine, State.ok, told)
    others = (place.text(f"{folder}/available_clocksource") or "").split()
    better = [name for name in others if name not in _SLOW]
    cure = f"try `echo {better[0]}` into /{folder}/current_clocksource" if better else (
        "boot with `tsc=reliable` if the processor's counter is sound; ask the host of a virtual "
        "machine for a better clock"
    )  # fmt: skip
    return Finding(
        "clock",
        Subject.machine,
        State.warning,
        f"{current}, which is slow to read: each recorded operator costs microseconds more",
        cure,
    )
