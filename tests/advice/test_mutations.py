"""Advice does not lie: what a recording lost or got wrong is never mistaken for the program.

Real traces are changed as recordings go wrong in practice. Against the trace as it is no finding
may appear; and what does not belong to the program at all must not change the advice.
"""

import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgspec
import numpy as np
import pytest

from selftime import Trace, load
from selftime.advice import Advice, Finding, Health, advise, find
from selftime.testing import sketch

Event: TypeAlias = dict[str, Any]
Document: TypeAlias = dict[str, Any]
Dice: TypeAlias = np.random.Generator
Mutation: TypeAlias = Callable[[list[Event], Dice], list[Event]]

FOLDER: Final = Path(
    os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces")
)
WORK: Final = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
STEP: Final = "ProfilerStep"
MANY: Final = 0.2
"""Beyond this share of launches without work nothing may be said about the device's idle time."""
TOO_LONG: Final = 10_000


def work(events: list[Event]) -> list[Event]:
    """Everything that ran on a device, in order of time."""
    found = [e for e in events if e.get("ph") == "X" and e.get("cat") in WORK]
    return sorted(found, key=lambda e: float(e["ts"]))


def without(events: list[Event], lost: list[Event]) -> list[Event]:
    """Without these, and without the arrows that end in them."""
    gone = {id(event) for event in lost}
    arrows = {(e["pid"], e["tid"], e["ts"]) for e in lost}
    return [
        e
        for e in events
        if id(e) not in gone
        and not (e.get("ph") == "f" and (e.get("pid"), e.get("tid"), e.get("ts")) in arrows)
    ]


def at_random(share: float) -> Mutation:
    """Each has the same chance to be lost, as when a buffer overflows now and then."""

    def mutate(events: list[Event], dice: Dice) -> list[Event]:
        every = work(events)
        chosen = dice.permutation(len(every))[: round(share * len(every))]
        return without(events, [every[at] for at in chosen])

    return mutate


def of_each_step(share: float) -> Mutation:
    """The last part of the work of every step, as when buffers are too small for a step."""

    def mutate(events: list[Event], _: Dice) -> list[Event]:
        every = work(events)
        marks = [e["ts"] for e in events if str(e.get("name")).startswith(STEP) and "ts" in e]
        begins = np.unique(np.array(marks, np.float64))
        place = np.searchsorted(begins, [float(e["ts"]) for e in every], side="right")
        lost: list[Event] = []
        for step in np.unique(place):
            own = [every[at] for at in np.flatnonzero(place == step)]
            lost += own[len(own) - round(share * len(own)) :]
        return without(events, lost)

    return mutate


def from_the_end(share: float) -> Mutation:
    """The last of all, as when the recorder stops before the device's buffers are read."""

    def mutate(events: list[Event], _: Dice) -> list[Event]:
        every = work(events)
        return without(events, every[len(every) - round(share * len(every)) :])

    return mutate


def of_one_place(key: str) -> Mutation:
    """All of the busiest stream or device but one, or of the only one."""

    def mutate(events: list[Event], _: Dice) -> list[Event]:
        every = work(events)
        places = [(e["args"].get("device"), e["args"].get(key)) for e in every]
        busiest = sorted(set(places), key=lambda p: (-places.count(p), str(p)))
        chosen = busiest[1] if len(busiest) > 1 else busiest[0]
        return without(
            events, [e for e, place in zip(every, places, strict=True) if place == chosen]
        )

    return mutate


def all_but_the_first_replay(events: list[Event], _: Dice) -> list[Event]:
    """The kernels of every graph replay after the first: recorders have lost just these."""
    replays = [
        e["args"].get("correlation")
        for e in sorted(events, key=lambda e: float(e.get("ts", 0)))
        if e.get("name") in {"cudaGraphLaunch", "hipGraphLaunch"} and "args" in e
    ]
    later = set(replays[1:])
    return without(events, [e for e in work(events) if e["args"].get("correlation") in later])


def seven_too_long(events: list[Event], dice: Dice) -> list[Event]:
    """Seven kernels with durations that cannot be."""
    every = work(events)
    chosen = {id(every[at]) for at in dice.permutation(len(every))[:7]}
    return [{**e, "dur": float(e["dur"]) * TOO_LONG} if id(e) in chosen else e for e in events]


LOSSES: Final[dict[str, Mutation]] = {
    **{
        f"{how.__name__}-{percent}%": how(percent / 100)
        for how in (at_random, of_each_step, from_the_end)
        for percent in (1, 10, 50)
    },
    "all": at_random(1.0),
    "one-stream": of_one_place("stream"),
    "one-device": of_one_place("device"),
    "all-but-the-first-replay": all_but_the_first_replay,
    "seven-too-long": seven_too_long,
}


def file(name: str) -> Path:
    path = FOLDER / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"the trace is not in {FOLDER}; set SELFTIME_TRACES")
    return path


@cache
def document(name: str) -> Document:
    read: Document = msgspec.json.decode(gzip.decompress(file(name).read_bytes()))
    return read


@cache
def advice_of(name: str) -> Advice:
    trace = load(file(name))
    assert isinstance(trace, Trace)
    return advise(trace)


def advice_on(document: Document, folder: Path) -> Advice:
    path = folder / "trace.json"
    path.write_bytes(msgspec.json.encode(document))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return advise(trace)


def sure(advice: Advice) -> dict[tuple[str, str], Finding]:
    """Findings of high or medium confidence by rule and place."""
    return {(f.rule, str(f.where)): f for f in advice.findings if f.confidence != "low"}


def mutated(name: str, loss: str) -> Document | None:
    """The trace after the loss; None if it has nothing to lose so."""
    whole = document(name)
    events = whole["traceEvents"]
    changed = LOSSES[loss](events, np.random.default_rng(crc32(f"{name} {loss}".encode())))
    return None if changed == events else {**whole, "traceEvents": changed}


def every_pair() -> Iterator[tuple[str, str]]:
    for path in sorted(FOLDER.glob("*.json.gz")):
        for loss in LOSSES:
            yield path.name.removesuffix(".json.gz"), loss


USUAL: Final = (
    *(("h100-2025-vit", loss) for loss in LOSSES),
    *(("mi300-2026-sglang-decode-graph-replay", loss) for loss in LOSSES),
    ("a100-2022-sampled-rank0", "seven-too-long"),
    ("a100-2022-sampled-rank0", "one-stream"),
    ("mi300-2025-resnet-ddp-recompute", "one-stream"),
    ("v100-2021-resnet50-workers4.pt.trace", "of_each_step-1%"),
)
"""The pairs that are always tried; `SELFTIME_MUTATIONS=all` tries every trace with every loss."""
PAIRS: Final = tuple(every_pair()) if os.environ.get("SELFTIME_MUTATIONS") == "all" else USUAL


@pytest.mark.traces
@pytest.mark.parametrize(("name", "loss"), PAIRS)
@pytest.mark.sweep(3)
def test_what_is_lost_is_not_advised_on(name: str, loss: str, tmp_path: Path) -> None:
    damaged = mutated(name, loss)
    if damaged is None:
        pytest.skip("there is nothing of the kind to lose")
    advice = advice_on(damaged, tmp_path)
    found = {place: f.title for place, f in sure(advice).items()}
    assert not found.keys() - sure(advice_of(name)).keys(), found
    before, after = (len(work(d["traceEvents"])) for d in (document(name), damaged))
    if before - after > MANY * before and loss not in {"one-stream", "one-device"}:
        assert_withheld(advice)


def assert_withheld(advice: Advice) -> None:
    """No advice, and every rule says why not."""
    assert advice.health.verdict == "unusable"
    assert advice.findings == ()
    reasons = {unknown.needs for unknown in advice.unknown}
    assert len(reasons) == 1
    assert any(note.text in reasons.pop() for note in advice.health.notes)


IDLE: Final = "k = cudaLaunchKernel\n" + find("scalar_read").drawings("Fires on")[0]
"""A device that stands idle, as the host reads a number of it in every step."""


@pytest.mark.parametrize("lost", range(4))
def test_a_device_that_idles_is_told_from_work_that_was_lost(lost: int) -> None:
    """One of its three launches without work is enough to leave no advice."""
    kernel = "kkkkkkkk"
    advice = advise(sketch(IDLE.replace(kernel, " " * len(kernel), lost)))
    if lost:
        assert_withheld(advice)
    else:
        assert [rule for rule, _ in sure(advice)] == ["scalar_read"]


@pytest.mark.traces
@pytest.mark.parametrize("loss", ["at_random-1%"])
def test_a_few_lost_kernels_do_not_silence_what_is_true(loss: str, tmp_path: Path) -> None:
    name = "v100-2021-resnet50-workers0.pt.trace"
    damaged = mutated(name, loss)
    assert damaged is not None
    [expected] = (f for f in advice_of(name).findings if f.rule == "slow_input")
    [found] = (f for f in advice_on(damaged, tmp_path).findings if f.rule == "slow_input")
    assert found.where == expected.where
    assert found.saving.estimate_ms == pytest.approx(expected.saving.estimate_ms, rel=0.1)


def told(advice: Advice) -> str:
    """What the advice says, but the numbers of slices: they may be numbered anew."""
    document = advice.to_dict()
    for finding in document["findings"]:
        for evidence in finding["evidence"]:
            del evidence["events"]
    return msgspec.json.encode(document).decode()


def reordered(document: Document) -> Document:
    """The same events in another order, but those of one instant: theirs is that of nesting."""
    dice, events = np.random.default_rng(7), document["traceEvents"]
    by_time: dict[float, list[Event]] = {}
    for event in events:
        by_time.setdefault(float(event.get("ts", -1)), []).append(event)
    instants = list(by_time.values())
    order = dice.permutation(len(instants))
    return {**document, "traceEvents": [event for at in order for event in instants[at]]}


def with_others(document: Document) -> Document:
    """With counters, instants and marks of threads that have nothing to do with the program."""
    first = min(float(e["ts"]) for e in document["traceEvents"] if e.get("ph") == "X")
    place = {"pid": "elsewhere", "tid": "elsewhere"}
    others: list[Event] = [
        {**place, "ph": "M", "name": "thread_name", "args": {"name": "elsewhere"}},
        *(
            {**place, "ph": "C", "name": "load", "ts": first + n, "args": {"v": n}}
            for n in range(9)
        ),
        *({**place, "ph": "i", "s": "t", "name": "tick", "ts": first + n} for n in range(9)),
    ]
    return {**document, "traceEvents": [*others, *document["traceEvents"]]}


def later(document: Document) -> Document:
    """The same an hour later, on whole microseconds as times are written."""
    hour = 3_600_000_000
    events = [{**e, "ts": e["ts"] + hour} if "ts" in e else e for e in document["traceEvents"]]
    return {**document, "traceEvents": events}


REAL: Final = ("h100-2025-vit", "mi300-2025-bert-small")
"""Small traces with a finding each."""


@pytest.mark.traces
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("change", [reordered, with_others, later])
@pytest.mark.sweep(2)
def test_what_is_not_the_programs_changes_no_advice(
    name: str, change: Callable[[Document], Document], tmp_path: Path
) -> None:
    advice = advice_of(name)
    assert advice.findings
    assert told(advice_on(change(document(name)), tmp_path)) == told(advice)


@pytest.mark.traces
@pytest.mark.parametrize("name", REAL)
def test_the_names_of_a_program_change_no_advice_but_in_name(name: str, tmp_path: Path) -> None:
    old, new = "run_on_input", "abracadabra"
    renamed = msgspec.json.encode(document(name)).decode().replace(old, new)
    advice = told(advice_of(name))
    assert old in advice
    assert told(advice_on(msgspec.json.decode(renamed), tmp_path)) == advice.replace(old, new)


@pytest.mark.traces
@pytest.mark.sweep
def test_the_layout_of_a_file_changes_no_advice(tmp_path: Path) -> None:
    events = msgspec.json.encode(document(REAL[1])["traceEvents"])
    layouts = {
        "object": b'{"traceEvents": %b}' % events,
        "array": events,
        "array-not-closed": events.rstrip()[:-1],
    }
    said = set()
    for layout, text in layouts.items():
        for packed in (text, gzip.compress(text, 1)):
            path = tmp_path / layout
            path.write_bytes(packed)
            trace = load(path, cache=False)
            assert isinstance(trace, Trace)
            said.add(told(replace(advise(trace), health=Health("good"))))
    assert len(said) == 1
