"""`thl binlog --format sql` of a source with GTIDs, a MySQL or a MariaDB: its copy has the same rows and GTIDs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from connector.errors import Unsupported
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.binlog.test_sql_format import RANDOM_TABLES, SEED, Workload, logs, replay, state
from tests.integration.binlog.test_statements import SCHEMA, run
from tests.support.mysql import connect

pytestmark = pytest.mark.servers

STATEMENTS = 60


class Pair:
    """A source with its log of random changes in all formats, and a copy that is empty.

    The log has two servers and, with MariaDB, two domains. Its last file has a table created from rows, of which no
    other file has one with MariaDB.
    """

    def __init__(self, kind: str, folder: Path, stack: ExitStack) -> None:
        self.mariadb = kind == "mariadb"
        self.source, self.copy = (self._server(folder / name, stack) for name in ("source", "copy"))
        self.empty(self.source)
        self.empty(self.copy)
        with connect(self.source).cursor() as cursor:
            run(cursor, f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4\nUSE {SCHEMA}" + RANDOM_TABLES)
            run(cursor, "SET GLOBAL server_id = 99\nFLUSH BINARY LOGS")  # the next file's description differs
            if self.mariadb:
                run(cursor, "SET gtid_domain_id = 3\nINSERT INTO keyless VALUES (1, 'another domain')")
        compression = "GLOBAL log_bin_compress" if self.mariadb else "binlog_transaction_compression"
        workload = Workload(self.source, SEED, compression, creates=not self.mariadb)
        workload.run(STATEMENTS)
        workload.close()
        self.gtids = self.executed(self.source)
        with connect(self.source).cursor() as cursor:
            run(cursor, f"FLUSH BINARY LOGS\nUSE {SCHEMA}\nCREATE TABLE last (PRIMARY KEY (id)) AS SELECT * FROM part")
        self.files = logs(self.source)

    def _server(self, folder: Path, stack: ExitStack) -> Mysqld:
        settings = {**MYSQL_FAST, "server_id": "77" if folder.name == "copy" else "5"}
        server = MariaDbServer if self.mariadb else MySqlServer
        return stack.enter_context(server(folder, settings=settings, die_with_parent=True))

    def empty(self, server: Mysqld) -> None:
        """Drop what a test has made, and forget the binary log."""
        with connect(server).cursor() as cursor:
            run(cursor, f"DROP DATABASE IF EXISTS {SCHEMA}\nDROP DATABASE IF EXISTS other")
            cursor.execute("RESET MASTER" if self.mariadb else "RESET BINARY LOGS AND GTIDS")

    def executed(self, server: Mysqld) -> set[str]:
        """The GTIDs in the server's log."""
        with connect(server).cursor() as cursor:
            cursor.execute(f"SELECT @@GLOBAL.{'gtid_binlog_pos' if self.mariadb else 'gtid_executed'}")
            return set("".join(str(cursor.fetchone()[0]).split()).split(","))

    def check_equal(self) -> None:
        expected, found = state(self.source), state(self.copy)
        assert found.keys() == expected.keys()
        for name, what in expected.items():
            assert found[name] == what, name
        assert len(found["said.r"][1]) > STATEMENTS // 4


@pytest.fixture(params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(request.param, tmp_path, stack)


def test_copy_has_the_rows_of_its_source_and_keeps_gtids_unless_they_are_skipped(pair: Pair) -> None:
    *files, last = pair.files
    replay(pair.files, pair.copy, "--skip-gtids")
    pair.check_equal()
    assert not pair.executed(pair.copy) & pair.gtids

    pair.empty(pair.copy)
    printed = replay(files, pair.copy)
    assert pair.executed(pair.copy) == pair.gtids
    if pair.mariadb:
        assert len(pair.gtids) == 2
        command = [sys.executable, "-m", "connector", "binlog", str(last), "--format", "sql"]
        refused = subprocess.run(command, capture_output=True, check=False)
        assert refused.returncode == Unsupported.exit_code
        assert b"hint: --skip-gtids" in refused.stderr
        replay([last], pair.copy, "--skip-gtids")
    else:
        assert b"\nSET @@session.gtid_next = '" in printed
        replay(files, pair.copy)  # has them: nothing happens
        assert pair.executed(pair.copy) == pair.gtids
        replay([last], pair.copy)
    pair.check_equal()
