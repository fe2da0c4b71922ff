"""An applier's lookout: how far the log is ahead of it, and when it will have caught up, as metrics."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from prometheus_client import REGISTRY

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.kafka.log_reader import LogReader
from connector.log.ids import Seqno
from connector.log.writing.fork import Range, outside
from connector.status.catch_up import CatchUp, Sample

LOG: Final = logging.getLogger(__name__)
EVERY: Final = 2.0  # seconds
LEAVE: Final = 1.0


@contextmanager
def lag_monitor(config: Config, clock: Clock) -> Iterator[None]:
    """Look out while in the context; not at all when no metrics are served.

    Args:
        config: the service, its brokers, the port.
        clock: for rates.
    """
    if not config.metrics.port:
        yield
        return
    ended = Event()
    thread = Thread(target=_look_out, args=(config, clock, ended), name="lookout", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LEAVE)  # no longer: brokers that do not answer would keep an applier that is told to stop


def _look_out(config: Config, clock: Clock, ended: Event) -> None:
    """Until it is ended; brokers that do not answer leave the metrics unknown."""
    seconds = metrics.catch_up_seconds.labels(config.service)
    behind = metrics.lag_events.labels(config.service)
    catch_up = CatchUp()
    trapped: tuple[Range, ...] = ()
    before = None
    while not ended.is_set():
        try:
            with LogReader(config) as reader:
                while not ended.wait(EVERY):
                    position = reader.position()
                    applied = REGISTRY.get_sample_value("thl_applied_seqno", {"service": config.service})
                    if position is None or applied is None:
                        continue
                    seqno, newest = Seqno(int(applied)), position.last_finished
                    if seqno == before and seqno < newest:  # it does not move: what it lacks may be trapped
                        trapped = reader.control().trapped
                    before = seqno
                    lacks = outside(trapped, Seqno(seqno + 1), newest)
                    catch_up.seen(Sample(clock.monotonic(), seqno, seqno + lacks))
                    estimate = catch_up.estimate()
                    if estimate is not None:
                        behind.set(estimate.behind)
                        seconds.set(math.nan if estimate.seconds is None else estimate.seconds)
        except ConnectorError as error:
            LOG.debug("how far the log is cannot be told", extra={"why": error})
            seconds.set(math.nan)
            behind.set(math.nan)
            ended.wait(EVERY)
