"""A target by its URL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config import Target
from connector.errors import ConfigError, TargetUnavailable
from connector.write.open import open_target


def test_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_target(Target(url=SecretStr(f"sqlite:///{tmp_path}/a%20b.db")), SystemClock()).close()
    assert (tmp_path / "a b.db").exists()
    monkeypatch.chdir(tmp_path)
    open_target(Target(url=SecretStr("sqlite:///c.db")), SystemClock()).close()
    assert (tmp_path / "c.db").exists()


@pytest.mark.parametrize(
    "url", ["", "thl.db", "sqlite://host/x", "sqlite:///", "mysql://h/d", "postgresql://h/d?nonsense=1"]
)
def test_a_url_that_is_none_names_the_field(url: str) -> None:
    with pytest.raises(ConfigError, match=r"target\.url"):
        open_target(Target(url=SecretStr(url)), SystemClock())


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TargetUnavailable) as caught:
        open_target(Target(url=SecretStr("postgresql://u:hidden@127.0.0.1:1/d")), SystemClock())
    assert "hidden" not in str(caught.value)
    with pytest.raises(TargetUnavailable):
        open_target(Target(url=SecretStr(f"sqlite:///{tmp_path}/no/such/folder.db")), SystemClock())
