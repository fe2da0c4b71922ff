"""A session of a test, beside ours: it writes what we are to read, and says what we should have read."""

from __future__ import annotations

from typing import Any

import pymysql

from tests.support.servers.environment import SqlServer


def connect(server: SqlServer, *, charset: str = "utf8mb4", **options: Any) -> Any:
    """A session that commits by itself; the options are pymysql's."""
    return pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
        charset=charset,
        **options,
    )
