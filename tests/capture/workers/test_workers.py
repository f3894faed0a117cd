"""What workers of DataLoaders record of themselves, from real loaders by fork and by spawn."""

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.preloaded import Preloaded

from selftime.advice import advise
from selftime.ingest.load import load
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]

PROGRAM = """
import json, sys, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data import dataloader
from torch.utils.data._utils import pin_memory, worker
from selftime.capture.workers.record import WorkerRecord, current_worker_facts

class Slow(Dataset):
    def __len__(self):
        return 48
    def __getitem__(self, index):
        if index == 40 and FAILS:
            raise KeyError("no such sample")
        time.sleep(0.01)  # the slow line
        return torch.full((4,), float(index))

class Stream(IterableDataset):
    def __iter__(self):
        for index in range(24):
            time.sleep(0.01)  # the slow line
            yield torch.full((4,), float(index))

class Whole(Slow):
    def __getitems__(self, indices):
        return [self[index] for index in indices]

def join(samples):
    time.sleep(0.08)  # the slow collation
    return torch.stack(samples)

FAILS = False

def consumed(loader, epochs):
    return [batch.sum().item() for _ in range(epochs) for batch in loader]

def main():
    theirs = worker._worker_loop, pin_memory._pin_memory_loop
    record = WorkerRecord()
    record.start()
    record.begin()
    {body}
    record.end()
    Path("facts.json").write_text(json.dumps(current_worker_facts()))
    folder = Path(record._loop.folder)
    record.stop()
    assert not folder.exists()
    assert (worker._worker_loop, pin_memory._pin_memory_loop) == theirs
    kind = dataloader._MultiProcessingDataLoaderIter
    assert {{"_workers", "_rcvd_idx"}}.isdisjoint(vars(kind))

if __name__ == "__main__":
    main()
"""


def run(
    preloaded: Preloaded, folder: Path, body: str, *, fails: bool = False
) -> tuple[str, dict[str, Any]]:
    """What the program prints, and its facts."""
    text = PROGRAM.format(body=textwrap.indent(body, "    ").strip())
    (folder / "program.py").write_text(text.replace("FAILS = False", f"FAILS = {fails}"))
    done = preloaded.run(["program.py"], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "facts.json").read_text())


def line_of(folder: Path, mark: str, nth: int = 0) -> int:
    lines = (folder / "program.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if mark in line][nth]


def heaviest(told: dict[str, Any], part: int) -> tuple[str, int, bool]:
    """File, line and whether it is the program's own, of the line with most time in a part."""
    lines = told["lines"]
    rows = zip(*(lines[n] for n in ("self", "part", "file", "line", "own")), strict=True)
    _, _, file, line, own = max(row for row in rows if row[1] == part)
    return Path(lines["files"][file]).name, line, bool(own)


LOADER = """
loader = DataLoader({data}, batch_size=4, num_workers=2, multiprocessing_context="{start}"{more})
print(consumed(loader, {epochs}))
time.sleep(1)  # workers that live write what they counted
"""


@pytest.mark.parametrize(
    ("start", "more"),
    [("fork", ""), ("fork", ", persistent_workers=True"), ("spawn", ", persistent_workers=True")],
)
@pytest.mark.sweep(1)
def test_the_slow_line_of_a_sample_is_named(
    preloaded: Preloaded, tmp_path: Path, start: str, more: str
) -> None:
    body = LOADER.format(data="Slow()", start=start, more=more, epochs=2)
    printed, told = run(preloaded, tmp_path, body)

    assert json.loads(printed) == [16.0 * (4 * k + 1.5) for _ in range(2) for k in range(12)]
    assert heaviest(told, 0) == ("program.py", line_of(tmp_path, "the slow line"), True)
    persistent = bool(more)
    (loader,) = told["loaders"]
    assert (loader["workers"], loader["dataset"], loader["batch_size"]) == (2, "Slow", 4)
    assert (loader["persistent_workers"], loader["start_method"]) == (persistent, start)
    assert [p["worker"] for p in told["processes"]] == [0, 1]
    # Each process made six batches an epoch; the first of each is told apart.
    kept = 11 if persistent else 10
    assert [p["batches"] for p in told["processes"]] == [kept, kept]
    assert [p["samples"] for p in told["processes"]] == [4 * kept, 4 * kept]
    for process in told["processes"]:
        assert process["making"] >= 4 * kept * 10_000_000
        assert process["longest"] >= 10_000_000
        assert process["cpu"] < process["making"]
        assert process["threads"] == 1


def test_every_batch_is_told_in_order_and_when_it_was_taken(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    _, told = run(
        preloaded, tmp_path, LOADER.format(data="Slow()", start="fork", more="", epochs=1)
    )
    batches = told["batches"]

    assert sorted(batches["index"]) == list(range(12))
    names = ("begun", "joined", "made", "put")
    for begun, joined, made, put in zip(*(batches[name] for name in names), strict=True):
        assert begun <= joined <= made <= put
    by_index = sorted(zip(batches["index"], batches["taken"], batches["made"], strict=True))
    taken = [time for _, time, _ in by_index]
    assert taken == sorted(taken)
    assert all(made < time for _, time, made in by_index)
    assert all(0 <= ready <= 4 for ready in batches["ready"])
    assert 0 < told["clock"]["error_ns"] < 1_000_000_000  # as long as the process may have to wait


@pytest.mark.sweep
def test_a_stream_and_a_data_set_of_whole_batches_are_told(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    body = LOADER.format(data="Stream()", start="fork", more="", epochs=1)
    body += LOADER.format(data="Whole()", start="fork", more="", epochs=1)
    _, told = run(preloaded, tmp_path, body)

    assert [loader["dataset"] for loader in told["loaders"]] == ["Stream", "Whole"]
    stream, whole = ([p for p in told["processes"] if p["loader"] == number] for number in (0, 1))
    assert [p["samples"] for p in stream] == [20, 20]  # six batches each, but for the first
    assert [p["samples"] for p in whole] == [20, 20]
    assert all(p["longest"] is None for p in whole), "only the data set sees its samples"
    assert all(p["longest"] >= 10_000_000 for p in stream)


@pytest.mark.sweep
def test_slow_collation_is_told_apart(preloaded: Preloaded, tmp_path: Path) -> None:
    more = ", collate_fn=join"
    _, told = run(
        preloaded, tmp_path, LOADER.format(data="Slow()", start="fork", more=more, epochs=1)
    )

    assert heaviest(told, 1) == ("program.py", line_of(tmp_path, "the slow collation"), True)
    for process in told["processes"]:
        assert process["collating"] >= process["batches"] * 80_000_000


def test_an_error_in_a_worker_has_the_traceback_that_it_has_without_us(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    body = """
def fail():
    try:
        consumed(DataLoader(Slow(), batch_size=4, num_workers=1), 1)
    except KeyError as error:
        return str(error)
ours = fail()
record.release()
plain = fail()
assert "program.py" in ours
assert ours == plain, (ours, plain)
"""
    _, told = run(preloaded, tmp_path, body, fails=True)
    assert told["processes"][0]["failed"] == 1


def test_without_workers_nothing_is_told(preloaded: Preloaded, tmp_path: Path) -> None:
    body = """
consumed(DataLoader(Slow(), batch_size=4), 1)
assert current_worker_facts() is None
consumed(DataLoader(Slow(), batch_size=4, num_workers=1), 1)
"""
    _, told = run(preloaded, tmp_path, body)
    assert len(told["loaders"]) == 1


def trace_of(record: "Runner") -> Trace:
    """What was recorded, as it is read."""
    (path,) = record.folder.glob("runs/*.json.gz")
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


TRAINING = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.ones(8)

def main():
    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(Slow(), batch_size=4, num_workers=1, multiprocessing_context="{start}")
    for step, batch in zip(range(24), loader):
        net(batch).sum().backward()
        optimizer.step()
    print("done")

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.sweep(1)
def test_advice_names_the_line_in_the_worker(record: "Runner", start: str) -> None:
    outcome = record(TRAINING.format(start=start), workers=True, warmup=3)
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "done\n"

    trace = trace_of(record)
    assert trace.view("workers")["line"][0] == 10
    (finding,) = [f for f in advise(trace).findings if f.rule == "slow_input"]
    assert Path(finding.where.file or "").name == "program.py"
    assert (finding.where.line, finding.where.how) == (10, "stack")
    assert "wait for storage" in finding.fix.text


@pytest.mark.sweep
def test_without_the_flag_the_advice_says_it(record: "Runner") -> None:
    outcome = record(TRAINING.format(start="fork"), warmup=3)
    assert outcome.facts["workers"] is None

    (finding,) = [f for f in advise(trace_of(record)).findings if f.rule == "slow_input"]
    assert "selftime run --workers" in finding.fix.text
    assert finding.where.line != 10


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.sweep(1)
def test_a_worker_that_works_long_with_torch_is_not_recorded(record: "Runner", start: str) -> None:
    """Its work has no steps, as that of a program of which a part is recorded then."""
    program = "from selftime.capture.steps import unrepeated_work\n"
    program += "unrepeated_work.MIN_WORK_NS = 50_000_000\n"
    outcome = record(program + TRAINING.format(start=start), workers=True, warmup=3)

    assert outcome.status == 0
    assert len(list(record.folder.glob("runs/*.json.gz"))) == 1
