"""The data and filters of the templates.

Every text is escaped twice: what moves a terminal's cursor, or the direction of a line, is spelled out; HTML is escaped
by the template engine. Names of tables are anyone's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from flask import Flask
from markupsafe import Markup, escape

from connector.clock import Clock
from connector.errors import printable
from connector.serve.charts import LagChart, lag_chart, short
from connector.serve.history import PRODUCER, target_key
from connector.serve.objects import ServiceHealth, health_of, service_object, summary
from connector.serve.watcher import Watcher
from connector.status.report import ApplierStatus, ProducerStatus, ServiceState

HOURS: Final = (1, 6, 24)
WORDS: Final = {
    ServiceHealth.OK: "running",
    ServiceHealth.WARNING: "running, with problems",
    ServiceHealth.DOWN: "not running",
    ServiceHealth.UNKNOWN: "unknown",
}
GOOD: Final = frozenset({ServiceState.ONLINE, ServiceState.BEHIND})
BAD: Final = frozenset({ServiceState.OFFLINE, ServiceState.NONE})
# The fields that the page shows elsewhere, or that are said by others.
_SHOWN_ELSEWHERE: Final = frozenset(
    {"state", "inconsistentTables", "excludedTables", "loadingTables", "loadPause", "catchUpSeconds", "logId"}
)
_LABELS: Final = {
    "latestEpochNumber": "Epoch",
    "restarts": "Restarts",
    "minimumStoredSeqNo": "First event in Kafka",
    "maximumStoredSeqNo": "Last event in Kafka",
    "lastEventId": "Event ID of the last event",
    "resume": "Would resume at",
    "currentEventId": "End of the binary log",
    "eventsBehind": "Events behind",
    "secondsBehind": "Seconds behind",
    "unfinished": "An event is unfinished",
    "prepared": "Prepared XA transactions",
    "secondsUntilPurge": "Until the source may purge",
    "offlineRequestedBy": "Asked to go offline by",
    "offlineReason": "Reason",
    "waitsFor": "Replicas that publication waits for",
    "semiSync": "Semi-synchronous",
    "appliedLastSeqno": "Last applied event",
    "appliedLastEventId": "Event ID",
    "appliedLastEpoch": "Epoch",
    "appliedLatency": "Latency of the last event",
    "relativeLatency": "Since that event's commit",
    "consistent": "Consistent",
    "inconsistentBecause": "Not consistent because of",
    "channels": "Channels (seqno of each)",
    "openIntent": "Open commit of several writers",
}
_DURATIONS: Final = frozenset({"secondsBehind", "secondsUntilPurge", "appliedLatency", "relativeLatency"})


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its heading."""

    title: str
    chart: LagChart


def install(app: Flask) -> None:
    """Give an application's templates the filters, and escape what they print."""
    app.jinja_env.finalize = _printable
    # A link whose words are a password, such as the service's name, has to lead somewhere.
    app.jinja_env.globals["url_for"] = lambda *args, **values: escape(app.url_for(*args, **values))
    app.jinja_env.filters |= {"duration": duration, "number": number, "when": when}


def overview(watchers: Sequence[Watcher]) -> list[dict[str, Any]]:
    """Return what the list of all services shows."""
    return [
        {
            **summary(watcher),
            "words": WORDS[health_of(watcher)],
            "lag": _worst_lag(watcher),
            "addresses": [(target.name, target.address) for target in watcher.service.targets],
        }
        for watcher in watchers
    ]


def service_page(watcher: Watcher, clock: Clock, hours: float) -> dict[str, Any]:
    """Return what the page of a service shows.

    Args:
        watcher: of the service.
        clock: the time up to which lags are drawn.
        hours: for which they are drawn.
    """
    found = service_object(watcher)
    health = health_of(watcher)
    reading = watcher.newest
    now, limit = clock.now() / 1e6, watcher.limits.seconds_behind
    if reading is None:
        return {"one": found, "health": health, "words": WORDS[health], "read": False}
    facts = {
        "producer": list(_facts(found["producer"])),
        **{target_key(one["name"]): list(_facts(one["applier"])) for one in found["targets"]},
    }
    return {
        "one": found,
        "health": health,
        "words": WORDS[health],
        "read": True,
        "age": max(now - reading.at / 1e6, 0.0),
        "stale": watcher.is_stale(reading),
        "facts": facts,
        "tones": {
            "producer": tone(reading.producer, limit),
            **{target_key(name): tone(target.applier, limit) for name, target in reading.targets.items()},
        },
        "tables": list(_tables(found["targets"])),
        "charts": list(_charts(watcher, now, hours)),
        "hours": hours,
    }


def tone(end: ProducerStatus | ApplierStatus, limit: float) -> str:
    """Return the class of an end's state, which always has its words beside it; `limit`: seconds of lag."""
    if end.state in BAD:
        return "bad"
    return "good" if end.state in GOOD and (end.seconds_behind or 0) <= limit else "attention"


def _worst_lag(watcher: Watcher) -> float | None:
    reading = watcher.newest
    if reading is None:
        return None
    lags = [reading.producer.seconds_behind, *(one.applier.seconds_behind for one in reading.targets.values())]
    return max((lag for lag in lags if lag is not None), default=None)


def _charts(watcher: Watcher, now: float, hours: float) -> Iterator[Chart]:
    since = now - hours * 3600
    points = watcher.history.points(since)
    yield Chart("Producer", lag_chart(points, PRODUCER, since, now))
    for target in watcher.service.targets:
        title = "Applier" if len(watcher.service.targets) == 1 else f"Applier of {target.name}"
        yield Chart(title, lag_chart(points, target_key(target.name), since, now))


def _facts(end: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels and values; those that say nothing are left out."""
    for name, value in end.items():
        if name not in _SHOWN_ELSEWHERE and value is not None and value not in ("", ()):
            yield _LABELS.get(name, name), duration(value) if name in _DURATIONS else _text(value)


def _tables(targets: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield the tables that need attention."""
    states = {"excludedTables": "not applied", "inconsistentTables": "may differ", "loadingTables": "being loaded"}
    for target in targets:
        for name, state in states.items():
            for text in target["applier"][name]:
                yield {"target": target["name"], "state": state, "text": text}


def _text(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case {"firstSeqno": first, "lastSeqno": last, "writers": writers}:
            return f"events {first} to {last}, {writers} writers"
        case tuple() | list():
            return ", ".join(map(_text, value))
        case _:
            return str(value)


def duration(seconds: float | None) -> str:
    """Return a duration for people."""
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    return short(round(seconds, 1) if seconds < 10 else round(seconds))


def number(value: float | None) -> str:
    """Return a number with separators."""
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def when(at: float) -> str:
    """Return a time; seconds since 1970 UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _printable(value: Any) -> Any:
    """Spell out unprintable characters, and hide secrets, in what a template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, "\n")
    return value
