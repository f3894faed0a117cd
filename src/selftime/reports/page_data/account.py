"""Describes the account of a step as JSON for the page, with all sentences that it shows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from selftime.advice import Advice
from selftime.advice.account.account_rows import AccountRow, KindAccount, StepAccount
from selftime.advice.number_slices import account_row_ids
from selftime.reports.advice.account_places import RowCells
from selftime.reports.advice.account_sentence import (
    account_basis_text,
    account_totals_text,
    bound_by_text,
    largest_parts_text,
    spent_text,
)
from selftime.reports.advice.account_table import (
    ACCOUNT_TITLE,
    KINDS_TITLE,
    account_row_cells,
    account_row_texts,
    rows_that_stand_alone,
    verdict_text,
)
from selftime.reports.labels import TIME_CLASS_LABELS
from selftime.reports.page_data.step_with_fixes import headline_texts, is_headline_without_recording
from selftime.units import milliseconds_text, truncate_middle, whole_percent_text

NO_LINKS: Final[Mapping[str, dict[str, str]]] = MappingProxyType({})
_MIN_SHOWN_SHARE: Final = 0.005
"""Smallest share of the step of a row that the page shows before it is asked for all."""


def account_data(
    advice: Advice, root: str | None, links: Mapping[str, dict[str, str]] = NO_LINKS
) -> dict[str, Any] | None:
    """Returns the page's JSON object `AccountTexts`; None without an account."""
    account = advice.account
    if account is None or not account.rows:
        return None
    standing = rows_that_stand_alone(account)
    texts, cells_of_rows = account_row_texts(account, root), account_row_cells(account, root)
    return {
        "title": ACCOUNT_TITLE,
        "step": milliseconds_text(account.step_ms),
        "basis": f"a step{_basis_text(advice, account)}",
        "bound_by": bound_by_text(account),
        "spent": truncate_middle(spent_text(account, root)),
        "totals": account_totals_text(account),
        "parts": _parts_of_bar(account),
        "rows": [
            {**_row_data(advice, row, text, cells), "slices": links.get(f"account:{id_}")}
            for row, text, cells, id_ in zip(
                account.rows, texts, cells_of_rows, account_row_ids(account.rows), strict=True
            )
        ],
        "shown": max(1, sum(row.share >= _MIN_SHOWN_SHARE for row in standing)),
        "kinds_title": KINDS_TITLE,
        "kinds": [_kind_data(kind, root) for kind in account.kinds],
    }


def _basis_text(advice: Advice, account: StepAccount) -> str:
    """Returns a text on the time that is divided; empty if the headline shows that time."""
    if text := account_basis_text(advice):
        return text
    if account.basis == "recorded" and is_headline_without_recording(advice):
        return ", as recorded"
    headline = headline_texts(advice)
    is_shown = headline is None or headline["now"] == milliseconds_text(account.step_ms)
    return "" if is_shown or account.steps == 1 else f", the mean of {account.steps} steps"


def _kind_data(kind: KindAccount, root: str | None) -> dict[str, Any]:
    """Returns the texts and the bar of one kind of step."""
    count = kind.account.steps
    return {
        "name": kind.name,
        "count": f"{count} step{'' if count == 1 else 's'}",
        "time": milliseconds_text(kind.account.step_ms),
        "bound_by": bound_by_text(kind.account),
        "spent": truncate_middle(largest_parts_text(kind.account, root)),
        "parts": _parts_of_bar(kind.account),
    }


def _parts_of_bar(account: StepAccount) -> list[dict[str, Any]]:
    """Returns each class's time, largest first, for the bar above the rows."""
    times: dict[str, float] = {}
    for part in account.parts:
        times[part.time_class] = times.get(part.time_class, 0.0) + part.ms
    return [
        {
            "class": name,
            "label": TIME_CLASS_LABELS[name].text,
            "share": ms / account.step_ms,
            "text": f"{milliseconds_text(ms)} ({whole_percent_text(ms / account.step_ms)})",
        }
        for name, ms in sorted(times.items(), key=lambda entry: -entry[1])
    ]


def _row_data(advice: Advice, row: AccountRow, text: str, cells: RowCells) -> dict[str, Any]:
    """Returns the texts of one row: the whole of it, and in cells."""
    most = row.at_most_ms
    return {
        "class": row.time_class,
        "what": cells.what,
        "name": None if cells.name is None else truncate_middle(cells.name),
        "line": None if cells.line is None else truncate_middle(cells.line),
        "file": None if row.where.file is None else truncate_middle(row.where.file),
        "line_number": row.where.line,
        "at_most": None if most is None else milliseconds_text(most),
        "time": milliseconds_text(row.ms),
        "share": row.share,
        "percent": whole_percent_text(row.share),
        "text": truncate_middle(text),
        "verdict": row.verdict,
        "verdict_text": verdict_text(advice, row),
        "finding": row.finding,
        "reason": truncate_middle(row.text),
    }
