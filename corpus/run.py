"""Measures the advice on the corpus: what it finds, on which line, and what it promises.

python corpus/run.py [ENTRY ...] [--seeds N] [--runs N] [-o TABLE.md]
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from program import FOLDER, described

import selftime
from selftime.advice import advise
from selftime.advice.base import Finding

PROGRAM = Path(__file__).with_name("program.py")


@dataclass(frozen=True)
class Run:
    """One entry with the sizes of one seed."""

    entry: str
    seed: int
    labels: frozenset[str]
    forbid: frozenset[str]
    speedup: float
    low: float
    high: float
    saved_ms: float
    findings: tuple[Finding, ...]
    lines: frozenset[int]

    @property
    def found(self) -> frozenset[str]:
        return frozenset(entry for finding in self.findings for entry in finding.covers)

    @property
    def is_gain(self) -> bool:
        """Whether the repaired program is surely faster."""
        return self.low > 1

    @property
    def hits(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if self.labels & set(f.covers))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("entries", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    entries = options.entries or sorted(path.parent.name for path in FOLDER.glob("*/meta.toml"))
    runs = []
    for entry in entries:
        if described(entry)["device"] != "cpu":
            print(f"{entry}: left out, it needs a device", file=sys.stderr)
            continue
        for seed in range(options.seeds):
            runs.append(measured(entry, seed, options.runs))
            print(row(runs[-1]), flush=True)
    page = "\n".join([*table(runs), "", *summary(runs)]) + "\n"
    print(page[page.index("\n\n") :])
    if options.output is not None:
        options.output.write_text(page, encoding="utf-8")


def measured(entry: str, seed: int, runs: int) -> Run:
    """Runs in turn, so that what slows the machine slows both; then one that is recorded."""
    times: dict[str, list[float]] = {"bad": [], "good": []}
    for _ in range(runs):
        for which, found in times.items():
            steps = json.loads(called(entry, which, seed).splitlines()[-1])
            found.append(float(np.median(steps)) / 1e6)
    ratios = np.array(times["bad"]) / np.array(times["good"])
    draw = np.random.default_rng(0).choice(ratios, (2_000, ratios.size))
    low, high = np.percentile(np.median(draw, axis=1), (10, 90))
    told = described(entry)
    return Run(
        entry,
        seed,
        frozenset(told["labels"]),
        frozenset(told.get("forbid", ())),
        float(np.median(ratios)),
        float(low),
        float(high),
        float(np.median(times["bad"]) - np.median(times["good"])),
        findings(entry, seed),
        planted(entry),
    )


def called(entry: str, which: str, seed: int, *more: str) -> str:
    command = [sys.executable, str(PROGRAM), entry, which, "--seed", str(seed), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{' '.join(command)}` failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def findings(entry: str, seed: int) -> tuple[Finding, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json.gz"
        called(entry, "bad", seed, "--record", str(path))
        trace = selftime.load(path, cache=False)
    if not isinstance(trace, selftime.Trace):
        raise SystemExit(f"`{entry}` left no trace")
    return advise(trace).findings


def planted(entry: str) -> frozenset[int]:
    lines = (FOLDER / entry / "bad.py").read_text(encoding="utf-8").splitlines()
    return frozenset(number for number, line in enumerate(lines, 1) if "# planted:" in line)


def row(run: Run) -> str:
    told = ", ".join(sorted(run.found)) or "-"
    right = [f.where.line in run.lines for f in run.hits]
    line = "-" if not right else "exact" if any(right) else "no"
    promise = next((f.saving.estimate_ms for f in run.hits if f.saving.estimate_ms), None)
    said = "-" if promise is None else f"{promise:.2f}"
    return (
        f"| {run.entry} | {run.seed} | {', '.join(sorted(run.labels)) or 'control'} | {told} "
        f"| {line} | {run.speedup:.2f} ({run.low:.2f} to {run.high:.2f}) "
        f"| {run.saved_ms:.2f} | {said} |"
    )


def table(runs: list[Run]) -> list[str]:
    return [
        "| entry | seed | planted | found | line | speed-up (80 %) | saved ms | promised ms |",
        "|---|---|---|---|---|---|---|---|",
        *map(row, runs),
    ]


def summary(runs: list[Run]) -> Iterator[str]:
    faulty = [run for run in runs if run.labels]
    controls = [run for run in runs if not run.labels]
    said = sum(len(run.found) for run in runs)
    right = sum(len(run.found & run.labels) for run in runs)
    wanted = sum(len(run.labels) for run in runs)
    hits = [finding for run in faulty for finding in run.hits]
    lines = [f.where.line in run.lines for run in faulty for f in run.hits[:1]]
    top = [bool(run.findings) and run.findings[0] in run.hits for run in faulty]
    yield f"- precision {_share(right, said)}, recall {_share(right, wanted)}"
    yield f"- top cause {_share(sum(top), len(top))}, exact line {_share(sum(lines), len(lines))}"
    alarms = sum(len(run.findings) for run in controls)
    yield f"- findings a control: {alarms} in {len(controls)}"
    forbidden = sum(len(run.found & run.forbid) for run in runs)
    yield f"- forbidden causes found: {forbidden}"
    yield from _promises([run for run in faulty if run.is_gain], len(hits))


def _promises(runs: list[Run], hits: int) -> Iterator[str]:
    """How promises compare with what the repair gave, where it surely gave something."""
    pairs = [
        (run, finding.saving)
        for run in runs
        for finding in run.hits[:1]
        if finding.saving.estimate_ms and run.saved_ms > 0
    ]
    if not pairs:
        yield f"- no promise to hold against a gain, of {hits} findings"
        return
    errors = [abs(math.log((s.estimate_ms or 1) / run.saved_ms)) for run, s in pairs]
    inside = [(s.low_ms or 0) <= run.saved_ms <= (s.high_ms or math.inf) for run, s in pairs]
    above = [run.saved_ms > (s.upper_ms or math.inf) for run, s in pairs]
    yield f"- median error of a promise: a factor of {math.exp(float(np.median(errors))):.2f}"
    yield f"- gains within the promised interval: {_share(sum(inside), len(inside))}"
    yield f"- gains above the upper bound: {_share(sum(above), len(above))}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "none"


if __name__ == "__main__":
    main()
