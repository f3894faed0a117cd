"""What the names of processes tell, where traces of several ranks were merged into one file."""

import re
from typing import Final

__all__ = ["rank_of_process"]

_RANK: Final = re.compile(r"(?i:(?<![a-z])rank)[\s_:=#-]*(\d{1,9})(?!\d)")
_PLACES: Final = re.compile(r"\[((?:(?:TP|DP|PP|EP|CP|SP)-?\d+[\s,_-]*)+)\]")


def rank_of_process(process: str) -> str | None:
    """The rank that a merging tool wrote into a process's number or name; None if there is none.

    >>> rank_of_process("[rank 3] 4711"), rank_of_process("rank3_4711"), rank_of_process("4711")
    ('3', '3', None)
    >>> rank_of_process("[TP02-DP00] 4711")
    'TP02-DP00'
    """
    found = _RANK.search(process)
    if found:
        return str(int(found[1]))
    places = _PLACES.search(process)
    return places[1].strip(" ,_-") if places else None
