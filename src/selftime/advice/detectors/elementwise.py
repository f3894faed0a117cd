"""Passes over tensors that each do little with a number, and the runs of them in a forward pass.

What follows on each other over tensors of one size could be one pass: it would read once what comes
from outside, and write once what is left in the end.
"""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.changes import launched_by
from selftime.advice.detectors.counted_steps import covered, is_under, steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_durations
from selftime.analysis.models import Call, Tensor, work
from selftime.analysis.models.modelled import peaks_in
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.trace import Trace

LEAST_BYTES: Final = 256 * 1024
"""A pass over less takes no longer than the call of its operator, which no fusion of passes mends:
at 50 GB/s, which a core's caches give, 5 us."""

MINOR: Final = 16
"""What works on so many times fewer numbers than its neighbours is no pass: a row's statistics."""

NEAR: Final = 4
"""Operators back in which a neighbour is looked for."""

LONG: Final = 4
"""Passes of a chain, at least: of two, fusion saves a third at most, and compilers have a price.
Three are in every residual network, norm, sum and activation, and compiling one gained 8 %."""

ATTAINED: Final = 0.75
"""Of the peak of a device's memory that a pass over large tensors reaches."""

_BY_ROW: Final = frozenset({"softmax", "log_softmax", "layer_norm", "rms_norm"})
"""What takes statistics of rows: elsewhere the same operators do something else."""
_INNER: Final = {"aten::softmax": "aten::_softmax"}
"""What has a model under the name of the operator that it calls with the same arguments."""
_FAMILIES: Final = {"pointwise": "map", "reduction": "reduce", "softmax": "softmax"}
_KEYS: Final = ("name", "input_shapes", "input_types", "input_strides", "concrete_inputs")
_SCHEMA: Final = {
    **dict.fromkeys(_KEYS, pl.String),
    "kind": pl.String,
    "elements": pl.Int64,
    "bytes": pl.Int64,
    "given": pl.Int64,
    "by_row": pl.Boolean,
    "double": pl.Boolean,
    "in_place": pl.Boolean,
}


@cached_per_trace
def passes(trace: Trace) -> pl.DataFrame:
    """What the program's forward passes do with whole tensors, in order of time.

    Those of the steps that count; not those of backward passes, optimizers and loading.

    Columns: id, track, start, end; name as text; kind: `map`, `reduce`, `softmax`, or `minor`, on
    far fewer numbers than its neighbours; elements of the largest tensor; bytes to move; given,
    how many tensors of that size it reads; by_row, whether it takes one number for each row;
    double, whether it computes in float64; in_place; run, equal for those on tensors of one size
    with nothing else between, in one step.
    """
    table = forward_operators(trace).with_columns(pl.col(*_KEYS).cast(pl.String))
    told = [(*texts, *_told(*texts)) for texts in table.select(_KEYS).unique().iter_rows()]
    calls = pl.DataFrame(told, schema=_SCHEMA, orient="row").filter(pl.col("kind") != "view")
    table = table.join(calls, on=_KEYS, how="inner", nulls_equal=True, maintain_order="left")
    near = pl.col("elements").shift(1).rolling_max(NEAR, min_samples=1).over("track")
    minor = (pl.col("kind") != "end") & (pl.col("elements") * MINOR <= near)
    table = table.with_columns(
        kind=pl.when(minor.fill_null(value=False)).then(pl.lit("minor")).otherwise("kind")
    )
    small = (pl.col("bytes") < LEAST_BYTES) & (pl.col("kind") != "minor")
    table = table.with_columns(kind=pl.when(small).then(pl.lit("end")).otherwise("kind"))
    size = pl.when(pl.col("kind") != "minor").then("elements").forward_fill().over("track")
    table = table.with_columns(size=size)
    table = table.with_columns(part=_parts(trace, table))
    same = pl.struct("track", "size", "part")
    breaks = (pl.col("kind") == "end") | (same != same.shift(1)).fill_null(value=True)
    table = table.with_columns(run=breaks.cast(pl.Int64).cum_sum())
    return table.filter(pl.col("kind") != "end").drop("size", "part", *_KEYS[1:])


def _parts(trace: Trace, table: pl.DataFrame) -> pl.Series:
    """The parts of the time between steps, backward passes, optimizers and loading."""
    edges = [_elsewhere(trace)["start"], assessed_steps(trace)["start"]]
    marks = np.sort(np.concatenate([edge.to_numpy() for edge in edges]))
    return pl.Series(np.searchsorted(marks, table["start"].to_numpy(), side="right"))


@cached_per_trace
def forward_operators(trace: Trace) -> pl.DataFrame:
    """Operators that the program's own forward passes called, in order of track and time.

    Columns: those of `recorded_operators`.
    """
    every = filter_by_name(recorded_operators(trace), names.is_dispatched)
    is_operator = np.zeros(trace.slices.height, bool)
    is_operator[every["id"].to_numpy()] = True
    parent = trace.slices["parent"].gather(every["id"]).cast(pl.Int64).fill_null(-1).to_numpy()
    within = (parent >= 0) & is_operator[np.maximum(parent, 0)] if parent.size else parent > 0
    outer = every.filter(pl.Series(~within, dtype=pl.Boolean)).sort("track", "start", "id")
    return outer.filter(~pl.Series(is_under(outer, _elsewhere(trace)), dtype=pl.Boolean))


def _elsewhere(trace: Trace) -> pl.DataFrame:
    """When backward passes, optimizers and loading ran: track, start and end."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    found = filter_by_name(host, _is_elsewhere)
    return found.select("track", "start", end=pl.col("start") + pl.col("duration"))


def _is_elsewhere(name: str) -> bool:
    return (
        names.is_backward_node(name) or names.is_optimizer_step(name) or names.is_data_loading(name)
    )


def _told(
    name: str, shapes: str | None, types: str | None, strides: str | None, concrete: str | None
) -> tuple[Any, ...]:
    """Of one distinct call: kind, elements, bytes, given, by_row, double and in_place."""
    nothing = (0, 0, 0, False, False, False)
    if names.is_view(name):
        return ("view", *nothing)
    name = _INNER.get(name, name)
    call = Call(shapes or "[]", types, concrete, strides)
    found = work(name, call)
    kind = _FAMILIES.get(found.family) if found else None
    if found is None or kind is None or found.bytes is None or found.bytes >= 1 << 58:
        return ("end", *nothing)
    given = [one for one in call.arguments if isinstance(one, Tensor)]
    largest = max((one.elements for one in given), default=0)
    whole = [one for one in given if one.elements == largest]
    return (
        kind,
        largest,
        found.bytes,
        len(whole),
        any(_is_by_row(one, whole[0]) for one in given),
        any(one.dtype == "float64" for one in whole),
        names.is_in_place(name),
    )


def _is_by_row(one: Tensor, whole: Tensor) -> bool:
    """Whether a tensor has one number for each row of another."""
    rows = whole.shape[:-1]
    return len(whole.shape) > 1 and whole.shape[-1] > 1 and one.shape == (*rows, 1)


@cached_per_trace
def spelled_out(trace: Trace) -> pl.DataFrame:
    """The passes that together are a layer or loss which exists as one operator.

    Columns: those of `passes`; spells, which one, see `names.handwritten`; layer, equal for the
    passes of one.
    """
    table = passes(trace).with_row_index("at")
    rows = table.group_by("run", maintain_order=True).agg("at", "name", "by_row")
    rows = rows.filter(pl.col("at").list.len() > 1)
    known: dict[tuple[str, ...], list[tuple[str, int, int]]] = {}
    found: list[tuple[str, int, int]] = []
    for at, called, by_row in rows.select("at", "name", "by_row").iter_rows():
        key = tuple(called)
        if key not in known:
            known[key] = names.find_handwritten(key)
        found += [
            (kind, at[first], last - first)
            for kind, first, last in known[key]
            if kind not in _BY_ROW or any(by_row[first:last])
        ]
    kinds, begin, many = zip(*found, strict=True) if found else ((), (), ())
    counts = np.array(many, np.int64)
    layer = np.repeat(np.arange(counts.size), counts)
    within = np.arange(layer.size) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = table.drop("at")[np.repeat(np.array(begin, np.int64), counts) + within]
    return chosen.with_columns(
        spells=pl.Series(kinds, dtype=pl.String).gather(layer), layer=pl.Series(layer)
    )


def kept_share(trace: Trace, chosen: pl.DataFrame) -> float:
    """The share of their time that one pass takes which reads once and writes once.

    At the pace of the passes themselves; on a device whose peak is known no faster than it can be.
    Gradients keep the same share: they are as many passes more. `chosen` are of `spelled_out`.
    """
    once = sum(chosen.group_by("layer").agg(pl.col("bytes").max())["bytes"].to_list())
    share = float(min(1.0, once / max(sum(chosen["bytes"].to_list()), 1)))
    peaks = peaks_in(trace)
    if peaks is None:
        return share
    ran = launched_by(trace, chosen)
    time = sum(device_durations(trace).gather(ran).to_list())
    least = once / (ATTAINED * peaks.bytes) * 1e9
    return min(1.0, max(share, least / time)) if time else share


@cached_per_trace
def chains(trace: Trace) -> pl.DataFrame:
    """Passes in a row that a compiler would fuse, without those that are spelled-out layers.

    A chain ends with a reduction; what is done in place to one tensor after the other, as updates
    of parameters are, is none. Passes in float64, and those around a softmax, have other causes.

    Columns: those of `passes`; chain, equal for the passes of one, of `LONG` passes at least.
    """
    table = passes(trace)
    spelled = spelled_out(trace)["id"]
    softmax = table.filter(pl.col("kind") == "softmax")["run"]
    mine = (pl.col("kind") != "minor") & ~pl.col("double")
    table = table.filter(mine & ~pl.col("run").is_in(softmax.implode()))
    ends = (pl.col("kind") == "reduce") | pl.col("id").is_in(spelled.implode())
    twice = pl.col("in_place") & pl.col("in_place").shift(1)
    breaks = (pl.col("run") != pl.col("run").shift(1)) | ends.shift(1) | twice
    table = table.with_columns(chain=breaks.fill_null(value=True).cast(pl.Int64).cum_sum())
    table = table.filter(~pl.col("id").is_in(spelled.implode()))
    return table.filter(pl.len().over("chain") >= LONG)


def spent_ms(trace: Trace, operators: pl.DataFrame) -> float:
    """What operators take of a step, on the device or without one on the host, at most."""
    if trace.device_args.height:
        times = device_durations(trace).gather(launched_by(trace, operators)).drop_nulls()
        return float(sum(times.to_list())) / steps_recorded(trace) / 1e6
    begin, end = covered(operators)
    return float((end - begin).sum()) / steps_recorded(trace) / 1e6


def fused_share(chosen: pl.DataFrame) -> float:
    """The share of their bytes that chains move if each is one pass: all it is given, and a result.

    Of two tensors that an operator takes one is taken as coming from outside.
    """
    one = pl.col("elements").first() * pl.col("bytes").sum() / pl.col("accesses").sum()
    counted = chosen.with_columns(accesses=_accesses())
    outside = 2 + (pl.col("given") - 1).clip(0).sum()
    each = counted.group_by("chain").agg(
        whole=pl.col("bytes").sum(), least=pl.min_horizontal(outside * one, pl.col("bytes").sum())
    )
    return float(sum(each["least"].to_list()) / max(sum(each["whole"].to_list()), 1))


def _accesses() -> pl.Expr:
    """How many numbers a pass reads and writes, of whole tensors."""
    written = (pl.col("kind") == "map").cast(pl.Int64)
    return (pl.col("given") + written) * pl.col("elements")
