"""Lays out the rows of a step's account for a terminal: time, share, what and where, verdict."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from selftime.advice.account.account_rows import AccountRow, StepAccount
from selftime.advice.advice_result import Advice
from selftime.reports.advice.account_places import RowCells, row_cells, row_texts
from selftime.reports.advice.account_sentence import account_totals_text, kind_sentences
from selftime.reports.labels import ACCOUNT_VERDICT_LABELS
from selftime.reports.wrapping import NamesText
from selftime.units import milliseconds_text, whole_percent_text

ACCOUNT_TITLE: Final = "What a step is spent on"
"""Title of the section of the account's rows."""

KINDS_TITLE: Final = "The steps are of several kinds; the rows are of their mean:"
"""What stands before the sentences on the kinds of steps."""

_MAX_ROWS: Final = 6
"""Largest number of rows that stand alone; the others are one line."""


def account_text_blocks(advice: Advice, root: str | None) -> Iterator[RenderableType]:
    """Yields the account's largest rows as a table, and the sum of each verdict."""
    account = advice.account
    if account is None or not account.rows:
        return
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True, min_width=9)
    table.add_column(justify="right", no_wrap=True, min_width=5)
    table.add_column()
    table.add_column(no_wrap=True)
    shown = rows_that_stand_alone(account)
    for row, text in zip(shown, account_row_texts(account, root), strict=False):
        table.add_row(
            milliseconds_text(row.ms),
            whole_percent_text(row.share),
            NamesText(text),
            Text(verdict_text(advice, row), "dim" if row.verdict == "small" else ""),
        )
    yield table
    if len(shown) < len(account.rows):
        yield Padding(Text(rest_of_rows_text(account), "dim"), (0, 0, 0, 2))
    yield Padding(Text(account_totals_text(account), "dim"), (0, 0, 0, 2))
    if account.kinds:
        yield Padding(Text(KINDS_TITLE), (1, 0, 0, 2))
    for sentence in kind_sentences(account, root):
        yield Padding(NamesText(f"· {sentence}"), (0, 0, 0, 2))


def rows_that_stand_alone(account: StepAccount) -> tuple[AccountRow, ...]:
    """Returns the rows to be shown one by one: the largest, and all if one more would be left."""
    rows = account.rows
    return rows if len(rows) <= _MAX_ROWS + 1 else rows[:_MAX_ROWS]


def account_row_texts(account: StepAccount, root: str | None = None) -> list[str]:
    """Returns what each row was spent on, in the same words wherever the account is shown.

    The rows that stand alone have names only where these tell them apart from each other.
    """
    shown = rows_that_stand_alone(account)
    return [*row_texts(shown, root), *row_texts(account.rows, root)[len(shown) :]]


def account_row_cells(account: StepAccount, root: str | None = None) -> list[RowCells]:
    """Returns each row in short texts, with names where the whole texts have them."""
    shown = rows_that_stand_alone(account)
    return [*row_cells(shown, root), *row_cells(account.rows, root)[len(shown) :]]


def rest_of_rows_text(account: StepAccount) -> str:
    """Returns how many rows do not stand alone."""
    return f"and {len(account.rows) - _MAX_ROWS} smaller rows"


def verdict_text(advice: Advice, row: AccountRow) -> str:
    """Returns a row's verdict in words: the number of its finding, or that it is needed."""
    if row.finding is not None:
        ids = [finding.id or finding.rule for finding in advice.findings]
        if row.finding in ids:
            return f"finding {ids.index(row.finding) + 1}"
    return ACCOUNT_VERDICT_LABELS[row.verdict].text
