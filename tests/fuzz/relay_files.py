"""Files of a relay with damage and right checksums, through every reader of a relay."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Final

from pydantic import SecretStr

from connector.applier.from_relay import RelayApplier
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.consume import RelayConsumer
from connector.errors import ConnectorError
from connector.inspect.relay import relay_entries, relay_events
from connector.inspect.thl_events.choice import Choice
from connector.log.ids import Epoch, Seqno
from connector.relay.folder import Owner
from connector.relay.frames import FILE, FileHead, file_head_record, trapped_record
from connector.relay.purge import Purge
from connector.relay.reader import RelayReader, TrappedEvents
from connector.relay.record import add_record, framed
from connector.relay.writer import RelayWriter
from tests.fuzz.messages import LOG_ID, NUMBERS, changed, damaged, replaced, resealed
from tests.support import fragments as made
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import history

NAME: Final = "thl.data.{:010}"
COLUMNS: Final = [made.column("id"), made.column("v", "longtext") | {"charset": "utf8mb4"}]
CHECKSUM: Final = 5  # bytes of a record's checksum and its method
Files = list[list[bytes]]


def relay_seeds() -> list[Files]:
    """The records of each file: one file; two, with an event of several fragments, one that is passed over and DDL."""
    rows, other, *parts = (
        made.change("insert", [(None, [number, "a"])]) | {"columns": COLUMNS} for number in range(1, 6)
    )
    create = made.statement("CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v LONGTEXT)")
    first = [made.record(0, [create], kind="ddl", shard="#UNKNOWN"), made.record(1, [rows])]
    large = [made.record(4, [parts[n]], fragno=n, last_frag=n == 2, rows=n + 1) for n in range(3)]
    last = made.record(5, [other], epoch=2)
    heads = [file_head_record(FileHead(LOG_ID, "shop", Seqno(n), Epoch(int(n > 0)), n > 0, None)) for n in (-1, 1)]
    return [
        [[heads[0], *map(_stored, first)]],
        [
            [heads[0], *map(_stored, first)],
            [heads[1], trapped_record(Seqno(2), Seqno(3)), *map(_stored, large), _stored(last)],
        ],
    ]


def changed_files(files: Files, draw: random.Random) -> list[bytes]:
    """Return the files with damage to records, to their order, or to a file's end."""
    found = [list(records) for records in files]
    for _ in range(draw.choice((1, 1, 2))):
        records = draw.choice(found)
        at = draw.randrange(len(records))
        match draw.randrange(6):
            case 0:
                records.insert(at, records[draw.randrange(len(records))])
            case 1 if len(records) > 1:
                del records[at]
            case 2:
                draw.shuffle(records)
            case 3:
                records[at] = resealed(damaged(records[at][:-CHECKSUM], records[0], draw) + b"\1")
            case _ if records[at] in files[0] or records[at] in files[-1]:  # not damaged yet
                records[at] = _changed(records[at], draw)
    contents = [b"".join(records) for records in found]
    if draw.random() < 0.2:
        contents[-1] = contents[-1][: draw.randrange(len(contents[-1]) + 1)]
    return contents


def read_relay(contents: list[bytes]) -> Iterator[ConnectorError]:
    """Read a relay with each reader, then begin to write after it; return the errors."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "relay")
        folder.mkdir(mode=0o700)
        for number, content in enumerate(contents, 1):
            (folder / NAME.format(number)).write_bytes(content)
        for reader in (_events, _listed, _unchecked, _indexed, _consumed, _applied, _purged, _begun):
            try:
                reader(folder)
            except ConnectorError as error:
                yield error


def _events(folder: Path) -> object:
    relay = RelayReader(folder)
    whole = [one for one in relay.events(relay.oldest) if not isinstance(one, TrappedEvents)]
    assert all(before.last.seqno < after.last.seqno for before, after in pairwise(whole))
    return [relay.newest, [relay.epoch_of(one.last.seqno) for one in whole], list(relay.fragments(relay.oldest))]


def _listed(folder: Path) -> object:
    return list(relay_events(folder, "thl.shop", Choice()))


def _unchecked(folder: Path) -> object:
    return list(relay_events(folder, "thl.shop", Choice(), checksums=False))


def _indexed(folder: Path) -> object:
    return [(one.as_line(), one.as_object()) for one in relay_entries(folder)]


def _consumed(folder: Path) -> object:
    return [list(map(str, event.changes)) for event in RelayConsumer(folder)]


def _applied(folder: Path) -> object:
    url = SecretStr(f"sqlite:///{folder.with_name('t.db')}")
    config = Config(service="shop", target=Target(url=url))
    return RelayApplier(config, folder, SystemClock(), Event()).run()


def _purged(folder: Path) -> object:
    with Purge(folder, SystemClock()) as purge:
        return [[one.text for one in purge.deletions(low, None, None)] for low in (None, Seqno(1), Seqno(4))]


def _begun(folder: Path) -> None:
    """Start an applier; what it leaves is read to its end without an error."""
    target = MemoryTarget()
    writer = RelayWriter(folder, max_file_bytes=1000, retention=1e9, clock=SystemClock())
    try:
        writer.begin(target.claim("shop"), history([0, 3], 9), None, Owner(1))
    finally:
        writer.close()
    if any(folder.glob("thl.data.*")):
        relay = RelayReader(folder)
        list(relay.events(relay.oldest))


def _stored(fields: dict[str, object]) -> bytes:
    (message,) = made.scanned([made.encoded(fields)])
    record = bytearray()
    add_record(record, message)
    return bytes(record)


def _changed(record: bytes, draw: random.Random) -> bytes:
    """Return a record with other values in its header or its message, and right lengths and checksums."""
    kind, head_size = record[4], int.from_bytes(record[5:9], "big")
    head, data = record[9 : 9 + head_size], record[13 + head_size : -CHECKSUM]
    if kind == FILE:
        head = replaced(head, draw) if draw.random() < 0.8 else json.dumps(draw.choice([[], {}, 7, "x"])).encode()
    elif data and draw.random() < 0.4:
        data = changed(data, data, draw)
    elif head:
        at = draw.randrange(len(head))
        head = head[:at] + bytes([draw.choice(NUMBERS)]) + head[at + 1 :]
    if draw.random() < 0.05:
        kind = draw.randrange(256)
    return framed(kind, head, data)
