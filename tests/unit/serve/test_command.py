"""The command `thl serve`: its configurations, whose section counts, and what it warns of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from connector.commands import serve as command
from connector.config.model import Config

FILES = {
    "shop-a.yaml": "{service: shop, target: {id: a}, serve: {port: 8091}}",
    "shop-b.yaml": "{service: shop, target: {id: b}, serve: {port: 8092}}",
    "crm.yaml": "{service: crm}",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("connector.logs.set_up_logs", lambda _: None)
    monkeypatch.setattr(command, "stop_at_signals", lambda: "stop")
    return [word for name in FILES for word in ("--config", str(tmp_path / name))]


def run(*words: str) -> None:
    CliRunner().invoke(command.serve, words, catch_exceptions=False, standalone_mode=False)


def test_configurations_of_a_service_are_its_targets_and_the_first_section_counts(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr("connector.serve.server.serve", lambda *args: given.append(args))
    run(*files, "--set", "kafka.bootstrap=a:1")
    ((services, settings, _, stop, sets),) = given
    found = [(service.name, [(target.name, target.file.name) for target in service.targets]) for service in services]
    assert found == [("shop", [("a", "shop-a.yaml"), ("b", "shop-b.yaml")]), ("crm", [("target", "crm.yaml")])]
    assert settings.port == 8091
    assert {target.config.kafka.bootstrap for service in services for target in service.targets} == {"a:1"}
    assert (stop, tuple(sets)) == ("stop", ("kafka.bootstrap=a:1",))


def test_passwords_that_others_can_read_are_warned_of_for_each_server_that_is_read(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[tuple[str, str, str]] = []

    def warn(config: Config, *ends: str) -> None:
        warned.extend((config.service, config.target.id, end) for end in ends)

    monkeypatch.setattr("connector.commands.grammar.unverified.warn_of_unverified", warn)
    monkeypatch.setattr("connector.serve.server.serve", lambda *_: None)
    run(*files)
    ends = {"shop": {"a": ("source", "replicas", "kafka", "target"), "b": ("kafka", "target")}}
    ends["crm"] = {"": ("source", "replicas", "kafka", "target")}
    assert warned == [(name, target, end) for name, of in ends.items() for target, found in of.items() for end in found]


WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=sys.argv[1])

sys.meta_path.insert(0, Without())
from connector.commands.serve import serve
from connector.errors import ConfigError
try:
    serve([], standalone_mode=False)
except ConfigError as error:
    print(error.message, error.hint, sep="; ")
"""


@pytest.mark.parametrize("package", ["flask", "waitress"])
def test_missing_extra_is_named(package: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, package], capture_output=True, text=True, check=True)
    assert done.stdout == f"thl serve needs the package {package}; pip install 'thl-connector[serve]'\n"
