"""Finds the line or loop of a function in which most of its time in Python passes.

A run's ledger has samples of the stack in steps without recording, with their lines. Where it has
few of a function, the recording tells: it has the calls of the function, by name and in order of
time, and no lines of them. The source has the lines of these calls. Time between two calls passes
on their line, or somewhere in the innermost loop around both.
"""

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.lines.line_from_source import syntax_scope_of_place
from selftime.advice.lines.source_syntax import SyntaxScope, nodes_in_scope
from selftime.advice.rule_definition import Where
from selftime.analysis.run.sampled_lines import samples_by_line_of_function
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MIN_TIME_SHARE_OF_SLOWEST_CODE: Final = 0.5
"""Smallest share of a function's time in a line or loop for it to be named."""

MIN_LOOP_ROUNDS: Final = 8
"""Smallest number of calls of one function, by one call of another, that are the rounds of a loop.
"""

MIN_SAMPLES_OF_FUNCTION: Final = 10
"""Smallest number of samples of a function for its lines to be told by them."""

_Chain: TypeAlias = tuple[int, ...]
"""Lines of a function, from the outermost loop to a line within the innermost one."""

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class SlowestCode:
    """The part of a function in which most of its time passes."""

    where: Where
    is_loop: bool
    """Whether it is a loop of many rounds, or part of one."""


def slowest_code_of_function(
    trace: Trace, segments: pl.DataFrame, place: Where, *, steps: int
) -> SlowestCode:
    """Returns the innermost line or loop with most of a function's time; else its first line.

    Args:
        trace: The trace.
        segments: The function's time in order: start and end in ns; frame, the innermost frame;
            owner, the function's frame around it.
        place: Where the function is defined.
        steps: The number of steps that the segments are of.
    """
    scope = syntax_scope_of_place(trace, place)
    rounds = _most_calls_of_a_name(trace, segments)
    if segments["owner"].n_unique() == 1:  # the steps are within one call of the function
        rounds /= steps
    is_often = rounds >= MIN_LOOP_ROUNDS
    if scope is None:
        return SlowestCode(place, is_loop=is_often)
    if isinstance(scope, _COMPREHENSIONS):
        return SlowestCode(place, is_loop=True)
    chains = _loops_around_calls(scope)
    loops = {loop for several in chains.values() for chain in several for loop in chain[:-1]}
    found: _Chain = ()
    if _is_most_of_function(trace, segments):  # samples do not tell operators from Python
        found = _longest_chain_with_most_samples(trace, place, scope)
        loops |= {line for line, _ in _loops_of_scope(scope)}
        is_often = is_often or (bool(found) and not rounds)
    found = found or _longest_chain_with_most_time(trace, segments, chains)
    if not found and not rounds:
        found = _only_outermost_loop(scope)
        is_often, loops = bool(found), set(found)
    if not found:
        return SlowestCode(place, is_loop=False)
    where = Where(place.file, found[-1], place.function, "static")
    return SlowestCode(where, is_loop=is_often and not loops.isdisjoint(found))


def _is_most_of_function(trace: Trace, segments: pl.DataFrame) -> bool:
    """Returns whether the segments are most of the time of the function's frames."""
    owners = segments["owner"].unique().cast(pl.UInt32)
    whole = int(trace.slices["duration"].gather(owners).sum())
    return 2 * int((segments["end"] - segments["start"]).sum()) > whole


def _longest_chain_with_most_samples(trace: Trace, place: Where, scope: SyntaxScope) -> _Chain:
    """Returns the longest chain of loops with most of the samples; else the line with most.

    A loop stands for its lines: Python gives up its lock for a sample at calls and ends of rounds
    only. It is empty if there are too few samples of the function.
    """
    samples = samples_by_line_of_function(trace.run, place.file, place.function)
    whole = sum(samples.values())
    if whole < MIN_SAMPLES_OF_FUNCTION:
        return ()
    loops = _loops_of_scope(scope)
    seen: dict[_Chain, int] = defaultdict(int)
    for line, count in samples.items():
        chain = tuple(first for first, last in loops if first <= line <= last) or (line,)
        for depth in range(1, len(chain) + 1):
            seen[chain[:depth]] += count
    return _longest_chain_with(seen, MIN_TIME_SHARE_OF_SLOWEST_CODE * whole)


def _loops_of_scope(scope: SyntaxScope) -> list[tuple[int, int]]:
    """Returns (first line, last line) of each loop of a function, outer ones first."""
    return sorted(
        (node.lineno, node.end_lineno or node.lineno)
        for node in nodes_in_scope(scope)
        if isinstance(node, (*_LOOPS, *_COMPREHENSIONS))
    )


def _longest_chain_with(spent: Mapping[_Chain, int], least: float) -> _Chain:
    """Returns the longest chain with at least so much; () if there is none."""
    return max((chain for chain, amount in spent.items() if amount >= least), key=len, default=())


def _longest_chain_with_most_time(
    trace: Trace, segments: pl.DataFrame, chains: dict[str, set[_Chain]]
) -> _Chain:
    """Returns the longest chain of lines, each within the loop before, with most of the time."""
    spent: dict[_Chain, int] = defaultdict(int)
    for (before, after), time in _time_between_calls(trace, segments).items():
        chain = _chain_around_both(chains.get(before), chains.get(after))
        for depth in range(1, len(chain) + 1):
            spent[chain[:depth]] += time
    whole = int((segments["end"] - segments["start"]).sum())
    return _longest_chain_with(spent, MIN_TIME_SHARE_OF_SLOWEST_CODE * whole)


def _only_outermost_loop(scope: SyntaxScope) -> _Chain:
    """Returns the line of the only loop of a function that is in no other loop; else ()."""
    nodes = nodes_in_scope(scope)
    loops = [node for node in nodes if isinstance(node, (*_LOOPS, *_COMPREHENSIONS))]
    inner = {id(node) for loop in loops for node in ast.walk(loop) if node is not loop}
    outer = [loop for loop in loops if id(loop) not in inner]
    return (outer[0].lineno,) if len(outer) == 1 else ()


def _loops_around_calls(scope: SyntaxScope) -> dict[str, set[_Chain]]:
    """Returns for each called name the lines of the loops around each of its calls.

    They begin with the outermost loop, and end with the call's own line.
    """
    around: dict[int, _Chain] = {}
    found: dict[str, set[_Chain]] = defaultdict(set)
    for node in nodes_in_scope(scope):  # each after the nodes around it
        chain = around.get(id(node), ())
        inner = (*chain, node.lineno) if isinstance(node, (*_LOOPS, *_COMPREHENSIONS)) else chain
        for child in ast.iter_child_nodes(node):
            around[id(child)] = inner
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                found[name].add((*chain, node.func.end_lineno or node.lineno))
            case _:
                pass
    return found


def _chain_around_both(before: set[_Chain] | None, after: set[_Chain] | None) -> _Chain:
    """Returns the lines around two successive calls, each of which may be in several places.

    Two calls in a row are mostly next to each other: the longest chain that two places share. If
    the source has no call of one name, it is all places of the other that must share it.
    """
    if before is None or after is None or before == after:
        return _shared_by_all(before or after or set())
    return max((_shared(one, other) for one in before for other in after), key=len, default=())


def _shared_by_all(chains: set[_Chain]) -> _Chain:
    """Returns the beginning that all chains share."""
    every = sorted(chains)
    return _shared(every[0], every[-1]) if every else ()


def _shared(first: _Chain, second: _Chain) -> _Chain:
    """Returns the beginning that two chains of lines share."""
    pairs = enumerate(zip(first, second, strict=False))
    differs = next((at for at, (one, other) in pairs if one != other), None)
    return first[: min(len(first), len(second)) if differs is None else differs]


def _time_between_calls(trace: Trace, segments: pl.DataFrame) -> dict[tuple[str, str], int]:
    """Returns the time in ns by the names of the calls before and after it; "" if there is none.

    Both are the same for time within a call.
    """
    call = pl.Series("call", _calls_of_owner(trace, segments))
    table = segments.select("owner", time=pl.col("end") - pl.col("start")).with_columns(
        call=_called_names(trace, call),
        frame=(pl.col("owner") != pl.col("owner").shift()).fill_null(value=True).cum_sum(),
    )
    sums = (
        table.with_columns(
            before=pl.col("call").forward_fill().over("frame"),
            after=pl.col("call").backward_fill().over("frame"),
        )
        .group_by("before", "after", maintain_order=True)
        .agg(pl.col("time").sum())
    )
    return {(before or "", after or ""): time for before, after, time in sums.iter_rows()}


def _calls_of_owner(trace: Trace, segments: pl.DataFrame) -> Ints:
    """Returns for each segment the frame that its owner called and that it is in; -1 for none."""
    caller = caller_of_every_frame(trace)
    frame, owner = segments["frame"].to_numpy(), segments["owner"].to_numpy()
    owns = np.zeros(caller.size + 1, np.bool_)
    owns[owner] = True
    owns[NO_SLICE] = False
    return np.where(frame == owner, NO_SLICE, nearest_ancestor(caller, owns[caller], frame))


def _called_names(trace: Trace, frame_ids: pl.Series) -> pl.Series:
    """Returns the name of the function that each frame runs; null for the id -1."""
    ids = frame_ids.set(frame_ids == NO_SLICE, None).cast(pl.UInt32)
    texts = trace.slices["name"].gather(ids).cast(pl.String)
    known = {text: names.called_function(text) for text in texts.drop_nulls().unique()}
    return texts.replace_strict(known, default=None, return_dtype=pl.String)


def _most_calls_of_a_name(trace: Trace, segments: pl.DataFrame) -> float:
    """Returns how many calls of one name a frame of the function made at most."""
    table = segments.select("owner", call=_calls_of_owner(trace, segments))
    table = table.filter(pl.col("call") != NO_SLICE).unique()
    if not table.height:
        return 0.0
    named = table.with_columns(name=_called_names(trace, table["call"]))
    return float(named.group_by("owner", "name").len()["len"].max())  # type: ignore[arg-type]  # rows
