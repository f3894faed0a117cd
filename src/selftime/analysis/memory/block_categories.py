"""Finds the category of each memory block, such as activation or parameter.

A block's category depends only on when it was allocated and how long it lived:

    before the recording   only its release was recorded
    input                  allocated while loading, or by a copy of host memory to the device
    temporary              released within the operator, loading or optimizer's step that
                           allocated it, or else in the same pass and step
    activation             allocated in the forward pass, released after backward began
    gradient               allocated in the backward pass, released after that or alive at the
                           step's end; or allocated where autograd accumulates a gradient
    optimizer state        allocated by an optimizer's step, outlives the program's step
    parameter              allocated where torch.nn builds or moves a module, outlives two steps
    unknown                anything else

A block that outlives the recording would be unknown if nothing else shows what it is; it has the
category of released blocks that were allocated alike, as long as it is not older than those became.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.memory.block_holders import source_sites_of_memory_records
from selftime.analysis.memory.blocks import (
    STATE_BEFORE_RECORDING,
    TIME_OF_NEVER_RELEASED,
    memory_blocks_of_device_type,
    step_end_times,
)
from selftime.analysis.memory.phases import (
    CODE_OF_BACKWARD_PHASE,
    CODE_OF_FORWARD_PHASE,
    CODE_OF_LOADING_PHASE,
    CODE_OF_OPTIMIZER_PHASE,
    backward_pass_start_times,
    program_phases_of_memory_records,
)
from selftime.analysis.slice_arguments import arguments_of_slices, caller_of_every_frame
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.steps.step_boundaries import recording_window
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MEMORY_BLOCK_CATEGORIES: Final = (
    "parameter",
    "gradient",
    "optimizer state",
    "activation",
    "input",
    "temporary",
    STATE_BEFORE_RECORDING,
    "unknown",
)
"""The possible categories of a memory block."""
_SIZE_AND_OPERATOR: Final = ("type", "device", "size", "operator")
"""Columns that are equal in blocks that were allocated alike."""
_SIBLING_COLUMNS: Final = (*_SIZE_AND_OPERATOR, "file", "line")
"""Columns that are equal in blocks that were allocated alike by the same source line."""
_MIN_STEP_ENDS_OUTLIVED_BY_PARAMETER: Final = 2
"""Smallest number of step ends that a memory block must outlive to count as a parameter."""


def categories_of_memory_blocks(trace: Trace, blocks: pl.DataFrame) -> pl.Series:
    """Returns the category of each memory block, one of `MEMORY_BLOCK_CATEGORIES`."""
    found = _categories_by_life(trace, blocks)
    at = ((found == "unknown") & (blocks["state"] == "lives on")).arg_true()
    if not at.len():
        return found
    return found.scatter(at, _categories_of_released_siblings(trace, blocks[at]))


def _categories_of_released_siblings(trace: Trace, blocks: pl.DataFrame) -> pl.Series:
    """Returns for blocks that outlive the recording the category of blocks like them.

    Like them are released blocks of the same size, operator and source line. A block has their
    category if they all have the same one, and at least one of them lived as long as the block
    has lived so far; else it is unknown, such as one that leaks.
    """
    mine = _with_places_of_allocation(trace, blocks)
    released = memory_blocks_of_device_type(trace).filter(pl.col("state") == "released")
    others = _with_operators(trace, released).join(mine, on=_SIZE_AND_OPERATOR, how="semi")
    others = _with_places_of_allocation(trace, others)
    others = others.with_columns(category=_categories_by_life(trace, others))
    summed = others.group_by(_SIBLING_COLUMNS).agg(
        pl.col("category").first(),
        has_one_category=pl.col("category").n_unique() == 1,
        longest_life=(pl.col("released") - pl.col("allocated")).max(),
    )
    told = mine.join(
        summed, on=_SIBLING_COLUMNS, how="left", nulls_equal=True, maintain_order="left"
    )
    end = max(recording_window(trace)[1], *trace.memory["time"].tail(1).to_list())
    is_like = pl.col("has_one_category") & (end - pl.col("allocated") <= pl.col("longest_life"))
    return told.select(pl.when(is_like).then("category").otherwise(pl.lit("unknown"))).to_series()


def _with_operators(trace: Trace, blocks: pl.DataFrame) -> pl.DataFrame:
    """Returns the blocks with the name of the innermost slice that allocated each."""
    ids = trace.memory["operator"].gather(blocks["allocation"])
    return blocks.with_columns(operator=trace.slices["name"].gather(ids))


def _with_places_of_allocation(trace: Trace, blocks: pl.DataFrame) -> pl.DataFrame:
    """Returns the blocks with the operator and the source line that allocated each."""
    sites = source_sites_of_memory_records(trace, blocks["allocation"])
    return _with_operators(trace, blocks).with_columns(sites.select("file", "line"))


def _categories_by_life(trace: Trace, blocks: pl.DataFrame) -> pl.Series:
    """Returns the category of each memory block, as far as its own life shows it."""
    lives = _MemoryBlockLives(trace, blocks)
    gained, lost = lives.gained, lives.lost
    forward, backward = (
        gained.phase == CODE_OF_FORWARD_PHASE,
        gained.phase == CODE_OF_BACKWARD_PHASE,
    )
    ended_within = (lives.end < TIME_OF_NEVER_RELEASED) & (lives.end <= gained.phase_end_ns)
    outlives = (lives.seen_released & (lost.phase != CODE_OF_BACKWARD_PHASE)) | lives.outlasts_step
    rules: list[tuple[str, NDArray[np.bool_]]] = [
        (STATE_BEFORE_RECORDING, (blocks["state"] == STATE_BEFORE_RECORDING).to_numpy()),
        (
            "unknown",
            blocks["allocation"].is_null().to_numpy() | (blocks["state"] == "unpaired").to_numpy(),
        ),
        ("input", (gained.phase == CODE_OF_LOADING_PHASE) & ~lives.lasts),
        ("temporary", ended_within),
        ("optimizer state", (gained.phase == CODE_OF_OPTIMIZER_PHASE) & lives.outlasts_step),
        ("gradient", gained.is_accumulating_gradient | (backward & outlives)),
        ("temporary", backward & lives.seen_released & (lost.phase == CODE_OF_BACKWARD_PHASE)),
        (
            "parameter",
            lives.lasts & lives.built & ~backward & (gained.phase != CODE_OF_OPTIMIZER_PHASE),
        ),
        ("activation", forward & lives.seen_released & lives.meets_backward & ~lives.lasts),
        ("temporary", forward & lives.seen_released & lost.is_known & ~lives.crosses),
    ]
    number = {category: place for place, category in enumerate(MEMORY_BLOCK_CATEGORIES)}
    found = np.full(blocks.height, number["unknown"], np.int64)
    for category, holds in reversed(rules):  # the first condition that applies is written last
        found[holds] = number[category]
    return pl.Series("category", MEMORY_BLOCK_CATEGORIES, dtype=pl.String).gather(pl.Series(found))


class _MemoryBlockLives:
    """Which phases, step ends and backward passes each memory block lived through; shape (n,)."""

    def __init__(self, trace: Trace, blocks: pl.DataFrame) -> None:
        both = program_phases_of_memory_records(
            trace, pl.concat([blocks["allocation"], blocks["release"]])
        )
        self.gained, self.lost = both.part(0, blocks.height), both.part(blocks.height, None)
        self.seen_released = (blocks["state"] == "released").to_numpy()
        begin = blocks["allocated"].fill_null(0).to_numpy()
        self.end: Ints = blocks["until"].to_numpy()
        ends = _count_instants_in_intervals(step_end_times(trace), begin, self.end)
        self.lasts = ends >= _MIN_STEP_ENDS_OUTLIVED_BY_PARAMETER
        self.outlasts_step = ends > 0
        self.meets_backward = (
            _count_instants_in_intervals(backward_pass_start_times(trace), begin, self.end) > 0
        )
        self.crosses = self.outlasts_step | self.meets_backward
        operators = trace.memory["operator"].gather(blocks["allocation"])
        self.built = self.gained.is_building_module | _is_operator_building_module(trace, operators)


def _count_instants_in_intervals(instants: Ints, begin: Ints, end: Ints) -> Ints:
    """Returns for each interval `[begin, end)` how many of the sorted instants it contains."""
    return np.searchsorted(instants, end) - np.searchsorted(instants, begin)


def _is_operator_building_module(trace: Trace, operators: pl.Series) -> NDArray[np.bool_]:
    """Flags operators that run where torch.nn builds or moves a module."""
    wanted = matches_name(trace.slices, names.builds_module)
    if not wanted.any():
        return np.zeros(operators.len(), bool)
    frame = (
        arguments_of_slices(trace, "op_args", operators, "frame")["frame"]
        .cast(pl.Int64)
        .fill_null(NO_SLICE)
    )
    return np.asarray(
        nearest_ancestor(caller_of_every_frame(trace), wanted, frame.to_numpy()) != NO_SLICE
    )
