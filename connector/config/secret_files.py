"""Secrets that are in files of their own, `<name>_file`, and are read again each time that they are used.

So a process that connects again uses the present secret. A file that is being replaced may be missing or empty for a
moment: then the secret that was read last is used.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, SecretStr

from connector.redaction import remember, secrets_of

LOG: Final = logging.getLogger(__name__)
FILE: Final = "_file"  # suffix of a secret's name: the field that names a file with the secret in it
_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH


class SecretFile(SecretStr):
    """A secret in a file.

    Its copy for another process is the secret itself: there may be no such file there. A pipe is read only once.

    Args:
        field: the name of the field that names the file.
        file: UTF-8; the line end at its end is not part of the secret.

    Raises:
        ValueError: the file cannot be read, or is empty.
    """

    def __init__(self, field: str, file: Path) -> None:
        super().__init__("")
        self._field, self._file = field, file
        self._cannot_be_read = False
        self._take(_content(field, file))
        self._is_regular = file.is_file()
        if self._is_regular and (mode := file.stat().st_mode) & _OTHERS:
            LOG.warning(
                "other users of this machine may read or write a file with a secret: chmod o-rw",
                extra={"field": field, "file": str(file), "mode": f"{stat.S_IMODE(mode):04o}"},
            )

    def get_secret_value(self) -> str:
        """Return the file's present content."""
        if self._is_regular:
            try:
                self._take(_content(self._field, self._file))
                self._cannot_be_read = False
            except ValueError as error:
                if not self._cannot_be_read:
                    LOG.warning("a secret cannot be read again: that of before is used", extra={"why": str(error)})
                self._cannot_be_read = True
        return self._secret_value

    def _take(self, content: str) -> None:
        """Use this content, and hide it in every text from now on."""
        if content != self._secret_value:
            name = self._field.removesuffix(FILE)
            remember(secrets_of(name, content) if "://" in content else (content, *secrets_of(name, content)))
            self._secret_value = content

    def __reduce__(self) -> tuple[type[SecretStr], tuple[str]]:
        return SecretStr, (self.get_secret_value(),)


class FileText(str):
    """A property's value from a file, as it was when the configuration was read; `present` returns what it is now."""

    __slots__ = ("secret",)
    secret: SecretFile

    @classmethod
    def of(cls, secret: SecretFile) -> Self:
        """Return the text of a secret."""
        made = cls(secret.get_secret_value())
        made.secret = secret
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (self.secret.get_secret_value(),)


def present(properties: Mapping[str, str]) -> dict[str, str]:
    """Return a library's properties with the present content of files: for a client that is about to be created."""
    return {
        name: value.secret.get_secret_value() if isinstance(value, FileText) else value
        for name, value in properties.items()
    }


def read_secret_files(given: Any, *fields: str) -> Any:
    """Return a section's input with each secret that `<field>_file` names in that file.

    Raises:
        ValueError: a field is given both ways, or the file cannot be read or is empty.
    """
    if not isinstance(given, dict):
        return given
    read = dict(given)
    for field in fields:
        named = read.get(field + FILE)
        if named is None or not isinstance(named, str | Path):
            continue
        if read.get(field):
            raise ValueError(f"{field} and {field}{FILE}: set only one of them")
        read[field] = SecretFile(field + FILE, Path(named))
    return read


def _content(field: str, file: Path) -> str:
    """Return the content of a file without its final line end."""
    try:
        content = file.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{field}: {file} is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"{field}: {file} cannot be read: {error.strerror}") from None
    if not content:
        raise ValueError(f"{field}: {file} is empty")
    return content


def _properties(given: dict[str, str]) -> dict[str, str]:
    """Return a library's properties with each `<name>_file` replaced by `<name>` and the content of the file.

    No property of librdkafka, Spark or the registry client ends in `_file`.
    """
    read = {}
    for name, value in given.items():
        key = name.removesuffix(FILE)
        if key in read or (key != name and key in given):
            raise ValueError(f"{key} and {key}{FILE}: set only one of them")
        read[key] = value if key == name else FileText.of(SecretFile(name, Path(value)))
    return read


# Left out of a section's repr: passwords are among them.
Properties = Annotated[dict[str, str], AfterValidator(_properties), Field(repr=False)]
