"""A changed byte in or beside the key of the events: nothing but that byte is lost."""

import pytest
from tests.ingest.rough.case import N, document

from selftime.ingest.decoding_workers import open_chunk_decoder
from selftime.ingest.text.text_window import TextWindow
from selftime.ingest.text.trace_parsing import parse_all_traces

INDENTED = document()
COMPACT = INDENTED.replace(b"\n  ", b"").replace(b": ", b":")
BYTES = b'\x00\x8c"\\{}[],:a '


@pytest.mark.parametrize("text", [INDENTED, COMPACT], ids=["indented", "compact"])
@pytest.mark.parametrize("byte", BYTES, ids=lambda byte: f"{byte:#04x}")
def test_a_changed_byte_costs_no_more_than_an_event(text: bytes, byte: int) -> None:
    begin = text.index(b'"traceEvents"')
    for at in range(begin - 2, text.index(b'{"ph"')):
        if text[at] == byte:
            continue
        damaged = text[:at] + bytes([byte]) + text[at + 1 :]
        with open_chunk_decoder(len(damaged)) as reading:
            found = parse_all_traces(TextWindow(iter([damaged])), reading)
        read = sum(
            sum(chunk.event_counts_by_phase_and_category.values())
            for one in found
            for chunk in one.chunks
        )
        assert read >= N - 1, damaged[begin - 20 : begin + 30]
