"""What holds of every view, whoever wrote it."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from selftime import units
from selftime.cli.view import RESERVED_VIEW_OPTION_NAMES
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views import VIEWS, View, find_view

DRAWINGS = {
    "host": "cpu 1 | aaaa bbb\npython 1 | ffffffff",
    "device": "cpu 1 | aaaa bbb\ncall 1 |  k    m\ngpu 7 |    kk  mmm",
    "device only": "gpu 7 | kkk m\ngpu 8 |  nn",
}
TRACES = {"empty": Trace(), **{name: sketch(drawing) for name, drawing in DRAWINGS.items()}}

every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
every_trace = pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)


def choices(view: View[Any]) -> list[dict[str, Any]]:
    """No options, and each choice of each option alone."""
    options = view.options.values()
    return [{}, *({option.name: choice} for option in options for choice in option.choices)]


@every_view
@every_trace
def test_returns_the_columns_it_declares_with_null_only_where_it_may(
    view: View[Any], trace: Trace
) -> None:
    declared = {column.name: column.dtype for column in view.columns}
    always = [column.name for column in view.columns if not column.nullable]
    for words in choices(view):
        table = view(trace, **words)
        assert dict(table.schema) == declared, words
        nulls = table.select(always).null_count()
        assert nulls.is_empty() or not any(nulls.row(0)), words


@every_view
@every_trace
def test_is_pure(view: View[Any], trace: Trace) -> None:
    before = {name: table.clone() for name, table in trace.tables().items()}
    assert_frame_equal(view(trace), view(trace))
    for name, table in trace.tables().items():
        assert_frame_equal(table, before[name])


@every_view
def test_is_documented(view: View[Any]) -> None:
    assert view.name.isidentifier()
    assert view.title.endswith(".")
    assert view.columns
    assert len({column.name for column in view.columns}) == len(view.columns)
    for column in view.columns:
        assert column.doc.endswith("."), column.name
        assert column.unit in units.UNITS, column.name
        assert column.dtype in (pl.String, pl.Categorical, pl.Enum) or column.unit != "name"


@every_view
def test_options_have_defaults_and_words_of_their_own(view: View[Any]) -> None:
    for option in view.options.values():
        assert option.default is not option.type, option.name
        assert option.name not in RESERVED_VIEW_OPTION_NAMES, (
            "the command has this option for itself"
        )
        assert not option.choices or option.default in option.choices, option.name


@every_view
def test_refuses_an_unknown_option(view: View[Any]) -> None:
    with pytest.raises(UsageError, match="no option `nonesuch`"):
        view(Trace(), nonesuch=1)
    with pytest.raises(UsageError, match="no option `nonesuch`"):
        view.parse_options({"nonesuch": "1"})


@every_view
@every_trace
def test_takes_the_parts_of_an_option_alone_and_joined(view: View[Any], trace: Trace) -> None:
    for option in view.options.values():
        for word in (*option.joinable_words, *filter(None, ["+".join(option.joinable_words)])):
            assert view(trace, **{option.name: word}).columns == [c.name for c in view.columns]


def test_a_view_is_found_by_name() -> None:
    for name, view in VIEWS.items():
        assert find_view(name) is view
        assert view.name == name
    with pytest.raises(UsageError, match="no view `nonesuch`"):
        find_view("nonesuch")
