"""`thl init`: the written file loads as given, and no file is overwritten."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from connector import cli
from connector.config.loading import PROPERTIES, load
from connector.config.reference import Field, fields
from connector.config.starter import MAIN, QUESTIONS, given, starter

ROOT = Path(__file__).parents[3]
FROM_ROOT = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_write_a_file_that_loads(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["init", "--defaults"]) == 0
    assert load() == given([]).config
    assert Path("thl.yaml").stat().st_mode & 0o777 == 0o600
    assert "thl check" in capsys.readouterr().out


def test_the_replica_server_id_is_written_for_its_reader_to_choose() -> None:
    assert cli.run(["init", "--defaults"]) == 0
    written = Path("thl.yaml").read_text()
    assert "  # Replica server ID of this connector; must be unique in the topology." in written
    assert "\n  server_id: 7411\n" in written


@pytest.mark.parametrize(
    "sets",
    [
        ["service=shop", "source.host=db", "source.password=pä:ss #1", "source.filters.do=a.*,b"],
        ["source.password=pass😀word", "source.user=a\x7f\x85\x9b\u2028\ufeffb"],
        ["kafka.replication=1"],
        ["kafka.replication=1", "kafka.allow_unsafe=false"],
        ["target.url=postgresql://u:p%40@h/d", "target.metadata_columns.seqno=n", "metrics.port=9000"],
        ['source.filters.tables=[{"match": ["a.b"], "mask": {"c": {"fixed": null}}}]', "kafka.properties.a.b=c"],
    ],
)
def test_given_fields_are_written_and_load(sets: list[str]) -> None:
    assert cli.run(["init", "some.yaml", *(part for text in sets for part in ("--set", text))]) == 0
    assert load(Path("some.yaml")) == given(sets).config


def test_single_copy_of_topics_is_accepted_as_sandbox() -> None:
    single, refused = given(["kafka.replication=1"]).config, given(["kafka.replication=1", "kafka.allow_unsafe=false"])
    assert (single.kafka.min_isr, single.kafka.allow_unsafe) == (1, True)
    assert (refused.config.kafka.min_isr, refused.config.kafka.allow_unsafe) == (1, False)


def test_secret_of_a_file_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hidden-there\n")
    assert cli.run(["init", "--set", f"source.password_file={tmp_path}/password"]) == 0
    assert "hidden-there" not in Path("thl.yaml").read_text()
    assert load().source.password.get_secret_value() == "hidden-there"


@pytest.mark.parametrize("field", [".".join(path) for path in sorted(PROPERTIES)])
def test_property_read_from_a_file_keeps_its_reference(
    field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("hidden-there\n")
    section, name = field.split(".")
    assert cli.run(["init", "--set", f"{field}.a.b_file={tmp_path}/secret", "--set", f"{field}.c=d"]) == 0
    assert "hidden-there" not in Path("thl.yaml").read_text()
    assert getattr(getattr(load(), section), name) == {"a.b": "hidden-there", "c": "d"}
    capsys.readouterr()
    assert cli.run(["config"]) == 0
    assert "hidden-there" not in capsys.readouterr().out


def test_existing_file_is_kept() -> None:
    Path("thl.yaml").write_text("service: mine")
    assert cli.run(["init"]) == 2
    assert cli.run(["init", "--defaults", "--set", "service=x"]) == 2
    assert Path("thl.yaml").read_text() == "service: mine"


@pytest.mark.parametrize("name", ["no/such/folder/thl.yaml", "x" * 300])
def test_file_that_cannot_be_created_is_refused_before_questions(name: str) -> None:
    assert cli.run(["init", name, "--defaults"]) == 2
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "connector", "init", name], {**os.environ, **FROM_ROOT})  # noqa: S606
    said = os.read(terminal, 4096).decode()
    os.close(terminal)
    os.waitpid(pid, 0)
    assert "cannot be written" in said


def test_failed_write_leaves_no_file() -> None:
    limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-m", "connector", "init", "--defaults"]
    ended = subprocess.run(limited, env={**os.environ, **FROM_ROOT}, capture_output=True, check=False)
    assert ended.returncode == 2
    assert not list(Path().iterdir())


def test_earlier_name_of_a_field_is_warned_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["--set", "source.heartbeat=5", "--set", "kafka.replication=1"]
    assert cli.run(["init", *sets]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "source.heartbeat" in line]
    assert len(warned) == 1
    assert "source.dump_heartbeat" in warned[0]
    assert load().source.dump_heartbeat == 5


def test_next_command_is_one_that_the_shell_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["init", "my shop.yaml", "--defaults"]) == 0
    assert "--config 'my shop.yaml'" in capsys.readouterr().out


@pytest.mark.parametrize("set_", ["source.port=x", "nothing=1", "source"])
def test_wrong_field_writes_nothing(set_: str) -> None:
    assert cli.run(["init", "--set", set_]) == 2
    assert not list(Path().iterdir())


def test_answers_at_a_terminal_are_written_and_wrong_ones_asked_again() -> None:
    dialogue = [
        ("Name of the log", "shop"),
        ("host", ""),
        ("port", "99999"),
        ("port", "3307"),
        ("user", "me"),
        ("password", "se:cret"),
        ("server ID", "4242"),
        ("brokers", "kafka:9092"),
        ("copies", "1"),
        ("Target", "postgresql://me@db/shop"),
        ("Target: password", "@se:cret"),
    ]
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = [sys.executable, "-m", "connector", "init", "--set", "source.filters.do=shop.*"]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONPATH": str(ROOT)})  # noqa: S606
    said = ""
    for prompt, answer in dialogue:
        while prompt not in said:
            said += os.read(terminal, 4096).decode()
        said = ""
        os.write(terminal, f"{answer}\n".encode())
    with suppress(OSError):  # Linux: the terminal's other end is closed
        while more := os.read(terminal, 4096):
            said += more.decode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    os.close(terminal)
    assert "se:cret" not in said
    assert load() == given(
        [
            "service=shop", "source.port=3307", "source.user=me", "source.password=se:cret", "source.server_id=4242",
            "source.filters.do=shop.*",
            "kafka.bootstrap=kafka:9092", "kafka.replication=1", "target.url=postgresql://me:%40se%3Acret@db/shop",
        ]
    ).config  # fmt: skip


def test_main_fields_and_questions_are_fields() -> None:
    names = {item.name for item in fields() if isinstance(item, Field)}
    assert names >= MAIN >= set(QUESTIONS)
    assert "  # password_file:" in starter(given([]))
