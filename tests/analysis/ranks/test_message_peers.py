"""Whom a rank sends messages to on the host."""

import json
from pathlib import Path
from typing import Any

import pytest

from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.ingest.load import load
from selftime.trace import Trace


def trace_of(folder: Path, messages: list[tuple[str, int]], groups: list[Any] | None) -> Trace:
    """The trace of a rank that sends and receives messages of these ranks of its group."""
    events: list[dict[str, Any]] = []
    for number, (kind, peer) in enumerate(messages):
        inputs = {"Concrete Inputs": ["", "", str(peer), "0"], "Input Dims": [[[4]], [], [], []]}
        called = {"name": f"c10d::{kind}", "cat": "cpu_op", "ts": 10 * number, "dur": 4}
        run = {"name": f"gloo:{kind.rstrip('_')}", "cat": "user_annotation", "dur": 25}
        events += [called | {"args": inputs}, run | {"ts": 10 * number + 3}]
    info: dict[str, Any] = {"backend": "gloo", "rank": 2, "world_size": 4}
    if groups is not None:
        info["pg_config"] = groups
    path = folder / "rank2.json"
    listed = [{"ph": "X", "pid": 1, "tid": 1} | event for event in events]
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": listed}))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


PIPELINE = {"pg_name": "1", "pg_desc": "mesh_pp", "ranks": "[0, 2]", "pg_size": 2}
DATA = {"pg_name": "2", "pg_desc": "mesh_dp", "ranks": "[2, 3]", "pg_size": 2}
OTHERS = {"pg_name": "3", "pg_desc": "undefined", "ranks": "[1, 3, 2]", "pg_size": 3}
ALL = {"pg_name": "0", "pg_desc": "default_pg", "ranks": "[0, 1, 2, 3]", "pg_size": 4}


@pytest.mark.parametrize(
    ("peers", "groups", "others"),
    [
        ([3, 1], None, [3, 1]),
        ([3, 1], [ALL], [3, 1]),
        ([3, 1], [ALL, DATA, PIPELINE], [3, 1]),  # only one of the groups has a fourth rank
        ([0, 0], [ALL, DATA, PIPELINE], [0, 0]),  # a rank sends nothing to itself
        ([1, 1], [ALL, DATA], [None, None]),
        ([0, 1], [ALL, OTHERS], [None, None]),
        ([0, 1], [ALL, OTHERS | {"pg_desc": "mesh_pp"}], [1, 3]),
    ],
)
def test_calls_tell_the_other_rank(
    peers: list[int], groups: list[Any] | None, others: list[int | None], tmp_path: Path
) -> None:
    one, other = peers
    messages = [("send", one), ("recv_", other), ("send", other)]
    found = collectives_of_trace(trace_of(tmp_path, messages, groups))
    assert found["collective"].to_list() == ["send", "recv", "send"]
    assert found["destination"].to_list() == [others[0], None, others[1]]
    assert found["source"].to_list() == [None, others[1], None]


def test_a_message_that_no_call_is_known_of_has_no_peer(tmp_path: Path) -> None:
    found = collectives_of_trace(trace_of(tmp_path, [("isend", 3)], None))
    assert found["destination"].to_list() == [None]


def test_in_a_job_of_two_the_other_rank_is_the_peer_of_any_message(tmp_path: Path) -> None:
    path = tmp_path / "rank1.json"
    event = {"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation", "dur": 2}
    events = [event | {"name": f"gloo:{kind}", "ts": 1} for kind in ("send", "recv", "all_reduce")]
    info = {"backend": "gloo", "rank": 1, "world_size": 2}
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    found = collectives_of_trace(trace).sort("collective")
    assert found["collective"].to_list() == ["allreduce", "recv", "send"]
    assert found["source"].to_list() == [None, 0, None]
    assert found["destination"].to_list() == [None, None, 0]
