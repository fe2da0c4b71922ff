"""The network between applier and PostgreSQL fails: within a COPY, and before and after a COMMIT arrives.

Whether a commit happened whose answer is lost is not known here: the target is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.errors import ConnectorError
from connector.verify import verify
from tests.faults.witness import Witness
from tests.support.clock import PATIENCE
from tests.support.producing import Bench, last_seqno, until
from tests.support.proxy import HOST, Cut, Proxy, Way
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.spark import session

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200), pytest.mark.long]

ROWS = 6000
MIDDLE = 300_000  # bytes of so many rows, which are more than 600,000


def commits(chunk: bytes) -> bool:
    """True if the bytes are exactly a COMMIT, as a simple query."""
    return chunk == b"Q\x00\x00\x00\x0bCOMMIT\x00"


CUTS = {
    "a COPY is reset": Cut(Way.UP, "reset", after=MIDDLE),
    "a COPY is not read any more": Cut(Way.UP, "silence", after=MIDDLE),
    "a COMMIT does not arrive": Cut(Way.UP, "reset", at=commits),
    "the answer to a COMMIT is lost": Cut(Way.UP, "lost answer", at=commits),
}


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    made = Bench(mysql_server, kafka_broker, tmp_path)
    made.settings |= {"THL_SOURCE__START": "earliest", "THL_APPLY__CHECKPOINT_DIR": str(tmp_path / "spark")}
    made.make_table()
    made.sql(f"CREATE TABLE {made.service}.journal (line VARCHAR(200) NOT NULL)")  # without a key
    return made


@pytest.fixture
def proxy(postgres_server: DatabaseServer) -> Iterator[Proxy]:
    with Proxy((postgres_server.host, postgres_server.port)) as made:
        yield made


def test_each_event_is_applied_once_after_any_network_fault(
    bench: Bench, postgres_server: DatabaseServer, proxy: Proxy
) -> None:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {bench.service}".encode())
    direct = postgres_server.dsn.rpartition("/")[0] + f"/{bench.service}"
    cut_through = direct.replace(f"{postgres_server.host}:{postgres_server.port}", f"{HOST}:{proxy.port}")
    witness, stop, errors = Witness(direct), Event(), list[ConnectorError]()

    def at(url: str) -> Target:
        return Target(url=SecretStr(url), audit=True)

    config = bench.config.model_copy(update={"target": at(f"{cut_through}?tcp_user_timeout=2000")})
    with session(bench.folder / "spark") as spark, bench.start() as producer:

        def run() -> None:
            try:
                Applier(config, spark, SystemClock(), stop).run()
            except ConnectorError as error:
                errors.append(error)

        applying = Thread(target=run)
        applying.start()

        def applied() -> bool:
            assert applying.is_alive(), errors
            assert producer.process.poll() is None, producer.text
            return witness.look().seqno == last_seqno(bench) == expected

        try:
            expected = 3
            until(applied)
            for number, (name, cut) in enumerate(CUTS.items(), 1):
                token = witness.token()
                proxy.arm(cut)
                bench.sql(f"INSERT INTO {bench.service}.journal VALUES ('{name}'), ('{name}')")
                bench.insert_many(ROWS)
                bench.sql(f"UPDATE {bench.service}.t SET v = 'cut {number}' WHERE id % 100 = {number}")
                expected += 3
                until(applied)
                assert not proxy.armed, name
                assert proxy.cuts == number
                assert witness.token() > token, f"{name}: no applier claimed the target again"
        finally:
            stop.set()
            applying.join(PATIENCE)
        assert producer.stop() == 0
    assert not errors
    witness.prove_applied_once()
    report = verify(config.model_copy(update={"target": at(direct)}))
    assert report.equal, report
    assert {str(table.name) for table in report.tables} == {f"{bench.service}.t", f"{bench.service}.journal"}
