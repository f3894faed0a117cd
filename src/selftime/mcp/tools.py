"""The tools offered to an agent: their names, parameters and handlers.

The parameters of `view` are generated from the views' own options, so a new view is available
without a change here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, TypeAlias, get_args

from selftime.compare import TABLES
from selftime.errors import UsageError
from selftime.mcp.tool_handlers import MOST_ROWS, ROWS, ToolHandlers
from selftime.views import VIEWS, Option

Schema: TypeAlias = dict[str, Any]
_LONGEST: Final = 2000
"""The longest text argument, in characters."""
_FARTHEST: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, description, parameters and handler."""

    name: str
    doc: str
    takes: Mapping[str, Schema]
    needs: tuple[str, ...]
    answer: Callable[[ToolHandlers, dict[str, Any]], str]

    @property
    def schema(self) -> Schema:
        """The parameters as JSON Schema."""
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": list(self.needs),
            "additionalProperties": False,
        }


def call(desk: ToolHandlers, name: str, given: Mapping[str, Any]) -> str:
    """Returns the answer of a tool.

    Raises:
        UsageError: There is no such tool, or its arguments are wrong.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise UsageError(f"there is no tool `{name[:40]}`; there are {', '.join(TOOLS)}")
    missing = [need for need in tool.needs if need not in given]
    if missing:
        raise UsageError(f"`{name}` needs `{missing[0]}`; give it")
    for key, value in given.items():
        if key not in tool.takes:
            raise UsageError(f"`{name}` takes no `{key[:40]}`; it takes {', '.join(tool.takes)}")
        _check(f"`{key}` of `{name}`", value, tool.takes[key])
    return tool.answer(desk, dict(given))


def _check(what: str, value: Any, schema: Schema) -> None:
    """Raise a UsageError for a value of the wrong type, too long or out of range."""
    kinds = schema.get("type", ["string", "integer", "number", "boolean"])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is_a(value, kind) for kind in kinds):
        raise UsageError(f"{what} is not a value of type {' or '.join(kinds)}; give one")
    if isinstance(value, str) and len(value) > _LONGEST:
        raise UsageError(f"{what} is {len(value):,} characters long; give at most {_LONGEST:,}")
    if "enum" in schema and value not in schema["enum"]:
        raise UsageError(f"{what} is `{str(value)[:40]}`; give one of {', '.join(schema['enum'])}")
    low, high = schema.get("minimum"), schema.get("maximum", _FARTHEST)
    if isinstance(value, int | float) and ((low is not None and value < low) or value > high):
        raise UsageError(f"{what} is out of range; give {low} to {high}")
    if isinstance(value, dict):
        for key, inner in value.items():
            known = schema["properties"].get(key) or schema["additionalProperties"]
            if known:  # otherwise the view's own error names its options
                _check(f"`{key[:40]}` of {what}", inner, known)
    if isinstance(value, list):
        for inner in value:
            _check(f"a part of {what}", inner, schema["items"])


_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _options() -> Schema:
    """Returns the schema of every option of every view, with the views that take it."""
    found: dict[str, list[tuple[str, Option]]] = {}
    for view in VIEWS.values():
        for option in view.options.values():
            found.setdefault(option.name, []).append((view.name, option))
    return {name: _option(several) for name, several in sorted(found.items())}


def _option(several: list[tuple[str, Option]]) -> Schema:
    views = ", ".join(view for view, _ in several)
    kinds = sorted({kind for _, option in several for kind in _kinds(option)})
    told: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds, "description": f"Of {views}."}
    if all(option.choices for _, option in several):
        told["enum"] = sorted({word for _, option in several for word in option.choices})
    return told


def _kinds(option: Option) -> list[str]:
    if option.choices:
        return ["string"]
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kinds = [kind for kind in get_args(option.type) or (option.type,) if kind is not NoneType]
    return [names[kind] for kind in kinds]


_TRACE: Final = {"type": "string", "description": "An id of `list_traces`, or a file's name."}
_START: Final = {"type": "integer", "minimum": 0, "description": "The first row, from 0."}
_ROWS: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_ROWS,
    "description": f"Rows at most; {ROWS} if not given.",
}
_VIEW: Final = {"type": "string", "enum": sorted(VIEWS)}


def _view(desk: ToolHandlers, given: dict[str, Any]) -> str:
    return desk.view(
        given["trace"],
        given["name"],
        given.get("options", {}),
        columns=tuple(given.get("columns", ())),
        sort=given.get("sort", ""),
        find_text=given.get("find", ""),
        start=given.get("from", 0),
        rows=given.get("rows", ROWS),
    )


_ALL: Final = (
    Tool(
        "list_traces",
        "Lists the recordings that the other tools can open. Begin here.",
        {"from": _START},
        (),
        lambda desk, given: desk.list_traces(given.get("from", 0)),
    ),
    Tool(
        "advise",
        "What to change in the recorded program, ranked by the time saved per step; what "
        "was checked and is not worth changing; what the recording cannot show.",
        {"trace": _TRACE},
        ("trace",),
        lambda desk, given: desk.advise(given["trace"]),
    ),
    Tool(
        "finding",
        "One finding in full, with the events that it was measured on; or all results of a rule.",
        {
            "trace": _TRACE,
            "id": {"type": "string", "description": "A finding's id, a rule, or `all`."},
        },
        ("trace", "id"),
        lambda desk, given: desk.finding(given["trace"], given["id"]),
    ),
    Tool(
        "view",
        "One table of a recording. Times are nanoseconds. `describe_view` lists its options.",
        {
            "trace": _TRACE,
            "name": _VIEW,
            "options": {"type": "object", "properties": _options(), "additionalProperties": False},
            "columns": {"type": "array", "items": {"type": "string"}, "description": "Only these."},
            "sort": {"type": "string", "description": "A column; `-` before it: largest first."},
            "find": {"type": "string", "description": "Only rows of which a text contains this."},
            "from": _START,
            "rows": _ROWS,
        },
        ("trace", "name"),
        _view,
    ),
    Tool(
        "describe_view",
        "The description, options and columns of a table.",
        {"name": _VIEW},
        ("name",),
        lambda desk, given: desk.describe_view(given["name"]),
    ),
    Tool(
        "slice",
        "All of one event, by its id: times, line, arguments, launch, parents, children, kernels.",
        {"trace": _TRACE, "id": {"type": "integer", "minimum": 0}},
        ("trace", "id"),
        lambda desk, given: desk.slice(given["trace"], given["id"]),
    ),
    Tool(
        "explain",
        "The page of a rule of the advice: what it finds, why that costs time, what to do.",
        {"rule": {"type": "string"}},
        ("rule",),
        lambda desk, given: desk.explain(given["rule"]),
    ),
    Tool(
        "sql",
        "An SQL query over every table and view of a recording: `show tables` lists them. "
        "Times are nanoseconds, sizes bytes.",
        {
            "trace": _TRACE,
            "query": {"type": "string", "description": "It begins with `select` or `with`."},
            "views": {
                "type": "object",
                "properties": {},
                "additionalProperties": {"type": "string"},
                "description": "Views with options, by a name for the query: "
                '{"shapes": "operators by=shape"}.',
            },
            "from": _START,
            "rows": _ROWS,
        },
        ("trace", "query"),
        lambda desk, given: desk.sql(
            given["trace"],
            given["query"],
            given.get("views", {}),
            start=given.get("from", 0),
            rows=given.get("rows", ROWS),
        ),
    ),
    Tool("rules", "Lists the rules of the advice.", {}, (), lambda desk, _: desk.rules()),
    Tool(
        "compare",
        "What changed per step from one recording to another: after minus before.",
        {
            "before": _TRACE,
            "after": _TRACE,
            "part": {"type": "string", "enum": list(TABLES), "description": "Which table."},
            "rows": _ROWS,
        },
        ("before", "after"),
        lambda desk, given: desk.compare(
            given["before"], given["after"], given.get("part", "steps"), given.get("rows", ROWS)
        ),
    ),
)

TOOLS: Final = {tool.name: tool for tool in _ALL}
"""Every tool, by name."""
