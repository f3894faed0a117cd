"""Parses lists of ranks, such as `0,7-9`, and says whether a rank of a job is one of them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from selftime.errors import UsageError

_MAX_DIGITS: Final = 9
_MAX_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class RankList:
    """Ranks of a job, as ranges."""

    text: str
    """The list as the user wrote it."""
    ranges: tuple[tuple[int, int], ...]
    """First and last rank of each range, in order and apart."""

    def __contains__(self, rank: int) -> bool:
        return any(first <= rank <= last for first, last in self.ranges)

    def count_in(self, world_size: int) -> int:
        """Returns how many ranks of a job of `world_size` ranks are in the list."""
        ends = [(first, min(last, world_size - 1)) for first, last in self.ranges]
        return sum(last - first + 1 for first, last in ends if last >= first)

    def without_job(self, world_size: int) -> str:
        """Returns as text the ranks that a job of `world_size` ranks does not have."""
        ends = [(max(first, world_size), last) for first, last in self.ranges if last >= world_size]
        return ", ".join(_range_text(first, last) for first, last in ends)


@lru_cache(maxsize=8)
def parse_rank_list(text: str) -> RankList:
    """Returns the ranks that the value of `--ranks` names.

    >>> parse_rank_list("8,0, 7-9").ranges
    ((0, 0), (7, 9))

    Raises:
        UsageError: The text is no list of ranks.
    """
    ranges: list[tuple[int, int]] = []
    for first, last in sorted(_range(word.strip(), text) for word in text.split(",")):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return RankList(text, tuple(ranges))


def checked_rank_list(text: str | None) -> str | None:
    """Returns the value of `--ranks` as it is.

    Raises:
        UsageError: It is no list of ranks.
    """
    if text is not None:
        parse_rank_list(text)
    return text


def reason_of_left_out_rank(
    text: str | None, rank: int | None, world_size: int | None
) -> str | None:
    """Returns why a rank is not recorded; None if it is.

    Args:
        text: The value of `--ranks`; None without the option.
        rank: The rank of this process; one without a rank is recorded.
        world_size: How many ranks its job has; None if that is unknown.
    """
    if text is None or rank is None or rank in (ranks := parse_rank_list(text)):
        return None
    if world_size is not None and not ranks.count_in(world_size):
        job = f"whose {'rank is' if world_size == 1 else 'ranks are'}"
        return (
            f"`--ranks {text}` names no rank of this job, {job} {_range_text(0, world_size - 1)}; "
            "only the ledger of each rank is kept"
        )
    return f"`--ranks {text}` leaves it out; only its ledger is kept"


def sentence_on_missing_ranks(text: str | None, world_size: int | None) -> str | None:
    """Returns a sentence on the listed ranks that a job does not have; None if it has all.

    Of a list without any rank of the job the reason of each rank that is left out says so.
    """
    if text is None or world_size is None:
        return None
    ranks = parse_rank_list(text)
    missing = ranks.without_job(world_size)
    if not missing or not ranks.count_in(world_size):
        return None
    return (
        f"`--ranks {text}` also names {missing}, which this job does not have: its ranks are "
        f"{_range_text(0, world_size - 1)}"
    )


def _range(word: str, text: str) -> tuple[int, int]:
    first, dash, last = (part.strip() for part in word.partition("-"))
    shown = text[:_MAX_SHOWN_CHARACTERS]
    if not _is_rank(first) or (dash and not _is_rank(last)):
        raise UsageError(
            f"`--ranks {shown}` is no list of ranks; write numbers and ranges, such as `0,7-9`"
        )
    if dash and int(last) < int(first):
        raise UsageError(
            f"`--ranks {shown}`: the range {first}-{last} ends before it begins; write {last}-"
            f"{first}"
        )
    return int(first), int(last if dash else first)


def _is_rank(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS


def _range_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
