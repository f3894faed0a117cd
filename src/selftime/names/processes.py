"""Parse ranks and parallel axes from the names of processes and files."""

import re
from typing import Final

_RANK: Final = re.compile(r"(?i:(?<![a-z])rank)[\s_:=#-]*(\d{1,9})(?!\d)")
_PLACES: Final = re.compile(r"\[((?:(?:TP|DP|PP|EP|CP|SP)-?\d+[\s,_-]*)+)\]")
_OF_A_GROUP: Final = r"(?<!local[_.-])(?<!node[_.-])(?<!^[tdpecs]p[_.-])(?<![^a-z][tdpecs]p[_.-])"
"""Excludes words before `rank` that make it a rank within a node or along one axis."""
_RANK_IN_PATH: Final = re.compile(
    rf"(?i:(?<![a-z]){_OF_A_GROUP}rank)[\s_:=#-]*(\d{{1,9}})(?!\d)"
    r"|(?<![^\W_])r(\d{1,9})(?![^\W_])"
)
_AXIS: Final = re.compile(r"(?<![^\W_])(TP|DP|PP|EP|CP|SP)[-_=]?(\d{1,9})(?![^\W_])")

_DIGITS: Final = 10
_MOST_PROCESSES: Final = 1 << 31
"""More processes than any job has."""


def rank_in_path(name: str) -> int | None:
    """Returns the rank in the name of a file or folder; None if there is none, or several.

    >>> rank_in_path("rank3_step5.json"), rank_in_path("trace-r12.json"), rank_in_path("r3d.json")
    (3, 12, None)
    >>> rank_in_path("host_4711.17000.pt.trace.json"), rank_in_path("tp_rank3.json")
    (None, None)
    """
    found = {int(told[1] or told[2]) for told in _RANK_IN_PATH.finditer(name)}
    return found.pop() if len(found) == 1 else None


def axes_in_path(name: str) -> str | None:
    """Returns a process's position along parallel axes, from a file name; None if absent.

    >>> axes_in_path("1700-TP-2.trace.json.gz"), axes_in_path("trace_DP0_TP1_EP0.json")
    ('TP2', 'DP0 TP1 EP0')
    """
    return " ".join(axis + str(int(at)) for axis, at in _AXIS.findall(name)) or None


def rank_of_process(process: str) -> str | None:
    """Returns the rank that a merging tool wrote into a process's name or number, or None.

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


def process_number(told: object) -> int | None:
    """Returns a rank or world size as an integer, from a number or text; None if invalid.

    >>> process_number(3), process_number("12"), process_number(True), process_number("9" * 5_000)
    (3, 12, None, None)
    """
    if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) <= _DIGITS:
        told = int(told)
    if not isinstance(told, int) or isinstance(told, bool):
        return None
    return told if 0 <= told < _MOST_PROCESSES else None
