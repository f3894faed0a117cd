"""How long a trace takes to open, against reading the same bytes with JSON libraries.

Records a small training program, scales its trace to the size asked for, and measures each reader
in fresh processes, in turn: wall time, CPU time of all processes, the largest process's memory.
`selftime` reads, links and nests into tables; the JSON libraries only parse.
"""

import argparse
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from scale import scale

PROGRAM = """
import sys, torch, selftime
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)], torch.nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters())
with selftime.profile(record_shapes=True, with_stack=True, profile_memory=True) as prof:
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(32, 64)).sum().backward()
        optimizer.step()
        prof.step()
prof.export_chrome_trace(sys.argv[1])
"""

READERS = {
    "selftime": "import selftime; selftime.load(path, cache=False)",
    "selftime, kept": "import selftime; selftime.load(path)",
    "json": "import json; json.loads(opened(path).read())",
    "orjson": "import orjson; orjson.loads(opened(path).read())",
    "msgspec": "import msgspec; msgspec.json.decode(opened(path).read())",
}
"""What is measured, as the statement that a fresh process runs."""

MEASURED = """
import gzip, os, resource, sys, time
path = sys.argv[1]
opened = lambda path: (gzip.open if path.endswith('.gz') else open)(path, 'rb')
begin = time.perf_counter()
{statement}
wall = time.perf_counter() - begin
processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
memory = max(resource.getrusage(process).ru_maxrss for process in processes)
print(wall, sum(os.times()[:4]), memory / 1e3)
os._exit(0)
"""


class Sample(NamedTuple):
    """One run: seconds, CPU seconds, and megabytes of the largest process."""

    wall: float
    cpu: float
    memory: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100, help="of JSON (default: 100)")
    parser.add_argument("--trace", type=Path, help="scale this trace instead of one of our own")
    parser.add_argument("-n", type=int, default=3, help="runs of each reader (default: 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SELFTIME_CACHE"] = str(Path(folder, "cache"))
        plain, packed = traces(Path(folder), options.trace, options.megabytes)
        for trace in (plain, packed):
            print(f"\n{trace.name}: {trace.stat().st_size / 1e6:.0f} MB")
            print(f"{'reader':<16}{'wall s':>10}{'CPU s':>10}{'memory MB':>12}{'x selftime':>13}")
            report({name: measure(name, trace, options.n) for name in READERS})


def traces(folder: Path, given: Path | None, megabytes: int) -> tuple[Path, Path]:
    """The large trace, plain and compressed."""
    small = given or record(folder / "small.json")
    plain, packed = folder / "large.json", folder / "large.json.gz"
    scale(small, plain, megabytes * 1_000_000)
    with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    return plain, packed


def record(path: Path) -> Path:
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True, capture_output=True)
    return path


def measure(reader: str, trace: Path, count: int) -> Sample:
    """The median of runs after one that warms the disk, and the cache where there is one."""
    program = MEASURED.format(statement=READERS[reader])
    samples = [run(program, trace) for _ in range(count + 1)][1:]
    return Sample(*(statistics.median(values) for values in zip(*samples, strict=True)))


def run(program: str, trace: Path) -> Sample:
    done = subprocess.run(
        [sys.executable, "-c", program, str(trace)], check=True, capture_output=True, text=True
    )
    return Sample(*map(float, done.stdout.split()))


def report(samples: dict[str, Sample]) -> None:
    base = samples["selftime"].wall
    for name, sample in samples.items():
        ratio = f"{sample.wall / base:.2f}"
        print(f"{name:<16}{sample.wall:>10.2f}{sample.cpu:>10.2f}{sample.memory:>12.0f}{ratio:>13}")


if __name__ == "__main__":
    main()
