"""A trace in the trace-event format is the same trace when it is read again."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.reports.export.drawn import HOSTILE, REAL, everything, read, traces

from selftime.errors import UsageError
from selftime.ingest.load import load
from selftime.ingest.times.nanosecond_conversion import to_nanoseconds
from selftime.reports.export import export
from selftime.reports.export.chrome_args import decimal_microseconds_expression
from selftime.rewrite.event_times import microseconds_json
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views import VIEWS

FILE = ("events", "repairs", "clipped")
"""Tables that tell of the file, not of what was recorded."""


def again(trace: Trace, path: Path) -> Trace:
    export(trace, path, to="chrome")
    found = load(path, cache=False)
    assert isinstance(found, Trace)
    return found


def written(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text(), parse_float=Decimal)["traceEvents"]
    return events


def assert_same(found: Trace, trace: Trace) -> None:
    """Every table but those on the file; threads are numbered as they come."""
    for name, table in trace.tables().items():
        if name not in FILE:
            own, other = (t.drop("thread", strict=False) for t in (table, found.tables()[name]))
            assert_frame_equal(other, own, categorical_as_str=True)
    assert found.origin == trace.origin


def test_nothing_recorded_is_a_valid_file(tmp_path: Path) -> None:
    export(Trace(), tmp_path / "a.json", to="chrome")
    assert written(tmp_path / "a.json") == []


def test_a_thing_of_every_kind(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    assert trace.tracks["kind"].n_unique() > 2
    assert_same(again(trace, tmp_path / "again.json"), trace)


def test_the_second_time_changes_nothing(tmp_path: Path) -> None:
    once = again(everything(tmp_path / "trace.json"), tmp_path / "once.json")
    again(once, tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == (tmp_path / "once.json").read_bytes()


def test_names_are_what_they_were(tmp_path: Path) -> None:
    export(everything(tmp_path / "trace.json"), tmp_path / "a.json", to="chrome")
    names = {event["name"] for event in written(tmp_path / "a.json")}
    assert names >= {name or "(no name)" for name in HOSTILE}


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    start = 1_712_000_000_123_456_789
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": at, "dur": 1}
        for at in (0, 1)
    ]
    text = json.dumps(events).replace('"ts": 0', f'"ts": {start // 1000}.{start % 1000:03}')
    text = text.replace('"ts": 1,', f'"ts": {start // 1000 + 5}.001,').replace(
        '"dur": 1', '"dur": 0.007'
    )
    path = tmp_path / "trace.json"
    path.write_text(text)
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    found = again(trace, tmp_path / "again.json")
    assert found.origin == start
    document = json.loads((tmp_path / "again.json").read_text(), parse_float=Decimal)
    times = [event["ts"] for event in document["traceEvents"] if event["ph"] == "X"]
    day = document["baseTimeNanoseconds"]
    assert day == start - start % 86_400_000_000_000
    exact = [Decimal(start - day) / 1000, (start - day) // 1000 + 5 + Decimal("0.001")]
    assert [round(time, 3) for time in times] == exact
    assert found.slices["duration"].to_list() == [7, 7]


@given(st.integers(0, 86_400_000_000_000 + (1 << 45)))
def test_a_double_of_the_written_time_is_the_nanosecond(time: int) -> None:
    """By rounding, and by dropping what is beyond, as Perfetto does."""
    column = pl.DataFrame({"at": [time]})
    [text] = column.select(decimal_microseconds_expression(pl.col("at"))).to_series()
    assert int(float(text) * 1000.0) == round(float(text) * 1000.0) == time
    assert to_nanoseconds([float(text)]).tolist() == [time]
    scalar = float(bytes(microseconds_json(time)))
    assert int(scalar * 1000.0) == round(scalar * 1000.0) == time


def test_a_recorder_that_wrote_no_base_is_still_known(tmp_path: Path) -> None:
    """By it call stacks of old recorders are told from those of today, which are of definitions."""
    event = {
        "ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1_712_000_000_000_000.5,
        "dur": 2, "args": {"External id": 1, "Call stack": "train.py(3): main"},
    }  # fmt: skip
    trace = read(tmp_path / "trace.json", [event])
    found = again(trace, tmp_path / "again.json")
    assert_frame_equal(found.lines, trace.lines, categorical_as_str=True)
    assert trace.lines["how"].to_list() == ["stack"]
    assert found.metadata["selftime_clock"] == {"format": "selftime.clock/1", "base_added": True}


def test_slices_of_one_thread_nest(tmp_path: Path) -> None:
    export(everything(tmp_path / "trace.json"), tmp_path / "a.json", to="chrome")
    threads: dict[Any, list[tuple[Decimal, Decimal]]] = {}
    for event in written(tmp_path / "a.json"):
        if event["ph"] == "X" and "dur" in event:
            start = Decimal(event["ts"])
            threads.setdefault((event["pid"], event["tid"]), []).append(
                (start, start + event["dur"])
            )
    assert len(threads) > 3
    for spans in threads.values():
        for start, end in spans:
            for other, done in spans:
                assert not start < other < end < done


def test_arrows_have_both_ends(tmp_path: Path) -> None:
    export(everything(tmp_path / "trace.json"), tmp_path / "a.json", to="chrome")
    ends: dict[Any, list[str]] = {}
    for event in written(tmp_path / "a.json"):
        if event["ph"] in "sf":
            ends.setdefault((event["cat"], event["id"]), []).append(event["ph"])
    assert sorted(kind for kind, _ in ends) == ["ac2g", "ac2g", "ac2g", "fwdbwd"]
    assert {tuple(sorted(both)) for both in ends.values()} == {("f", "s")}


def test_a_name_that_ends_in_gz_packs_it(tmp_path: Path) -> None:
    trace = sketch("cpu 1 | aa")
    export(trace, tmp_path / "a.json.gz", to="chrome")
    export(trace, tmp_path / "a.json", to="chrome")
    assert (
        gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()
    )


def test_the_trace_itself_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    trace = everything(path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is the trace itself"):
        export(trace, path, to="chrome")
    assert path.read_bytes() == before


def test_keys_beside_the_events_stay(tmp_path: Path) -> None:
    keys = {"distributedInfo": {"rank": 3}, 'a "key"': [1, {"b": None}]}
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    trace = read(tmp_path / "trace.json", [event], **keys)
    found = again(trace, tmp_path / "again.json")
    assert {key: found.metadata[key] for key in keys} == keys


@given(traces())
def test_drawn_traces_stay_what_they_are(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    export(trace, folder / "drawn.json", to="chrome")
    if not trace.slices.height:
        return
    once = load(folder / "drawn.json", cache=False)
    assert isinstance(once, Trace)
    figures = [pl.len(), pl.col("duration").sum()]
    key = [pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)]
    own, other = (
        t.slices.group_by(key).agg(figures).sort("category", "name") for t in (trace, once)
    )
    assert_frame_equal(other, own)
    assert_same(again(once, folder / "again.json"), once)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.sweep
def test_a_real_trace_gives_the_same_tables_and_views(
    name: str, real_traces: Path, tmp_path: Path
) -> None:
    trace = load(real_traces / f"{name}.json.gz")
    assert isinstance(trace, Trace)
    found = again(trace, tmp_path / "again.json")
    assert_same(found, trace)
    for view in VIEWS.values():
        if not view.compares_ranks and view.name not in {
            "health",
            "slice",
            "occurrences",
            "selection",
        }:
            assert_frame_equal(found.view(view.name), trace.view(view.name))
    checks = ["check", "verdict", "value"]
    assert_frame_equal(found.view("health").select(checks), trace.view("health").select(checks))
