"""How long `key_averages().table()` takes once a recording has stopped: ours and torch's own.

    python benchmarks/averages.py [--events 10000 100000] [-n 3]

The same program, recorded with the same flags, in processes of their own, in turn. Counted is from
the moment in which `stop` has returned to the printed table. Memory is the whole process's at its
peak: the program, the recording and the table. What the recording itself holds is the same in both;
what the peak is above that is told beside it.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from measure import HOW, Measured, measure
from medians import middle
from sheets import Column, Table, add_format, show, table
from whole_commands import add_rounds

WHOSE: Final = ("selftime", "torch")
FLAGS: Final[dict[str, dict[str, Any]]] = {
    "none": {},
    "shapes": {"record_shapes": True},
    "stacks": {"record_shapes": True, "with_stack": True},
}
COLUMNS: Final = (
    Column("events", "events", "count"),
    Column("whose", "profiler"),
    Column("table_s", "stop to table", "s"),
    Column("x_time", "÷ selftime", "x"),
    Column("stop_s", "stop itself", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("x_memory", "÷ selftime", "x"),
    Column("before", "of it before the table", "bytes"),
    Column("table", "of it for the table", "bytes"),
    Column("x_table", "÷ selftime", "x"),
    Column("rows", "rows found", "count"),
    Column("failure", "fails"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_format(parser)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--flags", nargs="+", choices=FLAGS, default=["none"])
    add_rounds(parser)
    parser.add_argument("--one", choices=WHOSE, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.events[0], FLAGS[options.flags[0]])
        return
    show([compare(flags, options) for flags in options.flags], options.format)


def one(whose: str, events: int, flags: dict[str, Any]) -> None:
    """The measured process."""
    import torch  # noqa: PLC0415 - who measures must stay small

    import selftime  # noqa: PLC0415 - likewise

    weight, inputs = torch.randn(8, 8, requires_grad=True), torch.randn(8, 8)

    def repeat(times: int) -> None:
        for _ in range(times):
            loss: Any = (inputs @ weight).relu().sum()
            loss.backward()

    with torch.profiler.profile(**flags) as trial:
        repeat(100)
    each = len(trial.profiler.kineto_results.events()) / 100
    prof: Any = {"torch": torch.profiler.profile, "selftime": selftime.profile}[whose](**flags)
    prof.start()
    repeat(round(events / each))
    begin = perf_counter()
    prof.stop()
    stopped = perf_counter()
    before = held()
    averages = prof.key_averages()
    written = averages.table(sort_by="self_cpu_time_total", row_limit=10)
    told = {
        "table_s": perf_counter() - stopped,
        "stop_s": stopped - begin,
        "rows": len(averages),
        "before": before,
        "written": len(written),
    }
    print(json.dumps(told))


def held() -> int | None:
    """Bytes that this process has in memory; None where that cannot be told."""
    status = Path("/proc/self/status")
    lines = status.read_text("ascii").splitlines() if status.exists() else []
    found = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(found[0]) * 1024 if found else None


def compare(flags: str, options: argparse.Namespace) -> Table:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"SELFTIME_CACHE": folder}
        for events in options.events:
            words = ["--events", str(events), "--flags", flags]
            samples: dict[str, list[Measured]] = {whose: [] for whose in WHOSE}
            for turn in range(options.n):
                for whose in WHOSE if turn % 2 else WHOSE[::-1]:
                    command = [sys.executable, Path(__file__), *words, "--one", whose]
                    samples[whose].append(
                        measure(command, limit_s=options.limit, environment=environment)
                    )
            rows += [row(events, whose, samples) for whose in WHOSE]
    named = "no flags" if flags == "none" else ", ".join(FLAGS[flags])
    title = f"From the end of `stop` to the printed table, {named}"
    about = {"flags": flags, "memory": HOW, "rounds": options.n}
    return table("averages", flags, title, COLUMNS, rows, about)


def row(events: int, whose: str, samples: dict[str, list[Measured]]) -> dict[str, Any]:
    runs = samples[whose]
    well = [run for run in runs if not run.failure]
    found: dict[str, Any] = {
        "events": events,
        "whose": whose,
        "memory": middle([run.memory for run in well or runs]),
        "failure": next((run.failure for run in runs if run.failure), None),
    }
    for key in ("table_s", "stop_s", "before", "rows"):
        found[key] = middle([run.told.get(key) for run in well])
    found["table"] = middle([beside(run) for run in well])
    if whose != WHOSE[0]:
        pairs = list(zip(samples[WHOSE[0]], runs, strict=True))
        found["x_time"] = ratio(pairs, lambda run: run.told["table_s"])
        found["x_memory"] = ratio(pairs, lambda run: run.memory)
        if None not in [beside(run) for pair in pairs for run in pair]:
            found["x_table"] = ratio(pairs, beside)
    return found


def beside(run: Measured) -> int | None:
    """Bytes by which the peak exceeds what the process held when `stop` had returned."""
    before = run.told.get("before")
    return None if before is None or run.memory is None else run.memory - before


def ratio(pairs: Sequence[tuple[Measured, Measured]], figure: Any) -> float | None:
    """The median over rounds of theirs by ours."""
    both = [(ours, theirs) for ours, theirs in pairs if not (ours.failure or theirs.failure)]
    return middle([figure(theirs) / figure(ours) for ours, theirs in both])


if __name__ == "__main__":
    main()
