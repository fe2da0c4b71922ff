"""The epochs that a producer's process has begun: it must neither fence a newer producer nor continue another log."""

from __future__ import annotations

from dataclasses import dataclass, field

from connector.config.model import Config
from connector.errors import Fenced, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.ids import LogId


@dataclass(slots=True)
class EpochOwnership:
    """The epochs of one process, however often it goes online.

    Args:
        epochs: those that it has begun, or tried to. A newer epoch is another producer's.
        log_id: the log's, once it has an epoch of this process.
    """

    epochs: list[EpochRecord] = field(default_factory=list)
    log_id: LogId | None = None

    def verify(self, config: Config) -> None:
        """Verify that the log is still this process's, before a producer is fenced or a topic created.

        Raises:
            Fenced: a newer producer has gone online in the log.
            LogDamaged: the log was deleted or re-created.
            BrokerUnavailable: the brokers do not answer.
        """
        if not self.epochs:
            return
        # Up to the high watermark: otherwise a commit of a newer producer may be invisible yet, and it would be fenced.
        with LogReader(config, high_watermark=True) as reader:
            known = reader.partitions(config.control_topic)
            control = reader.control() if known else ControlState(None, None, ())
        found = control.log.log_id if control.log else None
        if self.log_id is not None and found != self.log_id:
            raise LogDamaged(
                "the log of this producer was deleted or re-created, or the brokers are others",
                hint="point kafka.bootstrap to the brokers that have it. If it is lost, start the producer again: it "
                "begins a new log, and every target must be filled again from empty",
                service=config.service,
                topic=config.topic,
                log_id=self.log_id,
                found=found or "no log",
                epoch=self.epochs[-1].epoch,
            )
        newest = control.epochs[-1] if control.epochs else None
        if newest is not None and newest not in self.epochs:
            raise Fenced(
                "a newer producer of this service has taken over while this one had lost the brokers",
                hint="only one producer of a service may run",
                service=config.service,
                epoch=newest.epoch,
                source_id=newest.source_id,
            )
