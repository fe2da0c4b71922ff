"""Finishes, without Spark, a commit of several writers that an earlier applier left.

`thl apply` does it with what Spark reads; the commands that claim a target for something else do it here, before that.
"""

from __future__ import annotations

from contextlib import closing

from connector.applier.opening import open_core, warn_of_intent
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.arrow_reader import ArrowReader
from connector.kafka.handshake import handshake
from connector.kafka.large_messages import LargeMessages
from connector.kafka.range_reader import RangeReader
from connector.log.transaction.position import TargetPosition
from connector.targets.target import TargetDatabase


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
    warn_of_intent(config.service, intent)
    agreed = handshake(config, position)
    topic = config.topic
    with (
        LargeMessages(config.kafka, topic) as large,
        closing(RangeReader(config.kafka, topic, clock)) as ranges,
        ArrowReader(config.kafka, topic, agreed.start_offsets) as log,
    ):
        core = open_core(config, target, position, agreed, large=large, ranges=ranges, clock=clock)
        while not core.done:
            batch = log.next()
            if batch is None:
                raise LogDamaged(
                    "the log ends within a commit of which the target has a part",
                    hint="load the target again",
                    service=config.service,
                    seqno=intent.span,
                )
            core.accept(batch.to_batches())
    return core.position
