"""`thl check` looks at the relay's folder, and creates nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.check.checks import check_records, check_relay
from connector.check.result import CheckState
from connector.config.loading import load
from connector.config.model import Config


def configured(folder: Path | None) -> Config:
    return load(None, {} if folder is None else {"THL_RELAY__DIR": str(folder)})


def test_without_a_relay_nothing_is_checked() -> None:
    assert list(check_relay(configured(None))) == []


def test_folder_that_will_be_created_is_said_to_be_and_is_not_created(tmp_path: Path) -> None:
    (found,) = check_relay(configured(tmp_path / "relay" / "one"))
    assert found.state is CheckState.OK
    assert "will be created" in found.found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_folder_that_others_may_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    """The sticky bit, as of /tmp, does for a parent alone."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    (found,) = check_relay(configured(tmp_path / "open"))
    assert found.state is CheckState.FAILED
    (inside,) = check_relay(configured(tmp_path / "open" / "relay"))
    assert inside.state is (CheckState.OK if mode & 0o1000 else CheckState.FAILED)


def test_folder_that_cannot_be_created_is_refused() -> None:
    (found,) = check_relay(configured(Path("/proc/relay")))
    assert found.state is CheckState.FAILED
    assert "relay.dir: the folder cannot be used" in found.found
    assert found.remedy == "set relay.dir to a folder that this user may write to"


def test_record_store_that_cannot_be_created_has_the_same_remedy() -> None:
    (found,) = check_records(load(None, {"THL_SOURCE__RECORDS__DIR": "/proc/records"}))
    assert found.state is CheckState.FAILED
    assert found.remedy == "set source.records.dir to a folder that this user may write to"
