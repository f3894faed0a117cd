"""Serves an app with Waitress, and lets no connection keep the others out.

Waitress alone accepts nobody more once there are as many connections as it holds, and closes a
silent one after minutes. Here a new connection takes the place of the one that has waited longest
for its client, and each has a limited time to send a request and to take the answer.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

_MAX_RESPONSE_BYTES_IN_MEMORY: Final = 1 << 20
"""Largest response in bytes that waits for its client in memory; a larger one does so in a file."""
_MAX_REQUEST_BYTES: Final = 65_536
"""Largest size of a request's headers, and of its body, in bytes."""
_SECONDS_BETWEEN_CHECKS: Final = 1
_CONNECTIONS_THAT_WAITRESS_HOLDS_MORE: Final = 16
"""So that Waitress itself never stops to accept connections."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how long each may take, in s."""

    connections: int = 256
    seconds_for_request: float = 10.0
    """From the first byte of a request, or from the begin of the connection, to the last byte."""
    seconds_idle: float = 60.0
    """From an answer to the next request."""
    seconds_for_answer: float = 30.0
    """Within which the client must take some of the answer."""


class _Connection(HTTPChannel):  # type: ignore[misc]  # Waitress has no types
    """A connection that knows since when its client owes it something."""

    request_began_at: float | None = None
    """When the request began that has come in part; of the first one, when the connection did."""
    has_asked = False

    def received(self, data: bytes) -> bool:
        """Takes a part of a request."""
        is_taken = bool(super().received(data))
        if self.request is None:
            self.request_began_at, self.has_asked = None, True
        elif self.request_began_at is None:
            self.request_began_at = time.time() if self.has_asked else self.creation_time
        return is_taken

    def readable(self) -> bool:
        """Returns whether to wait for bytes; a closed connection's number may be another's soon."""
        return self.socket is not None and bool(super().readable())

    def writable(self) -> bool:
        """Returns whether to wait until bytes can be sent, or the connection can be closed."""
        return self.socket is not None and bool(super().writable())

    def owed_since(self) -> float | None:
        """Returns since when the client has to send or to take something; None if it has not to."""
        if self.total_outbufs_len:
            return float(self.last_activity)
        if self.requests:
            return None
        return float(self.last_activity if self.request_began_at is None else self.request_began_at)

    def seconds_allowed(self, limits: ConnectionLimits) -> float:
        """Returns how long the client may take for what it has to do."""
        if self.total_outbufs_len:
            return limits.seconds_for_answer
        is_idle = self.has_asked and self.request_began_at is None
        return limits.seconds_idle if is_idle else limits.seconds_for_request


class LimitedServer(TcpWSGIServer):  # type: ignore[misc]  # Waitress has no types
    """A Waitress server on a listening socket, with limits of its connections."""

    channel_class = _Connection

    def __init__(
        self,
        app: Callable[..., Any],
        listening: socket.socket,
        *,
        threads: int,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.limits = limits or ConnectionLimits()
        super().__init__(
            app,
            _sock=listening,
            bind_socket=False,
            sockinfo=(listening.family, listening.type, listening.proto, listening.getsockname()),
            sockets=[listening],
            threads=threads,
            channel_request_lookahead=1,  # tells that the client of a request has gone
            ident="",
            clear_untrusted_proxy_headers=True,
            max_request_header_size=_MAX_REQUEST_BYTES,
            max_request_body_size=_MAX_REQUEST_BYTES,
            outbuf_overflow=_MAX_RESPONSE_BYTES_IN_MEMORY,
            asyncore_use_poll=True,  # takes descriptors of any number
            cleanup_interval=_SECONDS_BETWEEN_CHECKS,
            connection_limit=self.limits.connections + _CONNECTIONS_THAT_WAITRESS_HOLDS_MORE,
        )

    def readable(self) -> bool:
        """Returns whether to accept a connection; closes the one that waits longest if need be."""
        is_checked = bool(super().readable())
        connections = self.active_channels.values()
        owed_since = {
            one: since
            for one in connections
            if (since := one.owed_since()) is not None and not one.total_outbufs_len
        }
        if len(connections) > self.limits.connections and owed_since:
            min(owed_since, key=owed_since.__getitem__).handle_close()
        return is_checked and (bool(owed_since) or len(connections) < self.limits.connections)

    def maintenance(self, now: float) -> None:
        """Closes the connections whose clients have taken too long."""
        for connection in list(self.active_channels.values()):
            since = connection.owed_since()
            if since is not None and now - since > connection.seconds_allowed(self.limits):
                connection.handle_close()
