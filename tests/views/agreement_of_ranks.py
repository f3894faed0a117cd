"""What several ranks did together, wherever it is stated."""

from collections.abc import Iterator
from typing import Final

import polars as pl
from tests.views.agreement import Asked, Sides, summed

from selftime.trace import Job, Trace


def lateness(ask: Asked) -> Sides:
    """`ranks` and `stragglers` state how late a rank came, and what it waited, alike."""
    for column in ("late", "waited"):
        one, other = (
            dict(ask(view).drop_nulls(column).select("label", column).rows())
            for view in ("ranks", "stragglers")
        )
        yield column, one, other


def collectives_of_a_rank(ask: Asked) -> Sides:
    """`arrivals` lists what `ranks` counts."""
    listed = ask("arrivals").group_by("label").agg(pl.len(), pl.col("last").sum())
    told = ask("ranks").filter(pl.col("collectives").is_not_null())
    yield (
        "collectives",
        summed(listed, ("label",), "len", "last"),
        summed(told, ("label",), "collectives", "last"),
    )


def time_of_collectives(ask: Asked) -> Sides:
    """`collectives` has each collective of `arrivals` once: its bytes, wait and transfer."""
    once = (
        ask("arrivals")
        .group_by("number")
        .agg(
            pl.col("bytes").max(),
            pl.col("duration").mean().round().cast(pl.Int64),
            pl.col("wait").mean().round().cast(pl.Int64),
            pl.col("transfer").first(),
            several=pl.len() > 1,
        )
    )
    both = once.filter("several")
    found = ask("collectives")
    yield "count", found["count"].sum(), once.height
    yield "bytes", found["bytes"].sum(), once["bytes"].sum()
    yield "time", found["time"].sum(), once["duration"].sum()
    yield "wait", found["wait"].sum(), both["wait"].sum()
    yield "transfer", found["transfer"].sum(), both["transfer"].sum()


def steps_of_a_rank(ask: Asked) -> Sides:
    """`ranks` by step states what `steps` states of each rank's trace."""
    told = ask("ranks", by="step")
    for member, trace in _members(ask):
        own = told.filter(pl.col("label") == member)
        steps = trace.view("steps")
        for part in ("time", "host_time", "device_time", "kernel", "communication", "cpu", "other"):
            yield f"{member} {part}", own[part].to_list(), steps[part].cast(pl.Float64).to_list()


def _members(ask: Asked) -> Iterator[tuple[str, Trace]]:
    assert isinstance(ask.subject, Job)
    for path, trace in ask.subject.traces.items():
        yield ask.subject.members[path].label, trace


def path_of_a_job(ask: Asked) -> Sides:
    """`job_path` has the same length whatever its rows are told apart by."""
    whole = ask("job_path")["time"].sum()
    for by in ("kind", "line", "section"):
        yield by, whole, ask("job_path", by=by)["time"].sum()


OF_RANKS: Final = (
    lateness,
    collectives_of_a_rank,
    time_of_collectives,
    steps_of_a_rank,
    path_of_a_job,
)
