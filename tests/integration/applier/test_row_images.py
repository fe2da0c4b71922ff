"""A source with binlog_row_image MINIMAL and NOBLOB, from its binary log to equal targets.

From MySQL's own log through our reader, encoder and apply core; Kafka and Spark, which carry the messages between, do
not know what is in them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from connector.applier import open_commit
from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.errors import TargetDiffers, Unsupported
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.ids import Epoch, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.position import AfterGtids
from connector.mysql.server.connection import session
from connector.mysql.server.source_state import gtid_executed
from connector.mysql.transforms.filters import Filter
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.targets.open import open_target
from connector.verify import verify
from tests.support.binlog import read_from
from tests.support.fragments import batch, encoded, marker
from tests.support.loading import a_database
from tests.support.mysql import connect
from tests.support.servers.environment import DatabaseServer, SqlServer
from tests.unit.applier.test_core import LOG_ID, TOPIC, LargeMessages, Ranges, history

TABLES = [
    "CREATE TABLE k (id INT PRIMARY KEY, a INT DEFAULT 5, v VARCHAR(20) NOT NULL DEFAULT 'd', b BLOB, "
    "gv INT AS (a + 1) VIRTUAL, gs INT AS (a + id) STORED, t TEXT, j JSON, n DECIMAL(12,3) DEFAULT 1.5, "
    "at DATETIME(3) DEFAULT '2024-02-29 01:02:03', made TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) "
    "ON UPDATE CURRENT_TIMESTAMP(6), x BIT(9) DEFAULT b'101', e ENUM('p', 'q') NOT NULL, f DOUBLE DEFAULT 0.25)",
    "CREATE TABLE c (note TEXT, shop VARCHAR(9) DEFAULT 'main', no BIGINT UNSIGNED, price DECIMAL(9,2), raw LONGBLOB, "
    "PRIMARY KEY (no, shop))",
    "CREATE TABLE n (a INT DEFAULT 3, v VARCHAR(9) DEFAULT 'z', b BLOB, d DOUBLE)",
    "CREATE TABLE large (id INT PRIMARY KEY, grp INT, v VARCHAR(400), b BLOB)",
]
STATEMENTS = [
    "INSERT IGNORE INTO k (id) VALUES ({0}), ({1})",
    "INSERT IGNORE INTO k (id, b, t, j) VALUES ({0}, REPEAT('b', {1}), 't', JSON_OBJECT('a', 1, 's', REPEAT('x', 99)))",
    "INSERT IGNORE INTO k (id, a, v, e) VALUES ({0}, {1}, 'x', 'q'), ({1}, NULL, 'y', 'p')",
    "UPDATE k SET a = {1} WHERE id = {0}",
    "UPDATE k SET v = 'u{1}', b = NULL, f = -f WHERE id > {0}",
    "UPDATE k SET t = 'text {0}', at = NULL WHERE id = {1}",
    "UPDATE k SET j = JSON_SET(j, '$.a', {1}, '$.b[0]', {0}) WHERE id < {0}",
    "UPDATE IGNORE k SET id = id + 1000 WHERE id = {0}",
    "UPDATE IGNORE k SET id = id - 1000, n = n * 2 WHERE id > 1000 ORDER BY id LIMIT 1",
    "REPLACE INTO k (id, t) VALUES ({0}, 'replaced')",
    "INSERT INTO k (id) VALUES ({0}) ON DUPLICATE KEY UPDATE v = 'dup', a = a + 1, x = b'1'",
    "DELETE FROM k WHERE id IN ({0}, {1})",
    "INSERT IGNORE INTO c (no, shop, price) VALUES ({0}, 'other', {1}.5), ({1}, 'main', NULL)",
    "INSERT IGNORE INTO c (no, shop, note, raw) VALUES ({0}, 'main', 'n{1}', REPEAT('r', 5000))",
    "UPDATE c SET note = '{1}' WHERE no < {0}",
    "UPDATE IGNORE c SET shop = 'moved' WHERE no = {0}",
    "UPDATE IGNORE c SET no = no + 1 WHERE no > {0} ORDER BY no DESC",
    "UPDATE c SET price = price + 1, raw = NULL WHERE shop = 'main' AND no > {0}",
    "DELETE FROM c WHERE no = {0}",
    "INSERT INTO n () VALUES ()",
    "INSERT INTO n (v) VALUES ('{0}'), (NULL)",
    "INSERT INTO n (b, d) VALUES ('blob', -0.0)",
    "UPDATE n SET a = {0} LIMIT 2",
    "UPDATE n SET b = '{1}' ORDER BY a LIMIT 1",
    "DELETE FROM n ORDER BY v, a LIMIT 2",
]
SWAP = [  # of two keys, if both are there
    "UPDATE k SET id = -1 WHERE id = {0}",
    "UPDATE k SET id = {0} WHERE id = {1}",
    "UPDATE k SET id = {1} WHERE id = -1",
]


class Source:
    """A session on the source, in a database that is captured alone."""

    def __init__(self, server: SqlServer, config: Config, database: str) -> None:
        self.server = server
        self.config = config
        self.connection = connect(server)
        self.cursor: Any = self.connection.cursor()
        self.run(f"USE {database}")
        with session(config.source) as beside:
            self.start = gtid_executed(beside) or ""

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.cursor.execute(statement)

    def pieces(self) -> list[TransactionBatch]:
        """Everything since the start; a table of its own marks the end."""
        self.run("CREATE TABLE the_end (a INT)")
        found = read_from(
            self.server, AfterGtids(self.start), ended, filters=Filter(self.config.source.filters), batch_bytes=100_000
        )
        return [piece for piece in found if isinstance(piece, TransactionBatch)]


def ended(found: list[Any]) -> bool:
    last = next((piece for piece in reversed(found) if isinstance(piece, TransactionBatch)), None)
    return last is not None and any("the_end" in getattr(change, "sql", "") for change in last.changes)


def messages(pieces: list[TransactionBatch]) -> tuple[list[bytes], int]:
    """The log that a producer would have made, and its last seqno."""
    encoder = Encoder(
        service="s", source_id="db:3306", partitions=1, limits=Limits(fragment=1 << 16, shard=1 << 22, message=1 << 20)
    )
    encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=Seqno(-1)))
    fragments = [fragment for piece in pieces for fragment in encoder.encode(piece)]
    return [encoded(marker(1, 0, -1, log_id=LOG_ID)), *(one.value for one in fragments)], fragments[-1].seqno


def apply(config: Config, pieces: list[TransactionBatch], draw: random.Random, gtid_set: str = "") -> None:
    values, last = messages(pieces)
    target = open_target(config.target, SystemClock())
    try:
        position = target.claim(config.service)
        known = history([0], last)
        core = ApplyCore(
            target,
            position,
            EventSequencer[Message, Messages](topic=TOPIC, partitions=1, position=position, history=known),
            PartitionBuffers(TOPIC, LargeMessages(()), Ranges()),
            log_id=known.log_id,
            gtid_set=gtid_set or known.epochs[0].gtid_set,
            topic=TOPIC,
            clock=SystemClock(),
        )
        at = 0
        while at < len(values):
            size = draw.choice([1, 3, 20, 100])
            core.accept([batch(values[at : at + size], offset=at)])
            at += size
        assert core.position.seqno == last
    finally:
        target.close()


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, mysql_server: SqlServer, tmp_path: Path) -> Iterator[Source]:
    with a_database(mysql_server, "row_images") as (configured, name):
        url = f"sqlite:///{tmp_path}/target.db"
        if request.param == "postgres":
            server: DatabaseServer = request.getfixturevalue("postgres_server")
            url = server.dsn
        made = Source(mysql_server, Config(service=name, source=configured, target=Target(url=url)), name)
        yield made
        made.connection.close()


def churn(source: Source, draw: random.Random, steps: int, images: Sequence[str], *, json: bool) -> int:
    """Random statements under random images; how often two keys were swapped."""
    swaps = 0
    for step in range(steps):
        if step % 8 == 0:
            image = draw.choice(images)
            source.run("COMMIT", f"SET SESSION binlog_row_image = {image}")
            options = draw.choice(["", "PARTIAL_JSON"]) if json and image != "MINIMAL" else ""
            if json:
                source.run(f"SET SESSION binlog_row_value_options = '{options}'")
            source.run("BEGIN" if step % 16 else "COMMIT")
        one, other = draw.sample(range(1, 40), 2)
        if draw.random() < 0.1:
            source.cursor.execute(f"SELECT COUNT(*) FROM k WHERE id IN ({one}, {other})")
            if source.cursor.fetchone()[0] == 2:
                swaps += 1
                source.run(*(statement.format(one, other) for statement in SWAP))
        source.run(draw.choice(STATEMENTS).format(one, other))
    source.run("COMMIT")
    return swaps


def test_random_changes_are_applied_under_every_row_image(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 200_000)
    draw = random.Random(source.config.target.url.get_secret_value()[:4])
    source.run(*TABLES)
    swaps = churn(source, draw, 400, ["MINIMAL", "MINIMAL", "MINIMAL", "NOBLOB", "FULL"], json=True)
    source.run(
        "SET SESSION binlog_row_image = MINIMAL",
        "INSERT INTO large (id, grp, v) WITH RECURSIVE n AS "
        "(SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, i % 7, REPEAT('v', 300) FROM n",
        "BEGIN",
        "UPDATE large SET b = REPEAT('b', 400) WHERE grp < 6",
        "UPDATE large SET id = id + 10000 WHERE grp = 1",
        "UPDATE large SET v = CONCAT('again', id), grp = 9 WHERE grp IN (1, 2)",
        "UPDATE large SET id = id - 10000 WHERE grp = 9 AND id > 10000",
        "DELETE FROM large WHERE grp = 3",
        "COMMIT",
        "ALTER TABLE k ADD COLUMN late VARCHAR(9) NOT NULL DEFAULT 'late'",
        "INSERT INTO k (id) VALUES (-7)",
        "UPDATE k SET late = 'x' WHERE id < 5",
    )
    assert swaps > 3

    apply(source.config, source.pieces(), draw)

    report = verify(source.config, patience=0)
    assert report.equal, [str(difference) for table in report.tables for difference in table.differences]
    assert {
        table.name.split(".")[1]: table.rows > 5 for table in report.tables if "the_end" not in table.name
    } == dict.fromkeys(["c", "k", "large", "n"], True)


def test_an_update_of_a_row_that_the_target_lacks_stops(source: Source) -> None:
    source.run("CREATE TABLE k (id INT PRIMARY KEY, a INT, b BLOB)", "INSERT INTO k VALUES (1, 1, 'b')")
    pieces = source.pieces()
    source.run("DROP TABLE the_end", "SET SESSION binlog_row_image = MINIMAL", "UPDATE k SET a = 2")
    _, update, *_ = source.pieces()[len(pieces) :]  # behind DROP TABLE the_end
    with pytest.raises(TargetDiffers) as refused:
        apply(source.config, [pieces[0], update], random.Random(1))
    assert refused.value.where["table"].table == "k"


def test_an_insert_whose_default_is_not_known_stops(source: Source) -> None:
    source.run("CREATE TABLE k (id INT PRIMARY KEY, a FLOAT DEFAULT 1)", "ALTER TABLE k ALTER a SET DEFAULT 2")
    source.run("SET SESSION binlog_row_image = MINIMAL", "INSERT INTO k (id) VALUES (1)")
    with pytest.raises(Unsupported) as refused:
        apply(source.config, source.pieces(), random.Random(1))
    assert refused.value.where["column"] == "a"
    assert "binlog_row_image" in refused.value.hint


@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_table_with_only_a_unique_key_is_applied(source: Source, image: str) -> None:
    """MySQL finds its rows by the first unique key whose columns are NOT NULL."""
    source.run(
        "CREATE TABLE uk (a INT NOT NULL, b TEXT, c VARCHAR(9) DEFAULT 'z', UNIQUE KEY (a))",
        f"SET SESSION binlog_row_image = {image}",
        "INSERT INTO uk (a) VALUES (1), (2), (3)",
        "UPDATE uk SET b = 'text' WHERE a < 3",
        "UPDATE uk SET a = 9 WHERE a = 1",
        "DELETE FROM uk WHERE a = 2",
    )
    apply(source.config, source.pieces(), random.Random(1))
    assert verify(source.config, patience=0).equal
