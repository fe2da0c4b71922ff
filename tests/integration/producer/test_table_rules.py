"""Rules for tables on a real server: source, log and target."""

from __future__ import annotations

import hmac
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.kafka.log_reader import LogReader
from connector.log.compact.scan import Messages
from connector.log.epochs.history import History
from connector.log.format.message import Message
from connector.log.gtid.source_gtids import lacking
from connector.log.reading.event_sequencer import EventSequencer
from connector.targets.open import open_target
from tests.support.clock import PATIENCE
from tests.support.fragments import batch
from tests.support.producing import Bench, finished, fragments, until
from tests.support.servers.environment import Broker, SqlServer
from tests.unit.applier.test_core import LargeMessages, Ranges

IDLE = {"THL_PUBLISH__IDLE_POSITION_SECONDS": "0.2"}


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    made = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(IDLE))
    made.sql(f"CREATE DATABASE {made.service}")
    return made


def ruled(bench: Bench, *rules: dict[str, Any]) -> str:
    """Rules whose tables are of the bench's schema."""
    return json.dumps([{**rule, "match": [f"{bench.service}.{name}" for name in rule["match"]]} for rule in rules])


def changes(bench: Bench, *, load: bool = False) -> list[tuple[str, ...]]:
    """What the log holds of the initial load, or behind it: in order, the definitions and the rows."""
    found: list[tuple[str, ...]] = []
    for event in finished(fragments(bench.config)):
        for part in event:
            if bool({"snapshot", "load_part"} & part["metadata"].keys()) is not load:
                continue
            for change in part["changes"]:
                if "sql" in change:
                    found.append((change["sql"],))
                    continue
                for row in change.get("rows", ()):  # or it is a part of a large one
                    found.append((change["table"], change["action"], str(row["before"]), str(row["after"])))
    return found


def everything_is_passed(bench: Bench) -> bool:
    with LogReader(bench.config) as reader:
        position = reader.position()
    executed = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1].replace("\\n", "")
    return position is not None and not lacking(executed, position.gtid_set or "")


def messages(config: Config, topic: str) -> list[bytes]:
    """Every value of a topic's first partition as it stands there."""
    consumer = Consumer(
        {
            "bootstrap.servers": config.kafka.bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(PATIENCE)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            found.append(message.value() or b"")
    finally:
        consumer.close()


def apply(config: Config, target: Target) -> None:
    """The log onto a target that has nothing, all at once."""
    with LogReader(config) as reader:
        control, position = reader.control(), reader.position()
    assert position is not None
    known = History.of(control, position.last_finished)
    to = open_target(target, SystemClock())
    try:
        start = to.claim(config.service)
        core = ApplyCore(
            to,
            start,
            EventSequencer[Message, Messages](topic=config.topic, partitions=1, position=start, history=known),
            PartitionBuffers(config.topic, LargeMessages(()), Ranges()),
            log_id=known.log_id,
            gtid_set=known.epochs[0].gtid_set,
            topic=config.topic,
            clock=SystemClock(),
        )
        core.accept([batch(messages(config, config.topic))])
        assert core.position.seqno == position.last_finished
    finally:
        to.close()


def test_rules_of_actions_publish_only_these(bench: Bench) -> None:
    """Some actions of some tables: a transaction of which nothing is left takes no seqno, and the position goes on."""
    db = bench.service
    bench.settings["THL_SOURCE__FILTERS__TABLES"] = ruled(
        bench,
        {"match": ["added"], "actions": ["insert", "ddl"]},
        {"match": ["gone", "defined"], "actions": ["ddl"]},
        {"match": ["quiet"], "actions": ["insert", "update", "delete"]},
    )
    for name in ("added", "gone", "quiet", "whole"):
        bench.sql(f"CREATE TABLE {db}.{name} (id INT PRIMARY KEY, v INT); INSERT INTO {db}.{name} VALUES (1, 1)")
    with bench.start() as first:
        first.loaded()
        bench.sql(f"CREATE TABLE {db}.defined (id INT PRIMARY KEY); INSERT INTO {db}.defined VALUES (1)")
        bench.sql(f"UPDATE {db}.added SET v = 2; DELETE FROM {db}.added; INSERT INTO {db}.added VALUES (2, 2)")
        bench.sql(f"TRUNCATE {db}.added; TRUNCATE {db}.gone; ALTER TABLE {db}.gone ADD w INT")
        bench.sql(f"ALTER TABLE {db}.quiet ADD w INT; UPDATE {db}.quiet SET v = 3; TRUNCATE {db}.quiet")
        bench.sql(f"BEGIN; INSERT INTO {db}.gone VALUES (5, 5, 5); DELETE FROM {db}.whole; COMMIT")
        bench.sql(f"INSERT INTO {db}.gone VALUES (6, 6, 6)")
        until(lambda: everything_is_passed(bench))
        assert first.stop() == 0
    loaded = changes(bench, load=True)
    assert sorted(change for change in loaded if len(change) > 1) == [  # tables are read side by side
        ("added", "read", "None", "[1, 1]"),
        ("quiet", "read", "None", "[1, 1]"),
        ("whole", "read", "None", "[1, 1]"),
    ]
    assert {sql.partition(" (")[0] for sql, *rows in loaded if not rows and "TABLE" in sql} == {
        "CREATE TABLE `added`",
        "CREATE TABLE `gone`",
        "CREATE TABLE `whole`",
    }
    expected = [
        (f"CREATE TABLE {db}.defined (id INT PRIMARY KEY)",),
        ("added", "insert", "None", "[2, 2]"),
        (f"ALTER TABLE {db}.gone ADD w INT",),
        ("quiet", "update", "[1, 1, None]", "[1, 3, None]"),
        (f"TRUNCATE {db}.quiet",),
        ("whole", "delete", "[1, 1]", "None"),
    ]
    assert changes(bench) == expected
    seqnos = [event[0]["seqno"] for event in finished(fragments(bench.config))]
    assert seqnos == list(range(len(seqnos)))

    # The log's last event is one that the next filters leave out: it is not compared, which is logged.
    others = ruled(bench, {"match": ["whole"], "actions": ["ddl"]})
    with bench.start("--accept-partial", f"{bench.service}.*", THL_SOURCE__FILTERS__TABLES=others) as second:
        second.online()
        assert "not compared with the source: the filters have changed" in second.text
        bench.sql(f"INSERT INTO {db}.whole VALUES (7, 7); INSERT INTO {db}.added VALUES (7, 7)")
        until(lambda: everything_is_passed(bench))
        assert second.stop() == 0
    assert changes(bench)[len(expected) :] == [("added", "insert", "None", "[7, 7]")]
    with bench.start(THL_SOURCE__FILTERS__TABLES=ruled(bench, {"match": ["whole"], "actions": ["ddl"]})) as third:
        third.online()
        assert "not compared" not in third.text
        assert third.stop() == 0


KEY = "a key of more than sixteen characters"
SECRETS = ("hidden-ssn", "hidden-mail", "hidden-note", "hidden-tel")
COLUMNS = [
    {
        "match": ["person"],
        "drop": ["ssn*"],
        "mask": {"mail": {"hash": 32}, "phone": {"truncate": 3}, "note": {"fixed": "***"}, "n": {"fixed": None}},
        "zero_dates": ["*"],
    },
    {"match": ["account"], "mask": {"mail": {"hash": 40}}},
    {"match": ["moved"], "publish_as": "elsewhere.there"},
    {
        "match": ["named"],
        "rename": {"id": "number", "V": "the `value`", "body": "text", "day": "Day of", "text": "body", "odd": "even"},
        "mask": {"v": {"truncate": 3}},
    },
]


# Its key, its checks, its own foreign key and what is computed are over columns that are published by other names.
NAMED = (
    "CREATE TABLE named (Id INT, part INT, v VARCHAR(20) DEFAULT 'v', odd INT, body LONGTEXT, day DATE, text INT, "
    "computed INT AS (part + id) STORED, PRIMARY KEY (part, id), UNIQUE KEY v (v), KEY (text, body(5)), "
    "CONSTRAINT day CHECK (v <> 'day' AND day < DATE '2100-01-01' + INTERVAL 1 DAY), KEY odd ((text + 1)), "
    "CONSTRAINT id FOREIGN KEY (part, text) REFERENCES named (part, id))"
)
RENAMED = (  # the source leads one column away from the name that has a rule, and back, and to the published name
    "ALTER TABLE named DROP odd",
    "ALTER TABLE named ADD odd INT DEFAULT 7 AFTER v, ADD INDEX body (odd, text), DROP INDEX odd",
    "ALTER TABLE named RENAME COLUMN odd TO other, MODIFY body LONGTEXT CHECK (body <> 'body') AFTER id",
    "ALTER TABLE named CHANGE other odd BIGINT FIRST, ALTER text SET DEFAULT 1, ADD extra INT, ADD text2 INT DEFAULT 5",
    "CREATE INDEX computed ON named (text, (extra + text2))",
    "ALTER TABLE named CHANGE odd even BIGINT",
)
LARGE = 200_000


def shown_by_mysql(bench: Bench, schema: str) -> list[str]:
    """The columns, keys and checks of `named` as the server shows them."""
    shown = bench.mysql.run_sql("SHOW CREATE TABLE named", database=schema)
    return [line.rstrip(",") for line in shown.splitlines() if line.startswith(" ")]


def with_other_names(line: str) -> str:
    """A line of SHOW CREATE TABLE: every name is quoted, and those of indexes and constraints come first. The values of
    the masked column `v` may repeat, so its unique key is published as an index."""
    line = line.replace("UNIQUE KEY `v`", "KEY `v`")
    rename = {old.lower(): new.replace("`", "``") for old, new in COLUMNS[-1]["rename"].items()}  # type: ignore[attr-defined]
    beginning = re.match(r"\s*(?:(?:UNIQUE |PRIMARY )?KEY(?: `.*?`)? |CONSTRAINT `.*?` |)", line)
    assert beginning is not None
    return beginning[0] + re.sub(
        "`(.*?)`", lambda name: f"`{rename.get(name[1].lower(), name[1])}`", line[beginning.end() :]
    )


def hashed(text: str, digits: int) -> str:
    return hmac.new(KEY.encode(), text.encode(), "sha256").hexdigest()[:digits]


def test_rules_of_columns_drop_mask_and_rename(bench: Bench, tmp_path: Path) -> None:
    """Columns that are dropped, masked or have other names: a load and a log come to the same, on a target and after a
    restart."""
    db = bench.service
    bench.settings["THL_SOURCE__FILTERS__TABLES"] = ruled(bench, *COLUMNS)
    bench.settings["THL_SOURCE__FILTERS__HASH_KEY"] = KEY
    bench.settings["THL_KAFKA__MAX_MESSAGE_BYTES"] = "65536"  # a row of `named` is in parts
    zero = "SET SESSION sql_mode = '';"
    bench.sql(
        f"{zero} CREATE TABLE {db}.person (id INT PRIMARY KEY AUTO_INCREMENT, mail VARCHAR(100), "
        "ssn CHAR(11) DEFAULT 'hidden-ssn', born DATE NOT NULL, phone VARCHAR(20) CHARACTER SET latin1, note TEXT, "
        f"n INT, KEY (ssn, born)); CREATE TABLE {db}.account (mail VARCHAR(64) PRIMARY KEY, v INT);"
        f"INSERT INTO {db}.person (mail, ssn, born, phone, note, n) VALUES "
        f"('hidden-mail', 'hidden-ssn', 0, 'hidden-tel', 'hidden-note', 7), "
        "(NULL, NULL, '2000-02-29', 'äöüß', NULL, NULL);"
        f"INSERT INTO {db}.account VALUES ('hidden-mail1', 1), ('hidden-mail2', 2);"
        f"CREATE TABLE {db}.moved (id INT PRIMARY KEY); INSERT INTO {db}.moved VALUES (1);"
        f"USE {db}; {NAMED}; INSERT INTO named (id, part, v, body, day, text) VALUES "
        f"(1, 1, 'first', repeat('l', {LARGE}), '2000-01-01', NULL), (2, 1, 'second', 'b', NULL, 1)"
    )
    with bench.start() as first:
        first.loaded()
        bench.sql(
            f"{zero} USE {db}; INSERT INTO person (mail, ssn, born, phone, note, n) VALUES "
            "('hidden-mail', 'hidden-ssn', 0, 'hidden-tel', 'hidden-note', 7), "
            "('hidden-mail3', '', '2001-01-01', '', '', 1);"
            "UPDATE person SET phone = 'hidden-tel1', ssn = 'hidden-ssn2' WHERE id = 1;"
            "DELETE FROM person WHERE id = 2;"
            "UPDATE account SET mail = 'hidden-mail9' WHERE v = 2; DELETE FROM account WHERE v = 1;"
            "ALTER TABLE person ADD ssn2 VARCHAR(20) DEFAULT 'hidden-ssn', ADD INDEX (ssn2), ADD late INT DEFAULT 4;"
            "ALTER TABLE person ADD after_ssn INT NOT NULL DEFAULT 5 AFTER ssn2;"
            "ALTER TABLE person MODIFY ssn2 VARCHAR(30);"
            "INSERT INTO person (ssn2, late, born) VALUES ('hidden-ssn', 6, 0);"
            "ALTER TABLE moved ADD v INT; INSERT INTO moved VALUES (2, 2); DELETE FROM moved WHERE id = 1;"
            f"INSERT INTO named (id, part, v, body) VALUES (3, 1, 'third', repeat('m', {LARGE}));"
            f"{';'.join(RENAMED)}; UPDATE named SET id = 4, body = 'c' WHERE v = 'second';"
            f"XA START 'x{db}'; INSERT INTO person (mail, ssn, note, born) VALUES ('hidden-mail4', 'hidden-ssn', "
            f"'hidden-note', 0); UPDATE named SET v = 'xa-value', text = 3 WHERE id = 1; XA END 'x{db}';"
            f"XA PREPARE 'x{db}'"
        )
        bench.sql(f"XA COMMIT 'x{db}'")
        until(lambda: everything_is_passed(bench))
        assert first.stop() == 0
    before = len(finished(fragments(bench.config)))
    with bench.start(THL_SOURCE__PIECE_BYTES="1") as second:  # each row is a piece: some have nothing left
        second.online()
        assert "not compared" not in second.text  # equal secrets have equal hashes
        try:
            bench.sql(
                f"SET GLOBAL binlog_row_metadata = MINIMAL; USE {db}; SET SESSION binlog_row_image = MINIMAL;"
                "UPDATE person SET ssn = 'hidden-ssn3' WHERE id > 1;"
                "UPDATE person SET ssn = 'hidden-ssn4', mail = 'hidden-mail5' WHERE id = 1;"
                "UPDATE named SET day = '2001-02-03', even = even + 1 WHERE id = 1;"
                "UPDATE named SET id = 5 WHERE id = 4;"
            )
        finally:
            bench.sql("SET GLOBAL binlog_row_metadata = FULL")
        until(lambda: everything_is_passed(bench))
        told = [sql for sql, *row in [*changes(bench, load=True), *changes(bench)] if not row]
        bench.sql(f"CREATE DATABASE {db}_copy")
        bench.mysql.run_sql(";".join(sql for sql in told if re.search(r"\bnamed\b", sql)), database=f"{db}_copy")
        assert shown_by_mysql(bench, f"{db}_copy") == [with_other_names(line) for line in shown_by_mysql(bench, db)]
        bench.sql(f"ALTER TABLE {db}.named ADD odd INT")
        assert second.ended() != 0
        assert "two columns would be published under the name even" in second.text
    assert len(finished(fragments(bench.config))) == before + 3  # nothing of the first was left
    for topic in (bench.config.topic, bench.config.prepared_topic, bench.config.control_topic):
        for value in messages(bench.config, topic):
            assert not [secret for secret in SECRETS if secret.encode() in value]
    apply(bench.config, Target.model_validate({"url": f"sqlite:///{tmp_path}/target.db"}))
    with sqlite3.connect(tmp_path / "target.db") as target:
        persons = target.execute(f'SELECT * FROM "{db}.person" ORDER BY id').fetchall()
        named = [column[1] for column in target.execute(f'PRAGMA table_info("{db}.person")')]
        moved = target.execute('SELECT * FROM "elsewhere.there"').fetchall()
        accounts = target.execute(f'SELECT * FROM "{db}.account"').fetchall()
        renamed = target.execute(f'SELECT * FROM "{db}.named" ORDER BY number')
        called = [column[0] for column in renamed.description]
        found = renamed.fetchall()
    target.close()
    assert named == ["id", "mail", "born", "phone", "note", "n", "after_ssn", "late"]
    mail, mail4, mail5 = (hashed(text, 32) for text in ("hidden-mail", "hidden-mail4", "hidden-mail5"))
    assert persons == [
        (1, mail5, None, "hid", "***", None, 5, 4),
        (3, mail, None, "hid", "***", None, 5, 4),
        (4, hashed("hidden-mail3", 32), "2001-01-01", "", "***", None, 5, 4),
        (5, None, None, None, "***", None, 5, 6),
        (6, mail4, None, None, "***", None, 5, 4),
    ]
    assert moved == [(2, 2)]
    assert accounts == [(hashed("hidden-mail9", 40), 2)]
    assert called == ["even", "number", "text", "part", "the `value`", "Day of", "body", "computed", "extra", "text2"]
    assert found == [
        (8, 1, "l" * LARGE, 1, "xa-", "2001-02-03", 3, 2, None, 5),
        (7, 3, "m" * LARGE, 1, "thi", None, None, 4, None, 5),
        (7, 5, "c", 1, "sec", None, 1, 6, None, 5),
    ]
    parts = [change for part in fragments(bench.config) for change in part["changes"] if "size" in change]
    assert len({change["size"] for change in parts}) == 3 < len(parts)  # of the load, the stream and what was prepared
