"""Reads the built files of the web page from the installed package: HTML, script and style."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from selftime.errors import SelftimeError

_MEDIA_TYPE_BY_FILE: Final = MappingProxyType(
    {
        "index.html": "text/html; charset=utf-8",
        "app.js": "text/javascript; charset=utf-8",
        "app.css": "text/css; charset=utf-8",
        "licences.txt": "text/plain; charset=utf-8",
    }
)
"""Media type of every file of the page; no other file is served."""


class PageFile(NamedTuple):
    """A built file of the web page: its content in bytes and its media type."""

    name: str
    media_type: str
    content: bytes
    tag: str
    """Hash of the content, sent to browsers as ETag."""


def assets() -> dict[str, PageFile]:
    """Returns every built file of the page, by name."""
    return {name: asset(name) for name in _MEDIA_TYPE_BY_FILE}


def asset(name: str) -> PageFile:
    """Returns one built file of the page by its name.

    Raises:
        SelftimeError: The page was not built, or there is no such file.
    """
    if name not in _MEDIA_TYPE_BY_FILE:
        raise SelftimeError(
            f"the page has no file `{name}`; it has {', '.join(_MEDIA_TYPE_BY_FILE)}"
        )
    return _read_page_file(name)


@cache
def _read_page_file(file_name: str) -> PageFile:
    """Returns a file of the page from the installation; the result is cached."""
    try:
        content = files("selftime.reports").joinpath("static", file_name).read_bytes()
    except OSError:
        raise SelftimeError(
            "the page is not built into this installation of selftime: install selftime again "
            "(README, Install), in a checkout with `pip install --no-deps -e .`"
        ) from None
    return PageFile(
        file_name, _MEDIA_TYPE_BY_FILE[file_name], content, sha256(content).hexdigest()[:16]
    )
