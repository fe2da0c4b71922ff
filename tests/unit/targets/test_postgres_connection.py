"""What a session with PostgreSQL is opened with."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from connector.errors import ConfigError
from connector.targets.postgres.connection import connect


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    monkeypatch.setattr(psycopg, "connect", lambda conninfo, **_: asked.append(conninfo))
    return asked


def test_a_server_that_is_gone_without_a_word_is_noticed_whoever_is_to_speak(asked: list[str]) -> None:
    connect("postgresql://u:p@h:1/d", "thl signals")
    (found,) = map(conninfo_to_dict, asked)
    assert (found["host"], found["application_name"]) == ("h", "thl signals")
    told = [int(found[f"keepalives_{name}"] or 0) for name in ("idle", "interval", "count")]
    assert told[0] + told[1] * told[2] == 60  # when it is to answer
    assert found["tcp_user_timeout"] == "60000"  # when it is to take what we send


def test_what_the_url_says_goes_before(asked: list[str]) -> None:
    connect("postgresql://h/d?tcp_user_timeout=2000&application_name=mine", "thl")
    (found,) = map(conninfo_to_dict, asked)
    assert (found["tcp_user_timeout"], found["application_name"]) == ("2000", "mine")


def test_what_is_no_url_is_said(asked: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"target\.url"):
        connect("postgresql://h/d?nothing=1", "thl")
    with pytest.raises(ConfigError, match="sslmode") as caught:
        connect("postgresql://u:hidden@h/d?sslmod=require", "thl")
    assert "hidden" not in str(caught.value)
    assert not asked
