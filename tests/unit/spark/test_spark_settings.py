"""The settings for the Kafka connector's jars and for the JVM's files."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext

from connector.errors import ConfigError
from connector.spark import session
from connector.spark.session import CLASS_PATH, _make_absolute, _put_beside, _start_jvm
from connector.spark.settings import jvm_options


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, str], int]]:
    """The settings on the command lines of JVMs that would be started, and the mode of the file of their options."""
    started: list[tuple[dict[str, str], int]] = []

    def launch(conf: SparkConf, _popen: object) -> None:
        started.append((dict(conf.getAll()), (tmp_path / "jvm.options").stat().st_mode & 0o777))

    monkeypatch.setattr(session, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda **_: None)
    return started


def test_secrets_do_not_reach_the_command_line(tmp_path: Path, command: list[tuple[dict[str, str], int]]) -> None:
    settings = {
        "spark.master": "local",
        "spark.kubernetes.authenticate.oauthToken": "planted",
        "spark.ssl.keyPassword": "planted",
        CLASS_PATH: "/a.jar",
        "spark.driver.extraJavaOptions": "-Djavax.net.ssl.keyStorePassword=planted",
    }
    before = os.umask(0)
    try:
        _start_jvm(settings, tmp_path)
    finally:
        os.umask(before)
    ((shown, mode),) = command
    assert "planted" not in str(shown)
    assert shown[CLASS_PATH] == "/a.jar"
    assert mode == 0o600
    assert list(tmp_path.iterdir()) == []


def test_a_setting_of_the_command_line_with_a_password_is_refused(
    tmp_path: Path, command: list[tuple[dict[str, str], int]]
) -> None:
    settings = {"spark.master": "local", "spark.jars.repositories": "https://me:planted@repository/maven"}
    with pytest.raises(ConfigError, match=r"spark\.jars\.repositories contains a password") as refused:
        _start_jvm(settings, tmp_path)
    assert "planted" not in str(refused.value)
    assert command == []


def test_jvm_options_quote_any_folder_name() -> None:
    options = shlex.split(jvm_options(Path('/a "b"/log4j2'), Path("/a c/tmp")))
    places = ["-Djava.io.tmpdir=/a c/tmp", "-Duser.dir=/a c/tmp"]
    assert options[-3:] == ['-Dlog4j2.configurationFile=/a "b"/log4j2', *places]


def test_relative_jars_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"spark.jars": "a.jar, /b.jar,hdfs://c/d.jar", CLASS_PATH: "e/*:/f"}
    _make_absolute(settings)
    assert settings == {"spark.jars": f"{tmp_path}/a.jar,/b.jar,hdfs://c/d.jar", CLASS_PATH: f"{tmp_path}/e/*:/f"}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]"])
def test_jars_of_a_local_master_are_on_the_class_path(master: str) -> None:
    settings = {"spark.master": master, "spark.jars": "/a.jar,/b.jar", CLASS_PATH: "/mine"}
    _put_beside(settings)
    assert settings == {"spark.master": master, CLASS_PATH: "/mine:/a.jar:/b.jar"}


@pytest.mark.parametrize(
    ("master", "jars"),
    [
        ("local-cluster[2,1,1024]", "/a.jar"),
        ("spark://host:7077", "/a.jar"),
        ("local[2]", "hdfs://host/a.jar"),
        ("local", ""),
    ],
)
def test_jars_of_other_masters_stay_spark_s(master: str, jars: str) -> None:
    settings = {"spark.master": master, "spark.jars": jars}
    _put_beside(settings)
    assert settings == {"spark.master": master, "spark.jars": jars}
