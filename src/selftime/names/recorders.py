"""Which program recorded a trace that is not PyTorch's, by what only it writes."""

import re
from collections.abc import Iterable
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

_SIGNS: Final[tuple[tuple[str, str], ...]] = (
    ("VizTracer", r"viztracer_metadata|fee"),
    ("Chrome's DevTools", r"(?:disabled-by-default-)?devtools(?:\..*)?"),
    ("Node.js", r"node(?:\.[a-z_]+)+|node,.*"),
    ("Chrome", r"toplevel|blink|cc|benchmark|disabled-by-default-v8|v8|ipc|netlog"),
    ("JAX or XLA", r"/device:(?:tpu|gpu|cpu):\d+.*|/host:.*|highres-ticks"),
    ("TensorFlow", r"/job:.*/device:.*|/job:[^/]*/replica:.*"),
    ("Nsight Systems", r"nvtx|nsys|cuda_api|cuda_gpu_kern.*|osrt"),
    (
        "Android's systrace",
        r"systemtraceevents|atrace|surfaceflinger|system_server|sched|gfx|binder.*",
    ),
)
"""Recorders, and words that stand for one: a key of the header, a category, a process's name."""
_KNOWN: Final = [(recorder, re.compile(words, re.IGNORECASE)) for recorder, words in _SIGNS]


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


def foreign_recorder(words: Iterable[str]) -> str | None:
    """The program whose words these are: keys of a header, categories, names of processes.

    >>> foreign_recorder(["traceName", "viztracer_metadata"])
    'VizTracer'
    >>> foreign_recorder(["toplevel,disabled-by-default-devtools.timeline"])
    "Chrome's DevTools"
    >>> foreign_recorder(["cpu_op"]) is None
    True
    """
    parts = {part.strip() for word in words for part in (word, *word.split(","))}
    for recorder, sign in _KNOWN:
        if any(sign.fullmatch(part) for part in parts):
            return recorder
    return None
