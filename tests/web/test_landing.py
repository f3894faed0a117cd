"""What opens first where two traces are named: their comparison, if they can be compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from werkzeug.test import Client

from selftime.web import PageApp, TracesAtPaths

Write = Callable[..., Path]


def call(start: int) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": start, "dur": 2}


def landings(*paths: Path) -> list[str]:
    client = Client(PageApp(TracesAtPaths(map(str, paths))))
    listed: Any = client.get("/api/traces").json
    contents: list[Any] = [
        client.get(f"/api/contents?.trace={one['id']}").json for one in listed["traces"]
    ]
    return [one["landing"] for one in contents]


def test_two_that_are_named_open_at_their_comparison(write: Write) -> None:
    before, after = write("before.json"), write("after.json", [call(1)])
    assert landings(before, after) == ["compare", "answer"]
    assert landings(before) == ["answer"]


def test_those_of_a_folder_were_not_named(write: Write) -> None:
    folder = write("runs/a.json").parent
    write("runs/b.json", [call(1)])
    assert "compare" not in landings(folder)


def test_two_ranks_of_a_job_open_at_the_job(write: Write) -> None:
    ranks = [
        write(f"rank{n}.json", [call(n)], distributedInfo={"rank": n, "world_size": 2})
        for n in range(2)
    ]
    assert landings(*ranks) == ["distributed", "distributed"]


def test_what_cannot_be_compared_opens_as_it_is(write: Write) -> None:
    memory = {
        "ph": "i",
        "name": "[memory]",
        "cat": "cpu_instant_event",
        "pid": 1,
        "tid": 1,
        "ts": 1,
    }
    arguments = {"Device Type": 0, "Device Id": -1, "Bytes": 8, "Addr": 1, "Total Allocated": 8}
    snapshot = write("peak.json", [{**memory, "args": arguments}])
    assert landings(write("a.json"), snapshot) == ["answer", "memory"]
