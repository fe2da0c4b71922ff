"""Repeats the comparison of source and target at an interval."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from threading import Event
from typing import Final

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.verify.report import Report, Verdict
from connector.verify.run import verify
from connector.verify.waiting import PublishedLog

LOG: Final = logging.getLogger(__name__)


def watch(
    config: Config,
    tables: Collection[str] | None,
    report_to: Callable[[Report], None],
    *,
    patience: float,
    every: float,
    stop: Event,
    clock: Clock,
    ignored: Collection[str] = (),
    log: PublishedLog | None = None,
) -> Verdict:
    """Compare until `stop` is set; metrics have the newest result.

    An unavailable source or target is logged, and is tried again in the next round.

    Args:
        config, tables, patience, ignored, log: arguments of `verify`.
        report_to: called with each report.
        every: seconds from the end of one comparison to the start of the next.
        stop: checked between two comparisons.
        clock: the time.

    Returns:
        The verdict of the last comparison; INCOMPLETE if there was none.

    Raises:
        ConnectorError: an error that is not retryable.
    """
    verdict = Verdict.INCOMPLETE
    while not stop.is_set():
        try:
            report = verify(config, tables, ignored=ignored, patience=patience, clock=clock, log=log)
        except ConnectorError as error:
            if not error.retry:
                raise
            LOG.warning("source and target could not be compared", extra={"service": config.service, "why": str(error)})
        else:
            verdict = report.verdict
            _set_metrics(config, report, clock)
            report_to(report)
        stop.wait(every)
    return verdict


def _set_metrics(config: Config, report: Report, clock: Clock) -> None:
    for gauge, value in (
        (metrics.verified_tables, len(report.tables)),
        (metrics.verified_rows, sum(table.rows for table in report.tables)),
        (metrics.verified_different, sum(not table.equal for table in report.tables)),
        (metrics.verified_not_compared, len(report.filtered)),
        (metrics.verified_at, clock.now() / 1e6),
    ):
        gauge.labels(config.service, config.target.id or "target").set(value)  # as `thl serve` names it
