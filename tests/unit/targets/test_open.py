"""A target by its URL."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.loading import load
from connector.errors import ConfigError, PreflightError, TargetUnavailable
from connector.log.transaction.layout import TableName
from connector.status.heartbeat import heartbeat_time
from connector.targets.open import check_target, open_target, read_position
from connector.verify.run import open_reader


def test_sqlite_target_is_opened_by_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_target(Target(url=SecretStr(f"sqlite:///{tmp_path}/a%20b.db")), SystemClock()).close()
    assert (tmp_path / "a b.db").exists()
    monkeypatch.chdir(tmp_path)
    open_target(Target(url=SecretStr("sqlite:///c.db")), SystemClock()).close()
    assert (tmp_path / "c.db").exists()


def test_duckdb_target_is_opened_by_its_url(tmp_path: Path) -> None:
    options = Target(url=SecretStr(f"duckdb:///{tmp_path}/a%20b.duckdb"))
    assert check_target(options).endswith("a b.duckdb, which does not exist yet")
    open_target(options, SystemClock()).close()
    assert (tmp_path / "a b.duckdb").exists()
    assert check_target(options).startswith("DuckDB 2.")
    with pytest.raises(ConfigError) as refused:
        check_target(Target(url=SecretStr(f"duckdb:///{tmp_path}/no/such/folder")))
    assert "is not a writable folder" in refused.value.message


def test_target_without_its_driver_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = ("connector.targets.duckdb", "connector.verify.duckdb")
    for name in [name for name in sys.modules if name.startswith(rooms)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    config = load(None, {}, [f"target.url=duckdb:///{tmp_path}/a.duckdb"])
    for opened in (lambda: open_target(config.target, SystemClock()), lambda: open_reader(config)):
        with pytest.raises(ConfigError) as refused:
            opened()
        assert refused.value.hint == "pip install 'thl-connector[duckdb]'"
        assert list(refused.value.fields) == ["target.url"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "thl.db",
        "sqlite://host/x",
        "sqlite:///",
        "sqlite://[::1/x",
        "duckdb:///",
        "duckdb://host/x",
        "mysql://h/d",
        "mysql://[::1/d",
        "postgresql://h/d?nonsense=1",
    ],
)
def test_malformed_url_names_the_field(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_target(Target(url=SecretStr(url)), SystemClock())
    assert list(caught.value.fields) == ["target.url"]


def test_unreachable_server_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(TargetUnavailable) as caught:
        open_target(Target(url=SecretStr("postgresql://u:hidden@127.0.0.1:1/d")), SystemClock())
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "sqlite:///", "sqlite://[::1/x", "mysql://[::1/d", "postgresql://u@[::1/db", "postgresql://u@[::1]x/db"]
)
def test_malformed_url_is_refused_by_readers_of_the_target_too(url: str) -> None:
    table = TableName("s", "t")
    for read in (lambda: read_position(url, "shop"), lambda: heartbeat_time(url, "shop", table, "n")):
        with pytest.raises(ConfigError):
            read()
    with pytest.raises(ConfigError):
        load(None, {}, [f"target.url={url}"]) and open_target(Target(url=SecretStr(url)), SystemClock())


def test_bracket_in_a_password_is_not_read_as_an_address() -> None:
    config = load(None, {}, ["target.url=postgresql://u:p[x@127.0.0.1:1/d"])
    url = config.target.url.get_secret_value()
    for read in (
        lambda: open_target(config.target, SystemClock()),
        lambda: open_reader(config),
        lambda: read_position(url, "shop"),
    ):
        with pytest.raises(TargetUnavailable):
            read()


def test_sqlite_file_in_a_missing_folder_is_not_retried(tmp_path: Path) -> None:
    with pytest.raises(PreflightError) as refused:
        open_target(Target(url=SecretStr(f"sqlite:///{tmp_path}/no/such/folder.db")), SystemClock())
    assert "target.url" in refused.value.hint


def test_a_new_sqlite_file_is_for_its_owner_alone_and_one_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (old := tmp_path / "old.db").touch()
    old.chmod(0o644)  # whatever the umask is that an earlier test has left
    before = os.umask(0o022)
    try:
        for path in (tmp_path / "new.db", old):
            target = open_target(Target(url=SecretStr(f"sqlite:///{path}")), SystemClock())
            target.claim("shop")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob(f"{path.name}*")}
            assert modes == dict.fromkeys(
                (path.name, f"{path.name}-wal", f"{path.name}-shm"), 0o644 if path is old else 0o600
            )
            target.close()
    finally:
        os.umask(before)
