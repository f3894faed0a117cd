"""Measure one part or all of them, keep what was found, and write the page.

    python benchmarks/bench.py open --sizes 1000 --kinds training
    python benchmarks/bench.py all --sizes 10 100
    python benchmarks/bench.py page

A part's own options stand behind its name (`python benchmarks/open_trace.py --help`). Its tables go
to `benchmarks/results`, where they take the place of those before of the same trace, and
`docs/benchmarks.md` is written anew from all that are there.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from document import PAGE, page
from sheets import FOLDER, keep, kept

PARTS: Final = {
    "import": "import_time.py",
    "open": "open_trace.py",
    "sizes": "sizes.py",
    "advise": "advise.py",
    "views": "views.py",
    "panels": "panels.py",
    "report": "report.py",
    "timeline": "timeline.py",
    "averages": "averages.py",
    "recording": "recording.py",
    "ledger": "ledger.py",
}
"""The script of each part, in the order of `all`."""
OF_TRACES: Final = {"open", "sizes", "advise", "views", "panels", "report", "timeline"}
"""Those that measure large traces."""
WITHOUT_ROUNDS: Final = {"views", "panels", "timeline"}
"""Those that do not take turns: there is one thing to measure."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("part", choices=[*PARTS, "all", "page"])
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--sizes", nargs="+", metavar="MB", help="of the traces")
    parser.add_argument("--kinds", nargs="+", help="of the traces")
    parser.add_argument("--events", nargs="+", help="of the recordings of `averages`")
    parser.add_argument("-n", nargs=1, metavar="ROUNDS", help="of the parts that have them")
    options, rest = parser.parse_known_args()
    parts = {"all": list(PARTS), "page": []}.get(options.part, [options.part])
    failed = [
        part
        for part in parts
        if not measured(part, [*words(part, options), *rest], options.results)
    ]
    options.page.write_text(page(kept(options.results)), "utf-8")
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


def words(part: str, options: argparse.Namespace) -> list[str]:
    """The options for a part among those that not all of them have."""
    told = {"--sizes": options.sizes, "--kinds": options.kinds} if part in OF_TRACES else {}
    if part == "averages":
        told["--events"] = options.events
    if part not in WITHOUT_ROUNDS:
        told["-n"] = options.n
    return [word for name, values in told.items() if values for word in (name, *values)]


def measured(part: str, words: Sequence[str], results: Path) -> bool:
    """Whether the part ran to its end; what it found is kept."""
    script = Path(__file__).with_name(PARTS[part])
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(script), *words, "--format", "json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return False
    for found in json.loads(done.stdout.splitlines()[-1])["tables"]:
        print(f"{keep(found, results)} ({time.perf_counter() - begin:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    main()
