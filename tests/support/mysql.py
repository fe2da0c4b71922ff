"""A session of a test beside the connector's, for changes and expected values."""

from __future__ import annotations

from typing import Any

import pymysql

from tests.support.servers.environment import SqlServer


def connect(server: SqlServer, *, charset: str = "utf8mb4", **options: Any) -> Any:
    """A session with autocommit and without TLS, which takes 70 ms to begin; the options are pymysql's."""
    return pymysql.connect(
        **({"ssl_disabled": True} | options),
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
        charset=charset,
    )
