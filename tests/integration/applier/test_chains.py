"""Targets that are sources, too: a chain over a MySQL in the middle, and a ring of two."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.kafka.log_reader import LogReader
from connector.log.gtid.source_gtids import lacking
from connector.log.ids import Seqno
from connector.spark.session import SparkRun
from connector.verify import verify
from tests.integration.applier.test_mysql_target import checksums, definitions, query, url_of
from tests.support.producing import Bench, last_seqno, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.written_tables import TABLES, fill, writing

SETTINGS = {"THL_PUBLISH__IDLE_POSITION_SECONDS": "0.2", "THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "500"}
DDL = (
    "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(20), w INT AS (length(v)))",
    "INSERT INTO items (v) VALUES ('a'), ('b')",
    "ALTER TABLE items ADD n INT NOT NULL DEFAULT 5 AFTER id",
    "INSERT INTO items (v) VALUES ('c')",
    "RENAME TABLE items TO other",
)


@pytest.fixture
def last(postgres_server: DatabaseServer) -> str:
    """The URL of the database at the chain's end."""
    server = postgres_server
    return f"postgresql://{server.user}:{quote(server.password)}@{server.host}:{server.port}/postgres"


def to(bench: Bench, url: str, **settings: object) -> Config:
    """The configuration of a bench with a target."""
    target = Target(url=SecretStr(url), **settings)  # type: ignore[arg-type]  # its own names
    return bench.config.model_copy(update={"target": target})


def apply(bench: Bench, config: Config, spark: SparkRun) -> None:
    """Apply what the source has committed."""
    until(lambda: caught_up(bench))
    assert Applier(config, spark, SystemClock(), Event(), until=Seqno(last_seqno(bench))).run()


def caught_up(bench: Bench) -> bool:
    with LogReader(bench.config) as reader:
        position = reader.position()
    executed = query(bench.mysql, "SELECT @@GLOBAL.gtid_executed")[0][0]
    return position is not None and not lacking(executed.replace("\n", ""), position.gtid_set or "")


def bench_of(server: SqlServer, kafka: Broker, folder: Path, database: str = "", **more: str) -> Bench:
    bench = Bench(
        server, kafka, folder, settings={**SETTINGS, "THL_APPLY__CHECKPOINT_DIR": str(folder / "spark"), **more}
    )
    if database:
        bench.settings["THL_SOURCE__FILTERS__DO"] = f'["{database}"]'
    return bench


@pytest.mark.long
def test_a_chain_over_a_mysql_in_the_middle_is_equal_at_its_end(
    mysql_server: SqlServer, second: SqlServer, last: str, kafka_broker: Broker, tmp_path: Path, *, spark: SparkRun
) -> None:
    first = bench_of(mysql_server, kafka_broker, tmp_path)
    name, tables = first.service, list(TABLES)
    middle = bench_of(second, kafka_broker, tmp_path, name)
    fill(first, tables)
    with first.start() as producing:
        producing.loaded()
        apply(first, to(first, url_of(second)), spark)
        with middle.start() as further:
            further.loaded()  # of what was loaded; what follows comes by its stream
            with writing(first, tables):
                for sql in DDL:
                    first.sql(f"USE {name}; {sql}")
            apply(first, to(first, url_of(second)), spark)
            apply(middle, to(middle, last), spark)
            assert further.stop() == 0, further.text
        assert producing.stop() == 0, producing.text
    assert checksums(second, name) == checksums(mysql_server, name)
    assert definitions(second, name).keys() == definitions(mysql_server, name).keys() >= {"other", *tables}
    report = verify(to(middle, last))
    assert report.equal, [str(one) for table in report.tables for one in table.differences]


@pytest.mark.long
def test_no_change_goes_round_a_ring(
    mysql_server: SqlServer, second: SqlServer, kafka_broker: Broker, tmp_path: Path, spark: SparkRun
) -> None:
    """Each table has one home, and both producers capture the whole database.

    Neither applier writes to its target's binary log: a change that came back would be refused, for the applier there
    has not created its table.
    """
    there = bench_of(mysql_server, kafka_broker, tmp_path)
    there.make_table()
    name = there.service
    back = bench_of(second, kafka_broker, tmp_path, name, THL_SOURCE__START="now")
    forth = to(there, url_of(second), binary_log=False)
    home = to(back, url_of(mysql_server), binary_log=False)
    with there.start() as producing:
        producing.loaded()
        loaded = last_seqno(there)
        apply(there, forth, spark)
        with back.start() as other:
            other.online()
            query(second, f"CREATE TABLE {name}.other (id INT PRIMARY KEY, v VARCHAR(20))")
            for number in range(3):
                query(mysql_server, f"INSERT INTO {name}.t VALUES ({100 + number}, 'first')")
                query(second, f"INSERT INTO {name}.other VALUES ({number}, 'second')")
                apply(there, forth, spark)
                apply(back, home, spark)
            query(mysql_server, f"DELETE FROM {name}.t WHERE id = 101")
            query(second, f"UPDATE {name}.other SET v = 'changed' WHERE id = 1")
            apply(there, forth, spark)
            apply(back, home, spark)
            assert (last_seqno(there), last_seqno(back)) == (loaded + 4, 4)  # each its own, and none of the other's
            assert other.stop() == 0, other.text
        assert producing.stop() == 0, producing.text
    assert checksums(second, name) == checksums(mysql_server, name)
    assert query(mysql_server, f"SELECT * FROM {name}.other ORDER BY id") == [
        (0, "second"),
        (1, "changed"),
        (2, "second"),
    ]
