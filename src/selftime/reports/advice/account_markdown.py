"""Writes the rows of a step's account as Markdown, with commands that verify their numbers."""

from collections.abc import Iterator

from selftime.advice.advice_result import Advice
from selftime.reports.advice.account_sentence import (
    account_totals_text,
    kind_sentences,
    time_text,
    unexplained_texts,
)
from selftime.reports.advice.account_table import (
    ACCOUNT_TITLE,
    KINDS_TITLE,
    account_row_texts,
    rows_that_stand_alone,
    verdict_text,
)
from selftime.reports.advice.markdown_sentences import shortened_markdown_sentence
from selftime.reports.advice.queries import FollowUpQueries


def account_lines(
    advice: Advice, queries: FollowUpQueries, root: str | None, *, is_complete: bool
) -> Iterator[str]:
    """Yields the rows of the step's account, largest first: time, what and where, verdict."""
    account = advice.account
    if account is None or not account.rows or advice.selected_rule_or_finding is not None:
        return
    yield from ("", f"## {ACCOUNT_TITLE}", "", f"`{queries.all_numbers_query()}`")
    shown = account.rows if is_complete else rows_that_stand_alone(account)
    for row, text in zip(shown, account_row_texts(account, root), strict=False):
        said = f"{time_text(row)} {text}: {verdict_text(advice, row)}"
        reason = f"; {row.text}" if is_complete or row.verdict == "needed" else ""
        yield f"- {shortened_markdown_sentence(said + reason)}"
    if len(shown) < len(account.rows):
        yield f"- {len(account.rows)} rows in all: `{queries.all_numbers_query()}`"
    yield f"- {account_totals_text(account, as_times=True)}"
    if account.kinds:
        yield f"- {KINDS_TITLE}"
    for sentence in kind_sentences(account, root):
        yield f"  - {shortened_markdown_sentence(sentence)}"


def unexplained_lines(advice: Advice, queries: FollowUpQueries, root: str | None) -> Iterator[str]:
    """Yields the largest unexplained rows of the step's account, where they are much of it."""
    account, is_selection = advice.account, advice.selected_rule_or_finding is not None
    if account is None or account.is_mostly_explained or is_selection:
        return
    for text in unexplained_texts(account, root):
        yield f"- {shortened_markdown_sentence(text)}; `{queries.all_numbers_query()}`"
