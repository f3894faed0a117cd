"""One run of one program of the corpus, in a process of its own.

    python corpus/program.py ENTRY bad|good --seed N [--steps N] [--record TRACE]

Prints the times of its steps in ns, as JSON; with `--record` they are not printed but recorded.
"""

import argparse
import json
import random
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch

import selftime

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["FOLDER", "described", "knobs"]

FOLDER = Path(__file__).parent
WARM_UP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("entry")
    parser.add_argument("which", choices=("bad", "good"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    step = built(options.entry, options.which, options.seed)
    for _ in range(WARM_UP):
        step()
    if options.record is not None:
        record(step, options.record)
        return
    times = []
    for _ in range(options.steps):
        begin = perf_counter_ns()
        step()
        times.append(perf_counter_ns() - begin)
    print(json.dumps(times))


def built(entry: str, which: str, seed: int) -> Any:
    path = FOLDER / entry / f"{which}.py"
    spec = spec_from_file_location(f"{entry}_{which}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"`{path}` is no program of the corpus; see corpus/README.md")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # worker processes look classes up by their module
    spec.loader.exec_module(module)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return module.build({**knobs(entry, seed), "device": device})


def described(entry: str) -> dict[str, Any]:
    """What `meta.toml` says of an entry."""
    path = FOLDER / entry / "meta.toml"
    if not path.is_file():
        raise SystemExit(f"`{entry}` is no entry of the corpus; see corpus/README.md")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def knobs(entry: str, seed: int) -> dict[str, int]:
    """Sizes of this seed, one for each range of the entry."""
    draw = random.Random(f"{entry} {seed}")  # noqa: S311 - sizes, no secrets
    return {name: draw.randint(*ends) for name, ends in described(entry).get("knobs", {}).items()}


def record(step: Any, path: Path) -> None:
    schedule = selftime.schedule(wait=4, warmup=1, active=6, repeat=1)
    with selftime.profile(
        schedule=schedule, record_shapes=True, with_stack=True, profile_memory=True
    ) as prof:
        for _ in range(11):
            step()
            prof.step()
    prof.export_chrome_trace(str(path))


if __name__ == "__main__":
    main()
