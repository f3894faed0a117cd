"""The page of the reference on Python, read from the sources: nothing of torch is imported."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final, TypeAlias

__all__ = ["pages"]

SOURCE: Final = Path(__file__).parents[1] / "src"
WHAT: Final = """\
What `import selftime` offers. Views and their columns are [on pages of their own](views/README.md),
a trace's tables [on another](tables.md). Names are imported when they are first used: `import
selftime` alone loads neither PyTorch nor Polars."""

Definition: TypeAlias = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Found:
    """A public name: the definition, and the module that holds it."""

    module: str
    node: Definition


def pages() -> dict[str, str]:
    """The page of the public names."""
    told = ["# Python", WHAT]
    for name in sorted(exported(), key=str.lower):
        found = definition("selftime", name)
        told += of_torch(name) if found is None else described(name, found)
    return {"python.md": "\n\n".join(told) + "\n"}


def exported() -> list[str]:
    """`selftime.__all__` without its version."""
    names: list[str] = []
    for node in tree("selftime").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
    return [name for name in names if not name.startswith("_")]


def tree(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def definition(module: str, name: str) -> Found | None:
    """Where a name is defined, by way of the imports that pass it on; None if that is in torch."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return Found(module, node)
        if isinstance(node, ast.ImportFrom) and name in {one.name for one in node.names}:
            home = node.module or ""
            return None if home.startswith("torch") else definition(home, name)
    raise LookupError(f"`{module}` has no `{name}`")


def of_torch(name: str) -> list[str]:
    return [f"## selftime.{name}", f"`torch.profiler.{name}` itself."]


def described(name: str, found: Found) -> list[str]:
    told = [f"## selftime.{name}", signature(f"selftime.{name}", found.node), doc(found.node)]
    if isinstance(found.node, ast.ClassDef):
        for method in methods(found):
            told += [f"### {name}.{method.name}", signature(method.name, method), doc(method)]
    return [part for part in told if part]


def methods(found: Found) -> Iterator[ast.FunctionDef]:
    """The public methods of a class that say what they do, its own first, each once."""
    seen: set[str] = set()
    for one in lineage(found):
        for node in one.node.body:
            is_told = isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
            if isinstance(node, ast.FunctionDef) and is_told and node.name not in seen:
                seen.add(node.name)
                if not node.name.startswith("_") and not is_setter(node):
                    yield node


def lineage(found: Found) -> Iterator[Found]:
    """A class and those of ours that it is made from."""
    yield found
    if isinstance(found.node, ast.ClassDef):
        for base in found.node.bases:
            if isinstance(base, ast.Name) and (above := ours(found.module, base.id)):
                yield from lineage(above)


def ours(module: str, name: str) -> Found | None:
    try:
        return definition(module, name)
    except LookupError:  # of the standard library
        return None


def is_setter(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).endswith(".setter") for one in node.decorator_list)


def signature(name: str, node: Definition) -> str:
    """How it is called; a property is not."""
    if isinstance(node, ast.ClassDef):
        inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        return block(f"class {name}{parameters(inits[0])}" if inits else f"class {name}")
    if any(ast.unparse(one) in {"property", "cached_property"} for one in node.decorator_list):
        return block(f"{name}: {ast.unparse(node.returns)}" if node.returns else name)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return block(f"{name}{parameters(node)}{returns}")


def parameters(node: ast.FunctionDef) -> str:
    arguments = node.args
    first = [*arguments.posonlyargs, *arguments.args][:1]
    if [one.arg for one in first] != ["self"]:
        return f"({ast.unparse(arguments)})"
    return f"({ast.unparse(arguments).removeprefix('self').removeprefix(', /').removeprefix(', ')})"


def block(text: str) -> str:
    return f"```text\n{text}\n```"


def doc(node: Definition) -> str:
    """What it says of itself: examples as code, sections on arguments and errors as lists."""
    return "\n\n".join(map(part, (ast.get_docstring(node) or "").split("\n\n")))


def part(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    head, _, rest = text.partition("\n")
    if not head.endswith(":") or not rest.startswith("    "):
        return text
    items = "\n".join(map(item, dedent(rest).splitlines()))
    return f"{head}\n\n{items}"


def item(line: str) -> str:
    """A line of such a section: one that is set back goes on with the item before."""
    if line.startswith(" "):
        return f"  {line.strip()}"
    name, _, text = line.partition(": ")
    return f"- `{name}`: {text}"
