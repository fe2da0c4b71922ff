"""Generates docs/configuration.md, and the commented YAML that `thl config` prints, from the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from connector.config.loading import LEVEL, PREFIX, Path_, Settings, origin_of
from connector.config.model import Config
from connector.config.secret_files import FILE
from connector.config.section import Section
from connector.redaction import HIDDEN, is_secret, redacted


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its path, its default in YAML, and its description."""

    path: tuple[str, ...]
    default: str
    description: str

    @property
    def name(self) -> str:
        """The name that `--set` expects."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return PREFIX + LEVEL.join(part.upper() for part in self.path)


def fields(section: type[BaseModel] = Config, above: tuple[str, ...] = ()) -> Iterator[Field | type[Section]]:
    """Return every field in the order of the model; a section comes before its fields."""
    for name, info in section.model_fields.items():
        inner = _section(info)
        if inner is not None:
            yield inner
            yield from fields(inner, (*above, name))
        else:
            default = "" if info.is_required() else scalar(info.get_default(call_default_factory=True), hide=False)
            yield Field((*above, name), default, info.description or "")


def elements(section: type[BaseModel] = Config, above: tuple[str, ...] = ()) -> Iterator[tuple[Path_, type[Section]]]:
    """Return every field that is a list or mapping of sections, with the type of its elements."""
    for name, info in section.model_fields.items():
        inner = _section(info)
        if inner is not None:
            yield from elements(inner, (*above, name))
            continue
        for kind in get_args(info.annotation):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield (*above, name), kind
                yield from elements(kind, (*above, name))


def reference() -> str:
    """Generate docs/configuration.md."""
    lines = [
        "# Configuration",
        "",
        "<!-- Written by `thl config --reference > docs/configuration.md`; a test keeps it equal. -->",
        "",
        "A YAML file (`--config FILE`, else `thl.yaml` in the working directory), over it the environment, over it",
        "`--set section.field=value`. Lists are written as in YAML or with commas (`--set source.filters.do=a.*,b`),",
        "and a mapping's keys one by one (`--set kafka.properties.security.protocol=SSL`).",
        "`thl config` prints the effective configuration with the origin of each value.",
        "",
    ]
    head = ["| Field | Environment | Default | |", "|---|---|---|---|"]
    lines += head
    for item in fields():
        if isinstance(item, Field):
            default = "" if item.default in {'""', "null"} else f"`{item.default}`"
            lines.append(f"| `{item.name}` | `{item.variable}` | {default} | {cell(item.description)} |")
        elif item.__name__ not in {"Filters", "InitialLoad", "RecordStore"}:  # parts of `source`
            lines += ["", f"## {item.__name__.lower()}", "", cell(item.__doc__ or ""), "", *head]
    for path, element in elements():
        lines += ["", f"## An element of {'.'.join(path)}", "", cell(element.__doc__ or ""), ""]
        lines += ["| Field | Default | |", "|---|---|---|"]
        for item in fields(element):
            if isinstance(item, Field):
                default = "" if item.default in {"", "null"} else f"`{item.default}`"
                lines.append(f"| `{item.name}` | {default} | {cell(item.description)} |")
    return "\n".join(lines) + "\n"


def in_force(settings: Settings) -> str:
    """Return the effective configuration as commented YAML; `load` reads it, except for the hidden secrets."""
    return redacted("\n".join(_yaml(settings.config, settings, ())) + "\n")


# JSON leaves these as they are; YAML takes some for line ends and refuses others, and a terminal obeys some.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def scalar(value: object, *, hide: bool) -> str:
    """Return a value as YAML on one line."""
    match value:
        case SecretStr():
            if not value.get_secret_value():
                return '""'
            return _json(_masked(value.get_secret_value()) if hide else value.get_secret_value())
        case Path():
            return _json(str(value))
        case tuple():
            return "[" + ", ".join(scalar(_plain(item), hide=hide) for item in value) + "]"
        case Mapping():
            hidden = {name: HIDDEN if hide and is_secret(name) else text for name, text in value.items()}
            return _json(hidden)
        case _:
            return _json(value)


def _json(value: object) -> str:
    """Return JSON that is also YAML, and printable."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _yaml(section: BaseModel, settings: Settings, above: tuple[str, ...]) -> Iterator[str]:
    indent = "  " * len(above)
    for name, info in type(section).model_fields.items():
        path, value = (*above, name), getattr(section, name)
        inner = _section(info)
        comment = (inner.__doc__ if inner else info.description) or ""
        yield f"{indent}# {' '.join(comment.split())}"
        if isinstance(value, Section):
            yield f"{indent}{name}:"
            yield from _yaml(value, settings, path)
        else:
            if getattr(section, name + FILE, None) is not None and name + FILE != "hash_key_file":
                value = SecretStr("")  # read from the file: `load` refuses both
            if isinstance(value, Mapping):
                value = settings.properties(path, value)
            origin = origin_of(settings.origins, path)
            yield f"{indent}{name}: {scalar(value, hide=True)}" + (f"  # from {origin}" if origin else "")


def _section(info: FieldInfo) -> type[Section] | None:
    kind: Any = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _plain(item: object) -> object:
    return item.model_dump(mode="json", exclude_unset=True) if isinstance(item, BaseModel) else item


def _masked(secret: str) -> str:
    """Return a URL with its password hidden; a URL with parameters is hidden as a whole."""
    address = re.fullmatch(r"(\w+://)(?:([^:/@?]*)(:[^/?]*)?@)?([^@?]*)", secret)
    if not address:
        return HIDDEN
    scheme, user, password, rest = address.groups()
    return scheme + ("" if user is None else user + (f":{HIDDEN}" if password else "") + "@") + rest


def cell(text: str) -> str:
    """A text as a cell of a table of Markdown."""
    return " ".join(text.split()).replace("|", "\\|")
