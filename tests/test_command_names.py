"""A command, its report, its page and its test have one word: its name."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest
import typer

from selftime.cli import app

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "selftime"
COMMANDS: Final = sorted(typer.main.get_command(app).list_commands(None))  # type: ignore[attr-defined]  # a group

OTHER_REPORTS: Final = {
    "advise": "reports/advice",  # named as what it writes, which pages and agents read too
    "run": "reports/advice",  # answers with the advice on what it recorded
    "view": "reports/tables",  # any table, of other commands too
    "report": "reports/html",  # a page as one file, of `compare` too
    "serve": "web",  # answers requests, and prints no report
    "mcp": "mcp",  # likewise
    "repair": "reports/rewrite.py",  # one form for what makes a trace of a trace
    "cut": "reports/rewrite.py",
    "redact": "reports/rewrite.py",
}
"""Commands whose report has another name, and why."""

OTHER_PAGES: Final = {
    "advise": "tutorial.md",  # where everybody starts
    "explain": "README.md",  # one sentence says it
    "views": "README.md",  # likewise
    "view": "many-ranks.md",  # each view has a page of its own; this one shows folders and patterns
    "ledger": "run.md",  # prints again what a run says at its end
    "verify": "compare.md",  # what one does with two recordings and with a bench
    "mcp": "agents.md",  # one of the ways in which an agent asks
    "repair": "sharing.md",  # what makes a trace of a trace, and what each keeps of it
    "cut": "sharing.md",
    "redact": "sharing.md",
}
"""Commands whose page in the documents has another name, and why."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_the_file_of_its_name(command: str) -> None:
    assert (PACKAGE / "cli" / f"{module_of(command)}.py").is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_report_of_its_name(command: str) -> None:
    report = PACKAGE / OTHER_REPORTS.get(command, f"reports/{module_of(command)}")
    assert report.is_dir() or report.with_suffix(".py").is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_page_of_its_name(command: str) -> None:
    page = ROOT / "docs" / OTHER_PAGES.get(command, f"{command}.md")
    assert re.search(rf"\bselftime {command}\b", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_tests_of_its_name_that_call_it(command: str) -> None:
    files = [*(ROOT / "tests").rglob(f"test_{module_of(command)}.py")]
    files += [test for test in (ROOT / "tests").rglob("test_*.py") if command in test.parts]
    assert any(command in words_of(file) for file in files)


@pytest.mark.parametrize("command", sorted(OTHER_REPORTS.keys() | OTHER_PAGES.keys()))
def test_an_exception_is_one_of_a_command(command: str) -> None:
    assert command in COMMANDS
    assert not (
        command in OTHER_REPORTS and (PACKAGE / "reports" / f"{module_of(command)}.py").exists()
    )
    assert not (command in OTHER_PAGES and (ROOT / "docs" / f"{command}.md").exists())


def module_of(command: str) -> str:
    """The name of the command as a module can have it: `what_if` of `what-if`."""
    return command.replace("-", "_")


def words_of(test: Path) -> set[str]:
    """The words that the texts of a test are made of."""
    texts = (
        node.value
        for node in ast.walk(ast.parse(test.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {word for text in texts if len(text) < 80 for word in text.split()}
