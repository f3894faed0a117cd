"""Refuses requests from other websites, for unknown host names, or without the access token.

A web page can make a browser send requests here, and can point its own host name at this machine
(DNS rebinding); the request's `Host` header is then that name. Names of the loopback interface are
safe with any port, which differs behind `ssh -L`.
"""

import hmac
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Final

from werkzeug.http import dump_cookie
from werkzeug.wrappers import Request

from selftime.web.app import error_response

_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Host names by which a browser reaches a server on its own machine."""

_URL_PATHS_OF_HTML_PAGE: Final = ("", "/", "/index.html")
"""URL paths of the page itself, without its data."""

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def is_loopback_host(host_name: str) -> bool:
    """Returns whether a host name or address is only reachable from this machine.

    >>> is_loopback_host("127.0.0.1"), is_loopback_host("::1"), is_loopback_host("0.0.0.0")
    (True, True, False)
    """
    return host_name in _LOOPBACK_HOSTS or host_name == "::1"


class AccessGuard:
    """WSGI middleware that passes allowed requests to the app, and answers others with an error."""

    def __init__(
        self,
        app: WSGI,
        *,
        hosts: Iterable[str] = (),
        machine_name: str = "",
        token: str | None = None,
    ) -> None:
        """Stores the app to protect, the accepted host names, and the required token.

        Args:
            app: The app.
            hosts: Allowed host names besides those of the loopback interface; one with a port is
                allowed with that port only.
            machine_name: This machine's name, allowed with any domain for requests with a token.
            token: The token that requests need; None for no token.
        """
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)
        self.machine_name = machine_name.lower().partition(".")[0]
        self.token = token

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request = Request(environ)
        host = environ.get("HTTP_HOST", "").lower()
        if not self._is_host_name_of_this_server(host):
            sentence = f"this server is not called `{host[:100]}`; allow it with `--allow-host`"
            return error_response(421, sentence)(environ, start_response)
        if _is_cross_site(request):
            sentence = "the request came from another website; open the address itself"
            return error_response(403, sentence)(environ, start_response)
        if self.token is None:
            return self.app(environ, start_response)
        given_token = request.args.get("token", "")
        if _is_same_token(given_token, self.token):
            is_page = request.path in _URL_PATHS_OF_HTML_PAGE
            start = (
                self._start_response_with_token_cookie(start_response)
                if is_page
                else start_response
            )
            return self.app(environ, start)
        if _is_same_token(request.cookies.get(self._cookie_name, ""), self.token):
            return self.app(environ, start_response)
        sentence = "this address needs the token; open the one that `selftime serve` printed"
        return error_response(403, sentence)(environ, start_response)

    def _is_host_name_of_this_server(self, host: str) -> bool:
        """Returns whether a request's `Host` is one of the names this server accepts."""
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdigit():
            name = host
        if name in _LOOPBACK_HOSTS or {name, host} & self.hosts:
            return True
        if self.token is None:
            return False
        return _is_ip_address(name) or name.partition(".")[0] == self.machine_name != ""

    @property
    def _cookie_name(self) -> str:
        """Name of the cookie with the token; it contains the port, as ports share cookies."""
        return f"selftime-{sha256((self.token or '').encode()).hexdigest()[:8]}"

    def _start_response_with_token_cookie(
        self, start_response: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Returns a WSGI `start_response` that also sets the token as a cookie."""
        cookie = dump_cookie(
            self._cookie_name, self.token or "", path=None, httponly=True, samesite="Strict"
        )

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, ("Set-Cookie", cookie)], *rest)

        return start


def _is_cross_site(request: Request) -> bool:
    """Returns whether another website's page sent the request; a followed link does not count."""
    site = request.headers.get("Sec-Fetch-Site")
    return site == "cross-site" and request.headers.get("Sec-Fetch-Mode") != "navigate"


def _is_ip_address(name: str) -> bool:
    """Returns whether a host name is an IP address."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _is_same_token(given_token: str, token: str) -> bool:
    """Returns whether two tokens are equal, in constant time to prevent timing attacks."""
    return hmac.compare_digest(given_token.encode(), token.encode())
