"""Entry 25 of the catalogue: phases."""

from random import Random
from typing import Any

import polars as pl
from tests.ingest.rough.case import Event, N, case, document, names_in
from tests.ingest.rough.looking import added, figures, holds, row, text_of, track_of

from selftime.trace import Trace

__all__ = [
    "a_begin_alone",
    "an_end_alone",
    "asynchronous_spans",
    "begins_and_ends_crossed",
    "complete_events",
    "flows_without_partners",
    "marks_and_counters",
    "names_at_the_end",
    "objects_and_unknown_phases",
]


def half(phase: str, name: str, ts: int, **more: Any) -> Event:
    return {"ph": phase, "cat": "cpu_op", "name": name, "pid": 7, "tid": 9, "ts": ts, **more}


@case("25a", "accept", sound=N, check=holds(lambda trace: names_in(trace) >= {"op3"}))
def complete_events(_: Random) -> bytes:
    return document()


@case("25b", "recover", "an end without a begin: left out", sound=N + 1)
def an_end_alone(_: Random) -> bytes:
    return added(half("E", "alone", 1100))


def _has_no_end(trace: Trace) -> None:
    assert row(trace, "alone")["duration"] is None
    table = trace.view("operators")
    assert "alone" not in table.filter(pl.col("cpu_time_total") > 0)["name"].to_list()


@case("25c", "recover", "a begin without an end", sound=N + 1, check=_has_no_end)
def a_begin_alone(_: Random) -> bytes:
    return added(half("B", "alone", 1100))


def _are_joined_by_name(trace: Trace) -> None:
    assert [row(trace, name)["duration"] for name in "ab"] == [30_000, 30_000]


@case(
    "25d",
    "recover",
    "crosses another event: matched by name",
    sound=N + 4,
    check=_are_joined_by_name,
)
def begins_and_ends_crossed(_: Random) -> bytes:
    return added(*(half(*one) for one in (("B", "a", 1100), ("B", "b", 1110))),
                 *(half(*one) for one in (("E", "a", 1130), ("E", "b", 1140))))  # fmt: skip


def _has_marks_and_samples(trace: Trace) -> None:
    assert trace.instants["name"].to_list() == ["i", "I", "R"]
    assert trace.counters["value"].to_list() == [1.5, 2.0]


@case("25e", "accept", sound=N + 4, check=_has_marks_and_samples)
def marks_and_counters(_: Random) -> bytes:
    marks = [half(phase, phase, 1100 + at) for at, phase in enumerate("iIR")]
    return added(*marks, half("C", "clock", 1105, args={"sm": 1.5, "memory": 2}))


def _is_named(trace: Trace) -> None:
    assert track_of(trace)["name"] == "thread 7 (main)"
    assert track_of(trace)["process_name"] == "python"


@case("25f", "accept", sound=N + 2, check=_is_named)
def names_at_the_end(_: Random) -> bytes:
    named = {"ph": "M", "pid": 7, "tid": 7}
    return added(
        {**named, "name": "process_name", "args": {"name": "python"}},
        {**named, "name": "thread_name", "args": {"name": "thread 7 (main)"}},
    )


def _is_joined_by_number(trace: Trace) -> None:
    assert trace.op_args["forward"].null_count() == trace.op_args.height


@case(
    "25g", "limit", "flow arrows without a start or an end", sound=N + 4, check=_is_joined_by_number
)
def flows_without_partners(_: Random) -> bytes:
    flows = [("s", 1000, 5), ("s", 1010, 5), ("t", 1015, 5), ("f", 1030, 5)]
    return added(*(half(ph, "fwdbwd", ts, id=n, tid=7) | {"cat": "fwdbwd"} for ph, ts, n in flows))


def _lie_on_lanes(trace: Trace) -> None:
    spans = trace.slices.filter(pl.col("category") == "async request").sort("start")
    assert spans.select("name", "duration").rows() == [
        ("GET", 100_000), ("read", 20_000), ("GET", 100_000), ("GET", 50_000),
    ]  # fmt: skip
    tids = trace.tracks["tid"].gather(spans["track"]).to_list()
    assert tids == ["async request 1", "async request 1", "async request 2", "async request 1"]
    assert trace.instants["name"].to_list() == ["first byte"]
    assert not text_of(trace, "categories")
    assert figures(trace)["host threads"] == 1


@case("25h", "accept", sound=N + 9, check=_lie_on_lanes)
def asynchronous_spans(_: Random) -> bytes:
    def span(phase: str, name: str, ts: int, key: Any) -> Event:
        return {**half(phase, name, ts, id=key), "cat": "request", "tid": ts}

    return added(
        span("b", "GET", 1000, 1), span("b", "GET", 1050, "0x2"), span("b", "read", 1010, 1),
        span("n", "first byte", 1020, 1), span("e", "read", 1030, 1), span("e", "GET", 1100, 1),
        span("e", "GET", 1150, "0x2"), span("b", "GET", 1200, 1), span("e", "GET", 1250, 1),
    )  # fmt: skip


@case("25i", "recover", "objects, `N`", "objects, `O`", "objects, `D`", "unknown phase, `?`",
      sound=N + 4)  # fmt: skip
def objects_and_unknown_phases(_: Random) -> bytes:
    return added(*(half(phase, "Tensor", 1100) for phase in "NOD?"))
