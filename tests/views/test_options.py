"""What a view's options take is declared in its signature and checked before the view computes."""

from typing import Any

import pytest

from selftime.errors import UsageError
from selftime.trace import Trace
from selftime.views import VIEWS, View

with_top = pytest.mark.parametrize(
    "view", [one for one in VIEWS.values() if "top" in one.options], ids=lambda view: view.name
)


@with_top
def test_every_view_refuses_a_negative_number_of_rows(view: View[Any]) -> None:
    said = "`top` is `-1`; write how many rows to keep, or 0 for all"
    with pytest.raises(UsageError, match=said):
        view(Trace(), top=-1)
    with pytest.raises(UsageError, match=said):
        view.parse_options({"top": "-1"})
    assert view.parse_options({"top": "0"}) == {"top": 0}


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("kernels", {"by": "colour"}, "`by` is `colour`; choose one of "),
        (
            "operators",
            {"by": "shape+colour"},
            "`by` is `shape[+]colour`; choose one or several of name, shape, ",
        ),
        ("memory_peak", {"by": "colour"}, "choose one or several of .*, joined by `[+]`"),
        ("flame", {"min_share": 1.5}, "`min_share` is `1.5`; write a share of the whole, from 0"),
        ("flame", {"min_share": float("nan")}, "`min_share` is `nan`; write a share"),
        ("idle", {"threshold": -1}, "`threshold` is `-1`; write nanoseconds, 0 or more"),
    ],
)
def test_what_an_option_does_not_take_is_refused(
    name: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        VIEWS[name](Trace(), **given)


@pytest.mark.parametrize("name", ["occurrences", "memory_operators", "memory_peak", "selection"])
def test_a_time_that_ends_before_it_begins_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="`end` is `3`, which is not after `start`, 5; write a"):
        VIEWS[name](Trace(), start=5, end=3)
