"""The executing line, read from the source where the recording has only the function.

A recording by others names the line on which a function is defined. If the function's source is at
hand, and only one line of it can have run the operator, that is the line.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import polars as pl

from selftime import names
from selftime.advice.base import Evidence, Finding, Where
from selftime.advice.lines.syntax import (
    Scope,
    expressions_in,
    first_line,
    parsed,
    repeated_in,
    scope_at,
)
from selftime.names.expressions import wraps_call
from selftime.trace import Trace

MOST_LINES: Final = 4
"""More candidates than these tell nothing that the function does not."""

MOST_DIMENSIONS: Final = 64
"""PyTorch's tensors have no more, and one expression takes each with at most one operator."""

_Called: TypeAlias = tuple[str | None, frozenset[str]]

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
    scope = _scope(place, _folders(trace, place.file))
    if scope is None:
        return finding
    if place.function != "<module>":
        finding = replace(finding, where=replace(place, line=_defined_at(scope, place.line)))
    events = [event for told in finding.evidence for event in told.events]
    asked: dict[_Called, int] = {}
    for event in events:
        for called, runs in _called(trace, event, place):
            asked[called] = max(runs, asked.get(called, 0))
    lines = sorted({line for called, runs in asked.items() for line in _lines(scope, called, runs)})
    if len(lines) == 1:
        return replace(finding, where=replace(place, line=lines[0], how="static"))
    if not 1 < len(lines) <= MOST_LINES:
        return finding
    listed = f"{', '.join(map(str, lines[:-1]))} or {lines[-1]}"
    named = str(Where(place.file))
    told = Evidence(f"lines that it can be: {listed} of {named}", float(len(lines)), "count")
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


def _defined_at(scope: Scope, line: int | None) -> int | None:
    """The line of a definition: as it is if it is one, else the scope's first."""
    own = getattr(scope, "lineno", line)
    return line if line in {first_line(scope), own} else first_line(scope)


def _called(trace: Trace, event: int, place: Where) -> Iterator[tuple[_Called, int]]:
    """What the user's function wrote to run this slice: its syntax, and functions' names.

    Beside it, how often the same ran in that frame.
    """
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
        if known is not None and _is_frame_of(known, place):
            break
        callee = callee if wraps_call(_name(trace, frame)) else frame
        frame = _value(trace.frame_args, "caller", frame)
    if frame is None or (callee is None and (operator is None or is_frame)):
        return
    if callee is None and operator is not None:
        runs = _runs(trace, trace.op_args, "frame", frame, operator) // MOST_DIMENSIONS
        yield names.syntax_of(_name(trace, operator)), runs
    if callee is None:
        return
    function = names.function_called(_name(trace, callee))
    if function is not None:
        runs = _runs(trace, trace.frame_args, "caller", frame, callee)
        yield (None, frozenset({function})), runs


def _is_frame_of(frame: names.Frame, place: Where) -> bool:
    """Operators name a file in full, frames often from a folder that Python imports from."""
    file = place.file or ""
    same = file == frame.file or file.endswith(f"/{frame.file}") or frame.file.endswith(f"/{file}")
    return same and frame.function == place.function


def _runs(trace: Trace, table: pl.DataFrame, column: str, frame: int, like: int) -> int:
    """How many slices of the same name one frame ran."""
    ids = table.filter(pl.col(column) == frame)["id"]
    return int((trace.slices["name"].gather(ids) == trace.slices["name"][like]).sum())


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


def _lines(scope: Scope, called: _Called, runs: int) -> frozenset[int]:
    """The lines that can have run this so often.

    What lies in no loop runs at most once in a frame: where more ran than that accounts for, most
    came from a loop, if there is one.
    """
    repeated = repeated_in(scope)
    within: set[int] = set()
    once: list[int] = []
    for node in expressions_in(scope):
        told = list(_candidates(node, *called))
        if id(node) in repeated:
            within.update(told)
        else:
            once.extend(told)
    if within and runs > 2 * len(once):
        return frozenset(within)
    return frozenset({*within, *once})


def _candidates(node: ast.AST, syntax: str | None, functions: frozenset[str]) -> Iterator[int]:
    """The line of a node that has this syntax, or calls one of these functions."""
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
        case ast.Subscript() if _indexes(node, syntax):
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


def _indexes(node: ast.Subscript, syntax: str) -> bool:
    """Whether an index can run this; a bare range is no number, tensor or mask."""
    if syntax == "x[a:b]":
        return True
    if isinstance(node.slice, ast.Slice):
        return False
    if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return syntax == "x[n]"
    reads = isinstance(node.ctx, ast.Load)
    return syntax == "x[n]" or (syntax == "x[i]" and reads) or (syntax == "x[i] =" and not reads)
