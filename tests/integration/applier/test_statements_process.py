"""Changes logged as statements through `thl produce`, Kafka and `thl apply`, which is killed again and again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.sandbox.mysql import MySqlServer
from tests.integration.applier.test_mysql_target import has_table, query, url_of
from tests.integration.applier.test_statements import SETTINGS
from tests.support.apply_process import THL, Process, target_file
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.statement_workload import Workload, tables

KILLS = 4
TRANSACTIONS = 60  # before each kill

pytestmark = [pytest.mark.long, pytest.mark.faults]


@pytest.fixture(scope="module")
def pair(servers_folder: Path) -> Iterator[tuple[SqlServer, SqlServer]]:
    """A source and a target."""
    first = MySqlServer(servers_folder / "said", settings=SETTINGS, die_with_parent=True)
    second = MySqlServer(servers_folder / "heard", settings={**SETTINGS, "server_id": "3"}, die_with_parent=True)
    with first, second:
        yield first, second


def test_statements_have_their_effect_once_whenever_the_applier_is_killed(
    pair: tuple[SqlServer, SqlServer], kafka_broker: Broker, tmp_path: Path
) -> None:
    source, target = pair
    bench = Bench(source, kafka_broker, tmp_path, settings={"THL_SOURCE__STATEMENTS": "keep"})
    name = bench.service
    bench.sql(f"CREATE DATABASE {name}")
    file = target_file(tmp_path, name, kafka_broker, url=url_of(target), statements="execute")
    draw = random.Random(7)

    def seqno() -> int:
        position = f"SELECT seqno FROM thl.thl_position WHERE service = '{name}'"
        rows = query(target, position) if has_table(target, "thl", "thl_position") else ()
        return int(rows[0][0]) if rows else -1

    with bench.start() as producing:
        producing.loaded()
        workload = Workload(source, name, draw, tmp_path)
        process = Process([THL, "apply", "--config", str(file)], tmp_path)
        try:
            for _ in range(KILLS):
                before = seqno()
                workload.write(TRANSACTIONS)
                until(lambda before=before, popen=process.popen: seqno() > before or popen.poll() is not None)
                time.sleep(draw.uniform(0, 0.5))
                assert process.popen.poll() is None, process.log.read_text()[-3000:]
                process.popen.kill()
                process.end()
                process = Process([THL, "apply", "--config", str(file)], tmp_path)
            workload.write(TRANSACTIONS)
            workload.close()
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            until(lambda: has_table(target, name, "last_one") or process.popen.poll() is not None)
            assert process.popen.poll() is None, process.log.read_text()[-3000:]
        finally:
            process.popen.terminate()
            process.wait()
            process.end()
        assert producing.stop() == 0, producing.text
    expected = tables(source, name)
    assert tables(target, name) == expected
    assert sum(len(rows) for _, rows in expected.values()) > 300
