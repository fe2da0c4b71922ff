"""Parameters of sessions with PostgreSQL."""

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


def test_silent_server_is_noticed_while_sending_and_waiting(asked: list[str]) -> None:
    connect("postgresql://u:p@h:1/d", "thl signals")
    (found,) = map(conninfo_to_dict, asked)
    assert (found["host"], found["application_name"]) == ("h", "thl signals")
    told = [int(found[f"keepalives_{name}"] or 0) for name in ("idle", "interval", "count")]
    assert told[0] + told[1] * told[2] == 60  # while waiting for an answer
    assert found["tcp_user_timeout"] == "60000"  # while sending


def test_url_parameters_take_precedence(asked: list[str]) -> None:
    connect("postgresql://h/d?tcp_user_timeout=2000&application_name=mine", "thl")
    (found,) = map(conninfo_to_dict, asked)
    assert (found["tcp_user_timeout"], found["application_name"]) == ("2000", "mine")


def test_malformed_url_is_refused_without_its_text(asked: list[str]) -> None:
    for parameter, meant in (("nothing=1", None), ("sslmod=require", "sslmode")):
        with pytest.raises(ConfigError) as caught:
            connect(f"postgresql://u:hidden@h/d?{parameter}", "thl")
        assert (list(caught.value.fields), caught.value.where["meant"]) == (["target.url"], meant)
        assert "hidden" not in str(caught.value)
    assert not asked
