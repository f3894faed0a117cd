"""Estimated achieved occupancy: when the recorder's is believed, and what stands in for it."""

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from selftime.analysis.device.kernel_attributes import (
    achieved_occupancy_percent,
    computed_occupancy_of_kernels,
)
from selftime.testing import sketch
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.conftest import ReadReal

H100: dict[str, Any] = {
    "compute_major": 9,
    "compute_minor": 0,
    "warp_size": 32,
    "threads_per_sm": 2048,
    "registers_per_sm": 65536,
    "shared_memory_per_sm": 233472,
    "multiprocessors": 132,
}
GEMM = "blocks_per_sm = 2.0; block = [384, 1, 1]; registers = 168; shared_memory = 231424"


def of(legend: str, **device: Any) -> list[float | None]:
    trace = sketch(f"k = k; {legend}\ngpu 7 | k", devices=[{**H100, **device}])
    return achieved_occupancy_percent(trace)["occupancy"].to_list()


def test_what_is_recorded_is_believed() -> None:
    assert of(f"occupancy = 19; {GEMM}") == [19]
    assert of("occupancy = 40") == [40]
    assert of("occupancy = 0; blocks_per_sm = 0.1; block = [128, 1, 1]") == [0]


def test_a_kernel_that_ran_had_a_block_on_an_sm() -> None:
    # one block of 384 threads fits, by its shared memory
    assert of(f"occupancy = 0; {GEMM}") == [100 * 384 / 2048]
    # the grid is smaller than the device
    assert of(f"occupancy = 0; {GEMM.replace('2.0', '0.5')}") == [100 * 384 / 2048 / 2]


def test_what_cannot_be_computed_is_not_known() -> None:
    assert of(f"occupancy = 0; {GEMM}", registers_per_sm=None) == [None]
    assert of(f"occupancy = 0; {GEMM}", shared_memory_per_sm=100_000) == [None]
    assert of("occupancy = 0; blocks_per_sm = 2.0; block = [384, 1, 1]") == [None]
    assert of("occupancy = -1") == [None]
    assert of(GEMM) == [None], "the recorder wrote none: it may know why"
    assert achieved_occupancy_percent(Trace()).is_empty()


@pytest.mark.parametrize(
    ("legend", "device", "expected"),
    [
        # 2048 threads: 8 blocks of 256
        ("block = [256, 1, 1]; registers = 32; shared_memory = 0", {}, 100),
        # 65536 registers: 8 warps of 256 x 32 fill them
        ("block = [256, 1, 1]; registers = 255; shared_memory = 0", {}, 12.5),
        # 32 blocks of one warp
        ("block = [32, 1, 1]; registers = 16; shared_memory = 0", {}, 50),
        ("block = [32, 1, 1]; registers = 16; shared_memory = 0", {"compute_major": 7}, 50),
        (
            "block = [32, 1, 1]; registers = 16; shared_memory = 0",
            {"compute_major": 7, "compute_minor": 5, "threads_per_sm": 1024},
            50,
        ),
        # 233472 bytes: two blocks of 100 KiB and 1 KiB each
        ("block = [8, 8, 4]; registers = 32; shared_memory = 102400", {}, 25),
    ],
)
def test_blocks_fit_by_threads_registers_and_shared_memory(
    legend: str, device: dict[str, Any], expected: float
) -> None:
    drawing = f"k = k; blocks_per_sm = 100.0; {legend}\ngpu 7 | k"
    trace = sketch(drawing, devices=[{**H100, **device}])
    assert computed_occupancy_of_kernels(trace)["occupancy"].to_list() == [expected]


@pytest.mark.traces
def test_what_is_computed_is_what_real_traces_record(
    real: "ReadReal", real_names: list[str]
) -> None:
    compared = 0
    for name in real_names:
        trace = real(name)
        computed = computed_occupancy_of_kernels(trace).rename({"occupancy": "computed"})
        recorded = trace.device_args.select("id", "occupancy")
        both = achieved_occupancy_percent(trace).join(computed, on="id").join(recorded, on="id")
        if trace.devices.height:
            unknown = both.filter(pl.col("occupancy").is_null())
            assert unknown["occupancy_right"].is_null().all(), name
        both = both.filter(
            (pl.col("occupancy") == pl.col("occupancy_right")) & pl.col("computed").is_not_null()
        )
        assert ((both["computed"] - both["occupancy"]).abs() < 1 + 1e-6).all(), name
        compared += both.height
    assert compared > 10_000
