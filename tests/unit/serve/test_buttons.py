"""The buttons: who may use them, and that no field of a form becomes an option of a command."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from pydantic import SecretStr, ValidationError

from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve.guard import ATTEMPTS, Guard
from connector.serve.jobs import KEPT, LINES, ButtonAction, Jobs, command_of
from connector.serve.watcher import Watcher
from tests.support.clock import Slept
from tests.support.producing import until
from tests.support.serving import HOSTILE, Readings, application, config, service, watcher

TOKEN = "a token of some length"
ACT = "/services/shop/actions/heartbeat"
API = "/api/services/shop/actions/heartbeat"
ORIGIN = {"Origin": "http://localhost"}


def program(folder: Path, does: str = "") -> list[str]:
    """A `thl` that prints its arguments, and does something more."""
    script = folder / "thl.py"
    script.write_text(f"import sys\nprint(sys.argv[1:])\n{does}\n")
    return [sys.executable, str(script)]


class Site:
    """An application with buttons, and what a browser has of it."""

    def __init__(self, folder: Path, does: str = "", token: str = TOKEN) -> None:
        self.clock = Slept(1_760_000_000.0)
        self.watched: Watcher = watcher(Readings(), None, self.clock, config(target="a"), config(target="b"))
        self.watched.read()
        settings = Serve(token=SecretStr(token))
        self.client: FlaskClient = application(
            [self.watched], settings, self.clock, program(folder, does)
        ).test_client()

    def log_in(self, token: str = TOKEN) -> str:
        """Give the token; returns the text that forms have to carry."""
        self.client.post("/services/shop/login", data={"token": token}, headers=ORIGIN)
        found = re.search(r'name="csrf" value="([^"]+)"', self.client.get("/services/shop").text)
        return found[1] if found else ""

    def act(self, action: str, **fields: str) -> int:
        return self.client.post(f"/services/shop/actions/{action}", data=fields, headers=ORIGIN).status_code

    def jobs(self) -> list[dict[str, Any]]:
        answer = self.client.get("/api/services/shop/jobs", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        assert answer.json is not None
        found: list[dict[str, Any]] = answer.json["jobs"]
        return found

    def ended(self) -> dict[str, Any]:
        until(lambda: bool(self.jobs()) and self.jobs()[0]["ended"] is not None)
        return self.jobs()[0]


def test_without_a_token_file_nothing_can_be_done(tmp_path: Path) -> None:
    site = Site(tmp_path, token="")
    assert "Actions" not in site.client.get("/services/shop").text
    for path in (ACT, "/services/shop/login", API):
        assert site.client.post(path, headers={"Authorization": "Bearer "}).status_code in (404, 405)


def test_button_runs_the_command_with_the_configuration_of_its_target(tmp_path: Path) -> None:
    site = Site(tmp_path)
    csrf = site.log_in()
    assert csrf
    assert site.act("heartbeat", csrf=csrf, name="deploy 7") == 303
    found = site.ended()
    assert (found["command"], found["state"]) == ("thl heartbeat -- deploy 7", "done")
    assert found["output"] == ["['heartbeat', '--config', 'shop.yaml', '--', 'deploy 7']"]
    assert found["askedFrom"] == "127.0.0.1"
    assert "deploy 7" in site.client.get("/services/shop").text


def test_comparison_is_kept_with_its_verdict(tmp_path: Path) -> None:
    site = Site(tmp_path, "print('shop.t: DIFFERENT secret row'); sys.exit(9)")
    csrf = site.log_in()
    site.act("verify", csrf=csrf, target="b")
    assert site.ended()["state"] == "different"
    assert site.watched.comparisons["b"].verdict == "different"
    one = site.client.get("/api/services/shop").json
    assert one is not None
    assert [target["comparison"] and target["comparison"]["verdict"] for target in one["targets"]] == [
        None,
        "different",
    ]


def test_comparison_of_one_table_or_that_failed_is_not_one_of_all(tmp_path: Path) -> None:
    site = Site(tmp_path, "sys.exit(0 if '--table' in sys.argv else 4)")
    csrf = site.log_in()
    site.act("verify", csrf=csrf, table="shop.t")
    assert site.ended()["state"] == "equal"
    site.act("verify", csrf=csrf)
    until(lambda: len(site.jobs()) == 2)
    assert site.ended()["state"] == "failed with exit code 4"
    assert site.watched.comparisons == {}


def test_outputs_are_shown_to_those_alone_who_have_the_token(tmp_path: Path) -> None:
    site = Site(tmp_path, f"print({HOSTILE!r}); print('row 4711')")
    csrf = site.log_in()
    site.act("heartbeat", csrf=csrf)
    site.ended()
    page = site.client.get("/services/shop").text
    assert "row 4711" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    site.client.delete_cookie("thl_serve")
    page = site.client.get("/services/shop").text
    assert "row 4711" not in page
    assert csrf not in page
    assert site.client.get("/api/services/shop/jobs").status_code == 401


@pytest.mark.parametrize(
    "case", ["no session", "no csrf", "other csrf", "other origin", "cross-site", "null origin", "other host"]
)
def test_request_that_is_not_of_the_page_is_refused(case: str, tmp_path: Path) -> None:
    site = Site(tmp_path)
    csrf = site.log_in()
    headers, fields = dict(ORIGIN), {"csrf": csrf}
    match case:
        case "no session":
            site.client.delete_cookie("thl_serve")
        case "no csrf":
            fields = {}
        case "other csrf":
            fields = {"csrf": csrf[:-1] + "~"}
        case "other origin":
            headers = {"Origin": "http://evil.example"}
        case "cross-site":
            headers = {"Sec-Fetch-Site": "cross-site"}
        case "null origin":
            headers = {"Origin": "null"}
        case "other host":
            headers = {"Host": "evil.example"}
    answer = site.client.post(ACT, data=fields, headers=headers)
    assert answer.status_code == (421 if case == "other host" else 403)
    assert site.jobs() == []


def test_session_cookie_is_out_of_reach_of_scripts_and_other_sites(tmp_path: Path) -> None:
    answer = Site(tmp_path).client.post("/services/shop/login", data={"token": TOKEN}, headers=ORIGIN)
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_wrong_tokens_are_slowed_down(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for _ in range(ATTEMPTS):
        assert site.log_in("wrong") == ""
    assert site.log_in() == ""
    site.clock.sleep(61)
    assert site.log_in()


def test_programs_use_the_header(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.client.post(API, data={"name": "x"}).status_code == 401
    assert site.client.post(API, headers={"Authorization": "Bearer wrong"}).status_code == 401
    answer = site.client.post(API, data={"name": "x"}, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 202
    assert answer.json is not None
    assert answer.json["command"] == "thl heartbeat -- x"
    assert site.ended()["state"] == "done"
    wrong = site.client.post("/api/services/shop/actions/drop", headers={"Authorization": f"Bearer {TOKEN}"})
    assert wrong.status_code == 404


@pytest.mark.parametrize("value", ["--config=/etc/shadow", "-h", "--set", "x; rm -rf /", "$(id)"])
def test_no_field_becomes_an_option(value: str) -> None:
    for action, name in (
        (ButtonAction.HEARTBEAT, "name"),
        (ButtonAction.OFFLINE, "reason"),
        (ButtonAction.OFFLINE_PRODUCER, "reason"),
        (ButtonAction.LOAD, "table"),
        (ButtonAction.LOAD, "for_target"),
        (ButtonAction.VERIFY, "table"),
    ):
        try:
            words = command_of(action, {"table": "shop.t", name: value}, "127.0.0.1")
        except ConfigError:
            continue
        index = next(index for index, word in enumerate(words) if value in word)
        assert words[index - 1] in ("--", "--table") or words[index].startswith((f"--reason={value}", "--for-target="))
        assert words[index - 1] != "--table" or not value.startswith("-")


def test_wrong_fields_are_refused_with_the_reason(tmp_path: Path) -> None:
    site = Site(tmp_path)
    csrf = site.log_in()
    for action, fields in {
        "load": {"table": " "},
        "heartbeat": {"name": "x" * 600},
        "verify": {"target": "none"},
    }.items():
        assert site.act(action, csrf=csrf, **fields) == 303
        assert 'role="alert"' in site.client.get("/services/shop").text
    assert site.jobs() == []


def test_the_same_action_does_not_run_twice_at_once_and_ends_with_the_server(tmp_path: Path) -> None:
    jobs = Jobs((), Slept(1.0), lambda *_: None, program(tmp_path, "import time; time.sleep(600)"))
    job = jobs.start(service(), ButtonAction.VERIFY, {}, "here")
    with pytest.raises(ConfigError, match="is running"):
        jobs.start(service(), ButtonAction.VERIFY, {}, "here")
    assert job.state == "running"
    jobs.close()
    until(lambda: job.ended is not None)
    assert job.exit_code is not None
    assert job.exit_code < 0


def test_jobs_and_their_outputs_are_bounded(tmp_path: Path) -> None:
    jobs = Jobs((), Slept(1.0), lambda *_: None, program(tmp_path, "print('x' * 5000); print('y\\n' * 1000)"))
    for _ in range(KEPT + 3):
        job = jobs.start(service(), ButtonAction.HEARTBEAT, {}, "here")
        until(lambda job=job: job.ended is not None)  # type: ignore[misc]
        assert len(job.output) == LINES
        assert max(map(len, job.output)) <= 500
    assert len(jobs.of("shop")) <= KEPT + 1


def test_real_command_says_what_is_wrong(tmp_path: Path) -> None:
    jobs = Jobs(("service=shop",), Slept(1.0), lambda *_: None)
    (tmp_path / "shop.yaml").write_text("service: shop\n")
    named = service()
    named = type(named)((type(named.targets[0])("target", named.config, tmp_path / "shop.yaml"),))
    job = jobs.start(named, ButtonAction.HEARTBEAT, {}, "here")
    until(lambda: job.ended is not None)
    assert job.exit_code == 2
    assert any("source.heartbeat_table names no table" in line for line in job.output)


def test_short_token_is_refused_and_an_empty_one_opens_nothing() -> None:
    with pytest.raises(ValidationError, match="can be guessed"):
        Serve(token=SecretStr("short"))
    assert not Guard(Serve(), Slept()).accepts("")
    assert not Guard(Serve(), Slept()).has_buttons
