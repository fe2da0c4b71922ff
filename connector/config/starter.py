"""Writes the commented file of `thl init`: the fields that nearly everyone sets, and those that were given."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, SecretStr

from connector.config.loading import Path_, Settings, assignment, current, load_settings
from connector.config.reference import scalar
from connector.config.secret_files import FILE
from connector.config.section import Section
from connector.errors import ConfigError

# Asked by `thl init` in this order, with the question.
QUESTIONS: Final = {
    "service": "Name of the log",
    "source.host": "MySQL or MariaDB: host",
    "source.port": "MySQL or MariaDB: port",
    "source.user": "MySQL or MariaDB: user",
    "source.password": "MySQL or MariaDB: password",
    "source.server_id": "MySQL or MariaDB: replica server ID of the connector (no server or replica may have the same)",
    "source.filters.do": "Tables to capture (e.g. shop.*,crm.customers; empty: all)",
    "kafka.bootstrap": "Kafka: brokers",
    "kafka.replication": "Kafka: copies of each topic (1: a sandbox with a single broker)",
    "target.url": "Target: sqlite:///FILE, duckdb:///FILE, postgresql://USER@HOST/DATABASE or mysql://USER@HOST "
    "(password: next)",
}
MAIN: Final = frozenset(
    (*QUESTIONS, "source.password_file", "source.start", "source.tls", "kafka.min_isr", "kafka.allow_unsafe",
     "target.url_file", "metrics.port")
)  # fmt: skip
_HEAD: Final = """\
# Configuration of the THL connector, written by `thl init`.
# `thl check` checks what it names; `thl config` prints it with every other field, which `thl config --reference`
# describes. Environment variables (THL_SOURCE__HOST) and `--set source.host=…` override it.

"""
_WIDTH: Final = 118


def given(sets: Sequence[str]) -> Settings:
    """Return the configuration of some `section.field=value`, without a file or the environment.

    With one copy of each topic, the settings with which that is accepted are added.

    Raises:
        ConfigError: names each wrong field.
    """
    settings = load_settings(Path(os.devnull), {}, sets)
    if settings.config.kafka.replication > 1:
        return settings
    single = {("kafka", "min_isr"): "kafka.min_isr=1", ("kafka", "allow_unsafe"): "kafka.allow_unsafe=true"}
    return load_settings(
        Path(os.devnull), {}, [*sets, *(text for path, text in single.items() if path not in settings.origins)]
    )


def starter(settings: Settings) -> str:
    """Return the commented YAML. It contains secrets in clear text."""
    return _HEAD + "\n".join(_lines(settings.config, settings, ())) + "\n"


def todays(sets: Sequence[str]) -> list[str]:
    """Return some `section.field=value` by the fields' names of today; warns once of each earlier name.

    Raises:
        ConfigError: names each wrong field.
    """
    load_settings(Path(os.devnull), {}, sets)
    assigned = [assignment(text) for text in sets]
    return [f"{'.'.join(current(path))}={value}" for path, value in assigned]


def check_new(file: Path) -> None:
    """Check that `write_new` can create the file; leave nothing.

    Raises:
        ConfigError: it exists already, or cannot be written.
    """
    os.close(_created(file))
    file.unlink()


def write_new(file: Path, text: str) -> None:
    """Write a file that only this user may read, whole or not at all.

    Raises:
        ConfigError: it exists already, or cannot be written.
    """
    content = text.encode()
    descriptor = _created(file)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except OSError as error:
        file.unlink()
        raise _not_written(file, error) from error


def _created(file: Path) -> int:
    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise ConfigError(f"{file} exists already, and is not overwritten", hint="thl init OTHER.yaml") from None
    except OSError as error:
        raise _not_written(file, error) from error


def _not_written(file: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{file} cannot be written: {error.strerror}", hint="thl init OTHER.yaml")


def _lines(section: BaseModel, settings: Settings, above: Path_) -> Iterator[str]:
    indent = "  " * len(above)
    for name, info in type(section).model_fields.items():
        path, value = (*above, name), getattr(section, name)
        if isinstance(value, Section):
            inner = list(_lines(value, settings, path))
            if inner:
                yield from ("", *_comment(indent, type(value).__doc__ or ""), f"{indent}{name}:", *inner)
            continue
        if ".".join(path) not in MAIN and not any(known[: len(path)] == path for known in settings.origins):
            continue
        if getattr(section, name + FILE, None) is not None and name + FILE != "hash_key_file":
            value = SecretStr("")  # read from the file: the file's name is written instead
        if isinstance(value, Mapping):
            value = settings.properties(path, value)
        yield from _comment(indent, info.description or "")
        unset = value is None or (isinstance(value, SecretStr) and not value.get_secret_value())
        yield f"{indent}# {name}:" if unset else f"{indent}{name}: {scalar(value, hide=False)}"


def _comment(indent: str, text: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
