"""Serve the page below the address that TensorBoard gives a plugin."""

import json
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from selftime.tensorboard.watch import Watch

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
                from selftime.tensorboard.sources import Traces  # noqa: PLC0415 - likewise
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
