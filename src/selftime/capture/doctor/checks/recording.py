"""Does a recording of the CPU hold what it should?"""

from collections.abc import Iterator, Mapping
from typing import Any

from selftime.capture.doctor.observations import Finding, Seen, State, Subject


def check(seen: Seen) -> Iterator[Finding]:
    if seen.host.answer("build") is None:
        return
    host = seen.host.answer("host")
    if host is None:
        yield _failed(seen.host.why("host"))
    else:
        yield _operators(host)
        yield _lines(host)
        yield _clock(host)
    yield _workers(seen)


def _failed(why: str | None) -> Finding:
    if why is None:
        return Finding("capture", Subject.recording, State.unknown, "was not tried")
    return Finding(
        "capture",
        Subject.recording,
        State.problem,
        f"a recording of two lines of Python failed: {why}",
        "try another version of PyTorch or Python; if the process crashed, record without source "
        "lines: `selftime run --no-stack`",
    )


def _operators(host: Mapping[str, Any]) -> Finding:
    missing = {"aten::mul", "aten::add"} - set(host["operators"])
    if missing:
        return Finding(
            "capture",
            Subject.recording,
            State.problem,
            f"a recording lacks {' and '.join(sorted(missing))}, which ran in it",
            "look for another profiler in this Python: one that starts by itself takes the "
            "recorder away",
        )
    told = "two lines of Python were recorded, with their operators and frames"
    if host["frames"]:
        return Finding("capture", Subject.recording, State.ok, told)
    return Finding(
        "capture",
        Subject.recording,
        State.warning,
        "operators are recorded, and no Python frames: there will be no source lines",
        "look for a debugger or coverage tool that traces this Python, and leave it out",
    )


def _lines(host: Mapping[str, Any]) -> Finding:
    if set(host["expected_lines"]) <= set(host["lines"]):
        told = "the executing line of each operator is known"
        return Finding("lines", Subject.recording, State.ok, told)
    found = ", ".join(map(str, host["lines"])) or "none"
    wanted = ", ".join(map(str, host["expected_lines"]))
    return Finding(
        "lines",
        Subject.recording,
        State.warning,
        f"operators of lines {wanted} were told to be of {found}",
        "read lines of this PyTorch with care, and tell its version to selftime's authors",
    )


def _clock(host: Mapping[str, Any]) -> Finding:
    if host["clock_ok"]:
        told = "the recorder's clock agrees with the system's"
        return Finding("host clock", Subject.recording, State.ok, told)
    return Finding(
        "host clock",
        Subject.recording,
        State.warning,
        "operators were recorded outside of the time in which they ran",
        "recordings of several processes may not line up; if the clock was just set, try again",
    )


def _workers(seen: Seen) -> Finding:
    workers = seen.workers.answer("workers")
    if workers is None:
        why = seen.workers.why("workers")
        if why is None:
            return Finding("workers", Subject.recording, State.unknown, "was not tried")
        return Finding(
            "workers",
            Subject.recording,
            State.warning,
            f"workers of a DataLoader could not be tried: {why}",
            "if programs hang as they load, pass num_workers=0, and look at shared memory below",
        )
    if workers["failed"]:
        way, why = next(iter(workers["failed"].items()))
        return Finding(
            "workers",
            Subject.recording,
            State.warning,
            f"a worker of a DataLoader that is started by {way} hands nothing over: {why}",
            "pass num_workers=0, or the other of fork and spawn as multiprocessing_context",
        )
    ways = " and ".join(workers["ways"])
    told = f"a DataLoader's workers run by {ways}; {workers['default']} is the default"
    return Finding("workers", Subject.recording, State.ok, told)
