"""Measures and records on a machine with a GPU what no other machine can.

    python scripts/gpu_truth.py -o FOLDER [--minutes 10] [--dry-run] [ENTRY ...]

Runs the tests marked `gpu`, the programs in `examples/`, and the entries of the corpus that use a
GPU, bad and good, timed and then recorded. Each entry's folder holds its traces and a `meta.toml`
with what was measured. What does not fit into the time is left out, and named. With `--dry-run`
everything runs on a CPU at sizes that only try it.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "corpus")]

import torch  # noqa: E402 - found in the repository, installed or not
from entries import Entry, Order, Sizes, entries, entry  # noqa: E402 - likewise
from measuring import Gain, Pair, Runner, measure, runner  # noqa: E402 - likewise

import selftime  # noqa: E402 - likewise
from selftime.advice import advise  # noqa: E402 - likewise

__all__ = ["main"]

LARGEST: Final = 300_000
"""Bytes of a trace that is kept: small enough for a repository."""
DETAILS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"active": 3},
    {"active": 2},
    {"active": 2, "with_stack": False},
)
"""What is recorded, and less of it until the trace is small enough."""
RUNS: Final = 2
"""A machine of one's own is quiet, and each run sets the device up anew."""
LONGEST_TEST_S: Final = 120
EXAMPLE_STEPS: Final = 60
TRIAL_STEPS: Final = 20


@dataclass
class Truth:
    """The folder that is being filled, and the time that is left."""

    folder: Path
    deadline: float
    is_trial: bool
    left_out: dict[str, str] = field(default_factory=dict)
    slowest: float = 0.0

    def attempt(self, name: str, do: Callable[[], None]) -> None:
        """Do it if the slowest so far would still end in time; what fails is told, not fatal."""
        if monotonic() + self.slowest > self.deadline:
            self.left_out[name] = "no time was left"
            return
        begin = monotonic()
        try:
            do()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one program is not the others
            self.left_out[name] = f"{type(error).__name__}: {error}"
        took = monotonic() - begin
        self.slowest = max(self.slowest, took)
        print(f"{name}: {self.left_out.get(name, 'done')} ({took:.1f} s)", flush=True)

    @property
    def sizes(self) -> Sizes:
        return "dry" if self.is_trial else "full"

    @property
    def seconds_left(self) -> float:
        return max(1.0, self.deadline - monotonic())


def main() -> None:
    options = asked()
    if not torch.cuda.is_available() and not options.dry_run:
        raise SystemExit("PyTorch finds no GPU here; `--dry-run` tries everything on the CPU")
    options.output.mkdir(parents=True, exist_ok=True)
    truth = Truth(options.output, monotonic() + 60 * options.minutes, options.dry_run)
    wanted = [entry(name) for name in options.entries] or in_order()
    truth.attempt("tests", partial(tests, truth))
    for folder in () if options.entries else sorted((ROOT / "examples").iterdir()):
        for script in sorted(folder.glob("*.py")) if folder.is_dir() else ():
            if is_program(script):
                name = f"{folder.name}/{script.stem}"
                truth.attempt(name, partial(example, truth, script))
    with runner() as run:
        for about in wanted:
            truth.attempt(about.name, partial(one, truth, run, about))
    told = {"machine": machine(), "left_out": truth.left_out}
    (truth.folder / "summary.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for name, why in truth.left_out.items():
        print(f"left out: {name} ({why})", file=sys.stderr)


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("entries", nargs="*", help="entries of the corpus; all that use a GPU")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to fill")
    parser.add_argument("--minutes", type=float, default=9.5, help="when to stop beginning more")
    parser.add_argument("--dry-run", action="store_true", help="try it all on a CPU")
    return parser.parse_args()


def in_order() -> list[Entry]:
    """First what no CPU can measure."""
    usable = [about for about in entries() if "gpu" in about.device]
    return sorted(usable, key=lambda about: about.device != "gpu")


def one(truth: Truth, run: Runner, about: Entry) -> None:
    """Times both programs of an entry, records them, and asks the advice about the bad one."""
    folder = truth.folder / about.name
    folder.mkdir(exist_ok=True)
    pair = measure(run, about, 0, 1 if truth.is_trial else RUNS, sizes=truth.sizes)
    (folder / "meta.toml").write_text("\n".join(meta(truth, about, pair)) + "\n", encoding="utf-8")
    traces = {which: record(truth, run, about, which) for which in ("bad", *about.twins)}
    if traces["bad"] is not None:
        trace = selftime.load(traces["bad"], cache=False)
        if isinstance(trace, selftime.Trace):
            (folder / "advice.json").write_text(advise(trace).to_json() + "\n", encoding="utf-8")


def record(truth: Truth, run: Runner, about: Entry, which: str) -> Path | None:
    """The trace with as much detail as the largest that is kept allows."""
    kept = truth.folder / about.name / f"{which}.json.gz"
    for detail in DETAILS:
        order = Order(about.name, which, 0, record=str(kept.parent), sizes=truth.sizes, **detail)
        found = Path(run(order)["trace"])
        if found.stat().st_size <= LARGEST:
            return found.replace(kept)
    size = found.stat().st_size
    found.unlink()
    truth.left_out[f"{about.name}/{which}.json.gz"] = f"{size} bytes are more than {LARGEST}"
    return None


def meta(truth: Truth, about: Entry, pair: Pair) -> Iterator[str]:
    """What was measured, as TOML."""
    gpu = torch.cuda.is_available()
    yield f"entry = {json.dumps(about.name)}"
    yield f"labels = {json.dumps(list(about.labels(gpu=True)))}"
    if pair.is_same is not None:
        yield f"same = {json.dumps(pair.is_same)}"
    for name, value in machine().items():
        yield f"{name} = {json.dumps(value)}"
    yield "\n[knobs]"
    for name, size in about.knobs(0, gpu=gpu, sizes=truth.sizes).items():
        yield f"{name} = {size}"
    yield f"\n[step_ms]\nbad = {[round(time / 1e6, 6) for time in pair.bad]}"
    for twin, times in pair.twins.items():
        yield f"{twin} = {[round(time / 1e6, 6) for time in times]}"
    for twin in pair.twins:
        yield from saved(twin, pair.gain(twin))


def saved(twin: str, gain: Gain) -> Iterator[str]:
    yield f"\n[saved.{twin}]"
    for name in ("saved_ms", "low_ms", "high_ms", "speedup"):
        yield f"{name} = {getattr(gain, name):.6f}"


def machine() -> dict[str, Any]:
    gpu = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if gpu else "none",
        "torch": torch.__version__,
        "cuda": torch.version.cuda or torch.version.hip or "none",
        "python": platform.python_version(),
        "cores": os.cpu_count() or 0,
    }


def is_program(script: Path) -> bool:
    return '__name__ == "__main__"' in script.read_text(encoding="utf-8")


def example(truth: Truth, script: Path) -> None:
    """`selftime run` on a program that somebody wrote without us."""
    folder = truth.folder / script.parent.name
    folder.mkdir(exist_ok=True)
    runs = folder / f"{script.stem}-runs"
    arguments = ("--steps", str(TRIAL_STEPS if truth.is_trial else EXAMPLE_STEPS))
    for steps in ("6", "3", "2"):
        shutil.rmtree(runs, ignore_errors=True)
        command = ["-m", "selftime", "run", "-o", str(runs), "--steps", steps, str(script)]
        said = called(truth, *command, *arguments)
        (folder / f"{script.stem}.txt").write_text(said, encoding="utf-8")
        traces = sorted(p for p in runs.glob("*.json.gz") if ".slow-step." not in p.name)
        if traces and all(trace.stat().st_size <= LARGEST for trace in traces):
            for number, trace in enumerate(traces):
                trace.replace(folder / f"{script.stem}{number or ''}.json.gz")
            shutil.rmtree(runs)
            return
    sizes = [trace.stat().st_size for trace in traces]
    shutil.rmtree(runs, ignore_errors=True)
    raise ValueError(f"its traces of {sizes} bytes are none, or more than {LARGEST}")


def tests(truth: Truth) -> None:
    """The tests that need a GPU; on a machine without one they are skipped."""
    files = [
        str(path.relative_to(ROOT))
        for folder in ("tests", "src")
        for path in sorted((ROOT / folder).rglob("*test*.py"))
        if "mark.gpu" in path.read_text(encoding="utf-8")
    ]
    if not files:
        return
    said = called(truth, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", *files)
    (truth.folder / "tests.txt").write_text(said, encoding="utf-8")


def called(truth: Truth, *arguments: str) -> str:
    """What a command said; its failure is the attempt's."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=min(truth.seconds_left, LONGEST_TEST_S),
        check=False,
    )
    if done.returncode:
        raise ValueError(f"exit status {done.returncode}: {done.stdout.strip()[-1_000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
