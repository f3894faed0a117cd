from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import schema
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.memory_curve import memory_curve

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
KIB = 1024

ON_GPU = """
    A = a; bytes = 1024; device_type = 1; device = 0; reserved = 4096
    B = b; bytes = 2048; device_type = 1; device = 0; reserved = 4096
    memory 1 | AB ab
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return memory_curve(trace, **options).select(columns).rows()


def without_totals(trace: Trace) -> Trace:
    """The trace as PyTorch before 1.10 wrote it."""
    unknown = {name: pl.lit(None, pl.Int64) for name in ("allocated", "reserved")}
    return replace(
        trace, memory=trace.memory.with_columns(**unknown, address=pl.lit(None, pl.UInt64))
    )


def with_more(trace: Trace, size: int) -> Trace:
    """The trace of a program that held so many bytes more before the recording."""
    return replace(trace, memory=trace.memory.with_columns(pl.col("allocated") + size))


def test_nothing_recorded_has_no_curve() -> None:
    assert memory_curve(Trace()).is_empty()


def test_tells_totals_after_every_record() -> None:
    described = [{"name": "H100", "memory": 1 << 36}]
    trace = sketch(ON_GPU, devices=described)

    assert rows(trace, "device_type", "device", "time", "allocated", "reserved") == [
        ("CUDA", 0, 0, 1 * KIB, 4 * KIB),
        ("CUDA", 0, 10 * US, 3 * KIB, 4 * KIB),
        ("CUDA", 0, 30 * US, 2 * KIB, 4 * KIB),
        ("CUDA", 0, 40 * US, 0, 4 * KIB),
    ]
    assert rows(trace, "fragmentation", "capacity", "how", "name")[1] == (
        1 * KIB, 1 << 36, "recorded", "H100",
    )  # fmt: skip


def test_totals_of_an_allocator_hold_what_was_there_before() -> None:
    trace = with_more(sketch(ON_GPU), 5 * KIB)

    assert rows(trace, "allocated", "how")[0] == (6 * KIB, "recorded")


def test_without_totals_records_are_summed() -> None:
    trace = without_totals(sketch(ON_GPU))

    assert rows(trace, "allocated", "reserved", "fragmentation", "how") == [
        (1 * KIB, None, None, "summed"),
        (3 * KIB, None, None, "summed"),
        (2 * KIB, None, None, "summed"),
        (0, None, None, "summed"),
    ]


def test_what_is_released_later_was_there_before() -> None:
    trace = sketch("""
        A = a; bytes = 1024; device_type = 0; device = -1
        B = b; bytes = 2048; device_type = 0; device = -1
        memory 1 | A b
    """)

    assert rows(trace, "allocated", "how") == [(3 * KIB, "summed"), (1 * KIB, "summed")]


def test_a_release_of_what_was_there_before_makes_no_total_negative() -> None:
    trace = without_totals(sketch("A = a; bytes = 1024\nB = b; bytes = 2048\nmemory 1 | b A a"))

    assert rows(trace, "allocated", "how") == [
        (0, "summed"),
        (1 * KIB, "summed"),
        (0, "summed"),
    ]
    assert rows(sketch("B = b; bytes = 2048; device_type = 1\nmemory 1 | b"), "allocated") == [(0,)]


def test_totals_told_later_set_the_baseline() -> None:
    trace = with_more(sketch(ON_GPU), 5 * KIB)
    told = pl.when(pl.col("time") > 20 * US).then("allocated")
    late = replace(trace, memory=trace.memory.with_columns(allocated=told))

    assert rows(late, "allocated", "how")[0] == (6 * KIB, "summed")


def test_the_host_has_no_reserve_and_counts_from_the_recording_on() -> None:
    trace = sketch("A = a; bytes = 1024; reserved = 0\nmemory 1 | A a")

    assert rows(trace, "device_type", "device", "reserved", "capacity", "how")[0] == (
        "CPU", -1, None, None, "summed",
    )  # fmt: skip


def test_every_type_of_device_has_a_name_and_a_curve() -> None:
    trace = sketch("""
        A = a; device_type = 6; device = 0
        B = b; device_type = 77; device = 1
        C = c; device_type = 0
        memory 1 | CAB cab
    """)

    found = memory_curve(trace).unique("device_type", maintain_order=True)
    assert found.select("device_type", "device").rows() == [
        ("HIP", 0),
        ("device type 77", 1),
        ("CPU", -1),
    ]
    assert rows(trace, "device_type", device="hip") == [("HIP",), ("HIP",)]
    assert memory_curve(trace, device="xpu").is_empty()
    with pytest.raises(UsageError, match=r"`device` is `gpu`.*here are CPU, HIP, device type 77"):
        memory_curve(trace, device="gpu")


def test_failed_allocations_are_in_no_total() -> None:
    trace = sketch("A = a\nF = f; failed = true; bytes = 9999\nmemory 1 | AF a")

    assert rows(trace, "allocated") == [(1 * KIB,), (0,)]


def test_points_bound_the_rows() -> None:
    trace = sketch("memory 1 | " + "ABCDEF" + "fedcba" * 1 + "".join("Gg" for _ in range(40)))

    assert memory_curve(trace, points=0).height == 92
    thinned = memory_curve(trace, points=8)
    assert thinned.height <= 8
    assert thinned["allocated"].max() == 6 * KIB
    with pytest.raises(UsageError, match="`points` is `3`; write 4 or more, or 0 for all"):
        memory_curve(trace, points=3)


changes = st.lists(
    st.tuples(
        st.integers(0, 500),  # time
        st.integers(-5, 5),  # bytes
        st.sampled_from([0, 1, 6, 99]),  # device type
        st.one_of(st.none(), st.integers(0, 100)),  # reserved
    ),
    max_size=60,
)


def recorded(events: list[tuple[int, int, int, int | None]]) -> Trace:
    rows = [
        {"time": time, "track": 0, "bytes": size, "device_type": kind, "device": 0,
         "reserved": reserved, "failed": False}
        for time, size, kind, reserved in sorted(events, key=lambda event: event[0])
    ]  # fmt: skip
    return Trace(memory=pl.DataFrame(rows, schema=dict(schema.MEMORY.dtypes)))


@given(changes, st.integers(4, 40))
def test_thinning_keeps_the_peaks_and_the_last_total(
    events: list[tuple[int, int, int, int | None]], points: int
) -> None:
    trace = recorded(events)
    every = memory_curve(trace, points=0)
    thinned = memory_curve(trace, points=points)

    assert every.height == len(events)
    assert (every["allocated"] >= 0).all()
    for (kind,), curve in every.group_by("device_type"):
        kept = thinned.filter(pl.col("device_type") == kind)
        assert kept.height <= points
        for column in ("allocated", "reserved"):
            assert kept[column].max() == curve[column].max()
        assert kept["allocated"].min() == curve["allocated"].min()
        assert kept["allocated"][-1] == curve["allocated"][-1]


def test_curve_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(memory_curve, memory_curve(real("mi300-normalization-layers"), points=12))


def test_real_curves_follow_their_records(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        curve = memory_curve(trace, points=0)
        happened = trace.memory.filter(~pl.col("failed"))
        assert curve.height == happened.height, name
        ends = curve.group_by("device_type", "device").agg(
            change=pl.col("allocated").last() - pl.col("allocated").first()
        )
        later = pl.col("bytes").slice(1).sum()
        told = happened.group_by("device_type", "device").agg(later)["bytes"]
        assert sorted(ends["change"]) == sorted(told), name
        bounds = curve.filter(pl.col("capacity").is_not_null())
        assert (bounds["allocated"] <= bounds["capacity"]).all(), name


def test_the_peak_of_the_v100_is_what_its_records_add_up_to(real: "ReadReal") -> None:
    curve = memory_curve(real("v100-2021-resnet50-workers0.pt.trace"), device="cuda")

    assert curve["allocated"].max() == 2_791_636_480
    assert set(curve["how"]) == {"summed"}
