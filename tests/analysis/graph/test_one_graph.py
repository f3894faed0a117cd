"""Critical paths and the replay are read from one graph: what one says the other agrees with."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.analysis.graph.drawn import traces

from selftime.advice import RULES, advise
from selftime.advice.replay import (
    Change,
    CutHostTime,
    RemoveWaits,
    Replay,
    ScaleDeviceWork,
    replay_of,
)
from selftime.advice.replay.graph_simulation import recorded_costs, simulate
from selftime.advice.savings.calibration import ALL_RULES_KEY, measured_calibration_factors
from selftime.advice.savings.claims import RemovalClaim, SavingClaim, changes_of_claim
from selftime.advice.savings.rare_events import with_interval_of_rate
from selftime.advice.savings.saving import SavingAmount
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.graph.binding_edges import (
    dependency_edges_into_nodes,
    dependency_edges_into_step_ends,
)
from selftime.analysis.graph.building import critical_path_nodes, dependency_graph
from selftime.analysis.graph.critical_path import critical_path_segments
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_ALL_STREAMS,
    CODE_OF_SEGMENT_LINK,
    DependencyGraph,
)
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Ints
from selftime.intervals import intersect, length, union
from selftime.nesting import NO_SLICE
from selftime.testing import sketch_job
from selftime.trace import Trace

ROUNDED_MS: Final = 1e-3
"""By how much times of all nodes, each rounded to a nanosecond, may add up to more."""

Edge = tuple[str, int, str, int]
"""What is waited for, and what waits: a call or work, and which."""


def identical(trace: Trace) -> None:
    """The graph gives back every recorded time, and when each step was done."""
    graph = dependency_graph(trace)
    outcome = simulate(graph, recorded_costs(graph))
    assert outcome.call_end.tolist() == graph.calls.end.tolist()
    assert outcome.work_end.tolist() == graph.work.end.tolist()


def edges_of(graph: DependencyGraph) -> set[Edge]:
    """Every dependency between nodes that the replay obeys, but for the order on one thread."""
    calls, work = graph.calls, graph.work
    found: set[Edge] = set()
    latest: dict[int, int] = {}
    for k in range(calls.id.size):
        for j in range(int(calls.first_work[k]), int(calls.last_work[k])):
            found.add(("call", k, "work", j))
            stream = int(work.stream[j])
            if stream in latest:
                found.add(("work", latest[stream], "work", j))
            if stream not in latest or work.end[j] >= work.end[latest[stream]]:
                latest[stream] = j
        if calls.awaited_call[k] != NO_SLICE:
            found.add(("call", int(calls.awaited_call[k]), "call", k))
        if calls.awaited_work[k] != NO_SLICE:
            found.add(("work", int(calls.awaited_work[k]), "call", k))
        asked = int(calls.awaited_stream[k])
        of_streams = [asked] if asked >= 0 else latest if asked == CODE_OF_ALL_STREAMS else []
        found |= {("work", latest[s], "call", k) for s in of_streams if s in latest}
    waits = zip(
        graph.stream_waits.awaited_work.tolist(), graph.stream_waits.work.tolist(), strict=True
    )
    return found | {("work", needs, "work", waiting) for needs, waiting in waits}


def edges_of_paths(trace: Trace) -> set[Edge]:
    """Every dependency that a critical path may follow, but for the order on one thread."""
    graph = dependency_graph(trace)
    bindings = graph.last_dependencies
    found: set[Edge] = set()
    for j, (link, source) in enumerate(
        zip(bindings.link_code.tolist(), bindings.awaited_work.tolist(), strict=True)
    ):
        if link == CODE_OF_SEGMENT_LINK["launch"]:
            found.add(("call", int(bindings.call[j]), "work", j))
        elif source != NO_SLICE:
            found.add(("work", source, "work", j))
    held = np.flatnonzero(graph.calls.released_by != NO_SLICE)
    found |= {("work", int(graph.calls.released_by[k]), "call", int(k)) for k in held}
    met = np.flatnonzero(graph.calls.awaited_call != NO_SLICE)
    return found | {("call", int(graph.calls.awaited_call[k]), "call", int(k)) for k in met}


def none_is_later(trace: Trace) -> None:
    """What paths follow was over as late as all that the replay obeys, as far as that was before.

    Drawings may have work that begins before what it comes after on its stream.
    """
    graph, edges = dependency_graph(trace), dependency_edges_into_nodes(trace)
    calls, work, bindings = graph.calls, graph.work, graph.last_dependencies
    for kind, source, target, at in edges_of(graph):
        if (kind, target) == ("call", "work"):
            launched = min(int(calls.start[source]), int(work.start[at]))
            assert bindings.call[at] == NO_SLICE or launched <= edges.cause[at]
        elif (kind, target) == ("work", "work") and work.start[source] <= work.start[at]:
            assert min(work.end[source], work.start[at]) <= edges.cause[at]
        elif (kind, target) == ("work", "call") and (
            calls.start[at] < work.end[source] <= calls.end[at]
        ):
            by = calls.released_by[at]
            assert by != NO_SLICE or work.start[source] >= calls.end[at]
            assert by == NO_SLICE or work.end[by] >= work.end[source]


def chain(trace: Trace) -> list[int]:
    """The nodes of the path from the end of the last step back to the begin of the recording."""
    steps = steps_with_counted_flags(trace)
    if not steps.height:
        return []
    first = dependency_edges_into_step_ends(
        trace, steps["end"].to_numpy(), steps["done"].to_numpy()
    )
    following = dependency_edges_into_nodes(trace).previous_node
    at, found = int(first.previous_node[-1]), []
    while at != NO_SLICE:
        found.append(at)
        at = int(following[at])
    return found


def work_on(trace: Trace) -> np.ndarray:
    """The device work of that path."""
    on = np.array(chain(trace), np.int64)
    return on[on < dependency_graph(trace).work.id.size]


def off_the_path_nothing_is_saved(trace: Trace) -> None:
    """All that the path does not pass through at half its time: the program takes as long."""
    graph, replay = dependency_graph(trace), replay_of(trace)
    off = np.setdiff1d(np.arange(graph.work.id.size), work_on(trace))
    assert replay.program_time(ScaleDeviceWork(graph.work.id[off], 0.5)) == replay.program_time()


def on_the_path_all_is_lost(trace: Trace) -> None:
    """Work that the path passes through takes longer: the program takes as much longer at least."""
    graph, replay = dependency_graph(trace), replay_of(trace)
    on = work_on(trace)
    nodes, edges = critical_path_nodes(trace), dependency_edges_into_nodes(trace)
    entered = dict(
        zip(edges.previous_node.tolist(), edges.previous_node_reached_at.tolist(), strict=True)
    )
    inside = on[nodes.start[on] >= graph.begin].tolist()  # before that the recording began
    whole = [at for at in inside if entered.get(at, nodes.end[at]) == nodes.end[at]]
    for at in whole[:: max(len(whole) // 10, 1)]:
        longer = int(nodes.end[at] - nodes.start[at])
        took = replay.program_time(ScaleDeviceWork(graph.work.id[[at]], 2.0))
        assert took >= replay.program_time() + longer, at


@given(traces())
def test_the_graph_gives_back_any_drawing(trace: Trace) -> None:
    identical(trace)


@given(traces())
def test_paths_follow_no_dependency_that_the_replay_does_not_obey(trace: Trace) -> None:
    assert edges_of_paths(trace) <= edges_of(dependency_graph(trace))


@given(traces())
def test_paths_follow_what_was_over_last_of_all_that_the_replay_obeys(trace: Trace) -> None:
    none_is_later(trace)


@pytest.mark.traces
def test_the_replay_runs_the_graph_that_paths_are_read_from(real: Callable[[str], Trace]) -> None:
    trace = real("mi300-2025-resnet-ddp-recompute")
    assert replay_of(trace).graph is dependency_graph(trace)


@pytest.mark.traces
def test_every_real_trace(real_names: list[str], real: Callable[[str], Trace]) -> None:
    for name in real_names:
        trace = real(name)
        identical(trace)
        assert edges_of_paths(trace) <= edges_of(dependency_graph(trace)), name
        none_is_later(trace)
        off_the_path_nothing_is_saved(trace)
        on_the_path_all_is_lost(trace)


@pytest.mark.traces
def test_paths_add_up_to_the_nanosecond(
    real_names: list[str], real: Callable[[str], Trace]
) -> None:
    for name in real_names:
        steps, path = steps_with_counted_flags(real(name)), critical_path_segments(real(name))
        length_ = (pl.col("end") - pl.col("start")).sum().alias("time")
        found = dict(path.group_by("step").agg(length_).iter_rows())
        done = (steps["done"] - steps["begin"]).to_list()
        expected = {s: t for s, t in zip(steps["number"].to_list(), done, strict=True) if t}
        assert found == expected, name


@dataclass(frozen=True, slots=True)
class Bounded:
    """A finding's own numbers and the most that they may be, in ms per step."""

    rule: str
    waits: bool
    """Whether its fix removes waits."""
    replayed: float
    removed: float
    """The time that the changes take away: what the replay saves with them is no more."""
    estimate: float
    of_estimate: float
    high: float
    of_high: float


def bounded(trace: Trace) -> Iterator[Bounded]:
    """For each finding that says what it changes: what it saves, and what that is at most.

    Waits hide each other: once the others are gone, one lasts as long as they did, and a finding
    has its share of that. So it saves no more than all waits of the program take, and no more than
    devices are idle. The high end is that of the largest changes; without a device, whose idle time
    bounds it, a fix may remove more than what was counted, by as much as was measured.
    """
    replay, stats = replay_of(trace), step_statistics(trace)
    factors = measured_calibration_factors().get(ALL_RULES_KEY)
    on_host = factors.high if factors is not None else 1.0
    for finding in advise(trace).findings:
        claim, changes, saving = finding.claim, finding.changes, finding.saving
        if stats is None or claim is None or not changes or saving.estimate_ms is None:
            continue
        assert saving.high_ms is not None
        every = wait_time(replay, replay.graph.calls.wait_slice)
        scale = 1 / 1e6 if getattr(claim, "step", None) else stats.scaled_to_typical_step(1 / 1e6)
        whole = [change_at_best(change) for change in largest_changes(claim)]
        most = removed(replay, *whole, waits=every) * scale
        one = SavingAmount(math.inf, 1.0, 1.0, 1.0, 1.0, "replay")
        rate = with_interval_of_rate(trace, claim, one).high_ms  # of a cause in few steps
        idle = math.inf
        if replay.graph.work.id.size and not any(isinstance(c, ScaleDeviceWork) for c in whole):
            idle = length(replay.idle) / max(len(replay.counted), 1) * scale
        yield Bounded(
            finding.rule,
            any(isinstance(change, RemoveWaits) for change in changes),
            replay.saving(*changes) / 1e6,
            removed(replay, *changes) / 1e6,
            saving.estimate_ms,
            min(removed(replay, *changes, waits=every) * scale, idle),
            saving.high_ms,
            min(most, idle) if replay.graph.work.id.size else most * on_host * rate,
        )


def largest_changes(claim: SavingClaim) -> tuple[Change, ...]:
    most = claim.largest_changes if isinstance(claim, RemovalClaim) else ()
    return most or changes_of_claim(claim)


def change_at_best(change: Change) -> Change:
    """The change, which takes away all that it concerns."""
    return change if isinstance(change, RemoveWaits) else replace(change, kept_share=0.0)


def wait_time(replay: Replay, calls: Ints) -> float:
    """How long these calls waited, in ns: of a call the time that is not its own."""
    waiting = replay.graph.calls
    freed = np.isin(waiting.wait_slice, calls) & (waiting.wait_slice != NO_SLICE)
    waited = waiting.end - waiting.start - waiting.own_time
    return float(np.maximum(waited, 0)[freed].sum())


def removed(replay: Replay, *changes: Change, waits: float | None = None) -> float:
    """The host time, waits and device time that changes take away, for each step that counts.

    A chain of dependencies is shorter by no more than what is taken away on it. With `waits` the
    time of the waits is that, in ns, whichever calls the changes free.
    """
    work, total = replay.graph.work, 0.0
    ends = replay.graph.calls.end
    for change in changes:
        if isinstance(change, CutHostTime):
            inside = intersect(change.intervals, union([replay.graph.begin], [int(ends.max())]))
            total += (1 - change.kept_share) * length(inside)
        elif isinstance(change, ScaleDeviceWork):
            keep = np.broadcast_to(np.asarray(change.kept_share, float), change.work.shape)
            place = {int(number): at for at, number in enumerate(work.id)}
            at = [place.get(int(number), NO_SLICE) for number in change.work]
            took = np.append(work.end - work.start, 0)[at]
            total += float((took * (1 - keep)).sum())
        elif waits is None:
            total += wait_time(replay, change.calls)
    if waits is not None and any(isinstance(change, RemoveWaits) for change in changes):
        total += waits
    return total / max(len(replay.counted), 1)


def saves_at_most_what_it_removes(trace: Trace) -> tuple[int, int]:
    """How many findings were asked, and how many of them remove waits."""
    found = list(bounded(trace))
    for one in found:
        assert one.replayed <= one.removed + ROUNDED_MS, one
        assert one.estimate <= one.of_estimate + ROUNDED_MS, one
        assert one.high <= one.of_high + ROUNDED_MS, one
    return len(found), sum(one.waits for one in found)


@pytest.mark.sweep
@pytest.mark.traces
def test_no_finding_saves_more_than_the_time_that_it_removes(
    real_names: list[str], real: Callable[[str], Trace]
) -> None:
    asked = np.array([saves_at_most_what_it_removes(real(name)) for name in real_names])
    every, of_waits = asked.sum(axis=0)
    assert every >= 12
    assert of_waits >= 5


@pytest.mark.sweep(10)
@pytest.mark.parametrize("rule", list(RULES))
def test_no_finding_of_a_rules_page_saves_more_than_it_removes(rule: str) -> None:
    for drawing in RULES[rule].drawings("Fires on"):
        drawn = sketch_job(drawing)
        for trace in [drawn] if isinstance(drawn, Trace) else drawn:
            saves_at_most_what_it_removes(trace)


@pytest.mark.sweep
def test_many_findings_of_the_rules_pages_are_asked() -> None:
    drawings = [one for rule in RULES.values() for one in rule.drawings("Fires on")]
    jobs = [sketch_job(drawing) for drawing in drawings]
    traces = [trace for one in jobs for trace in ([one] if isinstance(one, Trace) else one)]
    asked = np.array([saves_at_most_what_it_removes(trace) for trace in traces])
    every, of_waits = asked.sum(axis=0)
    assert every >= 60
    assert of_waits >= 5
