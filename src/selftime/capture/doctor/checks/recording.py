"""Checks that a CPU recording contains all operators, and that DataLoader workers start."""

from collections.abc import Iterator, Mapping
from typing import Any

from selftime.capture.doctor.observations import (
    DoctorFinding,
    FindingState,
    FindingSubject,
    MachineObservations,
)


def check_finished_recording(observations: MachineObservations) -> Iterator[DoctorFinding]:
    if observations.host.answer("build") is None:
        return
    host = observations.host.answer("host")
    if host is None:
        yield _failed_recording_finding(observations.host.error("host"))
    else:
        yield _recorded_operators_finding(host)
        yield _source_lines_finding(host)
        yield _host_clock_finding(host)
    yield _dataloader_workers_finding(observations)


def _failed_recording_finding(why: str | None) -> DoctorFinding:
    if why is None:
        return DoctorFinding(
            "capture", FindingSubject.recording, FindingState.unknown, "was not tested"
        )
    return DoctorFinding(
        "capture",
        FindingSubject.recording,
        FindingState.problem,
        f"a recording of two lines of Python failed: {why}",
        "try another version of PyTorch or Python; if the process crashed, record without source "
        "lines: `selftime run --no-stack`",
    )


def _recorded_operators_finding(host: Mapping[str, Any]) -> DoctorFinding:
    missing = {"aten::mul", "aten::add"} - set(host["operators"])
    if missing:
        return DoctorFinding(
            "capture",
            FindingSubject.recording,
            FindingState.problem,
            f"a recording lacks {' and '.join(sorted(missing))}, which ran in it",
            "look for another profiler in this Python: one that starts automatically keeps "
            "PyTorch's from recording",
        )
    seen = "two lines of Python were recorded, with their operators and frames"
    if host["frames"]:
        return DoctorFinding("capture", FindingSubject.recording, FindingState.ok, seen)
    return DoctorFinding(
        "capture",
        FindingSubject.recording,
        FindingState.warning,
        "operators are recorded, but no Python frames: there will be no source lines",
        "look for a debugger or coverage tool that traces this Python, and disable it",
    )


def _source_lines_finding(host: Mapping[str, Any]) -> DoctorFinding:
    if set(host["expected_lines"]) <= set(host["lines"]):
        seen = "the executing line of each operator is known"
        return DoctorFinding("lines", FindingSubject.recording, FindingState.ok, seen)
    found = ", ".join(map(str, host["lines"])) or "none"
    wanted = ", ".join(map(str, host["expected_lines"]))
    return DoctorFinding(
        "lines",
        FindingSubject.recording,
        FindingState.warning,
        f"operators of lines {wanted} were assigned to lines {found}",
        "do not rely on source lines with this PyTorch, and report its version to selftime",
    )


def _host_clock_finding(host: Mapping[str, Any]) -> DoctorFinding:
    if host["clock_ok"]:
        seen = "the recorder's clock agrees with the system's"
        return DoctorFinding("host clock", FindingSubject.recording, FindingState.ok, seen)
    return DoctorFinding(
        "host clock",
        FindingSubject.recording,
        FindingState.warning,
        "operators were recorded outside of the time in which they ran",
        "recordings of several processes may not line up; if the clock was just set, try again",
    )


def _dataloader_workers_finding(observations: MachineObservations) -> DoctorFinding:
    workers = observations.workers.answer("workers")
    if workers is None:
        why = observations.workers.error("workers")
        if why is None:
            return DoctorFinding(
                "workers", FindingSubject.recording, FindingState.unknown, "was not tested"
            )
        return DoctorFinding(
            "workers",
            FindingSubject.recording,
            FindingState.warning,
            f"DataLoader workers could not be tested: {why}",
            "if programs hang while they load data, pass num_workers=0; see shared memory below",
        )
    if workers["failed"]:
        method, why = next(iter(workers["failed"].items()))
        return DoctorFinding(
            "workers",
            FindingSubject.recording,
            FindingState.warning,
            f"a DataLoader worker started by {method} returns no data: {why}",
            "pass num_workers=0, or the other of fork and spawn as multiprocessing_context",
        )
    methods = " and ".join(workers["ways"])
    seen = f"DataLoader workers run with {methods}; {workers['default']} is the default"
    return DoctorFinding("workers", FindingSubject.recording, FindingState.ok, seen)
