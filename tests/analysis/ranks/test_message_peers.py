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
ALL = {"pg_name": "0", "pg_desc": "default_pg", "ranks": "[0, 1, 2, 3]", "pg_size": 4}


@pytest.mark.parametrize(
    ("groups", "sent_to", "received_from"),
    [
        (None, [3, 1], [1]),
        ([ALL], [3, 1], [1]),
        ([ALL, DATA, PIPELINE], [None, 2], [2]),
        ([ALL, DATA], [None, None], [None]),
    ],
)
def test_calls_tell_the_other_rank(
    groups: list[Any] | None,
    sent_to: list[int | None],
    received_from: list[int | None],
    tmp_path: Path,
) -> None:
    found = collectives_of_trace(
        trace_of(tmp_path, [("send", 3), ("recv_", 1), ("send", 1)], groups)
    )
    assert found["collective"].to_list() == ["send", "recv", "send"]
    assert found["destination"].to_list() == [sent_to[0], None, sent_to[1]]
    assert found["source"].to_list() == [None, received_from[0], None]


def test_a_message_that_no_call_is_known_of_has_no_peer(tmp_path: Path) -> None:
    found = collectives_of_trace(trace_of(tmp_path, [("isend", 3)], None))
    assert found["destination"].to_list() == [None]
