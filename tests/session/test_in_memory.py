"""What is counted from memory is what would be counted from the trace file."""

import threading
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.experimental import experimental_config

torch = pytest.importorskip("torch")

from torch._C._autograd import _KinetoEvent  # noqa: E402 - after torch

import selftime  # noqa: E402 - likewise
from selftime.capture.in_memory.events import are_kineto_events_supported  # noqa: E402 - likewise
from selftime.capture.in_memory.tables import OptionalOperatorColumns, trace_tables_of_recording  # noqa: E402 - likewise

if TYPE_CHECKING:
    from tests.session.conftest import Recording

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not are_kineto_events_supported(),
        reason="this PyTorch's events tell too little; files are read instead",
    ),
]

TABLE = [
    *("name", "kind", "input_shapes", "overload", "count"),
    *("self_cpu_time_total", "cpu_time_total", "cpu_time", "cpu_time_max"),
    *("self_device_time_total", "device_time_total"),
    *("self_cpu_memory_usage", "cpu_memory_usage"),
    *("self_device_memory_usage", "device_memory_usage"),
]
"""What a table in torch's form shows, but for stacks."""


def in_memory_trace(prof: Any, by: str = "name") -> selftime.Trace | None:
    shapes = "shape" in by and bool(prof.record_shapes or prof.with_flops)
    wanted = OptionalOperatorColumns(
        shapes=shapes, overloads="overload" in by, flops=bool(prof.with_flops)
    )
    return trace_tables_of_recording(prof.profiler.kineto_results, wanted)


def table(trace: selftime.Trace | None, prof: Any, **options: Any) -> pl.DataFrame:
    assert trace is not None
    columns = [*TABLE, *(["flops"] if prof.with_flops else [])]
    found = trace.view("operators", python=bool(prof.with_stack), **options).select(columns)
    return found.cast({"name": pl.String}).sort(columns, nulls_last=True)


@pytest.mark.parametrize("by", ["name", "shape+overload"])
@pytest.mark.sweep(10)
def test_is_what_the_file_tells(recording: "Recording", by: str) -> None:
    prof = recording.profiler
    ours, files = in_memory_trace(prof, by), prof.trace()

    for top_level in (False, True):
        mine = table(ours, prof, by=by, top_level=top_level)
        assert mine.height > 0
        assert_frame_equal(mine, table(files, prof, by=by, top_level=top_level))


def test_its_tables_are_as_they_are_declared(recording: "Recording") -> None:
    trace = in_memory_trace(recording.profiler, "shape+overload")

    assert trace is not None
    for name, found in trace.tables().items():
        declared = selftime.schema.TABLES[name]
        assert dict(found.schema) == declared.dtypes, name
        for column in declared.columns:
            assert column.nullable or not found[column.name].null_count(), (name, column.name)


def unfinished() -> Any:
    """A recording that stops while two annotations last, one of them on another thread."""
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        with selftime.record_function("elsewhere"):
            torch.ones(3)
            begun.set()
            over.wait()

    other = threading.Thread(target=wait)
    everywhere = experimental_config(profile_all_threads=True)
    here = selftime.record_function("here")
    with selftime.profile(experimental_config=everywhere) as prof:
        other.start()
        begun.wait()
        here.__enter__()  # type: ignore[no-untyped-call]  # torch
        torch.ones(3)
    here.__exit__(None, None, None)
    over.set()
    other.join()
    return prof


def test_what_had_not_ended_has_no_time() -> None:
    prof = unfinished()
    rows = {row["name"]: row for row in table(in_memory_trace(prof), prof).iter_rows(named=True)}

    assert rows["here"]["count"] == rows["elsewhere"]["count"] == 1
    assert rows["here"]["cpu_time_total"] is rows["elsewhere"]["cpu_time_total"] is None
    assert rows["aten::ones"]["cpu_time_total"] > 0
    assert_frame_equal(table(in_memory_trace(prof), prof), table(prof.trace(), prof))


def test_an_empty_recording_has_an_empty_table() -> None:
    prof = selftime.profile()
    prof.start()
    prof.stop()
    trace = in_memory_trace(prof)

    assert trace is not None
    assert trace.view("operators").height == len(prof.key_averages())


def test_names_are_as_the_program_gave_them() -> None:
    name = 'a "quoted"\\ name\nof 2 lines; ünïcödé \U0001f525'
    with selftime.profile() as prof, selftime.record_function(name):
        torch.ones(3)

    assert name in {row.key for row in prof.key_averages()}


def simple() -> Any:
    with selftime.profile() as prof:
        torch.ones(3)
    return prof


def count(prof: Any, name: str) -> int:
    counts: dict[str, int] = {row.key: row.count for row in prof.key_averages()}
    return counts[name]


def test_no_file_is_written_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    prof = simple()
    monkeypatch.setattr(prof, "write_trace", None)

    assert count(prof, "aten::ones") == 1


def test_a_pytorch_that_tells_less_has_a_file_read(monkeypatch: pytest.MonkeyPatch) -> None:
    prof = simple()
    monkeypatch.delattr(_KinetoEvent, "is_hidden_event")

    assert in_memory_trace(prof) is None
    assert count(prof, "aten::ones") == 1


def test_a_name_that_is_no_text_has_a_file_read(monkeypatch: pytest.MonkeyPatch) -> None:
    prof = simple()
    monkeypatch.setattr(_KinetoEvent, "name", lambda _: b"\xff".decode("utf-8"))

    assert in_memory_trace(prof) is None


def test_shapes_are_read_once_they_are_asked_for() -> None:
    with selftime.profile(record_shapes=True) as prof:
        torch.ones(3).add(1)
        torch.ones(4).add(1)

    assert count(prof, "aten::add") == 2
    shapes = [r.input_shapes for r in prof.key_averages(group_by_input_shape=True)]
    assert [[3], [], []] in shapes
    assert [[4], [], []] in shapes
    assert count(prof, "aten::add") == 2


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_each_recording_has_tables_of_its_own() -> None:
    prof = selftime.profile()
    counts = []
    for number in (1, 2):
        with prof:
            for _ in range(number):
                torch.ones(3)
        counts.append(count(prof, "aten::ones"))

    assert counts == [1, 2]
