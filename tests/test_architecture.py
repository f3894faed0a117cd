"""The architecture is checked: sizes, who may import what, and what the repository may say.

An exception is a line here with its reason; limits may only be tightened.
"""

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "selftime"

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
    "testing/": "reads drawings, which are not traces yet",
    "reports/plain.py": "removes control characters from text",
}
"""Modules and folders that may import `re`, and why; none but names matches names."""

OPTIONAL: Final = ("torch", "tensorboard", "ray", "IPython", "pandas")
"""What `import selftime` must not load."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def package_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


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


def texts() -> Iterator[tuple[str, str]]:
    """Every tracked text file but this one, by its path from the root."""
    for path in tracked_files():
        data = path.read_bytes()
        if path != Path(__file__) and b"\0" not in data[:1024] and data[:2] != b"\x1f\x8b":
            yield path.relative_to(ROOT).as_posix(), data.decode("utf-8")


def imported(path: Path) -> set[str]:
    """The first names of all modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def inside(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_there_is_something_to_check() -> None:
    assert len(package_files()) > 10
    assert len(list(texts())) > 10


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
        for node in ast.walk(tree(path)):
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
    "is_work": "analysis/host_work.py",
    "Patches": "capture/patches.py",
}
"""Ideas that several parts draw from, and the one module that defines each."""


@pytest.mark.parametrize("name", sorted(DEFINED_ONCE))
def test_one_module_defines_it(name: str) -> None:
    found = {
        inside(path)
        for path in package_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        if node.name.strip("_").lower() == name.lower()
    }
    assert found == {DEFINED_ONCE[name]}


def test_only_the_command_line_prints() -> None:
    printing = {
        f"{inside(path)}:{node.lineno}"
        for path in package_files()
        if not inside(path).startswith("cli/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert printing == set()


def test_every_part_is_in_the_architecture() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {f"`{p.name}/`" for p in PACKAGE.iterdir() if (p / "__init__.py").exists()}
    parts |= {f"`{p.name}`" for p in PACKAGE.glob("*.py")}
    assert {part for part in parts if part not in page} == set()


def test_the_architecture_names_no_part_that_is_gone() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z_]+(?:/|\.py))` \|", page, re.MULTILINE)
    assert named
    assert {name for name in named if not (PACKAGE / name).exists()} == set()


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
