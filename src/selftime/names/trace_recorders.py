"""Recognises traces written by other programs, and log messages about lost records."""

import re
from collections.abc import Iterable
from typing import Final

from selftime.names.collective_kernels import is_collective_kernel

_DROPPED_RECORD_COUNT: Final = re.compile(r"\b[Dd]ropped ([1-9]\d*)\b")
_STOPPED_RECORDING_MESSAGE: Final = re.compile(
    r"[Ee]xceeded max GPU buffer|terminating tracing|stopped early(?! ?\?? ?= ?(?:0|false))"
    r"|buffer overflow",
)
_COLLECTIVE_WORD: Final = re.compile(
    r"(?<!warp)(?<!warp_)(?<!block)(?<!block_)(?<!thread)(?<!quad)"
    r"(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|multimem|ibgda)",
    re.IGNORECASE,
)
_DEVICE_COLLECTIVE_BACKEND: Final = re.compile(r"(?:nccl|rccl|hccl|xccl|mccl):")

_RECORDER_WORDS: Final[tuple[tuple[str, str], ...]] = (
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
"""Other trace recorders, each with a pattern of words that only it writes, such as header keys."""
_RECORDER_PATTERNS: Final = [
    (recorder, re.compile(words, re.IGNORECASE)) for recorder, words in _RECORDER_WORDS
]


def lost_record_count(log_line: str) -> int | None:
    """Returns how many records a line of the profiler's log says were dropped; None if none.

    >>> lost_record_count("Dropped 12 activity records"), lost_record_count("Dropped 0 records")
    (12, None)
    """
    found = _DROPPED_RECORD_COUNT.search(log_line)
    return int(found[1]) if found else None


def reports_lost_records(log_line: str) -> bool:
    """Returns whether a line of the profiler's log reports lost records.

    Records outside the recorded window are dropped on purpose and do not count.

    >>> reports_lost_records("Exceeded max GPU buffer count (33 >= 33) - terminating tracing")
    True
    >>> reports_lost_records("Record counts: Out-of-range = 52, CUPTI stopped early? = 0")
    False
    """
    return (
        lost_record_count(log_line) is not None
        or _STOPPED_RECORDING_MESSAGE.search(log_line) is not None
    )


def looks_like_collective(kernel_name: str) -> bool:
    """Returns whether a kernel of no known library is named like a collective.

    Reductions within a warp or a block use the same words and do not count.

    >>> looks_like_collective("my_AllGather_v2"), looks_like_collective("WarpAllReduce")
    (True, False)
    """
    return (
        not is_collective_kernel(kernel_name) and _COLLECTIVE_WORD.search(kernel_name) is not None
    )


def issues_device_collective(annotation: str) -> bool:
    """Returns whether an annotation is a collective that runs as device kernels, as NCCL's do.

    >>> issues_device_collective("nccl:all_reduce"), issues_device_collective("gloo:all_reduce")
    (True, False)
    """
    return _DEVICE_COLLECTIVE_BACKEND.match(annotation) is not None


def foreign_recorder(trace_words: Iterable[str]) -> str | None:
    """Returns the name of the program, other than PyTorch, whose words a trace contains, or None.

    >>> foreign_recorder(["traceName", "viztracer_metadata"])
    'VizTracer'
    >>> foreign_recorder(["toplevel,disabled-by-default-devtools.timeline"])
    "Chrome's DevTools"
    >>> foreign_recorder(["cpu_op"]) is None
    True
    """
    parts = {part.strip() for word in trace_words for part in (word, *word.split(","))}
    for recorder, sign in _RECORDER_PATTERNS:
        if any(sign.fullmatch(part) for part in parts):
            return recorder
    return None
