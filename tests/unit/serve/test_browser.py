"""The page in a headless Chromium: nothing hostile runs, it refreshes itself, and it can be read and used by everyone.

With THL_PICTURES=1 it writes the documents' pictures, docs/img/serve-light.png and serve-dark.png.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from connector.config.serve import Serve
from connector.errors import SandboxError
from connector.log.epochs.loads import LoadState, TableLoad
from connector.log.transaction.layout import TableName
from connector.serve import watcher as watcher_module
from connector.status.report import ServiceState
from tests.support.producing import until
from tests.support.servers.chromium import Browser
from tests.support.serving import (
    APPLIER,
    PRODUCER,
    Readings,
    config,
    control,
    free_port,
    observation,
    service,
    serving,
    troubled,
)

pytestmark = pytest.mark.long
PICTURES = Path(__file__).parents[3] / "docs" / "img"
TOKEN = "a token of some length"
TAB = "\ue004"

# The least contrast of a text with what is behind it, and the text.
CONTRAST = """
const channel = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const colour = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const found = colour(getComputedStyle(one).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found;
  }
  return [255, 255, 255];
};
let least = [99, ""];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode());) {
  const one = node.parentElement;
  if (!node.textContent.trim() || !one.getClientRects().length || one.closest(".visually-hidden")) continue;
  const style = getComputedStyle(one);
  const front = colour(one.namespaceURI.endsWith("svg") ? style.fill : style.color);
  const [a, b] = [light(front), light(behind(one))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < least[0]) least = [ratio, node.textContent.trim()];
}
return least;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        started = Browser(tmp_path_factory.mktemp("chromium"))
    except SandboxError as error:
        pytest.skip(f"no Chromium can be had: {error.message}")
    with started:
        started.size(1280, 1000)
        yield started


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Readings:
    found = Readings()
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (found,))
    return found


def lags(history: Path) -> None:
    """The lags of six hours: small, with a backlog of half an hour that is caught up."""
    now = int(time.time()) // 60 * 60
    lines = []
    for minute in range(360):
        backlog = max(0.0, 1 - abs(minute - 200) / 25)
        lag = {
            "producer": 0.4 + 0.3 * math.sin(minute / 9) + 40 * backlog,
            "target:orders": 1.2 + 0.8 * math.sin(minute / 7) ** 2 + 140 * backlog,
            "target:lake": 3 + 2 * math.sin(minute / 11) ** 2 + (minute - 330) * 9 * (minute > 330),
        }
        value = {"at": now - (360 - minute) * 60, "lag": lag, "seqno": {}}
        lines.append(json.dumps({"kind": "point", "service": "shop", "value": value}))
    history.write_text("\n".join(lines) + "\n")


@pytest.fixture
def port(readings: Readings, tmp_path: Path) -> Iterator[int]:
    lags(tmp_path / "history")
    settings = Serve(
        port=free_port(), interval=0.3, token=SecretStr(TOKEN), history=tmp_path / "history", max_behind=60
    )
    targets = [
        config(target="orders", url="postgresql://thl@postgres.example:5432/orders"),
        config(target="lake", url="mysql://thl@mysql-2.example:3306"),
    ]
    with serving(service(*targets), settings=settings) as started:
        yield started


def show(browser: Browser, port: int) -> None:
    browser.open(f"http://127.0.0.1:{port}/services/shop")
    until(lambda: "Details" in browser.text())


def test_hostile_names_do_not_run_and_nothing_is_loaded_from_elsewhere(
    browser: Browser, port: int, readings: Readings
) -> None:
    readings.now = troubled()
    until(lambda: "quarantined" in page_text(browser, port))
    loaded = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert loaded
    assert all(one.startswith(f"http://127.0.0.1:{port}/") for one in loaded)
    assert "<script>alert(1)</script>" in browser.run("return document.body.innerText")
    assert browser.run("return document.scripts.length") == 1
    assert browser.errors() == []  # no violation of the CSP, no error of the script, nothing that is not there


def page_text(browser: Browser, port: int) -> str:
    show(browser, port)
    return browser.text()


def test_page_refreshes_itself_and_keeps_what_is_open_and_focused(
    browser: Browser, port: int, readings: Readings
) -> None:
    show(browser, port)
    browser.run(
        "document.getElementById('d-producer').open = true; document.getElementById('period-24').focus(); "
        "window.here = true"
    )
    readings.now = observation(replace(PRODUCER, state=ServiceState.OFFLINE, maximum_stored_seqno=4712), APPLIER)
    until(lambda: browser.run("return document.getElementById('health').textContent") == "not running", 30)
    assert browser.run("return window.here")
    assert browser.run("return document.getElementById('d-producer').open")
    assert browser.run("return document.activeElement.id") == "period-24"
    assert browser.run("return document.title").startswith("shop: not running")
    until(lambda: browser.run("return document.getElementById('updated').textContent") in ("Now: not running", ""))
    browser.run("document.getElementById('pause').click()")
    readings.now = observation()
    time.sleep(6)  # longer than the interval of the script
    assert browser.run("return document.getElementById('health').textContent") == "not running"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_readable_in_both_schemes(browser: Browser, port: int, readings: Readings, scheme: str) -> None:
    readings.now = troubled()
    until(lambda: "quarantined" in page_text(browser, port))
    browser.prefer(scheme)
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    ratio, text = browser.run(CONTRAST)
    assert ratio >= 4.5, text


def test_page_is_used_by_keyboard_and_its_landmarks_and_fields_have_names(browser: Browser, port: int) -> None:
    show(browser, port)
    browser.press(TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    assert browser.run("return document.activeElement.getBoundingClientRect().left >= 0")
    reached = set()
    for _ in range(40):
        browser.press(TAB)
        reached.add(
            browser.run("const a = document.activeElement; return a.id || a.textContent.trim().slice(0, 20) || a.name")
        )
    assert {"pause", "period-6", "token", "Unlock", "Producer and log"} <= reached
    browser.devtools("Accessibility.enable")
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    named = {
        (one["role"]["value"], one.get("name", {}).get("value", "")) for one in nodes if not one.get("ignored", True)
    }
    roles = {role for role, _ in named}
    assert {"banner", "main", "contentinfo", "navigation", "heading"} <= roles
    assert ("textbox", "Token") in named
    assert not [one for one in named if one[0] in ("button", "link", "textbox", "combobox") and not one[1]]


def test_narrow_page_does_not_scroll_sideways(browser: Browser, port: int, readings: Readings) -> None:
    readings.now = troubled()
    until(lambda: "quarantined" in page_text(browser, port))
    browser.size(360, 800)
    try:
        assert browser.run("return document.documentElement.scrollWidth") <= 360
    finally:
        browser.size(1280, 1000)


def test_token_unlocks_the_buttons_and_one_of_them_runs(browser: Browser, port: int) -> None:
    show(browser, port)
    assert "Heartbeat" not in page_text(browser, port)
    browser.run("document.getElementById('token').value = arguments[0]; document.forms[0].submit()", TOKEN)
    until(lambda: "Lock again" in browser.text())
    unlabelled = browser.run(
        "return [...document.querySelectorAll('input:not([type=hidden]), select')].filter((one) => !one.labels.length)"
        ".map((one) => one.id)"
    )
    assert unlabelled == []
    browser.run("document.querySelector('form[action$=\"/heartbeat\"]').submit()")
    # The configuration's file is not there: the command says so, and the page shows it.
    until(lambda: "failed with exit code 2" in browser.text())
    assert "shop.yaml" in browser.run("return document.getElementById('live-jobs').innerText")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture_is_made_for_the_documents(
    browser: Browser, port: int, readings: Readings, tmp_path: Path, scheme: str
) -> None:
    item = TableLoad(
        table=TableName("shop", "order_item"), load="x", state=LoadState.LOADING, rows=1_204_000, estimate=5_100_000
    )
    producer = replace(PRODUCER, maximum_stored_seqno=4_183_204)
    applier = replace(APPLIER, applied_last_seqno=4_183_204)
    readings.now = observation(producer, applier, state=control(loads={item.table: item}))
    behind = {"state": ServiceState.BEHIND, "applied_last_seqno": 4_183_101, "events_behind": 103}
    loading = ("shop.order_item since 4183007 (2026-11-26T07:00:12+00:00)",)
    lake = replace(applier, **behind, seconds_behind=261.0, loading_tables=loading)  # type: ignore[arg-type]
    readings.of_target["lake"] = observation(producer, lake, state=control(loads={item.table: item}))
    until(lambda: "4,183,204" in page_text(browser, port))
    browser.prefer(scheme)
    height = browser.run("return document.getElementById('h-details').getBoundingClientRect().bottom")
    browser.size(1280, int(height))
    picture = browser.picture()
    assert picture.startswith(b"\x89PNG")
    folder = PICTURES if os.environ.get("THL_PICTURES") else tmp_path
    (folder / f"serve-{scheme}.png").write_bytes(picture)
    browser.size(1280, 1000)
