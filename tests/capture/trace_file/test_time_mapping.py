"""Events of a detailed recording get the times that they have in a recording of times alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.array_types import Ints
from selftime.capture.trace_file.event_columns import HOST, EventColumns
from selftime.capture.trace_file.recorder_cost import MAX_COST_NS
from selftime.capture.trace_file.time_mapping import Collections, Track, time_mapping

MAIN = Track(HOST, 7)
Row = tuple[str, int, int]
"""Name, start and end of an event."""


def host_events(
    *rows: Row, steps: dict[int, tuple[int, int]], thread: int = MAIN.thread
) -> EventColumns:
    return events([(name, HOST, thread, start, end, 0) for name, start, end in rows], steps=steps)


def events(
    rows: list[tuple[str, int, int, int, int, int]], *, steps: dict[int, tuple[int, int]]
) -> EventColumns:
    """Events of (name, device, thread, start, end, correlation)."""
    ordered = sorted(rows, key=lambda row: (row[3], -row[4]))
    numbers = np.array([row[1:] for row in ordered], np.int64).reshape(-1, 5)
    device, thread, start, end, correlation = numbers.T
    return EventColumns(
        [row[0] for row in ordered], device, thread, start, end, correlation, steps, {}
    )


def instants(*values: int) -> Ints:
    return np.array(values, np.int64)


DETAILED = host_events(
    ("aten::mm", 110, 150), ("aten::add", 170, 190), steps={1: (100, 200), 2: (210, 300)}
)
TIMED = host_events(
    ("aten::mm", 1004, 1024), ("aten::add", 1030, 1040), steps={4: (1000, 1050), 5: (1052, 1100)}
)


def test_the_same_events_have_the_other_recordings_times() -> None:
    found = time_mapping(DETAILED, TIMED, [(1, 4), (2, 5)])
    assert found.map(MAIN, instants(110, 150, 170, 190)).tolist() == [1004, 1024, 1030, 1040]
    assert found.map(MAIN, instants(100, 200, 210, 300)).tolist() == [1000, 1050, 1052, 1100]
    assert found.matched_share == 1.0
    assert found.step_durations_ns == [50, 48]


def test_what_lies_between_them_keeps_its_proportion() -> None:
    found = time_mapping(DETAILED, TIMED, [(1, 4), (2, 5)])
    assert found.map(MAIN, instants(130, 160)).tolist() == [1014, 1027]


def test_what_lies_before_and_after_all_steps_is_moved() -> None:
    found = time_mapping(DETAILED, TIMED, [(1, 4), (2, 5)])
    assert found.map(MAIN, instants(40, 330)).tolist() == [940, 1130]


def test_a_thread_without_the_same_events_keeps_its_place_in_the_step() -> None:
    found = time_mapping(DETAILED, TIMED, [(1, 4), (2, 5)])
    for track in (Track(HOST, 8), Track(0, 7), None):
        assert found.map(track, instants(150)).tolist() == [1025]


def test_events_of_one_recording_alone_lie_between_the_same_ones() -> None:
    other = host_events(
        ("aten::mm", 1004, 1024), ("aten::sub", 1026, 1028), ("aten::add", 1030, 1040),
        steps=TIMED.step_spans_ns,
    )  # fmt: skip
    found = time_mapping(other, DETAILED, [(4, 1), (5, 2)])
    assert found.map(MAIN, instants(1024, 1027, 1030)).tolist() == [150, 160, 170]
    assert found.matched_share == pytest.approx(2 / 3)


def test_a_garbage_collection_is_where_the_other_recording_has_it() -> None:
    before = Collections(instants(155), instants(165))
    after = Collections(instants(1010), instants(1020))
    found = time_mapping(
        DETAILED, TIMED, [(1, 4), (2, 5)], collections={MAIN.thread: (before, after)}
    )
    # Within `mm`, 10 of 20 ns are the collection: its 40 ns have 10 in the other recording.
    assert found.map(MAIN, instants(110, 118, 150)).tolist() == [1004, 1006, 1024]
    assert found.map(MAIN, instants(146)).tolist() == [1023]
    # Between `mm` and `add` there is none any more: 10 ns of the program's own are 6.
    assert found.map(MAIN, instants(155, 165)).tolist() == [1027, 1027]


def test_a_collection_that_comes_again_stays_within_the_call_that_asks_for_it() -> None:
    before = Collections(instants(155), instants(165))
    after = Collections(instants(1025), instants(1029))
    found = time_mapping(
        DETAILED, TIMED, [(1, 4), (2, 5)], collections={MAIN.thread: (before, after)}
    )
    call = found.map(MAIN, instants(154, 155, 165, 166)).tolist()
    assert call == [1025, 1025, 1029, 1029]


def test_what_recording_costs_is_taken_off_collections_too() -> None:
    timed = host_events(("aten::mm", 10, 20), ("aten::add", 60, 70), steps={1: (0, 100)})
    collected = Collections(instants(30), instants(50))
    found = time_mapping(
        timed, timed, [(1, 1)], unrecorded_step_ns=92, collections={MAIN.thread: (collected,) * 2}
    )
    # Two ns each for the begin and the end of `mm` come before it.
    [timed_now] = [other for _, other in found.collections.values()]
    assert (timed_now.start_ns.tolist(), timed_now.end_ns.tolist()) == ([26], [46])
    assert found.map(MAIN, instants(20, 30, 50, 60)).tolist() == [18, 26, 46, 54]


def test_collectives_keep_their_order_whatever_thread_of_the_group_runs_them() -> None:
    def recording(*threads: int, at: int) -> EventColumns:
        rows = []
        for place, thread in enumerate(threads):
            start = at + 10 * place
            rows.append(("c10d::allreduce_", HOST, MAIN.thread, start, start + 2, 0))
            rows.append(("gloo:all_reduce", HOST, thread, start + 3, start + 9, 0))
            rows.append(("aten::div_", HOST, thread, start + 4, start + 5, 0))
        return events(rows, steps={1: (at, at + 10 * len(threads))})

    found = time_mapping(recording(8, 9, 8, at=100), recording(9, 9, 8, at=1000), [(1, 1)])
    assert found.map(Track(HOST, 8), instants(103, 109, 123, 124, 125, 129)).tolist() == [
        *(1003, 1009, 1023, 1024, 1025, 1029)
    ]
    assert found.map(Track(HOST, 9), instants(113, 119)).tolist() == [1013, 1019]
    assert found.matched_share == 1.0


def test_messages_on_the_thread_that_calls_for_them_stay_in_its_order() -> None:
    def recording(at: int, reduced_at: int) -> EventColumns:
        rows = [("gloo:all_reduce", HOST, 8, at + reduced_at, at + reduced_at + 4, 0)]
        for name, start in (
            ("c10d::send", 2),
            ("gloo:send", 4),
            ("aten::mm", 12),
            ("aten::add", 22),
        ):
            rows.append((name, HOST, MAIN.thread, at + start, at + start + 6, 0))
        return events(rows, steps={1: (at, at + 40)})

    found = time_mapping(recording(100, 15), recording(1000, 1), [(1, 1)])
    assert found.map(MAIN, instants(102, 104, 112, 118, 122)).tolist() == [
        *(1002, 1004, 1012, 1018, 1022)
    ]
    assert found.map(Track(HOST, 8), instants(115, 119)).tolist() == [1001, 1005]
    assert found.matched_share == 1.0


def test_device_work_is_found_by_its_launch() -> None:
    def recording(at: int, works: list[int], first: int) -> EventColumns:
        rows = [
            ("cudaLaunchKernel", HOST, 7, at + 10 * n, at + 10 * n + 5, first + n) for n in (0, 1)
        ]
        rows += [("gemm", 0, 20, start, start + 30, first + n) for n, start in enumerate(works)]
        return events(rows, steps={1: (at - 5, at + 40)})

    detailed, timed = recording(100, [200, 300], 5), recording(1000, [1020, 1060], 70)
    found = time_mapping(detailed, timed, [(1, 1)], unrecorded_step_ns=1)
    assert found.map(Track(0, 20), instants(200, 230, 300, 330)).tolist() == [
        1020, 1050, 1060, 1090,
    ]  # fmt: skip
    assert found.step_durations_ns == [45]  # the host alone is not all that works


def test_what_recording_times_costs_is_taken_off_between_events() -> None:
    timed = host_events(
        ("aten::linear", 10, 90), ("aten::mm", 20, 40), ("aten::add", 50, 80), steps={1: (0, 100)}
    )
    found = time_mapping(timed, timed, [(1, 1)], unrecorded_step_ns=88)
    # Twelve ns are two for each begin and each end.
    assert found.step_durations_ns == [88]
    assert found.map(MAIN, instants(0, 10, 20, 40, 50, 80, 90, 100)).tolist() == [
        0, 8, 16, 36, 42, 72, 80, 88,
    ]  # fmt: skip


def test_a_step_that_something_else_made_longer_stays_so() -> None:
    slow = host_events(("aten::mm", 10_000, 20_000), steps={1: (0, 1_000_000)})
    found = time_mapping(slow, slow, [(1, 1)], unrecorded_step_ns=10_000)
    assert found.step_durations_ns == [1_000_000 - 2 * MAX_COST_NS]


def test_short_operators_keep_their_time_and_their_order() -> None:
    """Other programs make a recorded step longer by far more than its many events can cost."""
    rows: list[Row] = []
    for start in range(100, 10_000, 100):
        rows += [("aten::linear", start, start + 90), ("aten::t", start + 30, start + 70)]
    timed = host_events(*rows, steps={1: (0, 10_100)})
    found = time_mapping(timed, timed, [(1, 1)], unrecorded_step_ns=1_000)
    outer, inner = found.map(MAIN, timed.start_ns), found.map(MAIN, timed.end_ns)
    assert (np.diff(np.sort(np.concatenate([outer, inner]))) > 0).all()
    assert (inner - outer)[1::2].tolist() == [40] * 99
    gaps = 99 * (30 + 20) + 98 * 10 + 100 + 110  # before, between and after events
    assert found.step_durations_ns == [10_100 - round(gaps * 2 / 3)]


def test_threads_that_work_at_once_keep_what_their_recording_costs() -> None:
    rows = [("aten::mm", HOST, thread, 10, 20, 0) for thread in (7, 8)]
    both = events(rows, steps={1: (0, 100)})
    assert time_mapping(both, both, [(1, 1)], unrecorded_step_ns=50).step_durations_ns == [100]


@st.composite
def steps_of_events(draw: st.DrawFn) -> tuple[EventColumns, EventColumns]:
    """The same nested events twice, at other times; some of the first only, some of the second."""
    edges = draw(st.lists(st.sampled_from("([mn])"), max_size=30))
    recordings = []
    for skipped in "mn":
        now, open_events, rows = 0, [], []
        for edge in edges:
            now += draw(st.integers(0, 20))
            if edge in "([mn" and edge != skipped:
                open_events.append((edge, now))
            elif edge in ")]" and open_events:
                name, start = open_events.pop()
                rows.append((name, start, now))
        now += draw(st.integers(1, 20))
        rows += [(name, start, now) for name, start in open_events]
        recordings.append(host_events(*rows, steps={1: (0, now)}))
    return recordings[0], recordings[1]


@given(steps_of_events(), st.integers(0, 200))
def test_no_instant_comes_before_an_earlier_one(
    recordings: tuple[EventColumns, EventColumns], unrecorded: int
) -> None:
    found = time_mapping(*recordings, [(1, 1)], unrecorded_step_ns=unrecorded)
    whole = np.arange(-5, recordings[0].step_spans_ns[1][1] + 5, dtype=np.int64)
    assert (np.diff(found.map(MAIN, whole)) >= 0).all()
    assert 0.0 <= found.matched_share <= 1.0


@given(st.lists(st.integers(0, 50), min_size=2, max_size=12), st.lists(st.integers(0, 400)))
def test_time_without_collections_can_be_undone(gaps: list[int], asked: list[int]) -> None:
    edges = np.cumsum(np.array(gaps[: len(gaps) // 2 * 2], np.int64) + 1)
    of_thread = Collections(edges[::2], edges[1::2])
    outside = np.array(
        [at for at in asked if not any(s <= at < e for s, e in edges.reshape(-1, 2))], np.int64
    )
    working = outside - of_thread.time_before(outside)
    assert of_thread.insert_time(working).tolist() == outside.tolist()
