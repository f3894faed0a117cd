"""Reads from the recorder's notes where a program creates its optimizers and DataLoaders.

And where it sets the dtype in which tensors are made unless another is named.
"""

from dataclasses import dataclass
from typing import Any

from selftime.advice.detectors.recorded_facts import recorded_setting
from selftime.advice.rule_outcomes import Where
from selftime.names.notebook_cells import place_text
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class CreationSite:
    """A line of the user's code at which objects of one class are created."""

    kind: str
    """`optimizer` or `loader`; or `default_dtype`, of which `class_name` is the dtype."""
    class_name: str
    file: str | None
    line: int | None
    function: str | None
    is_direct: bool
    """Whether that line calls the constructor, not a library that it calls."""
    packages: tuple[str, ...]
    """Packages of libraries on the stack of the constructor, the innermost first."""

    def __str__(self) -> str:
        """Returns `file:line` in backticks; an unknown line without."""
        return "line unknown" if self.file is None else f"`{place_text(self.file, self.line)}`"


def creation_sites(trace: Trace) -> tuple[CreationSite, ...]:
    """Returns where optimizers and DataLoaders were created; () if that was not recorded."""
    told = trace.facts.get("created")
    return tuple(map(_site, filter(_is_site, told))) if isinstance(told, list) else ()


def default_dtype_line(trace: Trace, dtype: str) -> Where | None:
    """Returns the line that set the program's default dtype; None if it is not `dtype`."""
    if recorded_setting(trace, "default_dtype") != dtype:
        return None
    for site in reversed(creation_sites(trace)):
        if site.kind == "default_dtype" and site.class_name == dtype and site.is_direct:
            return Where(site.file, site.line, site.function, "stack")
    return None


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
        told["function"] if isinstance(told.get("function"), str) else None,
        told.get("is_direct") is True,
        tuple(str(package) for package in told["packages"]),
    )
