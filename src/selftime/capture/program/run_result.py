"""Summarises how a program ended, and what was recorded of its processes."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from selftime.capture.program.run_channel import ProcessReport


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a program ended, and what was recorded of its processes."""

    status: int
    """Exit status of the program."""
    traces: tuple[Path, ...]
    """Paths of all traces; those of the process that gets advice come first."""
    source: str | None
    """What marked the ends of steps in the process that gets advice; None if no step was found."""
    steps_seen: int
    """Number of steps that the process that gets advice had made when its recording was
    complete."""
    steps_recorded: int
    seconds: float
    """Duration of the program, in seconds."""
    partial: str | None
    """Why the trace has fewer steps than requested; None if it has all of them."""
    reason: str | None
    """Why there is no trace; None if there is one."""
    ledger: Path | None = None
    """Path of the wall-time ledger of the process that gets advice; None if none was written."""
    signal: int | None = None
    """Number of the signal by which the program ends: that of a command; SIGINT of a Python program
    after Ctrl-C; else None."""
    processes: tuple[ProcessReport, ...] = ()
    """Reports of all processes that made steps, sorted by rank."""
    root_process: int = field(default_factory=os.getpid)
    """Id of the program's first process."""

    @property
    def is_job(self) -> bool:
        """Returns whether several processes of the program were recorded."""
        return any(report.process != self.root_process for report in self.processes)

    @property
    def goes_on(self) -> bool:
        """Returns whether processes with steps still run, and may leave a trace."""
        return any(_may_write_trace(report) for report in self.processes if not report.traces)

    @property
    def traces_of_ranks(self) -> tuple[Path, ...]:
        """Returns the last trace of each rank of a distributed job, by rank."""
        ranks = [report for report in self.processes if report.rank is not None and report.traces]
        return tuple(report.traces[-1] for report in ranks)

    @property
    def answer(self) -> Path | None:
        """Returns the trace to give advice on: the last trace of the first process that has one."""
        first = next((report for report in self.processes if report.traces), None)
        return None if first is None else first.traces[-1]

    @property
    def messages_of_root(self) -> tuple[str, ...]:
        """Returns what the first process left to be told of its recordings."""
        return tuple(
            s for r in self.processes if r.process == self.root_process for s in r.messages
        )

    @classmethod
    def from_reports(
        cls,
        status: int,
        seconds: float,
        own: ProcessReport | None,
        others: Iterable[ProcessReport],
        *,
        early_end: str | None = None,
    ) -> "RunResult":
        """Returns the result of a run from the reports of its processes.

        `early_end` says how a command was ended; None if it ended by itself.
        """
        others = list(others)
        reports_of_all = others if own is None else [own, *others]
        # The first process has a ledger in any case, the others only if they made a step.
        with_steps = sorted(
            (
                report
                for report in reports_of_all
                if report.source is not None or (report is not own and report.ledger is not None)
            ),
            key=_report_sort_key,
        )
        with_traces = [report for report in with_steps if report.traces]
        with_ledgers = [report for report in with_steps if report.ledger is not None]
        answering = next(iter([*with_traces, *with_ledgers]), own or ProcessReport())
        return cls(
            status=status,
            traces=tuple(path for report in with_traces for path in report.traces),
            source=answering.source,
            steps_seen=answering.steps_seen,
            steps_recorded=answering.steps_recorded,
            seconds=seconds,
            partial=answering.partial,
            reason=None
            if with_traces
            else _why_nothing_recorded(own, others, with_steps, early_end),
            ledger=answering.ledger,
            processes=(*with_steps, *(r for r in others if r.source is None and r.reason)),
            root_process=os.getpid() if own is None or own.process is None else own.process,
        )

    def sentences(self, show_path: Callable[[Path], str]) -> list[str]:
        """Returns sentences for the user: which processes were recorded, where traces are."""
        if not self.traces and not self.goes_on:
            return [f"nothing was recorded: {self.reason}"]
        with_traces = [report for report in self.processes if report.traces]
        messages = [
            s for r in self.processes for s in r.messages if not _mentions_trace_path(s, r.traces)
        ]
        if len(with_traces) == 1:
            messages += [
                f"recorded {_step_count_range_text(with_traces)} in {show_path(p)}"
                for p in with_traces[0].traces
            ]
        elif with_traces:
            steps = _step_count_range_text(with_traces)
            messages.append(f"recorded {steps} in each of {len(with_traces)} processes:")
            for report in with_traces:
                rank = "" if report.rank is None else f"rank {report.rank}: "
                short = "" if report.partial is None else f" ({report.partial})"
                messages += [f"{rank}{show_path(path)}{short}" for path in report.traces]
        without_trace = [report for report in self.processes if not report.traces]
        messages += [_no_trace_text(r) for r in without_trace if not r.is_left_out]
        messages += _left_out_texts([r for r in without_trace if r.is_left_out])
        return list(dict.fromkeys(messages))


def _report_sort_key(report: ProcessReport) -> tuple[bool, int, int, int, int]:
    """Returns a sort key for reports: by rank; those without a rank by how long they worked.

    A process that trains comes before one that only infers, as a parent that tests what its
    children have trained.
    """
    work = -report.training_ns, -report.step_ns, -report.steps_recorded
    return report.rank is None, report.rank or 0, *work


def _why_nothing_recorded(
    own: ProcessReport | None,
    others: list[ProcessReport],
    with_steps: list[ProcessReport],
    early_end: str | None,
) -> str:
    for report in (*with_steps, *others):
        if report.reason is not None:
            return report.reason if report is own else _process_and_reason(report)
    if own is not None and own.reason is not None:
        return own.reason
    if any(report is not own for report in with_steps):
        return _process_and_reason(with_steps[0])
    if early_end is not None:
        return f"the program was {early_end} before its first step"
    if others:
        return (
            "no step was found: no process that imported torch made an optimizer step, a repeated "
            "module call or a DataLoader loop"
        )
    return "the program never imported torch"


def _no_trace_text(report: ProcessReport) -> str:
    text = _process_and_reason(report)
    return text if _may_write_trace(report) else f"not recorded: {text}"


def _left_out_texts(reports: list[ProcessReport]) -> list[str]:
    """Returns a sentence on the ranks that are not recorded, of which there may be many."""
    if len(reports) < 2:
        return [_no_trace_text(report) for report in reports]
    return [f"not recorded: {len(reports)} ranks, of which only the ledgers are kept (`--ranks`)"]


def _process_and_reason(report: ProcessReport) -> str:
    rank = "" if report.rank is None else f"rank {report.rank}, "
    if _may_write_trace(report):
        return f"{rank}process {report.process} still runs; its trace is written when it ends"
    reason = report.reason or "it ended before a trace was written"
    return f"{rank}process {report.process}: {reason}"


def _may_write_trace(report: ProcessReport) -> bool:
    return report.still_runs and report.reason is None


def _step_count_range_text(reports: list[ProcessReport]) -> str:
    counts = {report.steps_recorded for report in reports}
    low, high = min(counts), max(counts)
    if not high:
        return "a part of a step"
    if low == high:
        return "1 step" if low == 1 else f"{low} steps"
    return f"{low} to {high} steps"


def _mentions_trace_path(sentence: str, traces: tuple[Path, ...]) -> bool:
    return any(str(path) in sentence for path in traces)
