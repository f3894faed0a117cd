"""Words for ranks, calls, lines and times, of which the sentences on a hang are made."""

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Final

from selftime.analysis.hang import Difference, Variant
from selftime.flight_recorder import Call, Place, Sizes
from selftime.reports.advice.wording import file_and_line_text
from selftime.reports.plain import plain
from selftime.units import count_text, seconds_text, truncate_middle

_MOST_RANGES: Final = 6
"""Largest number of ranges of ranks that are named; of more only the number of ranks is."""
_MOST_TENSORS: Final = 3
_SHORTEST_WAIT_NS: Final = 1_000_000_000
"""Shortest time that is called a wait; a shorter one says only that nothing is known later."""


def ranks_text(ranks: Iterable[int]) -> str:
    """Returns ranks as text.

    >>> ranks_text([3]), ranks_text([0, 1, 2, 5]), ranks_text([4, 7])
    ('rank 3', 'ranks 0-2 and 5', 'ranks 4 and 7')
    """
    ordered = sorted(ranks)
    noun = "rank" if len(ordered) == 1 else "ranks"
    return f"{noun} {rank_numbers_text(ordered)}"


def rank_numbers_text(ranks: Iterable[int]) -> str:
    """Returns the numbers of ranks as text, with ranges; of many ranges only the first.

    >>> rank_numbers_text([0, 1, 2, 5, 6]), rank_numbers_text(range(0, 40, 2))
    ('0-2, 5 and 6', '0, 2, 4, 6, 8 and 15 more')
    """
    ordered = sorted(ranks)
    ranges: list[list[int]] = []
    for rank in ordered:
        if ranges and rank == ranges[-1][-1] + 1:
            ranges[-1].append(rank)
        else:
            ranges.append([rank])
    texts = [text for found in ranges for text in _range_texts(found)]
    if len(texts) > _MOST_RANGES:
        shown = sum(len(found) for found in ranges[: _MOST_RANGES - 1])
        texts = [t for found in ranges[: _MOST_RANGES - 1] for t in _range_texts(found)]
        texts.append(f"{count_text(len(ordered) - shown)} more")
    return joined(texts)


def joined(texts: list[str]) -> str:
    """Returns texts as a list in a sentence.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _range_texts(ranks: list[int]) -> list[str]:
    if len(ranks) > 2:
        return [f"{ranks[0]}-{ranks[-1]}"]
    return [str(rank) for rank in ranks]


def capitalised(text: str) -> str:
    """Returns a sentence whose first letter is large."""
    return text[:1].upper() + text[1:]


def group_text(one: Difference) -> str:
    return f"group {truncate_middle(plain(one.group.label))}"


def call_name(call: Call) -> str:
    """Returns a call with its number, such as `all_reduce 17`."""
    return f"{truncate_middle(plain(call.operation))} {call.sequence}"


def numbered_operation(one: Difference) -> str:
    return f"{truncate_middle(plain(one.operation))} {one.sequence}"


def place_text(place: Place, root: str | None) -> str:
    """Returns a line as `function (file:line)`."""
    line = file_and_line_text(place.file, place.line, root)
    return line if place.function is None else f"{truncate_middle(plain(place.function))} ({line})"


def sizes_text(sizes: Sizes) -> str:
    """Returns the shapes of tensors as text.

    >>> sizes_text(((4, 4), (2,))), sizes_text(((1,),) * 5), sizes_text(())
    ('[4, 4], [2]', '[1], [1], [1] and 2 more', 'no tensor')
    """
    if not sizes:
        return "no tensor"
    shown = ", ".join(str(list(shape)) for shape in sizes[:_MOST_TENSORS])
    more = len(sizes) - _MOST_TENSORS
    return f"{shown} and {more} more" if more > 0 else shown


def variant_sizes_text(variant: Variant, *, has_both: bool = False) -> str:
    """Returns the sizes of a call: its input, and its output where that differs or is wanted."""
    given, made = sizes_text(variant.call.input_sizes), sizes_text(variant.call.output_sizes)
    return given if given == made and not has_both else f"input {given} and output {made}"


def variant_types_text(variant: Variant) -> str:
    given, made = (
        ", ".join(map(plain, types)) or "no type"
        for types in (variant.call.input_dtypes, variant.call.output_dtypes)
    )
    return given if given == made else f"input {given} and output {made}"


def waited_text(since_ns: int | None, until_ns: int, *, is_plural: bool) -> str:
    """Returns since when ranks wait as the middle of a sentence: `have waited for 61 s`."""
    verb = "have" if is_plural else "has"
    if since_ns is None:
        return "wait" if is_plural else "waits"
    if until_ns - since_ns >= _SHORTEST_WAIT_NS:
        return f"{verb} waited for {seconds_text(until_ns - since_ns)}"
    return f"{verb} waited since {instant_text(since_ns)}"


def instant_text(instant_ns: int) -> str:
    """Returns an instant since the Unix epoch as text.

    >>> instant_text(1_796_054_069_353_514_561)
    '2026-11-30 15:54:29 UTC'
    """
    told = datetime.fromtimestamp(instant_ns // 1_000_000_000, tz=timezone.utc)
    return told.strftime("%Y-%m-%d %H:%M:%S UTC")
