"""A secret in a file is read again each time that it is used."""

from __future__ import annotations

import logging
import os
import pickle
import threading
from pathlib import Path

import pytest

from connector import redaction
from connector.config.kafka import Registry
from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConfigError
from connector.kafka import client
from connector.spark.source.options import as_options

OLD, NEW = "planted-old-secret", "planted-new-secret"
PROPERTIES = ("kafka.properties.sasl.password", "kafka.spark_properties.sasl.jaas.config", "apply.spark.x.password")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "secret"
    made.touch(mode=0o600)
    made.write_text(f"{OLD}\n")
    return made


def config_of(file: Path, *fields: str) -> Config:
    return load(None, {}, [f"{field}_file={file}" for field in fields])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_present_content_is_used_and_hidden(file: Path) -> None:
    source = config_of(file, "source.password").source
    assert source.password.get_secret_value() == OLD
    file.write_text(f"{NEW}\r\n")
    assert redaction.redacted(NEW) == NEW
    assert source.password.get_secret_value() == NEW
    assert redaction.redacted(f"{OLD} or {NEW}") == f"{redaction.HIDDEN} or {redaction.HIDDEN}"


def test_password_of_present_url_is_hidden_and_its_host_is_not(file: Path) -> None:
    file.write_text(f"postgresql://user:{OLD}@host/d")
    target = config_of(file, "target.url").target
    file.write_text(f"postgresql://user:{NEW}@host/d")
    assert target.url.get_secret_value() == f"postgresql://user:{NEW}@host/d"
    assert redaction.redacted(f"{NEW} of user at host") == f"{redaction.HIDDEN} of user at host"


def test_each_kafka_client_gets_present_properties(file: Path) -> None:
    config = config_of(file, "kafka.properties.sasl.password")
    file.write_text(NEW)
    assert client.properties(config.kafka)["sasl.password"] == NEW
    assert as_options(config)["kafka.sasl.password"] == NEW


def test_copy_for_another_process_has_the_present_secret_and_needs_no_file(file: Path) -> None:
    config = config_of(file, "source.password", "kafka.properties.sasl.password")
    file.write_text(NEW)
    copied = pickle.dumps(config)
    file.unlink()
    there: Config = pickle.loads(copied)  # noqa: S301
    assert there.source.password.get_secret_value() == NEW
    assert client.properties(there.kafka)["sasl.password"] == NEW


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", None], ids=["empty", "a line end", "no UTF-8", "missing"])
def test_while_file_is_replaced_the_last_secret_is_used_with_one_warning(
    file: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    password = config_of(file, "source.password").source.password
    caplog.clear()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    assert [password.get_secret_value() for _ in range(2)] == [OLD, OLD]
    assert len(warnings(caplog)) == 1
    file.write_text(NEW)
    assert password.get_secret_value() == NEW


@pytest.mark.parametrize("field", ["source.password", "target.url", "registry.url", "serve.token", *PROPERTIES])
def test_empty_file_is_refused(file: Path, field: str) -> None:
    file.write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        config_of(file, field)


def test_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(OLD,))
    writer.start()
    password = config_of(pipe, "source.password").source.password
    writer.join()
    assert password.get_secret_value() == OLD


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o660, 0), (0o604, 1), (0o602, 1)])
def test_file_that_others_may_read_or_write_is_warned_of(
    file: Path, mode: int, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    file.chmod(mode)
    caplog.clear()
    config_of(file, "source.password")
    found = [text for text in warnings(caplog) if "other users" in text]
    assert len(found) == warned


def test_registry_properties_are_hidden_in_repr(file: Path) -> None:
    registry = Registry(properties={"basic.auth.user.info_file": str(file)})
    assert OLD not in repr(registry)
