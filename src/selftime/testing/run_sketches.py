"""Converts runs that are drawn as text, one segment a line, to the tables of a run's ledger.

    run | start 300 ms                        before the program's first instruction
    run | before 2 s: imports numpy 1500 ms at train.py:1
    run | 20 training 100 ms: data_wait 10 ms
    run | 5 training 100 ms recorded
    run | training 2 s: checkpoint save 1900 ms at train.py:30 main
    run | after 100 ms
    run | compiled forward 2 s at model.py:3: the size of `x` changed
    run | iterator 500 ms with 4 new workers at train.py:9 main
    run | iterator 500 ms with 4 workers and 8 batches ahead at train.py:9 main
    run | iterator 500 ms of which 100 ms on a core with 4 new workers at train.py:9 main
    run | loop training at train.py:9
    run | 30 samples at train.py:12 features  of the segment before
    run | 3 evaluations with 40 nodes each     autograd's, which no backward pass uses
    run | evaluates      stacks in evaluation mode show no environment
    run | 2 cpu threads: float32 100 GFLOP/s, bfloat16 800 GFLOP/s, copies 20 GB/s

After a segment's colon stand its counted times (`data_wait`, `evaluation` ...), those of its phases
(`forward`, `backward`, `optimizer`, `device`), the time without a core (`queued`), and what the
stack was seen busy with (any other part), each with its time and, where it has one, its line.
"""

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from selftime import schema
from selftime.devices import CpuPeakRates
from selftime.errors import UsageError
from selftime.run import (
    COUNTED,
    PHASES,
    RUN_COMPILATIONS,
    RUN_ITERATORS,
    RUN_READINGS,
    RUN_SAMPLES,
    RUN_SEGMENTS,
    Run,
)

_NS_PER_UNIT: Final = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME: Final = r"(?P<time>\d+) (?P<unit>us|ms|s)"
_AT: Final = r"(?: at (?P<file>\S+):(?P<line>\d+)(?: (?P<function>\w+))?)?"
_SEGMENT: Final = re.compile(
    rf"(?:(?P<count>\d+) )?(?P<kind>[a-z]\w*) {_TIME}(?P<recorded> recorded)?(?:: (?P<rest>.+))?"
)
_DETAIL: Final = re.compile(rf"(?P<part>[a-z_]+)(?: (?P<what>[\w.]+))? {_TIME}{_AT}")
_COMPILED: Final = re.compile(rf"compiled (?P<what>\w+) {_TIME}{_AT}(?:: (?P<reason>.+))?")
_SAMPLES: Final = re.compile(rf"(?P<count>\d+) samples{_AT}")
_AHEAD: Final = r"(?: and (?P<ahead>\d+) batches ahead)?"
_RUNNING: Final = r"(?: of which (?P<running>\d+) ms on a core)?"
_ITERATOR: Final = re.compile(
    rf"iterator {_TIME}{_RUNNING} with (?P<count>\d+)(?P<new> new)? workers{_AHEAD}{_AT}"
)
_CPU: Final = re.compile(r"(?P<count>\d+) cpu threads?: (?P<rest>.+)")
_CPU_RATE: Final = re.compile(r"(?P<what>\w+) (?P<rate>\d+) (?:GFLOP|GB)/s")
_LOOP: Final = re.compile(r"loop (?P<kind>\w+) at (?P<file>\S+):(?P<line>\d+)")
_EVALUATIONS: Final = re.compile(r"(?P<count>\d+) evaluations with (?P<nodes>\d+) nodes each")


@dataclass(slots=True)
class _RunDrawing:
    """The rows of a run's tables, while its lines are read."""

    segments: list[tuple[Any, ...]] = field(default_factory=list)
    readings: list[tuple[Any, ...]] = field(default_factory=list)
    samples: list[tuple[Any, ...]] = field(default_factory=list)
    compilations: list[tuple[Any, ...]] = field(default_factory=list)
    iterators: list[tuple[Any, ...]] = field(default_factory=list)
    loop_lines: dict[str, tuple[str, int]] = field(default_factory=dict)
    evaluation_nodes: list[int] = field(default_factory=list)
    evaluates: bool = False
    cpu_peaks: CpuPeakRates | None = None
    startup_ns: int = 0
    now_ns: int = 0


def run_of_lines(lines: list[str]) -> Run:
    """Returns the run that lines draw, each without its `run |`; an empty run for no line."""
    drawing = _RunDrawing()
    for line in lines:
        _add_line(drawing, line.strip())
    if not lines:
        return Run()
    return Run(
        segments=_table(RUN_SEGMENTS, drawing.segments),
        readings=_table(RUN_READINGS, drawing.readings),
        samples=_table(RUN_SAMPLES, drawing.samples),
        compilations=_table(RUN_COMPILATIONS, drawing.compilations),
        iterators=_table(RUN_ITERATORS, drawing.iterators),
        loop_lines=MappingProxyType(drawing.loop_lines),
        evaluation_nodes=tuple(drawing.evaluation_nodes),
        evaluates=drawing.evaluates,
        cpu_peaks=drawing.cpu_peaks,
        startup_ns=drawing.startup_ns,
        source="(sketch)",
    )


def _table(table: schema.Table, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(table.dtypes), orient="row")


def _add_line(drawing: _RunDrawing, line: str) -> None:
    if line == "evaluates":
        drawing.evaluates = True
    elif found := _COMPILED.fullmatch(line):
        head = (drawing.now_ns, _nanoseconds(found), found["what"])
        drawing.compilations.append((*head, *_place(found)[:2], found["reason"]))
    elif found := _ITERATOR.fullmatch(line):
        workers = (int(found["count"]), found["new"] is not None)
        ahead = None if found["ahead"] is None else int(found["ahead"])
        running = None if found["running"] is None else int(found["running"]) * 1_000_000
        made = (drawing.now_ns, _nanoseconds(found), *workers, *_place(found), ahead, running)
        drawing.iterators.append(made)
    elif found := _LOOP.fullmatch(line):
        drawing.loop_lines[found["kind"]] = (found["file"], int(found["line"]))
    elif found := _SAMPLES.fullmatch(line):
        sample = (len(drawing.segments) - 1, "program", *_place(found))
        drawing.samples.extend([sample] * int(found["count"]))
    elif found := _EVALUATIONS.fullmatch(line):
        drawing.evaluation_nodes.extend([int(found["nodes"])] * int(found["count"]))
    elif found := _CPU.fullmatch(line):
        drawing.cpu_peaks = _cpu_peaks(found)
    elif found := _SEGMENT.fullmatch(line):
        _add_segments(drawing, found)
    else:
        raise UsageError(f"a sketch of a run cannot hold the line {line!r}")


def _cpu_peaks(found: re.Match[str]) -> CpuPeakRates:
    rates = {one["what"]: float(one["rate"]) * 1e9 for one in _CPU_RATE.finditer(found["rest"])}
    copies = rates.pop("copies", None)
    sizes = () if copies is None else ((1, copies),)
    return CpuPeakRates(int(found["count"]), MappingProxyType(rates), sizes)


def _add_segments(drawing: _RunDrawing, found: re.Match[str]) -> None:
    kind, duration = found["kind"], _nanoseconds(found)
    if kind == "start":
        drawing.startup_ns = drawing.now_ns = duration
        return
    counted, readings = _details(found["rest"])
    is_step = kind not in {"before", "after"}
    for _ in range(int(found["count"] or 1)):
        number = len(drawing.segments)
        head = (number, drawing.now_ns, duration, kind if is_step else None)
        times = (counted.get(c.name, 0) for c in RUN_SEGMENTS.columns if c.name in COUNTED)
        phases = (counted.get(name) for name in PHASES)
        known = (*phases, counted.get("queued"), None)
        drawing.segments.append((*head, *times, found["recorded"] is not None, *known))
        drawing.readings.extend((number, *reading) for reading in readings)
        drawing.now_ns += duration


def _details(text: str | None) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    """Returns the counted times (ns) by part, and rows of stack readings without the segment."""
    counted: dict[str, int] = {}
    readings: list[tuple[Any, ...]] = []
    for told in (text or "").split(", ") if text else ():
        found = _DETAIL.fullmatch(told)
        if found is None:
            raise UsageError(f"a sketch of a run cannot hold {told!r} in a segment")
        if found["part"] in (*COUNTED, *PHASES, "queued"):
            counted[found["part"]] = _nanoseconds(found)
        else:
            where = _place(found)
            readings.append((found["part"], found["what"], *where, _nanoseconds(found), 1))
    return counted, readings


def _nanoseconds(found: re.Match[str]) -> int:
    return int(found["time"]) * _NS_PER_UNIT[found["unit"]]


def _place(found: re.Match[str]) -> tuple[str | None, int | None, str | None]:
    line = found["line"]
    return found["file"], None if line is None else int(line), found["function"]
