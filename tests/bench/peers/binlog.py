"""`mysqlbinlog`: the rates of the server's dump and of MySQL's own decoder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from connector.fetching.mysql_programs import tool
from tests.bench.meter import Meter
from tests.bench.peers.command import spent
from tests.bench.peers.peer import Load
from tests.bench.result import Row


def measure(load: Load) -> list[Row]:
    """Copy all binary logs raw from the server, then decode them to nothing."""
    place = load.place
    with place.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        first = str(cursor.fetchall()[0][0])
    with tempfile.TemporaryDirectory(dir=place.folder) as name:
        remote = ["--read-from-remote-server", "--raw", "--to-last-log", f"--result-file={name}/"]
        server = Meter(place.mysql.pid)
        before = server.read()
        raw = spent("mysqlbinlog", [*place.mysql.client("mysqlbinlog"), *remote, first], load.backlog.rows)
        used = (server.read() - before).cpu_seconds / load.backlog.rows * 1e6
        raw["CPU s/M mysqld"] = round(used, 2)
        files = sorted(str(file) for file in Path(name).iterdir())
        text = spent("mysqlbinlog", [*tool("mysqlbinlog"), "--no-defaults", "-v", *files], load.backlog.rows)
    return [
        Row(f"binary log, {load.kind}: mysqlbinlog --raw from the server", raw),
        Row(f"binary log, {load.kind}: mysqlbinlog -v of files", text),
    ]
