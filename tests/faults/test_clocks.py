"""Clocks of source, producer and applier an hour apart, in both directions: only latencies depend on them.

The brokers and the target keep the machine's clock, so each is an hour away from somebody, too.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.kafka.log_reader import LogReader
from connector.log.ids import Seqno
from connector.metrics import applied_latency
from connector.verify import verify
from tests.faults.witness import Witness
from tests.support.producing import Bench, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.spark import session

pytestmark = [pytest.mark.faults, pytest.mark.long, pytest.mark.timeout(1200)]

HOUR = 3600


class WrongClock(SystemClock):
    """A clock that is a number of seconds ahead."""

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead

    def now(self) -> int:
        return super().now() + self._ahead * 1_000_000


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    made = Bench(mysql_server, kafka_broker, tmp_path)
    made.settings |= {"THL_APPLY__CHECKPOINT_DIR": str(tmp_path / "spark")}
    made.make_table()
    made.sql(f"CREATE TABLE {made.service}.seen (id INT PRIMARY KEY, at TIMESTAMP(6) NOT NULL, local DATETIME(6))")
    return made


def test_clocks_an_hour_apart_change_only_latency(bench: Bench) -> None:
    url = f"sqlite:///{bench.folder / 'target.db'}"
    config = bench.config.model_copy(update={"target": Target(url=SecretStr(url), audit=True)})
    latencies = []
    with session(bench.folder / "spark") as spark:
        for number, (producer, applier, source) in enumerate(((HOUR, -HOUR, -HOUR), (-HOUR, HOUR, HOUR))):
            with bench.start(CLOCK_OFF_BY=str(producer)) as running:
                running.online()
                until(lambda: last_seqno(bench) >= 0)
                until(lambda: not loading(bench))
                goal = last_seqno(bench) + 3 + number  # a DELETE of nothing is no event
                bench.sql(
                    f"SET TIMESTAMP = UNIX_TIMESTAMP() + {source}; USE {bench.service};"
                    f"INSERT INTO seen VALUES ({number}, NOW(6), NOW(6));"
                    f"UPDATE t SET v = concat('changed ', v) WHERE id = 1; DELETE FROM t WHERE id = 3;"
                    f"INSERT INTO t VALUES (3, 'of clock {number}')"
                )
                until(lambda goal=goal: last_seqno(bench) >= goal)  # type: ignore[misc]
                assert running.stop() == 0
            told = latency(bench)
            last = last_seqno(bench)
            assert Applier(config, spark, WrongClock(applier), Event(), until=Seqno(last)).run()
            latencies.append(latency(bench) - told)
            Witness(url).prove_applied_once()
            report = verify(config)
            assert report.equal, report
            assert report.seqno == last
    with LogReader(config) as reader:
        first, *_, second = reader.control().epochs
    assert HOUR < (first.started - second.started) / 1e6 < 2 * HOUR  # the producers' clocks were what they were to be
    assert latencies[0] == 0  # unknown for an applier whose clock is behind
    assert latencies[1] > 4 * (HOUR - 600)  # each of four events an hour too much


def loading(bench: Bench) -> bool:
    with LogReader(bench.config) as reader:
        position = reader.position()
    return position is None or position.snapshot


def latency(bench: Bench) -> float:
    """The sum of the observed latencies."""
    (family,) = applied_latency.labels(bench.service).collect()
    return next(sample.value for sample in family.samples if sample.name.endswith("_sum"))
