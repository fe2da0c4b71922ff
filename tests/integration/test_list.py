"""`thl list` against a real broker: aborted transactions, given up events, several partitions."""

from __future__ import annotations

import io
import json
import uuid
import zlib
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connector.cli import run as thl
from connector.encode.schema import fragment_schema, single_object_header
from connector.sandbox.environment import Broker

SCHEMA = fastavro.parse_schema(fragment_schema())


def a_fragment(seqno: int, fragno: int = 0, *, last: bool = True, epoch: int = 1, kind: str = "transaction") -> bytes:
    fragment: dict[str, Any] = {
        "seqno": seqno, "fragno": fragno, "last_frag": last, "epoch": epoch, "kind": kind, "shard": "s",
        "prev_seqno": -1, "last_barrier": -1, "rows": 0, "source_id": "h:1", "server_id": 1, "thread_id": 0,
        "gtid": None, "last_committed": 0, "sequence_number": 0, "metadata": {"service": "x"},
        "event_id": f"b.1:{seqno:016};0" if last else None, "commit_time": seqno if last else None,
        "outcome": "commit" if last else None, "crc32": b"\0\0\0\0",
        "changes": [{"schema": "s", "sql": f"statement {seqno}.{fragno} of {epoch}", "options": {}}],
    }  # fmt: skip
    body = io.BytesIO()
    fastavro.schemaless_writer(body, SCHEMA, fragment)
    value = body.getvalue()[:-4]
    return single_object_header() + value + zlib.crc32(value).to_bytes(4, "big")


@pytest.fixture
def log(kafka_broker: Broker) -> tuple[str, Broker]:
    """Events 0, 1, 3 in partition 0, 2 in partition 1; 3 was begun, given up and given again; 4 is not finished."""
    service = f"list-{uuid.uuid4().hex[:8]}"
    topic = f"thl.{service}"
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": service})
    producer.init_transactions(30)

    def transaction(*messages: tuple[int, bytes], abort: bool = False) -> None:
        producer.begin_transaction()
        for partition, value in messages:
            producer.produce(topic, value, partition=partition)
        producer.abort_transaction(30) if abort else producer.commit_transaction(30)

    transaction((0, a_fragment(0, kind="epoch")), (1, a_fragment(0, kind="epoch")))
    transaction((0, a_fragment(0)), (0, a_fragment(1, last=False)), (0, a_fragment(1, 1)))
    transaction((0, a_fragment(2, epoch=1)), abort=True)
    transaction((1, a_fragment(2)), (0, a_fragment(3, last=False)))
    transaction((0, a_fragment(3, kind="epoch", epoch=2)), (1, a_fragment(3, kind="epoch", epoch=2)))
    transaction((0, a_fragment(3, epoch=2)), (1, a_fragment(4, last=False, epoch=2)))
    return service, kafka_broker


def listed(log: tuple[str, Broker], capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    service, broker = log
    where = ["--set", f"service={service}", "--set", f"kafka.bootstrap={broker.bootstrap}"]
    assert thl(["list", *where, *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def statements(lines: list[str]) -> list[str]:
    return [line.partition(" = ")[2] for line in lines if line.startswith("- SQL")]


ALL = ["statement 0.0 of 1", "statement 1.0 of 1", "statement 1.1 of 1", "statement 2.0 of 1", "statement 3.0 of 2"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ALL),
        (["-low", "1", "-high", "2"], ALL[1:4]),
        (["-seqno", "1"], ALL[1:3]),
        (["-first", "1"], ALL[:1]),
        (["-last", "2"], ALL[3:]),
        (["-low", "9"], []),
        (["--voided"], [*ALL[:4], "statement 3.0 of 1", ALL[4], "statement 4.0 of 2"]),
        (["--voided", "-seqno", "3"], ["statement 3.0 of 1", ALL[4]]),
    ],
)
def test_what_is_listed(
    log: tuple[str, Broker], capsys: pytest.CaptureFixture[str], arguments: list[str], found: list[str]
) -> None:
    assert statements(listed(log, capsys, *arguments)) == found


def test_one_event_is_listed_to_the_letter(log: tuple[str, Broker], capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(log, capsys, "-seqno", "2") == [
        "SEQ# = 2 / FRAG# = 0 (last frag)",
        f"- FILE = thl.{log[0]}-1@2",
        "- TIME = 1970-01-01 00:00:00.000002",
        "- EPOCH# = 1",
        "- EVENTID = b.1:0000000000000002;0",
        "- SOURCEID = h:1",
        "- METADATA = [service=x]",
        "- TYPE = com.continuent.tungsten.replicator.event.ReplDBMSEvent",
        "- SCHEMA = s",
        "- SQL(0) = statement 2.0 of 1",
    ]


def test_json_is_an_object_a_line(log: tuple[str, Broker], capsys: pytest.CaptureFixture[str]) -> None:
    found = [json.loads(line) for line in listed(log, capsys, "-json", "-headers", "--voided")]
    assert [(one["seqno"], one["fragno"], one.get("voided", False)) for one in found] == [
        (0, 0, False), (1, 0, False), (1, 1, False), (2, 0, False), (3, 0, True), (3, 0, False), (4, 0, True),
    ]  # fmt: skip


def test_a_log_that_is_not_there(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["list", "--set", "service=nothing", "--set", f"kafka.bootstrap={kafka_broker.bootstrap}"]
    assert thl(arguments) == 3
    assert "was `thl produce` started once?" in capsys.readouterr().err
