"""Maxwell: the reason why it is not compared."""

from __future__ import annotations

from tests.bench.peers.peer import Load, Unavailable
from tests.bench.result import Row


def measure(load: Load) -> list[Row]:
    """Return the reason why it is left out.

    Raises:
        Unavailable: always.
    """
    del load
    raise Unavailable(
        "the newest in the registries is com.zendesk:maxwell:1.22.6, which asks for SHOW MASTER STATUS:"
        " MySQL 8.4 and newer refuse it"
    )
