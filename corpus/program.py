"""Runs programs of the corpus, each run in a process of its own.

    python corpus/program.py < ORDERS

An order is one line of JSON; its answer is one line of JSON. This process imports PyTorch once and
forks for each order, so that a run costs no import and still shares nothing with another run.
"""

import faulthandler
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final, NoReturn

import torch
import torch._dynamo  # optimizers import it at their first use, a second and more
from entries import Order, entry

from selftime.capture import Profile, schedule
from selftime.capture.recorder.times_recording import TimesRecording

__all__ = ["build", "outputs"]

WARM_UP: Final = 5
UNRECORDED: Final = 7
"""Steps before the recorder, which tell by how much it slows the others."""
LONG_ENOUGH_NS: Final = 600_000_000
"""A timed run lasts this long: far above a clock's and a scheduler's grain."""
FEWEST, MOST = 8, 200
"""Steps of a timed run, whatever one takes."""
LIMIT_S: Final = 120
RANKS: Final = 2
FIRST_STEPS: Final = 3
"""Steps whose outputs are compared: later ones differ by what rounding grows into."""
VALUES: Final = 2_048

Step = Callable[[], Any]


def main() -> None:
    multiprocessing.set_start_method("fork")  # else workers import programs, and cannot find them
    for line in sys.stdin:
        order = Order(**json.loads(line))
        folder = Path(tempfile.mkdtemp(prefix="corpus-"))  # a forked process must not clean it up
        ranks = RANKS if entry(order.entry).device == "2proc" else 1
        started: list[int] = []
        for rank in range(ranks):
            pid = os.fork()
            if pid == 0:
                end(perform, order, folder, rank, ranks)
            started.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]
        print(json.dumps(answer(folder, codes)), flush=True)
        shutil.rmtree(folder)


def answer(folder: Path, codes: list[int]) -> dict[str, Any]:
    if any(codes):
        said = [path.read_text(errors="replace")[-2_000:] for path in sorted(folder.glob("*.txt"))]
        return {"error": f"exit status {codes}: {' '.join(said).strip()}"}
    return dict(json.loads((folder / "0.json").read_text()))


def end(run: Callable[..., Step], *told: Any) -> NoReturn:
    """Run, and leave at once: to take the interpreter down takes longer than most runs."""
    held: list[Step] = []  # what a program holds is never taken down: process groups hang in that
    try:
        held.append(run(*told))
    except BaseException:  # noqa: BLE001 - whatever a program raises is told by whoever asked
        traceback.print_exc()
    finally:
        for worker in multiprocessing.active_children():
            worker.terminate()
            worker.join()
        sys.stderr.flush()
        os._exit(0 if held else 1)


def perform(order: Order, folder: Path, rank: int, ranks: int) -> Step:
    """In the process of the run: whatever the program prints goes to a file."""
    quiet = os.open(folder / f"{rank}.txt", os.O_WRONLY | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for new, old in ((nothing, 0), (quiet, 1), (quiet, 2)):
        os.dup2(new, old)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    if ranks > 1:
        join(folder, rank, ranks)
    step = build(order)
    found = record(step, order, rank) if order.record else timed(step, order)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    if ranks > 1:
        torch.distributed.barrier()
    return step


def join(folder: Path, rank: int, ranks: int) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks
    )


def build(order: Order) -> Step:
    """The program's step, with the weights and data of the seed."""
    about = entry(order.entry)
    path = about.program(order.which)
    # Imported by its name, as a program of its own folder: worker processes look classes up by it.
    spec = spec_from_file_location(f"{order.entry}_{order.which}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"`{path}` is no program of the corpus; see corpus/README.md")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    gpu = "gpu" in about.device and torch.cuda.is_available()
    random.seed(order.seed)
    torch.manual_seed(order.seed)
    knobs: dict[str, Any] = dict(about.knobs(order.seed, gpu=gpu, sizes=order.sizes))
    step: Step = module.build(knobs | {"device": "cuda" if gpu else "cpu"})
    return step


def timed(step: Step, order: Order) -> dict[str, Any]:
    """The mean of a step, in ns, and what the first ones gave."""
    first = [outputs(step()) for _ in range(FIRST_STEPS)]
    begin = perf_counter_ns()
    for _ in range(WARM_UP - FIRST_STEPS):
        step()
    settle()
    once = max(1, (perf_counter_ns() - begin) // (WARM_UP - FIRST_STEPS))
    count = order.steps or entry(order.entry).steps or min(MOST, LONG_ENOUGH_NS // once)
    count = agreed(max(FEWEST, count) if order.steps is None else count)
    begin = perf_counter_ns()
    for _ in range(count):
        step()
    settle()
    return {"step_ns": (perf_counter_ns() - begin) / count, "steps": count, "outputs": first}


def settle() -> None:
    """Work that is still on the device belongs to the steps that issued it."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def agreed(count: int) -> int:
    """Ranks that do not run the same number of steps wait for each other for ever."""
    if not torch.distributed.is_initialized():
        return count
    told = torch.tensor(count)
    torch.distributed.broadcast(told, 0)
    return int(told)


def outputs(value: Any) -> list[float]:
    """The numbers in what a step returned, the first of each tensor; none where it gave nothing."""
    if isinstance(value, torch.Tensor):
        return [float(v) for v in value.detach().flatten()[:VALUES].double().cpu()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for part in value for number in outputs(part)]
    return [float(value)] if isinstance(value, int | float) else []


def record(step: Step, order: Order, rank: int) -> dict[str, Any]:
    """Records steps as `selftime run` does: in detail, and then their times alone."""
    for _ in range(WARM_UP):
        step()
    with Profile(
        schedule=schedule(wait=UNRECORDED, warmup=1, active=order.active, repeat=1),
        record_shapes=True,
        with_stack=order.with_stack,
        profile_memory=order.with_stack,
    ) as prof:
        for _ in range(UNRECORDED + 1 + order.active):
            step()
            prof.step()
    step()  # between two recordings
    times = TimesRecording(order.active, has_frames=order.with_stack)
    if entry(order.entry).records_times and times.start():
        for _ in range(1 + order.active):
            step()
            times.end_step()
        times.stop()
        prof.recorded_times = times
    path = Path(order.record or ".") / f"rank{rank}.json.gz"
    prof.export_chrome_trace(str(path))
    return {"trace": str(path)}


if __name__ == "__main__":
    main()
