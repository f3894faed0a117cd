"""Keeps where a program creates its optimizers and DataLoaders, and through which libraries.

And where it sets the default dtype, in which tensors are made unless another is named.

A framework that runs the loop creates them itself, or has a method of the user's do it: then a
change is made by an argument of the framework, or in that method.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any, Final, Literal, TypeAlias

CreatedKind: TypeAlias = Literal["optimizer", "loader", "default_dtype"]

MAX_SITES: Final = 32
"""Largest number of creation sites that are kept; a program with more has no single one."""

MAX_FRAMES: Final = 64
"""Largest number of frames of the stack that are looked at."""

OWN_PACKAGES: Final = frozenset({"torch", "selftime"})
"""Packages whose frames are of no interest: what creates the objects, and the recorder."""


@dataclass(frozen=True, slots=True)
class CreationSite:
    """Where objects of one class are created."""

    kind: CreatedKind
    class_name: str
    """Name of the class; of a `default_dtype` that of the dtype."""
    file: str | None
    """File of the user's code that creates them, or calls the library that does; None if none."""
    line: int | None
    function: str | None
    is_direct: bool
    """Whether that line calls the constructor, not a library."""
    packages: tuple[str, ...]
    """Names of the packages of libraries on the stack, the innermost first."""


_sites: Final[dict[CreationSite, None]] = {}


def note_creation(
    kind: CreatedKind,
    class_name: str,
    frame: FrameType | None,
    is_user_file: Callable[[str], bool],
) -> None:
    """Notes that an object is created, with the stack of its constructor."""
    if len(_sites) < MAX_SITES:
        _sites[_site(kind, class_name, frame, is_user_file)] = None


def creation_facts() -> list[dict[str, Any]]:
    """Returns the creation sites so far as JSON values, in the order of the first creations."""
    return [asdict(site) for site in tuple(_sites)]


def _site(
    kind: CreatedKind,
    class_name: str,
    frame: FrameType | None,
    is_user_file: Callable[[str], bool],
) -> CreationSite:
    packages: dict[str, None] = {}
    user: FrameType | None = None
    is_direct = False
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if is_user_file(frame.f_code.co_filename):
            if user is None:
                user, is_direct = frame, not packages
        elif package == "selftime" and (packages or user is not None):
            break  # what runs the program
        elif package and package not in OWN_PACKAGES:
            packages[package] = None
        frame = frame.f_back
    if user is None:
        return CreationSite(kind, class_name, None, None, None, False, tuple(packages))
    code = user.f_code
    where = code.co_filename, user.f_lineno, code.co_name
    return CreationSite(kind, class_name, *where, is_direct, tuple(packages))
