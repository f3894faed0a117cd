"""Examines whether PyTorch programs can be recorded on this machine (`selftime doctor`).

PyTorch is not imported into this process: it may be missing, broken, or hang in a driver. Child
processes with a time limit run the probes that need it (`probe_process`, `probes/`); everything
else is read from the system's files (`observations.Machine`). The checks (`checks/`) are functions
from these observations to findings.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from selftime.capture.doctor import probe_process
from selftime.capture.doctor.checks import (
    device_tracing,
    devices,
    pytorch,
    recording,
    resources,
    system,
)
from selftime.capture.doctor.observations import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    FindingSubject,
    MachineObservations,
)
from selftime.progress import ProgressCallback

__all__ = [
    "FORMAT",
    "DoctorFinding",
    "ExaminedMachine",
    "FindingState",
    "FindingSubject",
    "MachineExamination",
    "MachineObservations",
    "diagnose_machine",
    "examine_machine",
]

FORMAT: Final = "selftime.doctor/1"
"""Name and version of the JSON that `selftime doctor --format json` prints."""

_DOCTOR_CHECKS: Final[tuple[Callable[[MachineObservations], Iterator[DoctorFinding]], ...]] = (
    pytorch.check_pytorch,
    recording.check_finished_recording,
    devices.check_devices,
    device_tracing.check_device_tracing,
    system.check_system,
    resources.check_cores,
    resources.check_space_and_memory,
    system.check_other_profilers,
)


@dataclass(frozen=True, slots=True)
class MachineExamination:
    """Results of all checks of `selftime doctor` on this machine, in the order of the report."""

    findings: tuple[DoctorFinding, ...]

    @property
    def can_record(self) -> bool:
        """Returns whether this machine can record programs: no check has found a problem."""
        return all(finding.state is not FindingState.problem for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as JSON values in the format that `FORMAT` names."""
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


def examine_machine(
    *, seconds: float, advance: ProgressCallback | None = None
) -> MachineExamination:
    """Runs all checks on this machine; each child process may take at most `seconds`.

    Args:
        seconds: Time limit of each child process.
        advance: Called with the number of finished child processes and of all of them.
    """
    done = advance or _do_nothing_on_progress
    done(0, 3)
    with probe_process.start_probes(("workers",), seconds=seconds) as running:
        host = probe_process.run_probes(("build", "host"), seconds=seconds)
        done(1, 3)
        devices_result = probe_process.ProbeResults()
        build = host.answer("build")
        if build is not None and (build["cuda"] or build["hip"] or build["xpu"]):
            devices_result = probe_process.run_probes(("devices", "kernel"), seconds=seconds)
        done(2, 3)
        workers = running.wait()
    done(3, 3)
    return diagnose_machine(MachineObservations(ExaminedMachine(), host, workers, devices_result))


def _do_nothing_on_progress(_done: int, _all: int) -> None:
    pass


def diagnose_machine(observations: MachineObservations) -> MachineExamination:
    """Returns the results of all checks, computed from data observed on a machine."""
    return MachineExamination(
        tuple(finding for check in _DOCTOR_CHECKS for finding in check(observations))
    )
