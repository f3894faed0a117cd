"""Views that state the same quantity state the same number, on real traces, drawings and jobs."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.conftest import FOLDER, ReadReal
from tests.views.agreement import Asked, differences
from tests.views.agreement_of_devices import OF_DEVICES
from tests.views.agreement_of_memory import OF_MEMORY
from tests.views.agreement_of_ranks import OF_RANKS
from tests.views.agreement_of_runs import OF_RUNS, OF_WORKERS
from tests.views.agreement_of_steps import OF_STEPS
from tests.views.test_lines import BACKWARD, REDUCED, STACKS, STEP
from tests.views.test_stragglers import read

from selftime.capture.workers.worker_times import WorkerBatch, WorkerTimes
from selftime.testing import sketch
from selftime.testing.simulated_jobs import RankDelay, SimulatedMachine, simulate_job
from selftime.trace import Job

OF_TRACE = (*OF_DEVICES, *OF_STEPS, *OF_MEMORY)
REAL = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))
KNOWN = "mi300-2025-resnet-ddp-recompute"
"""The trace on which views disagreed: gradients are reduced on autograd's own thread."""

MEMORY = """
    a = aten::empty; line = net.py:5 f
    b = aten::add; line = net.py:6 f
    K = one; bytes = 512; device_type = 1; device = 0
    T = two; bytes = 256; device_type = 1; device = 0
    H = host; bytes = 64; device_type = 0; device = -1
    cpu 1    | aaaa bbbb
    memory 1 | KTt   H   k
"""
OVERLONG = """
    s = ProfilerStep#1
    a = aten::mm; line = net.py:5 f
    y = cudaDeviceSynchronize
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | aaaaaaaaaa
    call 1 | k k k k k yyy
    gpu 7  |  k k k k kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    column = 1 ms
"""
DRAWINGS = {
    "steps": STEP,
    "stacks": STACKS,
    "backward": BACKWARD,
    "reduced": REDUCED,
    "memory": MEMORY,
    "overlong": OVERLONG,
}

STEPS_OF_RUN = """
    run | start 300 ms
    run | before 2 s: imports numpy 1500 ms at train.py:1
    run | training 900 ms: data_wait 700 ms, compile 100 ms
    run | 20 training 100 ms: data_wait 10 ms, recording 1 ms
    run | 3 training 100 ms recorded
    run | training 2 s: checkpoint save 1900 ms at train.py:30 main
    run | 2 validation 400 ms: evaluation 300 ms, garbage_collection 20 ms
    run | training 600 ms: epoch_boundary 450 ms
    run | after 100 ms
    run | loop training at train.py:9
"""
RUNS = {
    "steps": STEPS_OF_RUN,
    "one step": "run | start 1 s\nrun | training 50 ms: data_wait 20 ms",
    "no step": "run | start 300 ms\nrun | before 2 s: imports numpy 1500 ms at train.py:1",
    "all recorded": "run | start 300 ms\nrun | before 1 s\nrun | 5 training 100 ms recorded",
}
BATCH = WorkerBatch(0, 0, 0, 0, 0, 0, 0, 8, 900_000, 3_000_000)
MS = 1_000_000


@pytest.mark.traces
@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", REAL)
def test_views_agree_on_a_real_trace(real: ReadReal, name: str) -> None:
    assert not differences(Asked(real(name)), OF_TRACE)


@pytest.mark.traces
def test_views_agree_where_gradients_are_reduced(real: ReadReal) -> None:
    """Line 82 calls `backward`: what is reduced within costs it 67.6 ms in every view."""
    ask = Asked(real(KNOWN))
    assert not differences(ask, OF_DEVICES)
    assert ask("lines").rows_by_key("line", named=True)[82][0]["device_time"] == 67_563_897


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
@pytest.mark.sweep(3)
def test_views_agree_on_a_drawing(drawing: str) -> None:
    assert not differences(Asked(sketch(drawing)), OF_TRACE)


@cache
def job(name: str) -> Job:
    late, noisy = RankDelay(1, 8_000_000, "data"), SimulatedMachine(noise=0.05, jitter=2_000)
    ran = {
        "two ranks": lambda: simulate_job(ranks=2, steps=5, late=late),
        "varying arrivals": lambda: simulate_job(ranks=4, steps=6, machine=noisy),
        "a slow device": lambda: simulate_job(
            ranks=4, steps=5, late=RankDelay(1, 8_000_000, "compute")
        ),
    }
    return read(ran[name]().traces)


@pytest.mark.parametrize("name", ["two ranks", "varying arrivals", "a slow device"])
def test_views_agree_on_a_job(name: str) -> None:
    assert not differences(Asked(job(name)), OF_RANKS)


@pytest.mark.parametrize("name", ["two ranks", "a slow device"])
@pytest.mark.sweep(1)
def test_views_agree_on_each_rank_of_a_job(name: str) -> None:
    for trace in job(name).traces.values():
        assert not differences(Asked(trace), OF_TRACE)


@pytest.mark.parametrize("drawing", RUNS.values(), ids=RUNS)
def test_views_agree_on_a_run(drawing: str) -> None:
    assert not differences(Asked(sketch(drawing)), OF_RUNS)


def times_of_worker(worker: int, batches: int, *, is_collation_known: bool) -> WorkerTimes:
    """A worker whose batches take a little longer each, as it measures itself."""
    times, now = WorkerTimes(), worker * MS
    for number in range(batches):
        started = now + (2 + worker) * MS
        collating = started + (7 + number) * MS
        made, put = collating + 3 * MS, collating + 5 * MS
        times.add_batch(
            BATCH._replace(
                number=number,
                requested=now,
                started=started,
                collating=collating if is_collation_known else None,
                made=made,
                put=put,
            )
        )
        now = put
    return times


def facts_of_workers(workers: list[WorkerTimes]) -> dict[str, Any]:
    """What a trace holds of the workers of one DataLoader: all sums but of each first batch."""
    sums = [one.rest if one.rest.batches else one.first for one in workers]
    rest = dict.fromkeys(("threads", "lived", "serialising", "sending", "first_batch"), 0)
    processes = [
        {**own.as_json(), **rest, "loader": 0, "worker": number} for number, own in enumerate(sums)
    ]
    batches: dict[str, list[int | None]] = {}
    for number, one in enumerate(workers):
        for batch in one.recent:
            row = {
                **{name: getattr(batch, name) for name in ("made", "put", "cpu", "samples")},
                **dict.fromkeys(("taken", "ready")),
                "loader": 0,
                "worker": number,
                "index": batch.number,
                "waited": batch.started - batch.requested,
                "begun": batch.started,
                "joined": batch.collating,
                "longest": batch.longest,
            }
            for name, value in row.items():
                batches.setdefault(name, []).append(value)
    lines = {
        "process": [0, 0],
        "part": [0, 0],
        "file": [0, 0],
        "line": [3, 4],
        "function": [0, 0],
        "own": [1, 1],
        "self": [5 * MS, 2 * MS],
        "total": [5 * MS, 7 * MS],
        "seen": [5, 2],
        "files": ["data.py"],
        "functions": ["load"],
    }
    for process in processes:
        del process["lines"]
    return {
        "clock": {"zero_ns": 0, "error_ns": 0},
        "loaders": [{"dataset": "Images", "workers": len(workers), "prefetch_factor": 2}],
        "processes": processes,
        "lines": lines,
        "batches": batches,
    }


@pytest.mark.parametrize("is_collation_known", [True, False])
@pytest.mark.parametrize("batches", [1, 2, 9])
def test_views_agree_on_workers(batches: int, *, is_collation_known: bool) -> None:
    workers = [
        times_of_worker(number, batches, is_collation_known=is_collation_known)
        for number in range(3)
    ]
    told = {"workers": facts_of_workers(workers)}
    trace = replace(sketch("cpu 1 | aa b"), metadata={"selftime": told}, origin=0)
    assert trace.view("worker_batches").height == 3 * batches
    assert not differences(Asked(trace), OF_WORKERS)
