"""Transactions of ignored server ids are not published: from a MySQL, its files and a MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connector.errors import PreflightError
from connector.kafka.log_reader import LogReader
from connector.log.gtid.source_gtids import lacking
from tests.integration.binlog.test_archive import archive
from tests.integration.producer.test_produce import last_seqno
from tests.support.producing import Bench, finished, fragments, until
from tests.support.servers.environment import Broker, SqlServer

OTHER = 77
SETTINGS = {"THL_SOURCE__IGNORE_SERVER_IDS": f"{OTHER}, 78", "THL_PUBLISH__IDLE_POSITION_SECONDS": "0.2"}


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    result = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SETTINGS))
    result.make_table()
    return result


@contextmanager
def written_by(bench: Bench, server: int) -> Iterator[None]:
    """Sessions that begin now write under this id, as a replica does with what it took from that server."""
    own = bench.sql("SELECT @@GLOBAL.server_id").splitlines()[1]
    bench.sql(f"SET GLOBAL server_id = {server}")
    try:
        yield
    finally:
        bench.sql(f"SET GLOBAL server_id = {own}")


def insert(bench: Bench, key: int, columns: str = "id, v", values: str = "'x'") -> None:
    bench.sql(f"INSERT INTO {bench.service}.t ({columns}) VALUES ({key}, {values})")


def by_name(bench: Bench) -> list[dict[str, Any]]:
    """The rows behind the initial load."""
    return [
        dict(zip([column["name"] for column in change["columns"]], row["after"], strict=True))
        for event in finished(fragments(bench.config))
        for part in event
        if not {"snapshot", "load_part"} & part["metadata"].keys()
        for change in part["changes"]
        for row in change.get("rows", ())
    ]


def everything_is_passed(bench: Bench) -> bool:
    with LogReader(bench.config) as reader:
        position = reader.position()
    assert position is not None
    return not lacking(bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1], position.gtid_set or "")


def test_transactions_of_ignored_servers_are_skipped_and_their_definitions_followed(bench: Bench) -> None:
    bench.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        with bench.start() as first:
            until(lambda: " loaded service=" in first.text)
            before = last_seqno(bench)
            insert(bench, 10)
            with written_by(bench, OTHER):
                insert(bench, 11)
                bench.sql(f"ALTER TABLE {bench.service}.t ADD n INT FIRST")
                insert(bench, 12)
            with written_by(bench, bench.config.source.server_id):  # as if the replica that we are had written
                insert(bench, 13)
            insert(bench, 14, "id, v, n", "'y', 5")
            with written_by(bench, OTHER):
                insert(bench, 15)
            until(lambda: last_seqno(bench) == before + 2 and everything_is_passed(bench))
            assert first.stop() == 0
        assert by_name(bench) == [{"id": 10, "v": "x"}, {"n": 5, "id": 14, "v": "y"}]

        # The log's last event was written by a server that is left out from now on.
        with bench.start(THL_SOURCE__IGNORE_SERVER_IDS=f"{OTHER}, 1, 78") as second:
            second.online()
            insert(bench, 16)
            with written_by(bench, 79):
                insert(bench, 17, "id, v, n", "'z', 6")
            until(lambda: last_seqno(bench) == before + 3 and everything_is_passed(bench))
            assert second.stop() == 0
        assert by_name(bench)[2:] == [{"n": 6, "id": 17, "v": "z"}]
    finally:
        bench.sql("SET GLOBAL binlog_row_metadata = FULL")


def test_ignored_servers_are_skipped_in_files(bench: Bench, tmp_path: Path) -> None:
    bench.settings["THL_SOURCE__START"] = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1]
    insert(bench, 20)
    with written_by(bench, OTHER):
        insert(bench, 21)
    insert(bench, 22)
    bench.sql("FLUSH BINARY LOGS")
    with written_by(bench, 79):
        insert(bench, 23)
        bench.sql("FLUSH BINARY LOGS")
    folder = tmp_path / "archive"
    assert archive(bench, folder, "--to-now").returncode == 0
    assert run_files(bench, folder, f"{OTHER}") == 0
    assert [row["id"] for row in by_name(bench)][-3:] == [20, 22, 23]
    # Files do not say which rows of other servers the log lacks.
    with bench.start("--from-files", str(folder), THL_SOURCE__IGNORE_SERVER_IDS="79") as wider:
        assert wider.ended() == PreflightError.exit_code
        assert "--accept-partial" in wider.text
    ignored = {"THL_SOURCE__IGNORE_SERVER_IDS": f"{OTHER}, 79"}
    with bench.start("--from-files", str(folder), THL_SOURCE__SERVER_ID="1", **ignored) as refused:
        assert refused.ended() == PreflightError.exit_code
        assert "source.server_id" in refused.text


def run_files(bench: Bench, folder: Path, ignored: str) -> int:
    with bench.start("--from-files", str(folder), THL_SOURCE__IGNORE_SERVER_IDS=ignored) as process:
        return process.ended()


def test_ignored_mariadb_servers_are_skipped(mariadb_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> None:
    bench = Bench(mariadb_server, kafka_broker, tmp_path, settings={**SETTINGS, "THL_SOURCE__START": "now"})
    bench.make_table()
    with bench.start() as process:
        process.online()
        insert(bench, 10)
        bench.sql(f"SET server_id = {OTHER}; INSERT INTO {bench.service}.t VALUES (11, 'x')")
        insert(bench, 12)
        until(lambda: last_seqno(bench) == 1)
        assert process.stop() == 0
    assert [row["id"] for row in by_name(bench)] == [10, 12]
