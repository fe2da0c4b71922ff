"""An ordinary Avro consumer: finished transactions of one log, in order, with nothing from our package.

`python consumer_example.py BOOTSTRAP TOPIC FRAGMENT.AVSC`: a JSON line an event, until the log's end. One partition.
"""

import io
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, TopicPartition


def finished_events(bootstrap: str, topic: str, schema: Any) -> Iterator[list[dict[str, Any]]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "example", "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    unfinished: list[dict[str, Any]] = []
    while (message := consumer.poll(30)) is not None:
        if message.error():
            if message.error().code() == KafkaError._PARTITION_EOF:
                break
            raise RuntimeError(message.error())
        body = message.value()[10:]  # after the single-object header: C3 01 and the schema's fingerprint
        fragment = fastavro.schemaless_reader(io.BytesIO(body), schema)
        assert int.from_bytes(fragment["crc32"], "big") == zlib.crc32(body[:-4])
        if fragment["fragno"] == 0:  # an event begins, or begins again: what was unfinished has been given up
            unfinished = []
        if fragment["kind"] != "epoch":
            unfinished.append(fragment)
            if fragment["last_frag"]:
                yield unfinished
    consumer.close()


if __name__ == "__main__":
    parsed = fastavro.parse_schema(json.loads(Path(sys.argv[3]).read_text()))
    for event in finished_events(sys.argv[1], sys.argv[2], parsed):
        changes = [change for fragment in event for change in fragment["changes"]]
        print(json.dumps({"seqno": event[0]["seqno"], "epoch": event[0]["epoch"], "changes": changes}, default=repr))
