"""The tests of the core: what is read comes as messages, and as what tasks make of them."""

from __future__ import annotations

import pytest

from tests.unit.applier.test_core import Rig


@pytest.fixture(autouse=True, params=["messages", "tasks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the core gets what is read."""
    monkeypatch.setattr(Rig, "tasks", request.param == "tasks")
