"""The files of the page, as they were built into the package."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from selftime.errors import SelftimeError

_TYPES: Final = MappingProxyType(
    {
        "index.html": "text/html; charset=utf-8",
        "app.js": "text/javascript; charset=utf-8",
        "app.css": "text/css; charset=utf-8",
        "licences.txt": "text/plain; charset=utf-8",
    }
)
"""Every file of the page and its media type: nothing else is handed out."""


class Asset(NamedTuple):
    """One file of the page."""

    name: str
    media_type: str
    content: bytes
    tag: str
    """Changes with the content."""


def assets() -> dict[str, Asset]:
    """Every file of the page, by name."""
    return {name: asset(name) for name in _TYPES}


def asset(name: str) -> Asset:
    """One file of the page.

    Raises:
        SelftimeError: It was not built, or there is no such file.
    """
    if name not in _TYPES:
        raise SelftimeError(f"the page has no file `{name}`; it has {', '.join(_TYPES)}")
    return _read(name)


@cache
def _read(name: str) -> Asset:
    try:
        content = files("selftime.reports").joinpath("static", name).read_bytes()
    except OSError:
        raise SelftimeError(
            "the page is not built into this installation of selftime; install it again with "
            "`pip install --force-reinstall --no-deps selftime`, in a checkout with "
            "`pip install --no-deps -e .`"
        ) from None
    return Asset(name, _TYPES[name], content, sha256(content).hexdigest()[:16])
