"""A snapshot's pickle as a whole: it is read at once, as a pickle has no parts that stand alone."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from selftime.errors import UnreadableTrace
from selftime.ingest.snapshots.pickles import read_plain
from selftime.ingest.text.parts import opened
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source

LIMIT: Final = 4 << 30
"""Bytes of a pickle that are read: in memory its values take several times as many."""


def whole(first: bytes, blocks: Iterator[bytes]) -> bytes:
    """The bytes of a snapshot, within what can be read at once.

    Raises:
        UnreadableTrace: They are more than `LIMIT`.
    """
    parts, size = [first], len(first)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > LIMIT:
            raise UnreadableTrace(
                f"it is a memory snapshot of more than {LIMIT >> 30} GiB: record fewer entries "
                "with `max_entries`"
            )
    return b"".join(parts)


def snapshot_values(
    place: str | os.PathLike[str], progress: Callable[[int, int | None], None] | None = None
) -> Any:
    """The plain values of the snapshot in a file, a dict; None if the file is no pickle.

    Raises:
        UnreadableTrace: The pickle holds anything but plain values, or is no snapshot.
    """
    where = os.fspath(place)
    with opened(where) as (file, size):
        blocks = Source(file, size, progress).blocks()
        try:
            first = next(blocks, b"")
            if not is_pickle(first):
                return None
            found = read_plain(whole(first, blocks))
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{where}` cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableTrace(f"`{where}` is a pickle of something else than a snapshot")
    return found
