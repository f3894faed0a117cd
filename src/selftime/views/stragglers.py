"""Who makes the other ranks wait: in which steps, by how much, and why."""

from typing import Any

import polars as pl

from selftime.analysis.ranks.lateness import rounds
from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.ranks.stragglers import Verdict, straggler_verdicts
from selftime.analysis.ranks.time_before import CAUSES
from selftime.schema import Column
from selftime.views.base import view

_MORE = tuple(f"more_{cause}" for cause in CAUSES)


@view(
    Column("label", pl.String, "name", "What the rank is called."),
    Column("rank", pl.Int64, "id", "Its number, if it is known.", True),
    Column(
        "straggler", pl.Boolean, "flag", "Whether it makes the others wait, beyond doubt.", True
    ),
    Column(
        "late", pl.Float64, "ns", "A step: how much later it comes, at most; as in `ranks`.", True
    ),
    Column("cause", pl.String, "name", "Data, compute, clocks, gc or host; null if unclear.", True),
    Column("more", pl.Float64, "ns", "A step: how much more it spends on that cause.", True),
    Column("held", pl.Float64, "ns", "A step: the others' mean wait where it came last.", True),
    Column(
        "last",
        pl.Int64,
        "count",
        "Of the collectives in steps that count: to which it came last.",
        True,
    ),
    Column("collectives", pl.Int64, "count", "Collectives in the steps that count.", True),
    Column("file", pl.String, "text", "Where it spends more than the others.", True),
    Column("line", pl.Int32, "id", "The source line.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack, stamp or definition.", True),
    Column("work", pl.String, "name", "The kernel or operator on which it spends more.", True),
    Column("verdict", pl.String, "sentence", "What is claimed, or why nothing is.", True),
    Column("waited", pl.Float64, "ns", "A step: how long it waited for others itself.", True),
    Column("steps", pl.Int64, "count", "Steps that count.", True),
    Column("steps_last", pl.Int64, "count", "Steps in which it came last at least once.", True),
    Column("which", pl.String, "text", "Their numbers.", True),
    Column("beyond", pl.Float64, "ns", "Of `late`: beyond how late the others come at most.", True),
    Column("more_compute", pl.Float64, "ns", "A step: more compute than the others.", True),
    Column("more_gc", pl.Float64, "ns", "A step: more garbage collection.", True),
    Column("more_data", pl.Float64, "ns", "A step: more waiting for data.", True),
    Column("more_host", pl.Float64, "ns", "A step: more of the host alone.", True),
)
def stragglers(job: Ranks) -> pl.DataFrame:
    """The ranks of a job by how late they come to collectives, and what makes them late.

    A rank is as late as at the collective of a step to which it came latest, against the middle of
    the other ranks, by clocks brought together at the ends of collectives. Where arrivals vary
    every rank is late at some collective, so a claim rests on what goes beyond the middle of the
    others' own lateness. It is called a straggler only if that is unlikely by chance (Student's
    t-test over the steps, for all ranks together one in a hundred), more than four times what the
    clocks are apart, and a hundredth of a step. The
    cause is that on which it spends more than the middle of the others, which the waits of these do
    not hide. `clocks` are those of its device: the same kernels, and each of them slower.
    """
    every, table = job.by_key(), rounds(job)
    rows = [
        {
            "label": every[one.key].label,
            "rank": every[one.key].rank,
            **_told(one),
            **_seen(one, table),
        }
        for one in straggler_verdicts(job)
    ]
    found = pl.DataFrame(rows, schema={c.name: c.dtype for c in stragglers.columns}, orient="row")
    return found.sort(
        "straggler", "beyond", "rank", descending=[True, True, False], nulls_last=True
    )


def _told(one: Verdict) -> dict[str, Any]:
    known = one.late is not None
    row: dict[str, Any] = {"straggler": one.is_straggler if known else None}
    row |= {"late": one.late, "beyond": one.beyond}
    row |= {"cause": one.cause, "more": one.more, "work": one.work, "verdict": one.sentence}
    if one.line is not None:
        row |= {name: one.line[name] for name in ("file", "line", "function", "how")}
    return row


def _seen(one: Verdict, table: pl.DataFrame) -> dict[str, Any]:
    own = table.filter(pl.col("rank") == one.key)
    if not own.height:
        return {}
    late = own.filter(pl.col("last") > 0)
    means = own.select(pl.col("held", "waited", *_MORE).mean()).row(0, named=True)
    return {
        **means,
        "last": int(own["last"].sum()),
        "collectives": int(own["collectives"].sum()),
        "steps": own.height,
        "steps_last": late.height,
        "which": ", ".join(str(number) for number in late["round"].to_list()) or None,
    }
