"""What selftime does with a trace, as a process to be measured beside the peers'.

    python ours.py opened|kept|answered TRACE.json[.gz]

opened: the file to linked, nested tables, nothing kept. kept: the same by way of the cache.
answered: opened, then the views that answer what the peers' own breakdowns and views do.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import selftime

ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("overview", {}),
    ("steps", {}),
    ("operators", {}),
    ("operators", {"by": "shape"}),
    ("kernels", {}),
    ("idle", {}),
    ("overlap", {}),
    ("memory_curve", {}),
)


def main() -> None:
    how, path = sys.argv[1:]
    begin = time.perf_counter()
    load = selftime.load  # imports what reads
    before = own_memory()
    trace = load(path, cache=how == "kept")
    if not isinstance(trace, selftime.Trace):
        sys.exit(f"`{path}` is a folder; name a trace")
    loaded = time.perf_counter()
    told: dict[str, Any] = {"load_s": loaded - begin, "events": trace.slices.height}
    told["taken"] = None if before is None else (own_memory() or before) - before
    if how == "answered":
        told["rows"] = sum(trace.view(name, **options).height for name, options in ANSWERS)
        told["answers_s"] = time.perf_counter() - loaded
    told["tables"] = sum(table.estimated_size() for table in trace.tables().values())
    print(json.dumps(told))


def own_memory() -> int | None:
    """Bytes that this process holds and that no file backs; None where that cannot be told."""
    status = Path("/proc/self/status")
    lines = status.read_text("ascii").splitlines() if status.exists() else []
    found = [line.split()[1] for line in lines if line.startswith("RssAnon:")]
    return int(found[0]) * 1024 if found else None


if __name__ == "__main__":
    main()
