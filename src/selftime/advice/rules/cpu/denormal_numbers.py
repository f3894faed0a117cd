"""Arithmetic on denormal numbers slows the processor down.

## What it means
Values fade below 1.2e-38 in float32, as tails of filters, second moments of dead weights and very
small probabilities do. Such numbers are called denormal. A recording by selftime asks the processor
whether the arithmetic of the program's thread met any; operators that take many times as long as
equal ones, in three steps, show where it costs.

Without that answer denormal numbers look like operands that are in another cache. Their cost within
products of matrices is not visible in a trace: these have no equal ones to compare with.

## Why it costs
The processor leaves such numbers to microcode: about 150 cycles for a few of them. Which
instructions suffer differs: on Intel products and divisions; on an AMD Zen 4 divisions took 2.4
times as long, and square roots 30 times.

## What to do
Call `torch.set_flush_denormal(True)` once, before the work: such numbers are then zeros. Or scale
values that fade, and add an epsilon before a square root.

The estimate gives the slow operators the time of their equals.

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
from selftime.advice.detectors.counted_operators import operators_in_counted_steps, parse_sizes
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.recorded_facts import recorded_setting
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.lines.source_syntax import line_of_only_call
from selftime.advice.rule_definition import (
    STEPS_WITH_DURATION,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.trace import Trace
from selftime.units import times_text

MIN_DENORMAL_SLOWDOWN_RATIO: Final = 5.0
"""Smallest ratio of an operator's time to that of an equal operator for denormal numbers to be the
likely reason; caches make less of a difference."""

MIN_MICROCODE_NS_PER_ELEMENT: Final = 2.0
"""Smallest time per element, in ns, of an operator that no equal operator can be compared with; it
must also take `MIN_DENORMAL_SLOWDOWN_RATIO` times as long as other arithmetic."""

MIN_TENSOR_ELEMENTS: Final = 16_384
"""Smallest tensor, in elements, that the rule examines; on smaller ones the call takes most
time."""

MIN_STEPS_WITH_SLOW_OPERATOR: Final = 3
"""Smallest number of steps in which the same operator must be slow, as other programs on the core
can slow it once."""

MAX_SIZE_RATIO_OF_COMPARED_OPERATORS: Final = 2.0
"""Largest ratio between element counts of two operators whose times are compared."""

FLUSH_DENORMALS_FIX_CODE: Final = """torch.set_flush_denormal(True)  # once, before the work"""
"""Example code of the fix: makes the processor treat denormal numbers as zero."""

_INPUT_LAYOUT_COLUMNS: Final = ("input_shapes", "input_strides", "input_types")
"""Columns with the sizes, strides and dtypes of an operator's inputs."""

_CALL_IN_STEP_KEY_COLUMNS: Final = ("name", "elements", "types", "nth")
"""Columns that identify an operator call in a step, so that equal calls of all steps can be
grouped."""


@rule(covers=("J4",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, has_denormals = step_statistics(trace), recorded_setting(trace, "denormals")
    if trace.device_args.height:
        yield Checked("the arithmetic runs on a device; that of the CPU was not judged")
        return
    if has_denormals is False:
        yield Checked("no arithmetic on the CPU had denormal numbers", is_absent=True)
        return
    if limits is None:
        yield Unknown(STEPS_WITH_DURATION)
        return
    slow_operators = _unusually_slow_operators(trace)
    if not slow_operators.height:
        yield Checked(
            "no arithmetic operator takes many times as long as equal ones", is_absent=True
        )
    elif has_denormals is not True:
        yield Unknown(
            "whether numbers are denormal, as some arithmetic takes many times as long as equal "
            "arithmetic: record with `selftime.profile` on x86-64, or try "
            "`torch.set_flush_denormal`"
        )
    else:
        for location, operators in operators_by_line(trace, slow_operators):
            yield _finding(trace, location, operators)


def _finding(trace: Trace, location: Where, slow_operators: pl.DataFrame) -> Finding:
    spent_ns = sum((slow_operators["end"] - slow_operators["start"]).to_list())
    equal_share = min(sum(slow_operators["equal"].to_list()) / spent_ns, 1.0)
    changes = change_shortening_operators(trace, slow_operators, equal_share)
    ns_per_number = spent_ns / sum(slow_operators["elements"].to_list())
    name = slow_operators["name"][0]
    flush_call = line_of_only_call(trace, "set_flush_denormal")
    return Finding(
        title=f"Denormal numbers make `{name}` take {times_text(1 / equal_share)} as long",
        where=location,
        count_per_step=slow_operators.height / recorded_step_count(trace),
        claim=RemovalClaim(
            (changes,), largest_changes=(change_shortening_operators(trace, slow_operators, 0.0),)
        ),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time for each number",
                ns_per_number,
                "ns",
                tuple(slow_operators["id"].head(3)),
                slow_operators["id"].to_numpy(),
            ),
            Evidence(
                "time for each number without denormal ones", ns_per_number * equal_share, "ns"
            ),
        ),
        fix=Fix(_flush_denormals_fix_text(flush_call), FLUSH_DENORMALS_FIX_CODE),
    )


def _flush_denormals_fix_text(flush_call: Where) -> str:
    existing_call = (
        f" The program calls `set_flush_denormal` at {flush_call}."
        if flush_call.line is not None
        else ""
    )
    return (
        "Flush denormal numbers to zero, once, at the start of the program, or scale the values of "
        f"the named line.{existing_call}"
    )


def _unusually_slow_operators(trace: Trace) -> pl.DataFrame:
    """Returns operators that take many times as long as comparable arithmetic operators.

    The column `equal` is the time in ns of the fastest comparable operator, more than 0: an
    operator of no time left, after what its recording cost is taken off, is no measure.
    """
    table = _contiguous_arithmetic_operators(trace)
    repeated_calls = (
        table.group_by(*_CALL_IN_STEP_KEY_COLUMNS, maintain_order=True)
        .agg(
            steps=pl.col("step").n_unique(),
            least=pl.col("time").min(),
            typical=pl.col("time").median(),
        )
        .filter(
            pl.col("steps") >= min(MIN_STEPS_WITH_SLOW_OPERATOR, max(recorded_step_count(trace), 2))
        )
    )
    rows: list[dict[str, Any]] = []
    for call in repeated_calls.iter_rows(named=True):
        equal_ns = _comparable_operator_time_ns(call, repeated_calls)
        if equal_ns and call["least"] > MIN_DENORMAL_SLOWDOWN_RATIO * equal_ns:
            rows.append(
                {**{key: call[key] for key in _CALL_IN_STEP_KEY_COLUMNS}, "equal": equal_ns}
            )
    if not rows:
        return table.clear().with_columns(equal=pl.lit(0.0))
    kinds: Any = {
        **{key: table.schema[key] for key in _CALL_IN_STEP_KEY_COLUMNS},
        "equal": pl.Float64,
    }
    slow_calls = pl.DataFrame(rows, schema=kinds)
    return table.join(slow_calls, on=_CALL_IN_STEP_KEY_COLUMNS, how="inner", maintain_order="left")


def _comparable_operator_time_ns(
    slow_call: dict[str, Any], repeated_calls: pl.DataFrame
) -> float | None:
    """Returns the shortest time in ns of operators with equal name, dtypes and similar size.

    Without one, it is that of other arithmetic, if the operator may wait for microcode; else None.
    """
    near = repeated_calls.filter(
        (pl.col("types") == slow_call["types"])
        & pl.col("elements").is_between(
            slow_call["elements"] / MAX_SIZE_RATIO_OF_COMPARED_OPERATORS,
            slow_call["elements"] * MAX_SIZE_RATIO_OF_COMPARED_OPERATORS,
        )
    )
    same = near.filter(pl.col("name") == slow_call["name"])
    if same.height > 1:
        scaled = same["typical"] / same["elements"] * slow_call["elements"]
        return float(min(scaled.to_list()))
    if slow_call["least"] < MIN_MICROCODE_NS_PER_ELEMENT * slow_call["elements"] or near.height < 2:
        return None
    return float(min((near["typical"] / near["elements"]).to_list()) * slow_call["elements"])


def _contiguous_arithmetic_operators(trace: Trace) -> pl.DataFrame:
    """Returns arithmetic operators whose inputs are contiguous and all have the same shape.

    Columns: those of `operators_in_counted_steps`, elements, types, step, time (ns), and nth, the
    number of equal calls before it in the step.
    """
    table = operators_in_counted_steps(trace).filter(
        pl.all_horizontal(pl.col(*_INPUT_LAYOUT_COLUMNS).is_not_null())
    )
    table = filter_by_name(table, names.is_arithmetic).with_columns(
        pl.col(*_INPUT_LAYOUT_COLUMNS).cast(pl.String)
    )
    rows = [
        (*texts, *_contiguous_element_count_and_types(*texts))
        for texts in table.select(_INPUT_LAYOUT_COLUMNS).unique().iter_rows()
    ]
    kinds = {
        **dict.fromkeys(_INPUT_LAYOUT_COLUMNS, pl.String),
        "elements": pl.Int64,
        "types": pl.String,
    }
    sized = pl.DataFrame(rows, schema=kinds, orient="row").filter(
        pl.col("elements") >= MIN_TENSOR_ELEMENTS
    )
    table = table.join(sized, on=_INPUT_LAYOUT_COLUMNS, how="inner", maintain_order="left").drop(
        _INPUT_LAYOUT_COLUMNS
    )
    starts = counted_step_windows(trace)["start"].to_numpy()
    step = np.searchsorted(starts, table["start"].to_numpy(), side="right")
    table = table.with_columns(step=pl.Series(step), time=pl.col("end") - pl.col("start"))
    nth = pl.int_range(pl.len()).over("step", "name", "elements", "types")
    return table.with_columns(pl.col("name").cast(pl.String), nth=nth)


def _contiguous_element_count_and_types(
    input_shapes: str, input_strides: str, input_types: str
) -> tuple[int, str]:
    """Returns (elements of each input, `input_types`); the count is 0 unless all are contiguous.

    The number is 0 unless all inputs are contiguous, of one shape, and of floating point.
    """
    tensors = [
        (shape, stride)
        for shape, stride in zip(
            parse_sizes(input_shapes), parse_sizes(input_strides), strict=False
        )
        if shape
    ]
    has_floats = '"float"' in input_types or '"double"' in input_types
    if not tensors or not has_floats or any(tensor != tensors[0] for tensor in tensors):
        return 0, input_types
    shape, stride = tensors[0]
    in_order = tuple(prod(shape[at + 1 :]) for at in range(len(shape)))
    return (prod(shape) if stride == in_order else 0), input_types
