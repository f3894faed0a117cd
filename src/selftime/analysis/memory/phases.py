"""What the program was doing at each record of memory: loading, going backward, optimizing.

The nearest slice around the record that shows a phase tells: the loader's annotation, a copy of
host memory to a device, a node of autograd's backward pass, the optimizer's step. What none of
them holds is no phase of these: forward, if an operator of the program's own ran.

Where records have stacks of their own, as an allocator's snapshot, those tell. A stack without a
Python frame is one of a thread that no Python runs on: of those autograd's allocate and release.
"""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.arrays import Ints
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

OUTSIDE: Final = 0
"""In no operator."""
FORWARD: Final = 1
LOADING: Final = 2
BACKWARD: Final = 3
OPTIMIZER: Final = 4
_UPLOAD: Final = 5
"""A copy to a device: loading, unless a backward pass or an optimizer is around it."""


_OF_STACK: Final = {
    "loading": LOADING,
    "optimizing": OPTIMIZER,
    "backward": BACKWARD,
    "building": FORWARD,
    "forward": FORWARD,
}


@dataclass(frozen=True, slots=True)
class Phases:
    """What each record was in; arrays of shape (n,), one entry for each record asked for."""

    phase: Ints
    ends: Ints
    """When the outermost operator around it ends, or the loading or optimizer's step, in ns."""
    accumulates: NDArray[np.bool_]
    """Whether it is in autograd's node that adds to a parameter's gradient."""
    builds: NDArray[np.bool_]
    """Whether its stack says that torch.nn builds or moves a module."""
    is_known: NDArray[np.bool_]
    """Whether the recording tells: a snapshot's record without a stack may be in any phase."""

    def part(self, begin: int, end: int | None) -> "Phases":
        """Those of some of the records."""
        return Phases(*(getattr(self, field.name)[begin:end] for field in fields(self)))


def phases(trace: Trace, at: pl.Series) -> Phases:
    """The phase of each of these rows of `memory`; null is outside."""
    phase, ends, accumulates = _by_slices(trace, trace.memory["operator"].gather(at))
    every = trace.memory["call_stack"]
    shown = _shown(every.gather(at))
    told = shown.replace_strict(_OF_STACK, default=OUTSIDE, return_dtype=pl.Int64).to_numpy()
    has_stacks = every.null_count() < every.len()
    return Phases(
        np.where(phase == OUTSIDE, told, phase),
        ends,
        accumulates,
        (shown == "building").fill_null(value=False).to_numpy(),
        shown.is_not_null().to_numpy() | (not has_stacks),
    )


def _shown(stacks: pl.Series) -> pl.Series:
    """What each stack shows, one of `names.PHASES`; empty if nothing, null if there is no stack."""
    texts = stacks.cast(pl.String)
    unique = texts.drop_nulls().unique().to_list()
    phase = {text: (names.stack_phase(text) or "") if text else "backward" for text in unique}
    return texts.replace_strict(phase, default=None, return_dtype=pl.String)


def _by_slices(trace: Trace, operators: pl.Series) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Phase, end and whether it accumulates, of records in these operators or in none."""
    asked = operators.cast(pl.Int64).fill_null(NONE).to_numpy()
    told = _told(trace)
    if not told.size:
        return np.full(asked.size, OUTSIDE), np.zeros(asked.size, np.int64), asked > NONE
    parent = parents(trace)
    holder = nearest(parent, (told != OUTSIDE) & (told != _UPLOAD), asked)
    upload = nearest(parent, told == _UPLOAD, asked)
    holder = np.where(holder == NONE, upload, holder)
    is_operator = trace.slices["category"].is_in(list(names.OPERATORS)).to_numpy()
    top = _outermost(parent, is_operator, asked)
    phase = np.where(holder == NONE, OUTSIDE, np.where(told == _UPLOAD, LOADING, told)[holder])
    phase = np.where((phase == OUTSIDE) & (top != NONE), FORWARD, phase)
    whole = np.where((phase == LOADING) | (phase == OPTIMIZER), holder, top)
    end = (trace.slices["start"] + trace.slices["duration"].fill_null(0)).to_numpy()
    node = np.zeros(told.size, bool)
    node[filter_by_name(trace.slices, names.accumulates_gradient)["id"].to_numpy()] = True
    ends = np.where(whole == NONE, 0, end[whole])
    return phase, ends, np.asarray(nearest(parent, node, asked) != NONE)


def backward_starts(trace: Trace) -> Ints:
    """When the backward pass is seen: begins of its nodes and times of records, in order, in ns."""
    nodes = trace.slices["start"].to_numpy()[_told(trace) == BACKWARD]
    in_stacks = (_shown(trace.memory["call_stack"]) == "backward").fill_null(value=False)
    return np.sort(np.append(nodes, trace.memory["time"].filter(in_stacks).to_numpy()))


def _told(trace: Trace) -> Ints:
    """The phase that each slice shows of itself."""
    found = np.full(trace.slices.height, OUTSIDE, np.int64)
    host = slices_on(trace, "host")
    found[_uploads(trace)] = _UPLOAD
    found[filter_by_name(host, names.is_data_loading)["id"].to_numpy()] = LOADING
    backward = pl.col("forward").is_not_null() | (pl.col("forward_thread") > 0)
    found[trace.op_args.select(pl.col("id").filter(backward))["id"].to_numpy()] = BACKWARD
    found[filter_by_name(host, names.is_backward_node)["id"].to_numpy()] = BACKWARD
    found[filter_by_name(host, names.accumulates_gradient)["id"].to_numpy()] = BACKWARD
    found[filter_by_name(host, names.is_optimizer_step)["id"].to_numpy()] = OPTIMIZER
    return found


def _uploads(trace: Trace) -> Ints:
    """The outermost operators of the conversions that copy from the host to a device.

    Only a conversion (`to`, `copy_`) brings a tensor over whole; that other operators copy is
    their own affair.
    """
    copies = filter_by_name(slices_on(trace, "device"), names.is_upload)["id"]
    told = trace.device_args.filter(
        pl.col("id").is_in(copies.implode()) & pl.col("operator").is_not_null()
    )
    conversion = np.zeros(trace.slices.height, bool)
    conversion[filter_by_name(trace.slices, names.is_conversion)["id"].to_numpy()] = True
    parent = parents(trace)
    inner = nearest(parent, conversion, told["operator"].cast(pl.Int64).to_numpy())
    return np.unique(_outermost(parent, conversion, inner[inner != NONE]))


def _outermost(parent: Ints, wanted: NDArray[np.bool_], where: Ints) -> Ints:
    """From each slice: the highest of the unbroken line of wanted ones that it begins, or NONE."""
    at = np.where((where != NONE) & wanted[where], where, NONE)
    climbing = np.flatnonzero(at != NONE)
    while climbing.size:
        above = parent[at[climbing]]
        climbing = climbing[(above != NONE) & wanted[above]]
        at[climbing] = parent[at[climbing]]
    return at
