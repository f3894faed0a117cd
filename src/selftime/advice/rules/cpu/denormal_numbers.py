"""Arithmetic meets numbers too small for the processor's fast path.

## What it means
Values fade below 1.2e-38 in float32, as tails of filters, second moments of dead weights and very
small probabilities do. Such numbers are called denormal. A recording by selftime asks the processor
whether the arithmetic of the program's thread met any; operators that take many times as long as
equal ones on other numbers show where it costs.

A trace without that answer cannot tell them from operands that lie in another cache. What they cost
within products of matrices is not visible in a trace: these do not stand beside equal ones.

## Why it costs
The processor leaves such numbers to microcode: about 150 cycles for a few of them. Which
instructions suffer differs: on Intel products and divisions; on an AMD Zen 4 divisions took 2.4
times as long, and square roots 30 times.

## What to do
Call `torch.set_flush_denormal(True)` once, before the work: such numbers are then zeros. Or scale
values that fade, and add an epsilon before a square root.

## Fires on
A square root that takes twenty times as long as its equal.

    column = 100 us
    facts = {"settings": {"denormals": true, "flush_denormals": false}}
    mark 1 | sssssssssssssssssssssssssttttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abbbbbbbbbbbbbbbbbbbbcc   abbbbbbbbbbbbbbbbbbbbcc   abbbbbbbbbbbbbbbbbbbbcc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]; line = e.py:5 f
    b = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]; line = e.py:6 f
    c = aten::mm

## Silent on
The same where the processor met no such number.

    column = 100 us
    facts = {"settings": {"denormals": false, "flush_denormals": false}}
    mark 1 | sssssssssssssssssssssssssttttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abbbbbbbbbbbbbbbbbbbbcc   abbbbbbbbbbbbbbbbbbbbcc   abbbbbbbbbbbbbbbbbbbbcc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]; line = e.py:5 f
    b = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]; line = e.py:6 f
    c = aten::mm

It met some, but equal operators take equally long.

    column = 100 us
    facts = {"settings": {"denormals": true, "flush_denormals": false}}
    mark 1 | sssssssssssssssssssssssssttttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aaabbbbcccccccccccccccc   aaabbbbcccccccccccccccc   aaabbbbcccccccccccccccc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]; line = e.py:5 f
    b = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]; line = e.py:6 f
    c = aten::mm
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from math import prod
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Unknown, Where, rule
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators, sizes
from selftime.advice.detectors.places import by_line
from selftime.advice.detectors.recorded_facts import setting
from selftime.advice.gate import Gate, gate
from selftime.advice.lines.syntax import called
from selftime.advice.pricing import priced
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.trace import Trace

OUTLIER: Final = 5.0
"""Times as long as an equal operator: what caches make of equal operators is less, and the share of
the usual pace of memory below which the catalogue suspects such numbers is a fifth."""

ASSISTED_NS: Final = 2.0
"""For each number: where no equal operator stands beside it, arithmetic that takes longer, and
`OUTLIER` times as long as other arithmetic, waits for microcode. From memory at 8 GB/s, which one
core has at least, three floats take 1.5 ns."""

LEAST_ELEMENTS: Final = 16_384
"""On fewer numbers the call of an operator takes as long as its work."""

LEAST_STEPS: Final = 3
"""In which the same operator must be slow, as its quickest run is: what takes a core away makes one
slow now and then. Its equals are judged by their typical run, which a busy machine slows too."""

FAR: Final = 2.0
"""Operators on so many times more or fewer numbers lie in another cache, and tell no pace."""

CODE: Final = """torch.set_flush_denormal(True)  # once, before the work"""
"""The call that makes them zeros."""

_KEYS: Final = ("input_shapes", "input_strides", "input_types")
"""What the size, layout and dtypes are read from."""

_PART: Final = ("name", "elements", "types", "nth")
"""What stands for the same work in each step."""


@rule(covers=("J4",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, met = gate(trace), setting(trace, "denormals")
    if limits is None or trace.device_args.height or met is False:
        yield Checked("no arithmetic of the CPU met numbers that are denormal", is_absent=True)
        return
    slow = _slow(trace)
    if not slow.height:
        yield Checked("no arithmetic takes many times as long as its equals", is_absent=True)
    elif met is not True:
        yield Unknown(
            "whether numbers are denormal, as arithmetic on some takes many times as long as its "
            "equals: record with `selftime.profile` on x86-64, or try `torch.set_flush_denormal`"
        )
    else:
        for place, part in by_line(trace, slow):
            yield _judged(trace, limits, place, part)


def _judged(trace: Trace, limits: Gate, place: Where, part: pl.DataFrame) -> Outcome:
    spent = sum((part["end"] - part["start"]).to_list())
    keep = min(sum(part["equal"].to_list()) / spent, 1.0)
    changes = change(trace, part, keep)
    nanoseconds = spent / sum(part["elements"].to_list())
    flush = called(trace, "set_flush_denormal")
    return limits.judge(
        Finding(
            title=f"`{part['name'][0]}` takes {1 / keep:.0f} times as long as on usual numbers",
            where=place,
            count_per_step=part.height / steps_recorded(trace),
            saving=priced(trace, limits, changes, most=(change(trace, part, 0.0),)),
            confidence="medium",
            semantics="numerics",
            evidence=(
                Evidence("for each number", nanoseconds, "ns", tuple(part["id"].head(3))),
                Evidence("the same without such numbers", nanoseconds * keep, "ns"),
            ),
            fix=Fix(_advice(flush), CODE),
            changes=(changes,),
        )
    )


def _advice(flush: Where) -> str:
    told = f" {flush} sets it otherwise." if flush.line is not None else ""
    return (
        "Flush such numbers to zero, once, at the start of the program, or scale the values of the "
        f"named line.{told}"
    )


def _slow(trace: Trace) -> pl.DataFrame:
    """Runs of operators that take long in every step, with the time of an `equal`, in ns."""
    table = _arithmetic(trace)
    lasting = (
        table.group_by(*_PART, maintain_order=True)
        .agg(
            steps=pl.col("step").n_unique(),
            least=pl.col("time").min(),
            typical=pl.col("time").median(),
        )
        .filter(pl.col("steps") >= min(LEAST_STEPS, max(steps_recorded(trace), 2)))
    )
    rows: list[dict[str, Any]] = []
    for row in lasting.iter_rows(named=True):
        equal = _equal(row, lasting)
        if equal is not None and row["least"] > OUTLIER * equal:
            rows.append({**{key: row[key] for key in _PART}, "equal": equal})
    if not rows:
        return table.clear().with_columns(equal=pl.lit(0.0))
    kinds: Any = {**{key: table.schema[key] for key in _PART}, "equal": pl.Float64}
    found = pl.DataFrame(rows, schema=kinds)
    return table.join(found, on=_PART, how="inner", maintain_order="left")


def _equal(row: dict[str, Any], lasting: pl.DataFrame) -> float | None:
    """The time of the quickest equal operator; else of other arithmetic, if this one is slow."""
    near = lasting.filter(
        (pl.col("types") == row["types"])
        & pl.col("elements").is_between(row["elements"] / FAR, row["elements"] * FAR)
    )
    same = near.filter(pl.col("name") == row["name"])
    if same.height > 1:
        scaled = same["typical"] / same["elements"] * row["elements"]
        return float(min(scaled.to_list()))
    if row["least"] < ASSISTED_NS * row["elements"] or near.height < 2:
        return None
    return float(min((near["typical"] / near["elements"]).to_list()) * row["elements"])


def _arithmetic(trace: Trace) -> pl.DataFrame:
    """Arithmetic on tensors of one shape that lie in order, with elements, step and place in it."""
    table = recorded_operators(trace).filter(pl.all_horizontal(pl.col(*_KEYS).is_not_null()))
    table = filter_by_name(table, names.is_arithmetic).with_columns(pl.col(*_KEYS).cast(pl.String))
    told = [(*texts, *_told(*texts)) for texts in table.select(_KEYS).unique().iter_rows()]
    kinds = {**dict.fromkeys(_KEYS, pl.String), "elements": pl.Int64, "types": pl.String}
    sized = pl.DataFrame(told, schema=kinds, orient="row").filter(
        pl.col("elements") >= LEAST_ELEMENTS
    )
    table = table.join(sized, on=_KEYS, how="inner", maintain_order="left").drop(_KEYS)
    starts = counted_windows(trace)["start"].to_numpy()
    step = np.searchsorted(starts, table["start"].to_numpy(), side="right")
    table = table.with_columns(step=pl.Series(step), time=pl.col("end") - pl.col("start"))
    nth = pl.int_range(pl.len()).over("step", "name", "elements", "types")
    return table.with_columns(pl.col("name").cast(pl.String), nth=nth)


def _told(shapes: str, strides: str, types: str) -> tuple[int, str]:
    """Elements of each tensor and their dtypes; 0 if they differ in shape or lie otherwise."""
    tensors = [
        (shape, stride)
        for shape, stride in zip(sizes(shapes), sizes(strides), strict=False)
        if shape
    ]
    floats = '"float"' in types or '"double"' in types
    if not tensors or not floats or any(one != tensors[0] for one in tensors):
        return 0, types
    shape, stride = tensors[0]
    in_order = tuple(prod(shape[at + 1 :]) for at in range(len(shape)))
    return (prod(shape) if stride == in_order else 0), types
