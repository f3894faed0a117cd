"""What names and log lines tell of records that are missing or not understood."""

import re
from typing import Final

from selftime.names.kernels import is_collective_kernel

_DROPPED: Final = re.compile(r"\b[Dd]ropped ([1-9]\d*)\b")
_STOPPED: Final = re.compile(
    r"[Ee]xceeded max GPU buffer|terminating tracing|stopped early(?! ?\?? ?= ?(?:0|false))"
    r"|buffer overflow",
)
_COLLECTIVE_WORD: Final = re.compile(
    r"(?<!warp)(?<!warp_)(?<!block)(?<!block_)(?<!thread)(?<!quad)"
    r"(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|multimem|ibgda)",
    re.IGNORECASE,
)
_DEVICE_BACKEND: Final = re.compile(r"(?:nccl|rccl|hccl|xccl|mccl):")


def records_lost(line: str) -> int | None:
    """How many records a line of the recorder's log says were dropped; None if it does not.

    >>> records_lost("Dropped 12 activity records"), records_lost("Dropped 0 activity records")
    (12, None)
    """
    found = _DROPPED.search(line)
    return int(found[1]) if found else None


def tells_of_loss(line: str) -> bool:
    """Whether a line of the recorder's log says that records were lost.

    Records outside the recording's window are left out on purpose and are no loss.

    >>> tells_of_loss("Exceeded max GPU buffer count (33 >= 33) - terminating tracing")
    True
    >>> tells_of_loss("Record counts: Out-of-range = 52, CUPTI stopped early? = 0")
    False
    """
    return records_lost(line) is not None or _STOPPED.search(line) is not None


def looks_like_collective(name: str) -> bool:
    """Whether a kernel that is not known as a collective has a word of one in its name.

    Reductions within a warp or a block share the words and are none.

    >>> looks_like_collective("my_AllGather_v2"), looks_like_collective("WarpAllReduce")
    (True, False)
    """
    return not is_collective_kernel(name) and _COLLECTIVE_WORD.search(name) is not None


def issues_device_collective(name: str) -> bool:
    """Whether a host annotation is a collective's whose backend runs kernels.

    >>> issues_device_collective("nccl:all_reduce"), issues_device_collective("gloo:all_reduce")
    (True, False)
    """
    return _DEVICE_BACKEND.match(name) is not None
