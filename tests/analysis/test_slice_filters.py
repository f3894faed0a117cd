"""What is looked up by an index is what going through everything would find."""

import gc
from collections.abc import Callable

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis import slice_filters
from selftime.analysis.call_tree.training_passes import (
    RECOMPUTE_PASS,
    find_training_passes,
    may_recompute_forward_work,
    takes_gradients_of_gradients,
)
from selftime.analysis.slice_arguments import (
    arguments_of_slices,
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
    parent_of_every_slice,
    slices_with_arguments,
)
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on, with_known_end
from selftime.analysis.slice_grouping import (
    equal_row_group_numbers,
    group_and_first_row_of_rows,
    slice_codes_by_category_and_name,
)
from selftime.intervals import order_by_start_and_end
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.lines import lines

NAMES = st.lists(st.sampled_from(["a", "b", "c", "aten::mm", "ü", None]), max_size=40)
MEANS: list[Callable[[str], bool]] = [
    lambda name: name == "a",
    lambda name: name in {"a", "c"},
    lambda name: name != "b",
    lambda _: False,
    lambda _: True,
]


def named(names: list[str | None]) -> pl.DataFrame:
    table = pl.DataFrame({"name": names}, schema={"name": pl.Categorical})
    return table.with_row_index("id")


@given(names=NAMES)
def test_slices_by_name_are_the_same_however_often_a_table_is_asked(
    names: list[str | None],
) -> None:
    table = named(names)
    for means in MEANS * 2:  # gone through at first, in order of names from then on
        expected = [i for i, name in enumerate(names) if name is not None and means(name)]
        assert filter_by_name(table, means)["id"].to_list() == expected
        assert np.flatnonzero(matches_name(table, means)).tolist() == expected


def test_few_of_many_slices_and_all_but_few_are_found() -> None:
    table = named(["rare" if i % 1_000 == 7 else f"often {i % 3}" for i in range(5_000)])
    for _ in range(3):
        rare = filter_by_name(table, lambda name: name == "rare")
        assert rare["id"].to_list() == list(range(7, 5_000, 1_000))
        others = filter_by_name(table, lambda name: name != "rare")
        assert others.height == 5_000 - rare.height
        assert others["id"].is_sorted()


def test_the_order_of_names_goes_with_its_table() -> None:
    table = named(["a", "b"])
    for _ in range(2):
        assert filter_by_name(table, "b".__eq__)["id"].to_list() == [1]
    known = set(slice_filters._ROWS_BY_NAME_OF_SEEN_TABLES)
    assert id(table) in known
    key = id(table)
    del table
    gc.collect()
    assert key not in slice_filters._ROWS_BY_NAME_OF_SEEN_TABLES


@given(rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-3, 3) | st.none())))
def test_rows_are_grouped_as_they_are_equal(rows: list[tuple[str, int | None]]) -> None:
    table = pl.DataFrame(rows, schema={"name": pl.Categorical, "line": pl.Int32}, orient="row")
    group, first = group_and_first_row_of_rows(table)
    firsts = list(dict.fromkeys(rows))
    assert sorted(rows.index(row) for row in firsts) == sorted(first.tolist())
    assert [rows[first[g]] for g in group.tolist()] == rows


def test_numbers_far_apart_are_grouped_too() -> None:
    table = pl.DataFrame({"a": [1 << 40, 0, 1 << 40, None]})
    assert equal_row_group_numbers(table).max() > 1 << 30
    group, first = group_and_first_row_of_rows(table)
    assert group[0] == group[2]
    assert len({*group.tolist()}) == 3
    assert sorted(first.tolist()) == [0, 1, 3]


def test_a_pair_of_category_and_name_is_read_once() -> None:
    asked: list[tuple[str, str]] = []

    def read(category: str, name: str) -> int:
        asked.append((category, name))
        return len(name)

    trace = sketch("""
        cpu 1 | a a b a
        b = aten::add
    """)
    assert slice_codes_by_category_and_name(trace.slices, read).tolist() == [1, 1, 9, 1]
    assert len(asked) == 2
    assert slice_codes_by_category_and_name(Trace().slices, read).size == 0


def test_arguments_are_those_of_the_slices_asked_for() -> None:
    trace = sketch("""
        cpu 1 | a b a
        a = aten::mm; sequence = 7
    """)
    ids = pl.Series([2, None, 1, 0, 2], dtype=pl.UInt32)
    joined = ids.alias("id").to_frame().join(trace.op_args, on="id", how="left")
    assert arguments_of_slices(trace, "op_args", ids, "sequence")["sequence"].to_list() == [
        7,
        None,
        None,
        7,
        7,
    ]
    assert joined["sequence"].to_list() == [7, None, None, 7, 7]
    assert slices_with_arguments(trace, "op_args", trace.slices, "sequence").height == 3
    assert arguments_of_slices(Trace(), "op_args", ids.clear(), "sequence").height == 0


def test_what_is_around_is_told_for_every_slice() -> None:
    trace = sketch("""
        python 1 | ffffff
        cpu 1    |  aaa
        cpu 1    |   b
        f = train.py(1): main
    """)
    known = dict(zip(trace.slices["name"].cast(pl.String), trace.slices["id"], strict=True))
    f, a, b = known["train.py(1): main"], known["a"], known["b"]
    assert parent_of_every_slice(trace)[[f, a, b]].tolist() == [-1, -1, a]
    assert caller_of_every_frame(trace)[f] == -1
    assert enclosing_frame_of_every_slice(trace)[f] == f


def test_slices_without_an_end_are_left_out_where_that_is_asked() -> None:
    trace = sketch("cpu 1 | a b")
    assert slices_on(trace, "host", ended=True) is slices_on(trace, "host")
    ends = trace.slices.with_columns(duration=pl.Series([None, 10], dtype=pl.Int64))
    assert with_known_end(ends)["id"].to_list() == [1]


AGAIN = """
    cpu 1 | mmmmmm bbbbbbbbbbbb
    cpu 1 |        nnnnnn
    m = aten::linear; sequence = 3; forward_thread = 0
    b = autograd::engine::evaluate_function: CheckpointBackward; sequence = 3; forward_thread = 1
"""


def test_what_cannot_be_recomputed_is_seen_without_the_tree() -> None:
    plain = sketch(f"{AGAIN}\n    n = aten::mm")
    again = sketch(f"{AGAIN}\n    n = aten::linear; sequence = 4; forward_thread = 0")
    assert not may_recompute_forward_work(plain)
    assert not (find_training_passes(plain).pass_code == RECOMPUTE_PASS).any()
    assert may_recompute_forward_work(again)
    assert (find_training_passes(again).pass_code == RECOMPUTE_PASS).any()
    assert not may_recompute_forward_work(Trace())


DERIVED = """
    cpu 1 | mmmmmm bbbbbbbbbbbb cccccccc
    cpu 1 |        nnnnnn
    m = aten::linear; sequence = 3; forward_thread = 0
    n = aten::mm; sequence = 4; forward_thread = 0
    b = autograd::engine::evaluate_function: {node}; sequence = 3; forward_thread = 1; forward = m
    c = autograd::engine::evaluate_function: MmBackward0; sequence = 4; forward_thread = 1{link}
"""


def test_gradients_of_gradients_are_those_of_operators_within_nodes() -> None:
    """A checkpoint derives within its own node; a graph that nothing derives does no harm."""
    derived = DERIVED.format(node="AddmmBackward0", link="; forward = n")
    assert takes_gradients_of_gradients(sketch(derived))
    assert not takes_gradients_of_gradients(sketch(DERIVED.format(node="AddmmBackward0", link="")))
    own = DERIVED.format(node="CheckpointFunctionBackward", link="; forward = n")
    assert not takes_gradients_of_gradients(sketch(own))
    assert not takes_gradients_of_gradients(Trace())


def test_lines_of_a_dtype_that_nothing_computes_in_are_none() -> None:
    trace = sketch("""
        cpu 1 | a
        a = aten::mm; input_types = ["float"]; input_shapes = [[8]]; line = train.py:5 f
    """)
    none = lines(trace, dtype="double")
    assert none.is_empty()
    assert none.schema == lines(trace, dtype="float").schema
    assert lines(trace, dtype="float").height == 1


@given(
    keys=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-1, 1)), max_size=30)
)
def test_entries_are_in_order_of_start_end_and_mark(keys: list[tuple[int, int, int]]) -> None:
    columns = np.array(keys, np.int64).reshape(-1, 3).T
    order = order_by_start_and_end(*columns).tolist()
    assert order == sorted(range(len(keys)), key=lambda at: (keys[at], at))
