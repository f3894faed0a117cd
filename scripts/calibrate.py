"""Fits the intervals of promised savings to what repairs gave.

    python scripts/calibrate.py REPAIRS ...

REPAIRS are files of JSON lines, as `selftime verify --keep` and `corpus/run.py --keep` write them,
or CSV files such as `corpus/repairs.csv`. Of each repair of a single finding whose gain was
measured closely enough to tell, the achieved part of the promise is taken, losses among them;
`src/selftime/advice/savings/calibration.json` gets the ends of the middle 80 %. It prints for how
many of the repairs in each file the gain lay in the promised interval, and for how many of all of
them it lies between the new factors: 80 % by construction, and of repairs that the factors were not
fitted to, each left out in turn.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selftime.advice.rules import RULES
from selftime.advice.savings.calibration import (
    ALL_RULES_KEY,
    FORMAT,
    CalibrationFactors,
    factors_by_rule,
)
from selftime.advice.verify import FORMAT as VERIFICATION

__all__ = ["Repair", "between", "chapters", "fitted", "left_out", "repairs_of", "within"]

FILE = Path(__file__).parents[1] / "src" / "selftime" / "advice" / "savings" / "calibration.json"
LEVEL = (10, 90)
MAX_UNCERTAIN_SHARE = 0.5
"""Largest half width of a measured gain that tells an error, as a share of it or of the promise."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A finding that was repaired: its promise and its gain, both with interval, in ms a step."""

    rule: str
    promised: float
    promised_low: float
    promised_high: float
    saved: float
    saved_low: float
    saved_high: float

    @property
    def is_told(self) -> bool:
        """Returns whether the gain is known closely enough to tell the error of the promise."""
        known = max(self.promised, abs(self.saved))
        return (self.saved_high - self.saved_low) / 2 <= MAX_UNCERTAIN_SHARE * known


def repairs_of(path: Path) -> Iterator[Repair]:
    """Yields the repairs of single findings in a file, those of unknown precision left out."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as rows:
            read = [_repair_of_row(row) for row in csv.DictReader(rows)]
    else:
        read = [_repair_of_line(line) for line in path.read_text("utf-8").splitlines()]
    yield from (repair for repair in read if repair is not None and repair.is_told)


def _repair_of_row(row: dict[str, str]) -> Repair | None:
    if not row["saved_low"] or not row["promised"]:
        return None  # the gain is not known closely, or nothing is promised any more
    names = ("promised", "promised_low", "promised_high", "saved", "saved_low", "saved_high")
    return Repair(row["rule"], *(float(row[name]) for name in names))


def _repair_of_line(line: str) -> Repair | None:
    told: dict[str, Any] = json.loads(line)
    if told.get("format") != VERIFICATION:
        raise SystemExit(f"not a line of {VERIFICATION}: {line[:80]!r}")
    repaired = told.get("repaired")
    gain = repaired if repaired is not None else told["achieved"]
    gone = [repaired["promise"]] if repaired is not None else told["gone"]
    if len(gone) != 1 or not gone[0]["estimate_ms"] or gain["low_ms"] is None:
        return None
    [one] = gone
    promise = (one["estimate_ms"], one["low_ms"], one["high_ms"])
    return Repair(one["rule"], *promise, gain["saved_ms"], gain["low_ms"], gain["high_ms"])


def chapters() -> dict[str, str]:
    """Returns the chapter of the bottleneck catalogue of each rule: a letter."""
    return {name: rule.covers[0][0] for name, rule in sorted(RULES.items()) if rule.covers}


def fitted(repairs: Iterable[Repair], of: dict[str, str]) -> dict[str, CalibrationFactors]:
    """Returns the factors by rule, by chapter, and of all together under `*`."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for repair in repairs:
        for key in {ALL_RULES_KEY, repair.rule, of.get(repair.rule, ALL_RULES_KEY)}:
            ratios[key].append(repair.saved / repair.promised)
    found = {}
    for key, parts in sorted(ratios.items()):
        low, high = np.percentile(parts, LEVEL)
        found[key] = CalibrationFactors(round(float(low), 3), round(float(high), 3), len(parts))
    return found


def within(repairs: Iterable[Repair]) -> tuple[int, int]:
    """Returns how many gains lay in the promised interval, and of how many."""
    held = [one.promised_low <= one.saved <= one.promised_high for one in repairs]
    return sum(held), len(held)


def between(
    repairs: Iterable[Repair], found: dict[str, CalibrationFactors], of: dict[str, str]
) -> int:
    """Returns how many gains lie between the factors of their rules, as parts of the promise."""
    known = factors_by_rule(found, of)
    held = 0
    for repair in repairs:
        factors = known.get(repair.rule, known.get(ALL_RULES_KEY))
        part = repair.saved / repair.promised
        held += factors is not None and factors.low <= part <= factors.high
    return held


def left_out(repairs: Sequence[Repair], of: dict[str, str]) -> int:
    """Returns how many gains lie between the factors that are fitted to all other repairs."""
    return sum(
        between([one], fitted([*repairs[:at], *repairs[at + 1 :]], of), of)
        for at, one in enumerate(repairs)
    )


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    repairs: list[Repair] = []
    for path in map(Path, sys.argv[1:]):
        read = list(repairs_of(path))
        held, count = within(read)
        print(f"{path}: {held} of {count} gains within the promised interval")
        repairs += read
    of = chapters()
    found = fitted(repairs, of)
    print(
        f"between the factors: {between(repairs, found, of)} of {len(repairs)}; "
        f"{left_out(repairs, of)} with each left out of its factors"
    )
    factors = {key: asdict(one) for key, one in found.items()}
    told = {"format": FORMAT, "chapters": of, "factors": factors}
    FILE.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
