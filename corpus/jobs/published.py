"""Writes one trace a rank from the recorded operations of a published job.

    python corpus/jobs/published.py trace-ST.parquet FOLDER

The operations are those of the artifact of "Understanding Stragglers in Large Model Training Using
What-if Analysis" (ByteDance-Seed/StragglerAnalysis on GitHub, folder `data`): a row per operation
of a rank, with its data-parallel rank, stage, step, kind, start and duration in seconds from the
begin of the step. Steps that were not recorded are left out, so that those that were follow each
other. Gradients are clipped by their norm over all stages, which ends on all of them together: it
is written as a collective.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl

from selftime.testing.pipeline_traces import (
    PipelineOperation,
    PipelineStep,
    trace_of_pipeline_rank,
)

PAUSE_US: Final = 200.0
"""Time between two steps."""
COLLECTIVES: Final = {
    "grads-reduce-scatter": ("_reduce_scatter_base", "dp"),
    "params-all-gather": ("_allgather_base", "dp"),
    "embedding-grads-all-reduce": ("allreduce", "embd"),
    "optimizer-clip-main-grad": ("allreduce", "mp"),
}
"""Name in PyTorch and group of each kind of collective."""
TRANSFERS: Final = {
    "forward-send": ("send", 1),
    "forward-recv": ("recv", -1),
    "backward-send": ("send", -1),
    "backward-recv": ("recv", 1),
}
"""Name in PyTorch of each kind of transfer, and how many stages further its other rank is."""
LEFT_OUT: Final = ("gc", "layernorm-grads-all-reduce")
"""Kinds without a time, and of ranks that were not recorded."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operations", type=Path, help="a file trace-NAME.parquet")
    parser.add_argument("folder", type=Path, help="where to write the traces")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    operations = pl.read_parquet(options.operations)
    for rank, trace in traces(operations):
        (options.folder / f"rank{rank}.json").write_text(json.dumps(trace))


def traces(operations: pl.DataFrame) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the number of each rank, and its trace."""
    operations = operations.with_columns(
        pl.col("optype").cast(pl.String),
        start=pl.col("start_ts").cast(pl.Float64) * 1e6,
        end=(pl.col("start_ts").cast(pl.Float64) + pl.col("duration").cast(pl.Float64)) * 1e6,
    ).filter(~pl.col("optype").is_in(LEFT_OUT))
    begins = begins_of_steps(operations)
    places = operations.select("dp_rank", "stage", "rank").unique().sort("rank")
    rank_at = {(replica, stage): rank for replica, stage, rank in places.iter_rows()}
    for place, rank in rank_at.items():
        own = operations.filter(pl.col("rank") == rank).sort("step", "start", "optype")
        steps = [
            PipelineStep(
                begins[int(step)],
                tuple(operation(row, begins[int(step)], place, rank_at) for row in rows.to_dicts()),
            )
            for (step,), rows in own.group_by("step", maintain_order=True)  # type: ignore[call-overload]  # a number
        ]
        yield rank, trace_of_pipeline_rank(rank, len(rank_at), steps)


def begins_of_steps(operations: pl.DataFrame) -> dict[int, float]:
    """Returns when each step begins, in us, if each follows the one before it."""
    lasts = operations.group_by("step").agg(pl.col("end").max()).sort("step")
    begins, at = {}, 0.0
    for step, last in lasts.iter_rows():
        begins[int(step)] = at
        at += last + PAUSE_US
    return begins


def operation(
    row: dict[str, Any],
    begin: float,
    place: tuple[int, int],
    rank_at: dict[tuple[int, int], int],
) -> PipelineOperation:
    """Returns an operation of the rank at a place: its replica, and its stage."""
    replica, stage = place
    kind, start, end = row["optype"], begin + row["start"], begin + row["end"]
    pipeline = tuple(rank_at[key] for key in sorted(rank_at) if key[0] == replica)
    if kind in TRANSFERS:
        name, further = TRANSFERS[kind]
        other = rank_at[replica, stage + further]
        side: Any = name
        return PipelineOperation(side, name, start, end, pipeline, "pp", other, kind)
    if kind in COLLECTIVES:
        name, axis = COLLECTIVES[kind]
        group = {
            "dp": tuple(rank_at[key] for key in sorted(rank_at) if key[1] == stage),
            "embd": (pipeline[0], pipeline[-1]),
            "mp": pipeline,
        }[axis]
        return PipelineOperation("collective", name, start, end, group, axis)
    return PipelineOperation("compute", kind, start, end)


if __name__ == "__main__":
    main()
