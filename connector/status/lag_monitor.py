"""Exports an applier's lag and its estimated time to catch up as metrics."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Final

from prometheus_client import REGISTRY

from connector import metrics
from connector.background import in_background
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.kafka.log_reader import LogReader
from connector.log.epochs.fork import Range, outside
from connector.log.ids import Seqno
from connector.status.catch_up import CatchUp, Sample

LOG: Final = logging.getLogger(__name__)
EVERY: Final = 2.0  # seconds


@contextmanager
def lag_monitor(config: Config, clock: Clock) -> Iterator[None]:
    """Update the metrics in a thread while in the context; do nothing without a metrics server.

    Args:
        config: names the service and its brokers.
        clock: the time of samples.
    """
    if not config.metrics.port:
        yield
        return
    with in_background("lag-monitor", partial(_monitor, config, clock)):
        yield


def _monitor(config: Config, clock: Clock, ended: Event) -> None:
    """Update the metrics until `ended` is set; NaN while the brokers do not answer."""
    seconds = metrics.catch_up_seconds.labels(config.service)
    lag = metrics.lag_events.labels(config.service)
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
                    if seqno == before and seqno < newest:  # no progress: the missing events may be trapped
                        trapped = reader.control().trapped
                    before = seqno
                    missing = outside(trapped, Seqno(seqno + 1), newest)
                    catch_up.add(Sample(clock.monotonic(), seqno, seqno + missing))
                    estimate = catch_up.estimate()
                    if estimate is not None:
                        lag.set(estimate.lag)
                        seconds.set(math.nan if estimate.seconds is None else estimate.seconds)
        except ConnectorError as error:
            LOG.debug("the log's position cannot be read", extra={"why": error})
            seconds.set(math.nan)
            lag.set(math.nan)
            ended.wait(EVERY)
