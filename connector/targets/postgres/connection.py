"""Sessions with PostgreSQL that notice when the server, or the network, is gone without a word."""

from __future__ import annotations

import re
from difflib import get_close_matches

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connector.addresses import on_this_machine
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
    given = {**conninfo_to_dict(WATCHED), "application_name": name, **parts_of(url)}
    conninfo = make_conninfo("", **{key: str(value) for key, value in given.items() if value is not None})
    return psycopg.connect(conninfo, autocommit=True)


def parts_of(url: str) -> dict[str, str | int | None]:
    """What a URL says, by libpq's names.

    Raises:
        ConfigError: it is none; not in libpq's words, which repeat the URL, or what it took for a part of it.
    """
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        known = {one.keyword.decode() for one in pq.Conninfo.get_defaults()}
        given = (name for name in re.findall(r"[?&]([^=&]+)=", url) if name not in known)
        meant = next((near[0] for name in given if (near := get_close_matches(name, known, 1))), "")
        raise ConfigError(  # with nothing of the URL's own words, which may be a part of a password
            f"target.url has a parameter that PostgreSQL has not: is {meant} meant?"
            if meant
            else "target.url is no URL of PostgreSQL",
            hint="postgresql://user:password@host:port/database?…",
        ) from None


def unverified(url: str) -> str:
    """Why a password that is sent there can be read by others, as a sentence; "": it cannot, or there is none."""
    given = parts_of(url)
    defaults = {one.keyword.decode(): one.val for one in pq.Conninfo.get_defaults()}  # PGPASSWORD and the like are in
    known = {name: value.decode() for name, value in defaults.items() if value}
    known |= {name: str(value) for name, value in given.items() if value is not None}
    hosts = known.get("hostaddr") or known.get("host", "")
    if not known.get("password") or all(on_this_machine(host) for host in hosts.split(",")):
        return ""
    mode = known.get("sslmode", "prefer")
    authority = known.get("sslrootcert", "")  # with one `require` verifies, too; `system` allows nothing less
    if mode in {"verify-ca", "verify-full"} or (mode == "require" and authority) or authority == "system":
        return ""
    return (
        f"the password for the target at {hosts} is sent to whoever answers: sslmode is {mode}; put "
        "?sslmode=verify-full&sslrootcert=system, or a file with the authority, behind target.url"
    )
