"""The public consumer of a relay's events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from connector.consume.decoding import MessageDecoder
from connector.consume.event import Event
from connector.consume.fragments import Fragments
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import ConfigError, HistoriesDiffer
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, Seqno
from connector.relay.reader import RelayReader, TrappedEvents

EVENT_BYTES: Final = 8 << 20


class RelayConsumer:
    """Whole transactions of a relay's folder, in order, each once, to the last one that is there. Needs no Kafka.

    ```python
    for event in RelayConsumer("/var/lib/thl/relay", start=Start.oldest()):
        for change in event.changes:
            ...
    ```

    A missing event, or a wrong byte, is a `LogDamaged`, raised after all events before it. Positions are the same as a
    `Consumer`'s: each can continue where the other ended.

    Args:
        folder: the relay, `relay.dir` of an applier, which may write to it meanwhile.
        start: `Start.beginning()`, `Start.oldest()`, `Start.seqno(n)`, or a position. Default: the beginning.
        schemas: further versions of fragment.avsc, as parsed JSON, that the log's producers have used.
        event_bytes: bytes of an event in memory; a larger event is held in a temporary file.

    Raises:
        ConfigError: the folder has no relay, or the start cannot be found in one.
        HistoriesDiffer: the position belongs to another log, or to another history of it.
        LogDamaged: the files are of several logs, or one is damaged at its beginning or before the start. What is
            missing or damaged after the start is raised by the iteration.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        start: Start | ConsumerPosition | None = None,
        schemas: Iterable[dict[str, Any]] = (),
        event_bytes: int = EVENT_BYTES,
    ) -> None:
        self._relay = RelayReader(Path(folder))
        self._topic = f"relay.{self._relay.service}"
        self._decoder = MessageDecoder(self._topic, schemas)
        self._event_bytes = event_bytes
        self.position = self._begin(start or Start.beginning())
        self._events = self._read()

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        """The next event."""
        return next(self._events)

    def _begin(self, start: Start | ConsumerPosition) -> ConsumerPosition:
        if isinstance(start, ConsumerPosition):
            return self._open_relay(start)
        match start.at:
            case "beginning":
                seqno = NO_SEQNO
            case "oldest":
                seqno = Seqno(self._relay.oldest - 1)
            case "seqno":
                seqno = Seqno(start.number - 1)
            case _:
                raise ConfigError(
                    "a relay is read from its beginning, its oldest event, a seqno or a position", start=start.at
                )
        epoch = self._relay.epoch_of(seqno) if seqno != NO_SEQNO else None
        return ConsumerPosition(
            service=self._relay.service, log_id=self._relay.log_id, seqno=seqno, epoch=epoch or Epoch(NO_EPOCH)
        )

    def _open_relay(self, position: ConsumerPosition) -> ConsumerPosition:
        if position.shards is not None:
            raise ConfigError("a relay has no shards: the position belongs to a reader of some", shards=position.shards)
        epoch = None if position.seqno == NO_SEQNO else self._relay.epoch_of(position.seqno)
        if position.log_id not in ("", self._relay.log_id) or epoch not in (None, position.epoch):
            raise HistoriesDiffer(
                "the position is not on the history of the relay's log",
                relay_log_id=self._relay.log_id,
                log_id=position.log_id,
                seqno=position.seqno,
                relay_epoch=epoch,
                epoch=position.epoch,
            )
        return position

    def _read(self) -> Iterator[Event]:
        offsets = dict(self.position.offsets)
        for found in self._relay.events(Seqno(self.position.seqno + 1)):
            if isinstance(found, TrappedEvents):
                continue
            last = found.last
            fragments = Fragments(last.partition, found.first.offset, self._event_bytes)
            for stored in self._relay.of_event(found):
                fragments.add(stored.fragment.value, stored.fragment.offset)
            offsets[last.partition] = last.offset + 1
            self.position = ConsumerPosition(
                service=self._relay.service,
                log_id=self._relay.log_id,
                seqno=last.seqno,
                epoch=last.epoch,
                offsets=dict(offsets),
            )
            header = self._decoder.header(last.value, f"{self._topic}-{last.partition}@{last.offset}")
            yield Event(header, self.position, self._topic, fragments, self._decoder)
