"""Recognise traces of other programs, and messages about lost records."""

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
"""Recorders, and words that only they write: header keys, categories, process names."""
_KNOWN: Final = [(recorder, re.compile(words, re.IGNORECASE)) for recorder, words in _SIGNS]


def lost_record_count(line: str) -> int | None:
    """Returns the number of dropped records in a line of the recorder's log, or None.

    >>> lost_record_count("Dropped 12 activity records"), lost_record_count("Dropped 0 records")
    (12, None)
    """
    found = _DROPPED.search(line)
    return int(found[1]) if found else None


def reports_lost_records(line: str) -> bool:
    """Whether a line of the recorder's log reports lost records.

    Records outside the recorded window are dropped on purpose and do not count.

    >>> reports_lost_records("Exceeded max GPU buffer count (33 >= 33) - terminating tracing")
    True
    >>> reports_lost_records("Record counts: Out-of-range = 52, CUPTI stopped early? = 0")
    False
    """
    return lost_record_count(line) is not None or _STOPPED.search(line) is not None


def looks_like_collective(name: str) -> bool:
    """Whether an unknown kernel has the word of a collective in its name.

    Reductions within a warp or a block use the same words and do not count.

    >>> looks_like_collective("my_AllGather_v2"), looks_like_collective("WarpAllReduce")
    (True, False)
    """
    return not is_collective_kernel(name) and _COLLECTIVE_WORD.search(name) is not None


def issues_device_collective(name: str) -> bool:
    """Whether an annotation is a collective of a backend that launches kernels.

    >>> issues_device_collective("nccl:all_reduce"), issues_device_collective("gloo:all_reduce")
    (True, False)
    """
    return _DEVICE_BACKEND.match(name) is not None


def foreign_recorder(words: Iterable[str]) -> str | None:
    """Returns the program that writes such header keys, categories or process names.

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
