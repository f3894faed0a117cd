"""Which program recorded a trace that is not PyTorch's, by what only it writes."""

import re
from collections.abc import Iterable
from typing import Final

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
