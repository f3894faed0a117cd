"""Finds elementwise operators of forward passes, and successive ones that could be fused.

Passes that follow each other over tensors of one size could be one pass: it reads its inputs once
and writes its results once.
"""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import (
    begins_within_enclosing,
    operator_intervals,
    recorded_step_count,
)
from selftime.advice.detectors.operator_changes import device_work_launched_by
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.models import RecordedOperatorCall, RecordedTensor, work_of_operator_call
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace

MIN_ELEMENTWISE_PASS_BYTES: Final = 256 * 1024
"""Smallest number of bytes that an elementwise operator moves to count; with fewer, the operator's
call takes most of its time: at 50 GB/s, the rate of one core's caches, moving them takes 5 us."""

MINOR_OPERATOR_SIZE_RATIO: Final = 16
"""An operator is ignored as minor (a row's statistics, for example) if neighbouring operators
process this many times as many elements."""

MAX_NEIGHBOURING_OPERATOR_DISTANCE: Final = 4
"""Number of operators before an operator that count as its neighbours."""

MIN_PASSES_PER_CHAIN: Final = 4
"""Smallest number of successive elementwise operators that form a chain worth fusing: fusing two
saves a third at most; three are in every residual network, and compiling one gained only 8 %."""

ATTAINED_PEAK_BANDWIDTH_SHARE: Final = 0.75
"""Share of a device's peak memory bandwidth that elementwise operators on large tensors reach."""

_LAYERS_WITH_ROW_STATISTICS: Final = frozenset({"softmax", "log_softmax", "layer_norm", "rms_norm"})
"""Layers, such as softmax, that compute statistics of each row of a matrix."""
_MODELLED_OPERATOR_BY_WRAPPER: Final = {"aten::softmax": "aten::_softmax"}
"""Maps a wrapper operator to the operator that it calls with the same arguments, whose FLOPs and
bytes are known."""
_PASS_KIND_BY_OPERATOR_FAMILY: Final = {
    "pointwise": "map",
    "reduction": "reduce",
    "softmax": "softmax",
}
"""Maps the family of an operator, such as `pointwise`, to the kind of elementwise work, such as
`map`."""
_OPERATOR_CALL_COLUMNS: Final = (
    "name",
    "input_shapes",
    "input_types",
    "input_strides",
    "concrete_inputs",
)
"""Columns that must be equal for two operator calls to be analysed as one."""
_OPERATOR_CALL_SCHEMA: Final = {
    **dict.fromkeys(_OPERATOR_CALL_COLUMNS, pl.String),
    "kind": pl.String,
    "elements": pl.Int64,
    "bytes": pl.Int64,
    "given": pl.Int64,
    "by_row": pl.Boolean,
    "double": pl.Boolean,
    "in_place": pl.Boolean,
}
"""Column types of the table of distinct operator calls."""


@cached_per_trace
def elementwise_passes(trace: Trace) -> pl.DataFrame:
    """Returns the elementwise operators of forward passes, with their elements and moved bytes.

    Those of the counted steps, without backward passes, optimizers and loading.

    Columns: id, track, start, end; name as text; kind: `map`, `reduce`, `softmax`, or `minor`, on
    far fewer numbers than its neighbours; elements of the largest tensor; bytes to move; given,
    how many tensors of that size it reads; by_row, whether it takes one number for each row;
    double, whether it computes in float64; in_place; run, equal for those on tensors of one size
    with nothing else between, in one step.
    """
    table = forward_operators(trace).with_columns(pl.col(*_OPERATOR_CALL_COLUMNS).cast(pl.String))
    told = [
        (*texts, *_elementwise_pass_properties(*texts))
        for texts in table.select(_OPERATOR_CALL_COLUMNS).unique().iter_rows()
    ]
    calls = pl.DataFrame(told, schema=_OPERATOR_CALL_SCHEMA, orient="row").filter(
        pl.col("kind") != "view"
    )
    table = table.join(
        calls, on=_OPERATOR_CALL_COLUMNS, how="inner", nulls_equal=True, maintain_order="left"
    )
    near = (
        pl.col("elements")
        .shift(1)
        .rolling_max(MAX_NEIGHBOURING_OPERATOR_DISTANCE, min_samples=1)
        .over("track")
    )
    minor = (pl.col("kind") != "end") & (pl.col("elements") * MINOR_OPERATOR_SIZE_RATIO <= near)
    table = table.with_columns(
        kind=pl.when(minor.fill_null(value=False)).then(pl.lit("minor")).otherwise("kind")
    )
    small = (pl.col("bytes") < MIN_ELEMENTWISE_PASS_BYTES) & (pl.col("kind") != "minor")
    table = table.with_columns(kind=pl.when(small).then(pl.lit("end")).otherwise("kind"))
    size = pl.when(pl.col("kind") != "minor").then("elements").forward_fill().over("track")
    table = table.with_columns(size=size)
    table = table.with_columns(part=_forward_interval_indices(trace, table))
    same = pl.struct("track", "size", "part")
    breaks = (pl.col("kind") == "end") | (same != same.shift(1)).fill_null(value=True)
    table = table.with_columns(run=breaks.cast(pl.Int64).cum_sum())
    return table.filter(pl.col("kind") != "end").drop("size", "part", *_OPERATOR_CALL_COLUMNS[1:])


def _forward_interval_indices(trace: Trace, operators: pl.DataFrame) -> pl.Series:
    """Returns a number for each operator; operators of one uninterrupted forward pass share it."""
    edges = [_slices_outside_forward(trace)["start"], steps_with_counted_flags(trace)["start"]]
    marks = np.sort(np.concatenate([edge.to_numpy() for edge in edges]))
    return pl.Series(np.searchsorted(marks, operators["start"].to_numpy(), side="right"))


@cached_per_trace
def forward_operators(trace: Trace) -> pl.DataFrame:
    """Returns the outermost operators of the forward passes, in order of thread and time.

    Columns: those of `operators_in_counted_steps`.
    """
    every = filter_by_name(operators_in_counted_steps(trace), names.is_dispatched_operator)
    is_operator = np.zeros(trace.slices.height, bool)
    is_operator[every["id"].to_numpy()] = True
    parent = trace.slices["parent"].gather(every["id"]).cast(pl.Int64).fill_null(-1).to_numpy()
    within = (parent >= 0) & is_operator[np.maximum(parent, 0)] if parent.size else parent > 0
    outer = every.filter(pl.Series(~within, dtype=pl.Boolean)).sort("track", "start", "id")
    return outside_backward_passes(trace, outer)


def outside_backward_passes(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """Returns the operators that ran in no backward pass, optimizer step or loading of data."""
    outside = begins_within_enclosing(operators, _slices_outside_forward(trace))
    return operators.filter(~pl.Series(outside, dtype=pl.Boolean))


def _slices_outside_forward(trace: Trace) -> pl.DataFrame:
    """Returns track, start and end (ns) of slices that interrupt forward passes, as backward."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    found = filter_by_name(host, _is_outside_forward)
    return found.select("track", "start", end=pl.col("start") + pl.col("duration"))


def _is_outside_forward(name: str) -> bool:
    """Returns whether a slice's name shows a backward pass, an optimizer step or data loading."""
    return (
        names.is_backward_node(name) or names.is_optimizer_step(name) or names.is_data_loading(name)
    )


def _elementwise_pass_properties(
    operator: str,
    shapes: str | None,
    types: str | None,
    strides: str | None,
    concrete_inputs: str | None,
) -> tuple[Any, ...]:
    """Returns the kind, the elements and the bytes of an operator call, and its inputs."""
    nothing = (0, 0, 0, False, False, False)
    if names.is_view(operator):
        return ("view", *nothing)
    operator = _MODELLED_OPERATOR_BY_WRAPPER.get(operator, operator)
    call = RecordedOperatorCall(shapes or "[]", types, concrete_inputs, strides)
    found = work_of_operator_call(operator, call)
    kind = _PASS_KIND_BY_OPERATOR_FAMILY.get(found.family) if found else None
    if found is None or kind is None or found.bytes is None or found.bytes >= 1 << 58:
        return ("end", *nothing)
    given = [one for one in call.arguments if isinstance(one, RecordedTensor)]
    largest = max((one.elements for one in given), default=0)
    whole = [one for one in given if one.elements == largest]
    return (
        kind,
        largest,
        found.bytes,
        len(whole),
        any(_has_one_element_per_row(one, whole[0]) for one in given),
        any(one.dtype == "float64" for one in whole),
        names.is_in_place(operator),
    )


def _has_one_element_per_row(tensor: RecordedTensor, matrix: RecordedTensor) -> bool:
    """Returns whether a tensor has one element for each row of a matrix."""
    rows = matrix.shape[:-1]
    return len(matrix.shape) > 1 and matrix.shape[-1] > 1 and tensor.shape == (*rows, 1)


@cached_per_trace
def handwritten_layer_passes(trace: Trace) -> pl.DataFrame:
    """Returns elementwise operators that together do what one layer or loss operator could.

    Columns: those of `elementwise_passes`; spells: the layer, see `names.handwritten`; layer: equal
    for the passes of one.
    """
    table = elementwise_passes(trace).with_row_index("at")
    rows = table.group_by("run", maintain_order=True).agg("at", "name", "by_row")
    rows = rows.filter(pl.col("at").list.len() > 1)
    known: dict[tuple[str, ...], list[tuple[str, int, int]]] = {}
    found: list[tuple[str, int, int]] = []
    for at, called, by_row in rows.select("at", "name", "by_row").iter_rows():
        key = tuple(called)
        if key not in known:
            known[key] = names.find_handwritten_layers(key)
        found += [
            (kind, at[first], last - first)
            for kind, first, last in known[key]
            if kind not in _LAYERS_WITH_ROW_STATISTICS or any(by_row[first:last])
        ]
    kinds, begin, many = zip(*found, strict=True) if found else ((), (), ())
    counts = np.array(many, np.int64)
    layer = np.repeat(np.arange(counts.size), counts)
    within = np.arange(layer.size) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = table.drop("at")[np.repeat(np.array(begin, np.int64), counts) + within]
    return chosen.with_columns(
        spells=pl.Series(kinds, dtype=pl.String).gather(layer), layer=pl.Series(layer)
    )


def time_share_as_one_pass(trace: Trace, layer_passes: pl.DataFrame) -> float:
    """Returns the time of one fused operator that does the operators' work, as a share of theirs.

    Its bandwidth is that of the passes, at most what the device can reach. Gradients keep the same
    share. `layer_passes` has the columns of `handwritten_layer_passes`.
    """
    once = sum(layer_passes.group_by("layer").agg(pl.col("bytes").max())["bytes"].to_list())
    share = float(min(1.0, once / max(sum(layer_passes["bytes"].to_list()), 1)))
    peaks = common_peak_rates_of_devices(trace)
    if peaks is None:
        return share
    ran = device_work_launched_by(trace, layer_passes)
    time = sum(slice_durations_without_impossible(trace).gather(ran).to_list())
    least = once / (ATTAINED_PEAK_BANDWIDTH_SHARE * peaks.bytes) * 1e9
    return min(1.0, max(share, least / time)) if time else share


@cached_per_trace
def pointwise_chains(trace: Trace) -> pl.DataFrame:
    """Returns chains of successive elementwise operators that a compiler could fuse.

    Handwritten layers are left out. A chain ends with a reduction. Operators in place on one tensor
    after the other, as updates of parameters are, are no chain. Passes in float64, and those around
    a softmax, have other causes.

    Columns: those of `elementwise_passes`; chain: equal for the passes of one chain,
    which are at least `MIN_PASSES_PER_CHAIN`.
    """
    table = elementwise_passes(trace)
    spelled = handwritten_layer_passes(trace)["id"]
    softmax = table.filter(pl.col("kind") == "softmax")["run"]
    mine = (pl.col("kind") != "minor") & ~pl.col("double")
    table = table.filter(mine & ~pl.col("run").is_in(softmax.implode()))
    ends = (pl.col("kind") == "reduce") | pl.col("id").is_in(spelled.implode())
    twice = pl.col("in_place") & pl.col("in_place").shift(1)
    breaks = (pl.col("run") != pl.col("run").shift(1)) | ends.shift(1) | twice
    table = table.with_columns(chain=breaks.fill_null(value=True).cast(pl.Int64).cum_sum())
    table = table.filter(~pl.col("id").is_in(spelled.implode()))
    return table.filter(pl.len().over("chain") >= MIN_PASSES_PER_CHAIN)


def operator_ms_per_step(trace: Trace, operators: pl.DataFrame) -> float:
    """Returns the operators' device time in ms per step; their host time if there is no device."""
    if trace.device_args.height:
        times = (
            slice_durations_without_impossible(trace)
            .gather(device_work_launched_by(trace, operators))
            .drop_nulls()
        )
        return float(sum(times.to_list())) / recorded_step_count(trace) / 1e6
    begin, end = operator_intervals(operators)
    return float((end - begin).sum()) / recorded_step_count(trace) / 1e6


def fused_chain_bytes_share(chains: pl.DataFrame) -> float:
    """Returns the share of moved bytes that remains if each chain of operators is fused to one.

    Of two tensors that an operator reads, one is taken to be an input of the chain.
    """
    one = pl.col("elements").first() * pl.col("bytes").sum() / pl.col("accesses").sum()
    counted = chains.with_columns(accesses=_accessed_elements_expression())
    outside = 2 + (pl.col("given") - 1).clip(0).sum()
    each = counted.group_by("chain").agg(
        whole=pl.col("bytes").sum(), least=pl.min_horizontal(outside * one, pl.col("bytes").sum())
    )
    return float(sum(each["least"].to_list()) / max(sum(each["whole"].to_list()), 1))


def _accessed_elements_expression() -> pl.Expr:
    """Returns a Polars expression for the number of elements that an operator reads and writes."""
    written = (pl.col("kind") == "map").cast(pl.Int64)
    return (pl.col("given") + written) * pl.col("elements")
