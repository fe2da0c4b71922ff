"""The server as a client sees it: page, JSON, metrics, health, names, and what hostile texts become."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.redaction import HIDDEN, remember
from connector.serve import watcher as watcher_module
from connector.status.report import Problem
from tests.support.clock import Slept
from tests.support.serving import (
    HOSTILE,
    PRODUCER,
    Readings,
    application,
    ask,
    config,
    free_port,
    observation,
    service,
    serving,
    troubled,
    watcher,
)


@contextmanager
def server(readings: Readings, monkeypatch: pytest.MonkeyPatch, *services: str) -> Iterator[int]:
    """A server whose services answer with given readings; ready when it is yielded."""
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (readings,))
    found = [service(config(name)) for name in services or ("shop",)]
    with serving(*found, settings=Serve(port=free_port(), hosts=("thl.example",))) as port:
        while not is_ready(port):
            pass
        yield port


def is_ready(port: int) -> bool:
    try:
        return ask(port, "/readyz").status == 200
    except OSError:
        return False


class Texts(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_page_api_metrics_and_health_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(Readings(), monkeypatch) as port:
        assert ask(port, "/").headers["Location"] == "/services/shop"
        page = ask(port, "/services/shop")
        assert page.status == 200
        assert "4,711" in page.text
        assert "postgres db.example/shop" in page.text
        listed = json.loads(ask(port, "/api/services").text)
        assert [(one["name"], one["health"]) for one in listed["services"]] == [("shop", "ok")]
        assert listed["readOnly"] is True
        one = json.loads(ask(port, "/api/services/shop").text)
        assert one["producer"]["maximumStoredSeqNo"] == one["targets"][0]["applier"]["appliedLastSeqno"] == 4711
        assert one["log"]["epochs"][0]["reason"] == "forked"
        assert one["log"]["trapped"] == [[298, 299]]
        assert json.loads(ask(port, "/api/services/shop/history").text)["points"][0]["lag"] == {
            "producer": 0.0,
            "target:target": 0.0,
        }
        assert 'thl_service_published_seqno{service="shop"} 4711.0' in ask(port, "/metrics").text
        assert ask(port, "/healthz").text == "ok\n"
        assert ask(port, "/api/services/none").status == 404
        assert ask(port, "/services/none").status == 404


def test_several_services_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(Readings(), monkeypatch, "shop", "crm") as port:
        page = Texts(ask(port, "/").text)
        assert {value for name, value in page.attributes if name == "href"} >= {"/services/shop", "/services/crm"}


def test_hostile_names_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(Readings(troubled()), monkeypatch) as port:
        answer = ask(port, "/services/shop")
        page = Texts(answer.text)
        shown = HOSTILE.replace("\u202e", "\\u202e")
        assert page.text.count(shown) >= 2  # as a table that is not applied, and as a load
        assert "<b>bold</b>" in page.text
        assert page.tags.count("script") == 1  # ours
        assert "\u202e" not in answer.text
        assert "\u202e" not in ask(port, "/api/services/shop").text
        assert "start MySQL, or correct source.host" in page.text


def test_page_needs_nothing_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(Readings(troubled()), monkeypatch) as port:
        answer = ask(port, "/services/shop")
        page = Texts(answer.text)
        for name, value in page.attributes:
            assert name not in {"style", "onclick"}
            if name in {"href", "src", "action"}:
                assert value is not None
                assert value.startswith(("/", "#"))
                if value.startswith("/static"):
                    assert ask(port, value).status == 200
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "Server" not in answer.headers or not answer.headers["Server"]


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    said = observation(
        problems=(Problem("refused for user thl with password secret-x at postgresql://thl:secret-x@db/shop"),)
    )
    with server(Readings(said), monkeypatch) as port:
        remember(["secret-x"])
        for path in ("/services/shop", "/api/services/shop", "/api/services", "/metrics"):
            answer = ask(port, path)
            assert answer.status == 200
            assert "secret-x" not in answer.text


def test_secret_that_is_a_number_or_a_name_damages_no_answer() -> None:
    number = observation(
        replace(PRODUCER, maximum_stored_seqno=12_000), problems=(Problem("refused: password is 12000"),)
    )
    watched = watcher(Readings(number), None, None, config("orders"))
    watched.read()
    client = application([watched], Serve(), SystemClock()).test_client()
    remember(["12000", "orders", "producer"])
    answer = json.loads(client.get("/api/services/orders").text)
    assert answer["producer"]["maximumStoredSeqNo"] == 12_000
    assert answer["problems"] == [f"refused: password is {HIDDEN}"]
    page = client.get("/services/orders").text
    assert 'href="/services/orders?hours=1"' in page
    assert f"refused: password is {HIDDEN}" in page


def test_history_is_that_of_the_hours_that_are_asked_for() -> None:
    clock = Slept(1_760_000_000.0)
    watched = watcher(Readings(), None, clock)
    for hours in (7, 2, 0.5):
        watched.history.add(clock.seconds - hours * 3600, {"producer": hours}, {})
    client = application([watched], Serve(), clock).test_client()
    everything = [7, 2, 0.5]
    for asked, expected in {"1": [0.5], "6": [2, 0.5], "inf": everything, "nan": [], "-1": [], "x": everything}.items():
        answer = client.get(f"/api/services/shop/history?hours={asked}")
        assert [point["lag"]["producer"] for point in json.loads(answer.text)["points"]] == expected


@pytest.mark.parametrize(("asked", "hours"), [("1", 1), ("24", 24), ("9999999", 6), ("0", 6), ("-1", 6), ("nan", 6)])
def test_chart_has_one_of_the_periods(asked: str, hours: int) -> None:
    watched = watcher(Readings())
    watched.read()
    page = application([watched], Serve(), SystemClock()).test_client().get(f"/services/shop?hours={asked}").text
    assert f'hours={hours}" aria-current="true"' in page


def test_large_request_is_refused() -> None:
    client = application([watcher(Readings())], Serve(token=SecretStr("x" * 20)), SystemClock()).test_client()
    answer = client.post("/services/shop/login", data={"token": "x" * 20_000})
    assert answer.status_code == 413


def test_more_problems_than_are_kept_are_counted() -> None:
    watched = watcher(Readings(observation(problems=tuple(Problem(f"table t{number} is odd") for number in range(57)))))
    watched.read()
    page = application([watched], Serve(), SystemClock()).test_client().get("/services/shop").text
    assert "And 7 more" in page


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8090", 200),
        ("localhost", 200),
        ("[::1]:8090", 200),
        ("THL.example:443", 200),
        ("evil.example", 421),
        ("thl.example.evil.example", 421),
        ("169.254.169.254", 421),
        ("localhost@evil.example", 421),
        ("[", 421),
        ("", 421),
    ],
)
def test_names_that_are_not_this_servers_are_refused(host: str, status: int) -> None:
    app = application([watcher(Readings())], Serve(hosts=("thl.example",)), Slept(1.0))
    client = app.test_client()
    for path in ("/services/shop", "/api/services", "/metrics"):
        assert client.get(path, headers={"Host": host}).status_code == status
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_unread_and_stuck_services_fail_the_probes() -> None:
    clock = Slept(1.0)
    watched = watcher(Readings(), None, clock)
    client = application([watched], Serve(), clock).test_client()
    assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 503)
    assert "was not read yet" in client.get("/services/shop").text
    watched.read()
    assert client.get("/readyz").status_code == 200
    clock.sleep(3600)
    assert client.get("/healthz").status_code == 503
    assert "The last reading is old" in client.get("/services/shop").text


def test_port_in_use_is_an_error_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from connector.serve.server import serve

    with server(Readings(), monkeypatch) as port:
        with pytest.raises(ConfigError) as raised:
            serve([service()], Serve(port=port), Slept(), Event())
        assert "serve.port" in raised.value.fields


def test_page_is_a_document_with_landmarks_and_headings_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(Readings(troubled()), monkeypatch) as port:
        page = Texts(ask(port, "/services/shop").text)
    assert {"header", "nav", "main", "footer", "h1"} <= set(page.tags)
    levels = [int(tag[1]) for tag in page.tags if tag in {"h1", "h2", "h3"}]
    assert levels.count(1) == 1
    assert all(later <= before + 1 for before, later in itertools.pairwise(levels))
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    labels = [value for name, value in page.attributes if name == "aria-labelledby"]
    assert labels
    assert set(labels) <= set(ids)
