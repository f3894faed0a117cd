"""Work of devices: kernels, collectives, copies and fills, with who launched them and when.

A kernel communicates if its arguments say so, else if its name is that of a collective.
Device-side copies of annotations are no work.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.trace import Trace
from selftime.views.accounts.named import of_kind, whose_name

__all__ = ["KINDS", "device_work"]

KINDS: Final = ("kernel", "communication", "memcpy", "memset")
"""Kinds of work: `kernel` computes."""

_COPIES: Final = {"gpu_memcpy": "memcpy", "gpu_memset": "memset"}


def device_work(trace: Trace) -> pl.DataFrame:
    """Device slices whose end is known, in order of time.

    Columns: those of `slices` that tell id, name, category, track, start, duration and launch (the
    call's slice, or null); end and launched (when the call began), both ns; kind, one of `KINDS`;
    device, stream, and operator (the slice of the innermost operator around the launch), as
    `device_args` has them.
    """
    slices = of_kind(trace, "device").filter(pl.col("duration").is_not_null())
    told = trace.device_args.select("id", "device", "stream", "operator")
    launched = trace.slices["start"].gather(slices["launch"])
    work = slices.select(
        "id", "name", "category", "track", "start", "duration", "launch"
    ).with_columns(end=pl.col("start") + pl.col("duration"), launched=launched)
    kind = pl.col("category").cast(pl.String).replace_strict(_COPIES, default="kernel")
    work = work.with_columns(kind=kind)
    communicates = _collectives(trace, work.filter(pl.col("kind") == "kernel"))
    kind = pl.when(pl.col("id").is_in(communicates.implode())).then(pl.lit("communication"))
    return (
        work.with_columns(kind=kind.otherwise("kind"))
        .join(told, on="id", how="left", maintain_order="left")
        .sort("start", "id")
    )


def _collectives(trace: Trace, kernels: pl.DataFrame) -> pl.Series:
    told = kernels.join(trace.collective_args.select("id"), on="id", how="semi")["id"]
    named = whose_name(kernels, names.is_collective_kernel)["id"]
    return pl.concat([told, named]).unique()
