"""The replay against a discrete-event model: there the answer to every what-if is known.

A program of launches, host work and waits runs in the model; what it would have recorded is drawn;
the replay reads that and is asked what the model is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import Trace
from selftime.advice.replay import (
    Change,
    CutHostTime,
    RemoveWaits,
    Replay,
    ScaleDeviceWork,
    replay_of,
)
from selftime.advice.replay.graph_simulation import recorded_costs, simulate
from selftime.analysis.graph.building import dependency_graph
from selftime.intervals import intersect, length, subtract, union
from selftime.testing import sketch

COLUMN: Final = 100_000
"""Of the drawings, in ns: far more than the slack that the replay allows the clocks."""
DEPTH: Final = 1022
"""Works that a stream holds: torch PR 79805."""


@dataclass(frozen=True)
class Host:
    """The host works for so many columns."""

    lasts: int


@dataclass(frozen=True)
class Launch:
    """One column of a call, one of latency, and then device work."""

    stream: int
    lasts: int
    after: int | None = None
    """It waits for an event at the end of what this other stream holds."""


@dataclass(frozen=True)
class Wait:
    """For all streams, and a column at least."""


Op: TypeAlias = Host | Launch | Wait
Span: TypeAlias = tuple[int, int]


@dataclass
class Run:
    """When what happened, in columns."""

    depth: int = DEPTH
    now: int = 0
    calls: list[tuple[str, int, int]] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)
    """Host time between calls."""
    work: dict[int, list[Span]] = field(default_factory=dict)
    steps: list[Span] = field(default_factory=list)

    @property
    def done(self) -> int:
        return max([self.now, *(end for own in self.work.values() for _, end in own)])

    def step(self, ops: Sequence[Op]) -> None:
        begin = self.now
        for op in ops:
            match op:
                case Host(lasts):
                    self.gaps.append((self.now, self.now + lasts))
                    self.now += lasts
                case Launch():
                    self._launch(op)
                case Wait():
                    end = max(self.now + 1, self.done)
                    self.calls.append((self._apart("w", "v"), self.now, end))
                    self.now = end
        self.steps.append((begin, self.now))

    def _apart(self, letter: str, other: str) -> str:
        """The other letter next to the first: runs of one letter are one slice."""
        return other if self.calls and self.calls[-1][0] == letter else letter

    def _launch(self, op: Launch) -> None:
        own = self.work.setdefault(op.stream, [])
        start = self.now + 1
        end = start
        if len(own) >= self.depth:
            end = max(end, own[-self.depth][1])
        if own:
            start = max(start, own[-1][1])
        if op.after is not None and self.work.get(op.after):
            start = max(start, self.work[op.after][-1][1])
        self.calls.append((_letter(op.stream, len(own)), self.now, end))
        own.append((start, start + op.lasts))
        self.now = end


def _letter(stream: int, number: int) -> str:
    """Neighbours differ: runs of one letter are one slice."""
    return ("ab", "cd", "ef")[stream][number % 2]


def run(steps: Sequence[Sequence[Op]], depth: int = DEPTH) -> Run:
    found = Run(depth)
    for ops in steps:
        found.step(ops)
    return found


def recorded(found: Run, *, launches_first: bool = True) -> Trace:
    """What a profiler would have written; lines in either order, which means nothing."""
    lines = _drawing(found)
    return sketch("\n".join(lines if launches_first else lines[::-1]))


def _drawing(found: Run) -> list[str]:
    marks = [("stu"[n % 3], begin, end) for n, (begin, end) in enumerate(found.steps)]
    lines = ["column = 100 us"]
    lines += [f"{letter} = cudaDeviceSynchronize" for letter in "vw"]
    lines += [f"{letter} = cudaLaunchKernel" for letter in "abcdef"]
    lines += [f"{letter} = ProfilerStep#{n}" for n, letter in enumerate("stu", 1)]
    lines += [_lane("mark 1", marks), _lane("call 1", found.calls)]
    for stream, own in found.work.items():
        named = [(_letter(stream, n), begin, end) for n, (begin, end) in enumerate(own)]
        lines.append(_lane(f"gpu {stream}", named))
    return lines


def _lane(name: str, spans: Sequence[tuple[str, int, int]]) -> str:
    text = [" "] * max((end for _, _, end in spans), default=0)
    for letter, begin, end in spans:
        text[begin:end] = letter * (end - begin)
    return f"{name} | {''.join(text)}"


def exact(trace: Trace) -> Replay:
    """Every call returns and every work ends when it did."""
    graph = dependency_graph(trace)
    outcome = simulate(graph, recorded_costs(graph))
    assert outcome.call_end.tolist() == graph.calls.end.tolist()
    assert outcome.work_end.tolist() == graph.work.end.tolist()
    return replay_of(trace)


def columns(time: float) -> float:
    return time / COLUMN


def cut(found: Run, keep: float = 0.0) -> CutHostTime:
    """All host work between calls."""
    starts = [begin * COLUMN for begin, _ in found.gaps]
    return CutHostTime(union(starts, [end * COLUMN for _, end in found.gaps]), keep)


def waits(trace: Trace) -> RemoveWaits:
    name = pl.col("name").cast(pl.String)
    calls = trace.slices.filter(name == "cudaDeviceSynchronize")
    return RemoveWaits(calls["id"].cast(pl.Int64).to_numpy())


ops = st.one_of(
    st.builds(Host, st.integers(1, 6)),
    st.builds(Launch, st.integers(0, 2), st.integers(1, 8)),
    st.just(Wait()),
)
alone = st.one_of(
    st.builds(Host, st.integers(1, 6)),
    st.builds(Launch, st.just(0), st.integers(1, 8)),
    st.just(Wait()),
)


def programs(op: st.SearchStrategy[Op]) -> st.SearchStrategy[list[list[Op]]]:
    """Three steps that begin with a launch."""
    step = st.lists(op, max_size=8).map(lambda rest: [Launch(0, 2), *rest])
    return st.lists(step, min_size=3, max_size=3)


@given(programs(ops))
def test_identity_is_exact_on_several_streams(steps: list[list[Op]]) -> None:
    found = run(steps)
    replay = exact(recorded(found))
    assert columns(replay.program_time()) == found.done


@given(programs(alone))
def test_without_host_work_it_takes_what_the_model_takes(steps: list[list[Op]]) -> None:
    found = run(steps)
    without = run([[op for op in step if not isinstance(op, Host)] for step in steps])
    replay = exact(recorded(found))
    assert columns(replay.program_time(cut(found))) == pytest.approx(without.done, abs=0.5)


@given(programs(alone))
def test_with_longer_or_no_kernels_it_takes_what_the_model_takes(steps: list[list[Op]]) -> None:
    found = run(steps)
    trace = recorded(found)
    kernels = replay_of(trace).graph.work.id

    def scaled(op: Op) -> Op:
        return replace(op, lasts=3 * op.lasts) if isinstance(op, Launch) else op

    longer = run([[scaled(op) for op in step] for step in steps])
    predicted = replay_of(trace).program_time(ScaleDeviceWork(kernels, 3.0))
    assert columns(predicted) == pytest.approx(longer.done, abs=0.5)


@given(programs(ops), st.data())
def test_no_saving_exceeds_what_there_is_to_save(
    steps: list[list[Op]], data: st.DataObject
) -> None:
    """Host causes save idle time at most; device causes the time in which nothing else ran."""
    found = run(steps)
    trace = recorded(found)
    replay = replay_of(trace)
    work = replay.graph.work
    counted = max(len(replay.counted), 1)
    chosen = np.array(sorted(data.draw(st.sets(st.sampled_from(work.id.tolist())))), np.int64)
    mine = np.isin(work.id, chosen)
    others = union(work.start[~mine], work.end[~mine])
    exposed = subtract(union(work.start[mine], work.end[mine]), others)
    scale = ScaleDeviceWork(chosen, 0.0)
    assert replay.saving(cut(found)) <= length(replay.idle) / counted
    assert replay.saving(waits(trace)) <= length(replay.idle) / counted
    assert replay.saving(scale) <= length(intersect(exposed, replay.spans)) / counted


@given(programs(ops))
def test_several_fixes_save_as_much_as_the_best_of_them_and_no_more_than_the_step(
    steps: list[list[Op]],
) -> None:
    """They may save more than their sum: each of two waits is worth little while the other is."""
    found = run(steps)
    trace = recorded(found)
    replay = replay_of(trace)
    every: list[Change] = [
        cut(found, 0.5),
        waits(trace),
        ScaleDeviceWork(replay.graph.work.id[::2], 0.5),
    ]
    assert replay.program_time(*every) <= min(replay.program_time(change) for change in every)
    assert replay.saving(*every) <= replay.step_time()
    assert replay.program_time(*every) == replay.program_time(*every[::-1])


@given(programs(ops))
def test_the_order_of_what_is_unrelated_changes_nothing(steps: list[list[Op]]) -> None:
    found = run(steps)
    one, other = recorded(found), recorded(found, launches_first=False)
    replays = replay_of(one), replay_of(other)
    assert replays[0].step_time() == replays[1].step_time()
    assert replays[0].saving(cut(found)) == replays[1].saving(cut(found))
    assert replays[0].saving(waits(one)) == replays[1].saving(waits(other))


def test_a_stream_that_waits_for_another_keeps_waiting() -> None:
    """Faster work on the first stream lets the second begin sooner, by as much."""
    step: list[Op] = [Launch(0, 9), Launch(1, 4, after=0), Wait(), Host(3)]
    found = run([step] * 3)
    trace = recorded(found)
    replay = exact(trace)
    work = replay.graph.work
    first = work.id[work.end - work.start == 9 * COLUMN]
    faster = run([[Launch(0, 3), *step[1:]]] * 3)
    assert columns(replay.program_time(ScaleDeviceWork(first, 1 / 3))) == pytest.approx(
        faster.done, abs=0.5
    )


def test_a_full_queue_holds_the_host_back_until_the_device_is_faster() -> None:
    """1022 works are in the queue: of host work no more is saved than the device lacks."""
    launches: list[Op] = [Launch(0, 2)] * 900
    found = run([[Host(30), *launches]] * 3)
    assert any(end - begin > 1 for _, begin, end in found.calls)
    replay = exact(recorded(found))
    calls = replay.graph.calls
    queued = calls.awaited_work >= 0
    assert set((calls.first_work - calls.awaited_work)[queued].tolist()) == {DEPTH}
    without = run([launches] * 3)
    assert columns(replay.program_time(cut(found))) == pytest.approx(without.done, abs=2)
    kernels = replay.graph.work.id
    faster = run([[Host(30), *([Launch(0, 1)] * 900)]] * 3)
    assert columns(replay.program_time(ScaleDeviceWork(kernels, 0.5))) == pytest.approx(
        faster.done, abs=2
    )


THREADS: Final = """
    column = 100 us
    s = ProfilerStep#1
    t = ProfilerStep#2
    mark 1 | ssssssssssssssssssssttttttttttttttttttttt
    cpu 1  | xxxxxx              xxxxxx
    call 1 |   k                   k
    gpu 7  |    kkkkk               kkkkk
    gpu 8  |             mmmm                mmmm
    x = aten::mm
    y = aten::mm
    k = cudaLaunchKernel
    m = cudaLaunchKernel
"""


@pytest.mark.parametrize(
    ("second", "launches", "parts"),
    [
        (
            "       yyyyyyyyy           yyyyyyyyy     ",
            "            m                   m        ",
            1,
        ),
        (
            "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            "   m                   m                 ",
            2,
        ),
    ],
    ids=["in turn", "at once"],
)
def test_threads_that_take_turns_are_one_program(second: str, launches: str, parts: int) -> None:
    """As autograd's thread, which works while the thread that called it waits."""
    drawing = f"{THREADS}    cpu 2 | {second}\n    call 2 | {launches}"
    assert exact(sketch(drawing)).graph.thread_count == parts


@given(programs(alone), programs(alone))
def test_identity_is_exact_on_two_threads(one: list[list[Op]], two: list[list[Op]]) -> None:
    """The second thread launches on a stream of its own, and waits for both."""
    first, second = run(one), run(two)
    swap = str.maketrans("ab", "cd")
    drawing = _drawing(first)
    calls = [(name.translate(swap), begin, end) for name, begin, end in second.calls]
    named = [(_letter(1, n), begin, end) for n, (begin, end) in enumerate(second.work[0])]
    exact(sketch("\n".join([*drawing, _lane("call 2", calls), _lane("gpu 1", named)])))
