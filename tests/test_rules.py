"""What holds of every rule, whoever wrote it."""

import ast
from pathlib import Path

import pytest

import selftime.advice.rules as package
from selftime.advice import RULES, Finding, Rule
from selftime.advice.advise import advised_trace_path
from selftime.advice.bottleneck_catalogue import CATALOGUE_CHAPTERS
from selftime.advice.rule_definition import RULE_PAGE_SECTIONS, Evidence, Outcome
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.recording_requirements import (
    REQUIREMENT_BY_NEED,
    missing_requirement_sentences,
)
from selftime.testing import sketch_job
from selftime.trace import Job, Trace

FOLDER = Path(package.__file__).parent
CURES = ("avoid_", "use_", "prefer_", "no_", "consider_", "enable_", "disable_")
"""A rule names what is found, never the cure: "allow `slow_input`" must read well."""
MAX_CODE_COLUMNS = 72
"""Largest width of a line of a fix's code: a terminal of 80 columns, less the indentation."""

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


@every_rule
def test_page_is_complete(rule: Rule) -> None:
    assert tuple(rule.sections) == RULE_PAGE_SECTIONS
    assert all(text.strip() for text in rule.sections.values())
    assert rule.title.endswith(".")
    assert len(rule.title) <= 72


@every_rule
def test_it_finds_what_it_fires_on(rule: Rule) -> None:
    """What saves time says what it changes, and what is drawn holds what the rule needs."""
    drawings = rule.drawings("Fires on")
    assert drawings
    for drawing in drawings:
        drawn = sketch_job(drawing)
        for trace in [drawn] if isinstance(drawn, Trace) else drawn:
            assert missing_requirement_sentences(trace, rule.needs) == [], drawing
        found = findings(told(rule, drawn))
        assert found, drawing
        for finding in found:
            assert finding.changes or finding.saving.estimate_ms is None, finding.title
            for evidence in finding.evidence:
                assert_slices_exist(evidence, drawn)


def assert_slices_exist(evidence: Evidence, drawn: Trace | Job) -> None:
    """What a number was measured on is slices of the trace, each once, and its examples exist."""
    traces = [drawn] if isinstance(drawn, Trace) else list(drawn)
    count = max(trace.slices.height for trace in traces)
    some = () if evidence.slices is None else evidence.slices.tolist()
    assert all(0 <= id_ < count for id_ in (*some, *evidence.events)), evidence.metric
    assert len(set(some)) == len(some), evidence.metric


@every_rule
def test_it_answers_and_finds_nothing_where_it_is_silent(rule: Rule) -> None:
    drawings = rule.drawings("Silent on")
    assert drawings
    for drawn in [Trace(), *map(sketch_job, drawings)]:
        said = told(rule, drawn)
        assert said, "say what was checked, or what is unknown"
        assert not findings(said)


@every_rule
def test_it_covers_entries_of_the_catalogue(rule: Rule) -> None:
    assert rule.covers
    assert len(set(rule.covers)) == len(rule.covers)
    assert all(entry[:1].isupper() and entry[1:].isdigit() for entry in rule.covers)


@every_rule
def test_it_is_named_after_what_is_found(rule: Rule) -> None:
    assert rule.name.isidentifier()
    assert rule.name.islower()
    assert not rule.name.startswith(CURES)


@every_rule
def test_every_threshold_has_a_reason(rule: Rule) -> None:
    [file] = FOLDER.glob(f"*/{rule.name}.py")
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) == "Final":
            is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert is_told, f"{rule.name}.py: {ast.unparse(statement.target)} has no docstring"


@every_rule
def test_code_of_fixes_fits_a_terminal(rule: Rule) -> None:
    [file] = FOLDER.glob(f"*/{rule.name}.py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    lines = [
        line
        for code in code_of_fixes(tree)
        for constant in ast.walk(code)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
        for line in constant.value.splitlines()
    ]
    assert [line for line in lines if len(line) > MAX_CODE_COLUMNS] == []


def test_code_of_fixes_is_found_in_constants_and_in_calls() -> None:
    tree = ast.parse('A_CODE: Final = "a"\nFix("text", "b")\nFix("text", code="c")')
    assert [ast.unparse(code) for code in code_of_fixes(tree)] == ["'a'", "'b'", "'c'"]


def test_every_file_is_registered_and_tested() -> None:
    files = {path.stem for path in FOLDER.rglob("*.py")} - {"__init__"}
    rules = {name for name in files if not name.endswith("_test")}
    assert rules == set(RULES)
    assert {f"{rule}_test" for rule in rules} == files - rules


@every_rule
def test_it_lies_in_the_folder_of_a_chapter_that_it_covers(rule: Rule) -> None:
    [file] = FOLDER.glob(f"*/{rule.name}.py")
    chapter = (file.parent / "__init__.py").read_text(encoding="utf-8")
    assert any(f"chapter {entry[0]} " in chapter for entry in rule.covers)


def test_every_chapter_with_rules_has_a_folder() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    pages = [(FOLDER / name / "__init__.py").read_text(encoding="utf-8") for name in folders]
    told = {
        letter
        for letter in CATALOGUE_CHAPTERS
        if any(f"chapter {letter} of the catalogue" in page for page in pages)
    }
    assert told == {entry[0] for rule in RULES.values() for entry in rule.covers}


def test_every_need_says_how_to_record_it() -> None:
    assert all("record" in need.remedy for need in REQUIREMENT_BY_NEED.values())


def told(rule: Rule, drawn: Trace | Job) -> tuple[Outcome, ...]:
    """What a rule says of a trace, or of the trace that a job's advice is about."""
    if isinstance(drawn, Trace):
        return rule(drawn)
    ranks = Ranks.of(drawn)
    return rule(drawn.traces[advised_trace_path(ranks)], ranks)


def findings(outcomes: tuple[Outcome, ...]) -> list[Finding]:
    return [outcome for outcome in outcomes if isinstance(outcome, Finding)]


def code_of_fixes(tree: ast.Module) -> list[ast.expr]:
    """The expressions that a rule's code of fixes is made of, by constants and by calls of Fix."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and "CODE" in ast.unparse(node.target) and node.value:
            found.append(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Fix":
            found += [*node.args[1:], *(by.value for by in node.keywords if by.arg == "code")]
    return found
