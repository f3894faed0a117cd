"""What was to be reached, and whether the kept tables reach it: computed, never written by hand.

Every goal holds for two cores and, where it names a size, for a trace of 1 GB: smaller tables say
nothing of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sheets import Table, written

__all__ = ["GOALS", "Goal", "Verdict", "verdicts"]

Row = Mapping[str, Any]
GB: Final = 1000
"""Megabytes of the traces that the goals name."""
LINEAR: Final = 1.1
"""The exponent of a cost that is linear, between any two neighbouring sizes: with a sort in it, it
is 1.09 from 30,000 to 300,000 events, and less beyond. Over all sizes at once the cost of starting,
which is the same for all, would hide what the large ones take."""
COPIED: Final = 0.1
"""Tables that are copied take all of their bytes, mapped ones none; a tenth is for the rest."""
OVERHEAD: Final = 1.02
PANEL_S: Final = 2
REPORT_S: Final = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one table stands to a goal; `met` is None where it cannot be told."""

    where: str
    figure: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Goal:
    """What is wanted, the part whose tables tell of it, and how to read it from one."""

    text: str
    part: str
    told: Callable[[Table], Iterator[Verdict]]


def verdicts(goal: Goal, tables: Sequence[Table]) -> list[Verdict]:
    """How every table of the goal's part stands to it; nothing if none was measured for it."""
    return [verdict for one in tables if one["part"] == goal.part for verdict in goal.told(one)]


def _named(found: Table, reader: str) -> Row | None:
    return next((row for row in found["rows"] if row["reader"].startswith(reader)), None)


def _large(found: Table) -> bool:
    return bool(found["about"].get("megabytes") == GB)


def _kind(found: Table) -> str:
    return str(found["about"].get("kind", ""))


def _beside_simdjson(found: Table) -> Iterator[Verdict]:
    row = _named(found, "simdjson")
    if _large(found) and row and row.get("x_opened"):
        ratio = 1 / row["x_opened"]
        yield Verdict(_kind(found), written(ratio, "x"), ratio <= 2)


def _beside(found: Table, peer: str, key: str, times: float) -> Iterator[Verdict]:
    row = _named(found, peer)
    if not _large(found) or row is None:
        return
    ratio = row.get(key)
    if ratio is None:
        yield Verdict(_kind(found), f"it fails: {row['failure']}", None)
    else:
        partly = ", though parts of it fail" if row.get("failure") else ""
        yield Verdict(_kind(found), written(ratio, "x") + partly, ratio >= times)


def _memory(found: Table) -> Iterator[Verdict]:
    row = _named(found, "selftime")
    if _large(found) and row and row["memory"]:
        ratio = row["memory"] / found["about"]["bytes"]
        yield Verdict(_kind(found), written(ratio, "x"), ratio <= 1.0)


def _gzip(found: Table) -> Iterator[Verdict]:
    row = _named(found, "selftime, gzip")
    if _large(found) and row and row.get("x_opened"):
        yield Verdict(_kind(found), written(row["x_opened"], "x"), row["x_opened"] <= 1.3)


def _reopened(found: Table) -> Iterator[Verdict]:
    row = _named(found, "selftime, kept")
    if _large(found) and row and row.get("wall_s"):
        yield Verdict(_kind(found), written(row["wall_s"], "s"), row["wall_s"] < 1)


def _mapped(found: Table) -> Iterator[Verdict]:
    row = _named(found, "selftime, kept")
    if _large(found) and row and row.get("taken") is not None and row.get("tables"):
        taken, tables = row["taken"], row["tables"]
        figure = f"{written(taken, 'bytes')} taken for tables of {written(tables, 'bytes')}"
        yield Verdict(_kind(found), figure, taken <= COPIED * tables)


def _linear(found: Table) -> Iterator[Verdict]:
    rows = [row for row in found["rows"] if row.get("exponent") is not None]
    if rows:
        sizes = [row["megabytes"] for row in found["rows"]]
        exponent = max(row["exponent"] for row in rows)
        failed = [f"{row['megabytes']:,} MB" for row in found["rows"] if row.get("failure")]
        fails = f"; fails at {', '.join(failed)}" if failed else ""
        figure = f"exponent at most {written(exponent, 'ms/MB')}{fails}"
        where = f"{_kind(found)}, {min(sizes):,} to {max(sizes):,} MB"
        yield Verdict(where, figure, exponent <= LINEAR and not failed)


def _advised(found: Table, start: str, limit_s: float) -> Iterator[Verdict]:
    for row in found["rows"]:
        if row["from"] == start and row.get("wall_s") and _large(found):
            yield Verdict(_kind(found), written(row["wall_s"], "s"), row["wall_s"] < limit_s)


def _views(found: Table) -> Iterator[Verdict]:
    timed = [row for row in found["rows"] if row.get("first_s")]
    if not found["key"].endswith(f"-{GB}") or not timed:
        return
    most = max(timed, key=lambda row: float(row["first_s"]))
    failed = [row["view"] for row in found["rows"] if row.get("failure")]
    broken = f"; fail: {', '.join(failed)}" if failed else ""
    figure = f"at most {written(most['first_s'], 's')} (`{most['view']}`){broken}"
    yield Verdict(found["key"], figure, most["first_s"] < 1 and not failed)


def _panels(found: Table) -> Iterator[Verdict]:
    if _large(found):
        most = max(found["rows"], key=lambda row: float(row["first_s"]))
        figure = f"at most {written(most['first_s'], 's')} ({most['panel']})"
        yield Verdict(found["key"], figure, most["first_s"] < PANEL_S)


def _reported(found: Table) -> Iterator[Verdict]:
    for row in found["rows"]:
        if row.get("wall_s") and _large(found):
            yield Verdict(_kind(found), written(row["wall_s"], "s"), row["wall_s"] < REPORT_S)


def _tiles(found: Table) -> Iterator[Verdict]:
    if found["key"].endswith(f"-{GB}"):
        worst = max(row["p95_ms"] for row in found["rows"])
        yield Verdict(found["key"], written(worst, "ms"), worst < 50)


def _averages(found: Table, key: str, times: float) -> Iterator[Verdict]:
    for row in found["rows"]:
        if row["events"] == 1_000_000 and row.get(key):
            yield Verdict(found["about"]["flags"], written(row[key], "x"), row[key] >= times)


def _recording(found: Table) -> Iterator[Verdict]:
    for row in found["rows"] if found["key"] == "steps" else ():
        low, high = row["low"], row["high"]
        met = True if high <= OVERHEAD else False if low > OVERHEAD else None
        figure = f"{row['x_torch']:.3f} x ({low:.3f} to {high:.3f})"
        yield Verdict(f"{row['program']}, {row['flags']}", figure, met)


def _import(found: Table) -> Iterator[Verdict]:
    row = found["rows"][0]
    yield Verdict(row["statement"], written(row["import_ms"], "ms"), row["import_ms"] < 150)


def _faster(peer: str, key: str, times: float) -> Callable[[Table], Iterator[Verdict]]:
    return partial(_beside, peer=peer, key=key, times=times)


GOALS: Final = (
    Goal("opening takes at most twice what simdjson needs to parse", "open", _beside_simdjson),
    Goal("opening takes at most 1.0 times the file's size in memory", "open", _memory),
    Goal(
        "at least 20 times as fast as the old plugin, views and all",
        "open",
        _faster("torch-tb-profiler", "x_answered", 20),
    ),
    Goal(
        "at least 20 times as fast as HTA, breakdowns and all",
        "open",
        _faster("HolisticTraceAnalysis", "x_answered", 20),
    ),
    Goal(
        "at least 20 times as fast as traceinsight, breakdowns and all",
        "open",
        _faster("traceinsight", "x_answered", 20),
    ),
    Goal("at least 20 times as fast as TraceLens", "tracelens", lambda _: iter(())),
    Goal("at least 4 times as fast as Perfetto", "open", _faster("Perfetto", "x_opened", 4)),
    Goal("gzip takes at most 1.3 times as long as plain", "open", _gzip),
    Goal("opened again from the cache in less than 1 s", "open", _reopened),
    Goal("and the tables are mapped, not copied", "open", _mapped),
    Goal("the cost is linear from 10 MB to 5 GB", "sizes", _linear),
    Goal(
        "`advise` from cold in less than 30 s",
        "advise",
        partial(_advised, start="cold", limit_s=30),
    ),
    Goal(
        "`advise` from the cache in less than 5 s",
        "advise",
        partial(_advised, start="kept", limit_s=5),
    ),
    Goal("any view in less than 1 s", "views", _views),
    Goal("any panel of the page, for the first time, in less than 2 s", "panels", _panels),
    Goal("`report` from the cache in less than 20 s", "report", _reported),
    Goal("a tile of the timeline in less than 50 ms, 95 times of 100", "timeline", _tiles),
    Goal(
        "`key_averages().table()` at least 10 times as fast as torch's at 1,000,000 events",
        "averages",
        partial(_averages, key="x_time", times=10),
    ),
    Goal(
        "and in at most a quarter of its memory",
        "averages",
        partial(_averages, key="x_memory", times=4),
    ),
    Goal("recording costs at most 2 % more than torch's profiler", "recording", _recording),
    Goal("`import selftime` in less than 150 ms", "import", _import),
)
