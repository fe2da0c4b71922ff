"""docker/systemd: units that systemd reads, command lines and files that `thl` reads."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from connector.serve.jobs import COMMAND_GRACE
from tests.support.deployed import DOCKER, SECRET, STOPS, Process, another_start_ends_alike

FOLDER: Final = DOCKER / "systemd"
UNITS: Final = sorted(FOLDER.glob("*.service"))
FILES: Final = {f"/etc/thl/{file.name}": file.read_text() for file in FOLDER.glob("*.yaml")}
SECRETS: Final = {
    "/etc/thl/shop.source.password": SECRET,
    "/etc/thl/shop.target.url": "postgresql://thl:secret@postgres.example:5432/shop",
}
units = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)


def values(unit: Path, key: str) -> list[str]:
    lines = [line for line in unit.read_text().splitlines() if line.startswith(f"{key}=")]
    return [line.partition("=")[2] for line in lines]


def value(unit: Path, key: str) -> str:
    (only,) = values(unit, key)
    return only


def environ_of(unit: Path) -> dict[str, str]:
    """The variables that a unit sets for the instance `shop`; those of its files come over its own."""
    found = dict(shlex.split(one)[0].split("=", 1) for one in values(unit, "Environment"))
    for named in values(unit, "EnvironmentFile"):
        file = FOLDER / Path(named.removeprefix("-").replace("%i", "shop")).name
        found |= dict(line.split("=", 1) for line in file.read_text().splitlines() if not line.startswith("#"))
    return found


def process_of(unit: Path) -> Process:
    environ = environ_of(unit)
    program, *words = value(unit, "ExecStart").replace("%i", "shop").split()
    assert program == "/opt/thl/bin/thl"
    split = [part for word in words for part in (environ[word[1:]].split() if word.startswith("$") else [word])]
    return Process(split, {name: text for name, text in environ.items() if "__" in name}, FILES, SECRETS)


def test_there_is_a_unit_for_each_process() -> None:
    assert {process_of(unit).command for unit in UNITS} == {"produce", "apply", "serve"}


@units
def test_its_command_line_and_its_configuration_are_read(unit: Path, tmp_path: Path) -> None:
    config = process_of(unit).config(tmp_path)
    assert config.service == "shop"
    assert config.source.password.get_secret_value() == SECRET
    assert config.target.url.get_secret_value() == SECRETS["/etc/thl/shop.target.url"]


def test_processes_of_one_machine_listen_on_ports_of_their_own(tmp_path: Path) -> None:
    ports = []
    for unit in UNITS:
        process = process_of(unit)
        config = process.config(tmp_path)
        ports.append(config.serve.port if process.command == "serve" else config.metrics.port)
    assert len({*ports}) == 3
    assert 0 not in ports


@units
def test_it_starts_again_only_where_that_can_help(unit: Path) -> None:
    assert value(unit, "Restart") == "on-failure"  # not after `thl offline`, which ends with 0
    prevented = {int(code) for code in value(unit, "RestartPreventExitStatus").split()}
    alike = another_start_ends_alike()
    assert prevented == (alike & {2} if "serve" in unit.name else alike)
    assert value(unit, "StartLimitIntervalSec") == "0"


@units
def test_it_has_the_time_to_stop_that_the_code_takes(unit: Path) -> None:
    assert value(unit, "KillMode") == "mixed"  # or Spark's JVM ended before the batch that it reads
    assert int(value(unit, "TimeoutStopSec")) >= (2 * COMMAND_GRACE if "serve" in unit.name else STOPS)


@units
def test_its_folders_are_those_that_it_may_write_to(unit: Path, tmp_path: Path) -> None:
    assert (value(unit, "ProtectSystem"), value(unit, "StateDirectory")) == ("strict", "thl")
    config = process_of(unit).config(tmp_path)
    environ = environ_of(unit)
    for path in (config.serve.history, environ.get("THL_CACHE", "").replace("%S", "/var/lib")):
        assert not path or Path(path).is_relative_to("/var/lib/thl")


def test_systemd_reads_the_units_without_a_word(tmp_path: Path) -> None:
    """With a program that exists instead of /opt/thl/bin/thl."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing, so no unit was verified: apt-get install systemd")
    copies = [tmp_path / unit.name for unit in UNITS]
    for unit, copy in zip(UNITS, copies, strict=True):
        copy.write_text(unit.read_text().replace("/opt/thl/bin/thl", "/usr/bin/env"))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, copies)], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
    copies[0].write_text(copies[0].read_text().replace("KillMode=mixed", "KillMode=gently"))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copies[0])], capture_output=True, text=True, check=False
    )
    assert "kill mode" in said.stderr


def test_the_user_of_the_units_is_made(tmp_path: Path) -> None:
    if shutil.which("systemd-sysusers") is None:
        pytest.skip("systemd-sysusers is missing, so the user was not made: apt-get install systemd")
    folder = tmp_path / "usr/lib/sysusers.d"
    folder.mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    shutil.copy(FOLDER / "thl.sysusers.conf", folder / "thl.conf")
    said = subprocess.run(["systemd-sysusers", f"--root={tmp_path}"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    (made,) = (line.split(":") for line in (tmp_path / "etc/passwd").read_text().splitlines() if "thl" in line)
    assert (made[0], made[5]) == ("thl", "/var/lib/thl")
    assert {value(unit, key) for unit in UNITS for key in ("User", "Group")} == {made[0]}
