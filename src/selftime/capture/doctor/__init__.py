"""`selftime doctor`: can this machine record, and if not, why?

Nothing here imports PyTorch into this process: it may be missing, broken, or hang with a driver.
What must be tried is tried in children with a time limit (`probing`, `tries/`); all else is read
from the system's files (`place`). The checks (`checks/`) are functions from that to findings.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from selftime.capture.doctor import probing
from selftime.capture.doctor.checks import (
    devices,
    other_profilers,
    pytorch,
    recording,
    resources,
    surroundings,
    tracing,
)
from selftime.capture.doctor.observations import Finding, Place, Seen, State, Subject

__all__ = [
    "FORMAT",
    "Examination",
    "Finding",
    "Place",
    "Seen",
    "State",
    "Subject",
    "examine",
    "judge",
]

FORMAT: Final = "selftime.doctor/1"
"""The name and version of the JSON form, described in docs/formats.md."""

_CHECKS: Final[tuple[Callable[[Seen], Iterator[Finding]], ...]] = (
    pytorch.check,
    recording.check,
    devices.check,
    tracing.check,
    surroundings.check,
    resources.cores,
    resources.space,
    other_profilers.check,
)


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings, in the order in which they are told."""

    findings: tuple[Finding, ...]

    @property
    def can_record(self) -> bool:
        """Whether nothing stands in the way, of the host or of a device that is there."""
        return all(finding.state is not State.problem for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "can_record": self.can_record,
            "findings": [
                {
                    "check": finding.check,
                    "subject": finding.subject.value,
                    "state": finding.state.value,
                    "seen": finding.seen,
                    "cure": finding.cure,
                }
                for finding in self.findings
            ],
        }


def examine(*, seconds: float, advance: Callable[[int, int], None] | None = None) -> Examination:
    """Try this machine; each trial ends after so many seconds. `advance` hears of trials done."""
    done = advance or _unheard
    done(0, 3)
    with probing.begin(("workers",), seconds=seconds) as beside:
        host = probing.run(("build", "host"), seconds=seconds)
        done(1, 3)
        found = probing.Trial()
        build = host.answer("build")
        if build is not None and (build["cuda"] or build["hip"] or build["xpu"]):
            found = probing.run(("devices", "kernel"), seconds=seconds)
        done(2, 3)
        workers = beside.trial()
    done(3, 3)
    return judge(Seen(Place(), host, workers, found))


def _unheard(_done: int, _all: int) -> None:
    pass


def judge(seen: Seen) -> Examination:
    """What all checks say of it."""
    return Examination(tuple(finding for check in _CHECKS for finding in check(seen)))
