"""The words of an address: what a view is asked with, and which of its rows are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import msgspec

from selftime.compare import Metric
from selftime.errors import UsageError
from selftime.reports.page_data.rows import OPS, Filter, Query
from selftime.views import View, find
from selftime.views.base import FARTHEST

_LONGEST: Final = 8192
"""Characters of a word."""
_MOST_FILTERS: Final = 50
_ROWS: Final = frozenset({".trace", ".sort", ".find", ".where", ".from", ".rows", ".columns"})
"""Words that tell which rows and columns are wanted."""


@dataclass(frozen=True, slots=True)
class Question:
    """A view of a trace with all of its options, and the rows that are wanted."""

    trace: str
    view: View[Any]
    options: Mapping[str, Any]
    query: Query


def question(view: str, words: Mapping[str, str]) -> Question:
    """The words by their meaning: options by their names, the rest after a dot."""
    for name, word in words.items():
        if len(word) > _LONGEST:
            raise UsageError(f"`{name[:40]}` is {len(word)} characters long; write {_LONGEST}")
    asked = {name: word for name, word in words.items() if name.startswith(".")}
    unknown = asked.keys() - _ROWS
    if unknown:
        raise UsageError(f"there is no `{min(unknown)[:40]}` to ask for")
    found = find(view[:100])
    given = found.read({name: word for name, word in words.items() if name not in asked})
    defaults = {name: option.default for name, option in found.options.items()}
    options = {**defaults, **given}
    rows = number(asked, ".rows")
    query = Query(
        sort=asked.get(".sort", ""),
        find=asked.get(".find", ""),
        where=_filters(asked.get(".where", "")),
        start=number(asked, ".from") or 0,
        rows=rows,
        columns=tuple(dict.fromkeys(filter(None, asked.get(".columns", "").split(",")))),
    )
    return Question(asked.get(".trace", ""), found, options, query)


def number(words: Mapping[str, str], name: str) -> int | None:
    """A count from a word, None where there is none."""
    word = words.get(name, "")
    if not word:
        return None
    if not (word.isascii() and word.isdigit()) or len(word) > len(str(FARTHEST)):
        raise UsageError(f"`{name}` is `{word[:40]}`; write a whole number from 0")
    return min(int(word), FARTHEST)


def metric(words: Mapping[str, str]) -> Metric | None:
    """Whose time two trees are compared by, None where that is left to the recordings."""
    word = words.get("metric", "")
    if not word:
        return None
    if word not in get_args(Metric):
        known = " or ".join(get_args(Metric))
        raise UsageError(f"there is no metric `{word[:40]}`; ask for {known}")
    return cast("Metric", word)


def _filters(word: str) -> tuple[Filter, ...]:
    if not word:
        return ()
    try:
        told = msgspec.json.decode(word, type=list[dict[str, str]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise UsageError(_SHAPE) from None
    if len(told) > _MOST_FILTERS:
        raise UsageError(f"there are {len(told)} filters; ask for at most {_MOST_FILTERS}")
    return tuple(_filter(one) for one in told)


_SHAPE: Final = (
    '`.where` is no list of filters; write [{"column": "name", "op": "has", "value": "mm"}]'
)


def _filter(told: Mapping[str, str]) -> Filter:
    if told.keys() != {"column", "op", "value"}:
        raise UsageError(_SHAPE)
    if told["op"] not in OPS:
        raise UsageError(f"there is no filter `{told['op'][:40]}`; there are {', '.join(OPS)}")
    return Filter(told["column"], told["op"], told["value"])  # type: ignore[arg-type]  # just compared
