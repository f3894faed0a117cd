"""Arithmetic runs in float64.

## What it means
Operators take tensors of dtype double. That is rarely wanted: NumPy computes in float64 unless told
otherwise, so `torch.from_numpy(image / 255.)` is float64, and a model is then made `.double()` to
take it, or every batch is converted back.

## Why it costs
Twice the bytes to read and write, at best half the arithmetic rate: on a CPU half, on a data-centre
GPU half, on other GPUs 1/32 to 1/64. Convolutions on a CPU have fast code for float32 alone, and
take 2 to 15 times as long in float64. Conversions cost a pass over the data each.

## What to do
Make float32 at the source: `image.astype(np.float32) / 255`, `np.asarray(x, dtype=np.float32)`,
`torch.tensor(x, dtype=torch.float32)`; and drop `.double()` from the model. Where double precision
is meant, leave it.

## Fires on
Layers of a network in double.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | m aaaaaaaam aaaaaaaam aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::conv2d; input_types = ["double","double"]; input_shapes = [[8],[8]]; line = a.py:7 f
    m = aten::mm; input_types = ["float","float"]; input_shapes = [[8,8],[8,8]]

Conversions that go round in every step.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | cccaaaacclcccaaaacclcccaaaacl
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::_to_copy; input_types = ["double",""]; input_shapes = [[8],[]]; line = a.py:9 f
    l = aten::nll_loss; input_types = ["double","long int"]; input_shapes = [[8],[8]]
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]

## Silent on
Double precision in a program without layers of a network, which is taken as meant.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  |   aaaaaaaa  aaaaaaaa  aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["double","double"]; input_shapes = [[8,8],[8,8]]

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
from dataclasses import replace
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Where, rule, where
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import covered
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut
from selftime.analysis.operator_dtypes import computes_in
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import subtract
from selftime.trace import Trace

LEAST_SHARE: Final = 0.02
"""Arithmetic in double below this share of the step is left alone."""

SAVED: Final = 0.45
"""Of the time in double that float32 saves where memory or a CPU sets the pace: 1.8 x faster."""

SAVED_AT_LEAST: Final = 0.3
"""Where dispatch has a part in it."""

SAVED_AT_MOST: Final = 0.6
"""Where the float32 operator has a faster algorithm besides."""

PLAIN: Final = 0.8
"""The same for convolutions that run in plain code, which they do in double on a CPU and not in
float32: 0.5 (kernels of one pixel, few channels) to 0.93 (64 channels) were measured."""

PLAIN_AT_LEAST: Final = 0.5
"""The least of those."""

PLAIN_AT_MOST: Final = 0.95
"""The most of them."""

CODE: Final = """x = x.astype(np.float32)                   # NumPy, before arithmetic
t = torch.tensor(values, dtype=torch.float32)"""
"""How float32 is asked for."""

SHOWN: Final = 3
"""Lines named as evidence."""


@rule(covers=("E13", "C5"), needs=("shapes",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    lines = trace.view("lines", dtype="double", counted=True)
    if limits is None or not lines.height:
        yield Checked("no operator computes in float64", is_absent=True)
        return
    double = _Double(trace, lines, limits)
    upper = limits.unrecorded(double.spent)
    if double.spent < LEAST_SHARE * limits.step_ms:
        yield Checked(f"operators in float64 take {upper:.2f} ms of the step", upper)
    elif not double.is_network:
        text = f"float64 takes {upper:.2f} ms a step of a program without a network: taken as meant"
        yield Checked(text, upper)
    else:
        yield limits.judge(_finding(trace, double))


class _Double:
    """What the typical step does in float64."""

    def __init__(self, trace: Trace, lines: pl.DataFrame, limits: Gate) -> None:
        self.limits, self.lines = limits, lines
        self.steps = max(trace.view("steps").filter("counted").height, 1)
        self.on_device = sum(lines["device_time"].to_list()) > 0
        self.time = "device_time" if self.on_device else "self_cpu_time"
        self.spent = min(self.per_step(sum(lines[self.time].to_list())), limits.step_ms)
        table = trace.view("operators", by="type")
        operators = table["name"].cast(pl.String).to_list()
        self.is_network = any(names.is_network_operator(name) for name in operators)
        double = table.filter(pl.col("input_types").str.starts_with('["double"'))
        self.converts = _mostly_converts(double)
        self.at_most = 1.0 if self.on_device or self.converts else SAVED_AT_MOST

    def per_step(self, nanoseconds: int) -> float:
        """A sum over the counted steps as ms of the typical one."""
        return self.limits.typical(nanoseconds / self.steps / 1e6)


def _mostly_converts(table: pl.DataFrame) -> bool:
    """Whether most of the time goes into conversions, not arithmetic."""
    time = table["self_cpu_time_total"] + table["self_device_time_total"]
    text = table["name"].cast(pl.String).to_list()
    conversions = pl.Series([names.is_conversion(name) for name in text], dtype=pl.Boolean)
    converting: int = sum(time.filter(conversions).to_list())
    return bool(2 * converting > sum(time.to_list()))


def _finding(trace: Trace, double: _Double) -> Finding:
    limits, spent = double.limits, double.spent
    operators = recorded_operators(trace)
    operators = operators.filter(pl.Series(computes_in(trace, operators["id"], "double")))
    likely, least, most = (
        _saved(trace, operators, saved, plain)
        for saved, plain in (
            (SAVED, PLAIN),
            (SAVED_AT_LEAST, PLAIN_AT_LEAST),
            (double.at_most, max(double.at_most, PLAIN_AT_MOST)),
        )
    )
    saving = priced(trace, limits, *likely, most=(change(trace, operators, 0.0),))
    low, high = (priced(trace, limits, *bound).estimate_ms or 0.0 for bound in (least, most))
    estimate, upper = saving.estimate_ms or 0.0, saving.upper_ms or 0.0
    row = _first(double.lines)
    place = where(row)
    what = "is converted from float64" if double.converts else "runs in float64"
    return Finding(
        covers=("C5",) if double.converts else ("E13",),
        title=f"{spent / limits.step_ms:.0%} of the step {what}",
        where=place,
        count_per_step=sum(double.lines["operators"].to_list()) / double.steps,
        saving=replace(saving, low_ms=min(low, estimate), high_ms=min(max(high, estimate), upper)),
        confidence="high" if place.line is not None else "medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in operators on float64 tensors", spent, "ms", _begun_at(operators, row)
            ),
            *(_evidence(double, row) for row in _largest(double)),
        ),
        fix=_fix(place),
        changes=likely,
    )


def _saved(trace: Trace, operators: pl.DataFrame, saved: float, plain: float) -> tuple[Change, ...]:
    """The changes of a program in float32 that saves these shares of the time in double."""
    slow = filter_by_name(operators, names.is_fallback_convolution)
    if not slow.height or trace.device_args.height:
        return (change(trace, operators, 1 - saved),)
    others = subtract(covered(operators), covered(slow))
    return Cut(covered(slow), 1 - plain), Cut(others, 1 - saved)


def _begun_at(operators: pl.DataFrame, row: dict[str, Any] | None) -> tuple[int, ...]:
    """The operator that a line ran first, to tell which line of a function it is."""
    if row is None:
        return ()
    return tuple(operators.filter(pl.col("start") == row["first"])["id"].to_list()[:1])


def _fix(place: Where) -> Fix:
    text = "Make float32 where the data is made, and drop `.double()` from the model"
    if place.file is not None:
        text += "; the named line is the first in the step that meets a float64 tensor"
    return Fix(f"{text}. Where double precision is meant, leave it.", CODE)


def _first(lines: pl.DataFrame) -> dict[str, Any] | None:
    """The line that meets float64 first after a batch: what comes later has it from there."""
    known = lines.filter(pl.col("file").is_not_null()).sort("since_batch", "first", nulls_last=True)
    return known.row(0, named=True) if known.height else None


def _largest(double: _Double) -> list[dict[str, Any]]:
    known = double.lines.filter(pl.col("file").is_not_null())
    return list(known.sort(double.time, descending=True).head(SHOWN).iter_rows(named=True))


def _evidence(double: _Double, row: dict[str, Any]) -> Evidence:
    return Evidence(f"of it in {where(row)}", double.per_step(row[double.time]), "ms")
