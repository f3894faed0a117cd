from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.advice import advise
from selftime.analysis.device.utilisation import device_utilisation
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.reports.advice.account_sentence import bound_by_text
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.units import UNITS
from selftime.views.overview import overview
from selftime.views.steps import steps

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
V100 = {
    "name": "Tesla V100-SXM2-32GB",
    "memory": 1 << 35,
    "compute_major": 7,
    "compute_minor": 0,
    "multiprocessors": 80,
}


def figures(trace: Trace, section: str, device: int | None = None) -> dict[str, Any]:
    """The values of one section, by metric; words where a figure is no number."""
    rows = overview(trace).filter(section=section)
    rows = rows if device is None else rows.filter(device=device)
    return {
        row["metric"]: row["text"] if row["unit"] == "text" else row["value"]
        for row in rows.iter_rows(named=True)
    }


def test_nothing_recorded_has_nothing_but_how_it_was_recorded() -> None:
    assert overview(Trace())["metric"].to_list() == ["recorded with"]


TRAINING = """
    column = 1 ms
    a = ProfilerStep#1
    b = ProfilerStep#2
    c = ProfilerStep#3
    d = ProfilerStep#4
    mark 1 | aaaaaaaabbbbbbbbbbccccccccccdddddddddddd
    call 1 | k       k         k         k
    gpu 7  |  kkkk    kkkkk     kkkkk     kkkkkk
"""


def test_the_steps_that_count_give_the_median_and_the_spread() -> None:
    found = figures(sketch(TRAINING), "steps")

    assert (found["found"], found["counted"]) == (4.0, 3.0)
    assert found["host time, median"] == found["step time, median"] == 10_000 * US
    assert found["host time, deviation"] == 0.0
    assert found["host time, p95"] == 12_000 * US
    assert found["device time, median"] == 10_000 * US  # of 9, 10, 11
    assert found["device time, deviation"] == 1_000 * US
    assert found["lag, median"] == -4_000 * US
    assert (found["bound by"], found["busy"], found["idle launches"]) == (
        "what the trace does not explain",
        0.5,
        1.0,
    )


def test_the_average_step_is_the_sum_of_its_parts() -> None:
    found = figures(sketch(TRAINING), "execution")

    assert found["average step"] == pytest.approx(32_000 * US / 3)
    assert found["kernel"] == pytest.approx(16_000 * US / 3)
    assert found["runtime"] == pytest.approx(1_000 * US)
    assert found["data loading"] is None, "nothing of it was recorded"
    parts = ("kernel", "memcpy", "memset", "communication", "runtime", "cpu", "other")
    assert sum(found[part] for part in parts) == pytest.approx(found["average step"])


def test_a_device_that_waits_for_a_host_slowed_by_recording_is_said_to() -> None:
    python = "\n    python 1 | fffffff"
    told = [
        overview(sketch(TRAINING + more)).filter(metric="bound by")["definition"][0]
        for more in ("", python)
    ]
    assert ["Stacks were recorded" in text for text in told] == [False, True]


def test_each_device_is_described_and_its_shares_are_of_time_not_of_work() -> None:
    """Two kernels at once are busy once; a collective is no computing; a copy is busy as well."""
    trace = sketch(
        """
        s = ProfilerStep#1
        n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
        mark 1  | ssssssssssssssssssss
        gpu 7   |  kkkk
        gpu 8   |    kkkk  nn
        copy 9  |           cc
        gpu 1.7 |  m
        """,
        devices=[V100],
    )

    first = figures(trace, "device", device=0)
    assert (first["name"], first["compute capability"]) == ("Tesla V100-SXM2-32GB", "7.0")
    assert (first["memory"], first["multiprocessors"]) == (float(1 << 35), 80.0)
    assert (first["busy"], first["kernel busy"], first["compute busy"]) == (9 / 20, 8 / 20, 6 / 20)
    second = figures(trace, "device", device=1)
    assert (second["name"], second["memory"], second["busy"]) == (None, None, 1 / 20)


def test_multiprocessors_are_filled_by_the_blocks_of_all_kernels_that_run() -> None:
    """Half of the blocks for four columns, then one and a half, which is full, for two more."""
    trace = sketch("""
        s = ProfilerStep#1
        k = small; blocks_per_sm = 0.5; occupancy = 20
        m = large; blocks_per_sm = 1.0; occupancy = 80
        mark 1 | ssssssssss
        gpu 7  |  kkkkkk
        gpu 8  |      mmmm
    """)

    found = figures(trace, "device")
    assert found["SM efficiency"] == pytest.approx((4 * 0.5 + 2 * 1 + 2 * 1) / 10)
    assert found["occupancy"] == pytest.approx((6 * 0.2 + 4 * 0.8) / 10)
    assert found["occupancy known"] == 1.0


def test_blocks_come_from_the_grid_where_they_are_not_told() -> None:
    drawing = "s = ProfilerStep#1\nk = k; grid = [8, 5, 1]\nmark 1 | ssss\ngpu 7  |  kk"

    assert figures(sketch(drawing, devices=[V100]), "device")["SM efficiency"] == 0.25
    assert figures(sketch(drawing), "device")["SM efficiency"] is None


def test_what_some_kernels_do_not_tell_makes_a_bound_and_is_said() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        k = k; blocks_per_sm = 2.0; occupancy = 50
        mark 1 | ssssssss
        gpu 7  |  kk mm
    """)

    rows = overview(trace).filter(metric="SM efficiency")
    assert rows.select("value", "text").row(0) == (0.25, "at least 25.0 %")
    assert rows["definition"][0].endswith("The grids of 50.0 % of kernel time are not known.")
    found = figures(trace, "device")
    assert (found["occupancy"], found["occupancy known"]) == (0.5, 0.5)


def test_kernels_use_tensor_cores_or_not_or_nobody_knows() -> None:
    trace = sketch("""
        t = volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn
        e = void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)
        u = my_kernel
        s = ProfilerStep#1
        mark 1 | ssssssssss
        gpu 7  | tttteeeuuu
    """)

    found = figures(trace, "device")
    shares = ("tensor cores", "no tensor cores", "tensor cores unknown")
    assert [found[share] for share in shares] == pytest.approx([0.4, 0.3, 0.3])


def test_without_device_work_no_device_and_no_zero_is_told() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        mark 1 | ssssssssss
        cpu 1  | aaaaaa
        cpu 2  |     bbbb
    """)

    table = overview(trace)
    assert "device" not in table["section"].to_list()
    assert "kernel" not in table["metric"].to_list()
    host = table.filter(section="host").select("metric", "value").rows()
    assert host == [("busy", 0.8), ("threads", 2.0), ("thread 1", 0.6), ("thread 2", 0.4)]
    assert figures(trace, "steps")["bound by"] == "computing"


def test_only_the_busiest_threads_are_shown() -> None:
    lanes = "\n".join(f"cpu {n} | {'a' * n}" for n in range(1, 12))
    host = figures(sketch(lanes), "host")

    assert host["threads"] == 11
    assert [name for name in host if name.startswith("thread ")] == [
        f"thread {n}" for n in range(11, 3, -1)
    ]


def test_the_job_and_the_cost_of_recording_are_told() -> None:
    facts = {"overhead": {"ratio": 1.25}}
    metadata = {"distributedInfo": {"rank": 3, "world_size": 8}, "selftime": facts}
    table = overview(sketch("cpu 1 | a", metadata=metadata)).filter(section="trace")

    assert dict(table.select("metric", "text").rows()) == {
        "recorded": "10.0 µs",
        "rank": "3 of 8",
        "recorded with": "none",
        "recording overhead": "1.25 times",
    }


def test_metadata_of_another_kind_is_left_out() -> None:
    metadata = {"distributedInfo": ["rank"], "selftime": {"overhead": {"ratio": "1"}}}
    table = overview(sketch("cpu 1 | a", metadata=metadata)).filter(section="trace")

    assert table["metric"].to_list() == ["recorded", "recorded with"]


LANES = ("mark 1", "cpu 1", "cpu 2", "call 1", "gpu 7", "gpu 8", "gpu 1.7", "copy 9")


@given(
    st.lists(st.tuples(st.sampled_from(LANES), st.text("  kmnst", max_size=30)), max_size=8),
    st.floats(0, 64),
)
def test_shares_are_of_their_whole_and_parts_add_up(
    lanes: list[tuple[str, str]], blocks: float
) -> None:
    lines = [f"{lane} | {drawn}" for lane, drawn in lanes]
    legend = f"k = k; blocks_per_sm = {blocks}; occupancy = 30\ns = ProfilerStep#1\nn = ncclKernel"
    check(sketch("\n".join([legend, *lines])))


@pytest.mark.traces
def test_shares_are_of_their_whole_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        check(real(name))


def check(trace: Trace) -> None:
    table = overview(trace)
    ratios = table.filter(pl.col("unit") == "ratio")["value"].drop_nulls()
    assert ratios.is_between(0, 1 + 1e-9).all(), table
    assert set(table["unit"]) <= set(UNITS)
    assert table["definition"].str.ends_with(".").all()
    assert (table["value"].is_null() <= (table["text"].is_null() | (table["unit"] == "text"))).all()
    for (device,), rows in table.filter(section="device").group_by("device"):
        told = dict(rows.select("metric", "value").rows())
        busy = [told[metric] for metric in ("compute busy", "kernel busy", "busy")]
        assert None in busy or busy == sorted(busy), device
        assert len({share is None for share in busy}) == 1, "all or none is known"
        known = [told.get(m) for m in ("tensor cores", "no tensor cores", "tensor cores unknown")]
        assert None in known or sum(filter(None, known)) == pytest.approx(1), device
        if None not in (told["SM efficiency"], told["kernel busy"]):
            assert told["SM efficiency"] <= told["kernel busy"] + 1e-9, device
    parts = table.filter(section="execution")
    if parts.height:
        shown = parts.filter(~pl.col("metric").is_in(["average step", "all communication"]))
        whole = parts["value"][0]
        assert shown["value"].sum() == pytest.approx(whole)
        average = steps(trace).filter("counted")["time"].mean()
        assert average is None or whole == pytest.approx(average), "as the view `steps` has it"


@pytest.mark.traces
def test_overlapping_kernels_are_busy_once(real: "ReadReal") -> None:
    """74 kernels of this trace begin before the one before them on their stream has ended."""
    trace = real("b200-2025-vllm-eager")
    found = figures(trace, "device")
    kernels = trace.slices.filter(pl.col("category").cast(pl.String) == "kernel")

    (whole,) = steps(trace)["time"].to_list()
    assert found["kernel busy"] * whole < kernels["duration"].sum()


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("v100-2021-resnet50-workers0.pt.trace", (0.55514085, 0.54679041, 0.49128005)),
        ("v100-2021-resnet50-workers4.pt.trace", (0.70270347, 0.69224978, 0.48909891)),
    ],
)
def test_the_old_plugins_summary_is_ours_for_the_same_time(
    real: "ReadReal", name: str, plugin: tuple[float, ...]
) -> None:
    """It takes all from the first step to the last: GPU utilisation, SM efficiency, occupancy."""
    found = steps_with_counted_flags(real(name))
    whole = pl.DataFrame({"begin": [found["begin"][0]], "done": [found["done"][-1]]})
    (row,) = device_utilisation(real(name), whole).iter_rows(named=True)

    ours = (
        row["kernel_busy"] / row["window"],
        row["sm_time"] / row["window"],
        row["occupied_time"] / row["occupancy_time"],
    )
    assert ours == pytest.approx(plugin, abs=1e-8)


@pytest.mark.traces
def test_overview_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(overview, overview(real("mi300-2025-resnet-ddp-recompute")))


@pytest.mark.traces
def test_overview_of_a_trace_of_hosts_only(real: "ReadReal", golden: "Golden") -> None:
    golden(overview, overview(real("cpu-2024-gloo-rank34")))


@pytest.mark.traces
def test_what_bounds_the_step_is_what_the_answer_says(
    real: "ReadReal", real_names: list[str]
) -> None:
    compared = []
    for name in real_names:
        trace = real(name)
        account = advise(trace, rules={}).account
        told = figures(trace, "steps").get("bound by")
        if account is not None and told is not None:  # None: no launch was recorded
            assert told == bound_by_text(account), name
            compared.append(name)
    assert len(compared) > len(real_names) / 2
