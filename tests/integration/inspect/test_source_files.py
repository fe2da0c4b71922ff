"""`thl info --source` on a real MySQL with a producer's log and an archive."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connector.inspect.source_files import source_files
from connector.kafka.log_reader import LogReader
from connector.log.transaction.position import SourcePosition
from tests.support.binlog import source_of
from tests.support.log_topic import Log, a_fragment
from tests.support.producing import Bench, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer

pytestmark = pytest.mark.servers


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    result = Bench(mysql_server, kafka_broker, tmp_path)
    result.make_table()
    return result


def thl(bench: Bench, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "connector", *arguments],
        env={"PATH": "/usr/bin:/bin", "HOME": str(bench.folder), **bench.environment, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def source(bench: Bench, **more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(thl(bench, "info", "--source", "--format", "json", **more))["source"]
    return found


def files(bench: Bench) -> dict[str, int]:
    lines = bench.sql("SHOW BINARY LOGS").splitlines()[1:]
    return {line.split("\t")[0]: int(line.split("\t")[1]) for line in lines}


def test_files_show_how_far_producer_and_archive_have_read(bench: Bench) -> None:
    with bench.start("--start", "now") as producing:
        producing.online()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('a'); FLUSH BINARY LOGS")
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('b')")
        until(lambda: last_seqno(bench) == 1)
        assert producing.stop() == 0, producing.text
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('c')")
    folder = bench.folder / "archive"
    with LogReader(bench.config) as log:
        position = log.position()
    assert position is not None
    there = files(bench)
    first, second = list(there)[-2:]
    assert position.resume.file == second
    archived = {"THL_SOURCE__ARCHIVE": str(folder)}
    thl(bench, "archive", str(folder), "--to-now", THL_SOURCE__SERVER_ID="9977")
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('d'); FLUSH BINARY LOGS")
    (folder / f"{first}.gz").write_bytes(gzip.compress((folder / first).read_bytes()))
    (folder / first).unlink()

    found = source(bench, **archived)
    now = files(bench)
    third = list(now)[-1]
    by_name = {one["file"]: one for one in found["files"]}
    assert {name: one["last"] for name, one in by_name.items()} == now
    assert {one["first"] for one in found["files"]} == {4}
    assert (by_name[first]["readTo"], by_name[first]["archivedTo"], by_name[first]["archivedWhole"]) == (
        now[first], now[first], True,
    )  # fmt: skip
    assert (by_name[second]["readTo"], by_name[second]["archivedTo"], by_name[second]["archivedWhole"]) == (
        position.resume.offset, there[second], False,
    )  # fmt: skip
    assert there[second] < now[second]
    assert (by_name[third]["readTo"], by_name[third]["archivedTo"]) == (None, None)
    assert found["producer"] == f"{second}:{position.resume.offset}"
    assert found["archiveEnd"] == f"{second}:{there[second]}"
    assert (found["nextPurged"], found["nextPurgedNeeded"]) == (next(iter(now)), False)
    assert found["producerReadsServer"] == found["archiveOfServer"] == found["serverUuid"]
    lines = thl(bench, "info", "--source", **archived).splitlines()
    assert (
        f"source file {first} = {now[first]} bytes, positions 4 to {now[first]}, read by the producer, archived"
        in lines
    )
    assert any(
        line.startswith(f"source file {second} = ")
        and line.endswith(f"read by the producer up to {position.resume.offset}, archived up to {there[second]}")
        for line in lines
    )
    assert any(
        line.startswith(f"source file {third} = ") and line.endswith("not read by the producer, not archived")
        for line in lines
    )
    (purge,) = [line for line in lines if line.startswith("purged next = ")]
    assert purge.endswith("2592000 seconds after its last write; no longer needed")


def test_a_file_that_is_purged_next_is_still_needed_or_never_purged(bench: Bench) -> None:
    with bench.start("--start", "now") as producing:
        producing.online()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('a')")
        until(lambda: last_seqno(bench) == 0)
        assert producing.stop() == 0, producing.text
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('b'); FLUSH BINARY LOGS")
    newest = list(files(bench))[-1]
    bench.sql(f"PURGE BINARY LOGS TO '{list(files(bench))[-2]}'; SET GLOBAL binlog_expire_logs_auto_purge = OFF")
    try:
        found = source(bench)
        assert (found["nextPurgedNeeded"], found["expireSeconds"]) == (True, 0)
        assert "only by hand; still to be read by the producer or the archive" in thl(bench, "info", "--source")
    finally:
        bench.sql("SET GLOBAL binlog_expire_logs_auto_purge = ON")
    bench.sql(f"PURGE BINARY LOGS TO '{newest}'")
    assert source(bench)["nextPurged"] is None
    assert thl(bench, "info", "--source").splitlines()[-1] == "purged next = nothing: the newest file stays"


def test_a_mariadb_shows_its_files_and_limits(mariadb_server: SqlServer, kafka_broker: Broker) -> None:
    log = Log(kafka_broker, partitions=1)
    log.place = SourcePosition("b.999999", 4)  # numbers of files of another base name are not compared
    log.transaction((0, a_fragment(0, kind="epoch")), (0, a_fragment(0)))
    mariadb_server.run_sql("FLUSH BINARY LOGS; SET GLOBAL expire_logs_days = 2")
    try:
        found = source_files(log.config.model_copy(update={"source": source_of(mariadb_server)}))
    finally:
        mariadb_server.run_sql("SET GLOBAL expire_logs_days = 0")
    lines = mariadb_server.run_sql("SHOW BINARY LOGS").splitlines()[1:]
    assert [(one.name, one.size) for one in found.files] == [
        (name, int(size)) for name, size in (line.split("\t") for line in lines)
    ]
    assert {one.read_to for one in found.files} == {None}
    assert found.end.file == found.files[-1].name
    assert (found.expire_seconds, found.next_purged, found.needed) == (2 * 86400, found.files[0], True)
