"""Describes what a job's step is spent on as JSON for the page: all ranks, and each of them."""

from collections.abc import Mapping
from typing import Any, Final

from selftime.advice.account.job_account import JobAccount, JobAccountRow, account_of_job
from selftime.analysis.ranks.job_account import step_accounts_of_ranks
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.reports.advice.account_sentence import (
    communication_text,
    job_parts_text,
    late_rank_text,
)
from selftime.reports.labels import TIME_CLASS_LABELS
from selftime.units import count_text, milliseconds_text, truncate_middle, whole_percent_text

JOB_ACCOUNT_TITLE: Final = "What a step of each rank is spent on"
"""Heading of the ranks' accounts."""

_MIN_SHOWN_SHARE: Final = 0.02
"""Smallest share of the job's step for which a class has its own colour, if a rank spends it."""
_NS_PER_MS: Final = 1_000_000


def job_account_data(ranks: Ranks) -> dict[str, Any] | None:
    """Returns the page's JSON object `JobAccount`; None unless the steps of two ranks are known."""
    account = account_of_job(ranks)
    if account is None:
        return None
    groups = _groups_of_classes(account)
    late = account.late
    return {
        "title": JOB_ACCOUNT_TITLE,
        "step": milliseconds_text(account.step_ms),
        "step_title": f"A recorded step, the mean of {count_text(account.ranks)} ranks",
        "spent": truncate_middle(_spent_text(account)),
        "late": None
        if late is None
        else {"label": late.rank, "text": truncate_middle(late_rank_text(late))},
        "parts": [_mean_of_ranks(name, rows, account) for name, rows in groups.items()],
        "ranks": _parts_of_ranks(ranks, groups),
    }


def _spent_text(account: JobAccount) -> str:
    told = job_parts_text(account), communication_text(account)
    return ". ".join(text for text in told if text)


def _groups_of_classes(account: JobAccount) -> dict[str, tuple[JobAccountRow, ...]]:
    """Returns the classes by the name of their colour, most time first; small ones as `small`."""
    least = _MIN_SHOWN_SHARE * account.step_ms
    small = tuple(row for row in account.rows if row.high_ms < least)
    if len(small) < 2:
        small = ()
    shown: dict[str, tuple[JobAccountRow, ...]] = {
        row.time_class: (row,) for row in account.rows if row not in small
    }
    return {**shown, "small": small} if small else shown


def _mean_of_ranks(
    name: str, rows: tuple[JobAccountRow, ...], account: JobAccount
) -> dict[str, Any]:
    """Returns the words of one colour, and the mean time of the ranks."""
    ms = sum(row.ms for row in rows)
    label = f"{len(rows)} smaller" if name == "small" else TIME_CLASS_LABELS[name].text
    share = whole_percent_text(ms / max(account.step_ms, 1 / _NS_PER_MS))
    return {"class": name, "label": label, "text": f"{milliseconds_text(ms)} ({share})"}


def _parts_of_ranks(
    ranks: Ranks, groups: Mapping[str, tuple[JobAccountRow, ...]]
) -> list[dict[str, Any]]:
    """Returns of each rank the times (ns) that its mean step is made of, in the order of groups."""
    labels = {key: rank.label for key, rank in ranks.ranks_by_key().items()}
    times: dict[int, dict[str, float]] = {}
    for name, key, time in step_accounts_of_ranks(ranks).select("class", "rank", "time").rows():
        times.setdefault(key, {})[name] = time
    return [
        {
            "label": labels[key],
            "times": [sum(by_class[row.time_class] for row in rows) for rows in groups.values()],
        }
        for key, by_class in times.items()
    ]
