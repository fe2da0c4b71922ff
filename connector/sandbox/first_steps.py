"""The files that `thl sandbox up` writes for its servers, a configuration and a client, and the next commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from connector import private_files
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import PASSWORD_FILE
from connector.sandbox.settings import HOST, MYSQL_ADMIN
from connector.sandbox.state import RunningServer

CONFIGURATION = "thl.yaml"
CLIENT = "sql"
_HEAD = """# Written by `thl sandbox up`, once: yours to change. `thl config --reference` explains every field.
# `allow_unsafe`: one broker keeps one copy of the log, which only a sandbox can afford.
"""
_EXAMPLE = (
    "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, item TEXT); "
    "INSERT INTO shop.orders VALUES (1, 'tea')"
)


def write(folder: Path, servers: Sequence[RunningServer]) -> None:
    """Write the configuration and the client, where they are not there yet.

    Args:
        folder: of the stack.
        servers: that run; MySQL and Kafka among them. With PostgreSQL it is the target, else a SQLite file.
    """
    by_name = {server.name: server for server in servers}
    place = folder / CONFIGURATION
    if not place.exists():
        text = yaml.safe_dump(_configuration(folder, by_name), sort_keys=False)
        with private_files.open_new(place) as file:
            file.write((_HEAD + text).encode())
    client = folder / CLIENT
    if not client.exists():
        mysql = by_name["mysql"]
        command = MySqlServer(Path(mysql.folder), mysql.port).client("mysql")
        client.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        client.chmod(0o700)


def commands(folder: Path) -> list[str]:
    """The next three commands, as one types them here."""
    shown = Path(os.path.relpath(folder))
    configuration = shlex.quote(str(shown / CONFIGURATION))
    return [
        f'{shlex.quote(str(shown / CLIENT))} -e "{_EXAMPLE}"',
        f"thl produce --config {configuration}",
        f"thl apply --config {configuration}",
    ]


def _configuration(folder: Path, servers: dict[str, RunningServer]) -> dict[str, Any]:
    mysql, kafka = servers["mysql"], servers["kafka"]
    target = servers["postgres"].address if "postgres" in servers else f"sqlite:///{folder / 'target.db'}"
    return {
        "service": "sandbox",
        "source": {
            "host": HOST,
            "port": mysql.port,
            "user": MYSQL_ADMIN.user,
            "password_file": str(Path(mysql.folder, PASSWORD_FILE)),
        },
        "kafka": {"bootstrap": kafka.address, "replication": 1, "min_isr": 1, "allow_unsafe": True},
        "target": {"url": target},
    }
