"""`verify --every` goes on while a server is unavailable, and ends at an error that is not retryable."""

from __future__ import annotations

from threading import Event

import pytest
from prometheus_client import REGISTRY

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import ConfigError, ConnectorError, TargetUnavailable
from connector.verify import Report, TableReport, Verdict
from connector.verify import watch as module
from connector.verify.watch import watch

EQUAL = Report((TableReport("shop.orders", 7), TableReport("shop.items", 4)), 3)


def watched(monkeypatch: pytest.MonkeyPatch, *found: Report | ConnectorError) -> tuple[Verdict, list[Report]]:
    """Run `watch` with these results of its rounds; return its verdict and reports."""
    results, reports, stop = list(found), list[Report](), Event()

    def verify(*_: object, **__: object) -> Report:
        result = results.pop(0)
        if not results:
            stop.set()
        if isinstance(result, ConnectorError):
            raise result
        return result

    monkeypatch.setattr(module, "verify", verify)
    config = Config(service="watched")
    return watch(config, None, reports.append, patience=1, every=0, stop=stop, clock=SystemClock()), reports


def test_unavailable_target_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, EQUAL, TargetUnavailable("it is away"), EQUAL) == ("equal", [EQUAL, EQUAL])
    assert REGISTRY.get_sample_value("thl_verified_tables", {"service": "watched", "target": "target"}) == 2
    assert REGISTRY.get_sample_value("thl_verified_rows", {"service": "watched", "target": "target"}) == 11


def test_error_that_is_not_retryable_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError):
        watched(monkeypatch, EQUAL, ConfigError("no such table"), EQUAL)


def test_no_comparison_is_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, TargetUnavailable("it is away")) == ("not all compared", [])


def test_uncompared_tables_are_in_verdict_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    some = Report((TableReport("shop.orders", 7),), 3, filtered=("shop.log", "shop.sums"))
    assert watched(monkeypatch, some) == ("not all compared", [some])
    assert (
        REGISTRY.get_sample_value("thl_verified_not_compared_tables", {"service": "watched", "target": "target"}) == 2
    )
    assert Report((), 3).verdict == "not all compared"
    assert not Report((), 3).equal
