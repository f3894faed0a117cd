"""What the fuzzers begin with: traces of every layout, rough ones, snapshots, and dumps of jobs."""

import gzip
import json
import os
import pickle
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import hostile
import hostile_pickles
from layouts import LAYOUTS, numbered

from selftime.ledger_format import LEDGER_FORMAT

__all__ = ["write_seeds"]

_EVENTS: Final = 12
"""Events of a seed: libFuzzer works best on small ones."""
_REAL: Final = 12
"""Events that are taken from each end of a real trace."""


def write_seeds(target: str, folder: Path) -> None:
    """Write the seeds of a target as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(_SEEDS[target]()):
        (folder / f"seed-{number}").write_bytes(data)


def _traces() -> Iterator[bytes]:
    for layout in LAYOUTS.values():
        text = layout(numbered(_EVENTS))
        yield text
        yield gzip.compress(text)
    yield from (kind.make(4) for kind in hostile.TRACES.values())
    yield from _real()


def _real() -> Iterator[bytes]:
    """The first and the last events of real traces, if there is a folder of them."""
    folder = Path(os.environ.get("SELFTIME_TRACES", "/nonexistent"))
    for path in sorted(folder.glob("*.json.gz"), key=lambda file: file.stat().st_size)[:12]:
        document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        events = document["traceEvents"]
        document["traceEvents"] = [*events[:_REAL], *events[-_REAL:]]
        yield json.dumps(document).encode()


def _snapshots() -> Iterator[bytes]:
    yield from (pickle.dumps(hostile_pickles.SOUND, protocol) for protocol in (2, 3, 4, 5))
    yield from (kind.make(3) for kind in hostile_pickles.PICKLES.values())


def _dumps() -> Iterator[bytes]:
    """Dumps of the Flight Recorder, as pickles and as JSON, hostile pickles, and a ledger."""
    yield json.dumps(hostile_pickles.SOUND_DUMP).encode()
    yield from (pickle.dumps(hostile_pickles.SOUND_DUMP, protocol) for protocol in (2, 3, 4, 5))
    yield from (kind.make(3) for kind in hostile_pickles.PICKLES.values())
    lines = (
        {"format": LEDGER_FORMAT, "time": 1_700_000_000_000_000_000, "clock": 0, "rank": 0},
        {"activity": 0, "part": "program", "file": "/repo/train.py", "line": 3, "function": "f"},
        {"samples": [[0, 5], [0, 9]]},
        {"end": 12, "status": "0"},
    )
    yield "".join(json.dumps(line) + "\n" for line in lines).encode()


def _numbers() -> Iterator[bytes]:
    """The linker's generator reads its choices from bytes: any will do."""
    return islice((bytes((n * k) % 256 for k in range(400)) for n in range(1, 99, 7)), 12)


_SEEDS: Final = {"reader": _traces, "linker": _numbers, "unpickler": _snapshots, "dumps": _dumps}
