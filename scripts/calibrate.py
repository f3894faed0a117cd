"""Fits the intervals of promised savings to what repairs gave.

    python scripts/calibrate.py VERIFICATIONS ...

VERIFICATIONS are files of JSON lines, as `selftime verify --keep` and `corpus/run.py --keep` write
them. Of each repair of a single finding that surely gave something, the achieved part of the
promise is taken; `src/selftime/advice/savings/calibration.json` gets the ends of the middle 80 %.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from selftime.advice.savings.calibration import ALL_RULES_KEY, FORMAT, CalibrationFactors
from selftime.advice.verify import FORMAT as VERIFICATION

__all__ = ["fitted", "ratios"]

FILE = Path(__file__).parents[1] / "src" / "selftime" / "advice" / "savings" / "calibration.json"
LEVEL = (10, 90)


def ratios(lines: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Rule, and the achieved part of its promise, of repairs of one finding."""
    for line in lines:
        told: dict[str, Any] = json.loads(line)
        if told.get("format") != VERIFICATION:
            raise SystemExit(f"not a line of {VERIFICATION}: {line[:80]!r}")
        achieved, gone = told["achieved"], told["gone"]
        if len(gone) == 1 and gone[0]["estimate_ms"] and achieved["low_ms"] > 0:
            yield gone[0]["rule"], achieved["saved_ms"] / gone[0]["estimate_ms"]


def fitted(pairs: Iterable[tuple[str, float]]) -> dict[str, CalibrationFactors]:
    """The factors by rule, and of all together under `*`."""
    by_rule: dict[str, list[float]] = defaultdict(list)
    for rule, ratio in pairs:
        by_rule[ALL_RULES_KEY].append(ratio)
        by_rule[rule].append(ratio)
    found = {}
    for rule, parts in sorted(by_rule.items()):
        low, high = np.percentile(parts, LEVEL)
        found[rule] = CalibrationFactors(round(float(low), 3), round(float(high), 3), len(parts))
    return found


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    lines = [line for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]
    rules = {rule: asdict(found) for rule, found in fitted(ratios(lines)).items()}
    FILE.write_text(json.dumps({"format": FORMAT, "rules": rules}, indent=2) + "\n")


if __name__ == "__main__":
    main()
