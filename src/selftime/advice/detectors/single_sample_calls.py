"""Finds loops of the program that call a model with one sample in each round.

A round of the loop is part of a step, or is a step of its own: where a program only infers, its
loop over the samples is the loop of its steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps, parse_sizes
from selftime.advice.detectors.counted_steps import (
    begins_within_enclosing,
    counted_step_count,
    slices_in_counted_steps,
)
from selftime.advice.detectors.python_outside_torch import frames_of_program
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.slice_arguments import arguments_of_slices, caller_of_every_frame
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on
from selftime.names.recurrent_operators import is_recurrent_operator, recurrent_batch
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MIN_CALLS_IN_LOOP: Final = 8
"""Smallest number of calls of a model in a step that are a loop over samples; scales of an image,
views of a sample and heads are fewer."""

MIN_SHARE_OF_CALLS_WITH_LAYERS: Final = 0.9
"""Smallest share of the calls in which a layer was recorded; of those at the edge of a step it may
be in another one."""

_MAX_FUNCTIONS_AROUND_MODEL: Final = 4
"""How many functions of the program are looked through for a loop, from a model's call outwards."""

_BATCHED_DIMENSIONS: Final = {"conv1d": 3, "conv2d": 4, "conv3d": 5, "linear": 2, "embedding": 2}
"""Least number of dimensions of an input with a batch, by operator."""

_LAYERS_OF_ANY_DIMENSIONS: Final = ("aten::linear", "aten::embedding")
"""Layers that take inputs with a dimension for time, before or after that of the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleSampleLoop:
    """A loop of the program that calls a model with one sample in each round."""

    model: str
    """Class of the model."""
    frame: int
    """Slice id of a frame of the function with the loop."""
    callee: str | None
    """Name of the function that the loop calls, which calls the model; None for the
    model itself."""
    calls: pl.DataFrame
    """The calls of the model in counted steps, in order of time, with their `end` in ns."""
    calls_per_step: float
    is_step: bool
    """Whether each round is a step of its own."""


def single_sample_loops(trace: Trace) -> Iterator[SingleSampleLoop]:
    """Yields each loop that calls a model with one sample at a time, the longest first.

    Loops within a step come before loops whose rounds are the steps, and leave no such. Of the
    modules that a loop calls within each other the outermost is the model. Without shapes of inputs
    there is none.
    """
    groups = _model_calls(trace).group_by("name", maintain_order=True)
    found = [loop for _, same in groups if (loop := _loop_of_calls(trace, same)) is not None]
    seen: list[SingleSampleLoop] = []
    taken: list[SingleSampleLoop] = []
    for loop in sorted(found, key=lambda loop: (loop.is_step, -int(loop.calls["duration"].sum()))):
        around = [*taken, *(earlier for earlier in seen if earlier.frame == loop.frame)]
        is_part = any(_is_within(loop.calls, earlier.calls) for earlier in around)
        seen.append(loop)
        if is_part or (loop.is_step and taken) or not _have_single_samples(trace, loop.calls):
            continue
        taken.append(loop)
        yield loop


def _model_calls(trace: Trace) -> pl.DataFrame:
    """Returns the calls of modules on the main thread in counted steps, with their `end` in ns."""
    ids = trace.frame_args.filter(pl.col("module_id").is_not_null())["id"]
    frames = slices_on(trace, "python").filter(pl.col("id").is_in(ids.implode()))
    frames = slices_on_main_thread(trace, slices_in_counted_steps(trace, frames))
    return frames.with_columns(end=pl.col("start") + pl.col("duration")).sort("start", "id")


def _is_within(calls: pl.DataFrame, others: pl.DataFrame) -> bool:
    """Returns whether the first of some calls lies within one of others."""
    at = int(np.searchsorted(others["start"].to_numpy(), calls["start"][0], side="right")) - 1
    return at >= 0 and calls["start"][0] < others["end"][at]


def _loop_of_calls(trace: Trace, calls: pl.DataFrame) -> SingleSampleLoop | None:
    """Returns the innermost function of the program that calls a model many times; None if none.

    Else the innermost one that runs on through all steps, and calls it once in each. A function
    that makes one call, within which a library calls the model many times, has no such loop.
    """
    steps, caller = counted_step_count(trace), caller_of_every_frame(trace)
    is_own = frames_of_program(trace)
    is_called_by_own = is_own[caller] & (caller != NO_SLICE)
    child = calls["id"].cast(pl.Int64).to_numpy()
    is_model = True
    for _ in range(_MAX_FUNCTIONS_AROUND_MODEL):
        frame = nearest_ancestor(caller, is_own, caller[child])
        if (frame == NO_SLICE).any():
            return None
        several = np.unique(frame).size
        made = np.unique(nearest_ancestor(caller, is_called_by_own, child)).size
        rounds = made / max(several, steps)
        is_step = several == 1 and steps > 1 and made == calls.height == steps
        if rounds >= MIN_CALLS_IN_LOOP or is_step:
            name = str(trace.slices["name"][int(child[0])])
            return SingleSampleLoop(
                names.module_class(str(calls["name"][0])),
                int(frame[0]),
                None if is_model else names.called_function(name),
                calls,
                calls.height / steps,
                is_step,
            )
        child, is_model = frame, False
    return None


def _have_single_samples(trace: Trace, calls: pl.DataFrame) -> bool:
    """Returns whether the first layers of each call get one sample, by the shapes of their inputs.

    Of embeddings all count that come before another layer: positions have one row for all samples.
    Of a call with a recurrent layer that layer's state tells, and no linear layer or embedding: the
    first dimension of their inputs may be time.
    """
    layers = _layers_of_batches(trace)
    inside = operators_of_calls(trace, calls, layers.sort("start", "id"))
    is_recurrent = pl.Series(matches_name(inside, is_recurrent_operator), dtype=pl.Boolean)
    inside = inside.with_columns(recurrent=is_recurrent)
    may_lead = pl.col("recurrent") | ~pl.col("recurrent").any().over("call")
    takes_any = pl.col("name").cast(pl.String).is_in(_LAYERS_OF_ANY_DIMENSIONS)
    inside = inside.filter(may_lead | ~takes_any)
    other = pl.col("name").cast(pl.String) != "aten::embedding"
    is_early = other.cast(pl.UInt32).cum_sum().over("call") == 0
    rank = pl.int_range(pl.len()).over("call")
    first = inside.filter((rank == 0) | is_early)
    if first["call"].n_unique() < MIN_SHARE_OF_CALLS_WITH_LAYERS * calls.height:
        return False
    pairs = zip(first["name"].cast(pl.String), first["input_shapes"].cast(pl.String), strict=True)
    return all(_is_single_sample(name, text) for name, text in set(pairs))


def _layers_of_batches(trace: Trace) -> pl.DataFrame:
    """Returns the layers whose inputs tell a batch, without those within recurrent layers."""
    layers = filter_by_name(operators_in_counted_steps(trace), _is_batched_layer)
    recurrent = filter_by_name(layers, is_recurrent_operator)
    is_within = pl.Series(begins_within_enclosing(layers, recurrent), dtype=pl.Boolean)
    return layers.filter(~is_within | layers["id"].is_in(recurrent["id"].implode()))


def operators_of_calls(trace: Trace, calls: pl.DataFrame, operators: pl.DataFrame) -> pl.DataFrame:
    """Returns the operators that run within calls, by frames, with the call's slice id as `call`.

    By frames and not by times: those of operators and frames are measured apart.
    """
    told = arguments_of_slices(trace, "op_args", operators["id"], "frame")["frame"]
    frame = told.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    is_call = np.zeros(trace.slices.height, np.bool_)
    is_call[calls["id"].to_numpy()] = True
    call = nearest_ancestor(caller_of_every_frame(trace), is_call, frame)
    return operators.with_columns(call=pl.Series(call)).filter(pl.col("call") != NO_SLICE)


def _is_batched_layer(name: str) -> bool:
    return name.rpartition("::")[2] in _BATCHED_DIMENSIONS or is_recurrent_operator(name)


def _is_single_sample(operator: str, shapes: str | None) -> bool:
    """Returns whether a layer's first input (an embedding's second) holds one sample.

    >>> _is_single_sample("aten::linear", "[[1,8],[4,8],[4]]")
    True
    >>> _is_single_sample("aten::conv2d", "[[3,32,32],[8,3,3,3],[8]]")
    True
    >>> _is_single_sample("aten::embedding", "[[100,8],[16]]")
    False
    >>> _is_single_sample("aten::gru", "[[1,50,8],[1,50,4]]")
    False
    """
    if is_recurrent_operator(operator):
        return recurrent_batch(operator, shapes) == 1
    name = operator.rpartition("::")[2]
    sizes = parse_sizes(shapes)
    which = 1 if name == "embedding" else 0
    if len(sizes) <= which or not sizes[which]:
        return False
    own, least = sizes[which], _BATCHED_DIMENSIONS[name]
    return own[0] == 1 if len(own) >= least else name != "embedding"
