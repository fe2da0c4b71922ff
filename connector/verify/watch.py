"""Source and target compared again and again, for as long as somebody wants to know."""

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

LOG: Final = logging.getLogger(__name__)


def watch(
    config: Config,
    tables: Collection[str] | None,
    told: Callable[[Report], None],
    *,
    patience: float,
    every: float,
    stop: Event,
    clock: Clock,
    without: Collection[str] = (),
) -> Verdict:
    """Compare until somebody sets `stop`; metrics have the newest result.

    A source or target that is away for a while is no difference: the next round asks again.

    Args:
        config, tables, patience, without: as for `verify`.
        told: called with each report.
        every: seconds from the end of one comparison to the beginning of the next.
        stop: looked at between two comparisons.
        clock: the time.

    Returns:
        What the last comparison came to; INCOMPLETE where there was none.

    Raises:
        ConnectorError: what asking again cannot help.
    """
    verdict = Verdict.INCOMPLETE
    while not stop.is_set():
        try:
            report = verify(config, tables, without=without, patience=patience, clock=clock)
        except ConnectorError as error:
            if not error.retry:
                raise
            LOG.warning("source and target could not be compared", extra={"service": config.service, "why": str(error)})
        else:
            verdict = report.verdict
            _measured(config.service, report, clock)
            told(report)
        stop.wait(every)
    return verdict


def _measured(service: str, report: Report, clock: Clock) -> None:
    metrics.verified_tables.labels(service).set(len(report.tables))
    metrics.verified_rows.labels(service).set(sum(table.rows for table in report.tables))
    metrics.verified_different.labels(service).set(sum(not table.equal for table in report.tables))
    metrics.verified_not_compared.labels(service).set(len(report.filtered))
    metrics.verified_at.labels(service).set(clock.now() / 1e6)
