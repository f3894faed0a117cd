"""A run of a program as immutable tables: where its wall time went from start to end.

`selftime run` writes one for each process that uses torch, beside its recording of a few steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from selftime import schema
from selftime.devices import CpuPeakRates
from selftime.schema import Column, Table

COUNTED: Final = (
    "data_wait",
    "epoch_boundary",
    "evaluation",
    "compile",
    "garbage_collection",
    "recording",
)
"""Columns of the table `run_segments` that hold time in ns by activity; the activities do not
overlap."""

PHASES: Final = ("forward", "backward", "optimizer", "device")
"""Columns of the table `run_segments` that hold time in ns by phase of a step, where it is known.
They overlap with `COUNTED`: garbage is collected in a backward pass, too."""

RUN_SEGMENTS: Final = Table(
    "run_segments",
    "The time segments of a run in order: before the first step, each step, after the last.",
    (
        Column("id", pl.UInt32, "id", "The segment's number; segments with a kind are steps."),
        Column("start", pl.Int64, "instant", "Start of the segment, since the process's start."),
        Column("duration", pl.Int64, "ns", "The duration of the segment."),
        Column("kind", schema.NameType, "name", "Kind of step; null outside steps."),
        Column("data_wait", pl.Int64, "ns", "Time in the segment waiting for a DataLoader batch."),
        Column("epoch_boundary", pl.Int64, "ns", "Time spent starting a DataLoader's iterator."),
        Column("evaluation", pl.Int64, "ns", "Time in evaluations, such as after `model.eval()`."),
        Column("compile", pl.Int64, "ns", "Time in the segment that `torch.compile` took."),
        Column("garbage_collection", pl.Int64, "ns", "Time in Python's garbage collections."),
        Column("recording", pl.Int64, "ns", "Time that selftime itself took."),
        Column("recorded", pl.Boolean, "flag", "Whether a profiler recorded the segment."),
        Column("forward", pl.Int64, "ns", "Time before backward passes, without waits.", True),
        Column("backward", pl.Int64, "ns", "Time in backward passes.", True),
        Column("optimizer", pl.Int64, "ns", "Time in optimizer steps.", True),
        Column("device", pl.Int64, "ns", "Time from the device's end of the step before.", True),
        Column("queued", pl.Int64, "ns", "Time ready to run, while others used the cores.", True),
        Column("passes", pl.Int64, "count", "Backward passes, where there are several.", True),
    ),
)

RUN_READINGS: Final = Table(
    "run_readings",
    "What the program was doing in slow segments, from samples of its Python stack.",
    (
        Column("segment", pl.UInt32, "id", "The id of the segment in `run_segments`."),
        Column("part", schema.NameType, "name", "The activity; `program` is the user's own code."),
        Column("what", pl.String, "text", "The imported package, or checkpoint function.", True),
        Column("file", pl.String, "text", "The user's source file in the stack samples.", True),
        Column("line", pl.Int32, "id", "The user's source line in the stack samples.", True),
        Column("function", pl.String, "name", "The user's function in the samples.", True),
        Column("duration", pl.Int64, "ns", "Time estimated from the gaps between stack samples."),
        Column("count", pl.UInt32, "count", "The number of stack samples with the activity."),
    ),
)

RUN_SAMPLES: Final = Table(
    "run_samples",
    "What the program was doing at random instants of usual steps, in order.",
    (
        Column("segment", pl.UInt32, "id", "The id of the segment in `run_segments`."),
        Column("part", schema.NameType, "name", "The activity; `program` is the user's own code."),
        Column("file", pl.String, "text", "The user's source file in the stack.", True),
        Column("line", pl.Int32, "id", "The user's source line in the stack.", True),
        Column("function", pl.String, "name", "The user's function in the stack.", True),
    ),
)

RUN_COMPILATIONS: Final = Table(
    "run_compilations",
    "Compilations by `torch.compile`, in order.",
    (
        Column("start", pl.Int64, "instant", "Start of compilation since process start.", True),
        Column("duration", pl.Int64, "ns", "The duration of the compilation.", True),
        Column("function", pl.String, "name", "The function that was compiled.", True),
        Column("file", pl.String, "text", "Source file of the compiled function.", True),
        Column("line", pl.Int32, "id", "First source line of the compiled function.", True),
        Column("reason", pl.String, "text", "Why it was recompiled; null the first time.", True),
    ),
)

RUN_ITERATORS: Final = Table(
    "run_iterators",
    "Iterators of DataLoaders that the program made, in order: one for each pass over the data.",
    (
        Column(
            "start",
            pl.Int64,
            "instant",
            "When the creation of the DataLoader's iterator began, since the process's start.",
        ),
        Column(
            "duration",
            pl.Int64,
            "ns",
            "How long creating the DataLoader's iterator took, without the first batch.",
        ),
        Column("workers", pl.Int64, "count", "The number of worker processes of the DataLoader."),
        Column(
            "starts_workers",
            pl.Boolean,
            "flag",
            "Whether creating the iterator started worker processes.",
        ),
        Column(
            "file",
            pl.String,
            "text",
            "The user's source file that created the DataLoader's iterator.",
            True,
        ),
        Column(
            "line",
            pl.Int32,
            "id",
            "The user's source line that created the DataLoader's iterator.",
            True,
        ),
        Column(
            "function",
            pl.String,
            "name",
            "The user's function that created the DataLoader's iterator.",
            True,
        ),
        Column(
            "ahead",
            pl.Int64,
            "count",
            "The number of batches that the DataLoader's workers may make ahead of the loop.",
            True,
        ),
        Column(
            "cpu",
            pl.Int64,
            "ns",
            "How long the thread ran while it created the DataLoader's iterator; else it waited.",
            True,
        ),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The wall-time ledger of one run of a program, as tables that `schema` documents."""

    segments: pl.DataFrame = field(default_factory=RUN_SEGMENTS.empty)
    readings: pl.DataFrame = field(default_factory=RUN_READINGS.empty)
    samples: pl.DataFrame = field(default_factory=RUN_SAMPLES.empty)
    compilations: pl.DataFrame = field(default_factory=RUN_COMPILATIONS.empty)
    iterators: pl.DataFrame = field(default_factory=RUN_ITERATORS.empty)
    loop_lines: Mapping[str, tuple[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    """Maps each kind of step, such as `training`, to the file and line of the loop whose
    iterations are these steps."""
    evaluation_nodes: tuple[int, ...] = ()
    """The number of autograd nodes that each evaluation recorded, where it was counted: one that
    ran from `model.eval()` to `model.train()` without a backward pass."""
    evaluates: bool = False
    """Whether many stacks were read in evaluation mode, none of them within an environment: the
    program evaluates there, and does not act."""
    recorded_slow_steps: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """Maps the segment of each slow step that was recorded to the name of the trace that holds it,
    a file beside the ledger."""
    startup_ns: int = 0
    """Time in ns from the start of the process to the program's first instruction."""
    began_at: int | None = None
    """When the process started, in ns since the Unix epoch; None if the ledger lacks the time."""
    own_startup_ns: int = 0
    """Part of `startup_ns` in which selftime loaded itself, in ns."""
    is_whole: bool = True
    """Whether the ledger includes the end of the program; False if the process was killed."""
    cpu_peaks: CpuPeakRates | None = None
    """What the CPU was measured to do once the program had ended; None if it was not measured."""
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The program's command, its process id and how it ended, by name."""
    source: str = ""
    """The path of the file that the ledger was read from."""

    @property
    def wall_ns(self) -> int:
        """Returns the time in ns from the process's start to the end of the last segment."""
        if not self.segments.height:
            return self.startup_ns
        last = self.segments.row(-1, named=True)
        return int(last["start"] + last["duration"])

    @property
    def was_cut(self) -> bool:
        """Returns whether the run ended before its program's last line, or has not ended yet."""
        status = self.facts.get("status")
        return not self.is_whole or (isinstance(status, str) and status.startswith("ended "))

    @property
    def may_grow(self) -> bool:
        """Whether the program may still run, so that the ledger's file grows."""
        return bool(self.source) and not self.is_whole
