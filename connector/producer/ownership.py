"""The epochs that a producer's process began: it must neither fence a newer producer nor continue another log."""

from __future__ import annotations

from dataclasses import dataclass, field

from connector.config.model import Config
from connector.errors import Fenced, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.ids import LogId


@dataclass(slots=True)
class EpochOwnership:
    """The epochs of one process, over all its attempts to go online.

    Args:
        epochs: the epochs that it began or tried to begin. A newer epoch is another producer's.
        log_id: the ID of the log, once it has an epoch of this process; None before.
    """

    epochs: list[EpochRecord] = field(default_factory=list)
    log_id: LogId | None = None

    def verify(self, config: Config) -> None:
        """Check, before fencing a producer or creating a topic, that the log is still this process's.

        Raises:
            Fenced: a newer producer has gone online in the log.
            LogDamaged: the log was deleted or re-created.
            BrokerUnavailable: the brokers do not answer.
        """
        if not self.epochs:
            return
        # Up to the high watermark: a newer producer's commit may be invisible yet, and that producer would be fenced.
        with LogReader(config, high_watermark=True, role="producer") as reader:
            known = reader.partitions(config.control_topic)
            control = reader.control() if known else ControlState(None, None, ())
        self.check(control, config)

    def check(self, control: ControlState, config: Config) -> None:
        """Check that the log is still this process's.

        Args:
            control: the content of the control topic.
            config: names the log, for errors.

        Raises:
            Fenced: a newer producer has gone online in the log.
            LogDamaged: the log was deleted or re-created.
        """
        if not self.epochs:
            return
        found = control.log.log_id if control.log else None
        if self.log_id is not None and found != self.log_id:
            raise LogDamaged(
                "the log of this producer was deleted or re-created, or these are other brokers",
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
                "a newer producer of this service took over while this one had no connection to the brokers",
                hint="only one producer of a service may run",
                service=config.service,
                epoch=newest.epoch,
                source_id=newest.source_id,
            )
