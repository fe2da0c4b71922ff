"""Access control: host names, the token of the buttons, sessions and CSRF.

Reading is free to everyone who reaches the address. A page of another origin cannot read: answers have no CORS headers,
and a request under a name that is not this server's is refused, so DNS cannot be turned against it.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
from collections import deque
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from connector.clock import Clock
from connector.config.serve import Serve
from connector.serve.connections import network_of

LOG: Final = logging.getLogger("connector.serve")
ATTEMPTS: Final = 5  # wrong tokens of an address in a minute, after which none of it is looked at
ATTEMPTS_OF_ALL: Final = 60  # of all addresses
ADDRESSES: Final = 1000  # that are remembered
MINUTE: Final = 60.0
SESSION_SECONDS: Final = 12 * 3600
SESSIONS: Final = 100  # at once; the oldest one ends


class Guard:
    """Decides about requests.

    Args:
        settings: names, port and token.
        clock: the time of attempts and sessions.

    Attributes:
        cookie: the name of the session's cookie.
    """

    def __init__(self, settings: Serve, clock: Clock) -> None:
        self._token = settings.token.get_secret_value()
        self.cookie = f"thl_serve_{settings.port}"  # browsers send a cookie to every port of a host
        self._names = {"localhost", settings.host.lower(), *(name.lower() for name in settings.hosts)}
        self._clock = clock
        self._wrong: dict[str, deque[float]] = {}
        self._wrong_of_all: deque[float] = deque(maxlen=ATTEMPTS_OF_ALL)
        self._sessions: dict[str, float] = {}  # secret → when it ends
        self._lock = Lock()

    @property
    def has_buttons(self) -> bool:
        """True if there is a token."""
        return bool(self._token)

    def is_known_host(self, host: str) -> bool:
        """True if a Host header names this server: a configured name, or a loopback address."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False

    def is_same_origin(self, headers: Headers, host: str) -> bool:
        """True unless a browser says that a request comes from another origin."""
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("Origin")
        try:
            return origin is None or urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False

    def waits(self, address: str) -> bool:
        """True after too many wrong tokens, of a client's address or of all: then none is looked at for a minute."""
        with self._lock:
            return self._waits(address)

    def accepts(self, token: str, address: str) -> bool:
        """True for the token, while not too many wrong ones have come.

        Args:
            token: what a client gives.
            address: of the client.
        """
        with self._lock:
            if self._waits(address):
                return False
            if self._token and hmac.compare_digest(token.encode(), self._token.encode()):
                return True
            wrong = self._wrong.setdefault(network_of(address), deque(maxlen=ATTEMPTS))
            for kept in (wrong, self._wrong_of_all):
                kept.append(self._clock.monotonic())
            while len(self._wrong) > ADDRESSES:
                del self._wrong[next(iter(self._wrong))]
        LOG.warning("a wrong token was given", extra={"address": address})
        return False

    def _waits(self, address: str) -> bool:
        return self._is_full(self._wrong_of_all) or self._is_full(self._wrong.get(network_of(address), deque()))

    def _is_full(self, wrong: deque[float]) -> bool:
        return len(wrong) == wrong.maxlen and self._clock.monotonic() - wrong[0] < MINUTE

    def open_session(self) -> str:
        """Begin a browser's session; returns its secret."""
        secret = new_secret()
        with self._lock:
            self._sessions[secret] = self._clock.monotonic() + SESSION_SECONDS
            while len(self._sessions) > SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return secret

    def has_session(self, secret: str) -> bool:
        """True if a session has this secret and has not ended."""
        with self._lock:
            return self._sessions.get(secret, 0.0) > self._clock.monotonic()

    def end_session(self, secret: str) -> None:
        """End a session: a copy of its cookie is worth nothing."""
        with self._lock:
            self._sessions.pop(secret, None)


def new_secret() -> str:
    """A random text for cookies and forms."""
    return secrets.token_urlsafe(32)


def equal(one: str, other: str) -> bool:
    """Compare two secrets in constant time; "" equals nothing."""
    return bool(one) and bool(other) and hmac.compare_digest(one.encode(), other.encode())
