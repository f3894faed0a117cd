"""What the recording knew of the program's settings and of the machine; None where it did not.

Facts are read from a file that anybody may have written: a value of another type is unknown.
"""

from typing import Any

from selftime.trace import Trace

__all__ = [
    "cores",
    "environment",
    "local_ranks",
    "others",
    "setting",
    "threads",
    "torch_version",
]


def setting(trace: Trace, name: str) -> Any:
    """One value of the facts' `settings`."""
    return _part(trace, "settings").get(name)


def environment(trace: Trace, name: str) -> str | None:
    """An environment variable that the recorder keeps."""
    kept = _part(trace, "settings").get("environment")
    value = kept.get(name) if isinstance(kept, dict) else None
    return value if isinstance(value, str) else None


def torch_version(trace: Trace) -> tuple[int, int] | None:
    """Major and minor version of the PyTorch that ran the program."""
    told = trace.facts.get("torch")
    major, _, rest = told.partition(".") if isinstance(told, str) else ("", "", "")
    minor = rest.partition(".")[0]
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return None
    return int(major), int(minor)


def threads(trace: Trace) -> int | None:
    """Threads that share an operator's work."""
    told = setting(trace, "threads")
    told = trace.facts.get("threads") if told is None else told
    return told if type(told) is int and told > 0 else None


def cores(trace: Trace) -> float | None:
    """Cores that the process can have."""
    told = _part(trace, "cores").get("effective")
    return float(told) if isinstance(told, int | float) and told > 0 else None


def others(trace: Trace) -> float | None:
    """Cores that other programs took while this was recorded, and machines around this one."""
    usage, machine = _part(trace, "usage"), _part(trace, "cores")
    workers = usage.get("workers")
    in_workers = workers.get("cpu_s") if isinstance(workers, dict) else 0.0
    told = [usage.get("busy"), machine.get("affinity"), usage.get("process_s"), in_workers]
    wall = usage.get("wall_s")
    known = [float(value) for value in told if isinstance(value, int | float)]
    if len(known) < len(told) or not isinstance(wall, int | float) or wall <= 0:
        return None
    busy, count, own, theirs = known
    return max(busy * count - (own + theirs) / wall, 0.0)


def local_ranks(trace: Trace) -> int:
    """Processes of the job that share these cores; 1 where nobody tells.

    A process that may run on a part of the cores only has them for itself, as launchers pin ranks.
    """
    told = environment(trace, "LOCAL_WORLD_SIZE") or ""
    machine = _part(trace, "cores")
    if not told.isdecimal() or machine.get("affinity") != machine.get("logical"):
        return 1
    return max(int(told), 1)


def _part(trace: Trace, name: str) -> dict[str, Any]:
    part = trace.facts.get(name)
    return part if isinstance(part, dict) else {}
