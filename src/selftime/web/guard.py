"""Who may ask: only by a name of this server, and at an open address only who has the token.

A page of the web can make a browser send questions here, and can point a name of its own at this
machine (DNS rebinding); then the `Host` of the question is that name. The names of the loopback
interface are safe with any port, which differs behind `ssh -L`.
"""

import hmac
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Final

from werkzeug.http import dump_cookie
from werkzeug.wrappers import Request

from selftime.web.app import refused

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

_PAGE: Final = ("", "/", "/index.html")
"""Addresses of the page, whose folder everything else lies in."""

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def is_loopback(host: str) -> bool:
    """Whether only this machine can ask at that address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in _LOOPBACK or host == "::1"


class Guard:
    """Lets questions through to the app, or refuses them in one sentence."""

    def __init__(
        self,
        app: WSGI,
        *,
        hosts: Iterable[str] = (),
        machine: str = "",
        token: str | None = None,
    ) -> None:
        """Guard an app.

        Args:
            app: What to guard.
            hosts: Names by which it may be asked besides those of the loopback; of one with a port,
                by that port only.
            machine: This machine's name, which others may say with any domain if they have a token.
            token: What who asks must know, if anything.
        """
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)
        self.machine = machine.lower().partition(".")[0]
        self.token = token

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request = Request(environ)
        host = environ.get("HTTP_HOST", "").lower()
        if not self._is_ours(host):
            sentence = f"this server is not called `{host[:100]}`; allow it with `--allow-host`"
            return refused(421, sentence)(environ, start_response)
        if _is_from_elsewhere(request):
            sentence = "another page of the web asked, not this one; open the address itself"
            return refused(403, sentence)(environ, start_response)
        if self.token is None:
            return self.app(environ, start_response)
        told = request.args.get("token", "")
        if _same(told, self.token):
            is_page = request.path in _PAGE
            start = self._remembering(start_response) if is_page else start_response
            return self.app(environ, start)
        if _same(request.cookies.get(self._cookie, ""), self.token):
            return self.app(environ, start_response)
        sentence = "this address needs the token; open the one that `selftime serve` printed"
        return refused(403, sentence)(environ, start_response)

    def _is_ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdigit():
            name = host
        if name in _LOOPBACK or {name, host} & self.hosts:
            return True
        if self.token is None:
            return False
        return _is_number(name) or name.partition(".")[0] == self.machine != ""

    @property
    def _cookie(self) -> str:
        """A name of its own for each server: browsers share cookies between ports."""
        return f"selftime-{sha256((self.token or '').encode()).hexdigest()[:8]}"

    def _remembering(self, start_response: Callable[..., Any]) -> Callable[..., Any]:
        """What the page loads next comes with a cookie; without a path it is of this folder."""
        cookie = dump_cookie(
            self._cookie, self.token or "", path=None, httponly=True, samesite="Strict"
        )

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, ("Set-Cookie", cookie)], *rest)

        return start


def _is_from_elsewhere(request: Request) -> bool:
    """Whether the browser tells that a page of another site asks; opening a link is no question."""
    site = request.headers.get("Sec-Fetch-Site")
    return site == "cross-site" and request.headers.get("Sec-Fetch-Mode") != "navigate"


def _is_number(name: str) -> bool:
    """Whether it is an address itself, as a question to a server on all addresses has it."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _same(told: str, token: str) -> bool:
    return hmac.compare_digest(told.encode(), token.encode())
