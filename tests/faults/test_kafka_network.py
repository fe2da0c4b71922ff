"""The network between producer and brokers fails within requests and within responses."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.errors import ConnectorError, HistoriesDiffer, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.spark.session import SparkRun
from tests.faults.witness import Witness
from tests.support.clock import PATIENCE
from tests.support.producing import SMALL, Bench, check, last_seqno, until
from tests.support.proxied_kafka import ProxiedBroker, proxied_broker
from tests.support.proxy import Cut, Proxy, Way
from tests.support.servers.environment import SqlServer
from tests.support.spark import session

pytestmark = [pytest.mark.faults, pytest.mark.long, pytest.mark.timeout(1200)]

ROWS = 6000
MIDDLE = 300_000  # bytes of a transaction of so many rows, which are more than 600,000
END_TRANSACTION = 26  # https://kafka.apache.org/protocol


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProxiedBroker, Proxy]]:
    with proxied_broker(tmp_path_factory.mktemp("proxied")) as made:
        yield made


@pytest.fixture
def proxy(brokers: tuple[ProxiedBroker, Proxy]) -> Proxy:
    return brokers[1]


@pytest.fixture
def bench(mysql_server: SqlServer, brokers: tuple[ProxiedBroker, Proxy], tmp_path: Path) -> Bench:
    made = Bench(mysql_server, brokers[0], tmp_path, settings=dict(SMALL))
    made.settings |= {"THL_SOURCE__START": "earliest", "THL_PUBLISH__COMPRESSION": "none"}
    made.settings |= {
        "THL_KAFKA__PROPERTIES": '{"socket.timeout.ms": "2000", "reconnect.backoff.max.ms": "500", '
        # how long a topic that the brokers do not tell of may yet come
        '"topic.metadata.propagation.max.ms": "1000"}'
    }
    made.settings |= {"THL_APPLY__CHECKPOINT_DIR": str(tmp_path / "spark")}
    made.make_table()
    return made


def ends_a_transaction(chunk: bytes) -> bool:
    """True if the bytes are exactly one EndTxn request: by length and request type."""
    return int.from_bytes(chunk[:4]) == len(chunk) - 4 and int.from_bytes(chunk[4:6]) == END_TRANSACTION


CUTS = (
    Cut(Way.UP, "reset", after=MIDDLE),
    Cut(Way.UP, "silence", after=MIDDLE),
    Cut(Way.UP, "lost answer", after=MIDDLE),
    Cut(Way.UP, "reset", at=ends_a_transaction),
    Cut(Way.UP, "silence", at=ends_a_transaction),
    Cut(Way.UP, "lost answer", at=ends_a_transaction),
)


def test_each_event_is_published_once_after_any_network_fault(bench: Bench, proxy: Proxy) -> None:
    with bench.start() as running:
        until(lambda: last_seqno(bench) >= 2)
        for number, cut in enumerate(CUTS, 1):
            proxy.arm(cut)
            bench.insert_many(ROWS)
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('behind cut {number}')")
            until(lambda number=number: last_seqno(bench) == 2 + 2 * number)  # type: ignore[misc]
            assert not proxy.armed
        for request in ("ProduceRequest", "EndTxnRequest"):  # of silence; resets are tried again at once
            assert f"Timed out {request} in flight" in running.text
        assert running.stop() == 0
    assert len(check(bench)) == 3 + 2 * len(CUTS)


@contextmanager
def load(bench: Bench) -> Iterator[None]:
    """Insert row after row as long as the block lasts."""
    over = Event()

    def insert() -> None:
        while not over.wait(0.02):
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('load')")

    thread = Thread(target=insert)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Applying:
    """An applier in a thread, on SQLite, and its outcome."""

    def __init__(self, bench: Bench, spark: SparkRun) -> None:
        self.target = bench.folder / "target.db"
        target = Target(url=SecretStr(f"sqlite:///{self.target}"), audit=True)
        self.config = bench.config.model_copy(update={"target": target})
        self.stop = Event()
        self.error: ConnectorError | None = None
        self._applier = Applier(self.config, spark, SystemClock(), self.stop)
        self.thread = Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._applier.run()
        except ConnectorError as error:
            self.error = error

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)

    def seqno(self) -> int:
        assert self.thread.is_alive(), self.error
        return Witness(self.config.target.url.get_secret_value()).look().seqno


def test_re_created_log_is_refused_under_load(bench: Bench, brokers: tuple[ProxiedBroker, Proxy]) -> None:
    broker, _ = brokers
    with session(bench.folder / "spark") as spark:
        with bench.start() as running, Applying(bench, spark) as applying, load(bench):
            until(lambda: applying.seqno() >= 5)
            broker.kill()
            broker.start()
            before = last_seqno(bench)
            until(lambda: applying.seqno() >= before + 5)
            first = log_id(bench)
            broker.rebuild()
            assert running.ended() == LogDamaged.exit_code
            assert "the log of this producer was deleted or re-created" in running.text
            assert f"log_id={first} found=no log" in running.text
            assert "hint: point kafka.bootstrap to the brokers that have it" in running.text
            with LogReader(bench.config) as reader:
                assert reader.partitions(bench.config.topic) == 0  # and has made nothing
            applying.thread.join(PATIENCE)
        assert isinstance(applying.error, HistoriesDiffer), applying.error
        assert (applying.error.where["log_id"], applying.error.where["topic"]) == (first, bench.config.topic)
        assert applying.error.hint
        rows = witnessed(applying)

        # Who starts a producer now begins another log. The target, which is another's, is left as it was.
        with bench.start() as again:
            until(lambda: last_seqno(bench) >= 5)
            assert again.stop() == 0
        second = Applying(bench, spark)
        with second:
            second.thread.join(PATIENCE)
        assert isinstance(second.error, HistoriesDiffer), second.error
        assert second.error.where == {
            "server_log_id": log_id(bench), "client_log_id": first, "seqno": len(rows["thl_applied"]) - 1
        }  # fmt: skip
        assert witnessed(second) == rows
        assert Witness(second.config.target.url.get_secret_value()).look().seqno == len(rows["thl_applied"]) - 1


def log_id(bench: Bench) -> str:
    with LogReader(bench.config) as reader:
        log = reader.control().log
    assert log is not None
    return log.log_id


def witnessed(applying: Applying) -> dict[str, list[tuple[object, ...]]]:
    """The content of the target, without its claims: an applier claims it before it can know whose log it follows."""
    with closing(sqlite3.connect(applying.target)) as db:
        return {
            name: db.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall()
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if name not in {"thl_position", "thl_claim"}
        }
