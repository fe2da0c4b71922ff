"""The archive of Spark's classes: the Java and jars that it belongs to, and what happens without one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from connector.errors import SandboxError
from connector.fetching import class_archive
from connector.fetching.class_archive import FILE, Key, find_options, make
from connector.fetching.fetch import fetch

TRAIN = class_archive._train


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Kafka connector's jar of a machine with a Java, a Spark and an empty cache."""
    for file in ("java/lib/modules", "spark/core.jar", "kafka.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("THL_CACHE", str(tmp_path / "cache"))
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(class_archive, "pyspark_jars", lambda: tmp_path / "spark")
    monkeypatch.setattr(class_archive, "java_home", lambda: tmp_path / "java")
    monkeypatch.setattr(class_archive, "spark_kafka_jars", lambda: [tmp_path / "kafka.jar"])
    monkeypatch.setattr(class_archive, "_train", lambda archive, _: archive.write_text("classes"))
    return tmp_path / "kafka.jar"


def test_made_archive_is_used_for_its_class_path_alone(jar: Path) -> None:
    assert find_options(str(jar)) == ()
    archive = make()
    assert find_options(str(jar))[0] == f"-XX:SharedArchiveFile={archive}"
    assert find_options("") == ()
    assert find_options(f"{jar}{os.pathsep}{jar}") == ()


@pytest.mark.parametrize("changed", ["java/lib/modules", "spark/core.jar", "kafka.jar"])
def test_changed_file_makes_another_archive_and_removes_the_old_one(jar: Path, changed: str) -> None:
    old = make()
    (jar.parent / changed).write_text("a new version of it")
    assert find_options(str(jar)) == ()
    new = make()
    assert new != old
    assert not old.parent.exists()
    assert find_options(str(jar))[0].endswith(str(new))


def test_file_with_another_time_makes_another_archive(jar: Path) -> None:
    make()
    os.utime(jar, (1, 1))  # the JVM compares it, too
    assert find_options(str(jar)) == ()


def test_archive_of_another_class_path_is_kept(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make()
    other = jar.with_name("other.jar")
    other.write_text("other")
    monkeypatch.setattr(class_archive, "spark_kafka_jars", lambda: [other])
    make()
    assert first.exists()


def test_incomplete_archive_of_an_older_release_is_removed(jar: Path) -> None:
    old = jar.parent / "cache" / "spark-classes-0"
    old.mkdir(parents=True)
    (old / FILE).write_text("classes")
    make()
    assert not old.exists()


@pytest.mark.parametrize("content", ["class", ""])
def test_shorter_archive_is_not_used(jar: Path, content: str) -> None:
    make().write_text(content)  # the JVM would crash
    assert find_options(str(jar)) == ()


@pytest.mark.parametrize("about", ["", "[]", "{}", '{"size": "7"}'])
def test_archive_with_a_damaged_description_is_not_used(jar: Path, about: str) -> None:
    (make().parent / "about.json").write_text(about)
    assert find_options(str(jar)) == ()


@pytest.mark.parametrize("name", ["SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH"])
def test_another_spark_gets_no_archive(jar: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make()
    monkeypatch.setenv(name, "/opt/spark")
    assert find_options(str(jar)) == ()
    with pytest.raises(SandboxError, match="SPARK_HOME"):
        make()


def test_without_java_or_with_a_missing_jar_there_is_no_archive(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    assert find_options(str(jar.with_name("missing.jar"))) == ()
    monkeypatch.delenv("JAVA_HOME")
    assert find_options(str(jar)) == ()


def test_java_by_way_of_a_link_has_the_same_archive(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make()
    link = jar.with_name("current")
    link.symlink_to(jar.parent / "java")
    monkeypatch.setenv("JAVA_HOME", str(link))
    assert find_options(str(jar))[0].endswith(str(archive))


def test_archive_of_a_training_that_ends_with_an_error_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its JVM may archive what it has loaded even then."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho half > "${5#*=}"\necho no Spark today\nexit 1\n')
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(SandboxError, match="no Spark today"):
        TRAIN(tmp_path / FILE, Key("/java", "a.jar", "/spark"))
    assert (tmp_path / FILE).exists()


def test_failed_training_leaves_no_archive(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(archive: Path, _: Key) -> None:
        archive.write_text("half")
        raise SandboxError("no Spark")

    monkeypatch.setattr(class_archive, "_train", fails)
    with pytest.raises(SandboxError, match="no Spark"):
        make()
    assert find_options(str(jar)) == ()
    assert not list((jar.parent / "cache").glob("*/*"))


def test_cache_that_cannot_be_written_is_one_message_and_no_error(
    jar: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THL_CACHE", str(jar / "a file is no folder"))
    assert fetch(["class-archive"]) == 0
    assert "cannot be written" in capsys.readouterr().err
    assert find_options(str(jar)) == ()
