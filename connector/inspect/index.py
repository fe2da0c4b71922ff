"""Describes the log for `thl index`: ranges of offsets in place of Tungsten's files.

An entry ends where an epoch begins, or after about a given number of offsets; like one of Tungsten's files it holds
whole events. Only a few messages at its ends are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from connector.config.model import Config
from connector.inspect.formats.tungsten import time_of
from connector.inspect.thl_events.attempts import Attempt
from connector.inspect.thl_events.log import LogList
from connector.inspect.thl_events.partitions import Partitions
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import read_tails
from connector.log.ids import Epoch, Seqno


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Whole events that follow each other in a partition.

    Args:
        topic, partition: topic and partition of the events.
        start, end: the first offset, and the one after the last.
        first, last: seqnos of its finished events; other partitions may hold some between them.
        epoch: epoch of the events.
        commit_time: commit time of the first event, µs since 1970 UTC.
    """

    topic: str
    partition: int
    start: int
    end: int
    first: Seqno
    last: Seqno
    epoch: Epoch
    commit_time: int


def index_entries(config: Config, every: int) -> Iterator[IndexEntry]:
    """The entries of each partition, in order.

    Args:
        config: the service and its brokers.
        every: offsets of an entry, about.

    Raises:
        BrokerUnavailable: the brokers do not answer.
        ConfigError: there is no such log.
        LogDamaged: a message is not a fragment; or, after the entries, a partition has lost its end.
    """
    lost = read_tails(config).lost
    partitions, log = Partitions(config), LogList(config)
    bounds = partitions.bounds()
    with LogReader(config, point_lookup=True) as reader:
        epochs = {record.first_seqno for record in reader.control().epochs}
        for partition, (start, end) in bounds.items():
            of_epochs = {reader.offset_of(partition, seqno, (start, end)) for seqno in epochs}
            chosen = [cut for cut in {*range(start, end, every), *of_epochs} if cut < end]
            cuts = sorted({*(partitions.beginning(reader, partition, cut, end) for cut in chosen), end})
            yield from _between(log, reader, partition, cuts)
    if lost is not None:
        raise lost


def _between(log: LogList, reader: LogReader, partition: int, cuts: list[int]) -> Iterator[IndexEntry]:
    """The entries between the cuts; a part without a whole event belongs to the entry before it."""
    found: list[tuple[int, Attempt]] = []
    for cut, following in pairwise(cuts):
        attempt = log.first_whole(reader, partition, cut, following)
        if attempt is not None:
            found.append((cut, attempt))
    for number, (cut, attempt) in enumerate(found):
        following = found[number + 1][0] if number + 1 < len(found) else cuts[-1]
        newest = log.last_ending(reader, partition, cut, following)
        if newest is not None and attempt.ending is not None:
            yield IndexEntry(
                log.topic,
                partition,
                cut,
                following,
                attempt.seqno,
                Seqno(newest["seqno"]),
                attempt.epoch,
                attempt.ending["commit_time"],
            )


def as_line(entry: IndexEntry) -> str:
    """A line as Tungsten prints a file: its name, here topic-partition@offset, and seqnos; then epoch and time."""
    name = f"{entry.topic}-{entry.partition}@{entry.start}"
    return f"LogIndexEntry {name}({entry.first}:{entry.last}) epoch {entry.epoch} from {time_of(entry.commit_time)}"


def as_object(entry: IndexEntry) -> dict[str, object]:
    """The entry for JSON."""
    return {
        "file": f"{entry.topic}-{entry.partition}@{entry.start}",
        "partition": entry.partition,
        "start": entry.start,
        "end": entry.end,
        "firstSeqno": entry.first,
        "lastSeqno": entry.last,
        "epoch": entry.epoch,
        "time": time_of(entry.commit_time),
    }
