"""Our operator table against torch's own, of one recording: every row, every column, to the unit.

Torch's table is wrong in four ways. A model written here from the definitions, which looks at every
pair of torch's own events, says where, and ours equals the model everywhere:

recursion
    An operator within itself (a recursive function, a nested `record_function` of one name) has its
    inner time and memory added to its outer's, so that it takes longer than the program. Ours
    counts a moment, and a record of memory, once.
crossing
    Annotations that are entered and left in Python begin within one Python frame and end within
    another. Torch takes the later of two crossing slices for the end of the earlier, and subtracts
    what follows from a slice further out: self times are too large, or negative. Ours give each
    moment to the slice that began last, so that they add up to the time that is covered.
threads
    An operator has the memory of all threads while it runs. Ours has its own thread's.
stacks
    A backward node has the stack of the first operator with its number. But operators that make no
    node carry the next number, so that this may be one that merely ran before. Ours is the last:
    the one that made the node. `AccumulateGrad` has no stack; ours has that of the node before it,
    whose gradient it stores.

Everything else is equal. Torch has stacks only with `_ExperimentalConfig(verbose=True)`.
"""

import inspect
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")

from selftime.capture.profiler.profiler_options import torchs_table_options  # noqa: E402 - needs torch

if TYPE_CHECKING:
    from tests.session.conftest import Recording

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        "is_user_annotation"
        not in inspect.signature(torch.autograd.profiler_util.FunctionEvent).parameters,
        reason="tables of this PyTorch do not tell annotations from operators",
    ),
    # programs are asked for every table, also for what they did not record
    pytest.mark.filterwarnings("ignore:group_by_.* has no .* to group by:UserWarning"),
]

Key = tuple[str, ...]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Row = dict[str, int]

TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
MEMORY = tuple(f"{own}{side}_memory_usage" for own in ("", "self_") for side in ("cpu", "device"))


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


@dataclass(frozen=True)
class Grouping:
    shape: bool
    overload: bool
    frames: int

    def key(self, row: Any, stack: list[str]) -> Key:
        return (
            row.key,
            "annotation" if row.is_user_annotation else "",
            str(row.input_shapes) if self.shape else "",
            row.overload_name if self.overload else "",
            ";".join(stack[: self.frames]),
        )

    def rows(self, table: Any) -> dict[Key, Row]:
        """A table by key, in integer units; ours and torch's have the same attributes."""
        found: dict[Key, Row] = {}
        for row in table:
            key = self.key(row, row.stack)
            assert key not in found, "no key twice"
            found[key] = {
                "count": row.count,
                "flops": row.flops,
                "cpu_time": _ns(row.cpu_time * row.count),  # the average, without its rounding
                **{name: _ns(getattr(row, name)) for name in TIMES},
                **{name: getattr(row, name) for name in MEMORY},
            }
        return found


@dataclass
class Thread:
    """The events of one thread, in order of start, and what every pair of them is to each other."""

    events: list[Any]
    start: Ints
    end: Ints
    within: Bools
    """Whether event i lies within event j."""
    crosses: Bools
    """Whether events i and j overlap in part."""
    self_time: Ints
    """Time in which it was the last begun of those that ran."""
    records: list[Any]
    """Memory records of the thread."""
    holds: Bools
    """Whether record i lies in event j."""
    foreign: Bools
    """Whether records of other threads lie in event j."""

    def innermost(self, among: Bools) -> int:
        return int(np.flatnonzero(among)[-1]) if among.any() else -1


def _threads(prof: Any) -> list[Thread]:
    results = prof.profiler.kineto_results
    records = [record for record in results.events() if record.name() == "[memory]"]
    events: dict[int, list[Any]] = defaultdict(list)
    for event in prof.events():
        if event.name != "[memory]" and not event.is_async:
            events[event.thread].append(event)
    origin = results.trace_start_ns()
    return [_thread(number, mine, records, origin) for number, mine in events.items()]


def _thread(number: int, events: list[Any], records: list[Any], origin: int) -> Thread:
    events = sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end))
    start = np.array([_ns(e.time_range.start) for e in events], np.int64)
    end = np.array([_ns(e.time_range.end) for e in events], np.int64)
    later = np.arange(start.size)[:, None] > np.arange(start.size)
    within = later & (end[:, None] <= end) & (start[:, None] < end)
    crosses = later & (end[:, None] > end) & (start[:, None] < end)
    own = np.zeros(start.size, np.int64)
    instants = np.unique(np.append(start, end))
    for begin, stop in pairwise(instants):
        running = np.flatnonzero((start <= begin) & (end >= stop))
        if running.size:
            own[running[-1]] += stop - begin
    times = np.array([record.start_ns() - origin for record in records], np.int64)
    mine = np.array([record.start_thread_id() == number for record in records], bool)
    holds = (start <= times[:, None]) & (times[:, None] < end)
    return Thread(
        events=events,
        start=start,
        end=end,
        within=within,
        crosses=crosses | crosses.T,
        self_time=own,
        records=[record for record, is_mine in zip(records, mine, strict=True) if is_mine],
        holds=holds[mine],
        foreign=holds[~mine].any(axis=0),
    )


def _covered(start: Ints, end: Ints) -> int:
    """The time in which any of these runs."""
    total, reach = 0, -1
    for begin, stop in sorted(zip(start.tolist(), end.tolist(), strict=True)):
        total += max(stop - max(begin, reach), 0)
        reach = max(reach, stop)
    return total


def _stacks(threads: list[Thread]) -> dict[int, list[str]]:
    """The right stack of each event, by its identity: in a backward node its forward operator's."""
    made: dict[tuple[int, int], list[tuple[int, Any]]] = defaultdict(list)
    for one in threads:
        for begin, event in zip(one.start.tolist(), one.events, strict=True):
            if event.sequence_nr >= 0 and not event.fwd_thread:
                made[event.thread, event.sequence_nr].append((begin, event))
    found = {}
    for one in threads:
        backward = np.array([event.scope == 1 for event in one.events], bool)
        for at, event in enumerate(one.events):
            around = one.within[at] & backward
            around[at] = backward[at]
            node = one.innermost(around)
            found[id(event)] = event.stack if node < 0 else _forward_stack(one, node, made)
    return found


def _forward_stack(one: Thread, node: int, made: dict[tuple[int, int], list[Any]]) -> list[str]:
    """The stack of the last operator of the node's number, or of the node before if it has none."""
    for at in range(node, -1, -1):
        event = one.events[at]
        if event.scope == 1 and event.sequence_nr >= 0:
            rows = made[event.fwd_thread, event.sequence_nr]
            before = [operator for begin, operator in rows if begin < one.start[at]]
            stack: list[str] = before[-1].stack
            return stack
    return list(one.events[node].stack)


@dataclass
class Comparison:
    """The three tables by key, and of torch's, what is wrong and why."""

    ours: dict[Key, Row]
    torchs: dict[Key, Row]
    defined: dict[Key, Row]
    wrong: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    """For each of torch's rows, its wrong columns; `key` if the row itself is of other events."""
    faults: set[str] = field(default_factory=set)
    covered: int = 0


@cache
def compare(recording: "Recording", **choice: Any) -> Comparison:
    prof, grouping = recording.profiler, Grouping(**choice)
    how = (grouping.shape, grouping.frames)
    options = torchs_table_options(grouping.overload, True)
    if grouping.overload and "group_by_overload_name" not in options:
        pytest.skip("this PyTorch has no tables by overload")
    found = Comparison(
        ours=grouping.rows(
            prof.key_averages(*how, grouping.overload, include_python_functions=True)
        ),
        torchs=grouping.rows(torch.profiler.profile.key_averages(prof, *how, **options)),
        defined={},
    )
    threads = _threads(prof)
    stacks = _stacks(threads)
    for one in threads:
        found.covered += _covered(one.start, one.end)
        _define(found, grouping, one, stacks)
        _doubt(found, grouping, one, stacks)
    _add_asynchronous(found, grouping, prof)
    _add_outside(found, grouping, prof, threads)
    for row in found.defined.values():
        row["cpu_time"] = row["cpu_time_total"]
    return found


def _add_asynchronous(found: Comparison, grouping: Grouping, prof: Any) -> None:
    """What ends on another thread takes time, of which none can be told to be its own."""
    for event in prof.events():
        if event.is_async:
            key = grouping.key(event, event.stack)
            row = found.defined.setdefault(key, _no_row())
            row["count"] += 1
            row["cpu_time_total"] += _ns(event.cpu_time_total)
            found.wrong[key].add("cpu_memory_usage")
            found.faults.add("threads")


def _no_row() -> Row:
    return dict.fromkeys(("count", "flops", "cpu_time", *TIMES, *MEMORY), 0)


def _add_outside(found: Comparison, grouping: Grouping, prof: Any, threads: list[Thread]) -> None:
    """The row of what was allocated or released while nothing ran on the thread."""
    records = [r for r in prof.profiler.kineto_results.events() if r.name() == "[memory]"]
    inside = sum(int(one.holds.any(axis=1).sum()) for one in threads)
    if len(records) > inside:
        held = sum(_bytes(one, one.holds.any(axis=1)) for one in threads)
        lost = sum(int(record.nbytes()) for record in records) - held
        key = ("[memory]", "", "[]" if grouping.shape else "", "", "")
        memory = {"cpu_memory_usage": lost, "self_cpu_memory_usage": lost}
        found.defined[key] = _no_row() | memory | {"count": len(records) - inside}


def _members(grouping: Grouping, one: Thread, stacks: Any) -> dict[Key, list[int]]:
    members: dict[Key, list[int]] = defaultdict(list)
    for at, event in enumerate(one.events):
        members[grouping.key(event, stacks[id(event)] if stacks else event.stack)].append(at)
    return members


def _define(found: Comparison, grouping: Grouping, one: Thread, stacks: Any) -> None:
    """Add a thread's events to the right table."""
    owner = np.array([one.innermost(row) for row in one.holds], np.int64)
    for key, mine in _members(grouping, one, stacks).items():
        row = found.defined.setdefault(key, _no_row())
        row["count"] += len(mine)
        row["flops"] += sum(one.events[at].flops or 0 for at in mine)
        row["cpu_time_total"] += _covered(one.start[mine], one.end[mine])
        row["self_cpu_time_total"] += int(one.self_time[mine].sum())
        row["cpu_memory_usage"] += _bytes(one, one.holds[:, mine].any(axis=1))
        row["self_cpu_memory_usage"] += _bytes(one, np.isin(owner, mine))


def _bytes(one: Thread, chosen: Any) -> int:
    return sum(int(r.nbytes()) for r, is_in in zip(one.records, chosen, strict=True) if is_in)


def _doubt(found: Comparison, grouping: Grouping, one: Thread, stacks: Any) -> None:
    """Find where torch is wrong of a thread's events."""
    crossing: Bools = np.asarray(one.crosses.any(axis=1))
    around = [one.innermost(one.within[at]) for at in np.flatnonzero(crossing)]
    around += [one.innermost(one.within[at] & ~crossing) for at in np.flatnonzero(crossing)]
    mistaken = np.array(crossing)
    mistaken[[at for at in around if at >= 0]] = True
    right = _members(grouping, one, stacks)
    for key, mine in _members(grouping, one, None).items():
        wrong = found.wrong[key]
        if one.within[np.ix_(mine, mine)].any() or one.crosses[np.ix_(mine, mine)].any():
            found.faults.add("recursion")
            wrong |= {"cpu_time", "cpu_time_total", "cpu_memory_usage"}
        if mistaken[mine].any():
            found.faults.add("crossing")
            wrong |= {"self_cpu_time_total", "self_cpu_memory_usage"}
        if one.foreign[mine].any():
            found.faults.add("threads")
            wrong |= {"cpu_memory_usage", "self_cpu_memory_usage"}
        if mine != right.get(key):
            found.faults.add("stacks")
            wrong.add("key")


every_grouping = pytest.mark.parametrize(
    ("shape", "overload", "frames"),
    [(s, o, f) for s in (False, True) for o in (False, True) for f in (0, 1, 3, 50)],
    ids=lambda value: str(int(value)),
)

FAULTS = {
    "nested": {"recursion"},
    "waiting for a thread": {"threads"},
    "forward, everything": {"recursion"},
    "training, everything": {"recursion", "crossing", "stacks"},
    "loading, everything": {"recursion", "crossing", "stacks"},
    "recurrent, stacks": {"recursion", "stacks"},
}
"""Where torch is wrong; of the other programs its whole table is right."""


@every_grouping
@pytest.mark.sweep(4)
def test_equals_the_definition(
    recording: "Recording", *, shape: bool, overload: bool, frames: int
) -> None:
    comparison = compare(recording, shape=shape, overload=overload, frames=frames)

    assert comparison.ours == comparison.defined


@every_grouping
@pytest.mark.sweep(8)
def test_equals_torchs_wherever_torch_is_right(
    recording: "Recording", *, shape: bool, overload: bool, frames: int
) -> None:
    comparison = compare(recording, shape=shape, overload=overload, frames=frames)

    for key, row in comparison.torchs.items():
        wrong = comparison.wrong[key]
        if "key" not in wrong:
            right = {name: value for name, value in row.items() if name not in wrong}
            assert {name: comparison.ours[key][name] for name in right} == right, key
    if comparison.ours.keys() != comparison.torchs.keys():
        assert "stacks" in comparison.faults


@pytest.mark.sweep(3)
def test_rows_of_python_functions_are_those_of_the_torch_that_is_installed(
    recording: "Recording",
) -> None:
    prof = recording.profiler
    torchs = torch.profiler.profile.key_averages(prof)
    assert {row.key for row in prof.key_averages()} == {row.key for row in torchs}
    operators = {event.name for event in prof.events() if not event.is_python_function}
    without = {row.key for row in prof.key_averages(include_python_functions=False)}
    assert without - {"[memory]"} == operators - {"[memory]"}


@pytest.mark.sweep(4)
def test_torch_is_wrong_only_where_it_is_known_to_be(recording: "Recording") -> None:
    whole, by_stack = (
        compare(recording, shape=False, overload=False, frames=frames) for frames in (0, 50)
    )

    found, known = whole.faults | by_stack.faults, FAULTS.get(recording.name, set())
    if recording.profiler.with_stack:
        found -= {"threads"}  # the test runner's own threads have Python frames, too
    assert found == known


def test_self_times_add_up_and_are_never_negative(recording: "Recording") -> None:
    comparison = compare(recording, shape=False, overload=False, frames=0)

    own = [row["self_cpu_time_total"] for row in comparison.ours.values()]
    assert min(own) >= 0
    assert sum(own) == comparison.covered
    for row in comparison.ours.values():
        assert row["self_cpu_time_total"] <= row["cpu_time_total"]
        assert row["cpu_time_total"] <= comparison.covered


def test_a_recursive_name_counts_a_moment_once(recordings: Any) -> None:
    prof = recordings("nested").profiler
    inner = [e for e in prof.events() if e.name == "inner"]
    outermost = max(inner, key=lambda e: e.time_range.elapsed_us())

    ours = {row.key: row for row in prof.key_averages()}["inner"]
    torchs = {row.key: row for row in torch.profiler.profile.key_averages(prof)}["inner"]
    assert ours.cpu_time_total == pytest.approx(outermost.cpu_time_total, abs=1e-3)
    assert torchs.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in inner), abs=1e-3)
    assert ours.count == torchs.count == 3


def test_the_memory_of_another_thread_is_not_the_waiting_ones(recordings: Any) -> None:
    prof = recordings("waiting for a thread").profiler

    ours = {row.key: row for row in prof.key_averages()}
    torchs = {row.key: row for row in torch.profiler.profile.key_averages(prof)}
    assert torchs["wait"].cpu_memory_usage == 4000
    assert ours["wait"].cpu_memory_usage == ours["wait"].self_cpu_memory_usage == 0
    assert ours["aten::ones"].cpu_memory_usage == 4000
    assert ours["aten::empty"].self_cpu_memory_usage == 4000


def test_a_backward_node_has_the_stack_of_the_operator_that_made_it(recordings: Any) -> None:
    prof = recordings("training, everything").profiler
    ours = {
        row.stack[0] for row in prof.key_averages(group_by_stack_n=1) if row.key == "TBackward0"
    }
    torchs = torch.profiler.profile.key_averages(prof, group_by_stack_n=1)

    assert ours == {"<built-in function linear>"}
    assert {row.stack[0] for row in torchs if row.key == "TBackward0"} != ours
