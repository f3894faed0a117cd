"""The large traces that are measured: three real kinds, each made as large as asked for.

    python benchmarks/traces.py [--kinds cpu training inference] [--sizes 10 100 1000]

They are kept in a folder and made when they are first asked for. The CPU's is recorded here; those
of GPUs are scaled from recordings in the folder that SELFTIME_TRACES names.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["FOLDER", "KINDS", "SIZES", "add_options", "there", "trace"]

KINDS: Final = {
    "cpu": "a transformer trained on the CPU, with stacks, shapes and memory (torch 2.13)",
    "training": "a ResNet trained on a V100 with DDP (2024)",
    "inference": "a language model on an H100, with stacks and shapes (2025)",
}
"""Every kind, and of what it is."""
SOURCES: Final = {
    "training": "v100-2024-resnet-nanoseconds.json.gz",
    "inference": "h100-2025-qwen-0.5b.json.gz",
}
SIZES: Final = (10, 100, 1000)
"""Megabytes of JSON, unless others are asked for."""
FOLDER: Final = Path(os.environ.get("BENCH_FOLDER", "build/bench"))
LEVEL: Final = 6
"""Of gzip: what gzip itself does if it is not told."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    options = parser.parse_args()
    for kind in options.kinds:
        for size in options.sizes:
            for packed in (False, True):
                made = trace(kind, size, packed=packed)
                print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=there())
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), metavar="MB")


def there() -> list[str]:
    """The kinds that can be made here."""
    return [kind for kind in KINDS if kind not in SOURCES or _source(kind) is not None]


def trace(kind: str, megabytes: int, *, packed: bool = False) -> Path:
    """A trace of that kind with so many megabytes of JSON, plain or compressed."""
    plain = FOLDER / f"{kind}-{megabytes}.json"
    if not packed:
        script = Path(__file__).with_name("scale.py")
        command = [sys.executable, str(script), str(_small(kind))]
        size = ["--megabytes", str(megabytes)]
        return _made(plain, lambda path: run([*command, str(path), *size]))
    return _made(plain.with_suffix(".json.gz"), lambda path: _pack(trace(kind, megabytes), path))


def _small(kind: str) -> Path:
    source = _source(kind)
    if source is not None:
        return source
    if kind in SOURCES:
        sys.exit(f"`{SOURCES[kind]}` is missing; set SELFTIME_TRACES to the folder that has it")
    script = Path(__file__).with_name("record_cpu.py")
    return _made(
        FOLDER / f"{kind}.json", lambda path: run([sys.executable, str(script), str(path)])
    )


def run(command: list[str]) -> None:
    """In a process of its own: who measures must stay small (`measure` says why)."""
    subprocess.run(command, check=True, capture_output=True)


def _source(kind: str) -> Path | None:
    folder, name = os.environ.get("SELFTIME_TRACES"), SOURCES.get(kind)
    if not folder or not name:
        return None
    path = Path(folder, name)
    return path if path.is_file() else None


def _pack(plain: Path, packed: Path) -> None:
    with plain.open("rb") as source, gzip.open(packed, "wb", LEVEL) as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _made(path: Path, make: Callable[[Path], object]) -> Path:
    """The file, made now if it is not there; half a file never has its name."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_name(f"begun-{path.name}")
        make(begun)
        begun.replace(path)
    return path


if __name__ == "__main__":
    main()
