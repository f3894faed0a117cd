import re
from typing import Any

import pytest

from selftime.errors import UsageError
from selftime.reports.tables.averages import OperatorAverage, OperatorAverages
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.operators import operators

TRAINED = """
    t = train
    m = aten::mm; input_shapes = [[2, 3], [3, 4]]
    k = gemm
    mark 1 | tttttttttt
    cpu 1  |  mmmm mm
    call 1 |   k   k
    gpu 7  |     kk  kkkk
"""


def averages(trace: Trace, **options: Any) -> OperatorAverages:
    return OperatorAverages.of_view(operators(trace, by="shape"), device="cuda", **options)


def row(**told: Any) -> OperatorAverage:
    unknown = dict.fromkeys(OperatorAverage.__dataclass_fields__, 0)
    texts = {"input_shapes": "", "stack": [], "overload_name": "", "is_user_annotation": False}
    return OperatorAverage(**{**unknown, **texts, "count": 1, "is_device": False, **told})


def cells(table: str) -> list[list[str]]:
    """Cells of the lines that are no rules."""
    lines = [line for line in table.splitlines() if line.strip("-= ")]
    return [re.split(r"\s{2,}", line.strip()) for line in lines]


def test_nothing_recorded_prints_nothing() -> None:
    assert averages(Trace()).table() == str(averages(Trace())) == ""
    assert averages(Trace()).self_cpu_time_total == 0


def test_rows_have_torchs_attributes_in_microseconds() -> None:
    (found,) = (row for row in averages(sketch(TRAINED)) if row.key == "aten::mm")

    assert (found.count, found.input_shapes) == (2, [[2, 3], [3, 4]])
    assert (found.cpu_time_total, found.self_cpu_time_total, found.cpu_time) == (60.0, 40.0, 30.0)
    assert (found.device_time_total, found.self_device_time_total) == (60.0, 60.0)
    assert found.device_time == 30.0
    assert (found.flops, found.cpu_memory_usage, found.stack, found.node_id) == (0, 0, [], -1)
    assert not found.is_user_annotation
    assert not found.is_device


def test_prints_host_and_device_time() -> None:
    table = averages(sketch(TRAINED)).table(sort_by="cpu_time_total")

    # fmt: off
    assert cells(table) == [
        ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
         "Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg", "# of Calls", "Input Shapes"],
        ["train", "40.00%", "40.000us", "100.00%", "100.000us", "100.000us",
         "0.000us", "0.00%", "60.000us", "60.000us", "1", "[]"],
        ["aten::mm", "40.00%", "40.000us", "60.00%", "60.000us", "30.000us",
         "60.000us", "100.00%", "60.000us", "30.000us", "2", "[[2, 3], [3, 4]]"],
        ["gemm", "20.00%", "20.000us", "20.00%", "20.000us", "10.000us",
         "0.000us", "0.00%", "0.000us", "0.000us", "2", "[]"],
        ["gemm", "0.00%", "0.000us", "0.00%", "0.000us", "0.000us",
         "60.000us", "100.00%", "60.000us", "30.000us", "2"],
        ["Self CPU time total: 100.000us"],
        ["Self CUDA time total: 60.000us"],
    ]
    # fmt: on


def test_every_line_is_as_wide_as_its_rule() -> None:
    rule, *lines = averages(sketch(TRAINED)).table().splitlines()

    assert {len(line) for line in lines if not line.startswith("Self C")} == {len(rule)}


@pytest.mark.parametrize(
    ("device", "key"),
    [("cuda", "cuda_time_total"), ("xpu", "xpu_time_total"), ("hip", "device_time_total")],
)
def test_devices_go_by_their_names(device: str, key: str) -> None:
    slow, fast = row(key="slow", device_time_total=9.0), row(key="fast", device_time_total=1.0)
    table = OperatorAverages(
        [fast, slow, row(key="kernel", is_device=True, self_device_time_total=10.0)], device=device
    ).table(sort_by=key, row_limit=1)

    assert f"Self {device.upper()} time total: 10.000us" in table
    assert cells(table)[1][0] == "slow"


def test_memory_is_told_in_units_where_it_was_recorded() -> None:
    rows = [
        row(key="a", cpu_memory_usage=1536, self_cpu_memory_usage=-(3 << 20)),
        row(key="b", self_device_memory_usage=5 << 30, device_memory_usage=12),
    ]

    assert "CPU Mem" not in OperatorAverages(rows).table()
    head, first, second, _ = cells(OperatorAverages(rows, device="cuda", with_memory=True).table())
    assert head[-5:-1] == ["CPU Mem", "Self CPU Mem", "CUDA Mem", "Self CUDA Mem"]
    assert first[-5:-1] == ["1.50 KB", "-3.00 MB", "0 B", "0 B"]
    assert second[-5:-1] == ["0 B", "0 B", "12 B", "5.00 GB"]


@pytest.mark.parametrize(
    ("flops", "head", "cell"),
    [
        (999, "Total FLOPs", "999.000"),
        (1_000, "Total KFLOPs", "1.000"),
        (2_500_000, "Total MFLOPs", "2.500"),
        (10**18, "Total PFLOPs", "1000.000"),
    ],
)
def test_flops_are_in_the_unit_of_the_least(flops: int, head: str, cell: str) -> None:
    table = OperatorAverages([row(key="a", flops=flops), row(key="b")], with_flops=True).table()

    assert [line[-1] for line in cells(table)[:3]] == [head, cell, "--"]


def test_long_names_and_stacks_are_cut() -> None:
    long = row(key="n" * 60, stack=["s" * 80 + "train.py(3): main", "outer"])
    table = OperatorAverages([long]).table(max_name_column_width=20, max_src_column_width=30)

    _, first, second, *_ = cells(table)
    assert first[0] == "n" * 17 + "..."
    assert first[-1] == "..." + ("s" * 80 + "train.py(3): main")[-27:]
    assert second == ["outer"]


def test_a_part_prints_like_the_whole() -> None:
    whole = averages(sketch(TRAINED))

    assert isinstance(whole[:2], OperatorAverages)
    assert whole[:2].device == "cuda"
    assert whole[0] is next(iter(whole))


@pytest.mark.parametrize(
    "options", [{"sort_by": "colour"}, {"sort_by": "stack"}, {"time_unit": "m"}]
)
def test_refuses_unknown_words(options: dict[str, str]) -> None:
    (word,) = options.values()
    with pytest.raises(UsageError, match=f"is `{word}`; choose one of"):
        averages(sketch(TRAINED)).table(**options)  # type: ignore[arg-type]  # words to refuse


def test_times_are_written_out_under_torchs_names() -> None:
    [row] = OperatorAverages.of_view(sketch("cpu 1 | aaa").view("operators"))
    assert (row.cpu_time_str, row.self_cpu_time_total_str) == ("30.000us", "30.000us")
    with pytest.raises(AttributeError):
        row.count_str  # noqa: B018 - the access is what is tested
