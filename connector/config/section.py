"""The base of the configuration's sections, and the field types that several sections share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from connector.patterns import table_pattern

FILE: Final = "_file"  # suffix of a secret's name: the field that names a file with the secret in it


class Section(BaseModel):
    """Base of the sections: immutable; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def read_secret_files(given: Any, *fields: str) -> Any:
    """Return a section's input with each secret that `<field>_file` names read from that file.

    Raises:
        ValueError: a field is given both ways, or the file cannot be read.
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
        read[field] = _secret_in(field + FILE, Path(named))
    return read


def _secret_in(field: str, file: Path) -> str:
    """Return the content of a file without its final line end."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{field}: {file} is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"{field}: {file} cannot be read: {error.strerror}") from None


def _properties(given: dict[str, str]) -> dict[str, str]:
    """Return a library's properties with each `<name>_file` replaced by `<name>` and the content of the file.

    No property of librdkafka, Spark or the registry client ends in `_file`.
    """
    read = {}
    for name, value in given.items():
        key = name.removesuffix(FILE)
        if key in read or (key != name and key in given):
            raise ValueError(f"{key} and {key}{FILE}: set only one of them")
        read[key] = value if key == name else _secret_in(name, Path(value))
    return read


def _table_pattern(text: str) -> str:
    table_pattern(text.strip())  # raises for one that is none
    return text


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}$")]
Bytes = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
TableGlob = Annotated[str, AfterValidator(_table_pattern)]
# Left out of a section's repr: passwords are among them.
Properties = Annotated[dict[str, str], AfterValidator(_properties), Field(repr=False)]
