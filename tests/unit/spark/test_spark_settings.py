"""The settings for the Kafka connector's jars and for the JVM's files."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from connector.spark.session import CLASS_PATH, _make_absolute, _put_beside
from connector.spark.settings import jvm_options


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
