"""Writes the reference from the registries: rules, commands, views, tables, Python.

    python scripts/reference.py [FOLDER]

FOLDER is `docs` if it is not given. In it `rules` and `reference` hold nothing else: pages of what
is gone are removed.
"""

import sys
from pathlib import Path

import reference_commands
import reference_python
import reference_tables

from selftime.advice.bottleneck_catalogue import (
    BOTTLENECKS,
    BOTTLENECKS_WITHOUT_RULE,
    CATALOGUE_CHAPTERS,
)
from selftime.advice.rule_definition import Rule
from selftime.advice.rules import RULES
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED

__all__ = ["FOLDER", "WRITTEN", "pages"]

WHAT = """\
What can be slow in a PyTorch program, and the rule that finds it. `selftime explain RULE` prints
the same pages."""
FOLDER = Path(__file__).parents[1] / "docs"
WRITTEN = ("rules", "reference")
"""Folders whose pages are all written here."""


def pages() -> dict[str, str]:
    """Every page by its path below the folder of the documents."""
    rules = {f"{rule.name}.md": page(rule) for rule in RULES.values()}
    reference = {**reference_commands.pages(), **reference_tables.pages()}
    reference |= reference_python.pages()
    return {
        "rules/README.md": catalogue(),
        **{f"rules/{name}": text for name, text in rules.items()},
        **{f"reference/{name}": text for name, text in reference.items()},
    }


def page(rule: Rule) -> str:
    covered = "; ".join(f"{entry}, {BOTTLENECKS[entry].lower()}" for entry in rule.covers)
    needs = "\n".join(f"- {REQUIREMENT_BY_NEED[need].remedy}" for need in rule.needs)
    told = [
        f"# {rule.name}",
        rule.doc.strip(),
        "## Covers",
        f"Of [the catalogue](README.md): {covered}.",
    ]
    if needs:
        told += ["## Needs", "A recording with", needs]
    if rule.broad:
        told += ["Its saving is what the fixes of more specific findings leave."]
    return "\n\n".join(told) + "\n"


def catalogue() -> str:
    told = [
        "# The catalogue",
        WHAT,
    ]
    for letter, title in CATALOGUE_CHAPTERS.items():
        rows = [f"| {entry} | {text} | {found_by(entry)} |" for entry, text in of(letter)]
        told += [f"## {letter}: {title}", "\n".join(["| | cause | rule |", "|---|---|---|", *rows])]
    return "\n\n".join(told) + "\n"


def of(letter: str) -> list[tuple[str, str]]:
    return [(entry, text) for entry, text in BOTTLENECKS.items() if entry[0] == letter]


def found_by(entry: str) -> str:
    rules = [f"[{r.name}]({r.name}.md)" for r in RULES.values() if entry in r.covers]
    return ", ".join(rules) or BOTTLENECKS_WITHOUT_RULE.get(entry, "none yet")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    told = pages()
    written = [path for name in WRITTEN for path in (folder / name).rglob("*.md")]
    for path in written:
        if path.relative_to(folder).as_posix() not in told:
            path.unlink()
    for name, text in told.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
