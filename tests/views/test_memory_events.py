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
from selftime.views.memory_events import memory_events

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return memory_events(trace, **options).select(columns).rows()


def test_nothing_recorded_has_no_blocks() -> None:
    assert memory_events(Trace()).is_empty()
    assert memory_events(Trace(), step=3, top=1).is_empty()


def test_a_block_is_an_allocation_and_its_release() -> None:
    trace = sketch("""
        m = aten::mm; line = net.py:12 forward
        r = aten::relu; line = net.py:13 forward
        A = a; bytes = 2048
        cpu 1    | mmmm rrr
        memory 1 |  A B  a
        memory 1 |       b
    """)
    columns = ("operator", "size", "duration", "allocated", "released", "state")

    assert rows(trace, *columns) == [
        ("aten::mm", 2048, 50 * US, 10 * US, 60 * US, "released"),
        ("aten::mm", 1024, 30 * US, 30 * US, 60 * US, "released"),
    ]
    assert rows(trace, "file", "line", "function", "how")[0] == ("net.py", 12, "forward", "stack")
    assert rows(trace, "release_operator", "release_file", "release_line")[0] == (
        "aten::relu", "net.py", 13,
    )  # fmt: skip


def test_blocks_may_begin_before_and_live_on() -> None:
    trace = sketch("cpu 1 | mmmmmmmm\nmemory 1 | b AB")
    columns = ("size", "allocated", "released", "duration", "state")

    assert rows(trace, *columns) == [
        (1024, None, 0, None, "before the recording"),
        (1024, 20 * US, None, None, "lives on"),
        (1024, 30 * US, None, None, "lives on"),
    ]


def test_an_address_is_used_again_and_belongs_to_its_device() -> None:
    trace = sketch("""
        A = a; address = 7; device_type = 1; device = 0
        B = b; address = 7; device_type = 1; device = 1
        C = c; address = 7; device_type = 6; device = 0
        memory 1 | ABCbacAa
    """)
    columns = ("device_type", "device", "allocated", "released")

    assert rows(trace, *columns) == [
        ("CUDA", 0, 0, 40 * US),
        ("CUDA", 1, 10 * US, 30 * US),
        ("HIP", 0, 20 * US, 50 * US),
        ("CUDA", 0, 60 * US, 70 * US),
    ]
    assert rows(trace, "allocated", device="hip") == [(20 * US,)]


def test_what_does_not_fit_is_not_paired() -> None:
    trace = sketch("""
        B = b; bytes = 9; address = 65
        memory 1 | AAab aBa
    """)
    columns = ("size", "allocated", "released", "state")

    assert rows(trace, *columns) == [
        (1024, 0, None, "unpaired"),  # its release is missing
        (1024, 10 * US, 20 * US, "released"),
        (1024, None, 50 * US, "unpaired"),  # its allocation is
        (1024, None, 70 * US, "unpaired"),  # nine bytes were there
        (9, None, 30 * US, "unpaired"),
        (9, 60 * US, None, "unpaired"),
    ]


def test_records_without_an_address_are_not_paired() -> None:
    trace = sketch("memory 1 | Aa")
    early = replace(trace, memory=trace.memory.with_columns(address=pl.lit(None, pl.UInt64)))

    assert rows(early, "size", "state") == [(1024, "unpaired"), (1024, "unpaired")]


def test_a_failed_allocation_is_no_block_and_is_told() -> None:
    trace = sketch("F = f; failed = true; bytes = 4096\nmemory 1 | AFa")

    assert rows(trace, "size", "allocated", "state") == [
        (4096, 10 * US, "failed"),
        (1024, 0, "released"),
    ]


def test_what_only_allocates_stands_behind_its_caller() -> None:
    trace = sketch("""
        e = aten::empty_strided
        z = aten::zeros
        f = aten::empty
        t = train
        mark 1   | tttttttttttt
        cpu 1    | zzzz ff
        cpu 1    |  ee
        memory 1 |  A   Ba b
    """)

    assert rows(trace, "operator", "release_operator") == [
        ("aten::zeros (aten::empty_strided)", "aten::empty"),
        ("aten::empty", "train"),
    ]


def test_before_the_first_frame_no_line_is_known() -> None:
    """Another record's line is known, so that frames are looked for."""
    trace = sketch("""
        python 1 |    ffff
        memory 1 | A  B a b
        f = train.py(7): step
    """)
    assert rows(trace, "file", "line")[0] == (None, None)
    assert ("train.py", 7) in rows(trace, "file", "line")


def test_outside_an_operator_the_python_frame_tells_the_line() -> None:
    trace = sketch("""
        f = train.py(7): step
        g = train.py(3): main
        s = ProfilerStep#1
        python 1 | gggggggggg
        python 1 |    ffff
        mark 1   | ssssssssss
        cpu 1    |  m
        memory 1 |  A  a
    """)
    columns = ("release_operator", "release_file", "release_line", "file", "line", "how")

    assert rows(trace, *columns) == [
        ("ProfilerStep*", "train.py", 7, "train.py", 3, "definition"),
    ]


def test_steps_of_allocation_and_the_largest() -> None:
    trace = sketch("""
        s = ProfilerStep#4
        t = ProfilerStep#5
        B = b; bytes = 4096
        mark 1   | sssss tttt
        memory 1 |  A    Bab C
    """)

    assert rows(trace, "size", "step") == [(4096, 5), (1024, 4), (1024, None)]
    assert rows(trace, "size", step=5) == [(4096,)]
    assert rows(trace, "size", top=1) == [(4096,)]
    with pytest.raises(UsageError, match="`top` is `-1`"):
        memory_events(trace, top=-1)


events = st.lists(
    st.tuples(
        st.integers(0, 60),  # time
        st.sampled_from([-4, -2, 0, 2, 4]),  # bytes
        st.one_of(st.none(), st.integers(1, 3)),  # address
        st.sampled_from([None, 0, 1]),  # device type
        st.booleans(),  # failed
    ),
    max_size=50,
)


@given(events)
def test_every_record_is_in_one_block(
    recorded: list[tuple[int, int, int | None, int | None, bool]],
) -> None:
    rows = [
        {"time": time, "track": 0, "bytes": size, "address": address, "device_type": kind,
         "failed": failed}
        for time, size, address, kind, failed in sorted(recorded, key=lambda event: event[0])
    ]  # fmt: skip
    trace = Trace(memory=pl.DataFrame(rows, schema=dict(schema.MEMORY.dtypes)))
    blocks = memory_events(trace)
    happened = trace.memory.filter(~pl.col("failed"))

    gains = blocks.filter(pl.col("allocated").is_not_null() & (pl.col("state") != "failed"))
    losses = blocks.filter(pl.col("released").is_not_null())
    assert int(gains["size"].sum()) - int(losses["size"].sum()) == happened["bytes"].sum()
    assert gains.height == (happened["bytes"] > 0).sum()
    assert losses.height == (happened["bytes"] < 0).sum()
    assert blocks["duration"].drop_nulls().ge(0).all()
    known = happened.filter(pl.col("address").is_not_null())
    open_blocks = blocks.filter(pl.col("state").is_in(["lives on", "before the recording"]))
    assert open_blocks.height <= 2 * known.n_unique(["device_type", "address"])


def test_blocks_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(memory_events, memory_events(real("h100-2025-vit"), top=12))


def test_real_blocks_hold_every_record(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        blocks = memory_events(trace)
        happened = trace.memory.filter(~pl.col("failed"))["bytes"].drop_nulls()
        gains = int(blocks.filter(pl.col("allocated").is_not_null())["size"].sum())
        losses = int(blocks.filter(pl.col("released").is_not_null())["size"].sum())
        assert gains - losses == happened.sum(), name
        assert gains == happened.filter(happened > 0).sum(), name
