"""Declares the tools that act: they exist only where the user allows them with `--allow`."""

from collections.abc import Callable
from typing import Final

from selftime.mcp.actions import Actions
from selftime.mcp.tools import TRACE_ARGUMENT_SCHEMA, AgentTool, JsonSchema

_SCRIPT_SCHEMA: Final[JsonSchema] = {
    "type": "string",
    "description": "A Python file below the folders that the user allows.",
}
_ARGS_SCHEMA: Final[JsonSchema] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The program's arguments, one by one; no shell reads them.",
}
_FOLDER_SCHEMA: Final[JsonSchema] = {
    "type": "string",
    "description": "Where it runs; by default the allowed folder that it lies below.",
}


_RECORD_PARAMETERS: Final[dict[str, JsonSchema]] = {
    "script": _SCRIPT_SCHEMA,
    "args": _ARGS_SCHEMA,
    "folder": _FOLDER_SCHEMA,
    "steps": {"type": "integer", "minimum": 1, "maximum": 100},
    "seed": {
        "type": "integer",
        "minimum": 0,
        "maximum": (1 << 32) - 1,
        "description": "Seeds random, NumPy and PyTorch, for `verify`.",
    },
}
_BENCH_PARAMETERS: Final[dict[str, JsonSchema]] = {
    "before": _SCRIPT_SCHEMA,
    "after": _SCRIPT_SCHEMA,
    "args": _ARGS_SCHEMA,
    "folder": _FOLDER_SCHEMA,
}


def action_tools(actions: Actions, is_cancelled: Callable[[], bool]) -> dict[str, AgentTool]:
    """Returns the allowed tools by name; what they run is stopped once `is_cancelled` is True."""
    tools = (
        AgentTool(
            "record",
            "Runs a program to its end, or for the time that the user allows, and records a few "
            "of its steps and its first results. The answer has the ids of the new traces.",
            _RECORD_PARAMETERS,
            ("script",),
            lambda _, given: actions.record(
                given["script"],
                given.get("args", []),
                given.get("folder"),
                given.get("steps"),
                given.get("seed"),
                is_cancelled,
            ),
        ),
        AgentTool(
            "bench",
            "Times two programs in turn, unrecorded, until it is sure which is faster.",
            _BENCH_PARAMETERS,
            ("before", "after"),
            lambda _, given: actions.bench(
                given["before"],
                given["after"],
                given.get("args", []),
                given.get("folder"),
                is_cancelled,
            ),
        ),
        AgentTool(
            "verify",
            "What a repair saved beside what was promised, and whether both programs computed the "
            "same, from a recording before and one after it.",
            {
                "before": TRACE_ARGUMENT_SCHEMA,
                "after": TRACE_ARGUMENT_SCHEMA,
                "finding": {"type": "string", "description": "The id of what was repaired."},
            },
            ("before", "after"),
            lambda _, given: actions.verify(given["before"], given["after"], given.get("finding")),
        ),
    )
    allowed = {_NAME_OF_PERMISSION.get(name, name) for name in actions.allowed.names}
    return {tool.name: tool for tool in tools if tool.name in allowed}


_NAME_OF_PERMISSION: Final = {"run": "record"}
"""Names of tools that differ from the word that allows them: the tool `run` reads a ledger."""

ACTING_TOOLS: Final = frozenset({"record", "bench"})
"""The tools that run programs; `verify` only reads."""
