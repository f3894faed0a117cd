"""Names the values of enumerated columns in words, for sentences, tables and the web page.

A column such as `part` of the view `run` holds identifiers, such as `first_batch`, that options and
filters take. Wherever a report shows one of them in words, these are the words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Label:
    """An enumerated value in words: as a name, in a sentence after an amount of time, explained."""

    text: str
    """The name of the value, for a cell, a legend or a heading."""
    after_time: str | None = None
    """The words after an amount of time, such as `for the first batch`; None: the same text."""
    doc: str = ""
    """What the value means, as a sentence; empty where the name says it."""

    @property
    def phrase(self) -> str:
        """The words that follow an amount of time in a sentence."""
        return self.text if self.after_time is None else self.after_time


RUN_PART_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "start": Label("starting Python"),
        "imports": Label("importing"),
        "data": Label("building data and model"),
        "first_batch": Label("first batch", "for the first batch"),
        "compile": Label("compiling"),
        "steps": Label("steps", "in steps"),
        "data_wait": Label("waiting for data"),
        "evaluation": Label("evaluation", "in evaluation"),
        "checkpoint": Label("reading and writing checkpoints"),
        "epoch_boundary": Label("starting iterators of DataLoaders"),
        "garbage_collection": Label(
            "garbage collections of Python", "in garbage collections of Python"
        ),
        "logging": Label("logging"),
        "processes": Label("waiting for other processes"),
        "recording": Label("selftime's own recording"),
        "end": Label("after the last step"),
        "other": Label("other work", "in other work"),
    }
)
"""The parts of a run, as in the view `run`."""

SLOW_STEP_CAUSE_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        **RUN_PART_LABELS,
        "queued": Label("waiting for a core that others used"),
        "program": Label("the program"),
    }
)
"""What most of a slow step's time above the median was spent on, as in the view `run_steps`."""

TIME_CLASS_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "compute": Label("computing"),
        "communication": Label("communication", "in communication"),
        "copy": Label("copying"),
        "data_wait": Label("waiting for data"),
        "launch": Label("launching device work"),
        "python": Label("Python", "in Python"),
        "device_wait": Label("waiting for the device"),
        "compile": Label("compiling"),
        "capture": Label("capturing a CUDA graph"),
        "garbage_collection": Label("garbage collections", "in garbage collections"),
        "idle": Label("idle before device work"),
        "other": Label("not explained by the trace", "that the trace does not explain"),
    }
)
"""What the time of a step is spent on, as in the view `account`."""

ACCOUNT_VERDICT_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "finding": Label("can be shortened", doc="A finding says how."),
        "needed": Label("needed", doc="Useful work near what the machine can do."),
        "small": Label("small", doc="Too little time to matter."),
        "unexplained": Label("unexplained", doc="No rule and no model explains the time."),
    }
)
"""The verdicts on rows of a step's account."""

_GAP_CAUSE_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "profiler": Label("profiler", doc="The profiler was at work."),
        "garbage_collection": Label("garbage collection", doc="Python's collector ran."),
        "compilation": Label("compilation", doc="The host compiled code."),
        "kernel_loading": Label("kernel loading", doc="The runtime loaded kernels."),
        "data_loading": Label("data loading", doc="The host waited for a batch."),
        "checkpoint": Label("checkpoint", doc="The host read or wrote a checkpoint."),
        "logging": Label("logging", doc="The host wrote a log."),
        "allocation": Label("device memory allocation", doc="The host allocated device memory."),
        "pageable_copy": Label(
            "pageable copy", doc="The host copied memory that is not pinned to the device."
        ),
        "sync": Label("sync", doc="A wait of the host for the device had emptied the queue."),
        "collective": Label("collective", doc="The host launched a collective."),
        "optimizer": Label("optimizer", doc="The host was in the optimizer."),
        "runtime": Label("runtime call", doc="The host was in a call of the device runtime."),
        "dispatch": Label("operator dispatch", doc="The host was in PyTorch's operators."),
        "python": Label("Python", doc="The host was in Python, between operators."),
        "unknown": Label("unknown", doc="No slice tells what the host's thread did."),
        "other_stream": Label("other stream", doc="Another stream of the device was at work."),
        "queued": Label("queued", doc="The work after the gap had been launched already."),
        "unrecorded": Label(
            "unrecorded", doc="The recording lost work: this may not have been a gap."
        ),
        "kernel_gap": Label(
            "kernel gap", doc="A gap so short that it is normal between two kernels."
        ),
    }
)
"""Why a device was idle, as in the view `idle`."""

_LATENESS_CAUSE_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "data": Label("waiting for data"),
        "compute": Label("time in kernels"),
        "clocks": Label("time in kernels"),
        "gc": Label("garbage collection"),
        "host": Label("host time"),
    }
)
"""What a rank that is late spends more time on than others, as in the view `stragglers`."""

_STEP_CATEGORY_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "kernel": Label("kernels"),
        "memcpy": Label("copies"),
        "memset": Label("fills"),
        "communication": Label("collectives"),
        "runtime": Label("runtime calls"),
        "data_loading": Label("waiting for data"),
        "cpu": Label("operators of the host"),
        "other": Label("what no slice explains"),
    }
)
"""What the time of a step is divided into, as in the view `steps`."""

_WAIT_KIND_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "stream": Label("waiting for a stream"),
        "device": Label("waiting for the device"),
        "event": Label("waiting for an event"),
        "copy_to_host": Label("waiting for a copy to the host"),
        "copy_to_device": Label("waiting for a copy to the device"),
        "copy": Label("waiting for a copy"),
    }
)
"""How the host waits for the device, as in the view `syncs`."""

LINE_EVIDENCE_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "stamp": Label("recorded", doc="The recording marked this line."),
        "stack": Label("stack", doc="The Python stack was at this line."),
        "static": Label("source", doc="The line was found by parsing the source file."),
        "definition": Label(
            "function", doc="The function begins here; which of its lines ran is unknown."
        ),
        "module": Label("module", doc="The module is known, its line is not."),
        "unknown": Label("unknown", doc="It is unknown how the line was found."),
    }
)
"""How a source line is known, as in the column `how`."""

PATH_KIND_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "compute": Label("computing", doc="a kernel runs"),
        "communication": Label("communicating", doc="a collective runs"),
        "copy": Label("copying", doc="a copy or fill runs"),
        "latency": Label(
            "launch latency",
            doc="from the launch of work, or the end of the work before it, to its begin",
        ),
        "data": Label("waiting for data", doc="the host waits for a batch"),
        "gc": Label("garbage collection"),
        "host": Label("host", doc="the host runs operators, calls or Python"),
        "unknown": Label("unknown", doc="before work whose dependency is not recorded"),
    }
)
"""The kinds of segments of a critical path."""

_PATH_LINK_LABELS: Final[Mapping[str, Label]] = MappingProxyType(
    {
        "begin": Label("the recording or step began"),
        "stream": Label("the work before it on its stream ended"),
        "launch": Label("it was launched"),
        "event": Label("work of another stream ended, by a recorded event"),
        "inferred": Label("work of another stream ended just before: inferred, not recorded"),
        "wait": Label("device work ended that the host waited for"),
        "thread": Label("another thread continued"),
        "host": Label("its thread went on"),
        "unknown": Label("unknown"),
    }
)
"""Why a segment of a critical path began."""

_LABELS_BY_COLUMN: Final[Mapping[tuple[str, str], Mapping[str, Label]]] = MappingProxyType(
    {
        ("run", "part"): RUN_PART_LABELS,
        ("run_parts", "part"): RUN_PART_LABELS,
        ("run_steps", "cause"): SLOW_STEP_CAUSE_LABELS,
        ("run_curve", "cause"): SLOW_STEP_CAUSE_LABELS,
        ("account", "class"): TIME_CLASS_LABELS,
        ("idle", "cause"): _GAP_CAUSE_LABELS,
        ("steps", "longer_in"): _STEP_CATEGORY_LABELS,
        ("syncs", "kind"): _WAIT_KIND_LABELS,
        ("stragglers", "cause"): _LATENESS_CAUSE_LABELS,
        ("arrivals", "longest"): PATH_KIND_LABELS,
        ("arrivals", "cause"): _LATENESS_CAUSE_LABELS,
        ("collective_waits", "longest"): PATH_KIND_LABELS,
        ("collective_waits", "cause"): _LATENESS_CAUSE_LABELS,
        ("lines", "how"): LINE_EVIDENCE_LABELS,
        ("critical_path_band", "kind"): PATH_KIND_LABELS,
        ("critical_path_band", "link"): _PATH_LINK_LABELS,
        ("overview", "metric"): {
            "found": Label("steps found"),
            "counted": Label("steps counted"),
        },
    }
)
"""Labels by view, or table of a comparison, and column."""


def column_labels(table: str, column: str) -> Mapping[str, Label]:
    """Returns the labels of a column's values, by value; empty if the values say it themselves."""
    return _LABELS_BY_COLUMN.get((table, column), {})
