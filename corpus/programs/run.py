"""Scores the recorder on programs that differ as people's programs do.

python -m corpus.programs.run [NAME ...] [--format json] [--once] [--runs DIR]

Each program runs twice under `selftime run`, in a copy of `scripts/`: as it is, and with a clock
of our own in it (`clock.py`); with `--once` all is asked of the run with the clock, which takes
half the time. One thread for operators is set. Three questions are asked of each program:

1. **answered**: is there a trace, or a ledger with steps? If not, which sentence was printed? Of a
   program without steps the answer is the account of the run, without `nothing was recorded`.
2. **steps**: does the ledger of the run without the clock have the declared number of steps of each
   kind, within 1, no other kind, and in as many processes as make steps? In the run with the clock,
   does one step end in each iteration of the declared loop, but for two at most? Where the ledger
   states the loop's line, is it the declared one? What selftime must say of a program that ended
   before its first step counts here, too.
3. **parts**: does each part of the ledger differ from the same part by the clock by 2 % of the wall
   time at most? The wall time is the parent's, from right before the process is started to the
   program's last statement; that of the ledger is its own, without recording after the last step.
   The clock's parts are the times of declared statements, of waits in `next` of the loop's
   DataLoader, of imports (calls of `__import__`), of garbage collections (`gc.callbacks`) and of
   compilations (the functions of torch that compile a frame, or a backward pass when it first
   runs). What no phase is belongs to `data` before the first step, to `end` after the last one, to
   `other` between them. Where a library has the loop, the clock sees neither its waits nor its
   evaluations: these and the steps are one. Of programs without steps all parts but imports,
   collections and `start` are one. The clock cannot see selftime at work: `recording` is the
   ledger's, and taken off the phases that it lies in. `start` is compared with the time from the
   start of the process to the first line.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from programs.clock import LIBRARY, compiled_copy, read_clock
from programs.expected import SCRIPTS, Program, program, programs
from programs.scoring import Kept, Part, kept_runs, parts, refusal, steps_fault

__all__ = ["Score", "main", "score", "summary"]

LIMIT_S: Final = 120
"""Longest time that a program may take under `selftime run`."""


@dataclass(frozen=True, slots=True)
class Score:
    """What came out of one program."""

    name: str
    refused: str | None
    """The sentence in place of an answer; None if there was one."""
    steps: str | None
    """What is wrong with the steps; None if they are right."""
    line: str
    """Whether the ledger states the loop's line."""
    parts: tuple[Part, ...]
    """Every part of every process that steps."""
    failed: str | None
    """What selftime did to the program that it must not do; None if nothing."""
    seconds: float
    """The program's wall time, in seconds."""

    @property
    def wrong_parts(self) -> list[Part]:
        return [part for part in self.parts if not part.is_right]

    @property
    def has_right_parts(self) -> bool:
        return bool(self.parts) and not self.wrong_parts


@dataclass(frozen=True, slots=True)
class _Ran:
    process: int
    spawned: int
    status: int
    said: str
    """What selftime and the program wrote to stderr."""


def main() -> None:
    options = asked()
    wanted = [program(name) for name in options.programs] or programs()
    shows = options.format == "table"
    scores = []
    for one in wanted:
        with kept_folder(options.runs, one.name) as folder:
            scores.append(score(one, folder, once=options.once))
        if shows:
            print(row(scores[-1]), flush=True)
    print("\n".join(["", *summary(scores)]) if shows else as_json(scores))


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="NAME", help="programs; all by default")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--once", action="store_true", help="run it with the clock alone")
    parser.add_argument("--runs", type=Path, help="keep what the runs leave, in this folder")
    return parser.parse_args()


class kept_folder:  # noqa: N801 - reads as a function
    """A folder for the runs of one program, kept only if `under` is given."""

    def __init__(self, under: Path | None, name: str) -> None:
        self._under, self._name = under, name

    def __enter__(self) -> Path:
        if self._under is None:
            self._path = Path(tempfile.mkdtemp(prefix="programs-"))
        else:
            self._path = self._under.absolute() / self._name
            shutil.rmtree(self._path, ignore_errors=True)
            self._path.mkdir(parents=True)
        return self._path

    def __exit__(self, *_: object) -> None:
        if self._under is None:
            shutil.rmtree(self._path, ignore_errors=True)


def score(one: Program, folder: Path, *, once: bool = False) -> Score:
    """Run the program as it is, unless `once`, and with the clock; return what came out."""
    plain, clocked, clocks = folder / "plain", folder / "clocked", folder / "clocks"
    clocks.mkdir()
    for copy in (plain, clocked):
        shutil.copytree(SCRIPTS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = compiled_copy(one, clocked)
    answers = once and not one.steps  # the account of the run is the answer
    with_clock = _run(command, clocked, clocks=clocks, is_quiet=not answers)
    kept_with_clock, seen = kept_runs(clocked / "runs"), read_clock(clocks)
    ran, kept, answered = with_clock, kept_with_clock, clocked
    if not once:
        ran = _run(one.command, plain, clocks=None, is_quiet=False)
        kept, answered = kept_runs(plain / "runs"), plain
    has_trace = any((answered / "runs").glob("*.pt.trace.json.gz"))
    refused = refusal(one, ran.said, kept, has_trace=has_trace)
    fault = None if once else steps_fault(one, ran.said, kept, {})
    if fault is None:
        fault = steps_fault(one, ran.said, kept_with_clock, seen)
        fault = f"with the clock: {fault}" if fault and not once else fault
    compared = [
        part
        for of_process in kept_with_clock[: one.processes]
        if of_process.process in seen
        for part in parts(
            one,
            of_process,
            seen[of_process.process],
            with_clock.spawned if with_clock.process in _own_or_parent(of_process) else None,
        )
    ]
    return Score(
        one.name,
        refused,
        fault if refused is None or not one.steps else "refused",
        "stated" if any(of_process.lines for of_process in kept) else "not stated",
        tuple(compared),
        _failure(one, ran) or _failure(one, with_clock),
        max((part.wall_ns for part in compared), default=0) / 1e9,
    )


def _own_or_parent(kept: Kept) -> tuple[int, int]:
    """`selftime run` runs a Python program in a child process of its own."""
    return kept.process, kept.parent


def _run(command: tuple[str, ...], folder: Path, clocks: Path | None, *, is_quiet: bool) -> _Ran:
    """Run the command under `selftime run` in the folder."""
    environment = dict(os.environ)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["OMP_NUM_THREADS"] = "1"  # else who takes a core makes other threads spin
    if clocks is not None:
        environment["PROGRAM_CLOCK"] = str(clocks)
        known = environment.get("PYTHONPATH")
        library = str(folder / LIBRARY)
        environment["PYTHONPATH"] = f"{library}{os.pathsep}{known}" if known else library
    whole = [sys.executable, "-m", "selftime", "run", "-o", "runs"]
    if is_quiet:
        whole.append("-q")  # the answer is known from the files
    spawned = perf_counter_ns()
    with (
        (folder / "stdout.txt").open("w") as stdout,
        (folder / "stderr.txt").open("w") as stderr,
        subprocess.Popen(
            [*whole, *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        ) as process,
    ):
        try:
            status = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    status = status if status >= 0 else 128 - status  # a signal, as shells tell it
    said = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
    told = {"process": process.pid, "spawned": spawned, "status": status}
    (folder / "ran.json").write_text(json.dumps(told), encoding="utf-8")
    return _Ran(process.pid, spawned, status, said)


def _failure(one: Program, ran: _Ran) -> str | None:
    if ran.status == one.status:
        return None
    last = ran.said.strip().splitlines()[-1:] or ["nothing on stderr"]
    return f"status {ran.status}, expected {one.status}: {last[0]}"


def row(score: Score) -> str:
    """One line of the table."""
    answered = "refused" if score.refused else "answered"
    steps = "steps wrong" if score.steps else "steps right"
    right = "parts right" if score.has_right_parts else "parts wrong"
    lines = [f"{score.name:28} {score.seconds:5.1f} s  {answered:9} {steps:12} {right}"]
    lines += [f"    {told}" for told in details(score)]
    return "\n".join(lines)


def details(score: Score) -> Iterator[str]:
    """What is wrong, a line each."""
    if score.failed:
        yield f"failed: {score.failed}"
    if score.refused:
        yield f"refused: {score.refused}"
    if score.steps and score.steps != "refused":
        yield f"steps: {score.steps}"
    if not score.parts:
        yield "parts: no ledger to compare"
    for part in score.wrong_parts:
        yield (
            f"parts: {part.name} {part.ledger_ns / 1e9:.2f} s, by the clock "
            f"{part.clock_ns / 1e9:.2f} s, {part.difference:+.1%} of the wall time"
        )


def summary(scores: list[Score]) -> list[str]:
    """How many programs are right in each respect."""
    count = len(scores)
    return [
        f"answered      {sum(score.refused is None for score in scores)} of {count}",
        f"steps right   {sum(score.steps is None for score in scores)} of {count}",
        f"line stated   {sum(score.line == 'stated' for score in scores)} of {count}",
        f"parts right   {sum(score.has_right_parts for score in scores)} of {count}",
        f"not harmed    {sum(score.failed is None for score in scores)} of {count}",
    ]


def as_json(scores: list[Score]) -> str:
    return json.dumps([_plain(score) for score in scores], indent=2)


def _plain(score: Score) -> dict[str, Any]:
    told = asdict(score)
    told["has_right_parts"] = score.has_right_parts
    told["parts"] = [asdict(part) | {"difference": part.difference} for part in score.parts]
    return told


if __name__ == "__main__":
    main()
