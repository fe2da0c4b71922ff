"""The torture workload, with DDL, from a MySQL to a MySQL: every value, definition and checksum is the same.

The applier and the target server are killed while they lag behind the source, after a drawn number of events.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.applier.test_mysql_target import has_table, url_of
from tests.support.apply_process import THL, Process, target_file
from tests.support.equal_databases import count, differences, query
from tests.support.mysql import connect
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.torture.workload import Workload

STEPS = 100  # before each kill, and after the last one
# So small that a commit is far from the end of what is written before a kill.
BATCHES = {"THL_APPLY__BATCH_MESSAGES": "20", "THL_APPLY__CONTINUOUS": "false"}
APPLIER, TARGET = "applier", "target"

pytestmark = [pytest.mark.long, pytest.mark.faults, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def target(servers_folder: Path) -> Iterator[MySqlServer]:
    """A MySQL that takes rows by LOAD DATA LOCAL."""
    settings = {**MYSQL_FAST, "server_id": "3", "local_infile": "ON"}
    with MySqlServer(servers_folder / "tortured", settings=settings, die_with_parent=True) as server:
        yield server


@pytest.mark.parametrize(
    ("seed", "kills", "kept"),
    [
        (1, [], "source"),
        (2, [APPLIER, TARGET] * 2, "source"),
        (3, [TARGET, APPLIER] * 2, "plain"),
    ],
)
def test_rows_of_every_type_and_ddl_arrive_as_they_are(
    mysql_server: SqlServer,
    target: MySqlServer,
    kafka_broker: Broker,
    tmp_path: Path,
    *,
    seed: int,
    kills: list[str],
    kept: str,
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path)
    name = bench.service
    draw = random.Random(seed)
    file = target_file(tmp_path, name, kafka_broker, url=url_of(target), definitions=kept)

    def seqno() -> int:
        position = f"SELECT seqno FROM thl.thl_position WHERE service = '{name}'"
        rows = query(target, position) if has_table(target, "thl", "thl_position") else ()
        return int(rows[0][0]) if rows else -1

    def running() -> bool:
        assert process.popen.poll() is None, process.log.read_text()[-5000:]
        return True

    with connect(mysql_server) as connection:
        workload = Workload(connection, name, seed)
        for _ in range(20):
            workload.step()
        with bench.start() as producing:
            producing.loaded()
            process = Process([THL, "apply", "--config", str(file)], tmp_path, **BATCHES)
            try:
                for victim in kills:
                    before = seqno()
                    for _ in range(STEPS):
                        workload.step()
                    reached = before + draw.randrange(1, STEPS // 2)
                    until(lambda reached=reached: running() and seqno() >= reached)
                    if victim == TARGET:  # the applier lives on
                        target.kill()
                        target.start()
                        continue
                    process.popen.kill()
                    process.end()
                    process = Process([THL, "apply", "--config", str(file)], tmp_path, **BATCHES)
                for _ in range(STEPS if kills else 5 * STEPS):
                    workload.step()
                workload.run("CREATE TABLE last_one (id INT PRIMARY KEY)")
                until(lambda: running() and has_table(target, name, "last_one"))
            finally:
                process.popen.terminate()
                process.wait()
                process.end()
            assert producing.stop() == 0, producing.text
    assert differences(mysql_server, target, name, definitions=kept == "source") == []
    assert count(mysql_server, name)["values"] > 5_000
