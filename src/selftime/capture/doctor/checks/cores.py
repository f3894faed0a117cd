"""Which cores does a program get, and does PyTorch know?"""

from collections.abc import Iterator, Mapping
from typing import Any

from selftime.capture.doctor.finding import Finding, State, Subject
from selftime.capture.doctor.observations import Seen


def check(seen: Seen) -> Iterator[Finding]:
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
