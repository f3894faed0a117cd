"""Arithmetic runs in float64.

## What it means
Operators take tensors of dtype double. That is rarely wanted: NumPy computes in float64 unless told
otherwise, so `torch.from_numpy(image / 255.)` is float64, and a model is then made `.double()` to
take it, or every batch is converted back.

In the trace: operators with float64 inputs take 2 % of the step or more, in a program that runs
layers of a network.

## Why it costs
Twice the bytes to read and write, at best half the arithmetic rate: on a CPU half, on a data-centre
GPU half, on other GPUs 1/32 to 1/64. Convolutions on a CPU have fast code for float32 alone, and
take 2 to 15 times as long in float64. Conversions cost a pass over the data each.

## What to do
Make float32 at the source: `image.astype(np.float32) / 255`, `np.asarray(x, dtype=np.float32)`,
`torch.tensor(x, dtype=torch.float32)`; and drop `.double()` from the model. Where the program sets
float64 as the default dtype, that line is named. Where double precision is meant, leave it.

The estimate removes 45 % of these operators' time, and 80 % of convolutions that no library
supports in float64. On a CPU that is the time of operators whose loops compute in vectors, beyond
their dispatch: rows of a few numbers, comparisons, sums, sorting and gathering take a time for each
number, whatever its size, and count at the high end only.

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

Conversions in every step.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | cccaaaacclcccaaaacclcccaaaacl
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::_to_copy; input_types = ["double",""]; input_shapes = [[8],[]]; line = a.py:9 f
    l = aten::nll_loss; input_types = ["double","long int"]; input_shapes = [[8],[8]]
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]

A network of linear layers, in a program that makes float64 its default dtype.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  |   llllllhh  llllllhh  llllllhh
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::linear; input_types = ["double","double"]; input_shapes = [[8,8],[8]]; line = a.py:7 f
    h = aten::tanh; input_types = ["double"]; input_shapes = [[64,64]]; line = a.py:8 f

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
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import operator_intervals
from selftime.advice.detectors.creation_sites import default_dtype_line
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.vector_loops import vector_loop_times
from selftime.advice.replay import Change, CutHostTime
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Where,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim, SavingRange
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.operator_dtypes import is_operator_computing_in_dtype
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length, subtract
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_FLOAT64_SHARE_OF_STEP: Final = 0.02
"""Smallest share of the step in float64 operators to report."""

TIME_SHARE_SAVED_BY_FLOAT32: Final = 0.45
"""Share of float64 operators' time that float32 saves on a CPU, and where memory is the limit:
float32 is 1.8 times as fast."""

MIN_TIME_SHARE_SAVED_BY_FLOAT32: Final = 0.3
"""Smallest share of float64 operators' time that float32 saves, where other work waits for memory
that they share."""

MAX_TIME_SHARE_SAVED_BY_FLOAT32: Final = 0.6
"""Largest share of float64 operators' time that float32 saves, where it has a faster algorithm."""

FALLBACK_CONVOLUTION_SHARE_SAVED_BY_FLOAT32: Final = 0.8
"""Share of time that float32 saves in float64 convolutions on a CPU, for which PyTorch has only
slow fallback code; 0.5 to 0.93 were measured."""

MIN_FALLBACK_CONVOLUTION_SHARE_SAVED_BY_FLOAT32: Final = 0.5
"""Smallest share of time that float32 saves in float64 convolutions with PyTorch's fallback
code."""

MAX_FALLBACK_CONVOLUTION_SHARE_SAVED_BY_FLOAT32: Final = 0.95
"""Largest share of time that float32 saves in float64 convolutions with PyTorch's fallback code."""

MIN_VECTOR_TIME_SHARE: Final = 0.5
"""Smallest share of float64 operators' time on a CPU in loops over vectors at which it is sure that
float32 is faster."""

FLOAT32_DATA_FIX_CODE: Final = """\
x = x.astype(np.float32)                   # NumPy, before arithmetic
t = torch.tensor(values, dtype=torch.float32)"""
"""Example code of the fix: data made in float32."""

MAX_SOURCE_LINES_IN_EVIDENCE: Final = 3
"""Largest number of source lines that the finding lists as evidence."""


@rule(covers=("E13", "C5"), needs=("shapes",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    lines = trace.view("lines", dtype="double", counted=True)
    if limits is None or not lines.height:
        yield Checked("no operator computes in float64", is_absent=True)
        return
    float64_costs = _Float64OperatorCosts(trace, lines, limits)
    is_small = float64_costs.spent_ms < MIN_FLOAT64_SHARE_OF_STEP * limits.step_ms
    if float64_costs.is_network and not is_small:
        yield _finding(trace, float64_costs)
        return
    least = whole_percent_text(MIN_FLOAT64_SHARE_OF_STEP)
    reason = (
        f"operators in float64 take less than {least} of the recorded step"
        if is_small
        else "float64 in a program of which no layer of a network was recorded is taken as intended"
    )
    yield Checked(reason, float64_costs.spent_ms, is_slowed=not float64_costs.on_device)


class _Float64OperatorCosts:
    """Time of float64 operators: in total in ms per typical step, and by source line."""

    def __init__(
        self, trace: Trace, float64_lines: pl.DataFrame, statistics: StepStatistics
    ) -> None:
        self.limits, self.lines = statistics, float64_lines
        self.steps = max(trace.view("steps").filter("counted").height, 1)
        self.on_device = sum(float64_lines["device_time"].to_list()) > 0
        self.time = "device_time" if self.on_device else "self_cpu_time"
        self.spent_ms = min(
            self.ms_per_typical_step(sum(float64_lines[self.time].to_list())),
            statistics.step_ms,
        )
        all_operators = trace.view("operators", by="type")
        operator_names = all_operators["name"].cast(pl.String).to_list()
        self.is_network = any(names.is_neural_network_operator(name) for name in operator_names)
        float64_operators = all_operators.filter(pl.col("input_types").str.starts_with('["double"'))
        self.converts = _are_mostly_conversions(float64_operators)
        self.max_saved_share = (
            1.0 if self.on_device or self.converts else MAX_TIME_SHARE_SAVED_BY_FLOAT32
        )

    def ms_per_typical_step(self, total_ns: int) -> float:
        """Returns a total time in all measured steps (ns) as ms per typical step."""
        return self.limits.scaled_to_typical_step(total_ns / self.steps / 1e6)


def _are_mostly_conversions(operators: pl.DataFrame) -> bool:
    """Returns whether conversions take more than half of the operators' time."""
    times = operators["self_cpu_time_total"] + operators["self_device_time_total"]
    operator_names = operators["name"].cast(pl.String).to_list()
    conversions = pl.Series(
        [names.is_copy_or_conversion(name) for name in operator_names], dtype=pl.Boolean
    )
    converting: int = sum(times.filter(conversions).to_list())
    return bool(2 * converting > sum(times.to_list()))


def _finding(trace: Trace, float64_costs: _Float64OperatorCosts) -> Finding:
    spent_ms = float64_costs.spent_ms
    operators = operators_in_counted_steps(trace)
    operators = operators.filter(
        pl.Series(is_operator_computing_in_dtype(trace, operators["id"], "double"))
    )
    claim = _float32_claim(trace, float64_costs, operators)
    line = _first_float64_line_after_batch(float64_costs.lines)
    default = default_dtype_line(trace, "float64")
    location = default or where_from_row(line)
    share = spent_ms / float64_costs.limits.step_ms
    return Finding(
        covers=("C5",) if float64_costs.converts else ("E13",),
        title=f"{whole_percent_text(share)} of the step is converted from float64"
        if float64_costs.converts
        else f"{whole_percent_text(share)} of the step runs in float64",
        where=location,
        count_per_step=sum(float64_costs.lines["operators"].to_list()) / float64_costs.steps,
        claim=claim,
        confidence="high"
        if location.line is not None and _is_halved(trace, claim, operators)
        else "medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in operators on float64 tensors",
                spent_ms,
                "ms",
                _first_operator_id_of_line_or_empty(operators, line),
                operators["id"].to_numpy(),
            ),
            *(
                _float64_time_evidence_of_line(float64_costs, line)
                for line in _slowest_float64_line_rows(float64_costs)
            ),
        ),
        fix=_default_dtype_fix(line) if default else _float32_fix(location),
    )


def _float32_claim(
    trace: Trace, float64_costs: _Float64OperatorCosts, operators: pl.DataFrame
) -> RemovalClaim:
    best_share = float64_costs.max_saved_share
    likely, least, best = (
        _changes_to_float32(trace, operators, *saved_shares)
        for saved_shares in (
            (TIME_SHARE_SAVED_BY_FLOAT32, FALLBACK_CONVOLUTION_SHARE_SAVED_BY_FLOAT32, 0.0),
            (MIN_TIME_SHARE_SAVED_BY_FLOAT32, MIN_FALLBACK_CONVOLUTION_SHARE_SAVED_BY_FLOAT32, 0.0),
            (
                best_share,
                max(best_share, MAX_FALLBACK_CONVOLUTION_SHARE_SAVED_BY_FLOAT32),
                max(TIME_SHARE_SAVED_BY_FLOAT32, best_share if float64_costs.converts else 0.0),
            ),
        )
    )
    return RemovalClaim(
        likely,
        worst_case_changes=least,
        best_case_changes=best,
        largest_changes=(change_shortening_operators(trace, operators, 0.0),),
        interval=SavingRange(1.0, 1.0),
    )


def _is_halved(trace: Trace, claim: RemovalClaim, operators: pl.DataFrame) -> bool:
    """Returns whether float32 surely shortens most of the operators' time."""
    cuts = [one.intervals for one in claim.worst_case_changes if isinstance(one, CutHostTime)]
    whole = length(operator_intervals(operators))
    return trace.device_args.height > 0 or sum(map(length, cuts)) > MIN_VECTOR_TIME_SHARE * whole


def _changes_to_float32(
    trace: Trace,
    float64_operators: pl.DataFrame,
    saved_share: float,
    fallback_saved_share: float,
    other_saved_share: float,
) -> tuple[Change, ...]:
    """Returns the simulated changes that cut the time of float64 operators by the given shares.

    On a CPU `other_saved_share` is that of operators which take a time for each number.
    """
    if trace.device_args.height:
        return (change_shortening_operators(trace, float64_operators, 1 - saved_share),)
    slow = operator_intervals(filter_by_name(float64_operators, names.is_fallback_convolution))
    vectors = subtract(vector_loop_times(trace, float64_operators), slow)
    others = subtract(subtract(operator_intervals(float64_operators), slow), vectors)
    return tuple(
        CutHostTime(intervals, 1 - share)
        for intervals, share in (
            (slow, fallback_saved_share),
            (vectors, saved_share),
            (others, other_saved_share),
        )
        if length(intervals) and share
    )


def _first_operator_id_of_line_or_empty(
    operators: pl.DataFrame, line_row: dict[str, Any] | None
) -> tuple[int, ...]:
    """Returns the slice id of a source line's first operator as a 1-tuple, or an empty tuple."""
    if line_row is None:
        return ()
    return tuple(operators.filter(pl.col("start") == line_row["first"])["id"].to_list()[:1])


def _float32_fix(location: Where) -> Fix:
    text = "Create the data in float32, and drop `.double()` from the model"
    if location.file is not None:
        text += "; the named line is the first in the step that takes a float64 tensor"
    return Fix(f"{text}. Where double precision is intended, leave it.", FLOAT32_DATA_FIX_CODE)


def _default_dtype_fix(first_line: dict[str, Any] | None) -> Fix:
    text = "Leave the default dtype at float32: tensors and layers are made in float64 by it"
    if first_line is not None:
        text += f", first taken at {where_from_row(first_line)}"
    return Fix(
        f"{text}. Data that NumPy computed in float64 needs `dtype=torch.float32` as well. Where "
        "double precision is intended, leave it.",
        "torch.set_default_dtype(torch.float32)",
    )


def _first_float64_line_after_batch(float64_lines: pl.DataFrame) -> dict[str, Any] | None:
    """Returns the first source line with float64 inputs after a batch was loaded; None if none."""
    known = float64_lines.filter(pl.col("file").is_not_null()).sort(
        "since_batch", "first", nulls_last=True
    )
    return known.row(0, named=True) if known.height else None


def _slowest_float64_line_rows(float64_costs: _Float64OperatorCosts) -> list[dict[str, Any]]:
    lines = float64_costs.lines.filter(pl.col("file").is_not_null())
    return list(
        lines.sort(float64_costs.time, descending=True)
        .head(MAX_SOURCE_LINES_IN_EVIDENCE)
        .iter_rows(named=True)
    )


def _float64_time_evidence_of_line(
    float64_costs: _Float64OperatorCosts, line_row: dict[str, Any]
) -> Evidence:
    return Evidence(
        f"time in float64 operators at {where_from_row(line_row)}",
        float64_costs.ms_per_typical_step(line_row[float64_costs.time]),
        "ms",
    )
