"""Lays the progress of a job out for a terminal: a row for each rank, or for those of note."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from selftime.analysis.progress.job_progress import JobProgress, RankState, State
from selftime.reports.terminal import render_as_text
from selftime.reports.watch.sentences import headline, notes, rest_text, state_text
from selftime.reports.wrapping import NamesText
from selftime.units import count_text, three_digits_text, time_text

DEFAULT_ROWS: Final = 16
"""Largest number of ranks that have a row, unless the caller has room for more."""
_NO_FILES: Final[Mapping[str, str]] = MappingProxyType({})
_WORST_FIRST: Final = (State.gone, State.silent, State.ended, State.runs, State.records)


def as_text(
    job: JobProgress,
    *,
    width: int = 80,
    colour: bool = False,
    root: str | None = None,
    rows: int = DEFAULT_ROWS,
    unread: Mapping[str, str] = _NO_FILES,
) -> str:
    """Returns the progress of a job as terminal text of at most `rows` ranks."""
    parts: list[RenderableType] = [NamesText(f"{headline(job)}.")]
    if job.ranks:
        shown = _ranks_to_show(job, max(1, rows))
        parts += ["", _table(shown, job)]
        have_row = {id(one) for one in shown}
        rest = [one for one in job.ranks if id(one) not in have_row]
        if rest:
            parts.append(Text(f"  {rest_text(rest)}"))
        parts.append("")
    parts += [NamesText(sentence) for sentence in notes(job, unread, root)]
    return render_as_text(Group(*parts), width=width, colour=colour)


def _table(shown: list[RankState], job: JobProgress) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    has_others = len(job.ranks) > 1
    named = "rank" if shown[0].progress.rank is not None else "process"
    headings = [named, "step", "ms a step", *(["ahead", "late"] if has_others else [])]
    for _ in headings:
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_row(*(Text(word, "bold") for word in headings))
    slow = {(one.rank, one.process) for one in job.slow.ranks}
    for one in shown:
        progress = one.progress
        is_slow = (progress.rank, progress.process) in slow
        skew = [
            f"{one.steps_ahead:+,}" if one.steps_ahead else "0",
            "" if one.late_ns is None else time_text(one.late_ns),
        ]
        table.add_row(
            str(progress.process if progress.rank is None else progress.rank),
            count_text(progress.steps),
            "" if one.step_ns is None else three_digits_text(one.step_ns / 1e6),
            *(skew if has_others else []),
            Text(("slow: " if is_slow else "") + state_text(one), _style(one, is_slow)),
        )
    return table


def _style(one: RankState, is_slow: bool) -> str:
    if one.state in {State.gone, State.silent}:
        return "red"
    return "yellow" if is_slow else ""


def _ranks_to_show(job: JobProgress, rows: int) -> list[RankState]:
    """Returns the ranks of note, in their order: killed, not seen, slow, behind, and the first."""
    if len(job.ranks) <= rows:
        return list(job.ranks)
    slow = [(one.rank, one.process) for one in job.slow.ranks]

    def order(one: RankState) -> tuple[int, int, int, int]:
        own = (one.progress.rank, one.progress.process)
        is_notable = one.state in {State.gone, State.silent} or _failed(one)
        urgency = _WORST_FIRST.index(one.state) if is_notable else len(_WORST_FIRST)
        slowness = slow.index(own) if own in slow else len(slow)
        return urgency, slowness, -abs(one.steps_ahead), -abs(one.late_ns or 0)

    worst = sorted(job.ranks[1:], key=order)[: rows - 1]
    chosen = {id(one) for one in (job.ranks[0], *worst)}
    return [one for one in job.ranks if id(one) in chosen]


def _failed(one: RankState) -> bool:
    return one.state is State.ended and one.progress.status != "ended"
