"""How a run ended, and what was recorded of each of its processes."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from selftime.capture.program.job import Report


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the program ended and what was recorded of it."""

    status: int
    """The program's own exit status."""
    traces: tuple[Path, ...]
    """The files that were written, first those of the process that answers for all."""
    source: str | None
    """What told where steps end in that process; None if no step was found."""
    steps_seen: int
    """Its steps until the recording was done; nobody counts after that."""
    steps_recorded: int
    seconds: float
    """How long the program ran."""
    partial: str | None
    """Why its trace holds less than was asked for, if it does."""
    reason: str | None
    """Why there is no trace, if there is none."""
    processes: tuple[Report, ...] = ()
    """What was recorded of each process that made steps, in the order of their ranks."""

    @property
    def is_job(self) -> bool:
        """Whether other processes than this one were recorded."""
        return any(report.process != os.getpid() for report in self.processes)

    @property
    def answer(self) -> Path | None:
        """The trace that answers for all: the last one of its process."""
        first = next((report for report in self.processes if report.traces), None)
        return None if first is None else first.traces[-1]

    @classmethod
    def of(
        cls, status: int, seconds: float, own: Report | None, others: Iterable[Report]
    ) -> "RunResult":
        """The result of a run: what was recorded in its root, and in the others."""
        others = list(others)
        everyone = others if own is None else [own, *others]
        stepped = sorted((r for r in everyone if r.source is not None), key=_order)
        recorded = [report for report in stepped if report.traces]
        answering = recorded[0] if recorded else own or Report()
        return cls(
            status=status,
            traces=tuple(path for report in recorded for path in report.traces),
            source=answering.source,
            steps_seen=answering.steps_seen,
            steps_recorded=answering.steps_recorded,
            seconds=seconds,
            partial=answering.partial,
            reason=None if recorded else _why_nothing(own, others, stepped),
            processes=(*stepped, *(r for r in others if r.source is None and r.reason)),
        )

    def sentences(self, seen: Callable[[Path], str]) -> list[str]:
        """What to say of a run of several processes; `seen` writes a path as its reader sees it."""
        if not self.traces:
            return [f"nothing was recorded: {self.reason}"]
        recorded = [report for report in self.processes if report.traces]
        told = [s for r in self.processes for s in r.said if not _names(s, r.traces)]
        if len(recorded) == 1:
            told += [f"recorded {_steps(recorded)} in {seen(p)}" for p in recorded[0].traces]
        else:
            told.append(f"recorded {_steps(recorded)} in each of {len(recorded)} processes:")
            for report in recorded:
                rank = "" if report.rank is None else f"rank {report.rank}: "
                short = "" if report.partial is None else f" ({report.partial})"
                told += [f"{rank}{seen(path)}{short}" for path in report.traces]
        told += [f"not recorded: {_of(r)}" for r in self.processes if not r.traces]
        return list(dict.fromkeys(told))


def _order(report: Report) -> tuple[bool, int, int]:
    """By rank; where there is none, the process with the most steps in its trace first."""
    return report.rank is None, report.rank or 0, -report.steps_recorded


def _why_nothing(own: Report | None, others: list[Report], stepped: list[Report]) -> str:
    for report in (*stepped, *others):
        if report.reason is not None:
            return report.reason if report is own else _of(report)
    if own is not None and own.reason is not None:
        return own.reason
    if others:
        return (
            "no step was found: no process that imported torch made an optimizer step, a repeated "
            "module call or a DataLoader loop"
        )
    return "the program never imported torch"


def _of(report: Report) -> str:
    rank = "" if report.rank is None else f"rank {report.rank}, "
    return f"{rank}process {report.process}: {report.reason}"


def _steps(reports: list[Report]) -> str:
    counts = {report.steps_recorded for report in reports}
    low, high = min(counts), max(counts)
    if low == high:
        return "1 step" if low == 1 else f"{low} steps"
    return f"{low} to {high} steps"


def _names(sentence: str, traces: tuple[Path, ...]) -> bool:
    return any(str(path) in sentence for path in traces)
