"""What MkDocs is told beyond `mkdocs.yml`, so that one set of pages serves it and a code host.

A page may link to any file of the repository, as code hosts allow. Those outside of `docs` become
pages below `repository/`: Markdown as it stands, anything else as a block of code. A link to them
is turned towards that page. An entry of `nav` that ends with a slash stands for a folder's pages.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

__all__ = ["on_config", "on_files", "on_page_markdown", "on_post_build"]

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = "docs/"
MOVED: Final = {"ci.html": "check.html"}
"""Pages of the site that have another address now, by their old one."""
OUTSIDE: Final = "repository/"
_FENCED: Final = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[#)])")
_LANGUAGES: Final = {".py": "python", ".json": "json", ".yml": "yaml", ".toml": "toml"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the folders among the entries of `nav`."""
    config.nav = _written_out(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside of `docs`, and what that links to in turn."""
    to_read = [DOCS + file.src_uri for file in files.documentation_pages()]
    known = set(to_read)
    while to_read:
        path = to_read.pop()
        text = (ROOT / path).read_text(encoding="utf-8")
        if not path.startswith(DOCS):
            files.append(_generated(config, path, text))
        found = set(_targets(path, text)) - known if path.endswith(".md") else set()
        known |= found
        to_read += sorted(one for one in found if not one.startswith(DOCS))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Turn the links of a page to where their targets are in the site."""
    uri = page.file.src_uri
    here = _repository_path(uri)

    def turned(link: str) -> str:
        target = _resolved(here, link)
        if not (ROOT / target).is_file():
            return link  # MkDocs says what is wrong with it
        return posixpath.relpath(_site_uri(target), posixpath.dirname(uri))

    return _outside_code(markdown, lambda text: _LINK.sub(lambda found: turned(found[0]), text))


def on_post_build(config: MkDocsConfig) -> None:
    """Send who asks for the old address of a page to its new one."""
    for old, new in MOVED.items():
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={new}">\n'
        Path(config.site_dir, old).write_text(page, encoding="utf-8")


def _written_out(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {title: _written_out(inner) for title, inner in entry.items()}
    if isinstance(entry, list):
        return [_written_out(inner) for inner in entry]
    if not entry.endswith("/"):
        return entry
    pages = sorted((ROOT / DOCS / entry).glob("*.md"), key=lambda p: (p.stem != "README", p.stem))
    return [entry + page.name for page in pages]


def _targets(path: str, text: str) -> Iterator[str]:
    """The files of the repository to which a page links."""
    for part in _FENCED.split(text)[::2]:
        for link in _LINK.findall(part):
            target = _resolved(path, link)
            if not target.startswith("..") and (ROOT / target).is_file():
                yield target


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = _FENCED.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


def _resolved(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _site_uri(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return OUTSIDE + (path if path.endswith(".md") else path + ".md")


def _repository_path(uri: str) -> str:
    """Where a page of the site is in the repository, if it is Markdown there."""
    return uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else DOCS + uri


def _generated(config: MkDocsConfig, path: str, text: str) -> File:
    apart = InclusionLevel.NOT_IN_NAV
    return File.generated(config, _site_uri(path), content=_shown(path, text), inclusion=apart)


def _shown(path: str, text: str) -> str:
    if path.endswith(".md"):
        return text
    language = _LANGUAGES.get(posixpath.splitext(path)[1], "text")
    return f"# {posixpath.basename(path)}\n\n`{path}`\n\n````{language}\n{text}````\n"
