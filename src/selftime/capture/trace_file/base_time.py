"""Moves the base of all times to the begin of the profiler's JSON.

Older releases of PyTorch, such as 2.4, write it after the events. What corrects the events, one
chunk of text after the other, needs it before them, where newer releases write it.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

_ENTRY_OF_BASE_TIME: Final = re.compile(rb',\s*("baseTimeNanoseconds": \d+)')
_KEY_OF_EVENTS: Final = b'"traceEvents": ['


def with_base_time_first(chunks: Iterable[bytes], tail: bytes) -> Iterator[bytes]:
    """Yields the JSON text with the base of times before its events, in chunks as given.

    Args:
        chunks: The text up to its tail.
        tail: The end of the text, which holds all that comes after the events.
    """
    entries = list(_ENTRY_OF_BASE_TIME.finditer(tail))
    if not entries or entries[-1].start() < tail.find(_KEY_OF_EVENTS):
        yield from chunks
        yield tail
        return
    entry = entries[-1]
    rest = chain(chunks, [tail[: entry.start()] + tail[entry.end() :]])
    yield next(rest).replace(b"{", b"{\n  " + entry[1] + b",", 1)
    yield from rest
