"""Real jobs of Gloo processes that hang: what their dumps and ledgers tell."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from selftime.analysis.hang import Hang, Verdict, hang
from selftime.flight_recorder import Place

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.sweep]

LIMIT_S: Final = 180

PROGRAM: Final = '''
import json, os, sys, threading, time
from pathlib import Path
import torch, torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

out, case = Path(sys.argv[1]), sys.argv[2]
Path(out / f"process_{os.getpid()}").touch()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def write_dump(calls, opened):
    """Writes the dump once as many calls are recorded, and as many of them have not ended."""
    while True:
        entries = json.loads(_dump_fr_trace_json(True, False)).get("entries", [])
        if (len(entries), sum(not entry["retired"] for entry in entries)) == (calls, opened):
            break
        time.sleep(0.05)
    made = out / f"making_{rank}"
    made.write_bytes(_dump_fr_trace(True, True, False))
    made.rename(out / f"nccl_trace_rank_{rank}")

def stand():
    time.sleep(1000)

def expect(calls, opened):
    threading.Thread(target=write_dump, args=(calls, opened), daemon=True).start()

dist.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=world)
pair = dist.new_group([0, 1], group_desc="pair")
tensor = torch.ones(4)
calls = int(os.environ["CALLS"])
for _ in range(calls):
    dist.all_reduce(tensor)
    time.sleep(0.01 if calls > 40 else 0)
last = rank == world - 1
if case == "evaluates":
    expect(calls if last else calls + 1, 0 if last else 1)
    if last:
        stand()
    dist.all_reduce(tensor)  # waits
elif case == "other order":
    expect(calls + 1, 1)
    dist.broadcast(tensor, 0) if last else dist.all_reduce(tensor)
elif case == "receives":
    expect(calls if last else calls + 1, 0 if last else 1)
    if last:
        dist.recv(tensor, 0)
    dist.barrier()
elif case == "circle":
    expect(calls + 1, 1)
    dist.all_reduce(tensor, group=pair if last else None)
elif case == "dies":
    if last:
        write_dump(calls, 0)
        os._exit(1)
    try:
        dist.all_reduce(tensor)
    except RuntimeError:
        write_dump(calls + 1, 0)
stand()
'''


@contextmanager
def job(folder: Path, case: str, world: int, *command: str) -> Iterator[None]:
    """A job that runs until each rank has left a dump; all of it is killed at the end."""
    program = folder / "train.py"
    program.write_text(PROGRAM)
    out = folder / "dumps"
    out.mkdir()
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "2000", "OMP_NUM_THREADS": "1"}
    environment["CALLS"] = "300" if command else "40"  # so many are recorded, and some more
    words = [sys.executable, str(program), str(out), case]
    started = [
        subprocess.Popen(  # noqa: S603 - our own lines
            words,
            env={**environment, "RANK": str(rank), "WORLD_SIZE": str(world)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in (range(world) if not command else ())
    ]
    if command:
        started = [
            subprocess.Popen(  # noqa: S603 - our own lines
                [*command, *words[1:]],
                cwd=folder,
                env=environment,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        ]
    try:
        until = time.monotonic() + LIMIT_S
        while len(list(out.glob("nccl_trace_rank_*"))) < world:
            assert time.monotonic() < until, "the job left no dumps"
            time.sleep(0.1)
        yield
    finally:
        ranks = [int(path.name.partition("_")[2]) for path in out.glob("process_*")]
        for pid in [*(process.pid for process in started), *ranks]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in started:
            process.wait()


def judged(folder: Path, case: str, world: int) -> Hang:
    with job(folder, case, world):
        pass
    return hang(str(folder / "dumps"))


def line_of(text: str) -> int:
    return PROGRAM[: PROGRAM.index(text)].count("\n") + 1


def test_a_rank_that_does_something_else(tmp_path: Path) -> None:
    found = judged(tmp_path, "evaluates", 3)
    [cause] = found.causes
    assert (cause.kind.value, cause.sequence, cause.ranks, cause.waiting) == (
        *("missing", 41),
        *((2,), (0, 1)),
    )
    call = found.ranks[0].open_call
    assert call is not None
    assert call.place == Place(
        str(tmp_path / "train.py"), line_of("dist.all_reduce(tensor)  # waits"), "<module>"
    )


def test_ranks_in_another_order(tmp_path: Path) -> None:
    [cause] = judged(tmp_path, "other order", 2).causes
    assert (cause.kind.value, cause.sequence, cause.waiting) == ("operation", 41, (0, 1))
    assert sorted(variant.call.operation for variant in cause.variants) == [
        "all_reduce",
        "broadcast",
    ]


def test_a_rank_that_receives_what_nobody_sends(tmp_path: Path) -> None:
    [cause] = judged(tmp_path, "receives", 2).causes
    assert (cause.kind.value, cause.operation, cause.ranks) == ("missing", "barrier", (1,))


def test_ranks_that_wait_in_two_groups(tmp_path: Path) -> None:
    found = judged(tmp_path, "circle", 2)
    labels = {one.group.label for one in (*found.causes, *found.consequences)}
    assert found.verdict in {Verdict.circle, Verdict.hang}
    assert labels >= {"default_pg"}


def test_a_rank_that_died(tmp_path: Path) -> None:
    found = judged(tmp_path, "dies", 2)
    [cause] = found.causes
    assert found.verdict is Verdict.unknown
    assert (cause.kind.value, cause.sequence, cause.ranks, cause.waiting) == (
        *("missing", 41),
        *((1,), ()),
    )


def test_the_ledger_of_a_rank_tells_where_it_is(tmp_path: Path) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    words = (*launcher, "--nproc-per-node=2")
    with job(
        tmp_path, "evaluates", 2, sys.executable, "-m", "selftime", "run", "-o", "runs", *words
    ):
        until = time.monotonic() + LIMIT_S
        seen = None
        while seen is None or seen.place is None or seen.place.function != "stand":
            assert time.monotonic() < until, "no ledger tells where rank 1 is"
            time.sleep(0.5)
            seen = hang(str(tmp_path)).ranks[1].seen
    found = hang(str(tmp_path))
    assert found.causes[0].ranks == (1,)
    assert found.ranks[1].seen is not None
    assert found.ranks[1].seen.standing_ns > 0
