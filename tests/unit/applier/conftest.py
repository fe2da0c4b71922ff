"""The tests of the core: what is read comes as messages, and as what tasks make of them."""

from __future__ import annotations

import pytest

from tests.unit.applier.test_core import Rig


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if hasattr(metafunc.module, "Rig"):
        metafunc.parametrize("way", ["messages", "tasks"], indirect=True)


@pytest.fixture(autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the core gets what is read."""
    monkeypatch.setattr(Rig, "tasks", getattr(request, "param", None) == "tasks")
