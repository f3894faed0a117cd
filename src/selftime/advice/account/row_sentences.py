"""Writes why a row of the account has its verdict, and what would tell more of what is unexplained.

Sentences state shares and rates, and quote names from the trace in backticks.
"""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from selftime import names
from selftime.advice.well_optimised_verdict import (
    MIN_COMPUTING_OPERATOR_NS,
)
from selftime.analysis.account.useful_work import (
    FAST_PRODUCT_GFLOPS_PER_THREAD,
    cpu_peaks_of_trace,
)
from selftime.analysis.call_tree.training_passes import takes_gradients_of_gradients
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.analysis.recording_requirements import RecordingNeed, missing_requirement_sentences
from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.devices import CpuPeakRates
from selftime.names.notebook_cells import place_text
from selftime.trace import Trace
from selftime.units import count_text, rate_text, time_text, whole_percent_text

_NEEDS_BY_CLASS: Final[dict[str, tuple[RecordingNeed, ...]]] = {
    "compute": ("operators", "shapes"),
    "launch": ("operators", "stacks"),
    "python": ("stacks",),
    "other": ("operators", "stacks"),
    "idle": ("operators", "stacks"),
    "data_wait": ("workers",),
}
"""Maps classes of time to what a recording should contain for their time to be explained."""

_SAMPLED_CLASSES: Final = ("python", "other", "idle")
"""Classes of time of which samples of the stack tell more where the recording lacks it."""

_MIN_SHORT_SHARE_OF_DISPATCH: Final = 0.5
"""Smallest share of a row's time in short operators that is told as dispatch."""

_NO_RULE: Final = "no rule explains it"
_MERGED: Final = "each of them is a small part of the step; the view `account` lists them"
_WHAT_TELLS_OF_SLOW_WORK: Final = {
    False: "no rule explains why; `selftime view operators --by shape` lists its shapes and rates",
    True: "no rule explains why; a trial of `torch.compile`, which passes over memory once for "
    "several operators, tells more",
}
"""Maps whether work on a CPU is of the kind that compilers fuse, which memory limits, to what there
is to look at where it is slow."""

_REASONS_BY_CLASS: Final = {
    "communication": f"{_NO_RULE}; the traces of all ranks, advised on as one folder, tell "
    "whether the ranks wait for the last of them or for the transfer",
    "copy": f"{_NO_RULE}; the view `copies` lists sizes and rates",
    "data_wait": _NO_RULE,
    "launch": f"{_NO_RULE}; the view `launches` lists the calls",
    "python": f"{_NO_RULE}; the view `flame` shows its functions",
    "device_wait": f"{_NO_RULE}; the view `syncs` lists what the host waited for",
    "compile": f"{_NO_RULE}; more recorded steps tell whether it happens again",
    "capture": "it becomes part of a graph, and does not run: a program pays it once a graph",
    "garbage_collection": f"{_NO_RULE}; more recorded steps tell how often it happens",
    "idle": f"{_NO_RULE}; the view `idle` lists the gaps with their causes",
    "other": "the trace does not show what ran",
}
"""Maps classes of time to why their time is unexplained, and what is there to look at."""


WAIT_FOR_EARLIER_WORK_SENTENCE: Final = (
    "work was launched and began only then, while nothing recorded ran on the device: it was still "
    "at work that was queued before the recording began, or that of another process; a recording "
    "that begins some steps earlier shows what"
)
"""Why time is unexplained in which the first work of a stream waits."""


def needed_sentence(
    efficiency: float, cpu_peaks: CpuPeakRates | None, *, by_memory: bool, on_device: bool
) -> str:
    """Returns why work is needed: how near the machine's peak it runs."""
    if cpu_peaks is not None:
        share = whole_percent_text(efficiency)
        return f"useful work at {share} of {_cpu_peak_text(cpu_peaks, by_memory=by_memory)}"
    if not on_device:
        rate = efficiency * FAST_PRODUCT_GFLOPS_PER_THREAD
        return (
            f"useful work: products of matrices at {rate_text(rate * 1e9, 'FLOP')} or more for "
            "each thread"
        )
    peak = "memory bandwidth" if by_memory else "peak rate"
    return f"useful work at {whole_percent_text(efficiency)} of the device's {peak}"


def _cpu_peak_text(peaks: CpuPeakRates, *, by_memory: bool) -> str:
    """Returns the measured rate that work on a CPU is compared with, as the end of a sentence."""
    if peaks.threads == 1:
        does = "copies as many bytes" if by_memory else "multiplies matrices"
        return f"the rate at which one thread of this CPU {does}"
    do = "copy as many bytes" if by_memory else "multiply matrices"
    return f"the rate at which {peaks.threads} threads of this CPU {do}"


@dataclass(frozen=True, slots=True)
class OperatorsOfRow:
    """How many operators a row has in a step, their median duration in ns, and modelled rates."""

    per_step: float
    median_ns: float
    short_share: float
    """Share of the row's time in operators shorter than `MIN_COMPUTING_OPERATOR_NS`."""
    flops_per_ns: float | None = None
    bytes_per_ns: float | None = None
    are_by_memory: bool = False
    """Whether the bytes that they move limit them, by their models, more than their operations."""
    are_products: bool = False
    """Whether most of their time is in products of matrices, convolutions or attention."""
    places: int = 1
    """The number of lines or names that the row adds up."""

    @property
    def are_mostly_dispatch(self) -> bool:
        """Whether most of the time is in operators that dispatch more than they compute."""
        return self.short_share >= _MIN_SHORT_SHARE_OF_DISPATCH

    def rates_text(self) -> str:
        """Returns the modelled rates of computing and moving; empty if none is known."""
        told = [
            (self.flops_per_ns, "computes", "FLOP"),
            (self.bytes_per_ns, "moves", "B"),
        ]
        return " and ".join(
            f"{verb} {rate_text(rate * 1e9, unit)}" for rate, verb, unit in told if rate is not None
        )

    def dispatch_sentence(self, *, may_compile: bool) -> str:
        """Returns how many operators a step has here, and that most of their time is dispatch."""
        trial = "`torch.compile`, of " if may_compile else ""
        count, short = max(round(self.per_step), 1), time_text(MIN_COMPUTING_OPERATOR_NS)
        operators = "one operator" if count == 1 else f"{count_text(count)} operators"
        return (
            f"{operators} a step, {whole_percent_text(self.short_share)} of the time in those "
            f"shorter than {short}: mostly their dispatch, of which a trial of {trial}"
            "larger batches, or of fewer and larger operators, tells more"
        )

    def number_sentence(self) -> str:
        """Returns how many operators a step has here, and how long they are."""
        count = max(round(self.per_step), 1)
        if count == 1:
            return f"one operator a step, of {time_text(self.median_ns)}"
        median = time_text(self.median_ns)
        return f"{count_text(count)} operators a step, half of them shorter than {median}"


@dataclass(frozen=True, slots=True)
class UnexplainedTime:
    """Says why time of a trace is unexplained, and what would tell more."""

    trace: Trace
    has_all_ranks: bool = False
    """Whether the traces of the other ranks of the job were looked at, too."""

    @property
    def cpu_peaks(self) -> CpuPeakRates | None:
        """Returns what the CPU can do, where it computes the step; None if unknown."""
        return cpu_peaks_of_trace(self.trace)

    @property
    def may_compile(self) -> bool:
        """Whether `torch.compile` can run the program: it derives no gradients again."""
        return not takes_gradients_of_gradients(self.trace)

    @property
    def has_device_work(self) -> bool:
        """Returns whether a device works in the recording."""
        return self.trace.device_args.height > 0

    def sentence(
        self,
        time_class: str,
        what: str | None,
        efficiency: float | None,
        operators: OperatorsOfRow,
        *,
        on_device: bool,
    ) -> str:
        """Returns why time of a class is unexplained, and what would tell more.

        Args:
            time_class: The class, one of `TIME_CLASSES`.
            what: The operator, frame or kernel that took most of the time; None if unknown.
            efficiency: How near the machine's peak the work runs; None if unknown.
            operators: How many pieces of work there are, and how long they are.
            on_device: Whether it is work of a device.
        """
        lacks = missing_requirement_sentences(self.trace, _NEEDS_BY_CLASS.get(time_class, ()))
        is_dispatch = time_class == "compute" and operators.are_mostly_dispatch
        if operators.places > 1 and not lacks and not is_dispatch:
            return _MERGED
        if time_class == "compute":
            return self._sentence_on_computing(lacks, efficiency, operators, on_device=on_device)
        reason = _REASONS_BY_CLASS.get(time_class, _NO_RULE)
        if time_class == "python":
            reason = _reason_of_python(what, operators)
        if time_class == "launch":
            reason = f"{operators.number_sentence()}: {reason}"
        if lacks:
            sampled = self._sampled_line_text() if time_class in _SAMPLED_CLASSES else ""
            told = sampled or f"that needs {lacks[0]}"
            return f"{reason.partition(';')[0]}; {told}"
        if time_class == "communication" and self.has_all_ranks:
            return f"{_NO_RULE}; the view `stragglers` shows for which ranks the others wait"
        return reason

    def _sampled_line_text(self) -> str:
        """Returns where steps without recording were sampled most often; empty if unknown."""
        lines = sampled_lines(self.trace.run).drop_nulls("file")
        if not lines.height:
            return ""
        row = lines.row(0, named=True)
        share = whole_percent_text(row["share"])
        place = place_text(PurePath(row["file"]).name, row["line"])
        return f"{share} of the samples of steps without recording are at `{place}`"

    def _sentence_on_computing(
        self,
        lacks: list[str],
        efficiency: float | None,
        operators: OperatorsOfRow,
        *,
        on_device: bool,
    ) -> str:
        if not on_device:
            return self._sentence_on_host_computing(lacks, efficiency, operators)
        if lacks:
            return f"how near the machine's peak it runs is unknown; that needs {lacks[0]}"
        if efficiency is not None:
            share = whole_percent_text(efficiency)
            return f"runs at {share} of the device's peak, and no rule explains why"
        if common_peak_rates_of_devices(self.trace) is None:
            return "how near the device's peak it runs is unknown: its peak rates are not known"
        return "there is no model of most of these operators"

    def _why_peaks_are_unknown(self) -> str:
        """Returns why the recorder could not measure them, as part of a sentence."""
        reason = self.trace.run.facts.get("cpu_peaks_unknown")
        return f", as {reason}" if isinstance(reason, str) else ""

    def _sentence_on_host_computing(
        self, lacks: list[str], efficiency: float | None, operators: OperatorsOfRow
    ) -> str:
        if operators.are_mostly_dispatch:
            return operators.dispatch_sentence(may_compile=self.may_compile)
        if self.has_device_work:
            return "operators on the host that launch no device work, and no rule explains them"
        if lacks:
            return f"how near the machine's peak it runs is unknown; that needs {lacks[0]}"
        if self.cpu_peaks is not None and efficiency is not None:
            limit = _cpu_peak_text(self.cpu_peaks, by_memory=operators.are_by_memory)
            is_fusible = operators.are_by_memory and not operators.are_products
            why = _WHAT_TELLS_OF_SLOW_WORK[is_fusible and self.may_compile]
            return f"runs at {whole_percent_text(efficiency)} of {limit}, and {why}"
        if self.cpu_peaks is None and operators.rates_text():
            return (
                f"how near the peak of this CPU it runs is unknown{self._why_peaks_are_unknown()}: "
                f"by the models it {operators.rates_text()}"
            )
        return "there is no model of most of these operators"


def _reason_of_python(what: str | None, calls: OperatorsOfRow) -> str:
    """Returns why time of the interpreter is unexplained; of many calls, that none has most."""
    if what is None and calls.per_step >= 2:
        return (
            f"{count_text(calls.per_step)} calls a step, of which no function takes half of the "
            f"time; {_REASONS_BY_CLASS['python']}"
        )
    if what is not None and names.runs_backward_pass(what):
        return (
            "autograd's own work between the operators of the backward pass, which grows with "
            "their number and not with their size"
        )
    if what is not None and names.is_built_in_frame(what):
        return f"{_NO_RULE}; it is a function in C, within which no line is known"
    return _REASONS_BY_CLASS["python"]


def small_sentence(least_share: float) -> str:
    """Returns that rows are too small to matter."""
    return f"less than {whole_percent_text(least_share)} of the step"
