"""A target that was left within a commit of several writers is made consistent from the relay when Kafka is gone.

`thl` runs as processes on real servers, and is killed at a step of the commit.
"""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, Final

import psycopg
import pytest
import yaml
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from connector.applier.from_relay import finish_intent_from_relay
from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.fetching.jars import spark_kafka_jars
from connector.kafka import handshake
from connector.kafka.large_messages import LARGE
from connector.log.ids import Seqno
from connector.log.transaction.position import TargetPosition
from connector.relay.folder import Lock
from connector.relay.reader import LocatedFragment, RelayReader
from tests.support.apply_process import COLUMNS, THL, Process
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter
from tests.support.long import long
from tests.support.mysql import connect
from tests.support.producing import SMALL, Bench, last_seqno, until
from tests.support.servers.environment import Broker, DatabaseServer, kafka_for_tests, mysql_for_tests
from tests.support.warm_jvm import warm_jvm

KILLS: Final = 40
TABLES: Final = ("orders", "items")
TYPED: Final[Any] = {"columns": COLUMNS}
CLOSED: Final = "127.0.0.1:1"  # no broker
WITHIN: Final = "target.after_channel:2"
STEPS: Final = ("target.after_intent", "target.before_channel", "target.after_channel", "target.before_position")
CAUSES: Final = {"rewind": "events are to be applied again", "load": "a load is not complete"}


class Divided:
    """A PostgreSQL target with several writers, whose applier keeps a relay."""

    def __init__(self, folder: Path, bootstrap: str, postgres: DatabaseServer, service: str) -> None:
        self.folder = folder
        self.relay = folder / "relay"
        self.service = service
        database = f"r{uuid.uuid4().hex[:10]}"
        with psycopg.connect(postgres.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {database}".encode())
        self.url = f"postgresql://{postgres.user}:{postgres.password}@{postgres.host}:{postgres.port}/{database}"
        jars = ",".join(map(str, spark_kafka_jars()))
        document = {
            "service": service,
            "kafka": {"bootstrap": bootstrap, "retries": 1},
            "apply": {"checkpoint_dir": str(folder / "spark"), "heap": "512m", "continuous": False,
                      "spark": {"spark.jars": jars}},
            "target": {"url": self.url, "writers": 4},
            "relay": {"dir": str(self.relay), "max_file_bytes": 100_000},
        }  # fmt: skip
        (folder / "thl.yaml").write_text(yaml.safe_dump(document))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as db:
            cursor = db.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def position(self) -> tuple[int, bool]:
        ((seqno, consistent),) = self.query("SELECT seqno, consistent FROM thl.thl_position")
        return seqno, consistent

    def intent(self) -> tuple[Seqno, Seqno]:
        """The first and the last event of the open commit."""
        ((first, last),) = self.query("SELECT first_seqno, last_seqno FROM thl.thl_intent")
        return Seqno(first), Seqno(last)

    def causes(self) -> list[str]:
        return [str(one) for (one,) in self.query("SELECT because FROM thl.thl_inconsistent_because ORDER BY 1")]

    def applier(self, *words: str, **environ: str) -> Process:
        (self.folder / "apply.log").unlink(missing_ok=True)
        command = [THL, "apply", "--config", str(self.folder / "thl.yaml"), *words]
        return Process(command, self.folder, **environ)

    def ends(self, *words: str, code: int = 0, **environ: str) -> str:
        """Run an applier to its end, and return what it prints."""
        process = self.applier(*words, **environ)
        found = process.wait()
        process.end()
        text = process.log.read_text()
        assert found == code, text[-3000:]
        return text

    def killed(self, point: str, *words: str, batch: int = 1000, **environ: str) -> None:
        """Run an applier until it dies at a point."""
        self.ends("--set", f"apply.batch_messages={batch}", *words, code=-9, THL_CRASH_POINT=point, **environ)

    def recovered(self, *, code: int = 0) -> str:
        """Run an applier without a broker."""
        return self.ends("--set", f"kafka.bootstrap={CLOSED}", code=code)

    def made_whole(self) -> TargetPosition | None:
        """Do in this process what an applier without a broker does."""
        alone = load(self.folder / "thl.yaml", {}, [f"kafka.bootstrap={CLOSED}"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(handshake, "QUICK", 0.5)  # seconds until no broker answers
            finished = finish_intent_from_relay(alone, SystemClock(), Event)
        return None if finished is None else finished.position

    def check_whole(self) -> int:
        """Check that no commit is open and that the target is consistent; return the position."""
        seqno, consistent = self.position()
        assert consistent
        assert self.query("SELECT * FROM thl.thl_intent") == []
        assert self.causes() == []
        return seqno


class Written(Divided):
    """A target whose log a test writes: the content of both tables after each event is known.

    Event n > 1 inserts rows into two tables, and changes the first row of each.

    Args:
        rows: of an event in each table.
        large: every event of so many has a row that is a message of its own, and too large to go through Spark.
    """

    def __init__(
        self, folder: Path, bootstrap: str, postgres: DatabaseServer, *, rows: int = 400, large: int = 1 << 30
    ) -> None:
        super().__init__(folder, bootstrap, postgres, f"r{uuid.uuid4().hex[:10]}")
        self._rows, self._large = rows, large
        self._load = 0  # the first event with rows of an initial load
        self.log = LogWriter(Config(service=self.service, kafka=Kafka(bootstrap=bootstrap)))
        self.log.online()
        self.log.events([record(0, self._creates(), kind="ddl", shard="#UNKNOWN")])
        rows_of = [change("insert", [(None, [0, "0"])], table=name) | TYPED for name in TABLES]
        self.log.events([record(1, rows_of, last_barrier=0)])

    @staticmethod
    def _creates() -> list[dict[str, Any]]:
        return [statement(f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, v LONGTEXT)") for name in TABLES]

    def events(self, count: int) -> None:
        first = self.log.seqno + 1
        self.log.events([record(n, self._changes(n), last_barrier=0) for n in range(first, first + count)])

    def load(self, count: int) -> None:
        """Begin an initial load, with so many events of rows."""
        begin = self.log.seqno + 1
        self._load = begin + 2
        whole: Any = {"gtid": None, "shard": "#UNKNOWN"}
        self.log.events([record(begin, metadata={"snapshot": "begin"}, last_barrier=0, **whole)])
        table = {"kind": "ddl", "metadata": {"snapshot": "table"}, "last_barrier": begin}
        self.log.events([record(begin + 1, self._creates(), **table, **whole)])
        self.load_rows(count)

    def load_rows(self, count: int) -> None:
        """Continue the load."""
        rows: Any = {"metadata": {"snapshot": "rows"}, "last_barrier": self._load - 1, "gtid": None}
        first = self.log.seqno + 1
        self.log.events([record(n, self._inserts(n), **rows) for n in range(first, first + count)])

    def _inserts(self, n: int) -> list[dict[str, Any]]:
        rows = [(None, list(row)) for row in self._new(n)]
        return [change("insert", rows, table=name) | TYPED for name in TABLES]

    def _changes(self, n: int) -> list[dict[str, Any]]:
        image = ([0, str(n - 1 if n > 2 else 0)], [0, str(n)])
        updates = [change("update", [image], table=name) | TYPED for name in TABLES]
        return [*self._inserts(n), *updates]

    def _new(self, n: int) -> list[tuple[int, str]]:
        """Rows that event n inserts into each table."""
        large = "x" * LARGE if n % self._large == self._large - 1 else ""
        return [(n * self._rows + at, f"v{n}" if at else f"v{n}{large}") for at in range(self._rows)]

    def content(self, seqno: int, newest: int = 0) -> list[tuple[int, str]]:
        """The content of each table after an event, where events up to the newest one are applied again."""
        first = self._load if 0 < self._load <= seqno else 2
        rows = [row for n in range(first, max(seqno, newest) + 1) for row in self._new(n)]
        first_row = [(0, str(seqno if seqno > 1 else 0))] if seqno and first == 2 else []
        return [*first_row, *rows]

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        return {name: self.query(f"SELECT id, v FROM shop.{name} ORDER BY id") for name in TABLES}

    def state(self) -> list[Any]:
        """Everything that an applier may change, but its token."""
        position = self.query(
            "SELECT log_id, seqno, epoch, event_id, gtid_set, offsets, consistent FROM thl.thl_position"
        )
        channels = self.query("SELECT channel, seqno FROM thl.thl_channels ORDER BY channel")
        return [self.tables(), position, channels, self.query("SELECT * FROM thl.thl_intent"), self.causes()]

    def check_consistent(self) -> int:
        seqno = self.check_whole()
        assert self.tables() == dict.fromkeys(TABLES, self.content(seqno))
        return seqno


def damaged(made: Written, damage: str) -> None:
    """Damage the newest file of the relay; have the target follow another log than the relay's."""
    newest = RelayReader(made.relay).files[-1].path
    content = bytearray(newest.read_bytes())
    match damage:
        case "no folder":
            shutil.rmtree(made.relay)
        case "truncated":
            os.truncate(newest, len(content) // 2)
        case "flipped":
            content[len(content) // 2] ^= 4
            newest.write_bytes(content)
        case "foreign":
            made.query(f"UPDATE thl.thl_position SET log_id = '{'0' * 32}'")


REFUSED: Final = {"flipped": 5, "truncated": 5, "no folder": 2, "foreign": 8}


@pytest.mark.parametrize("under_way", ["nothing", *long("rewind", "load")])
def test_relay_that_cannot_serve_is_refused_and_a_whole_one_ends_the_open_commit_alone(
    kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path, under_way: str
) -> None:
    made = Written(tmp_path, kafka_broker.bootstrap, postgres_server, large=7)
    made.events(16)
    newest = made.log.seqno
    match under_way:
        case "rewind":
            made.ends("--to-seqno", str(newest))
            made.killed(WITHIN, "--from-seqno", "3", batch=6)
        case "load":
            made.ends("--to-seqno", str(newest))
            made.load(12)
            made.killed(WITHIN)
            made.load_rows(2)
        case _:
            made.killed(WITHIN)
    first, last = made.intent()
    stored = [
        one.fragment for one in RelayReader(made.relay).fragments(first, last) if isinstance(one, LocatedFragment)
    ]
    assert max(len(one.value) for one in stored) > LARGE
    before = made.state()
    assert before[-1] == sorted({"channels", under_way} - {"nothing"})
    shutil.copytree(made.relay, tmp_path / "aside")
    for damage, code in REFUSED.items():
        damaged(made, damage)
        followed = made.state()
        with pytest.raises(ConnectorError) as refused:
            made.made_whole()
        assert (refused.value.exit_code, f"{first}..{last}" in str(refused.value)) == (code, True)
        assert made.state() == followed
        made.query(f"UPDATE thl.thl_position SET log_id = '{made.log.log_id}'")
        shutil.rmtree(made.relay, ignore_errors=True)
        shutil.copytree(tmp_path / "aside", made.relay)
    assert made.state() == before

    with closing(Lock(made.relay, SystemClock())):
        assert "another process uses the relay" in made.recovered(code=2)
    line = made.recovered().splitlines()[-1]
    begin = "no broker answers; finished a commit from the relay: "
    if under_way == "nothing":
        assert line == f"{begin}the target is consistent at event {last} of service {made.service}"
        assert made.check_consistent() == last
        return
    cause = f"({under_way}: {CAUSES[under_way]})"
    assert line == f"{begin}the commit is complete up to event {last} of service {made.service} {cause}"
    assert made.position() == (last, False)
    assert made.causes() == [under_way]
    assert made.tables() == dict.fromkeys(TABLES, made.content(last, newest))
    assert last < made.log.seqno
    assert made.made_whole() is None  # what is left is not the relay's to end
    assert made.position() == (last, False)
    made.ends("--to-seqno", str(made.log.seqno))
    assert made.tables() == dict.fromkeys(TABLES, made.content(made.log.seqno))
    assert made.causes() == ([] if under_way == "rewind" else ["load"])


@pytest.mark.long
def test_events_that_retention_has_deleted_are_taken_from_the_relay(
    kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    made = Written(tmp_path, kafka_broker.bootstrap, postgres_server)
    made.events(16)
    made.killed(WITHIN)
    last = made.intent()[1]
    before = made.state()
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition(made.log.config.topic, 0, OFFSET_END)]).values():
        deleted.result()
    refused = made.ends("--set", "relay.dir=", code=5)
    assert "thl apply --relay finishes the commit that the target is within" in refused
    assert made.state() == before
    line = made.ends().splitlines()[-1]
    begin = "the topic's retention has deleted events; finished a commit from the relay: "
    assert line == f"{begin}the target is consistent at event {last} of service {made.service}"
    assert made.check_consistent() == last
    assert made.tables() == dict.fromkeys(TABLES, made.content(last))


HUGE: Final = 3 << 20  # bytes of a row: more than a message
TRANSACTIONS: Final = 24


@pytest.mark.long
def test_target_within_a_commit_is_the_source_at_a_seqno_when_kafka_and_mysql_are_gone_with_their_data(
    postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    """What the source had after each transaction is kept aside."""
    kept: dict[str, dict[str, list[Any]]] = {}
    with kafka_for_tests(tmp_path / "kafka") as broker, mysql_for_tests(tmp_path / "mysql") as mysql:
        bench = Bench(mysql, broker, tmp_path, settings={**SMALL, "THL_PUBLISH__FRAGMENT_BYTES": "16384"})
        name = bench.service
        made = Divided(tmp_path, broker.bootstrap, postgres_server, name)
        with bench.start("--start", "now") as producing, connect(mysql) as source, source.cursor() as run:
            producing.online()
            run.execute(f"CREATE DATABASE {name}")
            run.execute(f"USE {name}")
            for table in TABLES:
                run.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, n INT, v LONGTEXT)")
            for n in range(TRANSACTIONS):
                run.execute("BEGIN")
                for table in TABLES:
                    rows = [(n, f"v{n}.{at}") for at in range(300)]
                    run.executemany(f"INSERT INTO {table} (n, v) VALUES (%s, %s)", rows)
                    run.execute(f"UPDATE {table} SET n = %s, v = concat(v, '+') WHERE id %% 17 = %s", (n, n % 17))
                    run.execute(f"DELETE FROM {table} WHERE id %% 41 = %s", (n,))
                if n % 8 == 5:
                    run.execute(f"INSERT INTO {TABLES[n % 2]} (n, v) VALUES (%s, repeat('é', %s))", (n, HUGE // 2))
                run.execute("COMMIT")
                run.execute("SELECT @@gtid_executed")
                ((gtids,),) = run.fetchall()
                content = kept[gtids.replace("\n", "").lower()] = {}
                for table in TABLES:
                    run.execute(f"SELECT id, n, v FROM {table} ORDER BY id")
                    content[table] = list(run.fetchall())
            until(lambda: last_seqno(bench) == TRANSACTIONS + len(TABLES))
            assert producing.stop() == 0, producing.text
        made.killed(WITHIN)
        broker.kill()
        mysql.kill()
        shutil.rmtree(tmp_path / "kafka")
        shutil.rmtree(tmp_path / "mysql")
    seqno, consistent = made.position()
    first, last = made.intent()
    assert (first, consistent) == (seqno + 1, False)
    stored = [
        one.fragment for one in RelayReader(made.relay).fragments(first, last) if isinstance(one, LocatedFragment)
    ]
    assert {one.fragno for one in stored} > {0, 1, 2}
    assert sum(len(one.value) > LARGE for one in stored) > 2
    lines = made.recovered().splitlines()
    ends = f"no broker answers; finished a commit from the relay: the target is consistent at event {last} of service "
    assert lines[-1] == ends + made.service
    assert made.check_whole() == last
    ((gtids,),) = made.query("SELECT gtid_set FROM thl.thl_position")
    for table in TABLES:
        assert made.query(f"SELECT id, n, v FROM {name}.{table} ORDER BY id") == kept[gtids.lower()][table]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_forty_kills_are_made_consistent_without_a_broker(
    kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    """The killed appliers use one JVM, whose start is most of theirs; this process makes their commits whole."""
    made = Written(tmp_path, kafka_broker.bootstrap, postgres_server, rows=300)
    rng = Random(15)
    within = 0
    with warm_jvm(tmp_path / "jvm") as jvm:
        for number in range(KILLS):
            made.events(rng.randrange(7, 12))
            point = rng.choice(STEPS)
            writers = rng.choice([2, 4, 8])
            count = rng.randrange(1, min(writers, 3) + 1) if point.endswith("channel") else 1
            made.killed(f"{point}:{count}", "--set", f"target.writers={writers}", **jvm.environ)
            jvm.stop_context()
            _, last = made.intent()
            committed = made.query(f"SELECT 1 FROM thl.thl_channels WHERE seqno = {last}")
            before, _ = made.position()
            position = made.made_whole()
            assert position is not None
            assert position.seqno == made.check_consistent() == (last if committed else before), (number, point)
            within += bool(committed)
    assert within > KILLS // 3
    assert made.made_whole() is None
    made.ends("--to-seqno", str(made.log.seqno))
    assert made.check_consistent() == made.log.seqno
