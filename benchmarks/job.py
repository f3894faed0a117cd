"""A job of many ranks: time and memory of `selftime.scale.survey`, beside those of one rank.

    SELFTIME_TRACES=FOLDER python benchmarks/job.py [--ranks 64] [--megabytes 50] [--workers 1 2]

Each rank's trace is a copy of one of a ResNet trained with DDP, with its collectives, scaled to
that size, with a rank of its own in the header. Nothing is read from the cache. Memory is the sum
of PSS of all processes.
"""

import argparse
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from measure import Measured, measure
from sheets import Column, add_format, show, table
from traces import FOLDER, run

EVENTS: Final = b'"traceEvents"'
SOURCE: Final = "mi300-2025-resnet-ddp-recompute.json.gz"
"""A recording of one rank that has its collectives."""
COLUMNS: Final = (
    Column("ranks", "ranks", "count"),
    Column("workers", "processes", "count"),
    Column("wall_s", "time", "s"),
    Column("wall_a_rank", "time a rank", "s"),
    Column("cpu_a_rank", "CPU time a rank", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("own_memory", "of it anonymous", "bytes"),
    Column("result", "result of a rank, kB", "count"),
    Column("failure", "fails"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ask", metavar="PATH", help=argparse.SUPPRESS)
    add_format(parser)
    options = parser.parse_args()
    if options.ask:
        ask(options.ask, options.workers[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), options.ranks, options.megabytes)
        rows = [row(measured(str(paths[0]), 1), 1, 1)]
        rows += [row(measured(folder, count), options.ranks, count) for count in options.workers]
    title = f"A job of ranks with {options.megabytes} MB of JSON each"
    show([table("job", "ranks", title, COLUMNS, rows)], options.format)


def written(folder: Path, ranks: int, megabytes: int) -> list[Path]:
    """The traces of the ranks of a job."""
    head, key, events = _scaled(megabytes).read_bytes().partition(EVENTS)
    header = json.loads(head.rstrip().rstrip(b",") + b"}")
    paths = []
    for rank in range(ranks):
        header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": ranks}
        paths.append(folder / f"rank{rank}.json")
        opening = json.dumps(header).removesuffix("}").encode()
        paths[-1].write_bytes(b"".join([opening, b", ", key, events]))
    return paths


def _scaled(megabytes: int) -> Path:
    """A trace with so many megabytes of JSON, whose work and collectives are those of one rank."""
    traces = os.environ.get("SELFTIME_TRACES")
    if not traces or not Path(traces, SOURCE).is_file():
        sys.exit(f"`{SOURCE}` is missing; set SELFTIME_TRACES to the folder that has it")
    made = FOLDER / f"rank-{megabytes}.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    script = Path(__file__).with_name("scale.py")
    size = ["--megabytes", str(megabytes)]
    run([sys.executable, str(script), str(Path(traces, SOURCE)), str(made), *size])
    return made


def measured(path: str, workers: int) -> Measured:
    """One survey in a process of its own, in which each rank is read by one process."""
    words = ["--ask", path, "--workers", str(workers)]
    environment = {"SELFTIME_WORKERS": "1", "POLARS_MAX_THREADS": "1"}
    return measure([sys.executable, __file__, *words], environment=environment)


def row(run: Measured, ranks: int, workers: int) -> dict[str, Any]:
    return {
        "ranks": ranks,
        "workers": workers,
        "wall_s": run.wall_s,
        "wall_a_rank": run.wall_s / ranks,
        "cpu_a_rank": run.cpu_s / ranks,
        "memory": run.memory,
        "own_memory": run.own_memory,
        "result": run.told.get("result"),
        "failure": run.failure,
    }


def ask(path: str, workers: int) -> None:
    """What the measured process does."""
    from selftime.scale import Local, survey  # noqa: PLC0415 - who measures must be small

    found = survey(path, engine=Local(workers), cache=False)
    sizes: Sequence[int] = [len(pickle.dumps(part)) for part in found.summaries.values()]
    print(json.dumps({"result": round(sum(sizes) / len(sizes) / 1000)}))


if __name__ == "__main__":
    main()
