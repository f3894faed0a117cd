"""Dumps of the Flight Recorder are read by content, and what a pickle holds is never run."""

import gzip
import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dumps import DONE, QUEUED, RUNNING, Entry, as_json, dump, write_job
from tests.ledgers import Step, write_ledger

from selftime.errors import UnreadableTrace
from selftime.flight_recorder import CallState, Place
from selftime.ingest.flight_recorder.evidence_files import read_hang_evidence
from selftime.ingest.flight_recorder.restricted_pickle import MAX_DEPTH, read_restricted_pickle

TWO = [Entry("all_reduce"), Entry("all_reduce", RUNNING)]

numbers = st.integers(-(1 << 63), (1 << 63) - 1)
plain_values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(plain_values, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    assert read_restricted_pickle(pickle.dumps(value, protocol)) == value


@given(st.binary(), st.sampled_from([3, 4, 5]))
def test_bytes_are_read(value: bytes, protocol: int) -> None:
    assert read_restricted_pickle(pickle.dumps([value], protocol)) == [value]


@given(st.data())
def test_a_pickle_that_is_cut_off_is_refused(data: st.DataObject) -> None:
    whole = pickle.dumps(dump(TWO), data.draw(st.sampled_from([2, 4])))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(UnreadableTrace, match=r"ends too early|damaged"):
        read_restricted_pickle(cut)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_plain_value_or_refused(data: bytes) -> None:
    try:
        value = read_restricted_pickle(b"\x80\x02" + data)
    except UnreadableTrace:
        return
    assert value is None or type(value) in {bool, int, float, str, bytes, list, tuple, dict}


class Runs:
    """Pickled as a call of `os.system`, as a hostile file has it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_would_run_code_is_refused_and_not_run(protocol: int, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hostile = pickle.dumps({**dump(TWO), "comm_lib_version": Runs(ran)}, protocol)
    with pytest.raises(UnreadableTrace, match=r"would load or call `posix\.system`, which no dump"):
        read_restricted_pickle(hostile)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (b"ios\nsystem\n.", r"`os\.system`"),  # INST
        (b"cos\nsystem\nR.", r"`os\.system`"),  # GLOBAL and REDUCE
        (b"X\x01\x00\x00\x00aQ.", "an object"),  # BINPERSID
        (b"Pa\n.", "an object"),  # PERSID
        (b"\x82\x01.", "an object"),  # EXT1
        (b"}}b.", "an object"),  # BUILD
        (b"((l\x81.", "an object"),  # NEWOBJ
        (b"I1\n.", "operation that no dump has"),
        (b"\x8f.", "operation that no dump has"),  # EMPTY_SET
        (b"\x8a\x09" + b"\xff" * 9 + b".", "damaged"),  # more than 64 bits
        (b"\x8b\xff\xff\xff\x7f.", "operation that no dump has"),  # LONG4
        (b"}]K\x01s.", "damaged"),  # a list as a key
        (b"}K\x01K\x01\x86K\x01s.", "damaged"),  # a tuple as a key
        (b"h\x00.", "damaged"),  # never stored
        (b"(.", "damaged"),
        (b".", "damaged"),
        (b"NN.", "damaged"),
        (b"\xff.", "damaged"),
        (b"X\xff\xff\xff\x7fa.", "ends too early"),
        (b"\x8d" + struct.pack("<Q", 1 << 60) + b".", "ends too early"),
        (b"]" * (MAX_DEPTH + 2) + b"a" * (MAX_DEPTH + 1) + b".", "within each other"),
        (b"(" * 100_000, "ends too early"),
    ],
)
def test_what_is_refused(program: bytes, told: str) -> None:
    with pytest.raises(UnreadableTrace, match=told):
        read_restricted_pickle(b"\x80\x02" + program)


def test_containers_that_share_each_other_take_no_longer_than_they_are() -> None:
    doubled = b"".join(b"](h%ch%ceq%c0" % (n - 1, n - 1, n) for n in range(1, MAX_DEPTH))
    value = read_restricted_pickle(b"\x80\x02]q\x000" + doubled + b"h%c." % (MAX_DEPTH - 1))
    assert value[0] is value[1]
    own = read_restricted_pickle(b"\x80\x02]q\x00h\x00a.")
    assert own[0] is own


def test_a_pickle_a_json_and_a_packed_dump_tell_the_same_calls(tmp_path: Path) -> None:
    values = dump(TWO)
    files = {
        "nccl_trace_rank_0": pickle.dumps(values, 2),
        "rank1.anything": as_json(values).encode(),
        "2": gzip.compress(pickle.dumps(values, 4)),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    values["pg_config"]["0"]["ranks"] = "[0, 1, 2]"
    (tmp_path / "2").write_bytes(gzip.compress(pickle.dumps(values, 4)))
    found = read_hang_evidence([str(tmp_path)])
    assert list(found.dumps) == [0, 1, 2]
    without = [[call._replace(place=None) for call in d.calls] for d in found.dumps.values()]
    assert without[0] == without[1] == without[2]
    assert [c.state for c in found.dumps[0].calls] == [CallState.completed, CallState.started]
    assert found.dumps[0].calls[0].place == Place("/project/train.py", 10, "train")
    assert found.dumps[1].calls[0].place is None
    assert found.unread == ()


@pytest.mark.parametrize("version", ["1.5", "2.0", "2.3", "2.4", "2.7", "2.9", "2.10"])
def test_versions(version: str, tmp_path: Path) -> None:
    values = dump(TWO, version=version)
    minor = [int(part) for part in version.split(".")]
    for entry in values["entries"]:
        if minor < [2, 0]:
            entry["seq_id"] = entry.pop("collective_seq_id")
            del entry["p2p_seq_id"], entry["process_group"], entry["is_p2p"]
        if minor < [2, 9]:
            del entry["thread_id"], entry["thread_name"]
        if minor < [2, 4]:
            del entry["input_dtypes"], entry["output_dtypes"], entry["timeout_ms"]
    write_job(tmp_path, {0: values})
    [dumped] = read_hang_evidence([str(tmp_path)]).dumps.values()
    assert [(c.group, c.sequence, c.operation) for c in dumped.calls] == [
        ("0", 1, "all_reduce"),
        ("0", 2, "all_reduce"),
    ]
    assert dumped.version == version


def test_numbers_that_are_written_as_texts(tmp_path: Path) -> None:
    values = dump(TWO)
    for entry in values["entries"]:
        entry["collective_seq_id"] = str(entry["collective_seq_id"])
        entry["input_dtypes"] = "float32"
    write_job(tmp_path, {0: values})
    [dumped] = read_hang_evidence([str(tmp_path)]).dumps.values()
    assert [c.sequence for c in dumped.calls] == [1, 2]
    assert dumped.calls[0].input_dtypes == ("float32",)


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        (Entry("all_reduce", DONE), CallState.completed),
        (Entry("all_reduce", RUNNING), CallState.started),
        (Entry("all_reduce", QUEUED), CallState.scheduled),
        (Entry("all_reduce", RUNNING, retired=True), CallState.timed_out),
    ],
)
def test_states(entry: Entry, state: CallState, tmp_path: Path) -> None:
    write_job(tmp_path, {0: [entry]})
    assert read_hang_evidence([str(tmp_path)]).dumps[0].calls[0].state is state


def test_gloo_tells_that_a_call_is_retired_and_not_that_it_completed(tmp_path: Path) -> None:
    entry = Entry("all_reduce", QUEUED, retired=True)
    write_job(tmp_path, {0: [entry]}, backend="gloo")
    assert read_hang_evidence([str(tmp_path)]).dumps[0].calls[0].state is CallState.ended


def test_entries_that_cannot_be_read_are_counted_and_the_others_hold(tmp_path: Path) -> None:
    values = dump(TWO)
    values["entries"] += [None, 7, {}, {**values["entries"][0], "collective_seq_id": -1}]
    values["entries"].append({**values["entries"][0], "input_sizes": "x", "frames": [[1], {}]})
    write_job(tmp_path, {0: values})
    dumped = read_hang_evidence([str(tmp_path)]).dumps[0]
    assert (len(dumped.calls), dumped.unread_entries) == (3, 4)
    assert dumped.calls[2].input_sizes == ()


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("nccl_trace_rank_1", b"", "it is empty"),
        ("nccl_trace_rank_1", pickle.dumps(dump(TWO), 2)[:-40], "ends too early"),
        ("nccl_trace_rank_1", pickle.dumps([1, 2]), "something else than a dump"),
        ("nccl_trace_rank_1", pickle.dumps(Path("x")), "would load or call `pathlib.PosixPath`"),
        ("rank1.json", as_json(dump(TWO))[:-9].encode(), "JSON that is cut off or damaged"),
        ("rank1.json", b'{"entries": ' + b"[" * 99_999, "JSON that is"),
        ("trace", pickle.dumps(dump(TWO)), "its rank is unknown"),
        ("nccl_trace_rank_9", pickle.dumps(dump(TWO)), "named as of rank 9, but its process"),
        ("a.run.jsonl", b'{"format":"selftime.ledger/1"}\n', "whose rank is unknown"),
        ("a.run.jsonl", b'{"format":"selftime.ledger/1","rank":1}\n', "without a stack"),
    ],
)
def test_a_file_that_cannot_be_read_is_listed_and_the_others_hold(
    name: str, data: bytes, told: str, tmp_path: Path
) -> None:
    write_job(tmp_path, {0: TWO})
    (tmp_path / name).write_bytes(data)
    found = read_hang_evidence([str(tmp_path)])
    assert list(found.dumps) == [0]
    [(path, reason)] = found.unread
    assert path == str(tmp_path / name)
    assert told in reason


def test_the_rank_is_the_one_that_all_groups_share_where_no_name_tells(tmp_path: Path) -> None:
    values = dump(
        TWO, groups={"0": ("default_pg", (0, 1, 2)), "1": ("a", (1, 2)), "2": ("b", (1,))}
    )
    (tmp_path / "trace").write_bytes(pickle.dumps(values))
    assert list(read_hang_evidence([str(tmp_path)]).dumps) == [1]


def test_of_several_dumps_of_a_rank_the_latest_is_judged_else_that_with_lines(
    tmp_path: Path,
) -> None:
    write_job(tmp_path / "a", {0: TWO[:1]})
    write_job(tmp_path / "b", {0: TWO})
    (tmp_path / "b" / "z_rank_0.json").write_text(as_json(dump(TWO)))
    found = read_hang_evidence([str(tmp_path)])
    assert found.dumps[0].source == str(tmp_path / "b" / "nccl_trace_rank_0")
    assert [rank for rank, _ in found.superseded] == [0, 0]


def test_other_files_are_counted_and_left_out(tmp_path: Path) -> None:
    write_job(tmp_path, {0: TWO})
    (tmp_path / "trace.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    (tmp_path / "notes.txt").write_text("entries")
    found = read_hang_evidence([str(tmp_path)])
    assert (found.other_files, found.unread) == (2, ())


def test_a_path_without_anything_to_judge_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match=r"holds no dump .* none of its files is one"):
        read_hang_evidence([str(tmp_path)])
    with pytest.raises(UnreadableTrace, match="there is no such file"):
        read_hang_evidence([str(tmp_path / "gone")])
    with pytest.raises(UnreadableTrace, match="the path is empty"):
        read_hang_evidence([""])
    (tmp_path / "nccl_trace_rank_0").write_bytes(b"")
    with pytest.raises(UnreadableTrace, match="it is empty"):
        read_hang_evidence([str(tmp_path)])


def ledger(path: Path, rank: int, standing: list[dict[str, Any]]) -> Path:
    """A ledger of a process of a rank, whose last lines are these."""
    write_ledger(path, [Step(10)] * 3, whole=False)
    lines = path.read_text().splitlines()
    head = {**json.loads(lines[0]), "rank": rank}
    path.write_text(
        "\n".join([json.dumps(head, separators=(",", ":")), *lines[1:], *map(json.dumps, standing)])
    )
    return path


def test_a_ledger_tells_the_line_at_which_a_rank_stands(tmp_path: Path) -> None:
    s = 1_000_000_000
    place = {"part": "program", "file": "/project/eval.py", "line": 88, "function": "evaluate"}
    standing = [
        {"activity": 77, **place},
        {"open": 2 * s, "until": 5 * s, "kind": -2, "readings": [[77, 3 * s, 9]]},
        {"open": 2 * s, "until": 6 * s, "kind": -2, "readings": [[0, 1, 1], [77, s, 9]]},
    ]
    path = ledger(tmp_path / "a.run.jsonl", 3, standing)
    with path.open("a") as file:
        file.write('\n{"open": 2')  # cut off, where the process was killed
    seen = read_hang_evidence([str(path)]).sightings[3]
    assert seen.place == Place("/project/eval.py", 88, "evaluate")
    assert (seen.standing_ns, seen.last_ns - seen.began_ns) == (4 * s, 5 * s)
    assert seen.seen_ns == seen.last_ns
    assert seen.status is None


def test_the_rank_of_a_ledger_is_that_of_the_trace_of_its_process(tmp_path: Path) -> None:
    path = write_ledger(tmp_path / "host_4711_20260102-030405.run.jsonl", [Step(10, line=3)])
    (tmp_path / "host_rank2_4711_20260102-030406.pt.trace.json.gz").write_bytes(b"")
    assert list(read_hang_evidence([str(path)]).sightings) == [2]


def test_a_ledger_of_another_run_is_left_out(tmp_path: Path) -> None:
    write_job(tmp_path, {0: TWO})  # at the time at which the ledger begins
    ledger(tmp_path / "a.run.jsonl", 0, [])
    late = ledger(tmp_path / "b.run.jsonl", 0, [])
    text = late.read_text().replace('"time":17000', '"time":18000')
    assert text != late.read_text()
    late.write_text(text)
    found = read_hang_evidence([str(tmp_path)])
    assert found.sightings[0].source.endswith("a.run.jsonl")
    assert [reason for _, reason in found.unread] == ["it is a ledger of rank 0 in another run"]
