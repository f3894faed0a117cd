"""Everything that fuzzes the reading of files, in full: `make fuzz`.

    python fuzz/campaign.py --seconds 300

Damage anywhere in good files, the cost of hostile ones, and the coverage-guided targets, each for
its share of the seconds. Inputs that fail are kept in `fuzz/found/`, those that reached new code in
`fuzz/corpus/`. Exit status 1 if anything failed.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

from seeds import write_seeds

HERE: Final = Path(__file__).parent
TARGETS: Final = ("reader", "linker", "unpickler", "dumps")
ONE_INPUT: Final = 20
"""Seconds after which one input of some kilobytes is a hang."""
MEMORY: Final = 2048
"""MiB that reading inputs of some kilobytes may hold."""


def fuzz(target: str, seconds: int) -> int:
    """Run one target for so long; libFuzzer's status."""
    corpus, found = HERE / "corpus" / target, HERE / "found"
    write_seeds(target, corpus)
    found.mkdir(exist_ok=True)
    return subprocess.run(
        [
            *(sys.executable, HERE / "targets.py", target, corpus),
            f"-dict={HERE / 'words.dict'}",
            f"-artifact_prefix={found}/{target}-",
            f"-max_total_time={seconds}",
            f"-timeout={ONE_INPUT}",
            f"-rss_limit_mb={MEMORY}",
            "-print_final_stats=1",
        ],
        check=False,
    ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=300, help="for the targets together")
    asked = parser.parse_args()
    failed = [
        script
        for script in ("damage.py", "scaling.py")
        if subprocess.run([sys.executable, HERE / script], check=False).returncode
    ]
    share = max(asked.seconds // len(TARGETS), 1)
    failed += [target for target in TARGETS if fuzz(target, share)]
    print(f"failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
