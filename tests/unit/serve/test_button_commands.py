"""The command lines of the buttons: those that the commands have, and no field becomes an option."""

from __future__ import annotations

import pytest
from click import Context

from connector.cli import thl
from connector.errors import ConfigError
from connector.serve.jobs import ENDING, FIELDS, ButtonAction, command_of


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
