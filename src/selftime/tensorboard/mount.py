"""Serve the page below the address that TensorBoard gives a plugin."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.cache import file_stamp
from selftime.reports.page_data.listing import Listed, identified
from selftime.tensorboard.watch import File, Watch
from selftime.trace import Trace
from selftime.web.sources import read

_PATIENCE_S: Final = 1.0
"""Seconds that a list of traces may wait for newly found ones."""

ENTRY: Final = "entry.js"
_SOURCE: Final = "/api/source"
_PAGE: Final = """\
// TensorBoard calls `render` in a frame whose `<base>` would mislead the links of the page.
export function render() {
  location.replace(new URL("index.html", import.meta.url));
}
"""
_MESSAGE: Final = """\
export function render() {
  document.body.textContent = %s;
}
"""
_log: Final = logging.getLogger(__name__)
_Start = Callable[..., Any]
_WSGI = Callable[[dict[str, Any], _Start], Iterable[bytes]]


class Traces:
    """The traces that some watches found: newest run first, then by worker and time."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches = tuple(watches)
        self._files: dict[str, File] = {}

    def listed(self) -> list[Listed]:
        found = list(self._found())
        self._files = {listed.id: file for listed, file in found}
        newest: dict[str, int] = {}
        for listed, file in found:
            newest[listed.run] = max(newest.get(listed.run, 0), file.changed)
        found.sort(key=lambda one: (-newest[one[0].run], _order(one[0])))
        return [listed for listed, _ in found]

    def mark(self, trace: str) -> str:
        file = self._file(trace)
        if "://" in file.place:
            return ""
        try:
            return file_stamp(Path(file.place))
        except OSError as error:
            raise UnreadableTrace(f"`{file.place}` cannot be read: {error.strerror}") from error

    def place(self, trace: str) -> str:
        return self._file(trace).place

    def open(self, trace: str) -> Trace:
        return read(self.place(trace))

    def _file(self, trace: str) -> File:
        if trace not in self._files:
            self.listed()
        try:
            return self._files[trace]
        except KeyError:
            raise UsageError(
                f"there is no trace `{trace[:40]}` in the logdir any more; choose another"
            ) from None

    def _found(self) -> Iterator[tuple[Listed, File]]:
        for watch in self._watches:
            watch.ask()
        until = time.monotonic() + _PATIENCE_S
        seen = set()
        for watch in self._watches:
            for file in watch.found(wait=max(0.0, until - time.monotonic())):
                listed = identified(file.place, run=watch.logdir.run(file.folder))
                if listed.id not in seen:
                    seen.add(listed.id)
                    yield listed, file


def _order(listed: Listed) -> tuple[list[tuple[int, str]], ...]:
    return _natural(listed.run), _natural(listed.worker), _natural(listed.span)


def _natural(text: str) -> list[tuple[int, str]]:
    """Returns a sort key that compares numbers in a text as numbers.

    >>> sorted(["rank10", "rank2"], key=_natural)
    ['rank2', 'rank10']
    """
    parts = ("".join(run) for _, run in groupby(text, key=str.isdecimal))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


class Mount:
    """Answers all requests below the plugin's address; loads the server at the first request."""

    def __init__(self, watches: Iterable[Watch], *, prefix: str, shows_source: bool) -> None:
        self.prefix = prefix
        self._watches = tuple(watches)
        self._shows_source = shows_source
        self._lock = threading.Lock()
        self._app: _WSGI | None = None

    def __call__(self, environ: dict[str, Any], start_response: _Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "").removeprefix(self.prefix)
        below = {
            **environ,
            "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + self.prefix,
            "PATH_INFO": path,
        }
        if path == f"/{ENTRY}":
            return _script(self._entry(), start_response)
        if path == _SOURCE and not _names_this_machine(environ):
            return _respond(b'{"source":null}', "application/json", start_response)
        return self._loaded()(below, _with_framing_headers(path, start_response))

    def _entry(self) -> str:
        """Returns the module that TensorBoard loads: it opens the page, or shows an error."""
        from selftime.errors import SelftimeError  # noqa: PLC0415 - TensorBoard starts without

        try:
            from selftime.reports.page_data.assets import assets  # noqa: PLC0415 - likewise

            assets()
            self._loaded()
        except (SelftimeError, ImportError) as error:
            _log.warning("the page cannot be shown: %s", error)
            return _MESSAGE % json.dumps(f"selftime: {error}").replace("</", "<\\/")
        return _PAGE

    def _loaded(self) -> _WSGI:
        with self._lock:
            if self._app is None:
                from selftime.web import App  # noqa: PLC0415 - likewise

                self._app = App(Traces(self._watches), shows_source=self._shows_source)
            return self._app


def _names_this_machine(environ: dict[str, Any]) -> bool:
    """Returns whether the request's host name is that of this machine.

    TensorBoard answers any host name, so that a foreign website could resolve its own name to it.
    """
    from selftime.web.guard import is_loopback  # noqa: PLC0415 - TensorBoard starts without

    name, colon, port = environ.get("HTTP_HOST", "").lower().rpartition(":")
    return is_loopback(name if colon and port.isdigit() else f"{name}{colon}{port}")


def _script(text: str, start_response: _Start) -> Iterable[bytes]:
    return _respond(text.encode(), "text/javascript; charset=utf-8", start_response)


def _respond(content: bytes, media_type: str, start_response: _Start) -> Iterable[bytes]:
    headers = [
        ("Content-Type", media_type),
        ("Content-Length", str(len(content))),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ]
    start_response("200 OK", headers)
    return [content]


def _with_framing_headers(path: str, start_response: _Start) -> _Start:
    """Returns `start_response` with the headers that TensorBoard requires.

    TensorBoard's pages are shown in frames of other sites, such as notebooks, so the header must
    not restrict frame ancestors. And every response needs a media type, even one without content.
    """

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        new_headers = [
            (name, _without_ancestors(value) if name == "Content-Security-Policy" else value)
            for name, value in headers
        ]
        if not any(name.lower() == "content-type" for name, _ in new_headers):
            new_headers.append(("Content-Type", _media_type(path)))
        return start_response(status, new_headers, *rest)

    return start


def _without_ancestors(policy: str) -> str:
    directives = (one.strip() for one in policy.split(";"))
    return "; ".join(one for one in directives if not one.startswith("frame-ancestors"))


def _media_type(path: str) -> str:
    from selftime.reports.page_data.assets import asset  # noqa: PLC0415 - TensorBoard starts without

    return asset(path.removeprefix("/")).media_type
