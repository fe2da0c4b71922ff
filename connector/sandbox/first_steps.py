"""Writes the files of `thl sandbox up`, a configuration and a client, and returns the next commands."""

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
from connector.sandbox.settings import HOST, MYSQL_ADMIN, TARGETS
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


def write(folder: Path, servers: Sequence[RunningServer], target: str) -> None:
    """Write the configuration and the client, if they do not exist yet.

    Args:
        folder: the stack's folder.
        servers: the running servers: MySQL, Kafka, and those of the target.
        target: one of `settings.TARGETS`.
    """
    by_name = {server.name: server for server in servers}
    path = folder / CONFIGURATION
    if not path.exists():
        text = yaml.safe_dump(_configuration(folder, by_name, target), sort_keys=False)
        with private_files.open_new(path) as file:
            file.write((_HEAD + text).encode())
    client = folder / CLIENT
    if not client.exists():
        mysql = by_name["mysql"]
        command = MySqlServer(Path(mysql.folder), mysql.port).client("mysql")
        client.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        client.chmod(0o700)


def commands(folder: Path) -> list[str]:
    """Return the next three commands, relative to the working directory."""
    shown = Path(os.path.relpath(folder))
    configuration = shlex.quote(str(shown / CONFIGURATION))
    return [
        f'{shlex.quote(str(shown / CLIENT))} -e "{_EXAMPLE}"',
        f"thl produce --config {configuration}",
        f"thl apply --config {configuration}",
    ]


def _configuration(folder: Path, servers: dict[str, RunningServer], target: str) -> dict[str, Any]:
    mysql, kafka = servers["mysql"], servers["kafka"]
    return {
        "service": "sandbox",
        "source": {
            "host": HOST,
            "port": mysql.port,
            "user": MYSQL_ADMIN.user,
            "password_file": str(Path(mysql.folder, PASSWORD_FILE)),
        },
        "kafka": {"bootstrap": kafka.address, "replication": 1, "min_isr": 1, "allow_unsafe": True},
        "target": {"url": _url(folder, servers, target)},
    }


def _url(folder: Path, servers: dict[str, RunningServer], target: str) -> str:
    if target == "sqlite":
        return f"sqlite:///{folder / 'target.db'}"
    if target == "duckdb":
        return f"duckdb:///{folder / 'target.duckdb'}"
    server = servers[TARGETS[target]]
    password = Path(server.folder, PASSWORD_FILE)
    if not password.exists():
        return server.address
    _, _, account = server.address.partition("://")
    user, _, place = account.partition("@")
    return f"{target}://{user}:{password.read_text()}@{place}"
