"""Typical user mistakes: each is one message and an exit code, never reported as a defect."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector import cli
from connector.errors import ConfigError

KAFKA = ("--set", "kafka.retries=0", "--set", "kafka.bootstrap=127.0.0.1:1")
SOURCE = ("--set", "source.retries=0", "--set", "source.port=1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"x\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.fixture
def used_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = cli.run(list(arguments))
    text = capsys.readouterr().err
    assert "defect" not in text
    assert "Traceback" not in text
    return code, text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff\xfe", "byte 1 is not UTF-8"),
        (b"source:\n\tport: 1\n", "found character '\\t' that cannot start any token in line 2, column 1"),
        (b"source: {port: 1\n", "expected ',' or '}', but got '<stream end>' in line 2, column 1"),
        (b"source: {password: *pw}\n", "found undefined alias … in line 1, column 20"),
        (b"service: a\nservice: b\n", "duplicate key in line 2, column 1"),
        (b"source: {port: 1, port: 2}\n", "duplicate key in line 1, column 19"),
        (b"source: {port: 2023-99-99}\n", "invalid date or number"),
        (b"source: {port: 2023-99-99 99:99:99}\n", "invalid date or number"),
        (b"[" * 5000, "too many nested levels"),
        (b"{a: " * 3000 + b"1" + b"}" * 3000, "too many nested levels"),
        (b"? [a, b]\n: 1\n", "unhashable key"),
        (b"a: \x00", "characters that YAML does not allow"),
        (b"!!python/object/apply:os.system [id]\n", "is not YAML"),
        (b"- a\n", "not a mapping of sections"),
        (b"just text\n", "not a mapping of sections"),
        (b"source: 5\n", "source: "),
        (b"1: 2\n", "1: there is no such field"),
        (b"a: &a [*a]\n", "contains it"),
        (b"service: 2024-01-01\n", "service: "),
        (b"source: {dump_heartbeat: .inf}\n", "source.dump_heartbeat: "),
        (b"source: {dump_heartbeat: .nan}\n", "source.dump_heartbeat: "),
        (b"metrics: {port: 70000}\n", "metrics.port: "),
    ],
)
def test_file_that_is_no_configuration_is_refused(text: bytes, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("thl.yaml").write_bytes(text)
    code, found = said(capsys, "config")
    assert (code, told in found) == (2, True), found


def test_empty_configuration_file_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("thl.yaml").write_bytes(b"")
    assert said(capsys, "config")[0] == 0


@pytest.mark.parametrize("file", ["missing", "folder", "file/below"])
def test_unreadable_configuration_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "config", "--config", file)
    assert (code, "the configuration cannot be read: " in found) == (2, True)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("source", "not section.field=value"),
        ("=5", "not section.field=value"),
        ("source.filers.do=a", "source.filers: there is no such field; did you mean filters?"),
        ("target.user=me", "target.user: there is no such field; it is a part of target.url"),
        ("records.dir=a", "records: there is no such field; did you mean source.records?"),
        ("source.records.folder=a", "there is no such field beside dir, horizon, cache_bytes, partial"),
        ("source.records=a", "source.records: a section, whose fields are dir, horizon, cache_bytes, partial"),
        ("source.port=abc", "source.port: "),
        ("source.port=99999", "source.port: "),
        ("kafka.properties=5", "kafka.properties: "),
        ("kafka.bootstrap=127.0.0.1:99999", "kafka.bootstrap: "),
        ("kafka.bootstrap=broker", "kafka.bootstrap: "),
        ("kafka.bootstrap=a:9092,b:0", "kafka.bootstrap: "),
        ("kafka.bootstrap=http://a:9092", "host:port[,host:port…] without http://"),
        ("kafka.bootstrap=", "kafka.bootstrap: "),
        ("source.filters.do=[a", "source.filters.do: not YAML"),
        ("source.filters.do={a: b}", "source.filters.do: "),
        ("publish.shards=[1]", "publish.shards.0: "),
        ("publish.shards=2023-99-99", "publish.shards: not YAML"),
        ("service=a/b", "service: "),
        ("target.url=postgresql://u:p@[::1/db", "target.url: "),
        ("target.url=postgresql://u:p@h:abc/db", "target.url: "),
    ],
)
def test_unknown_setting_is_refused(setting: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "config", "--set", setting)
    assert (code, told in found) == (2, True), found


@pytest.mark.parametrize("command", ["info", "list", "tail", "index", "trapped"])
def test_unknown_librdkafka_property_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, command, *KAFKA, "--set", "kafka.properties.nonsense=1")
    assert (code, 'kafka.properties: No such configuration property: "nonsense"' in found) == (2, True), found


@pytest.mark.parametrize("setting", ["linger.ms=abc", "security.protocol=x", "ssl.ca.location=missing"])
def test_property_with_a_wrong_value_is_refused(setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    security = ("--set", "kafka.properties.security.protocol=SSL") if "ssl" in setting else ()
    code, found = said(capsys, "info", *KAFKA, *security, "--set", f"kafka.properties.{setting}")
    assert (code, "kafka.properties: " in found) == (2, True), found


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("source.password=pass€", 4),  # it is not reached: the server is not there
        ("source.host=ü..x", 2),
        (f"source.host={'a' * 300}", 2),
        ("source.tls_ca=missing", 2),
        ("registry.url=http://[::1", 2),
        ("registry.url=ftp://x", 2),
    ],
)
def test_unusable_address_of_source_or_registry_is_refused(
    setting: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = ("--set", "source.tls=true") if "tls" in setting else ()
    assert said(capsys, "produce", *KAFKA, *SOURCE, *tls, "--set", setting)[0] == code


@pytest.mark.parametrize("command", ["apply", "produce"])
def test_metrics_port_in_use_is_refused(command: str, used_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, command, *KAFKA, *SOURCE, "--set", f"metrics.port={used_port}")
    assert (code, f"port {used_port}: Address already in use" in found and "metrics.port" in found) == (2, True), found


@pytest.mark.parametrize(
    "command",
    [
        ("binlog", "missing"),
        ("binlog", "folder"),
        ("binlog", "file"),
        ("archive", *SOURCE, "file"),
        ("archive", *SOURCE, "/proc/x"),
        ("archive", *SOURCE, "--verify", "missing"),
        ("demo", "--folder", "file"),
        ("demo", "--folder", "/proc/x"),
        ("list", *KAFKA, "-seqno", "abc"),
        ("list", *KAFKA, "--timezone", "Nowhere"),
        ("apply", *KAFKA, "--to-time", "yesterday"),
        ("apply", *KAFKA, "--to-gtid", "x"),
        ("nonsense",),
    ],
)
def test_unusable_file_or_argument_is_refused(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, *command)
    assert code in {2, 5}, found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("shop.t", "--for-target", "no such"), "--for-target 'no such' is not the ID of a target"),
        (("shop.t", "--for-target", "a,b"), "--for-target 'a,b' is not the ID of a target"),
        (("shop.t", "--for-target", ""), "--for-target '' is not the ID of a target"),
        (("shop.t", "--for-target", "lake", "--cancel"), "not with --status or --cancel"),
        (("--status", "--for-target", "lake"), "not with --status or --cancel"),
    ],
)
def test_load_for_targets_that_cannot_be_is_refused(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, "load", *arguments, *KAFKA)
    assert code == ConfigError.exit_code
    assert told in text


@pytest.mark.parametrize("url", ["oracle://x", "sqlite:///folder", ""])
def test_wrong_target_is_refused_before_spark_starts(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("connector.spark.session.SparkSession", None)  # nothing can be started
    code, found = said(capsys, "apply", *KAFKA, "--set", "target.retries=0", "--set", f"target.url={url}")
    assert code in {2, 3}, found


def test_unavailable_brokers_are_reported_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ConfigError("Spark does not start")

    monkeypatch.setattr("connector.spark.session.SparkRun", refused)
    monkeypatch.setattr("connector.kafka.handshake.QUICK", 0.5)
    _, found = said(capsys, "apply", *KAFKA, "--set", "target.url=sqlite:///t.db")
    assert "waiting for the brokers of kafka.bootstrap service=default bootstrap=127.0.0.1:1" in found
