"""Writes the reference from the registries: a page for each rule, and the catalogue they cover.

    python scripts/reference.py [FOLDER]

FOLDER is `docs/rules` if it is not given. Pages of rules that are gone are removed.
"""

import sys
from pathlib import Path

from selftime.advice.base import Rule
from selftime.advice.catalogue import CHAPTERS, ENTRIES, WITHOUT_RULE
from selftime.advice.rules import RULES
from selftime.views.accounts.evidence import NEEDS

__all__ = ["pages"]

WHAT = """\
What can be slow in a PyTorch program, and the rule that finds it. `selftime explain RULE` prints
the same pages."""
FOLDER = Path(__file__).parents[1] / "docs" / "rules"


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    rules = {f"{rule.name}.md": page(rule) for rule in RULES.values()}
    return {"README.md": catalogue(), **rules}


def page(rule: Rule) -> str:
    covered = "; ".join(f"{entry}, {ENTRIES[entry].lower()}" for entry in rule.covers)
    needs = "".join(f"\n- {NEEDS[need].remedy}" for need in rule.needs)
    told = [
        f"# {rule.name}",
        rule.doc.strip(),
        "## Covers",
        f"Of [the catalogue](README.md): {covered}.",
    ]
    if needs:
        told += ["## Needs", f"A recording with{needs}"]
    if rule.broad:
        told += ["Its saving is what the fixes of more specific findings leave."]
    return "\n\n".join(told) + "\n"


def catalogue() -> str:
    told = [
        "# The catalogue",
        WHAT,
    ]
    for letter, title in CHAPTERS.items():
        rows = [f"| {entry} | {text} | {found_by(entry)} |" for entry, text in of(letter)]
        told += [f"## {letter}: {title}", "\n".join(["| | cause | rule |", "|---|---|---|", *rows])]
    return "\n\n".join(told) + "\n"


def of(letter: str) -> list[tuple[str, str]]:
    return [(entry, text) for entry, text in ENTRIES.items() if entry[0] == letter]


def found_by(entry: str) -> str:
    rules = [f"[{r.name}]({r.name}.md)" for r in RULES.values() if entry in r.covers]
    return ", ".join(rules) or WITHOUT_RULE.get(entry, "none yet")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    told = pages()
    for gone in {path.name for path in folder.glob("*.md")} - set(told):
        (folder / gone).unlink()
    for name, text in told.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
