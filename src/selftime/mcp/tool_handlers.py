"""Handles an agent's tool calls: each method returns the answer to one tool as Markdown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from selftime.advice import Advice, advise, rule_registry
from selftime.advice.finding_ids import select_findings
from selftime.advice.rule_definition import Evidence
from selftime.advice.what_if import what_if
from selftime.advice.what_if.matched_names import MAX_MATCHED_NAMES
from selftime.compare import TABLES, compare
from selftime.errors import UsageError
from selftime.mcp.markdown_pages import UNTRUSTED_TEXT_NOTE, markdown_table
from selftime.mcp.trace_library import TraceLibrary
from selftime.reports.advice.brief import MAX_ANSWER_TOKENS, as_brief
from selftime.reports.advice.markdown import code_span, escape_markdown
from selftime.reports.advice.queries import slice_id_of_evidence
from selftime.reports.advice.tokens import estimate_max_tokens
from selftime.reports.page_data.table_queries import RowQuery, prepare_table
from selftime.reports.what_if import as_markdown
from selftime.schema import Column
from selftime.sql import QueryError
from selftime.sql.limited_query import LimitedQueries, QueryLimits, QueryRequest
from selftime.trace import Trace
from selftime.units import Unit
from selftime.views import View, find_view
from selftime.web.caches import SharedCache
from selftime.web.client_presence import is_client_gone

DEFAULT_TABLE_ROWS: Final = 20
"""Default number of rows of a table in an answer."""
MAX_TABLE_ROWS: Final = 200
"""Largest number of rows of a table in an answer."""
_MAX_QUERY_ROWS: Final = 100_000
"""Number of rows of a query's result that answers can be taken from."""
_MAX_CACHED_ADVICE: Final = 32
"""Largest number of traces whose advice is cached."""
_MAX_TRACES_IN_LIST: Final = 400
"""Largest number of traces that one answer lists."""
_MAX_PREDICTED_CHANGES: Final = 20
"""Largest number of changes that one prediction makes."""
_COLUMNS_OF_TRACE_LIST: Final = (
    Column("id", pl.String, "id", "The trace's id, which the other tools take as an argument."),
    Column("name", pl.String, "name", "The name of the trace's file."),
    Column(
        "run", pl.String, "name", "The name of the folder of the run that the trace belongs to."
    ),
    Column("bytes", pl.Int64, "bytes", "The size of the trace's file in bytes."),
)
"""Columns of the table that the tool `list_traces` returns."""
_COLUMNS_OF_RULE_LIST: Final = (
    Column("name", pl.String, "name", "The name of the advice rule."),
    Column("title", pl.String, "sentence", "The performance problem that the rule finds."),
)
"""Columns of the table that the tool `rules` returns."""


@dataclass(frozen=True, slots=True)
class _RunSection:
    """A table about a run: its title, view, options, columns and rows."""

    title: str
    view: str
    options: Mapping[str, Any]
    columns: tuple[str, ...]
    max_rows: int


_SECTIONS_OF_RUN: Final = (
    _RunSection("The run", "run_summary", {}, ("metric", "text"), 20),
    _RunSection(
        "Its parts, which add up to the wall time",
        "run",
        {},
        ("part", "what", "time", "share", "count", "file", "line"),
        15,
    ),
    _RunSection(
        "Its steps by kind",
        "run_kinds",
        {},
        ("kind", "count", "median", "p95", "data_wait", "total", "slow", "excess", "file", "line"),
        8,
    ),
    _RunSection(
        "Its slowest steps",
        "run_steps",
        {"slow": True},
        ("step", "kind", "time", "excess", "cause", "file", "line"),
        8,
    ),
)
"""The tables of the answer of the tool `run`."""
_NO_LEDGER_SENTENCE: Final = (
    "This recording has no ledger of its run; `selftime run` writes one beside its recording."
)


@dataclass(frozen=True, slots=True)
class ToolCallQueries:
    """Writes as text the tool calls that an agent can make next to see details of the advice."""

    id: str
    trace: Trace

    @property
    def name_definitions(self) -> str:
        return f'"trace": "{self.id}"'

    def full_answer_query(self) -> str:
        return _tool_call_text("finding", id="RULE")

    def all_numbers_query(self) -> str:
        return _tool_call_text("finding", id="all")

    def finding_query(self, id_or_rule: str) -> str:
        return _tool_call_text("finding", id=id_or_rule)

    def typical_step_query(self, _advice: Advice) -> str:
        return _tool_call_text("view", name="overview")

    def slice_query(self, slice_id: int) -> str:
        return _tool_call_text("slice", id=slice_id)

    def evidence_query(self, evidence: Evidence) -> str | None:
        slice_id = slice_id_of_evidence(self.trace, evidence)
        return None if slice_id is None else self.slice_query(slice_id)


def _tool_call_text(tool: str, **arguments: Any) -> str:
    """Returns a tool call as text: the tool's name, and its arguments as JSON."""
    return f"{tool} {json.dumps(arguments)}" if arguments else tool


class ToolHandlers:
    """Answers tool calls in Markdown; each answer has fewer than `MAX_ANSWER_TOKENS` tokens."""

    def __init__(self, library: TraceLibrary, query_limits: QueryLimits | None = None) -> None:
        self.library = library
        self._queries = LimitedQueries(replace(query_limits or QueryLimits(), rows=_MAX_QUERY_ROWS))
        self._advice: SharedCache[tuple[str, str], Advice] = SharedCache(
            _MAX_CACHED_ADVICE, lambda _: 1
        )

    def list_traces(self, first_row: int = 0) -> str:
        """Returns a table of the traces that the other tools can open, from row `first_row`."""
        listed = self.library.listed_traces()
        rows = pl.DataFrame(
            [(one.id, one.name, one.run_folder, one.bytes) for one in listed],
            schema={c.name: c.dtype for c in _COLUMNS_OF_TRACE_LIST},
            orient="row",
        )
        return markdown_table(
            rows[first_row:][:_MAX_TRACES_IN_LIST],
            _COLUMNS_OF_TRACE_LIST,
            first_row=first_row,
            total_rows=len(listed),
        )

    def advise(self, id_or_name: str) -> str:
        """Returns the advice on a trace as Markdown."""
        advice = self._advice_on(id_or_name)
        return as_brief(advice, self._follow_up_queries(id_or_name, advice))

    def what_if(
        self,
        id_or_name: str,
        scale: Mapping[str, float],
        remove: tuple[str, ...],
        hide: tuple[str, ...],
    ) -> str:
        """Returns the predicted step time of a trace after changes, cut to the token limit."""
        if len(scale) + len(remove) + len(hide) > _MAX_PREDICTED_CHANGES:
            raise UsageError(f"ask for at most {_MAX_PREDICTED_CHANGES} changes at once")
        found = what_if(self.library.open(id_or_name), scale=scale, remove=remove, hide=hide)
        named = {self.library.trace_id_of(id_or_name): found}
        for max_names in (MAX_MATCHED_NAMES, 5, 1):
            page = f"{UNTRUSTED_TEXT_NOTE}\n\n{as_markdown(named, max_names=max_names)}"
            if _fits_token_limit(page):
                return page
        return f"{UNTRUSTED_TEXT_NOTE}\n\n{as_markdown(named, max_names=0)}"

    def finding(self, id_or_name: str, id_or_rule: str) -> str:
        """Returns one finding of a trace, or all findings of a rule, cut to the token limit."""
        advice = self._advice_on(id_or_name)
        chosen = advice if id_or_rule == "all" else select_findings(advice, id_or_rule)
        queries = self._follow_up_queries(id_or_name, advice)
        complete = as_brief(chosen, queries, whole=True)
        return complete if _fits_token_limit(complete) else as_brief(chosen, queries)

    def view(  # noqa: PLR0913, PLR0917 - what may be asked of a table
        self,
        id_or_name: str,
        view_name: str,
        options: Mapping[str, Any],
        columns: tuple[str, ...] = (),
        sort: str = "",
        find_text: str = "",
        first_row: int = 0,
        max_rows: int = DEFAULT_TABLE_ROWS,
    ) -> str:
        """Returns rows of a view's table for a trace."""
        view = find_view(view_name[:100])
        parsed_options = view.parse_options(
            {key: _value_as_tool_argument(value) for key, value in options.items()}
        )
        subject = self.library.open(id_or_name)
        complete = view(subject, **parsed_options)
        prepared = prepare_table(complete, view.columns, sums=view.sums)
        query = RowQuery(sort=sort, find=find_text, columns=columns)
        column_names = prepared.selected_columns(query)
        matching_rows = prepared.matching_rows(query)
        shown = complete[matching_rows[first_row:][: min(max_rows, MAX_TABLE_ROWS)]].select(
            column_names
        )
        columns_by_name = {column.name: column for column in view.columns}
        return markdown_table(
            shown,
            [columns_by_name[column_name] for column_name in column_names],
            first_row=first_row,
            total_rows=matching_rows.len(),
            notes=[f"Lacks {escape_markdown(lack)}." for lack in view.missing_data(subject)],
        )

    def run(self, id_or_name: str) -> str:
        """Returns tables of a run's wall time: its parts, kinds of steps, and slow steps."""
        subject = self.library.open(id_or_name)
        if not subject.run.source:
            return _NO_LEDGER_SENTENCE
        sections = [_run_section(subject, section) for section in _SECTIONS_OF_RUN]
        return "\n\n".join([UNTRUSTED_TEXT_NOTE, *sections])

    def sql(
        self,
        id_or_name: str,
        sql_query: str,
        views: Mapping[str, str],
        *,
        first_row: int = 0,
        max_rows: int = DEFAULT_TABLE_ROWS,
    ) -> str:
        """Returns rows of the result of an SQL query over a trace's tables and views."""
        path = self.library.path_of(id_or_name)
        request = QueryRequest(path, sql_query, dict(views), uses_cache=False)
        try:
            result = self._queries.run(request, is_client_gone.get() or (lambda: False))
        except QueryError as error:
            raise UsageError(f"the query cannot be answered: {code_span(error.message)}") from error
        shown = result.table[first_row:][: min(max_rows, MAX_TABLE_ROWS)]
        columns = [
            Column(name, dtype, _display_unit_of_dtype(dtype), "", True)
            for name, dtype in shown.schema.items()
        ]
        return markdown_table(shown, columns, first_row=first_row, total_rows=result.row_count)

    def slice(self, id_or_name: str, slice_id: int) -> str:
        """Returns all data of one slice (operator, kernel or frame) of a trace."""
        return self.view(id_or_name, "slice", {"id": slice_id}, max_rows=MAX_TABLE_ROWS)

    def describe_view(self, view_name: str) -> str:
        """Returns a view's description, options and columns, without reading a trace."""
        view = find_view(view_name[:100])
        options = [_option_description_line(view, option_name) for option_name in view.options]
        columns = [f"- {column.name} ({column.unit}): {column.doc}" for column in view.columns]
        return "\n".join([view.doc, "", "Options:", *(options or ["- none"]), "Columns:", *columns])

    def rules(self) -> str:
        """Returns the names and titles of all rules of the advice, as a table."""
        rules = sorted(rule_registry.rules_by_name().items())
        rows = pl.DataFrame(
            [(name, rule.title) for name, rule in rules], schema=["name", "title"], orient="row"
        )
        return markdown_table(rows, _COLUMNS_OF_RULE_LIST, first_row=0, total_rows=rows.height)

    def explain(self, rule_name: str) -> str:
        """Returns the page of a rule: what it finds, why that costs time, what to do."""
        rule = rule_registry.find(rule_name[:100])
        return f"# {rule.name}\n\n{rule.doc}"

    def compare(
        self, before: str, after: str, table_name: str, max_rows: int = DEFAULT_TABLE_ROWS
    ) -> str:
        """Returns one table of the comparison of two traces."""
        if table_name not in TABLES:
            raise UsageError(
                f"there is no table `{table_name[:40]}`; there are {', '.join(TABLES)}"
            )
        comparison = compare(self.library.open(before), self.library.open(after))
        table = comparison.tables()[table_name]
        if "difference" in table.columns and table_name != "steps":
            order = pl.col("difference").abs()
            table = table.sort(order, descending=True, nulls_last=True, maintain_order=True)
        shown = table.head(min(max_rows, MAX_TABLE_ROWS))
        notes = [
            f"Differences between the recordings: {escape_markdown(note)}."
            for note in comparison.notes
        ]
        return markdown_table(
            shown, TABLES[table_name].columns, first_row=0, total_rows=table.height, notes=notes
        )

    def _advice_on(self, id_or_name: str) -> Advice:
        """Returns the advice on a trace, which is computed once and cached."""
        key = self.library.trace_cache_key(id_or_name)
        return self._advice.get(key, lambda: advise(self.library.open(id_or_name)))

    def _follow_up_queries(self, id_or_name: str, advice: Advice) -> ToolCallQueries:
        """Returns the writer of tool calls that show details of this advice."""
        return ToolCallQueries(
            self.library.trace_id_of(id_or_name), advice.trace or self.library.open(id_or_name)
        )


def _run_section(subject: Trace, section: _RunSection) -> str:
    """Returns one table on what a run spent its time on, in its share of the answer's tokens."""
    view = find_view(section.view)
    rows = view(subject, **section.options)
    columns = [column for column in view.columns if column.name in section.columns]
    shown = rows.head(section.max_rows).select(column.name for column in columns)
    table = markdown_table(
        shown,
        columns,
        first_row=0,
        total_rows=rows.height,
        token_limit=MAX_ANSWER_TOKENS // (len(_SECTIONS_OF_RUN) + 1),
    )
    options = " with `slow` true" if section.options else ""
    rest = table.removeprefix(UNTRUSTED_TEXT_NOTE).strip()
    return f"## {section.title} (view `{section.view}`{options})\n\n{rest}"


def _display_unit_of_dtype(dtype: pl.DataType) -> Unit:
    return "id" if dtype.is_numeric() else "text"


def _fits_token_limit(text: str) -> bool:
    """Returns whether a text has fewer tokens than an answer may have."""
    return estimate_max_tokens(text) < MAX_ANSWER_TOKENS


def _value_as_tool_argument(value: Any) -> str:
    """Returns an option's value as text, written as on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _option_description_line(view: View[Any], option_name: str) -> str:
    """Returns a line about one option of a view: its choices and its default."""
    option = view.options[option_name]
    choices = option.choices or option.joinable_words
    accepted = f"one of {', '.join(choices)}" if choices else ""
    return f"- {option_name}: {accepted or 'free'}; default {option.default!r}"
