"""What operators have to do, how fast they do it, on what, and how their runs are spread."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.account.useful_work import operator_efficiencies
from selftime.analysis.models.modelled_operator_work import modelled_share_of_operator_time
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
A100 = {"name": "NVIDIA A100-SXM4-40GB", "multiprocessors": 108}
ONE = 2 * 512**3
"""Operations of the product of two matrices of 512 by 512."""
MOVED = 2 * 3 * 512**2
"""Bytes of its inputs and output in 16 bits."""

LAYER = """
    t = train
    l = aten::linear; input_shapes = [[512,512],[512,512]]; input_types = ["c10::Half","c10::Half"]
    m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["c10::Half","c10::Half"]
    r = aten::relu; input_shapes = [[512,512]]; input_types = ["c10::Half"]
    o = my::operator
    k = ampere_fp16_s16816gemm_fp16_128x64_nn
    v = void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)
    mark 1 | tttttttttttttttttt
    cpu 1  | lllllllll rrr oooo
    cpu 1  |  mmmmm
    call 1 |   k        v   v
    gpu 7  |    kkkk     vv   vvvv
"""


def row(trace: Trace, name: str, **options: Any) -> dict[str, Any]:
    found = operators(trace, **options).filter(
        (pl.col("name").cast(pl.String) == name) & ~pl.col("kind").is_in(["call"])
    )
    return found.row(0, named=True)


def of(table: pl.DataFrame, name: str, *columns: str) -> tuple[Any, ...]:
    rows = table.filter((pl.col("name").cast(pl.String) == name) & (pl.col("kind") != "call"))
    assert rows.height == 1
    return rows.select(columns).row(0)


def test_operations_belong_to_the_operator_that_computes() -> None:
    table = operators(sketch(LAYER))

    for name, own, total in (
        ("aten::linear", None, ONE),
        ("aten::mm", ONE, ONE),
        ("aten::relu", 512**2, 512**2),
        ("my::operator", None, None),
        ("train", None, ONE + 512**2),
    ):
        assert of(table, name, "self_model_flops", "model_flops") == (own, total), name
    assert table["self_model_flops"].sum() == ONE + 512**2
    assert table["self_model_bytes"].sum() == MOVED + 2 * 2 * 512**2


def test_rates_are_of_device_time_and_shares_of_the_devices_peak() -> None:
    table = operators(sketch(LAYER, devices=[A100]))
    columns = ("flops_rate", "peak_flops", "dtype", "flops_share")

    rate = ONE / (40 * US) * 1e9
    for name in ("aten::mm", "aten::linear"):
        assert of(table, name, *columns) == (
            rate, 312e12, "float16", pytest.approx(rate / 312e12, rel=1e-6)
        ), name  # fmt: skip
    assert of(table, "aten::mm", "bytes_rate", "peak_bytes", "bytes_share", "intensity") == (
        MOVED / (40 * US) * 1e9,
        1555e9,
        pytest.approx(MOVED / (40 * US) / 1555),
        ONE / MOVED,
    )


def test_what_has_no_model_counts_in_the_time_and_is_told() -> None:
    table = operators(sketch(LAYER, devices=[A100]))

    assert of(table, "train", "device_time_total", "modelled_share") == (100 * US, 0.6)
    assert of(table, "train", "flops_rate") == ((ONE + 512**2) / (100 * US) * 1e9,)
    assert of(table, "train", "flops_share") == (pytest.approx(ONE / 312e12 / 100e-6, rel=1e-6),)
    assert of(table, "my::operator", "modelled_share", "flops_rate") == (0.0, None)


def test_efficiencies_are_kept_of_modelled_operators_alone() -> None:
    trace = sketch(LAYER, devices=[A100])
    known = operator_efficiencies(trace)
    every = known.of_slices(trace.slices["id"])
    has_rate = trace.slices["name"].filter(every["bytes_rate"].is_not_null())
    assert {"aten::mm", "aten::relu"} <= set(has_rate.cast(pl.String).to_list())
    assert "my::operator" not in has_rate.cast(pl.String).to_list()
    assert {column.size for column in known.columns.values()} == {3}, "mm, relu, and none"


def test_coverage_is_of_all_device_time() -> None:
    alone = "gpu 8 |    kkkkkkkkkk"

    assert modelled_share_of_operator_time(sketch(LAYER)) == 0.6
    assert modelled_share_of_operator_time(sketch(LAYER + alone)) == 0.3
    assert modelled_share_of_operator_time(sketch("cpu 1 | aa")) == 0
    assert modelled_share_of_operator_time(Trace()) is None


def test_pointwise_operations_have_no_peak_but_that_of_memory() -> None:
    table = operators(sketch(LAYER, devices=[A100]))

    assert of(table, "aten::relu", "peak_flops", "flops_share") == (None, None)
    assert of(table, "aten::relu", "bytes_share") == (
        pytest.approx(2 * 2 * 512**2 / 20e-6 / 1555e9),
    )


@pytest.mark.parametrize(
    "devices",
    [
        [],
        [{"name": "A device of tomorrow"}],
        [{"name": ""}],
        [{"name": None}],
        [A100 | {"multiprocessors": 14}],
    ],
    ids=["none", "unknown", "empty", "null", "a slice of one"],
)
def test_an_unknown_device_has_no_peak(devices: list[dict[str, Any]]) -> None:
    table = operators(sketch(LAYER, devices=devices))

    for column in ("peak_flops", "peak_bytes", "flops_share", "bytes_share"):
        assert table[column].null_count() == table.height, column
    assert of(table, "aten::mm", "model_flops") == (ONE,)


def test_without_a_device_rates_are_of_host_time() -> None:
    on_host = "\n".join(line for line in LAYER.splitlines() if "call 1" not in line)
    table = operators(sketch(on_host.partition("gpu 7")[0], devices=[A100]))

    assert of(table, "aten::mm", "flops_rate", "flops_share") == (ONE / (50 * US) * 1e9, None)
    assert of(table, "aten::linear", "modelled_share") == (50 / 90,)
    assert table["tensor_core_share"].null_count() == table.height


FLOATS = """
    m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]
    k = {}
    cpu 1  | mmm
    call 1 |  k
    gpu 7  |   kk
"""


@pytest.mark.parametrize(
    ("kernel", "dtype", "peak"),
    [
        ("ampere_sgemm_128x64_nn", "float32", 19.5e12),
        ("ampere_s1688gemm_128x64_nn", "tf32", 156e12),
        ("mystery_gemm", "float32", None),
    ],
)
def test_float32_is_tf32_where_kernels_use_tensor_cores(
    kernel: str, dtype: str, peak: float | None
) -> None:
    table = operators(sketch(FLOATS.format(kernel), devices=[A100]))

    assert of(table, "aten::mm", "dtype", "peak_flops") == (dtype, peak)


def test_copies_between_host_and_device_are_not_limited_by_its_memory() -> None:
    trace = sketch("""
        c = aten::copy_; input_shapes = [[1024],[1024],[]]; input_types = ["float","float","Scalar"]
        u = Memcpy HtoD (Pinned -> Device)
        d = Memcpy DtoD (Device -> Device)
        cpu 1  | ccc ccc
        call 1 |  u   d
        copy 7 |   u   d
    """)

    assert row(trace, "aten::copy_") | {"count": 2} == row(trace, "aten::copy_")
    assert row(trace, "aten::copy_")["model_bytes"] == 2 * 4 * 1024
    assert row(trace, "aten::copy_")["modelled_share"] == 0.5


def test_what_launched_nothing_is_in_no_rate() -> None:
    """Work on the host, or captured to be replayed: no time of the device is its own."""
    trace = sketch("""
        t = train
        m = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]
        k = ampere_sgemm_128x64_nn
        mark 1 | ttttttttt
        cpu 1  | mmm  mmm
        call 1 |  k
        gpu 7  |   kk
    """)

    assert row(trace, "train")["model_flops"] == 2 * ONE
    for name in ("train", "aten::mm"):
        assert row(trace, name)["flops_rate"] == ONE / (20 * US) * 1e9


def test_lists_have_the_dtype_that_their_kernels_name() -> None:
    trace = sketch(
        """
        a = aten::_foreach_add_; input_shapes = [[[8,4],[8]],[[8,4],[8]],[]]; input_types = {lists}
        b = aten::cat; input_shapes = [[[8,4],[8,4]],[]]; input_types = ["TensorList","Scalar"]
        c = aten::_foreach_mul_; input_shapes = [[[8,4]],[]]; input_types = ["TensorList","Scalar"]
        k = multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2> >
        l = at::native::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 2, 128, 1>
        m = mystery
        cpu 1  | aaa bbb ccc
        call 1 |  k   l   m
        gpu 7  |   k   l   m
    """.replace("{lists}", '["TensorList","TensorList","Scalar"]')
    )

    assert row(trace, "aten::_foreach_add_")["model_bytes"] == 4 * 3 * 40
    assert row(trace, "aten::_foreach_add_")["model_flops"] == 40
    assert row(trace, "aten::cat")["model_bytes"] == 2 * 2 * 64
    assert row(trace, "aten::_foreach_mul_")["model_bytes"] is None


def test_tensor_cores_are_told_by_the_kernels_names() -> None:
    table = operators(sketch(LAYER))
    columns = ("tensor_core_eligible", "tensor_core_share", "tensor_core_unknown")

    assert of(table, "aten::mm", *columns) == (True, 1.0, 0.0)
    assert of(table, "aten::linear", *columns) == (True, 1.0, 0.0)
    assert of(table, "aten::relu", *columns) == (False, 0.0, 0.0)
    assert of(table, "train", *columns) == (None, 0.4, 0.0)
    assert of(table, "ampere_fp16_s16816gemm_fp16_128x64_nn", *columns) == (None, 1.0, 0.0)


def test_runs_are_spread() -> None:
    trace = sketch("""
        cpu 1  | aaaa aaaaaaaa aa
        call 1 |  k    k
        gpu 7  |   kk    kkkkkk
    """)
    found = row(trace, "a")
    host, device = np.array([40, 80, 20]) * US, np.array([20, 60, 0]) * US

    for side, runs in (("cpu", host), ("device", device)):
        assert [found[f"{side}_time_{figure}"] for figure in FIGURES] == pytest.approx(
            [runs.min(), np.median(runs), np.percentile(runs, 95), runs.max(), runs.std()]
        )
    kernel = operators(trace).filter(kind="kernel").row(0, named=True)
    assert [kernel[f"cpu_time_{figure}"] for figure in FIGURES] == [None] * 5
    assert kernel["device_time_median"] == 40 * US


FIGURES = ("min", "median", "p95", "max", "std")


def test_stacks_that_are_not_known_are_a_row_so_that_groups_add_up() -> None:
    trace = sketch("""
        a = aten::a; call_stack = net.py(3): forward;train.py(9): main
        b = aten::a
        cpu 1 | aa bbb
    """)

    table = operators(trace, by="stack", sort="total").select("name", "stack", "cpu_time_total")
    assert table.rows() == [
        ("aten::a", None, 30 * US),
        ("aten::a", "net.py(3): forward;train.py(9): main", 20 * US),
    ]


WORDS = {
    "l": 'aten::linear; input_shapes = [[8,4],[2,4]]; input_types = ["float","float"]',
    "m": 'aten::mm; input_shapes = [[8,4],[4,2]]; input_types = ["float","float"]',
    "c": 'aten::copy_; input_shapes = [[8,4],[8,4]]; input_types = ["float","float"]',
    "s": 'aten::sum; input_shapes = [[8,4]]; input_types = ["c10::BFloat16"]',
    "x": 'aten::mm; input_shapes = [[8,4],[5,2]]; input_types = ["float","float"]',
    "y": "train",
}


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Operators on several threads, nested and crossing, with work on several streams."""
    runs = st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 8), st.sampled_from("lmcsxy")), max_size=6
    )
    lines = [f"{letter} = {words}" for letter, words in WORDS.items()]
    for lane in draw(st.lists(st.sampled_from(["cpu 1", "cpu 2", "mark 1"]), max_size=6)):
        strokes = "".join(" " * gap + n * letter for gap, n, letter in draw(runs))
        lines.append(f"{lane} | {strokes}")
    for n in range(draw(st.integers(0, 6))):
        kernel = draw(st.sampled_from(["ampere_s16816gemm", "mystery_gemm", "elementwise_kernel"]))
        at = draw(st.integers(0, 30))
        letter = "kghijo"[n]
        lines += [
            f"{letter} = {kernel}",
            f"call {draw(st.integers(1, 2))} | {' ' * at}{letter}",
            f"gpu {draw(st.integers(7, 8))} | {' ' * (at + 1)}{letter * draw(st.integers(1, 9))}",
        ]
    return sketch("\n".join(lines), devices=draw(st.sampled_from([[], [A100]])))


@given(traces())
def test_invariants(trace: Trace) -> None:
    whole = operators(trace)
    holds(whole)
    for by in ("shape", "type", "stack", "line"):
        table = operators(trace, by=by)
        for column in ("self_model_flops", "self_model_bytes", "count"):
            assert table[column].sum() == whole[column].sum(), (by, column)


def holds(table: pl.DataFrame) -> None:
    """What is true of every table of operators."""
    for own, total in (
        ("self_model_flops", "model_flops"),
        ("self_model_bytes", "model_bytes"),
        ("self_cpu_time_total", "cpu_time_total"),
    ):
        plain = table.filter(pl.col(own).is_not_null() & ~pl.col("kind").is_in(["memory"]))
        assert (plain[own] <= plain[total]).all(), own
    tolerance = 1e-9
    for share in ("modelled_share", "tensor_core_share", "tensor_core_unknown"):
        assert table[share].drop_nulls().is_between(0, 1 + tolerance).all(), share
    both = table["tensor_core_share"] + table["tensor_core_unknown"]
    assert (both.drop_nulls() <= 1 + tolerance).all()
    for side in ("cpu", "device"):
        spread = table.select(f"{side}_time_{figure}" for figure in FIGURES).drop_nulls()
        least, median, high, most, deviation = spread
        assert (least <= median + tolerance).all()
        assert (median <= high + tolerance).all()
        assert (high <= most + tolerance).all()
        assert (deviation <= (most - least) / 2 + 1e-3).all()


@pytest.mark.sweep
@pytest.mark.traces
def test_invariants_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        table = operators(real(name))
        holds(table)
        for column in ("flops_rate", "flops_share", "bytes_rate", "bytes_share", "intensity"):
            values = table[column].drop_nulls()
            assert (values.is_finite() & (values >= 0)).all(), (name, column)


@pytest.mark.traces
def test_efficiency_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    trace = real("h100-2025-vit")

    golden(operators, operators(trace, by="type", top=20, sort="device_time_total"))
