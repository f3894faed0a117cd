"""Gives the events of a detailed recording the times that they have in a recording of times alone.

Stacks and shapes slow the steps that they are recorded in. So the same program's steps are recorded
twice: in detail, and with nothing but the times of operators and device work. `TimeMapping` maps an
instant of the detailed recording to the other: the begins and ends of the same events onto each
other, and what lies between two of them, such as Python frames, in proportion.

What recording the times alone still costs is taken off, too, where the host alone works; see
`recorder_cost.py`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from selftime.array_types import Ints
from selftime.capture.trace_file.event_columns import HOST, EventColumns
from selftime.capture.trace_file.event_matching import match_steps
from selftime.capture.trace_file.recorder_cost import RecorderCost, recorder_cost


class Track(NamedTuple):
    """A host thread or a device's stream."""

    device: int
    """Number of the device; `HOST` for the host."""
    thread: int


@dataclass(frozen=True, slots=True)
class Collections:
    """Garbage collections in one thread: begins and ends, in ns, in order."""

    start_ns: Ints
    end_ns: Ints

    def time_before(self, instants: Ints) -> Ints:
        """Returns how much of the collections lies before each instant, in ns."""
        durations = self.end_ns - self.start_ns
        summed = np.concatenate([[0], np.cumsum(durations)])
        count = np.searchsorted(self.start_ns, instants, side="right")
        last = np.maximum(count - 1, 0)
        if not durations.size:
            return np.zeros(instants.size, np.int64)
        beyond = np.maximum(self.end_ns[last] - instants, 0) * (count > 0)
        return np.asarray(summed[count] - beyond, np.int64)

    def insert_time(self, working: Ints) -> Ints:
        """Returns instants, given their time without collections; ties come after one."""
        if not self.start_ns.size:
            return working
        durations = self.end_ns - self.start_ns
        summed = np.concatenate([[0], np.cumsum(durations)])
        at = self.start_ns - summed[:-1]
        return np.asarray(working + summed[np.searchsorted(at, working, side="right")], np.int64)


_NO_TIMES: Final = np.empty(0, np.int64)
NO_COLLECTIONS: Final = Collections(_NO_TIMES, _NO_TIMES)


@dataclass(frozen=True, slots=True)
class _Anchors:
    """Instants of one track in both recordings, ordered; between two of them lies one section."""

    detailed_ns: Ints
    timed_ns: Ints

    def map(self, instants: Ints, detailed: Collections, timed: Collections) -> Ints:
        """Maps instants between anchors in proportion to time, not counting garbage collections."""
        at = np.searchsorted(self.detailed_ns, instants, side="right") - 1
        inside = np.clip(at, 0, max(self.detailed_ns.size - 2, 0))
        after = np.minimum(inside + 1, self.detailed_ns.size - 1)
        working = instants - detailed.time_before(instants)
        from_ns, to_ns = (
            self.detailed_ns[place] - detailed.time_before(self.detailed_ns[place])
            for place in (inside, after)
        )
        new_from, new_to = (
            self.timed_ns[place] - timed.time_before(self.timed_ns[place])
            for place in (inside, after)
        )
        share = (working - from_ns) / np.maximum(to_ns - from_ns, 1)
        passed = np.rint(np.clip(share, 0.0, 1.0) * (new_to - new_from)).astype(np.int64)
        mapped = np.clip(
            timed.insert_time(new_from + passed), self.timed_ns[inside], self.timed_ns[after]
        )
        mapped = np.where(
            self.detailed_ns[np.maximum(at, 0)] == instants, self.timed_ns[at], mapped
        )
        before = instants - self.detailed_ns[0] + self.timed_ns[0]
        behind = instants - self.detailed_ns[-1] + self.timed_ns[-1]
        mapped = np.where(at < 0, before, mapped)
        return np.asarray(np.where(at >= self.detailed_ns.size - 1, behind, mapped), np.int64)


@dataclass(frozen=True, slots=True)
class TimeMapping:
    """Maps instants of a detailed recording to those of a recording of times alone, in ns."""

    anchors: dict[Track, _Anchors]
    steps: _Anchors
    """The begins and ends of steps, for tracks without the same events in both recordings."""
    collections: dict[int, tuple[Collections, Collections]] = field(default_factory=dict)
    """Maps a host thread to its garbage collections in the detailed and in the other recording."""
    recorded_durations_ns: list[int] = field(default_factory=list)
    """How long each step took while its times were recorded, in ns."""
    matched_share: float = 1.0
    """Share of the detailed recording's events in steps that the other recording has, too."""

    @property
    def step_durations_ns(self) -> list[int]:
        """Returns how long each mapped step takes, in ns."""
        durations: list[int] = np.diff(self.steps.timed_ns)[::2].tolist()
        return durations

    def map(self, track: Track | None, instants_ns: Ints) -> Ints:
        """Returns the instants in ns at which a track's instants lie in the other recording.

        Instants of no track, and of one without the same events, keep their place in the step.
        """
        anchors = self.steps if track is None else self.anchors.get(track, self.steps)
        detailed = timed = NO_COLLECTIONS
        if track is not None and track.device == HOST and track.thread in self.collections:
            detailed, timed = self.collections[track.thread]
        return anchors.map(instants_ns, detailed, timed)


def time_mapping(
    detailed: EventColumns,
    timed: EventColumns,
    step_pairs: Sequence[tuple[int, int]],
    *,
    unrecorded_step_ns: float | None = None,
    collections: dict[int, tuple[Collections, Collections]] | None = None,
) -> TimeMapping:
    """Returns the mapping from a detailed recording's times to those of a recording of times alone.

    Args:
        detailed: The events of the detailed recording.
        timed: Those of the recording of times alone.
        step_pairs: Numbers of the same step in the detailed and in the other recording, in order.
        unrecorded_step_ns: The lower quartile of the durations of steps that are not recorded, in
            ns; None if unknown. Where the host alone works, that of the mapped steps is the same.
        collections: The garbage collections of both recordings, by host thread.
    """
    pairs = list(step_pairs)
    matched = match_steps(detailed, timed, pairs)
    bounds = np.array(
        [[*detailed.step_spans_ns[one], *timed.step_spans_ns[other]] for one, other in pairs],
        np.int64,
    )
    cost = recorder_cost(timed, bounds[:, 2:], unrecorded_step_ns)
    start = cost.remove(timed.start_ns[matched.second], "right")
    end = cost.remove(timed.end_ns[matched.second], "left")
    old_edges, new_edges = bounds[:, :2].ravel(), cost.remove(bounds[:, 2:].ravel(), "left")
    found = {
        thread: (mine, _without_cost(other, cost))
        for thread, (mine, other) in (collections or {}).items()
    }
    anchors = {}
    device, thread = detailed.device[matched.first], detailed.thread[matched.first]
    for track in sorted(set(zip(device.tolist(), thread.tolist(), strict=True))):
        mine = (device == track[0]) & (thread == track[1])
        rows = matched.first[mine]
        edges = (old_edges, new_edges) if track[0] == HOST else (_NO_TIMES, _NO_TIMES)
        times = _ordered(
            np.concatenate([detailed.start_ns[rows], detailed.end_ns[rows], edges[0]]),
            np.concatenate([start[mine], end[mine], edges[1]]),
        )
        if track[0] == HOST and track[1] in found:
            times = _with_collections(times, *found[track[1]])
        anchors[Track(*track)] = times
    steps = _ordered(old_edges, new_edges)
    share = _share_in_steps(detailed, bounds, matched.first)
    durations = [end - start for start, end in (timed.step_spans_ns[other] for _, other in pairs)]
    return TimeMapping(anchors, steps, found, durations, share)


def _without_cost(collections: Collections, cost: RecorderCost) -> Collections:
    """Returns collections without the cost of recording since their step began."""
    start = cost.remove(collections.start_ns, "right")
    return Collections(start, cost.remove(collections.end_ns, "left"))


def _ordered(detailed_ns: Ints, timed_ns: Ints) -> _Anchors:
    """Returns anchors in order of time; where orders differ, none goes backwards."""
    order = np.lexsort((timed_ns, detailed_ns))
    return _Anchors(detailed_ns[order], np.maximum.accumulate(timed_ns[order]))


def _share_in_steps(detailed: EventColumns, bounds: Ints, matched: Ints) -> float:
    """Returns the share of the events that begin in the steps which are among the matched."""
    in_steps = sum(
        int(np.diff(np.searchsorted(detailed.start_ns, span))[0]) for span in bounds[:, :2]
    )
    return min(1.0, matched.size / in_steps) if in_steps else 1.0


def _with_collections(anchors: _Anchors, detailed: Collections, timed: Collections) -> _Anchors:
    """Returns anchors with the collections of which both recordings have as many in a section.

    So a collection that the program asks for stays within the call that asks for it.
    """
    sections = np.searchsorted(anchors.detailed_ns, detailed.start_ns, side="right").tolist()
    others = np.searchsorted(anchors.timed_ns, timed.start_ns, side="right").tolist()
    counts, other_counts = Counter(sections), Counter(others)
    same = {section for section, count in counts.items() if other_counts[section] == count}
    mine = np.array([section in same for section in sections], np.bool_)
    theirs = np.array([section in same for section in others], np.bool_)
    return _ordered(
        np.concatenate([anchors.detailed_ns, detailed.start_ns[mine], detailed.end_ns[mine]]),
        np.concatenate([anchors.timed_ns, timed.start_ns[theirs], timed.end_ns[theirs]]),
    )
