"""Reading the configuration: a YAML file, over it the environment, over it `--set`.

Every value remembers where it came from, so that an error names the field and its place. Values of secrets are never
part of a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from connector.config import Config, Section
from connector.errors import ConfigError

DEFAULT_FILE = Path("thl.yaml")
PREFIX = "THL_"
LEVEL = "__"

Path_ = tuple[str, ...]


@dataclass(slots=True)
class Layers:
    """Values laid over each other, with the place each came from."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path_, str] = field(default_factory=dict)

    def put(self, path: Path_, value: object, origin: str) -> None:
        """Lay one value over what is there."""
        inner = self.values
        for name in path[:-1]:
            below = inner.get(name)
            inner[name] = below = below if isinstance(below, dict) else {}
            inner = below
        inner[path[-1]] = value
        self.origins.pop(path, None)
        self.origins[path] = origin

    def origin(self, path: Path_) -> str | None:
        """Where a value came from, or the section that it is in, or what is in it."""
        return origin_of(self.origins, path)


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration in force, and where each of its values came from.

    Args:
        config: the typed model.
        origins: path of a field → file, variable or flag; a field that is missing has its default.
    """

    config: Config
    origins: dict[Path_, str]


def load(file: Path | None = None, environ: Mapping[str, str] | None = None, sets: Sequence[str] = ()) -> Config:
    """Read the configuration; see `load_settings`."""
    return load_settings(file, environ, sets).config


def load_settings(
    file: Path | None = None, environ: Mapping[str, str] | None = None, sets: Sequence[str] = ()
) -> Settings:
    """Read the configuration.

    Args:
        file: YAML; None: `thl.yaml` in the working directory where there is one.
        environ: of which `THL_SECTION__FIELD` counts; others of that prefix are not ours.
        sets: `section.field=value`, the last wins.

    Raises:
        ConfigError: naming each field that is wrong and where it came from.
    """
    layers = Layers()
    if file is not None or DEFAULT_FILE.is_file():
        _put_file(layers, file or DEFAULT_FILE)
    for name, value in sorted((environ or {}).items()):
        if path := _variable_path(name):
            layers.put(path, _typed(path, value, name), name)
    for text in sets:
        path, value = _assignment(text)
        layers.put(path, _typed(path, value, f"--set {'.'.join(path)}"), f"--set {'.'.join(path)}")
    try:
        return Settings(Config.model_validate(layers.values), layers.origins)
    except ValidationError as error:
        raise ConfigError(_message(error, layers)) from None


def origin_of(origins: dict[Path_, str], path: Path_) -> str | None:
    """Where a value came from, or the section that it is in, or what is in it; None: nobody set it."""
    for place, origin in reversed(origins.items()):
        length = min(len(place), len(path))
        if place[:length] == path[:length]:
            return origin
    return None


def find_field(path: Path_) -> tuple[FieldInfo, Path_] | None:
    """The field that a path names, and what of the path is left: the key in a field that is a mapping."""
    section: type[BaseModel] = Config
    for index, name in enumerate(path):
        found = section.model_fields.get(name)
        if found is None:
            return None
        if isinstance(found.annotation, type) and issubclass(found.annotation, Section):
            section = found.annotation
            continue
        return found, path[index + 1 :]
    return None


def _put_file(layers: Layers, file: Path) -> None:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the configuration cannot be read: {error.strerror}", file=file) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration is not YAML: {' '.join(str(error).split())}", file=file) from error
    if document is None:
        return
    if not isinstance(document, dict):
        raise ConfigError("the configuration is not a mapping of sections", file=file)
    for path, value in _leaves(document, ()):
        layers.put(path, value, str(file))


def _leaves(document: Mapping[object, Any], above: Path_) -> Iterator[tuple[Path_, object]]:
    for name, value in document.items():
        path = (*above, str(name))
        if isinstance(value, dict) and value and find_field(path) is None:
            yield from _leaves(value, path)
        elif value is not None or find_field(path) is not None:
            yield path, value


def _variable_path(name: str) -> Path_ | None:
    """`THL_SOURCE__HOST` is source.host; what names no section or field of the top level is somebody else's."""
    if not name.startswith(PREFIX):
        return None
    first, *rest = name.removeprefix(PREFIX).split(LEVEL)
    found = Config.model_fields.get(first.lower())
    if found is None:
        return None
    is_section = isinstance(found.annotation, type) and issubclass(found.annotation, Section)
    if is_section and not rest:
        raise ConfigError(f"{name} names a section, not a field", hint=f"for example {name}{LEVEL}…")
    path = (first.lower(), *(part.lower() for part in rest))
    known = find_field(path)
    # The keys of a mapping are taken as they are written.
    return (
        (*path[: len(path) - len(known[1])], LEVEL.join(rest[len(rest) - len(known[1]) :]))
        if known and known[1]
        else path
    )


def _assignment(text: str) -> tuple[Path_, str]:
    name, equals, value = text.partition("=")
    path = tuple(part.strip() for part in name.split("."))
    if not equals or not all(path):
        raise ConfigError(f"--set {name}: not section.field=value", hint="--set source.port=3307")
    known = find_field(path)
    if known and known[1]:
        path = (*path[: len(path) - len(known[1])], ".".join(known[1]))
    return path, value


def _typed(path: Path_, text: str, origin: str) -> object:
    """Text as the field wants it: lists and mappings are written as in YAML, a list also with commas alone."""
    known = find_field(path)
    if known is None or known[1]:
        return text
    default = known[0].get_default(call_default_factory=True)
    if not isinstance(default, tuple | dict):
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{'.'.join(path)}: not YAML (from {origin})") from error
    if isinstance(default, tuple) and not isinstance(value, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    return value


def _message(error: ValidationError, layers: Layers) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        path = tuple(str(part) for part in problem["loc"])
        what = "there is no such field" if problem["type"] == "extra_forbidden" else problem["msg"]
        origin = layers.origin(path)
        lines.append(f"{'.'.join(path)}: {what}" + (f" (from {origin})" if origin else ""))
    return "; ".join(_unique(lines))


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
