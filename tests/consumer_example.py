"""An ordinary Avro consumer: finished transactions of one log, in order, without any code of this package.

`python consumer_example.py BOOTSTRAP TOPIC FRAGMENT.AVSC`: a JSON line an event, until the log's end.
"""

import heapq
import io
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, TopicPartition


def finished_events(consumer: Consumer, topic: str, partition: int, schema: Any) -> Iterator[list[dict[str, Any]]]:
    consumer.assign([TopicPartition(topic, partition, 0)])
    unfinished: list[dict[str, Any]] = []
    previous = -1
    while (message := consumer.poll(30)) is not None:
        if message.error():
            if message.error().code() == KafkaError._PARTITION_EOF:
                break
            raise RuntimeError(message.error())
        value = message.value()  # C3 01 and the schema's fingerprint, or 00 and its number in the registry, then Avro
        body = value[5:] if value[0] == 0 else value[10:]
        fragment = fastavro.schemaless_reader(io.BytesIO(body), schema)
        assert int.from_bytes(fragment["crc32"], "big") == zlib.crc32(body[:-4])
        if fragment["fragno"] == 0:  # an event begins, or begins again: what was unfinished has been given up
            unfinished = []
        assert (fragment["fragno"], fragment["prev_seqno"]) == (len(unfinished), previous), "something is missing"
        if fragment["kind"] != "epoch":
            unfinished.append(fragment)
            if fragment["last_frag"]:
                yield unfinished
                unfinished, previous = [], fragment["seqno"]
    consumer.close()


def changes(event: list[dict[str, Any]], schema: Any) -> Iterator[dict[str, Any]]:
    parts = b""  # of a change that was too large for a message
    for fragment in event:
        for change in fragment["changes"]:
            if "data" not in change:
                yield change
                continue
            assert change["start"] == len(parts), "something is missing"
            parts += change["data"]
            if len(parts) == change["size"]:
                yield fastavro.schemaless_reader(io.BytesIO(parts), schema)
                parts = b""


if __name__ == "__main__":
    bootstrap, topic = sys.argv[1:3]
    schema = json.loads(Path(sys.argv[3]).read_text())
    parsed = fastavro.parse_schema(schema)
    one_change = fastavro.parse_schema(next(f["type"]["items"] for f in schema["fields"] if f["name"] == "changes"))
    settings = {"bootstrap.servers": bootstrap, "group.id": "example", "isolation.level": "read_committed"}
    settings |= {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error"}
    partitions = Consumer(settings).list_topics(topic, 30).topics[topic].partitions
    each = [finished_events(Consumer(settings), topic, partition, parsed) for partition in partitions]
    for seqno, event in enumerate(heapq.merge(*each, key=lambda event: event[0]["seqno"])):
        assert event[0]["seqno"] == seqno, f"event {seqno} is missing"
        told = {"seqno": seqno, "epoch": event[0]["epoch"], "changes": [*changes(event, one_change)]}
        print(json.dumps(told, default=bytes.hex))
