"""Which ranks make the other ranks wait: in which steps, for how long, and why."""

from typing import Any

import polars as pl

from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.lateness import rank_lateness_by_round
from selftime.analysis.ranks.rank_summary import LATENESS_CAUSES
from selftime.analysis.ranks.straggler_verdicts import StragglerVerdict, straggler_verdicts
from selftime.schema import Column
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, view

_COLUMNS_OF_EXCESS_TIME_BY_CAUSE = tuple(f"more_{cause}" for cause in LATENESS_CAUSES)


@view(
    Column("label", pl.String, "name", "The name of the rank."),
    Column("rank", pl.Int64, "id", "The rank's number; null if unknown.", True),
    Column(
        "straggler", pl.Boolean, "flag", "Whether the rank certainly makes other ranks wait.", True
    ),
    Column(
        "late",
        pl.Float64,
        "ns",
        "The most by which the rank comes later than the others to a collective, per step.",
        True,
    ),
    Column(
        "cause",
        pl.String,
        "name",
        "Why the rank is late: data, compute, clocks, experts, gc or host; null if unclear.",
        True,
    ),
    Column(
        "excess",
        pl.Float64,
        "ns",
        "The rank's time per step on the cause of its lateness minus that of the other ranks.",
        True,
    ),
    Column(
        "delayed_others",
        pl.Float64,
        "ns",
        "Mean wait of the other ranks per step at collectives where this rank came last.",
        True,
    ),
    Column(
        "last",
        pl.Int64,
        "count",
        "The number of collectives in counted steps that the rank was the last to begin.",
        True,
    ),
    Column(
        "collectives",
        pl.Int64,
        "count",
        "The number of collectives in counted steps that the rank took part in.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file where the rank spends more time than the others; null if unknown.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line where the rank spends more time than the others; null if unknown.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "work",
        pl.String,
        "name",
        "The kernel or operator on which the rank spends more time than the others.",
        True,
    ),
    Column(
        "verdict",
        pl.String,
        "sentence",
        "What can be claimed about the rank's lateness, or why nothing can.",
        True,
    ),
    Column(
        "waited",
        pl.Float64,
        "ns",
        "Time per step that the rank itself waited for other ranks.",
        True,
    ),
    Column(
        "steps", pl.Int64, "count", "The number of the rank's steps that count for averages.", True
    ),
    Column(
        "steps_last",
        pl.Int64,
        "count",
        "The number of steps in which the rank came last at least once.",
        True,
    ),
    Column(
        "late_steps",
        pl.String,
        "text",
        "The numbers of the steps in which the rank came last at least once.",
        True,
    ),
    Column(
        "late_beyond_others",
        pl.Float64,
        "ns",
        "The part of `late` beyond the median lateness of the other ranks.",
        True,
    ),
    Column(
        "more_compute",
        pl.Float64,
        "ns",
        "By how much the rank's compute time per step exceeds the others'.",
        True,
    ),
    Column(
        "more_gc",
        pl.Float64,
        "ns",
        "By how much the rank's garbage collection time per step exceeds the others'.",
        True,
    ),
    Column(
        "more_data",
        pl.Float64,
        "ns",
        "By how much the rank's waits for data per step exceed the others'.",
        True,
    ),
    Column(
        "more_host",
        pl.Float64,
        "ns",
        "By how much the rank's other host time per step exceeds the others'.",
        True,
    ),
)
def stragglers(job: Ranks) -> pl.DataFrame:
    """The ranks of a job by how late they come to collectives, and why each one is late.

    In each step a rank is as late as at the collective to which it came latest, compared with the
    median of the other ranks, by clocks aligned at the ends of collectives. Where arrivals vary
    every rank is late at some collective, so a claim is based on the part beyond the median
    lateness of the others. It is called a straggler only if that is unlikely by chance (Student's
    t-test over the steps, one in a hundred for all ranks together), more than four times the error
    of the clocks, and at least a hundredth of a step. The cause is what the rank spends more time
    on than the median of the others; their waits do not hide it. `clocks` means the clock rate of
    its device: it runs the same kernels, and each of them more slowly; `experts`, that it computes
    more and has more data in its all-to-alls, as those have that bring tokens to busy experts.
    """
    every, table = job.ranks_by_key(), rank_lateness_by_round(job)
    rows = [
        {
            "label": every[one.key].label,
            "rank": every[one.key].rank,
            **_straggler_verdict_values(one),
            **_collective_lateness_values(one, table),
        }
        for one in straggler_verdicts(job)
    ]
    found = pl.DataFrame(rows, schema={c.name: c.dtype for c in stragglers.columns}, orient="row")
    return found.sort(
        "straggler", "late_beyond_others", "rank", descending=[True, True, False], nulls_last=True
    )


def _straggler_verdict_values(verdict: StragglerVerdict) -> dict[str, Any]:
    known = verdict.late_ns is not None
    row: dict[str, Any] = {"straggler": verdict.is_straggler if known else None}
    row |= {"late": verdict.late_ns, "late_beyond_others": verdict.late_beyond_others_ns}
    row |= {
        "cause": verdict.cause,
        "excess": verdict.excess_ns,
        "work": verdict.kernel_or_operator,
        "verdict": verdict.sentence,
    }
    if verdict.source_line is not None:
        row |= {name: verdict.source_line[name] for name in ("file", "line", "function", "how")}
    return row


def _collective_lateness_values(
    verdict: StragglerVerdict, lateness: pl.DataFrame
) -> dict[str, Any]:
    own = lateness.filter(pl.col("rank") == verdict.key)
    if not own.height:
        return {}
    late = own.filter(pl.col("last") > 0)
    means = own.select(
        pl.col("delayed_others", "waited", *_COLUMNS_OF_EXCESS_TIME_BY_CAUSE).mean()
    ).row(0, named=True)
    return {
        **means,
        "last": int(own["last"].sum()),
        "collectives": int(own["collectives"].sum()),
        "steps": own.height,
        "steps_last": late.height,
        "late_steps": ", ".join(str(number) for number in late["round"].to_list()) or None,
    }
