"""The page of the benchmarks, `docs/benchmarks.md`, from the tables that were kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from goals import GOALS, Goal, verdicts
from sheets import Table, markdown

__all__ = ["PAGE", "page"]

PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"

HEAD: Final = """# Benchmarks

Against the peers, each in an environment of its own, measured in one run. This page is generated
from `benchmarks/results` by `python benchmarks/bench.py page`: ratios and verdicts are computed.

Ratios hold between the rows of one table, which were measured in turn on one machine; figures of
different tables may come from different days. Times are of whole processes from start to exit,
unless a column says otherwise, and medians over the rounds. Memory is the peak of the process and
its descendants, shared pages counted once. To measure on your machine:

    make peers                        # environments for the peers, once
    make bench BENCH_SIZES="10 100"   # or a part: python benchmarks/bench.py open --sizes 10
"""
PARTS: Final = {
    "open": (
        "Opening a trace",
        """selftime opens a file to linked, nested tables: launches are joined to kernels,
operators to Python frames, backward to forward. The peers do what they do before they show
anything: the old plugin reads and makes all its views; HTA and traceinsight, its successor, load
and make three breakdowns (time, kernels, overlap); Perfetto's trace processor (WebAssembly in Node)
nests slices, parses arguments and answers four queries; the JSON libraries parse and do no more.
Who also answers questions is compared with *selftime, answers*: the same file, then the views that
tell what the peers tell (`overview`, `steps`, `operators` by name and by shape, `kernels`, `idle`,
`overlap`, `memory_curve`).""",
    ),
    "sizes": ("Linear in the size", ""),
    "advise": ("Advice", ""),
    "views": (
        "Views",
        "Each in a process of its own, on a trace that is in the cache, without options.",
    ),
    "panels": (
        "Panels of the page",
        """In Chromium, from the click until the last answer has come and nothing changes any more.
One server, one tab; the trace is in the cache, and no answer is. The first row is the first page
of a server that has just been started.""",
    ),
    "report": ("The report", "From a trace that is in the cache."),
    "timeline": ("Tiles of the timeline", "Random windows, from the whole trace to 2 us."),
    "averages": (
        "The operator table",
        "`key_averages().table()` from the moment `stop` has returned; the same program and flags.",
    ),
    "recording": (
        "Recording",
        "Small steps, where a recorder shows most. The interval holds the median with 95 %.",
    ),
    "import": ("Import", ""),
}
"""What the page tells of each part, in its order."""
VERDICTS: Final = {True: "met", False: "**not met**", None: "cannot tell"}


def page(tables: Sequence[Table]) -> str:
    """The whole page."""
    found = [HEAD, _goals(tables)]
    for part, (title, text) in PARTS.items():
        ours = sorted((one for one in tables if one["part"] == part), key=_order)
        if ours:
            found.append(f"## {title}\n" + (f"\n{text}\n" if text else ""))
            found += [f"### {one['title']}\n\n{markdown(one)}\n{_measured(one)}\n" for one in ours]
    return "\n".join(found)


def _order(one: Table) -> tuple[int, str]:
    return int(one["about"].get("megabytes", 0)), str(one["key"])


def _goals(tables: Sequence[Table]) -> str:
    lines = ["## Goals\n", "On two cores, and where a trace is opened, of 1 GB.\n"]
    lines += ["| goal | where | measured | |", "|---|---|---|---|"]
    for goal in GOALS:
        lines += _rows(goal, tables)
    return "\n".join(lines) + "\n"


def _rows(goal: Goal, tables: Sequence[Table]) -> list[str]:
    found = verdicts(goal, tables)
    if not found:
        why = "its project publishes no package" if goal.part == "tracelens" else "not measured"
        return [f"| {goal.text} | | {why} | |"]
    return [
        f"| {goal.text if at == 0 else ''} | {one.where} | {one.figure} | {VERDICTS[one.met]} |"
        for at, one in enumerate(found)
    ]


def _measured(one: Table) -> str:
    """When and on what, in one line."""
    machine = one["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    about = one["about"]
    told = [
        one["date"],
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB",
        machine["system"],
        f"load {machine['load']}",
        versions,
        f"commit {machine['commit']}",
        f"{about['rounds']} rounds" if "rounds" in about else "",
        f"file cache {about['disk']}" if "disk" in about else "",
        f"memory: {about['memory']}" if "memory" in about else "",
    ]
    return "*" + "; ".join(filter(None, told)) + "*"
