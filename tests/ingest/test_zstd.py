"""zstd: no more is decompressed at once than is meant, whatever its blocks hold."""

from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.ingest.rough.case import document

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.ingest.text.decompression import FileDecompressor, ZstdBlockTracker

HEAD = b"\x28\xb5\x2f\xfd\x00\x58"
"""A frame with a window of 2 MiB, without a checksum."""
MOST = 5 << 20


def run_of_spaces(*, last: bool = False) -> bytes:
    """128 KiB of text in four bytes."""
    return (131_072 << 3 | 1 << 1 | last).to_bytes(3, "little") + b" "


def inflated(data: bytes, size: int = 1 << 15) -> list[bytes]:
    blocks = iter([data[at : at + size] for at in range(size, len(data), size)])
    return list(FileDecompressor("zstd", data[:size], lambda: next(blocks, b"")).text_blocks())


def test_blocks_of_much_text_are_decompressed_few_at_once() -> None:
    data = HEAD + run_of_spaces() * 1023 + run_of_spaces(last=True)
    found = inflated(data)
    assert sum(map(len, found)) == 1024 << 17
    assert max(map(len, found)) <= MOST


def test_packed_blocks_of_much_text_are_decompressed_few_at_once() -> None:
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    data = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(64)) + packer.flush()
    found = inflated(data)
    assert sum(map(len, found)) == 64 << 20
    assert max(map(len, found)) <= MOST


@given(
    st.lists(st.binary(max_size=300).map(lambda some: some * 400), max_size=4),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
)
def test_pieces_of_any_size_hold_the_same(
    texts: list[bytes], size: int, checksum: bool, sized: bool
) -> None:
    packer = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=sized)
    data = b"".join(map(packer.compress, texts)) or packer.compress(b"")
    assert b"".join(inflated(data, size)) == b"".join(texts)


def test_a_piece_ends_behind_the_header_of_the_block_that_would_be_too_much() -> None:
    data = HEAD + run_of_spaces() * 9
    blocks = ZstdBlockTracker()
    ends = [0]
    while ends[-1] < len(data):
        ends.append(blocks.piece_end(data, ends[-1], len(data), 3 << 17))
    assert ends == [0, 6 + 4 * 3 - 1, 6 + 4 * 6 - 1, 6 + 4 * 9 - 1, len(data)]


def test_a_window_that_is_too_large_is_named(tmp_path: Path) -> None:
    made = zstandard.ZstdCompressionParameters.from_level(3, window_log=30)
    packer = zstandard.ZstdCompressor(compression_params=made).compressobj()
    path = tmp_path / "trace.json.zst"
    path.write_bytes(packer.compress(document()) + packer.flush())
    with pytest.raises(UnreadableTrace, match="a window of more than 128 MiB"):
        load(path, cache=False)


@pytest.mark.parametrize("head", [HEAD + b"\xff\xff", b"\x1f\x8b\x08\x00" + bytes(6)])
def test_packed_data_of_which_nothing_comes_is_not_called_empty(
    head: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(head)
    with pytest.raises(UnreadableTrace, match="the compressed data"):
        load(path, cache=False)
