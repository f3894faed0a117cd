"""Arithmetic runs in float64.

## What it means
Operators take tensors of dtype double. That is rarely wanted: NumPy computes in float64 unless told
otherwise, so `torch.from_numpy(image / 255.)` is float64, and a model is then made `.double()` to
take it, or every batch is converted back.

## Why it costs
Twice the bytes to read and write, at best half the arithmetic rate: on a CPU half, on a data-centre
GPU half, on other GPUs 1/32 to 1/64. Conversions cost a pass over the data each.

## What to do
Make float32 at the source: `image.astype(np.float32) / 255`, `np.asarray(x, dtype=np.float32)`,
`torch.tensor(x, dtype=torch.float32)`; and drop `.double()` from the model. Where double precision
is meant, leave it.

## Fires on
Matrix products in double.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | m aaaaaaaam aaaaaaaam aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["double","double"]; input_shapes = [[8,8],[8,8]]; line = a.py:7 f
    m = aten::mm; input_types = ["float","float"]; input_shapes = [[8,8],[8,8]]

Conversions that go round in every step.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | cccaaaacccccaaaacccccaaaacc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::_to_copy; input_types = ["double",""]; input_shapes = [[8],[]]; line = a.py:9 f
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]

## Silent on
Everything in float.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  |   aaaaaaaa  aaaaaaaa  aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]

A Python number beside a float tensor is a double without dimensions.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  |   aaaaaaaa  aaaaaaaa  aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mul; input_types = ["float","double"]; input_shapes = [[64,64],[]]
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule
from selftime.advice.gate import gate
from selftime.advice.source import where
from selftime.trace import Trace

LEAST_SHARE: Final = 0.02
"""Arithmetic in double below this share of the step is left alone."""

SAVED: Final = 0.45
"""Of the time in double that float32 saves where memory or a CPU sets the pace: 1.8 x faster."""

SAVED_AT_LEAST: Final = 0.3
"""Where dispatch has a part in it."""

SHOWN: Final = 3
"""Lines named as evidence."""


@rule(covers=("E13", "C5"), needs=("shapes",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    lines = trace.view("lines", dtype="double")
    if limits is None or not lines.height:
        yield Checked("no operator takes a tensor in float64")
        return
    time = "device_time" if lines["device_time"].sum() > 0 else "self_cpu_time"
    spent = min(_sum(lines, time) / _steps(trace) / 1e6, limits.step_ms)
    if spent < LEAST_SHARE * limits.step_ms:
        yield Checked(f"operators in float64 take {spent:.2f} ms of the step", spent)
        return
    yield limits.judge(_finding(trace, lines, time, spent, limits.step_ms))


def _steps(trace: Trace) -> int:
    return max(trace.view("steps").height, 1)


def _sum(lines: pl.DataFrame, column: str) -> int:
    return sum(lines[column].to_list())


def _finding(trace: Trace, lines: pl.DataFrame, time: str, spent: float, step_ms: float) -> Finding:
    source = _first(lines)
    converts = _converts(trace)
    steps = _steps(trace)
    share = spent / step_ms
    what = "is converted from and to float64" if converts else "runs in float64"
    return Finding(
        covers=("C5",) if converts else ("E13",),
        title=f"{share:.0%} of the step {what}",
        where=where(source),
        count_per_step=_sum(lines, "operators") / steps,
        saving=Saving.of_step(
            step_ms,
            SAVED * spent,
            method="model",
            low_ms=SAVED_AT_LEAST * spent,
            high_ms=spent if time == "device_time" or converts else 0.6 * spent,
            upper_ms=spent,
        ),
        confidence="high",
        semantics="numerics",
        evidence=(
            Evidence("time in operators on float64 tensors", spent, "ms"),
            *(_evidence(row, time, steps) for row in _largest(lines, time)),
        ),
        fix=Fix(
            "Make float32 where the data is made, and drop `.double()`: the named line is the "
            "first in the step that meets a float64 tensor.",
            "image = image.astype(np.float32)    # before arithmetic, not after",
        ),
    )


def _first(lines: pl.DataFrame) -> dict[str, Any] | None:
    """The line that meets float64 first: what comes after has it from there."""
    known = lines.filter(pl.col("file").is_not_null()).sort("first")
    return known.row(0, named=True) if known.height else None


def _largest(lines: pl.DataFrame, time: str) -> list[dict[str, Any]]:
    known = lines.filter(pl.col("file").is_not_null()).sort(time, descending=True)
    return list(known.head(SHOWN).iter_rows(named=True))


def _evidence(row: dict[str, Any], time: str, steps: int) -> Evidence:
    return Evidence(f"of it in {where(row)}", row[time] / steps / 1e6, "ms")


def _converts(trace: Trace) -> bool:
    """Whether most of the time in double goes into conversions, not arithmetic."""
    table = trace.view("operators", by="type+shape").filter(
        pl.col("input_types").str.contains('"double"', literal=True)
        & (pl.col("input_shapes") != "[]")
    )
    time = pl.col("self_cpu_time_total") + pl.col("self_device_time_total")
    text = table["name"].cast(pl.String).to_list()
    conversions = pl.Series([names.is_conversion(name) for name in text], dtype=pl.Boolean)
    spent = table.select(time=time)["time"]
    return bool(spent.filter(conversions).sum() > spent.sum() / 2)
