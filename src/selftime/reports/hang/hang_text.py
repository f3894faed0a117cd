"""Writes why a job hangs as text: the verdict, a table of ranks, what differs, what was read."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime.analysis.hang import Hang, RankState
from selftime.flight_recorder import Place
from selftime.reports.advice.wording import relative_file
from selftime.reports.hang.phrases import call_name, place_text, rank_numbers_text, ranks_text
from selftime.reports.hang.sentences import HangSentences
from selftime.reports.plain import plain
from selftime.reports.terminal import render_as_text
from selftime.reports.wrapping import NamesText, line_break_offsets
from selftime.units import count_text, seconds_text

_MOST_ROWS: Final = 40
_MOST_FILES: Final = 10
_SHORTEST_WAIT_NS: Final = 1_000_000_000
_NOTHING: Final = "-"


def as_text(found: Hang, *, width: int = 80, colour: bool = False, root: str | None = None) -> str:
    """Returns the judgement on a job as text; files below `root` are named relative to it."""
    sentences = HangSentences(found, root)
    parts: list[Text | Table] = [_paragraph(sentences.verdict(), width, style="bold")]
    parts += [Text("\nRANKS", style="bold"), _ranks_table(found, sentences, root)]
    for title, told in (
        ("ALSO", [sentences.difference(one) for one in found.consequences]),
        ("REMARKS", [*map(sentences.difference, found.remarks), *_notes(found)]),
        ("NOT READ", list(_unread(found, root))),
    ):
        if told:
            parts.append(Text(f"\n{title}", style="bold"))
            parts += [_paragraph(f"- {text}", width) for text in told]
    parts.append(_paragraph(f"\n{_read(found)}", width, style="dim"))
    return render_as_text(*parts, width=width, colour=colour)


def _paragraph(text: str, width: int, style: str = "") -> Text:
    """Returns a sentence on lines of at most `width` columns, indented below a list's dash."""
    indent = "  " if text.startswith("- ") else ""
    offsets = line_break_offsets(text, width - len(indent))
    ends = [*offsets, len(text)]
    lines = [text[a:b].rstrip() for a, b in zip([0, *offsets], ends, strict=True)]
    return Text(f"\n{indent}".join(lines), style=style, no_wrap=True)


def _ranks_table(found: Hang, sentences: HangSentences, root: str | None) -> Table:
    """Returns a row for all ranks that are in the same state at the same line."""
    rows: dict[tuple[str, str, str], list[int]] = {}
    waits: dict[tuple[str, str, str], int] = {}
    for state in found.ranks:
        cells = _cells(state, found, sentences, root)
        rows.setdefault(cells, []).append(state.rank)
        waits[cells] = max(waits.get(cells, 0), _waited_ns(state, found))
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(5):
        table.add_column(overflow="fold")
    table.add_row("rank", "ended last", "waits in", "for", "line", style="dim")
    for cells, ranks in list(rows.items())[:_MOST_ROWS]:
        ended, waiting, line = cells
        waited = seconds_text(waits[cells]) if waits[cells] >= _SHORTEST_WAIT_NS else _NOTHING
        texts = (rank_numbers_text(ranks), ended, waiting, waited, line)
        table.add_row(*(NamesText(text) for text in texts))
    if len(rows) > _MOST_ROWS:
        left = sum(len(ranks) for ranks in list(rows.values())[_MOST_ROWS:])
        table.add_row("…", f"{count_text(left)} more ranks")
    return table


def _cells(
    state: RankState, found: Hang, sentences: HangSentences, root: str | None
) -> tuple[str, str, str]:
    """Returns what a rank ended last, where it waits, and its line."""
    several = len(found.groups) > 1

    def named(group: str, name: str) -> str:
        return f"{name} ({sentences.group_label(group)})" if several else name

    ended = _NOTHING if state.has_dump else "no dump"
    if state.last_ended is not None:
        ended = named(state.last_ended.group, call_name(state.last_ended))
    waiting = _NOTHING
    if state.open_call is not None:
        waiting = named(state.open_call.group, call_name(state.open_call))
    elif state.has_dump:
        waiting = "none: elsewhere" if found.causes else "none"
    place = _place(state)
    return ended, waiting, _NOTHING if place is None else place_text(place, root)


def _place(state: RankState) -> Place | None:
    call = state.open_call
    if call is not None and call.place is not None:
        return call.place
    if state.seen is not None and state.is_seen_last:
        return state.seen.place
    return None if state.last_call is None else state.last_call.place


def _waited_ns(state: RankState, found: Hang) -> int:
    call = state.open_call
    if call is None:
        return 0 if state.seen is None or state.has_dump else state.seen.standing_ns
    return 0 if call.created_ns is None else found.until_ns - call.created_ns


def _notes(found: Hang) -> Iterator[str]:
    evidence = found.evidence
    versions = sorted({dump.version or "unknown" for dump in evidence.dumps.values()})
    if len(versions) > 1:
        yield f"The dumps are of several versions of the format: {', '.join(map(plain, versions))}."
    if found.older:
        yield (
            f"Dumps of other ranks show that {ranks_text(found.older)} went on after the last call "
            "of the own dump, which was made earlier."
        )
    if evidence.superseded:
        ranks = ranks_text({rank for rank, _ in evidence.superseded})
        yield (
            f"Left out {_counted(len(evidence.superseded), 'more dump')} of {ranks}: those that "
            "are judged are later, or tell as much."
        )
    for group in found.groups:
        if not group.are_ranks_stated:
            yield (
                f"No dump lists the ranks of group {plain(group.label)}; those that are known are "
                f"{rank_numbers_text(group.ranks)}."
            )
    lost = sum(dump.unread_entries for dump in evidence.dumps.values())
    if lost:
        yield f"{count_text(lost)} entries of dumps could not be read, and were left out."


def _unread(found: Hang, root: str | None) -> Iterator[str]:
    unread = found.evidence.unread
    for path, reason in unread[:_MOST_FILES]:
        told = plain(reason) if root is None else plain(reason).replace(f"{root}/", "")
        yield f"`{plain(relative_file(path, root))}`: {told}."
    if len(unread) > _MOST_FILES:
        yield f"{count_text(len(unread) - _MOST_FILES)} more files."


def _read(found: Hang) -> str:
    """Returns how much was read, as a sentence."""
    evidence = found.evidence
    calls = sum(len(dump.calls) for dump in evidence.dumps.values())
    told = f"Read {_counted(len(evidence.dumps), 'dump')} of {_counted(calls, 'call')}"
    told += f" and {_counted(len(evidence.sightings), 'ledger')}"
    if evidence.other_files:
        told += f"; {_counted(evidence.other_files, 'other file')} left out"
    return f"{told}."


def _counted(count: int, noun: str) -> str:
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"
