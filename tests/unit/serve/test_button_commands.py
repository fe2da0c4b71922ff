"""The command lines of the buttons: those that the commands have, and no field becomes an option."""

from __future__ import annotations

import signal
import sys
from threading import Timer
from threading import enumerate as enumerate_threads

import pytest
from click import Context

from connector.cli import thl
from connector.clock import SystemClock
from connector.errors import ConfigError
from connector.serve import jobs as jobs_module
from connector.serve.jobs import ENDING, FIELDS, ButtonAction, Jobs, command_of
from tests.support.producing import until
from tests.support.serving import service


def test_target_of_a_load_is_not_passed_over() -> None:
    with pytest.raises(ConfigError, match="load has no field target") as raised:
        command_of(ButtonAction.LOAD, {"table": "shop.t", "target": "b"}, "127.0.0.1")
    assert raised.value.hint == "its fields: for_target, table"


@pytest.mark.parametrize("action", ButtonAction)
def test_command_line_is_one_that_the_command_has(action: ButtonAction) -> None:
    given = {"table": "shop.t", "for_target": "b", "name": "deploy", "reason": "maintenance"}
    words = command_of(action, {name: value for name, value in given.items() if name in FIELDS[action]}, "::1")
    command = thl.get_command(Context(thl), words[1])
    assert command is not None
    parsed = command.make_context(words[1], ["--config", "/dev/null", "--set", "service=shop", *words[2:]]).params
    said = str(parsed)
    for name in FIELDS[action] - {"target"}:
        assert given[name] in said
    assert action not in ENDING or parsed["producer"] is (action is ButtonAction.OFFLINE_PRODUCER)


@pytest.mark.parametrize("value", ["--config=/etc/shadow", "-h", "--set", "x; rm -rf /", "$(id)"])
def test_no_field_becomes_an_option(value: str) -> None:
    for action in ButtonAction:
        for name in FIELDS[action] - {"target"}:
            given = {"table": "shop.t", name: value} if action is ButtonAction.LOAD else {name: value}
            if name == "table" and value.startswith("-"):
                with pytest.raises(ConfigError, match=r"not schema\.table"):
                    command_of(action, given, "127.0.0.1")
                continue
            words = command_of(action, given, "127.0.0.1")
            index = next(index for index, word in enumerate(words) if value in word)
            option = words[index].startswith((f"--reason={value}", f"--for-target={value}"))
            assert option or words[index - 1] in ("--", "--table")


@pytest.mark.parametrize("obeys", [True, False])
def test_command_that_does_not_end_is_ended_and_another_may_begin(obeys: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "COMMAND_GRACE", 0.5)
    ignores = "" if obeys else "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    program = (sys.executable, "-c", f"import signal; {ignores}print('begun', flush=True); signal.pause()")
    jobs = Jobs((), SystemClock(), lambda *_: None, program, timeout=1.5)
    job = jobs.start(service(), ButtonAction.VERIFY, {}, "127.0.0.1")
    with pytest.raises(ConfigError, match="is running"):
        jobs.start(service(), ButtonAction.VERIFY, {}, "127.0.0.1")
    until(lambda: job.ended is not None, 60)
    assert job.state == "ended after serve.command_timeout"
    assert job.exit_code == -(signal.SIGTERM if obeys else signal.SIGKILL)
    jobs.start(service(), ButtonAction.VERIFY, {}, "127.0.0.1")
    jobs.close()


def test_command_that_ends_in_time_is_not_ended() -> None:
    jobs = Jobs((), SystemClock(), lambda *_: None, (sys.executable, "-c", "pass"), timeout=3600)
    job = jobs.start(service(), ButtonAction.HEARTBEAT, {}, "127.0.0.1")
    until(lambda: job.ended is not None, 60)
    assert job.state == "done"
    until(lambda: not [thread for thread in enumerate_threads() if isinstance(thread, Timer)], 60)
