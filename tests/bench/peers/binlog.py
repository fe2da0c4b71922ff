"""`mysqlbinlog`: the rates of the server's dump and of MySQL's own decoder."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from connector.fetching.mysql_programs import tool
from tests.bench.meter import Meter
from tests.bench.peers.peer import Load, Unavailable
from tests.bench.result import Row

_LOOK = 0.01  # seconds


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
        raw = _spent([*place.mysql.client("mysqlbinlog"), *remote, first], load)
        used = (server.read() - before).cpu_seconds / load.backlog.rows * 1e6
        raw["CPU s/M mysqld"] = round(used, 2)
        files = sorted(str(file) for file in Path(name).iterdir())
        text = _spent([*tool("mysqlbinlog"), "--no-defaults", "-v", *files], load)
    return [
        Row(f"binary log, {load.kind}: mysqlbinlog --raw from the server", raw),
        Row(f"binary log, {load.kind}: mysqlbinlog -v of files", text),
    ]


def _spent(command: list[str], load: Load) -> dict[str, float]:
    began = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        meter, peak = Meter(child.pid), 0
        while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
            peak = max(peak, meter.read().peak)  # what wait4 tells has our own size before exec in it
            time.sleep(_LOOK)
        seconds = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(ended[1])
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if child.returncode:
        raise Unavailable(f"mysqlbinlog: {said.strip()[-300:]}")
    rows = load.backlog.rows
    return {
        "rows": rows,
        "rows/s": round(rows / seconds),
        "CPU s/M mysqlbinlog": round((ended[2].ru_utime + ended[2].ru_stime) / rows * 1e6, 2),
        "peak MB mysqlbinlog": round(peak / 1e6),
    }
