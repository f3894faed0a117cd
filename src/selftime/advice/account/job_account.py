"""The account of a job in the advice: classes of time of all ranks' steps, and the late rank."""

from dataclasses import dataclass, field, replace
from typing import Final

from selftime.advice.account.account_rows import WORDS_OF_FORMAT, StepAccount
from selftime.advice.rule_outcomes import Where
from selftime.analysis.ranks.job_account import communication_by_group, job_account
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.straggler_verdicts import StragglerVerdict, straggler_verdicts
from selftime.names.notebook_cells import place_text

_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccountRow:
    """Time of one class in a step: the mean over the ranks, and the range."""

    time_class: str = field(metadata={"json_key": "class", "json_words": WORDS_OF_FORMAT})
    ms: float
    """The mean over the ranks: ns as ms, so that rows add up to the nanosecond."""
    share: float
    low_ms: float
    low_rank: str
    """The label of the rank that spends the least time."""
    high_ms: float
    high_rank: str
    """The label of the rank that spends the most time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommunication:
    """Communication of one kind of process group in a step: the mean over the ranks."""

    group: str | None
    """What the group is for, such as `TP` or `DP`, or its description; None if unknown."""
    ms: float
    share: float
    """The share (0 to 1) of the job's step."""
    waiting_ms: float
    """How much of it passes until the last rank has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRank:
    """The rank that the others wait for most."""

    rank: str
    """Its label."""
    late_ms: float
    """How much later than the others it comes to collectives, in ms a step."""
    why: str
    """Why it is late, as a clause."""
    where: Where = field(default_factory=Where)
    """The line on which it spends more time than the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccount:
    """What a step of the job was spent on, as recorded: the mean over its ranks."""

    step_ms: float
    ranks: int
    """The number of ranks whose steps are known."""
    rows: tuple[JobAccountRow, ...]
    communication: tuple[GroupCommunication, ...] = ()
    """What the communication among `rows` is for, most first; adds up to it."""
    late: LateRank | None = None
    """The rank that decides how long a step takes; None where none is seen to."""


def account_of_job(ranks: Ranks) -> JobAccount | None:
    """Returns what a step of the job was spent on; None for a single rank, or without steps."""
    every, table = ranks.ranks_by_key(), job_account(ranks)
    count = sum(rank.summary.accounted_steps > 0 for rank in every.values())
    if count < 2 or not table.height:
        return None
    labels = {key: rank.label for key, rank in every.items()}
    ends = [round(end) for end in table["mean"].cum_sum().to_list()]
    times = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    rows = tuple(
        JobAccountRow(
            time_class=row["class"],
            ms=time / _NS_PER_MS,
            share=time / max(ends[-1], 1),
            low_ms=row["low"] / _NS_PER_MS,
            low_rank=labels[row["low_rank"]],
            high_ms=row["high"] / _NS_PER_MS,
            high_rank=labels[row["high_rank"]],
        )
        for row, time in zip(table.iter_rows(named=True), times, strict=True)
        if time
    )
    late = latest_rank(ranks)
    return JobAccount(
        step_ms=ends[-1] / _NS_PER_MS,
        ranks=count,
        rows=rows,
        communication=tuple(
            GroupCommunication(
                group=group,
                ms=time / _NS_PER_MS,
                share=time / max(ends[-1], 1),
                waiting_ms=waiting / _NS_PER_MS,
            )
            for group, time, waiting in communication_by_group(ranks).iter_rows()
        ),
        late=None if late is None else _late_rank(labels[late.key], late),
    )


def latest_rank(ranks: Ranks) -> StragglerVerdict | None:
    """Returns the verdict on the rank that the others wait for most; None if none is seen."""
    late = [one for one in straggler_verdicts(ranks) if one.is_straggler]
    return max(late, key=lambda one: one.late_beyond_others_ns or 0.0, default=None)


def with_late_rank(account: StepAccount, late: LateRank, own_rank: str | None) -> StepAccount:
    """Returns a rank's account; its unexplained communication says which rank is late, and where.

    Nothing is added to the late rank's own account: the others wait for it.
    """
    if late.rank == own_rank:
        return account
    file, line = late.where.file, late.where.line
    where = "" if file is None else f" at `{place_text(file, line)}`"
    if line is not None and late.where.how == "definition":
        where = f" in the function `{late.where.function}`, defined{where}"
    reason = f"{late.rank} makes the others wait: {late.why}{where}"
    rows = tuple(
        replace(row, text=f"{reason}; {row.text}")
        if row.time_class == "communication" and row.verdict == "unexplained"
        else row
        for row in account.rows
    )
    return replace(account, rows=rows)


def _late_rank(label: str, verdict: StragglerVerdict) -> LateRank:
    line = verdict.source_line
    where = (
        Where()
        if line is None
        else Where(line["file"], line["line"], line["function"], line["how"])
    )
    late_ms = (verdict.late_ns or 0.0) / _NS_PER_MS
    return LateRank(rank=label, late_ms=late_ms, why=verdict.why, where=where)
