"""Writes each text of a Perfetto trace once; later packets name it by its number."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.array_types import Ints
from selftime.reports.export.perfetto_fields import SequenceFlags, TracePacketField
from selftime.reports.export.protobuf_encoding import encode_field

_MAX_INTERNED_TEXTS_PER_PACKET: Final = 1000
"""Largest number of texts that one packet defines, so that later packets can name them by
number."""


class InternedTexts:
    """Texts that are written once and then named by a number from 1, separately for each kind."""

    def __init__(self) -> None:
        self._numbers: dict[int, dict[str, int]] = {}
        self._unwritten: list[tuple[int, int, str]] = []

    def text_number(self, kind: int, text: str) -> int:
        """Returns the number of a text of the given kind; a new text gets the next number."""
        numbers = self._numbers.setdefault(kind, {})
        if text not in numbers:
            numbers[text] = len(numbers) + 1
            self._unwritten.append((kind, numbers[text], text))
        return numbers[text]

    def text_numbers(self, kind: int, texts: pl.Series) -> Ints:
        """Returns the number of each text; all are of the given kind."""
        distinct = texts.cast(pl.String).unique(maintain_order=True)
        numbers = [self.text_number(kind, text) for text in distinct.to_list()]
        new_numbers = pl.Series(numbers, dtype=pl.Int64)
        return texts.cast(pl.String).replace_strict(distinct, new_numbers).to_numpy()

    def new_text_packets(self) -> Iterator[bytes]:
        """Yields packets that define the texts that are new since the last call."""
        for first in range(0, len(self._unwritten), _MAX_INTERNED_TEXTS_PER_PACKET):
            entries = [
                encode_field(kind, encode_field(1, number) + encode_field(2, text))
                for kind, number, text in self._unwritten[
                    first : first + _MAX_INTERNED_TEXTS_PER_PACKET
                ]
            ]
            yield encode_field(TracePacketField.FLAGS, SequenceFlags.NEEDS_STATE) + encode_field(
                TracePacketField.INTERNED, b"".join(entries)
            )
        self._unwritten.clear()
