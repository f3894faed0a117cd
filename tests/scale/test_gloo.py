"""A real program of two processes, one of which makes the other wait: named with its line."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from selftime.ingest.load import load
from selftime.trace import Job

pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.torch

KEPT = TemporaryDirectory()
LATE_S = 0.2
PROGRAM = f"""
import sys, time
import torch
import torch.distributed as dist

class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, number):
        if sys.argv[1] == "data" and dist.get_rank() == 1:
            time.sleep({LATE_S})  # the planted fault
        return torch.ones(64)

def prepare():
    if sys.argv[1] == "host" and dist.get_rank() == 1:
        time.sleep({LATE_S})  # the planted fault

def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 64))
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in torch.utils.data.DataLoader(Batches(), batch_size=1):
        prepare()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()

main()
"""
LINES = PROGRAM.splitlines()


@cache
def recorded(cause: str) -> Path:
    """The folder of the traces of both ranks; it is there until the tests end."""
    folder = Path(KEPT.name) / cause
    folder.mkdir()
    program = folder / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ours = ["-m", "selftime", "run", "--quiet", "--steps", "9", "-o", str(folder / "runs")]
    subprocess.run(  # noqa: S603 - our own interpreter and program
        [*launch, *ours, str(program), cause],
        check=True,
        timeout=300,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return folder / "runs"


@pytest.mark.parametrize(("cause", "function"), [("host", "prepare"), ("data", "__getitem__")])
@pytest.mark.timed
def test_the_rank_that_makes_the_other_wait(cause: str, function: str) -> None:
    job = load(recorded(cause))
    assert isinstance(job, Job)
    assert not job.notes
    [found] = job.view("stragglers").filter("straggler").to_dicts()
    assert (found["rank"], found["cause"]) == (1, cause)
    assert found["excess"] == pytest.approx(LATE_S * 1e9, rel=0.25)
    assert Path(found["file"]).name == "train.py"
    assert found["function"] == function
    defined = next(n for n, line in enumerate(LINES, 1) if f"def {function}(" in line)
    planted = next(n for n, line in enumerate(LINES[defined:], defined + 1) if "planted" in line)
    assert found["line"] in (defined, planted)
    [row] = job.view("collectives").to_dicts()
    assert (row["collective"], row["group_size"], row["last"]) == ("allreduce", 2, "rank 1")
    assert row["bytes"] == row["count"] * 4 * sum([64 * 256, 256, 256 * 64, 64])
    assert row["skew"] > LATE_S * 1e9 / 2


@pytest.mark.timed
def test_advice_for_the_folder_names_it_first() -> None:
    folder = str(recorded("host"))
    command = [sys.executable, "-m", "selftime", "advise", folder, "--format", "json"]
    said = subprocess.run(  # noqa: S603 - likewise
        command, check=True, capture_output=True, timeout=120
    )
    advice = json.loads(said.stdout)
    first = advice["findings"][0]
    assert first["rule"] == "slow_rank"
    assert first["title"].startswith("`rank 1` makes the other one wait")
    assert first["where"]["function"] == "prepare"
    assert first["saving"]["estimate_ms"] == pytest.approx(LATE_S * 1e3, rel=0.3)
