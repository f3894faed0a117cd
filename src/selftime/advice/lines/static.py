"""The executing line, read from the source where the recording has only the function.

A recording by others names the line on which a function is defined. If the function's source is at
hand, and only one line of it can have run the operator, that is the line.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Evidence, Finding, Where
from selftime.advice.lines.syntax import Scope, expressions_in, parsed, scope_at
from selftime.names.expressions import wraps_call
from selftime.trace import Trace

__all__ = ["with_static_line"]

MOST_LINES: Final = 4
"""More candidates than these tell nothing that the function does not."""

_BINARY: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.USub: "-x",
    ast.Invert: "~x",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def with_static_line(trace: Trace, finding: Finding) -> Finding:
    """The finding with the one line that can have run its evidence; as it is if there are several.

    A few candidates are named as evidence.
    """
    place = finding.where
    if place.how != "definition" or place.file is None or place.function is None:
        return finding
    events = [event for told in finding.evidence for event in told.events]
    scope = _scope(place, _folders(trace, place.file))
    asked = {called for event in events for called in _called(trace, event, place)}
    if scope is None or not asked:
        return finding
    lines = sorted({line for called in asked for line in _candidates(scope, *called)})
    if len(lines) == 1:
        return replace(finding, where=replace(place, line=lines[0], how="static"))
    if not 1 < len(lines) <= MOST_LINES:
        return finding
    listed = f"{', '.join(map(str, lines[:-1]))} or {lines[-1]}"
    told = Evidence(f"lines that it can be: {listed} of {place.file}", float(len(lines)), "count")
    return replace(finding, evidence=(*finding.evidence, told))


def _folders(trace: Trace, file: str) -> tuple[str, ...]:
    """Where files with relative names may lie: where the program ran, here, beside the trace.

    Frames name files from a folder that Python imports from; operators name the same files in full.
    """
    ran = trace.facts.get("cwd")
    beside = str(Path(trace.source).parent)
    known = trace.lines["file"].drop_nulls().unique().cast(pl.String).sort()
    whole = known.filter(known.str.ends_with(f"/{file}")).to_list()
    imported = [text.removesuffix(file) for text in whole]
    ran_in = [ran] if isinstance(ran, str) else []
    return tuple(dict.fromkeys([*imported, *ran_in, ".", beside]))


def _scope(place: Where, folders: tuple[str, ...]) -> Scope | None:
    for folder in folders:
        tree = parsed(Path(folder) / (place.file or ""))
        if tree is not None:
            return scope_at(tree, place.function or "", place.line)
    return None


def _called(trace: Trace, event: int, place: Where) -> Iterator[tuple[str | None, frozenset[str]]]:
    """What the user's function wrote to run this slice: its syntax, and functions' names."""
    if not 0 <= event < trace.slices.height:
        return
    operator = _outermost_operator(trace, _on_host(trace, event))
    is_frame = _value(trace.frame_args, "id", event) is not None
    frame = event if is_frame else None
    if operator is not None and not is_frame:
        frame = _value(trace.op_args, "frame", operator)
    callee: int | None = None
    while frame is not None:
        known = names.frame(_name(trace, frame))
        if known is not None and (known.file, known.function) == (place.file, place.function):
            break
        callee = callee if wraps_call(_name(trace, frame)) else frame
        frame = _value(trace.frame_args, "caller", frame)
    if frame is None or (callee is None and (operator is None or is_frame)):
        return
    if callee is None and operator is not None:
        yield names.syntax_of(_name(trace, operator))
    if callee is None:
        return
    function = names.function_called(_name(trace, callee))
    if function is not None:
        yield None, frozenset({function})


def _on_host(trace: Trace, event: int) -> int:
    """The slice that launched device work, or itself; of a backward operator its forward one."""
    launched = _value(trace.device_args, "operator", event)
    host = event if launched is None else launched
    forward = _value(trace.op_args, "forward", host)
    return host if forward is None else forward


def _outermost_operator(trace: Trace, at: int) -> int | None:
    """The operator that Python called, around a slice."""
    found, parent = None, trace.slices["parent"]
    here: int | None = at
    while here is not None:
        if str(trace.slices["category"][here]) in names.OPERATORS:
            found = here
        here = parent[here]
    return found


def _name(trace: Trace, at: int) -> str:
    return str(trace.slices["name"][at])


def _value(table: pl.DataFrame, column: str, at: int) -> int | None:
    """A table's value of one slice; its ids are sorted."""
    ids = table["id"]
    place = ids.search_sorted(at)
    if place >= ids.len() or ids[place] != at:
        return None
    value: int | None = table[column][place]
    return value


def _candidates(scope: Scope, syntax: str | None, functions: frozenset[str]) -> Iterator[int]:
    """Lines of a function that hold this syntax, or call one of these functions."""
    for node in expressions_in(scope):
        if isinstance(node, ast.Call) and _function(node.func) in functions:
            yield node.func.end_lineno or node.lineno
        elif syntax is not None:
            yield from _with_syntax(node, syntax)


def _function(node: ast.expr) -> str | None:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


def _with_syntax(node: ast.AST, syntax: str) -> Iterator[int]:
    match node:
        case ast.Subscript(ctx=ast.Load()) if syntax == "x[i]":
            yield node.lineno
        case ast.Subscript(ctx=ast.Store()) if syntax == "x[i] =":
            yield node.lineno
        case ast.AugAssign(target=ast.Subscript()) if syntax in {"x[i]", "x[i] ="}:
            yield node.lineno
        case ast.BinOp() | ast.AugAssign() | ast.UnaryOp() if _BINARY.get(type(node.op)) == syntax:
            yield node.lineno
        case ast.Compare() if syntax in {_BINARY.get(type(op)) for op in node.ops}:
            yield node.lineno
        case (
            ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test)
        ):
            if syntax == "truth":
                yield test.lineno
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) if syntax == "truth":
            yield node.lineno
