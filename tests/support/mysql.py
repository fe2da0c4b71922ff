"""A session of a test beside the connector's, for changes and expected values."""

from __future__ import annotations

from typing import Any

import pymysql

from tests.support.servers.environment import SqlServer


def connect(server: SqlServer, *, charset: str = "utf8mb4", **options: Any) -> Any:
    """A session with autocommit; the options are pymysql's."""
    return pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
        charset=charset,
        **options,
    )
