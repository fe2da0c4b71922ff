"""The guard: tokens, wrong ones and sessions, in bounded memory."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from connector.config.serve import Serve
from connector.serve.guard import ADDRESSES, ATTEMPTS, ATTEMPTS_OF_ALL, SESSIONS, Guard, equal
from tests.support.clock import Slept

TOKEN = "a token of some length"


def test_right_tokens_do_not_make_wrong_ones_free() -> None:
    guard = Guard(Serve(token=SecretStr(TOKEN)), Slept())
    for _ in range(ATTEMPTS - 1):
        assert not guard.accepts("wrong", "10.0.0.1")
        assert guard.accepts(TOKEN, "10.0.0.1")
    assert not guard.accepts("wrong", "10.0.0.1")
    assert not guard.accepts(TOKEN, "10.0.0.1")


@pytest.mark.parametrize("network", ["10.0.{}.1", "2001:db8:0:{}::1"])
def test_wrong_tokens_of_many_addresses_are_slowed_down_together(network: str) -> None:
    guard = Guard(Serve(token=SecretStr(TOKEN)), Slept())
    for number in range(ATTEMPTS_OF_ALL):
        assert not guard.waits(network.format(number))
        assert not guard.accepts("wrong", network.format(number))
    assert guard.waits(network.format(200))
    assert not guard.accepts(TOKEN, network.format(200))


def test_addresses_of_one_network_are_one_client() -> None:
    guard = Guard(Serve(token=SecretStr(TOKEN)), Slept())
    for number in range(ATTEMPTS):
        guard.accepts("wrong", f"2001:db8::{number}")
    assert guard.waits("2001:db8::ffff")
    assert not guard.waits("2001:db8:0:1::1")


def test_addresses_that_are_remembered_are_bounded() -> None:
    clock = Slept()
    guard = Guard(Serve(token=SecretStr(TOKEN)), clock)
    for number in range(ADDRESSES + 50):
        guard.accepts("wrong", f"10.1.{number // 256}.{number % 256}")
        clock.sleep(2)
    assert len(guard._wrong) == ADDRESSES


def test_sessions_are_bounded() -> None:
    guard = Guard(Serve(token=SecretStr(TOKEN)), Slept(1.0))
    secrets = [guard.open_session() for _ in range(SESSIONS + 1)]
    assert [guard.has_session(secret) for secret in secrets] == [False, *[True] * SESSIONS]
    assert not guard.has_session("")


def test_short_token_is_refused_and_an_empty_one_opens_nothing() -> None:
    with pytest.raises(ValidationError, match="can be guessed"):
        Serve(token=SecretStr("short"))
    for token in ("ü" * 16, "\x00" * 16, "a" * 16 + "\nX"):
        with pytest.raises(ValidationError, match="ASCII"):
            Serve(token=SecretStr(token))
    assert not Guard(Serve(), Slept()).accepts("", "10.0.0.1")
    assert not Guard(Serve(), Slept()).has_buttons


@pytest.mark.parametrize(
    ("one", "other", "same"), [("a", "a", True), ("a", "b", False), ("", "", False), ("", "a", False), ("é", "é", True)]
)
def test_empty_secret_equals_nothing(one: str, other: str, same: bool) -> None:
    assert equal(one, other) is same
