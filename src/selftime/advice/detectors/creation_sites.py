"""Reads from the recorder's notes where a program creates its optimizers and DataLoaders."""

from dataclasses import dataclass
from typing import Any

from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class CreationSite:
    """A line of the user's code at which objects of one class are created."""

    kind: str
    """`optimizer` or `loader`."""
    class_name: str
    file: str | None
    line: int | None
    is_direct: bool
    """Whether that line calls the constructor, not a library that it calls."""
    packages: tuple[str, ...]
    """Packages of libraries on the stack of the constructor, the innermost first."""

    def __str__(self) -> str:
        """Returns `file:line` in backticks; an unknown line without."""
        return "line unknown" if self.file is None else f"`{self.file}:{self.line}`"


def creation_sites(trace: Trace) -> tuple[CreationSite, ...]:
    """Returns where optimizers and DataLoaders were created; () if that was not recorded."""
    told = trace.facts.get("created")
    return tuple(map(_site, filter(_is_site, told))) if isinstance(told, list) else ()


def _is_site(told: Any) -> bool:
    return (
        isinstance(told, dict)
        and all(isinstance(told.get(name), str) for name in ("kind", "class_name"))
        and isinstance(told.get("file"), str | None)
        and isinstance(told.get("line"), int | None)
        and isinstance(told.get("packages"), list)
    )


def _site(told: dict[str, Any]) -> CreationSite:
    """Returns a site of the notes; a backtick in a name would end its quotation."""
    file = told["file"]
    return CreationSite(
        told["kind"],
        told["class_name"],
        None if file is None or told["line"] is None else file.replace("`", "'"),
        told["line"],
        told.get("is_direct") is True,
        tuple(str(package) for package in told["packages"]),
    )
