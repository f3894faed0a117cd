"""Measures the advice on the corpus: what it finds, on which line, and what it promises.

python corpus/run.py [ENTRY ...] [--seeds N] [--runs N] [--only-findings] [-o docs/corpus.md]
"""

import argparse
import sys
from pathlib import Path

import torch
from entries import entries, entry
from measuring import measure, runner
from results import Result, judged
from tables import HEAD, as_json, page, row, summary

__all__ = ["main"]


def main() -> None:
    options = asked()
    gpu = torch.cuda.is_available()
    wanted = [entry(name) for name in options.entries] or entries()
    left_out = [about.name for about in wanted if not about.runs(gpu=gpu)]
    if left_out:
        print(f"left out, as they need a device: {', '.join(left_out)}", file=sys.stderr)
    results: list[Result] = []
    say = sys.stderr if options.format == "json" else sys.stdout
    print(HEAD, file=say)
    with runner() as run:
        for about in wanted:
            if about.name in left_out:
                continue
            for seed in range(options.first, options.first + options.seeds):
                pair = None if options.only_findings else measure(run, about, seed, options.runs)
                results.append(judged(run, about, seed, pair, gpu=gpu))
                print(row(results[-1]), flush=True, file=say)
                if options.keep is not None:
                    keep(results[-1], options.keep)
    print("\n".join(["", *summary(results)]), file=say)
    if options.format == "json":
        print(as_json(results, left_out))
    if options.output is not None:
        options.output.write_text(page(results, left_out), encoding="utf-8")


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("entries", nargs="*", help="programs; all that this machine can run")
    parser.add_argument("--seeds", type=int, default=1, help="sizes to try of each")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each program")
    parser.add_argument("--only-findings", action="store_true", help="time nothing")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("-o", "--output", type=Path, help="write the page of the documentation")
    parser.add_argument(
        "--keep", type=Path, help="add promises and gains to this file, as `selftime verify` does"
    )
    options = parser.parse_args()
    if options.seeds < 1 or options.runs < 1:
        parser.error("--seeds and --runs take numbers from 1")
    return options


def keep(result: Result, file: Path) -> None:
    verification = result.verification()
    if verification is not None:
        with file.open("a", encoding="utf-8") as kept:
            kept.write(verification.to_json() + "\n")


if __name__ == "__main__":
    main()
