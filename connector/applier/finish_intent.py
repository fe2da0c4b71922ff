"""Finishes, without Spark, a commit of several writers that an earlier applier left.

`thl apply` does it with what Spark reads; the commands that claim a target for something else do it here, before that.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Final

from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.arrow_reader import ArrowReader
from connector.kafka.handshake import handshake
from connector.kafka.large_messages import LargeMessages
from connector.kafka.range_reader import RangeReader
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import TargetPosition
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)

EARLIEST: Final = -2  # librdkafka's number for a partition's first offset


def finish_intent(config: Config, target: TargetDatabase, position: TargetPosition, clock: Clock) -> TargetPosition:
    """Apply the rest of a target's open intent.

    Args:
        config: names the log.
        target: the claimed target.
        position: the target's position, which the claim returned.
        clock: the clock for latencies.

    Returns:
        The position after the intent; the same one if there is none.

    Raises:
        HistoriesDiffer: the log goes on without events of the intent, or is another one.
        LogDamaged: the log no longer has its events, or others in their place.
        TargetDiffers, TargetUnavailable, BrokerUnavailable: as in `thl apply`.
    """
    intent = position.intent
    if intent is None:
        return position
    fields = {"service": config.service, "seqno": intent.span}
    LOG.warning("an applier ended within a commit of several writers: finishing it", extra=fields)
    agreed = handshake(config, position)
    topic = config.topic
    offsets = {number: agreed.offsets.get(number, EARLIEST) for number in range(agreed.partitions)}
    with (
        LargeMessages(config.kafka, topic) as large,
        closing(RangeReader(config.kafka, topic, clock)) as ranges,
        ArrowReader(config.kafka, topic, offsets) as log,
    ):
        core = ApplyCore(
            target,
            position,
            EventSequencer[Message, Messages | Segment](
                topic=topic, partitions=agreed.partitions, position=position, history=agreed.history
            ),
            PartitionBuffers(topic, large, ranges),
            log_id=agreed.history.log_id,
            gtid_set=agreed.gtid_set,
            topic=topic,
            clock=clock,
            columns=metadata_columns(config.target.metadata_columns.items()),
        )
        while not core.done:
            batch = log.next()
            if batch is None:
                raise LogDamaged(
                    "the log ends within a commit of which the target has a part",
                    hint="load the target again",
                    **fields,
                )
            core.accept(batch.to_batches())
    return core.position
