"""What a process does before it imports torch is in its ledger, if it makes steps."""

import gc
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from selftime.analysis.run.parts import run_parts
from selftime.capture.program.early_log import EarlyPlace, EarlyTimes
from selftime.capture.program.startup.selftime_early_log import EarlyLog
from selftime.ingest.ledger import read_ledger

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

TRAIN = """
import time
import slow_library

time.sleep(0.3)
import torch

net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(30):
    net(torch.randn(4, 8)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

SPAWNED = """
import multiprocessing
import runpy

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    child = context.Process(target=runpy.run_path, args=("train.py",))
    child.start()
    child.join()
    print(child.exitcode)
"""


def wait_for(log: EarlyLog, function: str) -> None:
    while not any(place[2] == function and all(known) for place, known in list(log.places.items())):
        time.sleep(0.005)


def test_it_knows_the_place_and_the_collections() -> None:
    log = EarlyLog()
    log.start()
    gc.collect()
    wait_for(log, "wait_for")
    log.stop()
    [(place, known)] = [(p, k) for p, k in log.places.items() if p[2] == "wait_for"]
    assert place[0] == __file__
    assert known[0] > 0
    assert known[1] > 0
    assert len(log.starts) == len(log.stops) >= 1
    assert log.callback not in gc.callbacks


def test_its_thread_is_not_listed_and_ends() -> None:
    log = EarlyLog()
    known = threading.active_count()
    log.start()
    assert threading.active_count() == known
    log.stop_reading()
    assert log._has_ended.acquire(blocking=False), "the thread still runs"
    log.stop()


def test_a_forked_process_begins_anew() -> None:
    log = EarlyLog()
    log.start()
    wait_for(log, "wait_for")
    log.stop_reading()
    began = log.began_ns
    log.begin_anew()
    assert log.began_ns > began
    assert not any(place[2] == "test_it_knows" for place in log.places)
    log.stop()


@pytest.mark.torch
@pytest.mark.parametrize("how", ["command", "spawn", "fork"])
@pytest.mark.sweep(1)
def test_the_ledger_of_a_child_begins_with_its_process(
    record_from_the_start: "Runner", how: str
) -> None:
    record = record_from_the_start
    record.write(TRAIN, "train.py")
    record.write("import time\ntime.sleep(0.4)\n", "site-packages/slow_library.py")
    path = f"import sys\nsys.path.insert(0, {str(record.folder / 'site-packages')!r})\n"
    record.write(path + TRAIN, "train.py")
    if how == "command":
        process = record.start("script", sys.executable, "train.py")
    else:
        process = record.start("script", record.write(SPAWNED.format(method=how)))
    _, stderr = process.communicate(timeout=120)
    assert process.wait() == 0, stderr
    runs = [
        read_ledger(path.read_bytes(), str(path)) for path in record.folder.glob("runs/*.jsonl")
    ]
    [run] = [run for run in runs if run.segments["kind"].count() >= 29]
    parts = run_parts(run)
    imports = (
        parts.filter(pl.col("part") == "imports").group_by("what").agg(pl.col("duration").sum())
    )
    times = dict(imports.rows())

    assert parts["duration"].sum() == run.wall_ns
    assert times["slow_library"] > 300_000_000
    assert parts.filter(pl.col("part") == "data")["duration"].sum() > 200_000_000
    if how != "fork":  # else the parent has imported it
        assert times["torch"] > 300_000_000


def test_times_before_selftime_are_taken_over(tmp_path: Path) -> None:
    from selftime.capture.ledger.run_ledger import RunLedger  # noqa: PLC0415 - its subject

    run = RunLedger(tmp_path, process_start=500)
    places = (
        EarlyPlace("/job/a.py", 3, "<module>", "numpy.core", None, 700, 2),
        EarlyPlace(None, None, None, None, None, 300, 1),
    )
    run.take_over(EarlyTimes(1_000, 3_000, places, 50))
    run.ledger.is_written = True
    run.finish(None)
    [path] = tmp_path.glob("*.jsonl")
    found = read_ledger(path.read_bytes(), str(path))

    assert found.startup_ns == 500
    assert found.segments["garbage_collection"].to_list() == [50]
    assert found.segments["recording"][0] > 0
    assert found.readings.select("part", "what", "line", "duration").rows() == [
        ("imports", "numpy", 3, 700),
        ("program", None, None, 300),
    ]
