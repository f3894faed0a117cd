"""Ledgers of runs that were never run: steps of given kinds and durations, as a file or in hand."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from selftime.ingest.ledger import read_ledger
from selftime.run import Run

MS: Final = 1_000_000
BEGAN: Final = 1_000 * MS
"""When the process starts, on the clock of the ledger, in ns."""
STARTUP: Final = 500 * MS
"""How long it imports torch before its first step, in ns."""
EPOCH: Final = 1_700_000_000_000_000_000
"""When the process starts, in ns since the Unix epoch."""


@dataclass(frozen=True)
class Step:
    """A step: how long it takes in ms, its kind, what was counted in it in ms, what was read."""

    ms: float
    kind: str = "training"
    counted: dict[str, float] = field(default_factory=dict)
    recorded: bool = False
    line: int | None = None
    """The line of `/project/train.py` that was read in it; None if no stack was read."""


def ledger_text(
    steps: Iterable[Step],
    *,
    whole: bool = True,
    command: str = "train.py",
    file: str = "train.py",
    time: int = EPOCH,
    more: Iterable[dict[str, Any]] = (),
) -> str:
    """The lines of a ledger: an import, the steps, 10 ms after the last one, and `more`."""
    source = f"/project/{file}"
    place = {"file": source, "line": 1, "function": "<module>"}
    lines: list[dict[str, Any]] = [
        {
            "format": "selftime.ledger/1",
            "process": 4711,
            "command": [command],
            "clock": BEGAN,
            "time": time,
            "process_began": BEGAN,
            "began": BEGAN,
            "own_start": 0,
        },
        {"activity": 0, "part": "imports", "what": "torch", **place},
        {"segment": BEGAN, "readings": [[0, STARTUP, 50]]},
        *more,
    ]
    now = BEGAN + STARTUP
    rows: list[tuple[int, int, int, dict[str, float]]] = [(BEGAN, STARTUP, -1, {})]
    kinds: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        if step.kind not in kinds:
            kinds[step.kind] = len(kinds)
            loop = {"file": source, "line": 20 + kinds[step.kind]}
            lines.append({"kind": kinds[step.kind], "name": step.kind, **loop})
        if step.line is not None:
            read = {"file": source, "line": step.line, "function": "main"}
            lines.append({"activity": number, "part": "program", **read})
            lines.append({"segment": now, "readings": [[number, int(step.ms * MS), 9]]})
        counted = {**step.counted, **({"recorded": 1 / MS} if step.recorded else {})}
        rows.append((now, int(step.ms * MS), kinds[step.kind], counted))
        now += int(step.ms * MS)
    if whole:
        rows.append((now, 10 * MS, -2, {}))
        lines.append({"end": now + 10 * MS, "status": "ended"})
    names = {name for *_, counted in rows for name in counted}
    columns = {
        "start": [row[0] for row in rows],
        "duration": [row[1] for row in rows],
        "kind": [row[2] for row in rows],
        **{name: [round(row[3].get(name, 0) * MS) for row in rows] for name in names},
    }
    lines.insert(-1 if whole else len(lines), {"segments": columns})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def run_of(steps: Iterable[Step], **how: Any) -> Run:
    """A run in hand."""
    return read_ledger(ledger_text(steps, **how).encode(), "a.run.jsonl")


def write_ledger(path: Path, steps: Iterable[Step], **how: Any) -> Path:
    """The file of a ledger."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ledger_text(steps, **how), encoding="utf-8")
    return path
