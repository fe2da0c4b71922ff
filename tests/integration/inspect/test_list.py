"""`thl list` against a real broker: aborted transactions, given up events, several partitions."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from connector.cli import run as thl
from connector.inspect.thl_events import attempts
from connector.inspect.thl_events.choice import Choice
from connector.inspect.thl_events.log import LogList
from connector.inspect.thl_events.partitions import Partitions
from connector.kafka.log_reader import LogReader
from connector.log.transaction.load import Part
from tests.support.fragments import change, encoded, in_parts, load_record, record, statement
from tests.support.log_topic import Log, a_fragment
from tests.support.servers.environment import Broker


@pytest.fixture(scope="module")
def log(kafka_broker: Broker) -> Log:
    """Events 0, 1, 3 in partition 0, 2 in partition 1; 3 was begun, given up and given again; 4 is not finished."""
    log = Log(kafka_broker)
    log.transaction((0, a_fragment(0, kind="epoch")), (1, a_fragment(0, kind="epoch")))
    log.transaction((0, a_fragment(0)), (0, a_fragment(1, last=False)), (0, a_fragment(1, 1)))
    log.transaction((0, a_fragment(2, epoch=1)), abort=True)
    log.transaction((1, a_fragment(2)), (0, a_fragment(3, last=False)))
    log.transaction((0, a_fragment(3, kind="epoch", epoch=2)), (1, a_fragment(3, kind="epoch", epoch=2)))
    log.transaction((0, a_fragment(3, epoch=2)), (1, a_fragment(4, last=False, epoch=2)))
    return log


def listed(log: Log, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert thl(["list", *log.arguments, *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def statements(lines: list[str]) -> list[str]:
    return [line.partition(" = ")[2].removesuffix(SERVICE) for line in lines if line.startswith("- SQL")]


SERVICE = " /* ___SERVICE___ = [x] */"
ALL = ["statement 0.0 of 1", "statement 1.0 of 1", "statement 1.1 of 1", "statement 2.0 of 1", "statement 3.0 of 2"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ALL),
        (["-low", "1", "-high", "2"], ALL[1:4]),
        (["-from", "1", "-to", "2"], ALL[1:4]),
        (["-from", "1970-01-01T00:00:00.000001Z", "-to", "1970-01-01T01:00:00.000002+01:00"], ALL[1:4]),
        (["-from", "1970-01-01T05:30:00.000003", "-timezone", "Asia/Kolkata"], ALL[4:]),
        (["-seqno", "1"], ALL[1:3]),
        (["-event", "b.1:1"], ALL[1:3]),
        (["-event", "b.1:0000000000000002;0"], ALL[3:4]),
        (["-gtid", "U:3"], ALL[4:]),
        (["-first"], ALL[:1]),
        (["-first", "2"], ALL[:3]),
        (["-last"], ALL[4:]),
        (["-last", "2"], ALL[3:]),
        (["-low", "9"], []),
        (["--voided"], [*ALL[:4], "statement 3.0 of 1", ALL[4], "statement 4.0 of 2"]),
        (["--voided", "-seqno", "3"], ["statement 3.0 of 1", ALL[4]]),
        (["--voided", "-last"], ["statement 3.0 of 1", ALL[4], "statement 4.0 of 2"]),
    ],
)
def test_a_choice_lists_its_events(
    log: Log, capsys: pytest.CaptureFixture[str], arguments: list[str], found: list[str]
) -> None:
    assert statements(listed(log, capsys, *arguments)) == found


def test_an_attempt_too_large_to_be_held_is_read_again(
    log: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "KEPT_BYTES", 0)
    assert statements(listed(log, capsys, "-first", "2")) == ALL[:3]


def test_one_event_is_listed_exactly(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(log, capsys, "-seqno", "2") == [
        "SEQ# = 2 / FRAG# = 0 (last frag)",
        f"- FILE = thl.{log.service}-1@2",
        "- TIME = 1970-01-01 00:00:00.000002",
        "- EPOCH# = 1",
        "- EVENTID = b.1:0000000000000002;0",
        "- SOURCEID = h:1",
        "- METADATA = [service=x]",
        "- TYPE = com.continuent.tungsten.replicator.event.ReplDBMSEvent",
        "- SCHEMA = s",
        f"- SQL(0) = statement 2.0 of 1{SERVICE}",
    ]


def test_json_has_one_object_per_line(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    found = [json.loads(line) for line in listed(log, capsys, "--format", "json", "-headers", "--voided")]
    assert [(one["seqno"], one["fragno"], one.get("voided", False)) for one in found] == [
        (0, 0, False), (1, 0, False), (1, 1, False), (2, 0, False), (3, 0, True), (3, 0, False), (4, 0, True),
    ]  # fmt: skip


def test_avro_output_is_a_container_file(log: Log, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert thl(["list", *log.arguments, "--format", "avro", "-low", "1"]) == 0
    found: list[Any] = list(fastavro.reader(io.BytesIO(capfdbinary.readouterr().out)))
    assert [one["changes"][0]["sql"] for one in found] == ALL[1:]


@pytest.mark.parametrize(
    ("arguments", "code", "fact"),
    [
        (["-seqno", "9"], 2, "[seqno=9]"),
        (["-event", "b.1:0000000000000009"], 2, "seqno 3 (b.1:0000000000000003;0)"),
        (["-gtid", "u:9"], 2, "[gtid=u:9]"),
        (["-seqno", "1", "-last"], 2, "--seqno, --last"),
        (["-low", "3", "-high", "2"], 2, "3"),
        (["-from", "yesterday"], 2, "yesterday"),
        (["-timezone", "Nowhere/At_All"], 2, "Nowhere/At_All"),
        (["-headers", "-sizes"], 2, "--sizes"),
        (["-sql", "-sizes"], 2, "--format sql has no --sizes"),
        (["-json", "-hex"], 2, "--format json has no --hex"),
        (["-headers", "-charset", "latin1"], 2, "--charset"),
        (["-charset", "base64"], 2, "base64"),
        (["-charset", "klingon"], 2, "klingon"),
        (["--exclude-column", "a.b"], 2, "SCHEMA.TABLE.COLUMN"),
        (["--exclude-column", "a.b.c"], 2, "--format tungsten has no --exclude-column"),
        (["--format", "avro", "-headers"], 2, "--headers"),
    ],
)
def test_wrong_options_are_refused(
    log: Log, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, fact: str
) -> None:
    assert thl(["list", *log.arguments, *arguments]) == code
    assert fact in " ".join(capsys.readouterr().err.split())


def test_a_missing_log_is_refused(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["list", "--set", "service=nothing", "--set", f"kafka.bootstrap={kafka_broker.bootstrap}"]
    assert thl(arguments) == 2
    assert "service=nothing" in capsys.readouterr().err


def test_a_fragment_with_a_wrong_checksum_is_listed_only_without_checksums(
    kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log(kafka_broker, partitions=1)
    log.transaction((0, a_fragment(0, kind="epoch")), (0, a_fragment(0)))
    log.transaction((0, a_fragment(1)), flip=1)
    assert thl(["list", *log.arguments, "-low", "1"]) == 5
    assert f"{log.topic}-0@" in capsys.readouterr().err
    assert thl(["list", *log.arguments, "-low", "1", "-no-checksum", "-by", "5"]) == 0
    told = capsys.readouterr()
    assert statements(told.out.splitlines()) == ["statement 1.0 of 1"]
    assert "the checksum of a fragment is wrong" in told.err


def test_an_event_is_found_with_few_reads(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 events in transactions of 10, every fifth aborted and given again."""
    log = Log(kafka_broker, partitions=1)
    for ten in range(0, 1000, 10):
        messages = [(0, a_fragment(seqno)) for seqno in range(ten, ten + 10)]
        if ten % 50 == 0:
            log.transaction(*messages, abort=True)
        log.transaction(*messages)
    looks: list[int] = []
    look, messages_of, read = LogReader.first, Partitions.messages, 0

    def counted(self: LogReader, partition: int, offset: int, end: int) -> Any:
        looks.append(offset)
        return look(self, partition, offset, end)

    def counting(self: Partitions, *where: int) -> Any:
        nonlocal read
        for message in messages_of(self, *where):
            read += 1
            yield message

    monkeypatch.setattr(LogReader, "first", counted)
    monkeypatch.setattr(Partitions, "messages", counting)
    found = list(LogList(log.config).events(Choice(low=617, high=617)))
    assert [one.fragment["seqno"] for one in found] == [617]
    assert len(looks) <= 2 * (1000 + 200 + 120).bit_length()
    assert read == 1


@pytest.mark.parametrize("held", [1 << 20, 1])
def test_a_change_in_parts_is_shown_where_its_last_part_is(
    kafka_broker: Broker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(attempts, "KEPT_BYTES", held)
    log = Log(kafka_broker, partitions=1)
    parts = [[part] for part in in_parts(change("insert", [(None, [1, "a"]), (None, [2, "b"])]), 3)]
    event = [a_fragment(0, n, last=n == 2, changes=part) for n, part in enumerate(parts)]
    log.transaction((0, a_fragment(0, kind="epoch")), *((0, one) for one in event[:2]))
    log.transaction((0, a_fragment(0, kind="epoch")), *((0, one) for one in event))
    shown = [json.loads(line) for line in listed(log, capsys, "--voided", "--format", "json")]
    assert [(one.get("voided", False), len(one["changes"])) for one in shown][:2] == [(True, 0), (True, 0)]
    assert [len(one["changes"]) for one in shown][2:] == [0, 0, 1]
    assert [row["after"] for row in shown[-1]["changes"][0]["rows"]] == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    deleted = TopicPartition(log.topic, 0, shown_offset(shown[2]) + 1)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    for done in admin.delete_records([deleted]).values():
        done.result(30)
    rest = [json.loads(line) for line in listed(log, capsys, "--voided", "--format", "json")]
    assert [(one["fragno"], one["changes"]) for one in rest] == [(1, []), (2, [])]


def shown_offset(one: dict[str, Any]) -> int:
    return int(one["file"].rpartition("@")[2])


def test_load_is_printed_by_every_command(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(kafka_broker, partitions=1)
    read = change("read", [(None, [1, "a"])])
    loaded = [
        load_record(1, [statement("CREATE TABLE orders (id INT)")], part=Part.BEGIN, shard="#UNKNOWN"),
        load_record(2, [read], last_barrier=1),
        load_record(3, part=Part.END, shard="#UNKNOWN", last_barrier=1),
    ]
    log.transaction((0, a_fragment(0, kind="epoch")), (0, a_fragment(0)))
    log.transaction(*((0, encoded(one)) for one in loaded))
    log.transaction((0, encoded(record(4, [statement("x")], last_barrier=3))))
    for arguments in (["list"], ["tail", "--last", "9", "--to-seqno", "4"]):
        assert thl([*arguments, *log.arguments, "--format", "json"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [one["kind"] for one in found] == ["transaction", "load", "load", "load", "transaction"]
        assert [one["metadata"].get("load_part") for one in found] == [None, "begin", "rows", "end", None]
        assert found[2]["changes"][0]["action"] == "READ"
    assert "REPLACE INTO `shop`.`orders` (`id`, `v`) VALUES" in listed(log, capsys, "--seqno", "2", "--format", "sql")
    assert "load_part=rows" in next(
        line for line in listed(log, capsys, "--event", "binlog.000001:1002") if "METADATA" in line
    )
    assert thl(["index", *log.arguments]) == 0
    assert f"LogIndexEntry {log.topic}-0@0(0:4) epoch 1" in capsys.readouterr().out
    assert thl(["info", *log.arguments]) == 0
    assert "events = 5\n" in capsys.readouterr().out
