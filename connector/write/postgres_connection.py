"""Sessions with PostgreSQL that notice when the server, or the network, is gone without a word."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connector.errors import ConfigError

# After a minute, whether we wait for an answer or for the server to take what we send (COPY). Without the last, what
# is sent into a network that is gone is tried again for a quarter of an hour.
WATCHED = "connect_timeout=10 keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=60000"


def connect(url: str, name: str) -> psycopg.Connection:
    """Open a session in autocommit. What the URL says goes before what is said here.

    Args:
        url: as libpq takes it.
        name: what the server shows of us.

    Raises:
        ConfigError: the URL is none.
        psycopg.Error: the server does not answer, or refuses us.
    """
    try:
        given = {**conninfo_to_dict(WATCHED), "application_name": name, **conninfo_to_dict(url)}
    except psycopg.ProgrammingError as error:
        raise ConfigError(f"target.url is no URL of PostgreSQL: {error}") from None
    conninfo = make_conninfo("", **{key: str(value) for key, value in given.items() if value is not None})
    return psycopg.connect(conninfo, autocommit=True)
