"""Parses ranks and parallel axes from the names of processes and files."""

import re
from typing import Final

_RANK_IN_PROCESS_NAME: Final = re.compile(r"(?i:(?<![a-z])rank)[\s_:=#-]*(\d{1,9})(?!\d)")
_AXIS_POSITIONS: Final = re.compile(r"\[((?:(?:TP|DP|PP|EP|CP|SP)-?\d+[\s,_-]*)+)\]")
_NOT_AFTER_LOCAL_OR_AXIS_PREFIX: Final = (
    r"(?<!local[_.-])(?<!node[_.-])(?<!^[tdpecs]p[_.-])(?<![^a-z][tdpecs]p[_.-])"
)
"""Pattern that excludes `rank` after a word that makes it a rank within a node or along one axis.
"""
_RANK_IN_FILE_NAME: Final = re.compile(
    rf"(?i:(?<![a-z]){_NOT_AFTER_LOCAL_OR_AXIS_PREFIX}rank)[\s_:=#-]*(\d{{1,9}})(?!\d)"
    r"|(?<![^\W_])r(\d{1,9})(?![^\W_])"
)
_AXIS_POSITION: Final = re.compile(r"(?<![^\W_])(TP|DP|PP|EP|CP|SP)[-_=]?(\d{1,9})(?![^\W_])")
_HOST_IN_FILE_NAME: Final = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*)_(?:rank\d+_)?\d+\.\d{10,}\.pt\.trace\.json(?:\.gz)?"
)
"""Name that PyTorch's handler for TensorBoard gives a file: host, process id and time."""

_MAX_RANK_DIGITS: Final = 10
"""Largest number of digits of a rank that is written as text."""
_MAX_RANK_COUNT: Final = 1 << 31
"""More processes than any job has; ranks from this number on are invalid."""


def rank_in_file_name(file_name: str) -> int | None:
    """Returns the rank in the name of a file or folder; None if the name has none or several.

    >>> [rank_in_file_name(name) for name in ("rank3_step5.json", "trace-r12.json", "r3d.json")]
    [3, 12, None]
    >>> rank_in_file_name("host_4711.17000.pt.trace.json"), rank_in_file_name("tp_rank3.json")
    (None, None)
    """
    found = {int(told[1] or told[2]) for told in _RANK_IN_FILE_NAME.finditer(file_name)}
    return found.pop() if len(found) == 1 else None


def host_in_file_name(file_name: str) -> str | None:
    """Returns the host in a file name of PyTorch's handler for TensorBoard; None if there is none.

    >>> host_in_file_name("node-7_4711.1700000000000000000.pt.trace.json")
    'node-7'
    >>> host_in_file_name("rank3_4711.1700000000000.pt.trace.json"), host_in_file_name("a_1.json")
    (None, None)
    """
    found = _HOST_IN_FILE_NAME.fullmatch(file_name)
    if found is None or rank_in_file_name(found["host"]) is not None:
        return None
    return found["host"]


def parallel_axes_in_file_name(file_name: str) -> str | None:
    """Returns a process's position along parallel axes, like `DP0 TP1`, by file name; else None.

    >>> names = ("1700-TP-2.trace.json.gz", "trace_DP0_TP1_EP0.json")
    >>> [parallel_axes_in_file_name(name) for name in names]
    ['TP2', 'DP0 TP1 EP0']
    """
    return " ".join(axis + str(int(at)) for axis, at in _AXIS_POSITION.findall(file_name)) or None


def rank_of_process(process_name: str) -> str | None:
    """Returns the rank that a merging tool wrote into a process's name or number, or None.

    >>> rank_of_process("[rank 3] 4711"), rank_of_process("rank3_4711"), rank_of_process("4711")
    ('3', '3', None)
    >>> rank_of_process("[TP02-DP00] 4711")
    'TP02-DP00'
    """
    found = _RANK_IN_PROCESS_NAME.search(process_name)
    if found:
        return str(int(found[1]))
    places = _AXIS_POSITIONS.search(process_name)
    return places[1].strip(" ,_-") if places else None


def parse_rank_number(value: object) -> int | None:
    """Returns a rank or world size as an integer, from a number or text; None if invalid.

    >>> [parse_rank_number(name) for name in (3, "12", True, "9" * 5_000)]
    [3, 12, None, None]
    """
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) <= _MAX_RANK_DIGITS
    ):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MAX_RANK_COUNT else None
