"""The WSGI app: addresses, headers and compression; errors become one sentence.

All addresses are relative to where it is mounted, so that it works behind any prefix.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from isal import isal_zlib
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestURITooLarge
from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from selftime.errors import SelftimeError, UsageError
from selftime.reports.page_data.assets import asset
from selftime.web.answers import Answers
from selftime.web.sources import Sources

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"  # TensorBoard frames the page
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LONGEST_QUERY: Final = 16_384
_WORTH_PACKING: Final = 1024
_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_LEVEL: Final = 2
_JSON: Final = "application/json"
_CSV: Final = ".csv"
_FROM_PAGE: Final = "Selftime-Page"
"""A header of the page's own questions."""
_FILES: Final = ("app.js", "app.css", "index.html")

_log: Final = logging.getLogger(__name__)


class App:
    """The page and its data; mount it anywhere."""

    def __init__(self, sources: Sources, *, shows_source: bool = True) -> None:
        self.answers = Answers(sources, shows_source=shows_source)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request = Request(environ)
        response = _packed(request, self._respond(request))
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response(environ, start_response)

    def _respond(self, request: Request) -> Response:
        try:
            return self._answer(request)
        except HTTPException as error:
            allow = {"Allow": "GET, HEAD"} if error.code == 405 else {}
            return refused(error.code or 400, error.description or error.name, headers=allow)
        except UsageError as error:
            return refused(400, str(error))
        except SelftimeError as error:
            # A browser writes refusals to its console; the page reads and shows the sentence.
            return refused(200 if _FROM_PAGE in request.headers else 422, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is logged and told
            _log.exception("%r failed", request.path)
            return refused(
                500,
                f"this is a fault of selftime ({type(error).__name__}), not of yours; "
                "the terminal that runs it tells more",
            )

    def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(("GET", "HEAD"), "this server only answers GET")
        if len(request.query_string) > _LONGEST_QUERY:
            raise RequestURITooLarge("the address is too long; ask with fewer words")
        if not request.environ.get("PATH_INFO"):
            return _to_folder(request)
        path = request.path.removeprefix("/") or "index.html"
        if path in _FILES:
            return _file(request, path)
        words = dict(request.args.items())
        words.pop("token", None)
        return self._data(path, words)

    def _data(self, path: str, words: dict[str, str]) -> Response:
        ask = self.answers
        alone: Mapping[str, Callable[[], bytes]] = {
            "api/traces": ask.traces,
            "api/views": ask.views,
            "api/advice": lambda: ask.advice(words),
            "api/health": lambda: ask.health(words),
            "api/compare": lambda: ask.compare(words),
            "api/job": lambda: ask.job(words),
            "api/source": lambda: ask.source(words),
        }
        if path in alone:
            return _json(alone[path]())
        folder, _, name = path.rpartition("/")
        if folder == "api/rule":
            return _json(ask.rule(name))
        if folder == "api/view" and name.endswith(_CSV):
            view = name.removesuffix(_CSV)
            return _csv(ask.csv(view, words), view)
        if folder == "api/view":
            return _json(ask.page(name, words))
        raise NotFound("there is nothing at this address")


def refused(status: int, sentence: str, *, headers: dict[str, str] | None = None) -> Response:
    """An answer that says in one sentence why there is none."""
    response = _json(msgspec.json.encode({"error": sentence}))
    response.status_code = status
    response.headers.update(headers or {})
    return response


def _json(content: bytes) -> Response:
    return Response(content, mimetype=_JSON, headers={"Cache-Control": "no-store"})


def _csv(content: bytes, view: str) -> Response:
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{view}.csv"',
    }
    return Response(content, content_type="text/csv; charset=utf-8", headers=headers)


def _file(request: Request, name: str) -> Response:
    found = asset(name)
    response = Response(found.content, content_type=found.media_type)
    response.set_etag(found.tag, weak=True)  # the same for each compression
    response.headers["Cache-Control"] = "no-cache"
    response.make_conditional(request)
    return response


def _to_folder(request: Request) -> Response:
    """The same address with a slash at its end, told relative to it: prefixes may be hidden."""
    name = request.root_path.rstrip("/").rpartition("/")[2]
    query = request.query_string.decode("ascii", "replace")
    response = redirect(f"{name}/{'?' + query if query else ''}", 302)
    response.autocorrect_location_header = False
    return response


def _packed(request: Request, response: Response) -> Response:
    """The answer compressed, if it is worth it and the page can read it."""
    response.vary.add("Accept-Encoding")
    if not request.accept_encodings["gzip"] or response.status_code == 304:
        return response
    content = response.get_data()
    if len(content) >= _WORTH_PACKING:
        response.set_data(isal_zlib.compress(content, _LEVEL, _GZIP))
        response.headers["Content-Encoding"] = "gzip"
    return response
