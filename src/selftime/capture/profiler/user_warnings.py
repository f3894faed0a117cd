"""Shows warnings at the user's source line, and catches warnings raised by selftime's calls."""

import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

import selftime
from selftime.capture.attribute_patches import AttributePatches

_PATH_PREFIXES_OF_SKIPPED_FRAMES: Final = (
    *(f"{Path(place).parent}{os.sep}" for place in (str(torch.__file__), selftime.__file__)),
    str(inspect.getsourcefile(contextmanager)),
)
"""Path prefixes of torch, selftime and contextlib: a warning never points to their source lines."""


_FILTER_OF_EVERY_WARNING: Final[Any] = ("always", None, Warning, None, 0)


@contextmanager
def take_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collects the warnings raised in a `with` block in a list; shows none of them.

    `warnings.catch_warnings` makes Python forget which warnings it has shown: those of the program
    that are shown once would be shown again.
    """
    taken: list[warnings.WarningMessage] = []

    def take(*args: Any) -> None:
        taken.append(warnings.WarningMessage(*args))

    filters, patches = warnings.filters, AttributePatches()
    filters.insert(0, _FILTER_OF_EVERY_WARNING)  # type: ignore[attr-defined]  # a list
    try:
        patches.replace_attribute(warnings, "showwarning", take)
        yield taken
    finally:
        patches.restore_all()
        with suppress(ValueError):
            filters.remove(_FILTER_OF_EVERY_WARNING)  # type: ignore[attr-defined]  # a list


def warn_at_user_line(text: str | Warning) -> None:
    """Shows a warning that points to the innermost line outside of torch and selftime."""
    file, line, module = user_warning_location()
    registry = None if module is None else module.setdefault("__warningregistry__", {})
    name = None if module is None else module.get("__name__")
    kind = type(text) if isinstance(text, Warning) else UserWarning
    warnings.warn_explicit(text, kind, file, line, module=name, registry=registry)


def user_warning_location() -> tuple[str, int, dict[str, Any] | None]:
    """Returns (file, line, globals) of the innermost frame outside of torch and selftime."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as `warnings` does
    while frame is not None and frame.f_code.co_filename.startswith(
        _PATH_PREFIXES_OF_SKIPPED_FRAMES
    ):
        frame = frame.f_back
    if frame is None:
        return "sys", 0, None
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals
