"""Opens the log on Kafka for a claimed target: `thl apply` does it, and the commands that finish an intent first."""

from __future__ import annotations

import logging
from typing import Final

from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.quarantine import Quarantine
from connector.applier.skips import Skips
from connector.applier.stop_condition import StopCondition
from connector.clock import Clock
from connector.config.model import Config
from connector.kafka.handshake import Agreement
from connector.kafka.large_messages import LargeMessages
from connector.kafka.range_reader import RangeReader
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import Intent, TargetPosition
from connector.relay.event_store import EventStore
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)


def open_core(
    config: Config,
    target: TargetDatabase,
    position: TargetPosition,
    agreed: Agreement,
    *,
    large: LargeMessages,
    ranges: RangeReader,
    clock: Clock,
    until: StopCondition | None = None,
    skips: Skips | None = None,
    relay: EventStore | None = None,
    quarantine: Quarantine | None = None,
) -> ApplyCore:
    """Return the core that continues after a position on the log of Kafka.

    Args:
        config: names the log and the target's ID, and has its metadata columns.
        target: the claimed target.
        position: its position, which the handshake has verified.
        agreed: the result of the handshake.
        large, ranges: read from the topic what Spark does not.
        clock, until, skips, relay, quarantine: as those of `ApplyCore`.
    """
    return ApplyCore(
        target,
        position,
        EventSequencer[Message, Messages | Segment](
            topic=config.topic, partitions=agreed.partitions, position=position, history=agreed.history
        ),
        PartitionBuffers(
            config.topic, large, ranges, config.target.id, executes_statements=config.target.executes_statements
        ),
        log_id=agreed.history.log_id,
        gtid_set=agreed.gtid_set,
        topic=config.topic,
        clock=clock,
        until=until,
        skips=skips,
        columns=metadata_columns(config.target.metadata_columns.items()),
        history=history_tables(config.target.history),
        relay=relay,
        quarantine=quarantine,
    )


def warn_of_intent(service: str, intent: Intent) -> None:
    """Log that an intent is finished, and nothing else done before: all options count afterwards."""
    fields = {"seqno": intent.span, "writers": intent.writers, "committed": sorted(intent.committed)}
    LOG.warning(
        "an applier ended within a commit of several writers: finishing it", extra={"service": service, **fields}
    )
