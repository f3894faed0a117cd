"""Modules, operators and kernels as one tree: times that add up, and shares of the peak."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from selftime.analysis.account.useful_work import operator_efficiencies
from selftime.devices import CpuPeakRates
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.kernels import kernels
from selftime.views.modules import modules
from selftime.views.op_profile import op_profile
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000
A100 = {"name": "NVIDIA A100-SXM4-40GB", "multiprocessors": 108}
FLOPS = 2 * 512**3
MOVED = 2 * 2 * 512**2
"""Bytes that `relu` reads and writes in 16 bits."""

LAYER = """
    n = nn.Module: Net_0; module_id = 0
    x = nn.Module: Linear_0; module_id = 0
    l = aten::linear; input_shapes = [[512,512],[512,512]]; input_types = ["c10::Half","c10::Half"]
    m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["c10::Half","c10::Half"]
    r = aten::relu; input_shapes = [[512,512]]; input_types = ["c10::Half"]
    o = my::operator
    k = ampere_fp16_s16816gemm_fp16_128x64_nn
    v = void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)
    python 1 | nnnnnnnnnnnnnnn
    python 1 | xxxxxxxxx
    cpu 1    | lllllllll rrr oooo
    cpu 1    |  mmmmm
    call 1   |   k        v   v
    gpu 7    |    kkkk     vv   vvvv
"""


def rows(table: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return table.select("name", *columns).rows()


def test_nothing_recorded_has_no_rows() -> None:
    assert op_profile(Trace()).is_empty()
    assert op_profile(sketch("cpu 1 | aaa"), by="module").is_empty()


def test_operators_stand_within_modules_and_kernels_within_operators() -> None:
    table = op_profile(sketch(LAYER, devices=[A100]))

    gemm = "ampere_fp16_s16816gemm_fp16_128x64_nn"
    relu = "void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)"
    assert rows(table, "kind", "depth", "total_time", "own_time") == [
        ("Net_0", "module", 0, 60 * US, 20 * US),
        ("Linear_0", "module", 1, 40 * US, 40 * US),
        ("aten::mm", "operator", 2, 40 * US, 40 * US),
        (gemm, "kernel", 3, 40 * US, 40 * US),
        ("aten::relu", "operator", 1, 20 * US, 20 * US),
        (relu, "kernel", 2, 20 * US, 20 * US),
        ("(outside modules)", "outside", 0, 40 * US, 40 * US),
        ("my::operator", "operator", 1, 40 * US, 40 * US),
        (relu, "kernel", 2, 40 * US, 40 * US),
    ]
    assert table["parent"].to_list() == [None, 0, 1, 2, 0, 4, None, 6, 7]
    assert table.filter(depth=0)["total_time"].sum() == 100 * US


def test_the_achieved_share_is_that_of_the_time_of_which_it_is_known() -> None:
    table = op_profile(sketch(LAYER, devices=[A100]))
    named = {row["name"]: row for row in table.iter_rows(named=True) if row["kind"] != "kernel"}

    product = round(max(FLOPS / 312e12, 3 * MOVED / 2 / 1555e9) * 1e9)  # memory is the limit
    pointwise = round(MOVED / 1555e9 * 1e9)
    net, outside = named["Net_0"], named["(outside modules)"]
    assert named["aten::mm"]["achieved_share"] == product / (40 * US)
    assert named["aten::mm"]["flops_share"] == pytest.approx(FLOPS / 312e12 / 40e-6, rel=1e-6)
    assert named["aten::relu"]["bytes_share"] == pytest.approx(MOVED / 1555e9 / 20e-6)
    assert (net["known_time"], net["wasted_time"]) == (60 * US, 60 * US - product - pointwise)
    assert (outside["achieved_share"], outside["wasted_time"], outside["known_time"]) == (
        None, None, 0,
    )  # fmt: skip


def test_without_a_known_peak_the_share_is_unknown() -> None:
    table = op_profile(sketch(LAYER))
    assert table["achieved_share"].null_count() == table["wasted_time"].null_count() == table.height
    assert table["known_time"].sum() == 0
    assert table["flops_rate"][0] == pytest.approx((FLOPS + 512**2) / 60e-6)


def test_kinds_of_work_have_operators_shapes_and_kernels() -> None:
    table = op_profile(sketch(LAYER, devices=[A100]), by="category")
    shown = table.filter(pl.col("kind") != "kernel")
    assert rows(shown, "kind", "total_time") == [
        ("elementwise", "category", 60 * US),
        ("my::operator", "operator", 40 * US),
        ("[]", "shape", 40 * US),
        ("aten::relu", "operator", 20 * US),
        ("[[512, 512]]", "shape", 20 * US),
        ("gemm", "category", 40 * US),
        ("aten::mm", "operator", 40 * US),
        ("[[512, 512], [512, 512]]", "shape", 40 * US),
    ]


@pytest.mark.traces
def test_kernels_that_no_operator_launched_are_of_their_own_kind(real: "ReadReal") -> None:
    trace = real("mi210-gpu-only")
    table = op_profile(trace)
    kinds = kernels(trace, by="class").select("class", "total")
    heads = table.filter(depth=0).select("name", "total_time")
    told = kinds.join(heads, left_on="class", right_on="name", how="left")
    assert kinds.height > 3
    assert told.filter(pl.col("total") != pl.col("total_time")).is_empty()


def test_host_time_is_divided_where_it_is_asked_for() -> None:
    trace = sketch(LAYER, devices=[A100])
    table = op_profile(trace, metric="host")
    assert table["achieved_share"].null_count() == table.height
    assert table.filter(depth=0)["total_time"].sum() == modules(trace)["self_cpu_time"].sum()


TRAINED = """
    n = nn.Module: Net_0; module_id = 0
    a = aten::linear; sequence = 7; forward_thread = 0
    v = AddmmBackward0; forward_thread = 1; forward = a
    s = aten::zero_
    python 1 | nnnnn
    cpu 1    |  aaa        s
    call 1   |   k         u
    cpu 2    |       vvvv
    call 2   |        q
    gpu 7    |    kk   qqq u
"""


def test_each_row_has_its_share_and_the_time_of_each_pass() -> None:
    heads = op_profile(sketch(TRAINED)).filter(depth=0)
    assert rows(heads, "count", "total_time", "forward_time", "backward_time") == [
        ("Net_0", 2, 50 * US, 20 * US, 30 * US),
        ("(outside modules)", 1, 10 * US, 10 * US, 0),
    ]
    assert heads["share"].to_list() == pytest.approx([5 / 6, 1 / 6])
    assert heads["recompute_time"].sum() == 0


def test_one_pass_alone_is_the_whole() -> None:
    trace = sketch(TRAINED)
    backward = op_profile(trace, only="backward")
    assert rows(backward, "kind", "total_time", "share") == [
        ("Net_0", "module", 30 * US, 1.0),
        ("AddmmBackward0", "operator", 30 * US, 1.0),
        ("q", "kernel", 30 * US, 1.0),
    ]
    assert op_profile(trace, only="forward").filter(depth=0)["total_time"].to_list() == [
        20 * US, 10 * US,
    ]  # fmt: skip
    assert op_profile(trace, only="recompute").is_empty()


def test_kinds_of_host_time_are_those_of_models_and_of_what_is_no_operator() -> None:
    trace = sketch("""
        f = train.py(3): main
        l = aten::linear
        m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]
        r = aten::relu; input_shapes = [[512,512]]; input_types = ["float"]
        o = my::operator
        d = data loading
        python 1 | ffffffffffffff
        cpu 1    | llllll rrrr o
        cpu 1    | mmmmm
        mark 1   |                d
    """)
    table = op_profile(trace, by="category")
    assert rows(table.filter(pl.col("kind") != "shape"), "kind", "total_time") == [
        ("gemm", "category", 50 * US),
        ("aten::mm", "operator", 50 * US),
        ("elementwise", "category", 40 * US),
        ("aten::relu", "operator", 40 * US),
        ("Python", "category", 30 * US),
        ("(Python)", "frame", 30 * US),
        ("other", "category", 20 * US),
        ("aten::linear", "operator", 10 * US),
        ("my::operator", "operator", 10 * US),
        ("annotation", "category", 10 * US),
        ("data loading", "annotation", 10 * US),
    ]


def test_work_of_operators_that_no_device_did_is_in_no_rate() -> None:
    """The first product, of no elements, launched nothing."""
    table = op_profile(
        sketch("""
            m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]
            cpu 1  | mmm mmm
            call 1 |      k
            gpu 7  |       kk
        """)
    )
    assert table["flops_rate"][0] == pytest.approx(FLOPS / 20e-6)


def test_work_that_nothing_launched_is_of_an_operator_that_was_not_recorded() -> None:
    [_, operator, _] = op_profile(sketch("gpu 7 | kk")).iter_rows(named=True)
    assert (operator["name"], operator["kind"]) == ("(operator not recorded)", "unknown")
    assert (operator["forward_time"], operator["backward_time"]) == (0, 0)


def test_a_cpus_share_is_known_where_its_peak_was_measured() -> None:
    trace = sketch("""
        a = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
        cpu 1 | aaaaaaaaaa
    """)
    assert op_profile(trace)["achieved_share"].null_count() == op_profile(trace).height
    peaks = CpuPeakRates(1, {"float32": 1e11}, ((1 << 20, 1e11),))
    measured = replace(trace, run=replace(trace.run, cpu_peaks=peaks))
    named = op_profile(measured).filter(name="aten::mm").row(0, named=True)
    assert named["wasted_time"] == 100 * US - round(2 * 64**3 / 1e11 * 1e9)
    assert named["known_time"] == 100 * US


def test_small_rows_are_merged() -> None:
    table = op_profile(sketch(LAYER, devices=[A100]), by="category", min_share=0.3)
    assert rows(table.filter(kind="other"), "total_time") == [("(other)", 20 * US)]
    assert table.filter(depth=0)["total_time"].sum() == 100 * US


@pytest.mark.traces
@pytest.mark.parametrize("name", ["h100-2025-vit", "mi300-2025-resnet-ddp-recompute"])
def test_a_real_profile_agrees_with_modules_operators_and_the_account(
    real: "ReadReal", name: str
) -> None:
    trace = real(name)
    table = op_profile(trace, min_share=0.0)
    known = modules(trace)

    mine = table.filter(pl.col("kind") == "module").group_by("name").agg(pl.col("total_time").sum())
    theirs = known.drop_nulls("path").group_by("name").agg(pl.col("total_device_time").sum())
    both = theirs.join(mine, on="name", how="left").with_columns(pl.col("total_time").fill_null(0))
    assert both.filter(pl.col("total_time") != pl.col("total_device_time")).is_empty()
    for part in ("forward", "backward", "recompute"):
        whole = table.filter(depth=0)[f"{part}_time"].sum()
        rooted = known.filter((pl.col("depth") == 0) | pl.col("path").is_null())
        assert whole == rooted[f"{part}_device_time"].sum()
        kept = op_profile(trace, only=part, min_share=0.0)
        assert kept.filter(depth=0)["total_time"].sum() == whole

    work = trace.device_args.select("id", "operator").drop_nulls()
    told = operator_efficiencies(trace).of_slices(work["operator"])["efficiency"]
    time = trace.slices["duration"].gather(work["id"])
    roots = table.filter(depth=0)
    assert roots["known_time"].sum() == time.filter(told.is_not_null()).sum()
    wasted = (time * (1 - told)).sum()
    assert roots["wasted_time"].sum() == pytest.approx(wasted, abs=work.height)


@pytest.mark.traces
def test_an_operators_rates_are_those_of_the_operators(real: "ReadReal") -> None:
    trace = real("h100-2025-vit")
    table = op_profile(trace, by="category", min_share=0.0).filter(kind="operator")
    known = operators(trace).filter(pl.col("kind") == "operator")
    both = table.join(known.with_columns(pl.col("name").cast(pl.String)), on="name")
    same = both.filter(pl.col("total_time") == pl.col("device_time_total"))
    assert same.height > 5
    for column in ("flops_rate", "flops_share", "bytes_rate", "bytes_share"):
        assert same[column].to_list() == pytest.approx(same[f"{column}_right"].to_list())
