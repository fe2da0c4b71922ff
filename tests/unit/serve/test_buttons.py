"""The buttons: who may use them, and that no field of a form becomes an option of a command."""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from flask.testing import FlaskClient
from pydantic import SecretStr

from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve.guard import ATTEMPTS
from connector.serve.jobs import KEPT, LINES, MOST_RUNNING, ButtonAction, Job, Jobs
from connector.serve.watcher import Watcher
from tests.support.clock import Slept
from tests.support.producing import until
from tests.support.serving import HOSTILE, Readings, application, config, service, watcher

TOKEN = "a token of some length"
COOKIE = "thl_serve_8090"
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

    def log_in(self, token: str = TOKEN, address: str = "127.0.0.1") -> str:
        """Give the token; returns the text that forms have to carry."""
        from_there = {"REMOTE_ADDR": address}
        self.client.post("/services/shop/login", data={"token": token}, headers=ORIGIN, environ_base=from_there)
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


def test_command_has_the_set_options_of_the_server_and_jobs_are_those_of_a_service(tmp_path: Path) -> None:
    jobs = Jobs(
        ("kafka.bootstrap=a:1", "target.id=x"),
        Slept(1.0),
        lambda *_: None,
        program(tmp_path, "assert not sys.stdin.read()"),
    )
    job = started_beside_input(jobs)
    until(lambda: job.ended is not None)
    sets = "'--set', 'kafka.bootstrap=a:1', '--set', 'target.id=x'"
    assert list(job.output) == [f"['heartbeat', '--config', 'shop.yaml', {sets}, '--', 'serve']"]
    assert jobs.of("shop") == [job]
    assert jobs.of("crm") == []


def started_beside_input(jobs: Jobs) -> Job:
    """Start a command while there is something on the standard input of this process, which is not the command's."""
    (read, write), before = os.pipe(), os.dup(0)
    os.write(write, b"not for a command")
    os.close(write)
    os.dup2(read, 0)
    try:
        return jobs.start(service(), ButtonAction.HEARTBEAT, {}, "here")
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(read)


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
    site.client.delete_cookie(COOKIE)
    page = site.client.get("/services/shop").text
    assert "row 4711" not in page
    assert csrf not in page
    assert site.client.get("/api/services/shop/jobs").status_code == 401


@pytest.mark.parametrize(
    "case",
    [
        "no session",
        "no csrf",
        "other csrf",
        "other origin",
        "cross-site",
        "same-site",
        "null origin",
        "bad origin",
        "other host",
    ],
)
def test_request_that_is_not_of_the_page_is_refused(case: str, tmp_path: Path) -> None:
    site = Site(tmp_path)
    csrf = site.log_in()
    headers, fields = dict(ORIGIN), {"csrf": csrf}
    match case:
        case "no session":
            site.client.delete_cookie(COOKIE)
        case "no csrf":
            fields = {}
        case "other csrf":
            fields = {"csrf": csrf[:-1] + "~"}
        case "other origin":
            headers = {"Origin": "http://evil.example"}
        case "cross-site":
            headers = {"Sec-Fetch-Site": "cross-site"}
        case "same-site":  # another port of this machine
            headers = {"Sec-Fetch-Site": "same-site"}
        case "null origin":
            headers = {"Origin": "null"}
        case "bad origin":
            headers = {"Origin": "http://["}
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


def test_wrong_tokens_are_slowed_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Site(tmp_path)
    for _ in range(ATTEMPTS):
        assert site.log_in("wrong") == ""
    assert caplog.text.count("a wrong token was given") == ATTEMPTS
    assert caplog.records[0].__dict__["address"] == "127.0.0.1"
    assert "wrong" not in caplog.text.replace("a wrong token was given", "")
    assert site.log_in() == ""
    # Another client is not kept away by it.
    assert site.log_in(address="10.0.0.2")
    site.client.delete_cookie(COOKIE)
    site.clock.sleep(59)
    assert site.log_in() == ""
    site.clock.sleep(2)
    assert site.log_in()


def test_session_ends_after_twelve_hours_though_its_page_refreshes_itself(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.log_in()
    for _ in range(12):
        assert "Set-Cookie" not in site.client.get("/services/shop").headers
        assert "Applier offline" in site.client.get("/services/shop").text
        site.clock.sleep(3600)
    assert "Applier offline" not in site.client.get("/services/shop").text


def test_copy_of_a_cookie_is_worth_nothing_after_the_end_of_its_session(tmp_path: Path) -> None:
    site = Site(tmp_path)
    csrf = site.log_in()
    cookie = site.client.get_cookie(COOKIE)
    assert cookie is not None
    site.client.post("/services/shop/logout", data={"csrf": csrf}, headers=ORIGIN)
    site.client.set_cookie(COOKIE, cookie.value)
    assert site.act("heartbeat", csrf=csrf) == 403
    assert site.jobs() == []


@pytest.mark.parametrize(("origin", "secure"), [("http://localhost", False), ("https://localhost", True)])
def test_cookie_of_a_page_that_came_by_tls_goes_by_tls_alone(origin: str, secure: bool, tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.client.post("/services/shop/login", data={"token": TOKEN}, headers={"Origin": origin})
    cookie = site.client.get_cookie(COOKIE)
    assert cookie is not None
    assert cookie.secure is secure


def test_programs_use_the_header(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.client.post(API, data={"name": "x"}).status_code == 401
    assert site.client.post(API, headers={"Authorization": "Bearer wrong"}).status_code == 401
    answer = site.client.post(API, data={"name": "x"}, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 202
    assert answer.json is not None
    assert answer.json["command"] == "thl heartbeat -- x"
    assert site.ended()["state"] == "done"
    lower = site.client.get("/api/services/shop/jobs", headers={"Authorization": f"bearer  {TOKEN}"})
    assert lower.status_code == 200
    wrong = site.client.post("/api/services/shop/actions/drop", headers={"Authorization": f"Bearer {TOKEN}"})
    assert wrong.status_code == 404


def test_program_is_told_to_wait_after_wrong_tokens(tmp_path: Path) -> None:
    site = Site(tmp_path)
    answers = [site.client.post(API, headers={"Authorization": "Bearer wrong"}) for _ in range(ATTEMPTS + 1)]
    assert [answer.status_code for answer in answers] == [401] * (ATTEMPTS - 1) + [429] * 2
    right = site.client.post(API, headers={"Authorization": f"Bearer {TOKEN}"})
    assert (right.status_code, right.json) == (
        429,
        {"error": "too many wrong tokens were given: none is looked at for a minute"},
    )
    assert site.client.post(API).status_code == 401


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"data": {"tabel": "shop.t"}}, 409),
        ({"data": {"table": ["shop.t", "shop.u"]}}, 400),
        ({"json": {"table": "shop.t"}}, 415),
        ({"data": b"table=shop.t", "content_type": "text/plain"}, 415),
        ({"query_string": {"table": "shop.t"}}, 415),
        ({"data": {"table": "shop.t"}}, 202),
        ({}, 202),
    ],
)
def test_field_that_is_not_understood_is_not_passed_over(sent: dict[str, Any], status: int, tmp_path: Path) -> None:
    site = Site(tmp_path)
    path, header = "/api/services/shop/actions/verify", {"Authorization": f"Bearer {TOKEN}"}
    answer = site.client.post(path, headers=header, **sent)
    assert answer.status_code == status
    assert len(site.jobs()) == (status == 202)


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


def test_the_end_of_a_process_waits_for_no_comparison(tmp_path: Path) -> None:
    jobs = Jobs((), Slept(1.0), lambda *_: None, program(tmp_path, "import time; time.sleep(600)"))
    for number in range(MOST_RUNNING):
        jobs.start(service(config(f"s{number}")), ButtonAction.VERIFY, {}, "here")
    with pytest.raises(ConfigError, match="too much else"):
        jobs.start(service(), ButtonAction.HEARTBEAT, {}, "here")
    jobs.start(service(), ButtonAction.OFFLINE, {}, "here")
    jobs.start(service(), ButtonAction.OFFLINE_PRODUCER, {}, "here")
    with pytest.raises(ConfigError, match="is running"):
        jobs.start(service(), ButtonAction.OFFLINE, {}, "here")
    jobs.close()
    with pytest.raises(ConfigError):
        jobs.start(service(), ButtonAction.OFFLINE, {}, "here")


def test_command_is_asked_to_end_with_the_server(tmp_path: Path) -> None:
    does = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
        " print('ready', flush=True); time.sleep(600)"
    )
    jobs = Jobs((), Slept(1.0), lambda *_: None, program(tmp_path, does))
    job = jobs.start(service(), ButtonAction.VERIFY, {}, "here")
    until(lambda: "ready" in job.output)
    jobs.close()
    until(lambda: job.ended is not None)
    assert job.exit_code == 7


def test_command_that_does_not_end_is_killed_with_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.serve.jobs.COMMAND_GRACE", 0.01)
    does = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    jobs = Jobs((), Slept(1.0), lambda *_: None, program(tmp_path, does))
    job = jobs.start(service(), ButtonAction.VERIFY, {}, "here")
    until(lambda: "deaf" in job.output)
    jobs.close()
    until(lambda: job.ended is not None)
    assert job.exit_code == -9


def test_machine_without_processes_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path)

    def none(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", none)
    answer = site.client.post(API, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 409
    assert answer.json is not None
    assert answer.json["error"] == "the command cannot be started: Resource temporarily unavailable"
    assert site.jobs() == []


def test_commands_are_logged_with_who_asked_for_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "connector.serve")
    site = Site(tmp_path)
    site.client.post(API, data={"name": "x"}, headers={"Authorization": f"Bearer {TOKEN}"})
    site.ended()
    until(lambda: len(caplog.records) == 2)
    asked, ended = (record.__dict__ for record in caplog.records)
    assert (asked["command"], asked["address"]) == ("thl heartbeat -- x", "127.0.0.1")
    assert ended["exit_code"] == 0
    assert TOKEN not in caplog.text


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


def test_command_is_not_what_lies_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "connector"
    other.mkdir()
    (other / "__main__.py").write_text("print('another program')")
    monkeypatch.chdir(tmp_path)
    jobs = Jobs([], Slept(0.0), lambda *_: None)
    jobs.start(service(), ButtonAction.OFFLINE, {}, "127.0.0.1")
    until(lambda: jobs.of("shop")[0].ended is not None)
    (job,) = jobs.of("shop")
    assert "another program" not in job.output
    assert job.exit_code != 0  # there is no such target
