"""Tells from the source of a loop whether a round needs what an earlier one computed by a call."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from selftime.advice.lines.source_syntax import SyntaxScope, nodes_in_scope

Loop: TypeAlias = ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
"""A loop or comprehension in source code."""

_LOOPS: Final = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_JUMPS: Final = (ast.Break, ast.Return, ast.Raise)


@dataclass(frozen=True, slots=True)
class CallInLoop:
    """A call in the source that a loop runs in each round."""

    line: int
    loop: Loop
    """The innermost loop around the call."""
    call: ast.Call


def calls_in_loops(scope: SyntaxScope) -> Iterator[tuple[str, CallInLoop]]:
    """Yields (called name, call) of each call within a loop of a function, by its innermost loop.

    A comprehension that is a scope of its own is a loop around all of its calls.
    """
    around: dict[int, Loop] = {}
    for node in nodes_in_scope(scope):  # each after the nodes around it
        inner = node if isinstance(node, _LOOPS) else around.get(id(node))
        inner = scope if inner is None and isinstance(scope, _LOOPS) else inner
        for child in ast.iter_child_nodes(node):
            if inner is not None and not _runs_once(inner, child):
                around[id(child)] = inner
        within = around.get(id(node)) or (scope if isinstance(scope, _LOOPS) else None)
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if within is not None:
                yield name, CallInLoop(node.func.end_lineno or node.lineno, within, node)
            case _:
                pass


def outermost_loops(scope: SyntaxScope) -> list[Loop]:
    """Returns the loops of a function that lie in no other loop of it."""
    nested: set[int] = set()
    found: list[Loop] = []
    for node in nodes_in_scope(scope):  # each after the nodes around it
        if isinstance(node, _LOOPS) and id(node) not in nested:
            found.append(node)
        if isinstance(node, _LOOPS) or id(node) in nested:
            nested.update(id(child) for child in ast.iter_child_nodes(node))
    return found


def _runs_once(loop: Loop, part: ast.AST) -> bool:
    """Returns whether a part of a loop statement runs once and not in each round."""
    if isinstance(loop, ast.For):
        return part is loop.iter or part in loop.orelse
    return isinstance(loop, ast.While) and part in loop.orelse


def does_round_need_earlier_one(found: CallInLoop) -> bool:
    """Returns whether the call takes, or the loop goes on by, what the call gave in another round.

    What is assigned or changed from the result of the call counts as of its result, whatever path
    the program takes through the loop; a call with an argument of it may change the object that it
    is called on. What the called function keeps for itself is told by
    `attributes_kept_between_calls`.
    """
    loop = found.loop
    if not isinstance(loop, ast.For | ast.While):
        return False  # the parts of a comprehension assign nothing
    of_result = _names_from_result(loop, found.call)
    sources = _names_in(*found.call.args, *(by.value for by in found.call.keywords))
    sources |= _own_object(found.call)
    if isinstance(loop, ast.While):
        sources |= _names_in(loop.test)
    for test in _tests_of_jumps(loop):
        if found.call in ast.walk(test):
            return True
        sources |= _names_in(test)
    return any(_overlap(one, other) for one in _with_origins(loop, sources) for other in of_result)


def attributes_kept_between_calls(scopes: Iterable[SyntaxScope]) -> list[str]:
    """Returns the attributes that some methods, called in each round, both set and read.

    Such as `h`, where `forward` has `self.h = self.cell(x, self.h)`: a round may need what the one
    before left there.
    """
    stored: set[str] = set()
    read: set[str] = set()
    for scope in scopes:
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or not scope.args.args:
            continue
        own = scope.args.args[0].arg
        for node in nodes_in_scope(scope):
            match node:
                case ast.AugAssign(target=ast.Attribute(value=ast.Name(id=name), attr=attribute)):
                    told = {attribute} if name == own else set()
                    stored |= told
                    read |= told
                case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ctx):
                    if name == own:
                        (read if isinstance(ctx, ast.Load) else stored).add(attribute)
                case _:
                    pass
    return sorted(stored & read)


def _names_from_result(loop: ast.For | ast.While, call: ast.Call) -> set[str]:
    """Returns the names, such as `h` or `self.h`, that get or keep something of the result."""
    known: set[str] = set()
    while True:
        before = len(known)
        for node in _walk(loop.body):
            known.update(_names_that_node_gives(node, call, known))
        if len(known) == before:
            return known


def _names_that_node_gives(node: ast.AST, call: ast.Call, known: set[str]) -> set[str]:
    """Returns the names that a statement or call gives something of what is known, if any."""

    def is_of_result(*parts: ast.AST | None) -> bool:
        told = [part for part in parts if part is not None]
        return any(one is call for part in told for one in ast.walk(part)) or any(
            _overlap(name, other) for name in _names_in(*told) for other in known
        )

    match node:
        case ast.If(test=test) | ast.While(test=test) if is_of_result(test):
            # which of the values they get depends on the result
            return {name for one in ast.walk(node) for name in _assigned(one)}
        case ast.Call(func=ast.Attribute(value=owner), args=args, keywords=keywords):
            given = node is not call and is_of_result(*args, *(by.value for by in keywords))
            return _targets(owner) if given else set()
    return _assigned(node) if is_of_result(_value_assigned(node)) else set()


def _value_assigned(node: ast.AST) -> ast.expr | None:
    """Returns the expression that a statement assigns or goes through; None if it does not."""
    match node:
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.NamedExpr(value=value):
            return value
        case ast.AnnAssign(value=value) | ast.For(iter=value):
            return value
    return None


def _assigned(node: ast.AST) -> set[str]:
    """Returns the names that a statement or loop assigns."""
    match node:
        case ast.Assign(targets=targets):
            return _targets(*targets)
        case (
            ast.AugAssign(target=target)
            | ast.AnnAssign(target=target)
            | ast.NamedExpr(target=target)
            | ast.For(target=target)
        ):
            return _targets(target)
    return set()


def _with_origins(loop: ast.For | ast.While, names_: set[str]) -> set[str]:
    """Returns the names, and those from which the loop computes them in a round."""
    known = set(names_)
    while True:
        before = len(known)
        for node in _walk(loop.body):
            value = _value_assigned(node)
            if value and any(_overlap(a, b) for a in _assigned(node) for b in known):
                known |= _names_in(value)
        if len(known) == before:
            return known


def _tests_of_jumps(loop: ast.For | ast.While) -> Iterator[ast.expr]:
    """Yields the conditions under which the loop ends early."""
    for node in _walk(loop.body):
        if isinstance(node, ast.If) and any(isinstance(n, _JUMPS) for n in ast.walk(node)):
            yield node.test


def _own_object(call: ast.Call) -> set[str]:
    """Returns the name of the object whose method is called: `env` of `env.step(action)`.

    Of a call such as `self.model(x)` there is none: it is a module that the object holds.
    """
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None or (isinstance(owner, ast.Name) and owner.id == "self"):
        return set()
    return _names_in(owner)


def _walk(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)


def _targets(*nodes: ast.AST) -> set[str]:
    """Returns the names that are assigned to; of `x[i]` it is `x`."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                found |= _targets(*parts)
            case ast.Starred(value=value) | ast.Subscript(value=value):
                found |= _targets(value)
            case ast.Name() | ast.Attribute():
                found |= _dotted(node)
    return found


def _names_in(*nodes: ast.AST) -> set[str]:
    """Returns the names that expressions read, with their attributes: `x`, `self.h`."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        dotted = _dotted(node) if isinstance(node, ast.Name | ast.Attribute) else set()
        found |= dotted
        if not dotted:
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _dotted(node: ast.AST) -> set[str]:
    """Returns {`a.b.c`} of an expression of that kind; an empty set of any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return set()
    return {".".join([node.id, *reversed(parts)])}


def _overlap(one: str, other: str) -> bool:
    """Returns whether two dotted names are the same, or one is an attribute of the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
