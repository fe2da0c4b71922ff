"""A server's password is random, created once, and in a file that only its owner may read."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.mysqld import kept_password, write_private


def test_password_is_created_once(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "password"
    first = kept_password(file)
    assert len(first) == 32
    assert kept_password(file) == first
    assert kept_password(tmp_path / "other") != first


def test_password_file_is_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.touch(mode=0o644)
    write_private(file, "secret")
    assert file.read_text() == "secret"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
