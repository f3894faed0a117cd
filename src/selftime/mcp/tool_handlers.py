"""Handlers of an agent's tools: each method returns the answer to one tool as Markdown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.advice import Advice, advise, registry
from selftime.advice.base import Evidence
from selftime.advice.identity import chosen
from selftime.compare import TABLES, compare
from selftime.errors import UsageError
from selftime.mcp.library import Library
from selftime.mcp.pages import table
from selftime.reports.advice.brief import MOST_TOKENS, as_brief
from selftime.reports.advice.markdown import inert, quoted
from selftime.reports.advice.queries import event_of
from selftime.reports.advice.tokens import most_tokens
from selftime.reports.page_data.rows import Query, prepare
from selftime.schema import Column
from selftime.sql import QueryError, query
from selftime.trace import Trace
from selftime.units import Unit
from selftime.views import View, find
from selftime.web.caches import Shelf

ROWS: Final = 20
"""Default number of rows of a table."""
MOST_ROWS: Final = 200
_KEPT: Final = 32
"""The most traces whose advice is cached."""
_MOST_LISTED: Final = 400
_TRACE: Final = (
    Column("id", pl.String, "id", "The trace's id, for the other tools."),
    Column("name", pl.String, "name", "The file."),
    Column("run", pl.String, "name", "The folder of its run."),
    Column("bytes", pl.Int64, "bytes", "The size of the file."),
)
_RULE: Final = (
    Column("name", pl.String, "name", "The rule."),
    Column("title", pl.String, "sentence", "What it finds."),
)


@dataclass(frozen=True, slots=True)
class Calls:
    """Writes tool calls for follow-up questions about one trace, whose id is named once."""

    id: str
    trace: Trace

    @property
    def names(self) -> str:
        return f'"trace": "{self.id}"'

    def whole(self) -> str:
        return _call("finding", id="RULE")

    def values(self) -> str:
        return _call("finding", id="all")

    def finding(self, word: str) -> str:
        return _call("finding", id=word)

    def step(self, _advice: Advice) -> str:
        return _call("view", name="overview")

    def event(self, number: int) -> str:
        return _call("slice", id=number)

    def evidence(self, evidence: Evidence) -> str | None:
        number = event_of(self.trace, evidence)
        return None if number is None else self.event(number)


def _call(tool: str, **given: Any) -> str:
    return f"{tool} {json.dumps(given)}" if given else tool


class ToolHandlers:
    """Answers tool calls in Markdown, each in fewer than `brief.MOST_TOKENS` tokens."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._advice: Shelf[tuple[str, str], Advice] = Shelf(_KEPT, lambda _: 1)

    def list_traces(self, start: int = 0) -> str:
        listed = self.library.listed()
        rows = pl.DataFrame(
            {c.name: [getattr(one, c.name) for one in listed] for c in _TRACE},
            schema={c.name: c.dtype for c in _TRACE},
        )
        return table(rows[start:][:_MOST_LISTED], _TRACE, start=start, total=len(listed))

    def advise(self, trace: str) -> str:
        found = self._advised(trace)
        return as_brief(found, self._calls(trace, found))

    def finding(self, trace: str, word: str) -> str:
        """Returns one finding or all results of a rule, in full or shortened to the limit."""
        found = self._advised(trace)
        part = found if word == "all" else chosen(found, word)
        calls = self._calls(trace, found)
        whole = as_brief(part, calls, whole=True)
        return whole if _fits(whole) else as_brief(part, calls)

    def view(  # noqa: PLR0913, PLR0917 - what may be asked of a table
        self,
        trace: str,
        name: str,
        options: Mapping[str, Any],
        columns: tuple[str, ...] = (),
        sort: str = "",
        find_text: str = "",
        start: int = 0,
        rows: int = ROWS,
    ) -> str:
        view = find(name[:100])
        given = view.read({key: _word(value) for key, value in options.items()})
        subject = self.library.open(trace)
        whole = view(subject, **given)
        prepared = prepare(whole, view.columns, sums=view.sums)
        query = Query(sort=sort, find=find_text, columns=columns)
        picked = prepared.chosen(query)
        matching = prepared.matching(query)
        shown = whole[matching[start:][: min(rows, MOST_ROWS)]].select(picked)
        told = {column.name: column for column in view.columns}
        return table(
            shown,
            [told[one] for one in picked],
            start=start,
            total=matching.len(),
            notes=[f"Lacks {inert(lack)}." for lack in view.lacks(subject)],
        )

    def sql(
        self,
        trace: str,
        text: str,
        views: Mapping[str, str],
        *,
        start: int = 0,
        rows: int = ROWS,
    ) -> str:
        subject = self.library.open(trace)
        try:
            whole = query(subject, text, views)
        except QueryError as error:
            raise UsageError(f"the query cannot be answered: {quoted(error.message)}") from error
        shown = whole[start:][: min(rows, MOST_ROWS)]
        columns = [Column(name, kind, _unit(kind), "", True) for name, kind in shown.schema.items()]
        return table(shown, columns, start=start, total=whole.height)

    def slice(self, trace: str, number: int) -> str:
        return self.view(trace, "slice", {"id": number}, rows=MOST_ROWS)

    def describe_view(self, name: str) -> str:
        """Returns a view's description, options and columns; nothing comes from a trace."""
        view = find(name[:100])
        options = [_option(view, one) for one in view.options]
        columns = [f"- {c.name} ({c.unit}): {c.doc}" for c in view.columns]
        return "\n".join([view.doc, "", "Options:", *(options or ["- none"]), "Columns:", *columns])

    def rules(self) -> str:
        found = sorted(registry.rules().items())
        rows = pl.DataFrame(
            [(name, rule.title) for name, rule in found], schema=["name", "title"], orient="row"
        )
        return table(rows, _RULE, start=0, total=rows.height)

    def explain(self, rule: str) -> str:
        found = registry.find(rule[:100])
        return f"# {found.name}\n\n{found.doc}"

    def compare(self, before: str, after: str, part: str, rows: int = ROWS) -> str:
        if part not in TABLES:
            raise UsageError(f"there is no table `{part[:40]}`; there are {', '.join(TABLES)}")
        found = compare(self.library.open(before), self.library.open(after))
        whole = found.tables()[part]
        if "difference" in whole.columns and part != "steps":
            order = pl.col("difference").abs()
            whole = whole.sort(order, descending=True, nulls_last=True, maintain_order=True)
        shown = whole.head(min(rows, MOST_ROWS))
        notes = [f"Differences between the recordings: {inert(note)}." for note in found.notes]
        return table(shown, TABLES[part].columns, start=0, total=whole.height, notes=notes)

    def _advised(self, trace: str) -> Advice:
        key = self.library.key(trace)
        return self._advice.get(key, lambda: advise(self.library.open(trace)))

    def _calls(self, trace: str, found: Advice) -> Calls:
        return Calls(self.library.id_of(trace), found.trace or self.library.open(trace))


def _unit(kind: pl.DataType) -> Unit:
    return "id" if kind.is_numeric() else "text"


def _fits(page: str) -> bool:
    return most_tokens(page) < MOST_TOKENS


def _word(value: Any) -> str:
    """Returns a value as it would be written on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _option(view: View[Any], name: str) -> str:
    option = view.options[name]
    words = option.choices or option.parts
    takes = f"one of {', '.join(words)}" if words else ""
    return f"- {name}: {takes or 'free'}; default {option.default!r}"
