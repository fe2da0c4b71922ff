"""`thl verify` asks the log about transactions that are not captured: no target ever has their GTIDs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.kafka.published_log import KafkaLog
from connector.log.ids import Seqno
from connector.targets.open import open_target
from connector.verify import verify
from tests.support.clock import PATIENCE
from tests.support.loading import load_into
from tests.support.producing import Bench, last_seqno
from tests.support.servers.environment import Broker, SqlServer


def test_transactions_that_are_not_captured_are_no_lag(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings={"THL_PUBLISH__IDLE_POSITION_SECONDS": "0.2"})
    bench.make_table()
    file, other = tmp_path / "target.db", f"{bench.service}_not"
    config = bench.config.model_copy(update={"target": Target(url=f"sqlite:///{file}")})  # type: ignore[arg-type]
    with bench.start() as producing:
        producing.loaded()
        with closing(open_target(config.target, SystemClock())) as target:
            position = load_into(target, config.source, config.service)
            target.commit(replace(position, seqno=Seqno(last_seqno(bench))), [])
        bench.sql(f"CREATE DATABASE {other}; CREATE TABLE {other}.t (i INT); INSERT INTO {other}.t VALUES (1)")
        assert verify(config, patience=0.1).lags  # the target alone cannot tell

        found = verify(config, patience=PATIENCE, log=KafkaLog(config))
        assert (found.equal, found.exact, found.lags) == (True, True, "")

        with closing(sqlite3.connect(file)) as session, session:
            session.execute(f"UPDATE \"{bench.service}.t\" SET v = 'by hand' WHERE id = 2")
        found = verify(config, patience=PATIENCE, log=KafkaLog(config))
        assert (found.equal, found.exact, found.lags) == (False, True, "")

        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('not applied')")
        found = verify(config, patience=0.1, log=KafkaLog(config))
        assert (found.exact, bool(found.lags)) == (False, True)
        assert producing.stop() == 0, producing.text
