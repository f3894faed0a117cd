"""What is registered is documented, and the documents hold together.

Every test walks over a registry or over the files; nothing is named here by hand.
"""

import ast
import doctest
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
import reference
import typer
from typer.testing import CliRunner

import selftime
from selftime.advice.bottleneck_catalogue import (
    BOTTLENECKS,
    BOTTLENECKS_WITHOUT_RULE,
    CATALOGUE_CHAPTERS,
)
from selftime.advice.rule_definition import RULE_PAGE_SECTIONS, Rule
from selftime.advice.rules import RULES
from selftime.cli import app
from selftime.schema import TABLES, Column, Table
from selftime.testing import sketch
from selftime.units import UNITS
from selftime.views import VIEWS, View

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src"
SKIPPED: Final = {".venv", "node_modules", "selftime-runs", "build", "dist"}


def pages() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = set(folders) - SKIPPED  # an environment has a hundred thousand files
        yield from (Path(folder, name) for name in names if name.endswith(".md"))


PAGES: Final = sorted(pages())
MODULES: Final = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if not path.name.endswith("_test.py") and path.name != "__main__.py"
)


def source(module: str) -> str:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8")


def is_sentence(text: str) -> bool:
    """Whether a text is one or more sentences that stand alone; a check may ask a question."""
    return bool(re.fullmatch(r"[A-Z0-9`].*[^\s.?][.?]", text, re.DOTALL))


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the command line, with the words that call it."""
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, name), (*path, name))


COMMANDS: Final = dict(commands(typer.main.get_command(app)))


def test_the_registries_are_not_empty() -> None:
    assert VIEWS
    assert RULES
    assert TABLES
    assert len(COMMANDS) > len(VIEWS)


def test_the_readme_counts_views_and_rules() -> None:
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    counts = re.findall(r"\b(\d+) (views|tables|rules)\b", told)
    assert {noun for _, noun in counts} == {"views", "tables", "rules"}
    for count, noun in counts:
        assert int(count) == len(RULES if noun == "rules" else VIEWS), noun


def test_a_module_says_what_it_is_for() -> None:
    docs = {module: ast.get_docstring(ast.parse(source(module))) or "" for module in MODULES}
    begins = {module: doc.partition("\n\n")[0] for module, doc in docs.items()}
    assert {module: first for module, first in begins.items() if not is_sentence(first)} == {}


@pytest.mark.parametrize("module", [module for module in MODULES if ">>>" in source(module)])
def test_examples_in_docstrings_are_true(module: str) -> None:
    if module.startswith("selftime.capture"):
        pytest.importorskip("torch")
    assert doctest.testmod(import_module(module)).failed == 0


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_a_view_is_documented(view: View[Any]) -> None:
    assert is_sentence(view.title), view.title
    assert_columns(view.columns)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_table_is_documented(table: Table) -> None:
    assert is_sentence(table.doc), table.doc
    assert_columns(table.columns)


def assert_columns(columns: tuple[Column, ...]) -> None:
    assert columns
    names = [column.name for column in columns]
    assert len(names) == len(set(names))
    for column in columns:
        assert is_sentence(column.doc), f"{column.name}: {column.doc}"
        assert column.unit in UNITS


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_rule_has_its_page(rule: Rule) -> None:
    assert is_sentence(rule.title), rule.title
    assert tuple(rule.sections) == RULE_PAGE_SECTIONS
    assert all(text.strip() for text in rule.sections.values())


def test_the_reference_is_written() -> None:
    made = reference.pages()
    there = {name: reference.FOLDER / name for name in made}
    told = {n: p.read_text(encoding="utf-8") if p.exists() else "" for n, p in there.items()}
    differ = [name for name in made if told[name] != made[name]]
    assert differ == [], "write them with `make docs`"


def test_no_page_is_of_what_is_gone() -> None:
    there = {page for name in reference.WRITTEN for page in (reference.FOLDER / name).rglob("*.md")}
    assert {page.relative_to(reference.FOLDER).as_posix() for page in there} == set(
        reference.pages()
    )


def test_the_catalogue_is_covered_or_says_why_not() -> None:
    covered = {entry for rule in RULES.values() for entry in rule.covers}
    assert [
        entry for entry in BOTTLENECKS if (entry in covered) == (entry in BOTTLENECKS_WITHOUT_RULE)
    ] == []


def test_the_catalogue_has_what_is_covered() -> None:
    covered = {entry for rule in RULES.values() for entry in rule.covers}
    assert covered | set(BOTTLENECKS_WITHOUT_RULE) <= set(BOTTLENECKS)
    assert {entry[0] for entry in BOTTLENECKS} == set(CATALOGUE_CHAPTERS)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "selftime")
def test_a_command_shows_help_with_an_example(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"NO_COLOR": "1"})
    assert shown.exit_code == 0, shown.output
    assert is_sentence((COMMANDS[words].help or "").partition("\n")[0])
    example = re.search(r"^\s*Examples?:\s+selftime\b(.*)", shown.output, re.MULTILINE)
    assert example, shown.output
    assert example[1].split()[: len(words)] == list(words)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    gone = [link for link in local if not leads(page, link)]
    assert gone == []


def leads(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown viewers make them."""
    headings = re.findall(
        r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE
    )
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_every_page_is_on_the_map() -> None:
    page = ROOT / "docs" / "README.md"
    listed = set(re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")))
    docs = ROOT / "docs"
    written = {folder for name in reference.WRITTEN for folder in (docs / name).rglob("*.md")}
    there = {p.relative_to(docs).as_posix() for p in set(docs.rglob("*.md")) - written}
    assert there - {"README.md"} <= listed


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_in_the_documents_is_python(page: Path) -> None:
    for block in re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        ast.parse(block)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```pycon" in p.read_text("utf-8")], ids=named
)
def test_examples_in_the_documents_are_true(page: Path) -> None:
    """What a session on a page shows is what Python answers; a drawing is the next `trace`."""
    blocks = re.findall(
        r"^```(pycon|sketch)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {"selftime": selftime}
    said: list[str] = []
    for kind, text in blocks:
        if kind == "sketch":
            names["trace"] = sketch(text)
            continue
        told = doctest.DocTestParser().get_doctest(text, names, named(page), named(page), 0)
        doctest.DocTestRunner().run(told, out=said.append, clear_globs=False)
        names |= told.globs
    assert "".join(said) == ""


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_lines_of_examples_are_in_the_functions_that_pages_name(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path, line, function in set(re.findall(r"(examples/\S+?\.py):(\d+) in (\w+)", text)):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        around = [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.lineno <= int(line) <= (node.end_lineno or 0)
        ]
        assert function in around, f"{path}:{line}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_in_the_documents_exist(page: Path) -> None:
    """Of every line of a code block that begins with `selftime`, the first word is a command."""
    blocks = re.findall(
        r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    called = {
        match[1]
        for block in blocks
        for match in re.finditer(r"^(?:\$ )?selftime ([a-z-]+)", block, re.MULTILINE)
    }
    assert called <= {words[0] for words in COMMANDS if words}


@pytest.mark.parametrize("text", ["The line, from 1.", "Two. Sentences.", "`x` is one\nof two."])
def test_sentences_are_told_from_fragments(text: str) -> None:
    assert is_sentence(text)
    assert not is_sentence(text.removesuffix("."))
    assert not is_sentence(text + "..")
    assert not is_sentence("lower " + text)
    assert not is_sentence("")


def test_selftime_is_installed_from_one_address_everywhere() -> None:
    """No package index has it: a line without the address would install something else.

    A wheel that `make wheel` built is a file.
    """
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    lines = [
        line.strip()
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if "pip install" in line and "selftime" in line and "dist/selftime-" not in line
    ]
    assert len(lines) >= 4
    addresses = {line.partition(" @ ")[2].rstrip('"').strip() for line in lines}
    assert addresses == {"git+https://example.org/selftime.git"}
