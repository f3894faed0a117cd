"""Where in a query its error is, and the examples that have none."""

import pytest
from tests.sql.test_query import DRAWN

from selftime.errors import UsageError
from selftime.sql import QueryError, query
from selftime.sql.error_place import place_of_error, with_place
from selftime.sql.examples import EXAMPLES
from selftime.testing import sketch


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("select name\nfrom slices where nome = 1", "(line 2, column 19)"),
        ("select name from slicez", "(line 1, column 18)"),
        (
            "select name from slices where",
            "Expected: an expression, found: EOF (line 1, column 30)",
        ),
        ("select name from slices s join op_args a on a.id = s.idx", "(line 1, column 54)"),
        ("select name\nfrom slices group group", "found: group (line 2, column 13)"),
        ("select\n  nofun(name) from slices", "unsupported function 'nofun' (line 2, column 3)"),
        ("select name from slices; select 1", "can be parsed at a time"),
        ("select 'open from slices", "(line 1, column 8)"),
    ],
)
def test_an_error_tells_its_place(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        query(sketch(DRAWN), text)
    error = raised.value
    message = error.message if isinstance(error, QueryError) else str(error)
    told = with_place(str(error), place_of_error(text, message))
    assert sentence in told
    assert "sql parser error" not in told
    assert " at Line" not in told


def test_each_example_can_be_asked_of_any_trace() -> None:
    trace = sketch(DRAWN)
    for example in EXAMPLES:
        found = query(trace, example.text)
        kind, *drawn = example.chart.split(",")
        assert kind in {"", "bar", "line", "scatter"}
        assert set(drawn) <= set(found.columns)
