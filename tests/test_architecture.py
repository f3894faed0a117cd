"""The architecture is checked: sizes, who may import what, and what the repository may say.

An exception is a line here with its reason; limits may only be tightened.
"""

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Collection, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeGuard

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "selftime"

CONTRACTS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
"""What import-linter holds."""

MAX_FILE: Final = 400
MAX_TEST_FILE: Final = 600
MAX_FUNCTION: Final = 50

OPENERS: Final = {"gzip", "zlib", "isal", "zstandard", "fsspec"}
"""Modules that open or inflate a trace."""

MAY_OPEN: Final = {
    "capture": {"isal"},  # writes traces, reads none
    "ingest": OPENERS,
    "reports": {"zlib", "isal"},  # packs reports and traces that are written anew, opens none
    "web": {"isal"},  # compresses answers, opens none
}

MAY_MATCH: Final = {
    "names/": "what the names in a trace mean",
    "ingest/": "finds its way in the text of a file, which is not yet names",
    "capture/trace_file/": "finds times and ends of names in the JSON that torch writes",
    "testing/": "reads drawings, which are not traces yet",
    "reports/plain.py": "removes control characters from text",
}
"""Modules and folders that may import `re`, and why; none but names matches names."""

SAVINGS: Final = "advice/savings/"
"""Where the numbers of savings are made, in one order; rules only claim."""
SAVING_FIELDS: Final = {"estimate_ms", "low_ms", "high_ms", "upper_ms", "speedup"}
WITH_SAVING_FIELDS: Final = {"Saving", "JointSaving", "Checked"}
"""The classes with those fields."""
FOR_RULES: Final = {
    "selftime.advice.savings.claims",
    "selftime.advice.savings.estimates",
}
"""What rules and detectors may import of it."""

UNRECORDED_TIMES: Final = {"unrecorded_time_ms", "unrecorded_step_ms", "measured_slowdown"}
"""What of a step's statistics turns recorded time into time without profiler."""

MAY_STATE_TIMES: Final = {
    "advice/rules/cpu/serial_dropout.py": "how long one number takes, which is no saving",
    "advice/rules/cpu/slow_reduction.py": "how long one result takes, which is no saving",
    "advice/rules/host/garbage_collection.py": "how long one pause lasts, which is no saving",
    "advice/rules/input/restarted_workers.py": "how long a start lasts that happens once",
}
"""Rules whose sentences hold times of the step, and of what."""
TIME_TEXTS: Final = {"time_text", "milliseconds_text", "time_range_text"}
"""What writes them. Times of the whole run, in `seconds_text`, are as it was, not as recorded."""

MAY_WRITE_PERCENT: Final = {
    "units.py": "writes it, for all others",
    "reports/tables/averages.py": "titles of the columns that torch's table has",
    "reports/tables/averages_text.py": "writes the table that torch writes, to the last character",
    "cli/bench.py": "a share as it is typed in a command: 2%",
    "cli/check.py": "a share as it is typed in a command: 5%",
    "cli/shared_options.py": "a share as it is typed in a command: 5%",
    "cli/what_if.py": "a share as it is typed in a command: 50%",
    "notebook.py": "a width in a style of HTML: 100%",
}
"""Modules that write percentages other than through `units`, and why."""

OPTIONAL: Final = ("torch", "tensorboard", "ray", "IPython", "pandas")
"""What `import selftime` must not load."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """What `ast.walk` finds in a file, found once: to walk the package takes a second."""
    return tuple(ast.walk(tree(path)))


@cache
def package_files() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def tracked_files() -> tuple[Path, ...]:
    """What the repository holds: files git knows, or every file where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - the developer's own git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        files = [p for p in ROOT.rglob("*") if not left_by_tools(p.relative_to(ROOT))]
    return tuple(sorted(p for p in files if p.is_file()))


def left_by_tools(path: Path) -> bool:
    made = {".git", ".venv", ".hypothesis", "__pycache__", "build", "dist", "selftime-runs"}
    return any(part in made or part.endswith(("_cache", ".egg-info")) for part in path.parts)


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Every tracked text file but this one, by its path from the root."""
    files = ((path, path.read_bytes()) for path in tracked_files() if path != Path(__file__))
    return tuple(
        (path.relative_to(ROOT).as_posix(), data.decode("utf-8"))
        for path, data in files
        if b"\0" not in data[:1024] and data[:2] != b"\x1f\x8b"
    )


@cache
def imported(path: Path) -> set[str]:
    """The first names of all modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def inside(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_there_is_something_to_check() -> None:
    assert len(package_files()) > 10
    assert len(texts()) > 10


def test_files_are_small() -> None:
    limits = dict.fromkeys(package_files(), MAX_FILE)
    limits |= {p: MAX_TEST_FILE for p in limits if p.name.endswith("_test.py")}
    for folder in ("tests", "examples", "benchmarks"):
        limits |= dict.fromkeys((ROOT / folder).rglob("*.py"), MAX_TEST_FILE)
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in limits}
    long = {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > limits[p]}
    assert long == {}


def test_functions_are_small() -> None:
    long = {}
    for path in package_files():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    long[f"{inside(path)}:{node.lineno} {node.name}"] = lines
    assert long == {}


def test_no_module_waits_for_itself_to_be_imported() -> None:
    """A cycle of imports at module level works or fails by which module is imported first."""
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in package_files()
    }
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    needed = {name: at_import(path, modules) - {name} for name, path in modules.items()}
    with_needs = dict(needed)
    while free := {name for name, needs in with_needs.items() if not needs & with_needs.keys()}:
        for name in free:
            del with_needs[name]
    assert sorted(with_needs) == []


def at_import(path: Path, modules: Mapping[str, Path]) -> set[str]:
    """The modules of the package that a module imports while it is itself imported."""
    found: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            whole = {node.module} if len(submodules & modules.keys()) < len(submodules) else set()
            found |= (submodules | whole) & modules.keys()
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules.keys()
    return found


def test_only_ingest_opens_traces() -> None:
    found = {}
    for path in package_files():
        folder = inside(path).partition("/")[0]
        refused = (imported(path) & OPENERS) - MAY_OPEN.get(folder, set())
        if refused:
            found[inside(path)] = refused
    assert found == {}


def test_only_names_matches_names() -> None:
    matching = {inside(path) for path in package_files() if "re" in imported(path)}
    assert {m for m in matching if not m.startswith(tuple(MAY_MATCH))} == set()
    assert {m for m in MAY_MATCH if not any(n.startswith(m) for n in matching)} == set()


DEFINED_ONCE: Final = {
    "call_tree": "analysis/call_tree/call_tree.py",
    "main_thread": "analysis/main_thread.py",
    "is_work_of_host_thread": "analysis/main_thread.py",
    "AttributePatches": "capture/attribute_patches.py",
}
"""Ideas that several parts draw from, and the one module that defines each."""


@pytest.mark.parametrize("name", sorted(DEFINED_ONCE))
def test_one_module_defines_it(name: str) -> None:
    found = {
        inside(path)
        for path in package_files()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        if node.name.strip("_").lower() == name.lower()
    }
    assert found == {DEFINED_ONCE[name]}


def test_only_the_command_line_prints() -> None:
    printing = {
        f"{inside(path)}:{node.lineno}"
        for path in package_files()
        if not inside(path).startswith("cli/")
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert printing == set()


def test_only_one_folder_writes_the_numbers_of_savings() -> None:
    """A rule says what its fix removes and how sure that is; the numbers are made of it there."""
    writing = {
        f"{inside(path)}:{node.lineno}"
        for path in package_files()
        if not inside(path).startswith(SAVINGS)
        for node in nodes(path)
        if isinstance(node, ast.Call | ast.Assign | ast.AugAssign) and writes_saving(node)
    }
    assert writing == set()


def test_rules_import_claims_and_replays_of_savings_and_nothing_else() -> None:
    importing = {
        inside(path): node.module
        for folder in ("rules", "detectors")
        for path in (PACKAGE / "advice" / folder).rglob("*.py")
        if not path.name.endswith("_test.py")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("selftime.advice.savings")
        and node.module not in FOR_RULES
    }
    assert importing == {}


def test_only_savings_convert_recorded_time() -> None:
    """A rule states times of the recorded step; what it has to do with others is made of them."""
    converting = {
        f"{inside(path)}:{node.lineno}"
        for path in (PACKAGE / "advice").rglob("*.py")
        if not inside(path).startswith(SAVINGS) and not path.name.endswith("_test.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in UNRECORDED_TIMES
        if inside(path) != "advice/step_statistics.py"
    }
    assert converting == set()


def test_rules_state_shares_of_the_step_and_no_times_in_sentences() -> None:
    """Times in a sentence would be recorded ones, and those of savings beside it are not."""
    stating = {
        inside(path)
        for folder in ("rules", "detectors")
        for path in (PACKAGE / "advice" / folder).rglob("*.py")
        if not path.name.endswith("_test.py")
        for node in nodes(path)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
        if (isinstance(part, ast.Constant) and re.match(r" [mnµu]s\b", str(part.value)))
        or (isinstance(part, ast.FormattedValue) and calls_any(part.value, TIME_TEXTS))
    }
    assert stating == MAY_STATE_TIMES.keys()


def calls_any(node: ast.AST, names: Collection[str]) -> bool:
    called = (c.func for c in ast.walk(node) if isinstance(c, ast.Call))
    return any(ast.unparse(func).rpartition(".")[2] in names for func in called)


def test_only_units_writes_percentages() -> None:
    """One form, in which a share that is not nothing and not all is not said to be."""
    writing = {inside(p) for p in package_files() if any(map(writes_percent, nodes(p)))}
    assert writing == MAY_WRITE_PERCENT.keys()


def test_only_units_writes_percentages_in_the_page() -> None:
    sources = [p for p in (ROOT / "frontend" / "src").rglob("*.ts*") if ".test." not in p.name]
    assert len(sources) > 10
    writing = {p.name for p in sources if re.search(r"\} %", p.read_text(encoding="utf-8"))}
    assert writing == {"units.ts"}


def writes_percent(node: ast.AST) -> bool:
    """Whether a literal formats a number as a percentage, or puts the sign behind one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(re.search(r"\d%", node.value))
    if not isinstance(node, ast.JoinedStr):
        return False
    formats = [ast.unparse(v.format_spec or v) for v in node.values if is_field(v)]
    behind = [
        after.value
        for before, after in pairwise(node.values)
        if is_field(before) and isinstance(after, ast.Constant)
    ]
    return any(text.rstrip("'").endswith("%") for text in formats) or any(
        re.match(r" ?%", str(text)) for text in behind
    )


def is_field(node: ast.AST) -> TypeGuard[ast.FormattedValue]:
    return isinstance(node, ast.FormattedValue)


@pytest.mark.parametrize(
    ("source", "is_written"),
    [
        ("f'{share:.0%} of the step'", True),
        ("f'{low:+.1%}'", True),
        ("f'{share:.{digits}%}'", True),
        ("'{:.2%}'.format(share)", True),
        ("f'{100 * share:.0f}%'", True),
        ("f'{round(100 * share)} % of it'", True),
        ("'at most 5% of it'", True),
        ("f'{share_text(share)} of the step'", False),
        ("'its 95 % interval'", False),
        ("f'{count % 5}'", False),
        ("'a%20b'", False),
    ],
)
def test_what_writes_a_percentage(source: str, *, is_written: bool) -> None:
    assert any(map(writes_percent, ast.walk(ast.parse(source)))) is is_written


def writes_saving(node: ast.Call | ast.Assign | ast.AugAssign) -> bool:
    """Whether a call or an assignment writes a number of a saving."""
    if not isinstance(node, ast.Call):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(t, ast.Attribute) and t.attr in SAVING_FIELDS for t in targets)
    called = ast.unparse(node.func).rpartition(".")[2]
    if called == "of_step" or (called in {"Saving", "JointSaving"} and node.args):
        return True
    written = {keyword.arg for keyword in node.keywords} & SAVING_FIELDS
    return called in {"replace", *WITH_SAVING_FIELDS} and bool(written)


@pytest.mark.parametrize(
    ("source", "is_written"),
    [
        ("Saving.of_step(step, 3.0, method='model')", True),
        ("Saving(upper_ms=3.0)", True),
        ("base.Saving(3.0, 2.0)", True),
        ("replace(saving, low_ms=0.0)", True),
        ("dataclasses.replace(saving, high_ms=upper, method='model')", True),
        ("Checked('free', upper_ms=0.0)", True),
        ("JointSaving(3.0, 1.5)", True),
        ("saving.estimate_ms = 3.0", True),
        ("finding.saving.speedup += 1", True),
        ("Saving()", False),
        ("JointSaving()", False),
        ("Checked('free', 0.0)", False),
        ("replace(finding, where=place)", False),
        ("Timed(low_ms=1.0, high_ms=2.0)", False),
        ("estimate_ms = finding.saving.estimate_ms", False),
    ],
)
def test_what_writes_a_number_of_a_saving(source: str, *, is_written: bool) -> None:
    statements = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call | ast.Assign | ast.AugAssign)
    )
    assert any(writes_saving(node) for node in statements) is is_written


PAGE: Final = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MADE_BY_BUILD: Final = {"reports/static/"}
"""What the page names that is there only after a build."""


def test_every_part_is_in_the_architecture() -> None:
    parts = {f"`{p.name}/`" for p in PACKAGE.iterdir() if (p / "__init__.py").exists()}
    parts |= {f"`{p.name}`" for p in PACKAGE.glob("*.py")}
    assert {part for part in parts if part not in PAGE} == set()


@pytest.mark.parametrize("part", sorted(re.findall(r"^\| `([a-z_]+/)` \|", PAGE, re.MULTILINE)))
def test_every_folder_of_a_part_is_in_its_row(part: str) -> None:
    [row] = re.findall(rf"^\| `{part}` \|.*", PAGE, re.MULTILINE)
    folders = {p.name for p in (PACKAGE / part).iterdir() if (p / "__init__.py").exists()}
    assert {name for name in folders if not re.search(rf"`(?:{part})?{name}/`", row)} == set()


def test_the_architecture_names_nothing_that_is_gone() -> None:
    """A path is one from the root of the repository, of the package, or of the part of its row."""
    gone = set()
    for line in PAGE.splitlines():
        row = re.match(r"\| `([a-z_]+/)` \|", line)
        places = [ROOT, PACKAGE, *([PACKAGE / row[1]] if row else [])]
        named = re.findall(r"`([\w./]+(?:/|\.(?:py|md|ts|toml)))`", line)
        gone |= {name for name in named if not any((place / name).exists() for place in places)}
    assert gone <= MADE_BY_BUILD


def test_the_architecture_names_no_module_that_is_gone() -> None:
    parts = "|".join(p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists())
    named = set(re.findall(rf"`((?:{parts})(?:\.\w+)*)`", PAGE))
    assert named
    paths = {name: PACKAGE.joinpath(*name.split(".")) for name in named}
    assert {
        n for n, p in paths.items() if not (p.is_dir() or p.with_suffix(".py").exists())
    } == set()


def test_the_layers_of_the_architecture_are_those_of_the_contract() -> None:
    [drawn] = re.findall(r"^## The layers\n.*?^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    [contract] = [contract for contract in CONTRACTS if contract["type"] == "layers"]
    layers = [re.sub(r"\((\w+)\)", r"\1", layer) for layer in contract["layers"]]
    assert drawn.splitlines() == layers
    assert contract["exhaustive"]


def test_what_is_forbidden_is_forbidden_to_the_whole_package() -> None:
    """No list of modules, which would lack the next one; what may import is an exception."""
    forbidden = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]
    assert forbidden
    assert {tuple(contract["source_modules"]) for contract in forbidden} == {("selftime",)}


def test_importing_selftime_loads_nothing_optional() -> None:
    script = f"import sys, selftime; print([m for m in {OPTIONAL!r} if m in sys.modules])"
    done = subprocess.run(  # noqa: S603 - our own line
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("an absolute home path", r"(?<![\w.])/(?:root|home/\w+|Users/\w+)/"),
        ("a folder of one machine", r"(?<![\w./)])/(?:work|opt|mnt)/"),
        ("a host of a package registry", r"pypi\.|pythonhosted\.|npmjs\.|crates\.io|anaconda\.org"),
    ],
)
def test_the_repository_speaks_of_no_machine(what: str, pattern: str) -> None:
    found = {
        f"{name}: {match[0]}" for name, text in texts() for match in re.finditer(pattern, text)
    }
    assert found == set(), f"{what} is in a tracked file"


def test_every_suppression_has_a_code_and_a_reason() -> None:
    bare = []
    for path in tracked_files():
        if path.suffix == ".py" and any(mark in path.read_bytes() for mark in SUPPRESSING):
            with tokenize.open(path) as file:
                tokens = list(tokenize.generate_tokens(file.readline))
            bare += [
                f"{path.relative_to(ROOT)}:{token.start[0]} {token.string}"
                for token in tokens
                if token.type == tokenize.COMMENT and suppresses_badly(token.string)
            ]
    assert bare == []


SUPPRESSING: Final = (b"noqa", b"type: ignore")


def suppresses_badly(comment: str) -> bool:
    """Whether a comment suppresses a check without saying which, or why."""
    if "noqa" in comment:
        return not re.search(r"noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)* +- \S", comment)
    if "type: ignore" in comment:
        return not re.search(r"type: ignore\[[\w, -]+\] +(?:# |- )\S", comment)
    return False


@pytest.mark.parametrize(
    ("comment", "bad"),
    [
        ("# noqa", True),
        ("# noqa: S101", True),
        ("# noqa: S101 - tests assert", False),
        ("# noqa: S101, E501 - tests assert", False),
        ("# type: ignore", True),
        ("# type: ignore[attr-defined]", True),
        ("# type: ignore[arg-type]  # an integer column", False),
        ("# why, never what", False),
    ],
)
def test_bad_suppressions_are_told_from_good_ones(comment: str, *, bad: bool) -> None:
    assert suppresses_badly(comment) is bad
