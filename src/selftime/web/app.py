"""Answers the web page's HTTP requests as a WSGI app: routes, headers, compression, errors.

All URLs are relative, so that the app works behind any prefix.
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
from selftime.sql.query_limits import QueryLimits
from selftime.web.answers import PageDataAnswers
from selftime.web.client_presence import is_client_gone
from selftime.web.number_answers import numbers_json, slices_of_number_json
from selftime.web.sources import TraceSources
from selftime.web.sql_answers import SqlAnswers, client_check
from selftime.web.what_if_answers import what_if_json

_CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"  # TensorBoard frames the page
)
"""Content security policy of every response."""
_HEADERS_OF_EVERY_RESPONSE: Final = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Security headers that every HTTP response has."""
_MAX_QUERY_STRING_BYTES: Final = 16_384
"""Largest size of a URL's query, in bytes."""
_MIN_RESPONSE_BYTES_TO_COMPRESS: Final = 1024
"""Smallest size in bytes of a response that is compressed."""
_ZLIB_WBITS_FOR_GZIP_FORMAT: Final = 31  # zlib's window bits for a gzip header and footer
_GZIP_COMPRESSION_LEVEL: Final = 2
"""Level of isal's gzip compression of responses, from 0 to 3."""
_JSON_MEDIA_TYPE: Final = "application/json"
_URL_SUFFIX_OF_CSV_REQUESTS: Final = ".csv"
_HEADER_OF_REQUESTS_FROM_PAGE: Final = "Selftime-Page"
"""Name of the header in requests from the page's own code."""
_NAMES_OF_SERVED_PAGE_FILES: Final = ("app.js", "app.css", "index.html")
"""Names of the built page files that the server sends."""

_log: Final = logging.getLogger(__name__)


class PageApp:
    """The WSGI app that serves the page and its data."""

    def __init__(
        self,
        sources: TraceSources,
        *,
        shows_source: bool = True,
        query_limits: QueryLimits | None = None,
    ) -> None:
        self.answers = PageDataAnswers(sources, shows_source=shows_source)
        self.sql = SqlAnswers(self.answers, query_limits)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request = Request(environ)
        is_client_gone.set(environ.get("waitress.client_disconnected"))
        response = _compress_response(request, self._response_or_error_response(request))
        for name, value in _HEADERS_OF_EVERY_RESPONSE.items():
            response.headers.setdefault(name, value)
        return response(environ, start_response)

    def _response_or_error_response(self, request: Request) -> Response:
        """Returns the response to a request; an error becomes a response with one sentence."""
        try:
            return self._route_request(request)
        except HTTPException as error:
            allow = {"Allow": "GET, HEAD"} if error.code == 405 else {}
            return error_response(error.code or 400, error.description or error.name, headers=allow)
        except UsageError as error:
            return error_response(400, str(error))
        except SelftimeError as error:
            # A browser writes refusals to its console; the page reads and shows the sentence.
            return error_response(
                200 if _HEADER_OF_REQUESTS_FROM_PAGE in request.headers else 422, str(error)
            )
        except Exception as error:  # noqa: BLE001 - any error is logged and reported
            _log.exception("%r failed", request.path)
            return error_response(
                500,
                f"this is a fault of selftime ({type(error).__name__}); "
                "the terminal that runs it shows more",
            )

    def _route_request(self, request: Request) -> Response:
        """Returns the page's file or the data at the request's path."""
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(("GET", "HEAD"), "this server only answers GET")
        if len(request.query_string) > _MAX_QUERY_STRING_BYTES:
            raise RequestURITooLarge("the address is too long; ask with fewer words")
        if not request.environ.get("PATH_INFO"):
            return _redirect_to_url_with_final_slash(request)
        path = request.path.removeprefix("/") or "index.html"
        if path in _NAMES_OF_SERVED_PAGE_FILES:
            return _page_file_response(request, path)
        parameters = dict(request.args.items())
        parameters.pop("token", None)
        if path in ("api/sql", "api/sql_track"):
            answer = self.sql.result_json if path == "api/sql" else self.sql.track_json
            return _json_response(answer(parameters, client_check(request.environ)))
        return self._data_response(path, parameters)

    def _data_response(self, path: str, parameters: dict[str, str]) -> Response:
        """Returns the data at a path below `api/`: JSON, or a view as CSV."""
        answers = self.answers
        answer_by_path: Mapping[str, Callable[[], bytes]] = {
            "api/traces": answers.traces_json,
            "api/views": answers.views_json,
            "api/contents": lambda: answers.contents.contents_json(parameters),
            "api/progress": lambda: answers.progress_json(parameters),
            "api/advice": lambda: answers.advice_json(parameters),
            "api/health": lambda: answers.health_json(parameters),
            "api/compare": lambda: answers.comparison_json(parameters),
            "api/job": lambda: answers.job_json(parameters),
            "api/number_slices": lambda: slices_of_number_json(answers, parameters),
            "api/numbers": lambda: numbers_json(answers, parameters),
            "api/what_if": lambda: what_if_json(answers, parameters),
            "api/source": lambda: answers.source_json(parameters),
            "api/sql_schema": lambda: self.sql.schema_json(parameters),
        }
        if path in answer_by_path:
            return _json_response(answer_by_path[path]())
        folder, _, name = path.rpartition("/")
        if folder == "api/rule":
            return _json_response(answers.rule_json(name))
        if folder == "api/view" and name.endswith(_URL_SUFFIX_OF_CSV_REQUESTS):
            view = name.removesuffix(_URL_SUFFIX_OF_CSV_REQUESTS)
            return _csv_response(answers.view_csv(view, parameters), view)
        if folder == "api/view":
            return _json_response(answers.view_page_json(name, parameters))
        raise NotFound("there is nothing at this address")


def error_response(
    status: int, sentence: str, *, headers: dict[str, str] | None = None
) -> Response:
    """Returns a response with an HTTP error status and JSON with one sentence for the user."""
    response = _json_response(msgspec.json.encode({"error": sentence}))
    response.status_code = status
    response.headers.update(headers or {})
    return response


def _json_response(content: bytes) -> Response:
    return Response(content, mimetype=_JSON_MEDIA_TYPE, headers={"Cache-Control": "no-store"})


def _csv_response(content: bytes, view: str) -> Response:
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{view}.csv"',
    }
    return Response(content, content_type="text/csv; charset=utf-8", headers=headers)


def _page_file_response(request: Request, name: str) -> Response:
    """Returns a file of the page as the response, or status 304 if the browser has cached it."""
    file = asset(name)
    response = Response(file.content, content_type=file.media_type)
    response.set_etag(file.tag, weak=True)  # the same for compressed and plain responses
    response.headers["Cache-Control"] = "no-cache"
    response.make_conditional(request)
    return response


def _redirect_to_url_with_final_slash(request: Request) -> Response:
    """Returns a redirect to the URL with a final slash, relative to the current URL."""
    name = request.root_path.rstrip("/").rpartition("/")[2]
    query = request.query_string.decode("ascii", "replace")
    response = redirect(f"{name}/{'?' + query if query else ''}", 302)
    response.autocorrect_location_header = False
    return response


def _compress_response(request: Request, response: Response) -> Response:
    """Returns the response, compressed if it is large enough and the browser supports it."""
    response.vary.add("Accept-Encoding")
    if not request.accept_encodings["gzip"] or response.status_code == 304:
        return response
    content = response.get_data()
    if len(content) >= _MIN_RESPONSE_BYTES_TO_COMPRESS:
        response.set_data(
            isal_zlib.compress(content, _GZIP_COMPRESSION_LEVEL, _ZLIB_WBITS_FOR_GZIP_FORMAT)
        )
        response.headers["Content-Encoding"] = "gzip"
    return response
