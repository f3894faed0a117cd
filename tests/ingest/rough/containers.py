"""Section A of the catalogue: containers and bytes."""

import gzip
import json
import pickle
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Final, TypeAlias

import polars as pl
import zstandard
from tests.ingest.rough.case import (
    N,
    case,
    document,
    events,
    json_text,
    names_in,
    op,
)

from selftime.trace import Trace

HELD_BY: Final = {
    "3b": "test_files.py::test_several_traces_in_one_file",
    "10a": "test_files.py::test_offsets_beyond_32_bits",
    "11a": "test_files.py::test_a_file_that_grows_while_it_is_read",
    "11b": "../test_refusals.py::test_a_file_that_changes_while_it_is_read",
    "11c": "../test_refusals.py::test_unreadable_permissions",
    "11d": "../test_refusals.py::test_a_folder_named_like_a_trace",
    "11e": "test_files.py::test_a_loop_of_links_in_a_folder",
    "11f": "../test_refusals.py::test_a_fifo_is_not_waited_for",
}
"""Entries that need more than one file of bytes."""

GOOD: Final = document()
WRITTEN: Final = [json.dumps(event) for event in events()]
LAST: Final = GOOD.index(WRITTEN[-1].encode())
PACKED: Final = gzip.compress(GOOD)
MANY: Final = 2000


def many(dice: Random) -> bytes:
    """A trace that shrinks as real ones do."""
    return document([op(n, name=f"op{n} {dice.random()}") for n in range(MANY)])


@case("1a", "recover", "the file ends inside an event", "without `]`", sound=N - 1, lost=1)
def cut_inside_a_string(dice: Random) -> bytes:
    return GOOD[: GOOD.index(b'"name"', LAST) + dice.randrange(9, 12)]


@case("1b", "recover", "the file ends inside an event", sound=N - 1, lost=1)
def cut_inside_a_number(dice: Random) -> bytes:
    return GOOD[: GOOD.index(b'"ts": ', LAST) + 6 + dice.randrange(1, 3)]


@case("1c", "recover", "the file ends inside an event", sound=N - 1, lost=1)
def cut_inside_an_escape(dice: Random) -> bytes:
    cut = '"name": "op\\u00ab'[: -dice.randrange(1, 5)]
    return json_text(WRITTEN[:-1], end=',\n  {"ph": "X", ' + cut)


@case("1d", "recover", "the file ends without `]`", sound=N - 1)
def cut_between_two_events(_: Random) -> bytes:
    return GOOD[:LAST]


@case("1e", "recover", "the file ends without `]`", sound=N)
def cut_after_the_last_event(_: Random) -> bytes:
    return json_text(WRITTEN, end="")


@case("1f", "refuse", "ends at byte", "before the first event")
def cut_before_the_first_event(_: Random) -> bytes:
    return GOOD[: GOOD.index(WRITTEN[0].encode()) + 40]


@case("1f", "refuse", "ends at byte", "before the first event")
def cut_in_the_header(_: Random) -> bytes:
    return GOOD[:60]


@case("2a", "recover", "the compressed data ends too early", sound=N, plain_only=True)
def gzip_without_its_footer(dice: Random) -> bytes:
    return PACKED[: -dice.randrange(1, 9)]


def of_the_begin(trace: Trace) -> None:
    starts = trace.slices["start"]
    assert starts.diff().drop_nulls().unique().to_list() == [10_000]


@case(
    "2b", "recover", "the compressed data ends too early", "the file ends",
    sound=1000, lost=1, plain_only=True, check=of_the_begin,
)  # fmt: skip
def gzip_cut_in_a_block(dice: Random) -> bytes:
    text = many(dice)
    stream = zlib.compressobj(wbits=31)
    first = stream.compress(text[: within_event(text, 1000)]) + stream.flush(zlib.Z_SYNC_FLUSH)
    return first + (stream.compress(text[len(text) // 2 :]) + stream.flush())[:3]


def within_event(text: bytes, number: int) -> int:
    """A place in the middle of the event of that number."""
    return text.index(b'"name": "op%d ' % number) + 11


@case("3a", "accept", sound=N, plain_only=True)
def gzip_members_of_one_text(dice: Random) -> bytes:
    cuts = [0, *sorted(dice.sample(range(len(GOOD)), 5)), len(GOOD)]
    return b"".join(gzip.compress(GOOD[a:b]) for a, b in pairwise(cuts))


def rank_text(rank: int) -> bytes:
    """The trace of one of four ranks, which have everything alike but their process and names."""
    made = [
        {
            **event,
            "name": f"rank{rank} {event['name']}{'x' * rank}",
            "pid": event["pid"] + (rank + 1) * 100 if event["cat"] != "kernel" else rank,
        }
        for event in events(200)
    ]
    return document(made, distributedInfo={"rank": rank, "world_size": 4})


Run: TypeAlias = tuple[int, int, int]
"""A rank, and from where to where of its text."""


def interleaved(dice: Random, size: int) -> list[Run]:
    """What four ranks append to one file, in the order in which their buffers come."""
    ends = [len(text) for text in RANKS]
    places = [0] * len(RANKS)
    runs: list[Run] = []
    while unfinished := [rank for rank, end in enumerate(ends) if places[rank] < end]:
        rank = dice.choice(unfinished)
        begin, upto = places[rank], places[rank] + dice.randrange(size // 2, size)
        if runs and runs[-1][0] == rank:
            _, begin, _ = runs.pop()
        places[rank] = min(upto, ends[rank])
        runs.append((rank, begin, places[rank]))
    return runs


def written_over(dice: Random, size: int) -> list[Run]:
    """What two ranks write from the begin of one file: each place holds who wrote there last."""
    runs: list[Run] = []
    at = 0
    while at < len(RANKS[0]):
        upto = min(at + dice.randrange(size // 2, size), len(RANKS[0]))
        runs.append((len(runs) % 2, at, upto))
        at = upto
    return runs


def in_file(runs: list[Run]) -> list[bytes]:
    return [RANKS[rank][begin:upto] for rank, begin, upto in runs]


def whole(runs: list[Run]) -> int:
    """How many events have none of the places in them at which a rank's text is broken."""
    return sum(len(re.findall(rb'\{"ph".*\}(?=,?\n)', part + b"\n")) for part in in_file(runs))


def heads(runs: list[Run]) -> int:
    """How many events begin in one run and end in another."""
    begun = sum(len(re.findall(rb'\{"(?:ph|p|\Z)|\{\Z', part)) for part in in_file(runs))
    return begun - whole(runs)


RANKS: Final = [rank_text(rank) for rank in range(4)]
MEMBERS: Final = interleaved(Random(13), 4000)  # noqa: S311 - no secret
BUFFERS: Final = interleaved(Random(15), 8000)  # noqa: S311 - no secret
OVER: Final = written_over(Random(11), 4000)  # noqa: S311 - no secret
"""Of seeds by which no two halves of events make one that is sound JSON, which none could tell."""


def of_no_rank(trace: Trace) -> None:
    assert trace.slices["launch"].null_count() == trace.slices.height
    health = trace.view("health").filter(pl.col("check") == "file")
    assert health["verdict"].to_list() == ["unusable"]
    ranks = {name.split()[0] for name in names_in(trace)}
    assert ranks == {"rank0", "rank1", "rank2", "rank3"}


@case(
    "3c", "limit", "4 ranks wrote to one file at once: write one file per rank",
    sound=whole(MEMBERS), lost=800 - whole(MEMBERS), plain_only=True, in_one=True, check=of_no_rank,
)  # fmt: skip
def gzip_members_of_four_ranks(_: Random) -> bytes:
    return b"".join(map(gzip.compress, in_file(MEMBERS)))


@case("4a", "recover", "checksum", "may be altered", sound=N, plain_only=True)
def gzip_with_another_checksum(_: Random) -> bytes:
    return PACKED[:-8] + bytes([PACKED[-8] ^ 255]) + PACKED[-7:]


@case("4b", "recover", "checksum", "may be altered", sound=N, plain_only=True)
def gzip_with_another_length(_: Random) -> bytes:
    return PACKED[:-4] + bytes([PACKED[-4] ^ 255]) + PACKED[-3:]


NO_BLOCK: Final = b"\x06"
"""The begin of a deflate block of a type that there is not."""


@case("4c", "recover", "the compressed data is damaged", sound=1699, lost=1, plain_only=True)
def a_damaged_member_between_sound_ones(dice: Random) -> bytes:
    text = many(dice)
    cuts = [within_event(text, number) for number in (500, 800, 1100)]
    before, sound, damaged, after = (text[a:b] for a, b in pairwise([0, *cuts, len(text)]))
    stream = zlib.compressobj(wbits=31)
    begun = stream.compress(sound) + stream.flush(zlib.Z_SYNC_FLUSH)
    rest = stream.compress(damaged) + stream.flush()
    return gzip.compress(before) + begun + NO_BLOCK + rest + gzip.compress(after)


@case("4d", "accept", "ignored", sound=N, plain_only=True)
def garbage_behind_gzip(dice: Random) -> bytes:
    return PACKED + dice.randbytes(500)


@case("4d", "accept", "ignored", sound=N, plain_only=True)
def zeros_behind_gzip(_: Random) -> bytes:
    return PACKED + bytes(500)


@case(
    "5", "limit", "4 ranks wrote to one file at once: write one file per rank",
    sound=whole(BUFFERS), lost=800 - whole(BUFFERS), in_one=True, check=of_no_rank,
)  # fmt: skip
def bytes_of_four_ranks(_: Random) -> bytes:
    return b"".join(in_file(BUFFERS))


@case(
    "5", "limit", "several ranks wrote to one file at once",
    sound=whole(OVER), lost=heads(OVER), in_one=True,
)  # fmt: skip
def two_ranks_writing_over_each_other(_: Random) -> bytes:
    return b"".join(in_file(OVER))


@case("5", "refuse", "it has no undamaged event")
def nothing_whole_left(dice: Random) -> bytes:
    texts = [rank_text(rank).partition(b'"traceEvents": [')[2] for rank in range(4)]
    parts = [text[at : at + 40] for at in range(200, 4000, 40) for text in texts]
    dice.shuffle(parts)
    return b'{"traceEvents": [\n' + b"".join(parts).replace(b"}", b"")


@case("6a", "accept", sound=N, plain_only=True)
def gzip_under_the_name_of_json(_: Random) -> bytes:
    return PACKED


@case("6b", "accept", sound=N)
def plain_under_any_name(_: Random) -> bytes:
    return GOOD


@case("6c", "refuse", "Perfetto", "not supported")
def perfetto_protobuf(dice: Random) -> bytes:
    return b"\n\x1e\x08\x01\x00\x12" + dice.randbytes(500)


@case("6d", "accept", sound=N, plain_only=True)
def zstd(_: Random) -> bytes:
    return bytes(zstandard.compress(GOOD))


@case("6e", "refuse", "a zip archive: unpack it")
def zip_archive(_: Random) -> bytes:
    return b"PK\x03\x04" + bytes(26) + b"trace.json"


@case("6f", "refuse", "a Git LFS pointer, not the trace: run `git lfs pull`")
def git_lfs_pointer(_: Random) -> bytes:
    return b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n"


@case("6g", "refuse", "an HTML page, not a trace")
def login_page(_: Random) -> bytes:
    return b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>"


@case("6h", "refuse", "Nsight Systems")
def nsys_sqlite(_: Random) -> bytes:
    return b"SQLite format 3\x00" + bytes(84)


@case("6h", "refuse", "Nsight Systems")
def nsys_report(dice: Random) -> bytes:
    return dice.randbytes(12) + b"\x00NVIDIA Nsight Systems 2025.1\x00" + dice.randbytes(80)


@case("6i", "refuse", "TensorFlow or XLA")
def xla_planes(dice: Random) -> bytes:
    return b"\n\x50\x08\x01\x12\x0b/host:CPU-0" + dice.randbytes(80)


@case("6j", "accept", sound=0)
def memory_snapshot(_: Random) -> bytes:
    frames = [{"filename": "train.py", "line": 3, "name": "step"}]
    entry = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 7}
    return pickle.dumps({"segments": [], "device_traces": [[{**entry, "frames": frames}]]})


@case("7a", "refuse", "is empty")
def empty(_: Random) -> bytes:
    return b""


@case("7b", "refuse", "only white space")
def white_space(_: Random) -> bytes:
    return b" \n\t\r\n " * 100


@case("7c", "refuse", "no events")
def null(_: Random) -> bytes:
    return b"null"


@case("7d", "refuse", "no events")
def empty_object(_: Random) -> bytes:
    return b"{}"


@case("7d", "refuse", "no events")
def empty_array(_: Random) -> bytes:
    return b"[]"


@case("7e", "refuse", "no events, only metadata", "process_name `python`")
def only_metadata(_: Random) -> bytes:
    return document([{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}}])


def judged_by_no_rule(trace: Trace) -> None:
    from selftime.advice import advise  # noqa: PLC0415 - loaded where it is needed

    answer = advise(trace)
    assert not answer.findings
    for name in ("overview", "operators", "kernels", "steps", "idle", "launches", "flame"):
        assert trace.view(name).height <= 20


@case("7f", "accept", sound=1, check=judged_by_no_rule)
def one_event(_: Random) -> bytes:
    return document([op(0)])


@case("8a", "accept", sound=N)
def byte_order_mark(_: Random) -> bytes:
    return b"\xef\xbb\xbf" + GOOD


@case("8b", "recover", "UTF-16", sound=N)
def utf_16(_: Random) -> bytes:
    return b"\xff\xfe" + GOOD.decode().encode("utf-16-le")


@case("8b", "recover", "UTF-16", sound=N)
def utf_16_big_endian_without_its_mark(_: Random) -> bytes:
    return GOOD.decode().encode("utf-16-be")


@case("8b", "recover", "UTF-32", sound=N)
def utf_32(_: Random) -> bytes:
    return GOOD.decode().encode("utf-32")


def all_escaped(*shown: str) -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        assert set(shown) <= names_in(trace)

    return check


@case(
    "8c",
    "recover",
    "not UTF-8",
    sound=N,
    check=all_escaped("op\\xe91", "op\\xe81", "op\\xb0\\xa11"),
)
def names_in_other_encodings(_: Random) -> bytes:
    named = {b'"op1"': b'"op\xe91"', b'"op2"': b'"op\xe81"', b'"op3"': b'"op\xb0\xa11"'}
    data = GOOD
    for name, instead in named.items():
        data = data.replace(name, instead)
    return data


@case("8d", "recover", "escape", sound=N, check=all_escaped("op\\ud83d1", "op\\udc001"))
def halves_of_surrogate_pairs(_: Random) -> bytes:
    return GOOD.replace(b'"op1"', b'"op\\ud83d1"').replace(b'"op2"', b'"op\\udc001"')


@case("8e", "recover", "not UTF-8", sound=N, check=all_escaped("op\\xc0\\xaf1", "op\\xf8\\x881"))
def overlong_and_invalid_bytes(_: Random) -> bytes:
    return GOOD.replace(b'"op1"', b'"op\xc0\xaf1"').replace(b'"op2"', b'"op\xf8\x881"')


@case("8f", "recover", "5,000 NUL bytes at the end", "the file ends", sound=N - 1)
def space_set_aside_behind_an_event(_: Random) -> bytes:
    return GOOD[:LAST] + bytes(5000)


@case("8f", "recover", "5,000 NUL bytes at the end", "inside an event", sound=N - 1, lost=1)
def space_set_aside_within_an_event(_: Random) -> bytes:
    return GOOD[: LAST + 30] + bytes(5000)


@case("8f", "recover", "5,000 NUL bytes at the end", sound=N)
def space_set_aside_behind_the_trace(_: Random) -> bytes:
    return GOOD + bytes(5000)


@case("8f", "recover", "NUL bytes: left out", sound=N)
def a_hole_of_nul_bytes_between_events(_: Random) -> bytes:
    return GOOD[:LAST] + bytes(5000) + GOOD[LAST:]


@case("9a", "accept", sound=N)
def line_ends_of_windows(_: Random) -> bytes:
    return GOOD.replace(b"\n", b"\r\n")


@case("9b", "accept", sound=MANY)
def all_on_one_line(dice: Random) -> bytes:
    return many(dice).replace(b"\n", b"")


@case("9c", "accept", sound=N)
def huge_indentation(_: Random) -> bytes:
    return json.dumps({"traceEvents": events()}, indent=2000).encode()


def is_whole(trace: Trace) -> None:
    longest = trace.slices["name"].cast(pl.String).str.len_bytes().max()
    assert longest == LONG


LONG: Final = 10 << 20


@case("9d", "accept", sound=3, check=is_whole, plain_only=True, in_one=True)
def a_name_of_10_mb(_: Random) -> bytes:
    return gzip.compress(document([op(0), op(1, name="x" * LONG), op(2)]), 1)


@case("10b", "refuse", "200 times its size", "SELFTIME_MOST_EXPANSION", plain_only=True)
def a_bomb_of_spaces(_: Random) -> bytes:
    return gzip.compress(b'{"traceEvents": [') + gzip.compress(b" " * (1 << 20)) * 1000


@case("10b", "refuse", "200 times its size", "SELFTIME_MOST_EXPANSION", plain_only=True)
def a_bomb_of_zeros(_: Random) -> bytes:
    return gzip.compress(bytes(1 << 20)) * 1000
