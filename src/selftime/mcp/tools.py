"""Declares the tools that AI agents can call: their names, parameters and handlers.

The parameters of `view` are generated from the views' own options, so a new view is available
without a change here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeAlias, get_args

from selftime.advice.what_if import CLASSES_TO_HIDE, CLASSES_TO_REMOVE
from selftime.compare import TABLES
from selftime.errors import UsageError
from selftime.mcp.tool_handlers import DEFAULT_TABLE_ROWS, MAX_TABLE_ROWS, ToolHandlers
from selftime.views import VIEWS, Option

JsonSchema: TypeAlias = dict[str, Any]
_MAX_TEXT_ARGUMENT_CHARACTERS: Final = 2000
"""Largest number of characters of a text argument."""
_MAX_INTEGER_ARGUMENT: Final = 1 << 53
"""Largest number that a tool accepts as an argument."""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool offered to an agent: its name, description, parameters and handler."""

    name: str
    doc: str
    parameters: Mapping[str, JsonSchema]
    required: tuple[str, ...]
    handler: Callable[[ToolHandlers, dict[str, Any]], str]

    @property
    def schema(self) -> JsonSchema:
        """Returns the tool's parameters as a JSON Schema."""
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.required),
            "additionalProperties": False,
        }


def call_tool(
    handlers: ToolHandlers,
    tool_name: str,
    arguments: Mapping[str, Any],
    others: Mapping[str, AgentTool] = MappingProxyType({}),
) -> str:
    """Runs the named tool with the given arguments, and returns its answer as Markdown.

    Args:
        handlers: Answers the calls of the tools that read.
        tool_name: The tool.
        arguments: What the agent gave.
        others: Tools that there are besides those that read.

    Raises:
        UsageError: There is no such tool, or its arguments are wrong.
    """
    tools = {**TOOL_BY_NAME, **others}
    tool = tools.get(tool_name)
    if tool is None:
        raise UsageError(f"there is no tool `{tool_name[:40]}`; there are {', '.join(tools)}")
    missing = [parameter for parameter in tool.required if parameter not in arguments]
    if missing:
        raise UsageError(f"`{tool_name}` needs `{missing[0]}`; give it")
    for key, value in arguments.items():
        if key not in tool.parameters:
            raise UsageError(
                f"`{tool_name}` takes no `{key[:40]}`; it takes {', '.join(tool.parameters)}"
            )
        _check_tool_argument(f"`{key}` of `{tool_name}`", value, tool.parameters[key])
    return tool.handler(handlers, dict(arguments))


def _check_tool_argument(argument_label: str, value: Any, schema: JsonSchema) -> None:
    """Raises a UsageError if an argument has the wrong type, is too long or out of range."""
    types = schema.get("type", ["string", "integer", "number", "boolean"])
    types = [types] if isinstance(types, str) else types
    if not any(_has_json_schema_type(value, type_) for type_ in types):
        raise UsageError(f"{argument_label} is not a value of type {' or '.join(types)}; give one")
    if isinstance(value, str) and len(value) > _MAX_TEXT_ARGUMENT_CHARACTERS:
        raise UsageError(
            f"{argument_label} is {len(value):,} characters long; "
            f"give at most {_MAX_TEXT_ARGUMENT_CHARACTERS:,}"
        )
    if "enum" in schema and value not in schema["enum"]:
        raise UsageError(
            f"{argument_label} is `{str(value)[:40]}`; give one of {', '.join(schema['enum'])}"
        )
    low, high = schema.get("minimum"), schema.get("maximum", _MAX_INTEGER_ARGUMENT)
    if isinstance(value, int | float) and ((low is not None and value < low) or value > high):
        raise UsageError(f"{argument_label} is out of range; give {low} to {high}")
    if isinstance(value, dict):
        for key, inner in value.items():
            value_schema = schema["properties"].get(key) or schema["additionalProperties"]
            if value_schema:  # otherwise the view's own error names its options
                _check_tool_argument(f"`{key[:40]}` of {argument_label}", inner, value_schema)
    if isinstance(value, list):
        for inner in value:
            _check_tool_argument(f"a part of {argument_label}", inner, schema["items"])


_PYTHON_TYPES_OF_SCHEMA: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}
"""Maps each type name of JSON Schema to the Python types of its values."""


def _has_json_schema_type(value: Any, schema_type: str) -> bool:
    """Returns whether a value has the given JSON Schema type, such as `integer`."""
    if isinstance(value, bool):
        return schema_type == "boolean"
    return isinstance(value, _PYTHON_TYPES_OF_SCHEMA[schema_type])


def _json_schemas_of_view_options() -> JsonSchema:
    """Returns {option name: JSON Schema} for all options of all views, naming their views."""
    options_by_name: dict[str, list[tuple[str, Option]]] = {}
    for view in VIEWS.values():
        for option in view.options.values():
            options_by_name.setdefault(option.name, []).append((view.name, option))
    return {
        name: _json_schema_of_option(views_and_options)
        for name, views_and_options in sorted(options_by_name.items())
    }


def _json_schema_of_option(views_and_options: list[tuple[str, Option]]) -> JsonSchema:
    """Returns the JSON Schema of an option that one or more views accept."""
    views = ", ".join(view for view, _ in views_and_options)
    types = sorted(
        {type_ for _, option in views_and_options for type_ in _json_schema_types(option)}
    )
    schema: JsonSchema = {
        "type": types[0] if len(types) == 1 else types,
        "description": f"Of {views}.",
    }
    if all(option.choices for _, option in views_and_options):
        schema["enum"] = sorted(
            {choice for _, option in views_and_options for choice in option.choices}
        )
    return schema


def _json_schema_types(option: Option) -> list[str]:
    """Returns the JSON Schema types, such as `integer`, that an option of a view accepts."""
    if option.choices:
        return ["string"]
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    types = [type_ for type_ in get_args(option.type) or (option.type,) if type_ is not NoneType]
    return [names[type_] for type_ in types]


TRACE_ARGUMENT_SCHEMA: Final = {
    "type": "string",
    "description": "An id of `list_traces`, or a file's name.",
}
"""JSON Schema of a tool's parameter that names a trace."""
_FIRST_ROW_ARGUMENT_SCHEMA: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "The first row, from 0.",
}
"""JSON Schema of a tool's parameter for the number of the first row to return."""
_MAX_ROWS_ARGUMENT_SCHEMA: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_TABLE_ROWS,
    "description": f"Rows at most; {DEFAULT_TABLE_ROWS} if not given.",
}
"""JSON Schema of a tool's parameter for the largest number of rows to return."""
_PATTERNS_ARGUMENT_SCHEMA: Final = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Patterns whose time goes.",
}
"""JSON Schema of a tool's parameter for patterns."""
_VIEW_NAME_ARGUMENT_SCHEMA: Final = {"type": "string", "enum": sorted(VIEWS)}
"""JSON Schema of a tool's parameter that names a view."""


def _call_view_handler(handlers: ToolHandlers, arguments: dict[str, Any]) -> str:
    """Returns the answer of the tool `view` to its arguments."""
    return handlers.view(
        arguments["trace"],
        arguments["name"],
        arguments.get("options", {}),
        columns=tuple(arguments.get("columns", ())),
        sort=arguments.get("sort", ""),
        find_text=arguments.get("find", ""),
        first_row=arguments.get("from", 0),
        max_rows=arguments.get("rows", DEFAULT_TABLE_ROWS),
    )


_AGENT_TOOLS: Final = (
    AgentTool(
        "list_traces",
        "Lists the recordings that the other tools can open. Begin here.",
        {"from": _FIRST_ROW_ARGUMENT_SCHEMA},
        (),
        lambda handlers, arguments: handlers.list_traces(arguments.get("from", 0)),
    ),
    AgentTool(
        "advise",
        "What to change in the recorded program, ranked by the time saved per step; what "
        "was checked and is not worth changing; what the recording cannot show.",
        {"trace": TRACE_ARGUMENT_SCHEMA},
        ("trace",),
        lambda handlers, arguments: handlers.advise(arguments["trace"]),
    ),
    AgentTool(
        "run",
        "What the whole run spent its wall time on: its parts, kinds of steps and slow steps.",
        {"trace": TRACE_ARGUMENT_SCHEMA},
        ("trace",),
        lambda handlers, arguments: handlers.run(arguments["trace"]),
    ),
    AgentTool(
        "finding",
        "One finding in full, with the events that it was measured on; or all results of a rule.",
        {
            "trace": TRACE_ARGUMENT_SCHEMA,
            "id": {"type": "string", "description": "A finding's id, a rule, or `all`."},
        },
        ("trace", "id"),
        lambda handlers, arguments: handlers.finding(arguments["trace"], arguments["id"]),
    ),
    AgentTool(
        "what_if",
        "The step time after changes of your choice, by one simulation of the recorded program. A "
        "pattern is a glob on names of operators, calls or kernels, a line such as train.py:31, "
        f"or one of {', '.join(CLASSES_TO_REMOVE)}.",
        {
            "trace": TRACE_ARGUMENT_SCHEMA,
            "scale": {
                "type": "object",
                "properties": {},
                "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
                "description": "Patterns, with the share of their time that is left, 0 to 1.",
            },
            "remove": _PATTERNS_ARGUMENT_SCHEMA,
            "hide": {"type": "array", "items": {"type": "string", "enum": list(CLASSES_TO_HIDE)}},
        },
        ("trace",),
        lambda handlers, arguments: handlers.what_if(
            arguments["trace"],
            arguments.get("scale", {}),
            tuple(arguments.get("remove", ())),
            tuple(arguments.get("hide", ())),
        ),
    ),
    AgentTool(
        "view",
        "One table of a recording. Times are nanoseconds. `describe_view` lists its options.",
        {
            "trace": TRACE_ARGUMENT_SCHEMA,
            "name": _VIEW_NAME_ARGUMENT_SCHEMA,
            "options": {
                "type": "object",
                "properties": _json_schemas_of_view_options(),
                "additionalProperties": False,
            },
            "columns": {"type": "array", "items": {"type": "string"}, "description": "Only these."},
            "sort": {"type": "string", "description": "A column; `-` before it: largest first."},
            "find": {"type": "string", "description": "Only rows of which a text contains this."},
            "from": _FIRST_ROW_ARGUMENT_SCHEMA,
            "rows": _MAX_ROWS_ARGUMENT_SCHEMA,
        },
        ("trace", "name"),
        _call_view_handler,
    ),
    AgentTool(
        "describe_view",
        "The description, options and columns of a table.",
        {"name": _VIEW_NAME_ARGUMENT_SCHEMA},
        ("name",),
        lambda handlers, arguments: handlers.describe_view(arguments["name"]),
    ),
    AgentTool(
        "slice",
        "All of one event, by its id: times, line, arguments, launch, parents, children, kernels.",
        {"trace": TRACE_ARGUMENT_SCHEMA, "id": {"type": "integer", "minimum": 0}},
        ("trace", "id"),
        lambda handlers, arguments: handlers.slice(arguments["trace"], arguments["id"]),
    ),
    AgentTool(
        "explain",
        "The page of a rule of the advice: what it finds, why that costs time, what to do.",
        {"rule": {"type": "string"}},
        ("rule",),
        lambda handlers, arguments: handlers.explain(arguments["rule"]),
    ),
    AgentTool(
        "sql",
        "An SQL query over every table and view of a recording: `show tables` lists them. "
        "Times are nanoseconds, sizes bytes.",
        {
            "trace": TRACE_ARGUMENT_SCHEMA,
            "query": {"type": "string", "description": "It begins with `select` or `with`."},
            "views": {
                "type": "object",
                "properties": {},
                "additionalProperties": {"type": "string"},
                "description": "Views with options, by a name for the query: "
                '{"shapes": "operators by=shape"}.',
            },
            "from": _FIRST_ROW_ARGUMENT_SCHEMA,
            "rows": _MAX_ROWS_ARGUMENT_SCHEMA,
        },
        ("trace", "query"),
        lambda handlers, arguments: handlers.sql(
            arguments["trace"],
            arguments["query"],
            arguments.get("views", {}),
            first_row=arguments.get("from", 0),
            max_rows=arguments.get("rows", DEFAULT_TABLE_ROWS),
        ),
    ),
    AgentTool(
        "rules", "Lists the rules of the advice.", {}, (), lambda handlers, _: handlers.rules()
    ),
    AgentTool(
        "compare",
        "What changed per step from one recording to another: after minus before.",
        {
            "before": TRACE_ARGUMENT_SCHEMA,
            "after": TRACE_ARGUMENT_SCHEMA,
            "part": {"type": "string", "enum": list(TABLES), "description": "Which table."},
            "rows": _MAX_ROWS_ARGUMENT_SCHEMA,
        },
        ("before", "after"),
        lambda handlers, arguments: handlers.compare(
            arguments["before"],
            arguments["after"],
            arguments.get("part", "steps"),
            arguments.get("rows", DEFAULT_TABLE_ROWS),
        ),
    ),
)
"""All tools, in the order in which they are listed to an agent."""

TOOL_BY_NAME: Final = {tool.name: tool for tool in _AGENT_TOOLS}
"""Every tool offered to an agent, by its name."""
