"""Finds a finding's source line in the source file, where only the function was recorded.

Other recorders give the line on which a function is defined. If its source can be read, and only
one line of it can have run the operator, that is the line.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import polars as pl

from selftime import names
from selftime.advice.lines.source_syntax import (
    SyntaxScope,
    class_around_frame,
    first_line_of_scope,
    ids_of_nodes_in_loops,
    nodes_in_scope,
    parse_cell,
    parse_file,
    scope_of_frame,
)
from selftime.advice.rule_definition import Evidence, Finding, Where
from selftime.names.notebook_cells import is_notebook_cell
from selftime.names.python_expressions import is_decorator_frame
from selftime.trace import Trace

MAX_CANDIDATE_LINES: Final = 4
"""Largest number of candidate lines that a finding names."""

MAX_TENSOR_DIMENSIONS: Final = 64
"""Largest number of tensor dimensions, so also of operators that one index expression runs."""

_CallSyntax: TypeAlias = tuple[str | None, frozenset[str]]
"""What can run an operator: Python syntax such as `+` (None if there is none), and function
names."""

_PYTHON_SYNTAX_BY_AST_OPERATOR: Final[Mapping[type[ast.AST], str]] = {
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
"""Maps operator node types of the module `ast` to Python syntax such as `+`."""


def with_line_from_source(trace: Trace, finding: Finding) -> Finding:
    """Returns the finding with the line that ran its operators, if only one line can have.

    Of several candidate lines a few are named as evidence.
    """
    place = finding.where
    if place.how != "definition" or place.file is None or place.function is None:
        return finding
    scope = syntax_scope_of_place(trace, place)
    if scope is None:
        return finding
    if place.function != "<module>":
        finding = replace(finding, where=replace(place, line=_definition_line(scope, place.line)))
    events = [event for told in finding.evidence for event in told.events]
    asked: dict[_CallSyntax, int] = {}
    for event in events:
        for called, runs in _calls_in_frame(trace, event, place):
            asked[called] = max(runs, asked.get(called, 0))
    lines = sorted(
        {line for called, runs in asked.items() for line in _candidate_lines(scope, called, runs)}
    )
    if len(lines) == 1:
        return replace(finding, where=replace(place, line=lines[0], how="static"))
    if not 1 < len(lines) <= MAX_CANDIDATE_LINES:
        return finding
    listed = f"{', '.join(map(str, lines[:-1]))} or {lines[-1]}"
    named = str(Where(place.file))
    told = Evidence(
        f"source lines that may have run it: {listed} of {named}", float(len(lines)), "count"
    )
    return replace(finding, evidence=(*finding.evidence, told))


def class_of_place(trace: Trace, place: Where) -> ast.ClassDef | None:
    """Returns the class whose method is defined at `place`; None if its source was not found."""
    tree = _syntax_tree(trace, place.file or "")
    if tree is None:
        return None
    return class_around_frame(tree, place.function or "", place.line)


def syntax_scope_of_place(trace: Trace, place: Where) -> SyntaxScope | None:
    """Returns the syntax tree of the function at `place`; None if its source was not found."""
    tree = _syntax_tree(trace, place.file or "")
    return None if tree is None else scope_of_frame(tree, place.function or "", place.line)


def _syntax_tree(trace: Trace, file: str) -> ast.Module | None:
    """Returns the syntax tree of a source file or a notebook's cell; None if it was not found."""
    if is_notebook_cell(file):
        return parse_cell(trace, file)
    trees = (parse_file(Path(folder) / file) for folder in _source_folders(trace, file))
    return next((tree for tree in trees if tree is not None), None)


def _source_folders(trace: Trace, file: str) -> tuple[str, ...]:
    """Returns the folders in which to look for a source file with a relative path.

    Frames name files from a folder that Python imports from; operators name the same files in full.
    """
    ran = trace.facts.get("cwd")
    beside = str(Path(trace.source).parent)
    known = trace.lines["file"].drop_nulls().unique().cast(pl.String).sort()
    whole = known.filter(known.str.ends_with(f"/{file}")).to_list()
    imported = [text.removesuffix(file) for text in whole]
    ran_in = [ran] if isinstance(ran, str) else []
    return tuple(dict.fromkeys([*imported, *ran_in, ".", beside]))


def _definition_line(scope: SyntaxScope, line: int | None) -> int | None:
    """Returns `line` if the function starts there; else the function's first line."""
    own = getattr(scope, "lineno", line)
    return line if line in {first_line_of_scope(scope), own} else first_line_of_scope(scope)


def _calls_in_frame(trace: Trace, event: int, place: Where) -> Iterator[tuple[_CallSyntax, int]]:
    """Yields (syntax, number of calls): what in a function ran the slice `event`, and how often."""
    if not 0 <= event < trace.slices.height:
        return
    operator = _outermost_operator_id(trace, _forward_host_slice_id(trace, event))
    is_frame = _value_of_slice(trace.frame_args, "id", event) is not None
    frame = event if is_frame else None
    if operator is not None and not is_frame:
        frame = _value_of_slice(trace.op_args, "frame", operator)
    callee: int | None = None
    while frame is not None:
        known = names.parse_frame(_slice_name(trace, frame))
        if known is not None and is_frame_of_place(known, place):
            break
        callee = callee if is_decorator_frame(_slice_name(trace, frame)) else frame
        frame = _value_of_slice(trace.frame_args, "caller", frame)
    if frame is None or (callee is None and (operator is None or is_frame)):
        return
    if callee is None and operator is not None:
        runs = (
            _count_slices_with_name_of(trace, trace.op_args, "frame", frame, operator)
            // MAX_TENSOR_DIMENSIONS
        )
        yield names.python_syntax_of_operator(_slice_name(trace, operator)), runs
    if callee is None:
        return
    function = names.called_function(_slice_name(trace, callee))
    if function is not None:
        runs = _count_slices_with_name_of(trace, trace.frame_args, "caller", frame, callee)
        yield (None, frozenset({function})), runs


def is_frame_of_place(frame: names.Frame, place: Where) -> bool:
    """Returns whether a Python frame is of the function at `place`; paths may be relative."""
    file = place.file or ""
    same = file == frame.file or file.endswith(f"/{frame.file}") or frame.file.endswith(f"/{file}")
    return same and frame.function == place.function


def _count_slices_with_name_of(
    trace: Trace, table: pl.DataFrame, column: str, frame: int, named_like: int
) -> int:
    """Returns how many slices that `frame` ran have the same name as the slice `named_like`."""
    ids = table.filter(pl.col(column) == frame)["id"]
    return int((trace.slices["name"].gather(ids) == trace.slices["name"][named_like]).sum())


def _forward_host_slice_id(trace: Trace, event: int) -> int:
    """Returns the slice id of the forward operator behind a kernel or a backward operator.

    The slice itself if nothing launched it.
    """
    launched = _value_of_slice(trace.device_args, "operator", event)
    host = event if launched is None else launched
    forward = _value_of_slice(trace.op_args, "forward", host)
    return host if forward is None else forward


def _outermost_operator_id(trace: Trace, slice_id: int) -> int | None:
    """Returns the slice id of the outermost operator around a slice; None if there is none."""
    found, parent = None, trace.slices["parent"]
    here: int | None = slice_id
    while here is not None:
        if str(trace.slices["category"][here]) in names.OPERATOR_CATEGORIES:
            found = here
        here = parent[here]
    return found


def _slice_name(trace: Trace, slice_id: int) -> str:
    """Returns the name of the slice `slice_id`."""
    return str(trace.slices["name"][slice_id])


def _value_of_slice(table: pl.DataFrame, column: str, slice_id: int) -> int | None:
    """Returns `table[column]` in the row of the slice `slice_id`; None if there is no such row.

    The table is sorted by id.
    """
    ids = table["id"]
    place = ids.search_sorted(slice_id)
    if place >= ids.len() or ids[place] != slice_id:
        return None
    value: int | None = table[column][place]
    return value


def lines_that_call(scope: SyntaxScope, functions: frozenset[str]) -> list[int]:
    """Returns the lines of a function that call one of the functions by its name, ascending."""
    nodes = nodes_in_scope(scope)
    return sorted({n for node in nodes for n in _lines_running_operator(node, None, functions)})


def _candidate_lines(
    scope: SyntaxScope, call_syntax: _CallSyntax, run_count: int
) -> frozenset[int]:
    """Returns the lines of a function whose code can have run `call_syntax` `run_count` times.

    A node outside of loops runs at most once per frame: if more ran, a loop did.
    """
    repeated = ids_of_nodes_in_loops(scope)
    within: set[int] = set()
    once: list[int] = []
    for node in nodes_in_scope(scope):
        told = list(_lines_running_operator(node, *call_syntax))
        if id(node) in repeated:
            within.update(told)
        else:
            once.extend(told)
    if within and run_count > 2 * len(once):
        return frozenset(within)
    return frozenset({*within, *once})


def _lines_running_operator(
    node: ast.AST, syntax: str | None, functions: frozenset[str]
) -> Iterator[int]:
    """Yields the line of an AST node that has the given syntax or calls one of the functions."""
    if isinstance(node, ast.Call) and _called_name(node.func) in functions:
        yield node.func.end_lineno or node.lineno
    elif syntax is not None:
        yield from _lines_with_syntax(node, syntax)


def _called_name(node: ast.expr) -> str | None:
    """Returns the name of a called function or method; None for other expressions."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


def _lines_with_syntax(node: ast.AST, syntax: str) -> Iterator[int]:
    """Yields the line of an AST node if it has the Python syntax `syntax`, such as `+`."""
    match node:
        case ast.Subscript() if _can_subscript_run_indexing(node, syntax):
            yield node.lineno
        case ast.AugAssign(target=ast.Subscript()) if syntax in {"x[i]", "x[i] ="}:
            yield node.lineno
        case ast.BinOp() | ast.AugAssign() | ast.UnaryOp() if (
            _PYTHON_SYNTAX_BY_AST_OPERATOR.get(type(node.op)) == syntax
        ):
            yield node.lineno
        case ast.Compare() if syntax in {
            _PYTHON_SYNTAX_BY_AST_OPERATOR.get(type(op)) for op in node.ops
        }:
            yield node.lineno
        case (
            ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test)
        ):
            if syntax == "truth":
                yield test.lineno
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) if syntax == "truth":
            yield node.lineno


def _can_subscript_run_indexing(node: ast.Subscript, syntax: str) -> bool:
    """Returns whether a subscript node can be the indexing `syntax`, such as `x[i]` or `x[a:b]`."""
    if syntax == "x[a:b]":
        return True
    if isinstance(node.slice, ast.Slice):
        return False
    if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return syntax == "x[n]"
    reads = isinstance(node.ctx, ast.Load)
    return syntax == "x[n]" or (syntax == "x[i]" and reads) or (syntax == "x[i] =" and not reads)
