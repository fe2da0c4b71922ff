"""Who may ask for what: the names by which this server is reached, the token of the buttons, and CSRF.

Reading is free to everyone who reaches the address. A page of another origin cannot read: answers have no CORS headers,
and a request under a name that is not this server's is refused, so DNS cannot be turned against it.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections import deque
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from connector.clock import Clock
from connector.config.serve import Serve

ATTEMPTS: Final = 5  # wrong tokens in a minute, after which none is looked at
MINUTE: Final = 60.0


class Guard:
    """Decides about requests.

    Args:
        settings: names and token.
        clock: the time of attempts.
    """

    def __init__(self, settings: Serve, clock: Clock) -> None:
        self._token = settings.token.get_secret_value()
        self._names = {"localhost", settings.host.lower(), *(name.lower() for name in settings.hosts)}
        self._clock = clock
        self._wrong: deque[float] = deque(maxlen=ATTEMPTS)
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
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()

    def accepts(self, token: str) -> bool:
        """True for the token. After some wrong ones none is accepted for a minute."""
        with self._lock:
            now = self._clock.monotonic()
            if len(self._wrong) == ATTEMPTS and now - self._wrong[0] < MINUTE:
                return False
            if self._token and hmac.compare_digest(token.encode(), self._token.encode()):
                self._wrong.clear()
                return True
            self._wrong.append(now)
            return False


def new_secret() -> str:
    """A random text for cookies and forms."""
    return secrets.token_urlsafe(32)


def equal(one: str, other: str) -> bool:
    """Compare two secrets in constant time; "" equals nothing."""
    return bool(one) and bool(other) and hmac.compare_digest(one.encode(), other.encode())
