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
from selftime.views.memory_peak import memory_peak

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
KIB = 1024


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return memory_peak(trace, **options).select(columns).rows()


def held(trace: Trace, operator: str, **options: Any) -> list[str]:
    """Categories of what an operator holds."""
    table = memory_peak(trace, by="operator+category", **options)
    found: list[str] = table.filter(pl.col("operator") == operator)["category"].to_list()
    return found


def test_nothing_recorded_has_no_peak() -> None:
    assert memory_peak(Trace()).is_empty()


def test_tells_who_holds_the_peak() -> None:
    trace = sketch("""
        m = aten::mm; line = net.py:12 forward
        r = aten::relu; line = net.py:13 forward
        A = a; bytes = 2048; device_type = 1; device = 0
        B = b; bytes = 1024; device_type = 1; device = 0
        C = c; bytes = 512; device_type = 1; device = 0
        D = d; bytes = 512; device_type = 1; device = 0
        cpu 1    | mmmmm rrrrr
        memory 1 | ACc   B adD b
    """)

    assert rows(trace, "bytes", "share", "operator", "file", "line", "blocks", "time") == [
        (2048, 2 / 3, "aten::mm", "net.py", 12, 1, 60 * US),
        (1024, 1 / 3, "aten::relu", "net.py", 13, 1, 60 * US),
    ]
    assert rows(trace, "allocated", "released", "device_type", "device") == [
        (0, 80 * US, "CUDA", 0),
        (60 * US, 120 * US, "CUDA", 0),
    ]
    assert rows(trace, "bytes", "operator", at=15 * US) == [(2560, "aten::mm")]
    assert rows(trace, "bytes", "line", by="line")[0] == (2048, 12)
    assert rows(trace, "operator", "line", by="category")[0] == (None, None)


def test_the_peak_between_two_instants_is_told() -> None:
    trace = sketch("""
        A = a; device_type = 1
        B = b; device_type = 1
        C = c; device_type = 1; bytes = 512
        cpu 1    | mmmmmmmmmmmmmm
        memory 1 | A B ab  C c
    """)

    assert rows(trace, "time", "bytes") == [(20 * US, 2 * KIB)]
    assert rows(trace, "time", "bytes", start=60 * US, end=120 * US) == [(80 * US, 512)]
    assert rows(trace, "time", "bytes", start=10 * US, end=15 * US) == [(10 * US, 1 * KIB)]
    with pytest.raises(UsageError, match="not after"):
        memory_peak(trace, start=20, end=10)
    with pytest.raises(UsageError, match="cannot be given together"):
        memory_peak(trace, start=20, end=30, at=25)


def test_modules_hold_what_ran_within_them() -> None:
    trace = sketch("""
        n = nn.Module: Linear_0; module_id = 0
        python 1 |  nnnn
        cpu 1    |  aa   b
        memory 1 |  A    B
    """)

    assert rows(trace, "bytes", "module", "operator", by="module") == [
        (1 * KIB, None, None),
        (1 * KIB, "nn.Module: Linear_0", None),
    ]


def test_what_was_there_before_is_a_row() -> None:
    trace = sketch("""
        A = a; device_type = 1
        B = b; device_type = 1
        memory 1 | A a b
    """)
    more = replace(trace, memory=trace.memory.with_columns(pl.col("allocated") + 3 * KIB))
    columns = ("bytes", "category", "blocks", "released")

    assert rows(more, *columns) == [
        (3 * KIB, "before the recording", None, None),  # of 2 KiB nobody says when they are gone
        (1 * KIB, "unknown", 1, 20 * US),
    ]
    less = replace(trace, memory=trace.memory.with_columns(pl.col("allocated") + 1 * KIB))
    assert rows(less, *columns) == [
        (1 * KIB, "unknown", 1, 20 * US),
        (1 * KIB, "before the recording", 1, 40 * US),
    ]


def test_a_peak_before_the_first_allocation_counts() -> None:
    trace = sketch("B = b; device_type = 1\nmemory 1 |   b")

    assert rows(trace, "bytes", "category", "time") == [(1 * KIB, "before the recording", 0)]


def test_totals_that_contradict_the_records_are_told() -> None:
    trace = sketch("A = a; device_type = 1\nmemory 1 | A a")
    wrong = replace(trace, memory=trace.memory.with_columns(allocated=pl.lit(100, pl.Int64)))

    assert rows(wrong, "bytes", "category", by="category")[-1] == (-924, "unaccounted")
    assert memory_peak(wrong)["bytes"].sum() == 100


def test_without_addresses_nobody_can_tell() -> None:
    trace = sketch("cpu 1 | mmm\nmemory 1 | Aa")
    early = replace(trace, memory=trace.memory.with_columns(address=pl.lit(None, pl.UInt64)))

    assert rows(early, "bytes", "category", "operator") == [(1 * KIB, "unknown", None)]


TRAINING = """
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    l = aten::linear
    m = aten::mm
    n = autograd::engine::evaluate_function: MmBackward0
    b = MmBackward0
    a = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    g = aten::clone
    o = Optimizer.step#AdamW.step
    p = aten::zeros_like
    q = aten::mul
    I = input
    W = workspace
    X = activation
    G = gradient
    H = gradient
    V = gradient's temporary
    S = state
    Q = temporary
    mark 1   | sssssssssssssssssssssssss tttttttttttttttt uuuuuu
    mark 1   | ddd                 oooo
    cpu 1    |     lllll           ppq
    cpu 1    |      mmm            
    cpu 2    |           nnnnn aaa
    cpu 2    |            bbb  ggg
    memory 1 |  I  W Xw            S Qq        i
    memory 2 |            GV v H                h
    memory 2 |               x                 g
"""  # noqa: W291 - lanes of a drawing


def test_categories_follow_from_when_blocks_live() -> None:
    trace = sketch(TRAINING)

    def all_told(**options: Any) -> set[tuple[str, str]]:
        table = memory_peak(trace, by="operator+category", **options)
        return set(table.select("operator", "category").rows())

    assert all_told(at=60 * US) == {
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "input"),
        ("aten::linear", "temporary"),
        ("aten::mm", "activation"),
    }
    assert all_told(at=130 * US) == {
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "input"),
        ("aten::mm", "activation"),
        ("MmBackward0", "gradient"),
        ("MmBackward0", "temporary"),
    }
    assert all_told(at=220 * US) == {
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "input"),
        ("MmBackward0", "gradient"),
        ("aten::clone", "gradient"),
        ("aten::zeros_like", "optimizer state"),
        ("aten::mul", "temporary"),
    }


def test_a_copy_of_host_memory_is_input() -> None:
    trace = sketch("""
        t = aten::to
        c = aten::copy_
        k = Memcpy HtoD (Pageable -> Device)
        e = aten::empty
        cpu 1    | ttttttt  mmm
        cpu 1    |  ee ccc
        call 1   |     k
        copy 7   |      kkk
        memory 1 |  A         a    
    """)  # noqa: W291 - lanes of a drawing

    assert held(trace, "aten::to (aten::empty)", at=20 * US) == ["input"]


def test_a_parameter_is_made_where_modules_are_built_and_lasts() -> None:
    drawing = """
        i = torch/nn/modules/linear.py(114): __init__
        c = torch/nn/modules/module.py(1518): _call_impl
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        e = aten::empty
        f = aten::mm
        python 1 | iii  ccc
        mark 1   | ssssssssss tttttt uuuuu
        cpu 1    |  e    f
        memory 1 |  A    B            
    """  # noqa: W291 - lanes of a drawing
    trace = sketch(drawing)

    assert held(trace, "aten::empty") == ["parameter"]
    assert held(trace, "f") == []
    assert held(trace, "aten::mm") == ["unknown"]


def test_what_a_pass_makes_and_releases_is_temporary() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        t = ProfilerStep#2
        mark 1   | ssssssss ttttttttt
        cpu 1    | a b c    d
        memory 1 | A B a         b
    """)

    assert held(trace, "a") == ["temporary"]
    assert held(trace, "b") == ["unknown"]  # it crossed the end of its step


LEAK = """
    r = ProfilerStep#1
    s = ProfilerStep#2
    t = ProfilerStep#3
    u = ProfilerStep#4
    l = aten::sum; line = train.py:31 step
    m = aten::mm; line = net.py:12 forward
    mark 1   | rrrrrrrr ssssssss tttttttt uuuuuuuu
    cpu 1    | mm ll    mm ll    mm ll    mm ll
"""


def growing(memory: str, **options: Any) -> list[tuple[Any, ...]]:
    table = memory_peak(sketch(LEAK + f"    memory 1 | {memory}"), by="line", **options)
    return (
        table.filter(pl.col("growth_per_step") > 0).select("file", "line", "growth_per_step").rows()
    )


def test_a_line_that_keeps_more_every_step_leaks() -> None:
    assert growing("A  L a   B  M b   C  N c   D  O d") == [("train.py", 31, 1 * KIB)]


def test_a_leak_is_told_even_if_the_peak_holds_none_of_it() -> None:
    assert growing("A  L a   B  M b   C  N c   D  O d", at=0) == [("train.py", 31, 1 * KIB)]


def test_a_sawtooth_is_no_leak() -> None:
    assert growing("A  L a   B  Mlb   C  Nmc   D  Ond") == []
    assert growing("A  L a   B  M b   C  Nlmnc  D  O d") == []


def test_a_cache_that_filled_is_no_leak() -> None:
    assert growing("A  L     B  M             ") == []


def test_a_block_that_outlives_the_recording_is_what_its_siblings_were() -> None:
    trace = sketch("""
        r = ProfilerStep#1
        s = ProfilerStep#2
        t = ProfilerStep#3
        u = ProfilerStep#4
        l = aten::clone; line = train.py:31 step
        m = aten::mm; line = net.py:12 forward
        b = autograd::engine::evaluate_function: MmBackward0
        mark 1   | rrrrrrrr ssssssss tttttttt uuuuuuuu
        cpu 1    | mm ll bb mm ll bb mm ll bb mm ll bb
        memory 1 | A  L     Ba M     Cb N     Dc O
    """)

    assert rows(trace, "category", "growth_per_step", "bytes", by="category") == [
        ("unknown", 1 * KIB, 3 * KIB),
        ("activation", 0, 2 * KIB),
    ]


def test_without_steps_growth_is_unknown() -> None:
    assert rows(sketch("memory 1 | A"), "growth_per_step") == [(None,)]


def test_refuses_what_it_cannot_show() -> None:
    with pytest.raises(
        UsageError, match="`by` is `device`; choose one or several of line, module, operator"
    ):
        memory_peak(Trace(), by="device")
    with pytest.raises(UsageError, match="`step` is `9`, but there is no such step"):
        memory_peak(sketch(LEAK), step=9)
    with pytest.raises(UsageError, match="cannot be given together"):
        memory_peak(Trace(), step=1, at=1)


def test_the_peak_of_one_step() -> None:
    trace = sketch(LEAK + "    memory 1 | AB ab    C        D  E")

    def peak(**options: Any) -> tuple[Any, ...]:
        return rows(trace, "bytes", "time", by="category", **options)[0]

    assert peak() == (3 * KIB, 210 * US)
    assert peak(step=1) == (2 * KIB, 10 * US)
    assert peak(step=2) == (1 * KIB, 90 * US)


events = st.lists(
    st.tuples(
        st.integers(0, 60),  # time
        st.sampled_from([-4, -2, 0, 2, 4]),  # bytes
        st.one_of(st.none(), st.integers(1, 3)),  # address
        st.sampled_from([None, 0, 1]),  # device type
        st.one_of(st.none(), st.integers(-1, 50)),  # allocated
    ),
    max_size=50,
)


@given(events, st.integers(-1, 70))
def test_rows_sum_to_the_curve_at_every_instant(
    recorded: list[tuple[int, int, int | None, int | None, int | None]], at: int
) -> None:
    rows = [
        {"time": time, "track": 0, "bytes": size, "address": address, "device_type": kind,
         "allocated": total, "failed": False}
        for time, size, address, kind, total in sorted(recorded, key=lambda event: event[0])
    ]  # fmt: skip
    trace = Trace(memory=pl.DataFrame(rows, schema=dict(schema.MEMORY.dtypes)))
    held = memory_peak(trace, at=at)
    for kind in trace.memory["device_type"].unique():
        number = pl.col("device_type").eq_missing({0: "CPU", 1: "CUDA"}.get(kind))
        curve = memory_curve(trace, points=0).filter(number)
        found = int(held.filter(number)["bytes"].sum())
        until = curve.filter(pl.col("time") <= at) if at >= 0 else curve
        if until.height:
            expected = until["allocated"][-1] if at >= 0 else None
            opening = int(curve["allocated"][0]) - _first_change(trace, kind)
            assert found == (expected if at >= 0 else max(opening, *curve["allocated"]))


def _first_change(trace: Trace, kind: int | None) -> int:
    return int(trace.memory.filter(pl.col("device_type").eq_missing(kind))["bytes"][0])


def test_peak_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(memory_peak, memory_peak(real("h100-2025-vit")))


@pytest.mark.sweep
def test_real_peaks_are_those_of_the_curve(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        held = memory_peak(trace).group_by("device_type").agg(pl.col("bytes").sum())
        curve = memory_curve(trace).group_by("device_type").agg(pl.col("allocated").max())
        assert sorted(held.rows()) == sorted(curve.rows()), name
