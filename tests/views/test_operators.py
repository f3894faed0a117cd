from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from selftime.errors import UsageError
from selftime.intervals import length, union
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000

NETWORK = """
    t = train
    f = aten::linear; input_shapes = [[2, 3], [3, 4]]; input_types = ["float", "float"]
    g = aten::linear; input_shapes = [[2, 9], [9, 4]]; input_types = ["float", "float"]
    m = aten::mm; line = train.py:12 step
    k = gemm
    mark 1 | tttttttttttt
    cpu 1  |  ffffff ggg
    cpu 1  |   mmm    m
    call 1 |    k     k
    gpu 7  |      kk   kkkk
    cpu 2  |  mm
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return operators(trace, **options).select(columns).rows()


def test_nothing_recorded_has_no_operators() -> None:
    assert operators(Trace()).is_empty()
    assert operators(Trace(), by="shape+type+stack+line+overload", within="train").is_empty()


def test_tells_self_and_total_time_of_host_and_device() -> None:
    columns = ("name", "kind", "count", "self_cpu_time_total", "cpu_time_total")
    device = ("self_device_time_total", "device_time_total")

    assert rows(sketch(NETWORK), *columns, *device, sort="total") == [
        #                              self      total     self device
        ("train", "annotation", 1, 30 * US, 120 * US, 0, 60 * US),
        ("aten::linear", "operator", 2, 50 * US, 90 * US, 0, 60 * US),
        ("aten::mm", "operator", 3, 40 * US, 60 * US, 60 * US, 60 * US),
        ("gemm", "call", 2, 20 * US, 20 * US, 0, 0),
        ("gemm", "kernel", 2, 0, 0, 60 * US, 60 * US),
    ]


def test_shares_are_of_all_host_and_of_all_device_time() -> None:
    columns = ("name", "self_cpu_share", "self_device_share", "cpu_time", "device_time")

    assert rows(sketch(NETWORK), *columns, sort="total") == [
        ("train", 30 / 140, 0.0, 120 * US, 60 * US),
        ("aten::linear", 50 / 140, 0.0, 45 * US, 30 * US),
        ("aten::mm", 40 / 140, 1.0, 20 * US, 20 * US),
        ("gemm", 20 / 140, 0.0, 10 * US, 0.0),
        ("gemm", 0.0, 1.0, 0.0, 30 * US),
    ]


def test_what_the_trace_does_not_tell_is_unknown() -> None:
    table = operators(sketch("cpu 1 | aa"))

    for column in ("self_device_share", "self_cpu_memory_usage", "device_memory_usage", "flops"):
        assert table[column].to_list() == [None], column


def test_a_run_without_an_end_counts_and_has_no_time() -> None:
    trace = sketch("cpu 1 | aa bbb a")
    ends = trace.slices.with_columns(pl.when(pl.col("start") > 0).then(pl.col("duration", "self")))
    table = operators(replace(trace, slices=ends))
    columns = ["name", "count", "self_cpu_time_total", "cpu_time_total", "cpu_time"]
    assert table.select(columns).rows() == [
        ("b", 1, 30_000, 30_000, 30_000.0),
        ("a", 2, 10_000, 10_000, 10_000.0),
    ]
    alone = replace(trace, slices=ends.filter(pl.col("start") == 0))
    [row] = operators(alone).select(columns).rows()
    assert row == ("a", 1, None, None, None)


def test_rows_are_told_apart_by_what_is_asked() -> None:
    def told(by: str, *columns: str) -> list[tuple[Any, ...]]:
        table = operators(sketch(NETWORK), by=by, sort="total")
        return table.filter(pl.col("kind") == "operator").select("name", *columns, "count").rows()

    assert told("name") == [("aten::linear", 2), ("aten::mm", 3)]
    assert told("shape", "input_shapes") == [
        ("aten::linear", "[[2, 3], [3, 4]]", 1),
        ("aten::mm", "[]", 3),
        ("aten::linear", "[[2, 9], [9, 4]]", 1),
    ]
    assert told("type", "input_types") == [
        ("aten::linear", '["float", "float"]', 2),
        ("aten::mm", None, 3),
    ]
    assert told("type+line", "input_types", "file", "line", "function", "how") == [
        ("aten::linear", '["float", "float"]', None, None, None, None, 2),
        ("aten::mm", None, "train.py", 12, "step", "stack", 3),
    ]


def test_stacks_are_those_written_and_those_of_the_frames() -> None:
    trace = sketch("""
        a = aten::a; call_stack = net.py(3): forward;train.py(9): main
        p = train.py(9): main
        python 1 | pppppp
        cpu 1    | aa  b
    """)
    columns = ("name", "stack")

    assert rows(trace, *columns, by="stack", sort="name") == [
        ("aten::a", "net.py(3): forward;train.py(9): main"),
        ("b", "train.py(9): main"),
    ]
    assert rows(trace, *columns, by="stack", frames=1, sort="name") == [
        ("aten::a", "net.py(3): forward"),
        ("b", "train.py(9): main"),
    ]


def test_an_operator_that_only_calls_another_of_its_name_is_one() -> None:
    trace = sketch("""
        a = aten::to
        cpu 1  | aaaaaa
        cpu 1  |  aaaa
        cpu 1  |   bb
        call 1 |     k
        gpu 7  |      kkk
    """)

    assert rows(trace, "name", "count", "self_cpu_time_total", "device_time_total", sort="total")[
        :2
    ] == [("aten::to", 1, 30 * US, 30 * US), ("b", 1, 20 * US, 0)]


def test_within_itself_time_counts_once() -> None:
    trace = sketch("cpu 1 | aaaaaaaa\ncpu 1 |  bbbbbb\ncpu 1 |   aa cc")

    assert rows(trace, "name", "count", "self_cpu_time_total", "cpu_time_total", sort="name") == [
        ("a", 2, 40 * US, 80 * US),
        ("b", 1, 20 * US, 60 * US),
        ("c", 1, 20 * US, 20 * US),
    ]


def test_within_keeps_what_ran_inside() -> None:
    assert rows(sketch(NETWORK), "name", "kind", "count", within="aten::linear", sort="total") == [
        ("aten::linear", "operator", 2),
        ("aten::mm", "operator", 2),
        ("gemm", "call", 2),
        ("gemm", "kernel", 2),
    ]
    assert operators(sketch(NETWORK), within="nonesuch").is_empty()


def test_top_level_keeps_what_ran_inside_no_other() -> None:
    assert rows(sketch(NETWORK), "name", "count", top_level=True, sort="total") == [
        ("train", 1),
        ("aten::mm", 1),
    ]


def test_frames_take_part_if_asked() -> None:
    trace = sketch("python 1 | pppppp\ncpu 1 | aa  b")

    assert rows(trace, "name", "kind", "self_cpu_time_total", sort="self", python=True) == [
        ("p", "frame", 30 * US),
        ("a", "operator", 20 * US),
        ("b", "operator", 10 * US),
    ]


@pytest.mark.parametrize(
    ("alias", "column"),
    [
        ("calls", "count"),
        ("self", "self_cpu_time_total"),
        ("total", "cpu_time_total"),
        ("cuda_time_total", "device_time_total"),
        ("self_cuda_time_total", "self_device_time_total"),
        ("self_xpu_memory_usage", "self_device_memory_usage"),
    ],
)
def test_sorts_by_any_column_and_torchs_keys(alias: str, column: str) -> None:
    trace = sketch(NETWORK)

    assert operators(trace, sort=alias).equals(operators(trace, sort=column))
    values = operators(trace, sort=alias)[column].drop_nulls().to_list()
    assert values == sorted(values, reverse=True)


def test_by_default_device_time_leads_where_there_is_any() -> None:
    assert rows(sketch(NETWORK), "name", top=2) == [("aten::mm",), ("gemm",)]
    assert rows(sketch("cpu 1 | aa bbb"), "name", top=1) == [("b",)]


def test_the_first_rows_are_those_of_the_whole() -> None:
    whole = operators(sketch(NETWORK))

    assert operators(sketch(NETWORK), top=2).equals(whole.head(2))
    assert operators(sketch(NETWORK), top=0).equals(whole)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "colour"}, "`by` is `colour`; choose one or several of name, shape"),
        ({"by": "shape+"}, "`by` is `shape.`; choose one or several of name, shape"),
        ({"by": "stack", "frames": 0}, "`frames` is `0`; write 1 or more"),
        ({"top": -1}, "`top` is `-1`; write how many rows to keep, or 0 for all"),
        ({"sort": "colour"}, "cannot be sorted by `colour`; choose one of name"),
    ],
)
def test_refuses_unknown_words(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        operators(sketch(NETWORK), **options)


def test_memory_counts_where_it_was_taken_and_outside_as_a_row() -> None:
    trace = sketch("cpu 1 | aaaa\ncpu 1 |  bb")
    records = {"time": [5 * US, 15 * US, 25 * US, 60 * US], "bytes": [64, 1024, -24, -100]}
    memory = pl.DataFrame(
        {**records, "track": [0] * 4, "device_type": [0, 0, 0, 1], "failed": [False] * 4}
    )
    table = pl.concat([trace.memory, memory.cast({"track": pl.UInt32})], how="diagonal_relaxed")
    columns = ("name", "count", "self_cpu_memory_usage", "cpu_memory_usage")

    found = replace(trace, memory=table.cast(trace.memory.schema))
    assert rows(found, *columns, "device_memory_usage", sort="name") == [
        ("[memory]", 1, 0, 0, -100),
        ("a", 1, 64, 1064, 0),
        ("b", 1, 1000, 1000, 0),
    ]


@pytest.mark.traces
def test_times_add_up_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        table = operators(trace)
        on_device = pl.col("kind").is_in(["kernel", "copy"])
        assert table["self_cpu_time_total"].sum() == host_time(trace), name
        work = trace.device_args.join(trace.slices, on="id")
        linked = work.filter(pl.col("operator").is_not_null() | pl.col("launch").is_not_null())
        launched = table.filter(~on_device)["self_device_time_total"].sum()
        assert launched == linked["duration"].sum(), name
        ran = device_slices(trace)
        assert table.filter(on_device)["self_device_time_total"].sum() == ran["duration"].sum()
        assert table.filter(on_device)["count"].sum() == ran.height
        assert table.filter(pl.col("self_cpu_time_total") < 0).is_empty(), name


@pytest.mark.traces
def test_every_grouping_holds_the_same_time(real: "ReadReal") -> None:
    trace = real("v100-2021-resnet50-workers0.pt.trace")
    whole = operators(trace)

    for by in ("shape", "type", "stack", "line", "overload", "shape+type+stack+line+overload"):
        table = operators(trace, by=by)
        for column in ("count", "self_cpu_time_total", "self_device_time_total"):
            assert table[column].sum() == whole[column].sum(), (by, column)
        assert table.height >= whole.height


def host_time(trace: Trace) -> int:
    """The time covered by operators, annotations and calls, thread by thread."""
    tracks = trace.tracks.filter(pl.col("kind") == "host").select(track="id", thread="thread")
    mine = trace.slices.join(tracks, on="track").filter(
        ~pl.col("name").cast(pl.String).is_in(list(RECORDERS)) & pl.col("duration").is_not_null()
    )
    return sum(
        length(union(starts, np.add(starts, durations)))
        for starts, durations in (
            (part["start"].to_numpy(), part["duration"].to_numpy())
            for part in mine.partition_by("thread")
        )
    )


RECORDERS = {
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
}


def device_slices(trace: Trace) -> pl.DataFrame:
    tracks = trace.tracks.filter(pl.col("kind") == "device").select(track="id")
    return trace.slices.join(tracks, on="track", how="semi")
