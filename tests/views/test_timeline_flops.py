"""FLOP/s over time in the timeline: of a device by its kernels, of a CPU by its operators."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from selftime.analysis.timeline.flop_rate_curves import flop_rate_curves
from selftime.devices import CpuPeakRates
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.operators import operators
from selftime.views.timeline import timeline

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000
A100 = {"name": "NVIDIA A100-SXM4-40GB", "multiprocessors": 108}
ONE = 2 * 512**3
"""FLOPs of the product of two matrices of 512 by 512."""

PRODUCTS = """
    m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["c10::Half","c10::Half"]
    o = my::operator
    k = ampere_fp16_s16816gemm_fp16_128x64_nn
    h = Memcpy DtoD (Device -> Device)
    cpu 1  | mmmm oo
    call 1 | k k  k h
    gpu 7  |  kk kk kk
    copy 7 |           h
"""


def curve(trace: Trace) -> list[tuple[int, float | None]]:
    """The instants in us at which the rate of the only curve changes, and the rate."""
    [found] = flop_rate_curves(trace)
    value = pl.Series(found.value).fill_nan(None)
    return [(int(time) // US, rate) for time, rate in zip(found.time, value, strict=True)]


def listed(trace: Trace) -> dict[str, Any]:
    rows = timeline(trace, what="tracks").filter(pl.col("category") == "flops")
    return rows.row(0, named=True)


def test_nothing_is_drawn_where_no_flops_are_known() -> None:
    assert list(flop_rate_curves(Trace())) == []
    assert list(flop_rate_curves(sketch("cpu 1 | aa"))) == []


def test_flops_are_spread_over_the_kernels_that_the_operator_launched() -> None:
    trace = sketch(PRODUCTS, devices=[A100])
    rate = round(ONE / (40 * US) * 1e9)

    assert curve(trace) == [
        (10, rate),
        (30, 0),
        (40, rate),
        (60, 0),
        (70, None),  # of an operator without a model
        (90, 0),
        (100, 0),  # a copy has no FLOPs
        (110, 0),
    ]


def test_the_list_tells_the_peak_and_for_how_much_of_the_time_flops_are_known() -> None:
    row = listed(sketch(PRODUCTS, devices=[A100]))

    assert (row["name"], row["device"], row["peak"]) == ("device 0 FLOP/s", 0, 312e12)
    assert row["note"] == (
        "FLOPs are known for 71.4 % of the time in which the device worked; the scale ends at the "
        "device's peak in float16, 312 TFLOP/s."
    )
    assert listed(sketch(PRODUCTS))["peak"] is None


def test_a_pixel_is_unknown_where_more_of_its_work_is_unknown_than_known() -> None:
    trace = sketch(PRODUCTS, devices=[A100])

    def seen(end: int, pixels: int) -> list[tuple[int, float | None]]:
        rows = timeline(trace, end=end * US, pixels=pixels, tracks="counters")
        rows = rows.filter(pl.col("category") == "flops")
        return [(start // US, value) for start, value in rows.select("start", "value").iter_rows()]

    rate = ONE / (40 * US) * 1e9
    [(start, mean), *_] = seen(110, 1)
    assert start == 10
    assert mean == pytest.approx(rate * 40 / 80)  # of the known 80 us
    assert (60, None) in seen(120, 2)  # idle, then unknown: not 0


def test_work_at_the_same_time_adds_up_and_unknown_work_makes_it_unknown() -> None:
    trace = sketch(PRODUCTS.replace("gpu 7  |  kk kk kk", "gpu 7  |  kkk\n    gpu 8  |   kkk kk"))
    rate = round(ONE / (60 * US) * 1e9)
    known = [rate, 2 * rate, rate, 0]
    assert curve(trace)[:5] == [*zip((10, 20, 40, 50), known, strict=True), (60, None)]


def test_a_rate_far_above_the_peak_is_no_rate() -> None:
    short = PRODUCTS.replace("[[512,512],[512,512]]", "[[51200,51200],[51200,51200]]")

    assert list(flop_rate_curves(sketch(short, devices=[A100]))) == []


def test_on_a_cpu_flops_are_spread_over_the_operators_own_time() -> None:
    trace = sketch("""
        l = aten::linear
        m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]
        e = aten::empty
        cpu 1  | llllllll  l
        cpu 1  |  mmmm
        cpu 1  |   e
    """)
    rate = round(ONE / (40 * US) * 1e9)

    assert curve(trace)[:4] == [(0, None), (10, rate), (20, rate), (30, rate)]
    assert curve(trace)[4:] == [(50, None), (80, 0), (100, None), (110, 0)]
    row = listed(trace)
    assert (row["name"], row["device"], row["peak"]) == ("CPU FLOP/s", None, None)
    assert row["note"].startswith("FLOPs are known for 44.4 % of the time in which operators ran;")


def test_the_scale_of_a_cpu_ends_at_what_it_was_measured_to_do() -> None:
    trace = sketch("""
        m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]
        b = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["double","double"]
        cpu 1  | mmmm bb
    """)
    peaks = CpuPeakRates(1, {"float32": 1e13, "float64": 5e12}, ((1 << 20, 1e11),))
    row = listed(replace(trace, run=replace(trace.run, cpu_peaks=peaks)))

    assert row["peak"] == 1e13  # that of most of the FLOPs
    assert row["note"] == (
        "FLOPs are known for 100.0 % of the time in which operators ran; the scale ends at what "
        "this CPU was measured to do in float32, 10.0 TFLOP/s."
    )


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", ["h100-2025-bert-small", "mi300-2025-bert-small", "mi300-2025-resnet-ddp-recompute"]
)
def test_all_flops_of_the_operators_are_in_the_curve(name: str, real: "ReadReal") -> None:
    trace = real(name)
    [found] = flop_rate_curves(trace)
    seconds = pl.Series(found.time).diff().shift(-1).fill_null(0) / 1e9
    total = (pl.Series(found.value).fill_nan(0) * seconds).sum()

    assert total == pytest.approx(operators(trace)["self_model_flops"].sum(), rel=1e-3)
