"""Serves selftime's web page at the URL that TensorBoard gives the plugin."""

import json
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from selftime.tensorboard.logdir_watch import LogdirWatch

ENTRY_JAVASCRIPT_FILE: Final = "entry.js"
"""Name of the JavaScript module that TensorBoard loads when the tab is opened."""
_SOURCE_LINES_URL_PATH: Final = "/api/source"
"""Path, relative to the plugin's URL, of requests for lines of source files."""
_JAVASCRIPT_THAT_OPENS_PAGE: Final = """\
// TensorBoard calls `render` in a frame whose `<base>` would mislead the links of the page.
export function render() {
  location.replace(new URL("index.html", import.meta.url));
}
"""
"""JavaScript module that opens the page in TensorBoard's tab."""
_JAVASCRIPT_THAT_SHOWS_ERROR: Final = """\
export function render() {
  document.body.textContent = %s;
}
"""
"""JavaScript module that shows an error message in TensorBoard's tab."""
_log: Final = logging.getLogger(__name__)
_StartResponse = Callable[..., Any]
_WSGI = Callable[[dict[str, Any], _StartResponse], Iterable[bytes]]


class PluginRequestHandler:
    """Answers all requests below the plugin's URL; loads the page's server on first use."""

    def __init__(
        self, watches: Iterable[LogdirWatch], *, url_prefix: str, shows_source: bool
    ) -> None:
        self.url_prefix = url_prefix
        self._watches = tuple(watches)
        self._shows_source = shows_source
        self._lock = threading.Lock()
        self._app: _WSGI | None = None

    def __call__(self, environ: dict[str, Any], start_response: _StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "").removeprefix(self.url_prefix)
        environ_below_prefix = {
            **environ,
            "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + self.url_prefix,
            "PATH_INFO": path,
        }
        if path == f"/{ENTRY_JAVASCRIPT_FILE}":
            return _javascript_response(self._entry_javascript(), start_response)
        if path == _SOURCE_LINES_URL_PATH and not _is_addressed_to_this_machine(environ):
            return _response_with_caching_forbidden(
                b'{"source":null}', "application/json", start_response
            )
        return self._page_app()(
            environ_below_prefix, _start_response_with_framing_headers(path, start_response)
        )

    def _entry_javascript(self) -> str:
        """Returns the JavaScript module that opens the page in the tab, or shows an error."""
        from selftime.errors import SelftimeError  # noqa: PLC0415 - TensorBoard starts without

        try:
            from selftime.reports.page_data.assets import assets  # noqa: PLC0415 - likewise

            assets()
            self._page_app()
        except (SelftimeError, ImportError) as error:
            _log.warning("the page cannot be shown: %s", error)
            return _JAVASCRIPT_THAT_SHOWS_ERROR % json.dumps(f"selftime: {error}").replace(
                "</", "<\\/"
            )
        return _JAVASCRIPT_THAT_OPENS_PAGE

    def _page_app(self) -> _WSGI:
        """Returns the page's WSGI application; creates it at the first call."""
        with self._lock:
            if self._app is None:
                from selftime.tensorboard.sources import LogdirTraces  # noqa: PLC0415 - likewise
                from selftime.web import PageApp  # noqa: PLC0415 - likewise

                self._app = PageApp(LogdirTraces(self._watches), shows_source=self._shows_source)
            return self._app


def _is_addressed_to_this_machine(environ: dict[str, Any]) -> bool:
    """Returns whether the host name in a request means this machine.

    TensorBoard answers any host name, so that a foreign website could resolve its own name to it.
    """
    from selftime.web.access_guard import is_loopback_host  # noqa: PLC0415 - TensorBoard starts without

    name, colon, port = environ.get("HTTP_HOST", "").lower().rpartition(":")
    return is_loopback_host(name if colon and port.isdigit() else f"{name}{colon}{port}")


def _javascript_response(script: str, start_response: _StartResponse) -> Iterable[bytes]:
    """Answers a request with a JavaScript module; returns the response's body."""
    return _response_with_caching_forbidden(
        script.encode(), "text/javascript; charset=utf-8", start_response
    )


def _response_with_caching_forbidden(
    content: bytes, media_type: str, start_response: _StartResponse
) -> Iterable[bytes]:
    """Answers a request with bytes that browsers may not cache; returns the body."""
    headers = [
        ("Content-Type", media_type),
        ("Content-Length", str(len(content))),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ]
    start_response("200 OK", headers)
    return [content]


def _start_response_with_framing_headers(
    path: str, start_response: _StartResponse
) -> _StartResponse:
    """Returns a `start_response` that also sends the headers that TensorBoard requires.

    TensorBoard's pages are shown in frames of other sites, such as notebooks, so the header must
    not restrict frame ancestors. And every response needs a media type, even one without content.
    """

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        new_headers = [
            (name, _without_frame_ancestors(value) if name == "Content-Security-Policy" else value)
            for name, value in headers
        ]
        if not any(name.lower() == "content-type" for name, _ in new_headers):
            new_headers.append(("Content-Type", _media_type_of_page_file(path)))
        return start_response(status, new_headers, *rest)

    return start


def _without_frame_ancestors(policy: str) -> str:
    """Returns a content security policy without its directive `frame-ancestors`."""
    directives = (directive.strip() for directive in policy.split(";"))
    return "; ".join(
        directive for directive in directives if not directive.startswith("frame-ancestors")
    )


def _media_type_of_page_file(path: str) -> str:
    """Returns the media type, such as `text/css`, of the page's file at a URL path."""
    from selftime.reports.page_data.assets import asset  # noqa: PLC0415 - TensorBoard starts without

    return asset(path.removeprefix("/")).media_type
