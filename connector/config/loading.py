"""Reading the configuration: a YAML file, over it the environment, over it `--set`.

Every value remembers where it came from, so that an error names the field and its place. Values of secrets are never
part of a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from connector.config.model import FILE, Config, Section
from connector.errors import ConfigError
from connector.redaction import remember, secrets_of

DEFAULT_FILE = Path("thl.yaml")
PREFIX = "THL_"
LEVEL = "__"
# Mappings whose keys are others' names.
PROPERTIES = {("kafka", "properties"), ("kafka", "spark_properties"), ("registry", "properties"), ("apply", "spark")}

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
        layers.put(path, _typed(path, value, f"--set {_shown(path)}"), f"--set {_shown(path)}")
    remember(_secrets(layers.values, ()))
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


def _is_section(path: Path_) -> bool:
    section: type[BaseModel] = Config
    for name in path:
        found = section.model_fields.get(name)
        if found is None or not (isinstance(found.annotation, type) and issubclass(found.annotation, Section)):
            return False
        section = found.annotation
    return True


def _put_file(layers: Layers, file: Path) -> None:
    try:
        document = _parsed(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the configuration cannot be read: {error.strerror}", file=file) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration is not YAML: {_told(error)}", file=file) from None
    if document is None:
        return
    if not isinstance(document, dict):
        raise ConfigError("the configuration is not a mapping of sections", file=file)
    for path, value in _leaves(document, ()):
        layers.put(path, value, str(file))


class _Loader(yaml.SafeLoader):
    """YAML as its specification has it: a key that stands twice in a mapping is an error, not the last one's."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """One mapping."""
        seen: set[object] = set()
        for key, _ in node.value:
            name = getattr(key, "value", None)
            if isinstance(name, str) and name in seen:
                raise yaml.MarkedYAMLError(problem="a key that stands there already", problem_mark=key.start_mark)
            if isinstance(name, str):
                seen.add(name)
        return super().construct_mapping(node, deep)


def _parsed(text: str) -> Any:
    """A YAML document, of plain values only.

    Raises:
        yaml.YAMLError: it is none.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 (it is a safe one)
    except ValueError as error:
        raise yaml.MarkedYAMLError(problem="a date or number that is none") from error
    except RecursionError as error:
        raise yaml.MarkedYAMLError(problem="too many levels") from error


def _told(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    """What is wrong and where, but for the excerpt and names out of it: a password may stand there."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if not isinstance(error, yaml.MarkedYAMLError):
        return "it holds characters that YAML does not have"
    if error.problem_mark is None:
        return error.problem or "what it holds"
    what = re.sub(r"(['\"])(?!<)(?!.\1).*", "…", error.problem or "", flags=re.DOTALL)
    return f"{what} in line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"


def _secrets(values: Mapping[Any, Any], above: Path_) -> Iterator[str]:
    """Whatever is to be hidden among values that may be refused."""
    for name, value in values.items():
        path = (*above, str(name))
        if isinstance(value, dict):
            yield from _secrets(value, path)
            continue
        known = find_field(path)
        hidden = known is not None and "SecretStr" in str(known[0].annotation)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str | int | float):
                if hidden and "://" not in str(text):
                    yield str(text)
                yield from secrets_of(path[-1], str(text))


def _shown(path: Iterable[object]) -> str:
    """A path as errors name it. A key may be `password=secret`, or `password:secret` without its blank: cut there."""
    names = [(str(part), re.split(r"[=:@\s]", str(part), maxsplit=1)[0]) for part in path]
    return ".".join(name if name == whole else f"{name}…" for whole, name in names)


def _leaves(document: Mapping[object, Any], above: Path_) -> Iterator[tuple[Path_, object]]:
    for name, value in document.items():
        path = (*above, str(name))
        if isinstance(value, dict) and value and find_field(path) is None:
            yield from _leaves(value, path)
        elif value is not None or not _is_section(path):  # `source:` with nothing below it says nothing
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
    if not known or not known[1]:
        return path
    key = LEVEL.join(rest[len(rest) - len(known[1]) :])
    above = path[: len(path) - len(known[1])]
    return (*above, _property(key) if above in PROPERTIES else key)


def _property(key: str) -> str:
    """A property as its owner writes it; a shell takes no dots: SASL_PASSWORD is sasl.password."""
    if not re.fullmatch(r"[A-Z0-9_]+", key):
        return key
    name, file, _ = key.lower().partition(FILE) if key.endswith(FILE.upper()) else (key.lower(), "", "")
    return name.replace("_", ".") + file


def _assignment(text: str) -> tuple[Path_, str]:
    name, equals, value = text.partition("=")
    path = tuple(part.strip() for part in name.split("."))
    if not equals or not all(path):
        raise ConfigError(f"--set {_shown([name])}: not section.field=value", hint="--set source.port=3307")
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
        value = _parsed(text)
    except yaml.YAMLError:
        raise ConfigError(f"{_shown(path)}: not YAML (from {origin})") from None
    if isinstance(default, tuple) and not isinstance(value, list | dict):
        return [part.strip() for part in text.split(",") if part.strip()]
    return value


def _message(error: ValidationError, layers: Layers) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        path = tuple(str(part) for part in problem["loc"])
        what = (
            "there is no such field"
            if problem["type"] == "extra_forbidden"
            else problem["msg"].removeprefix("Value error, ")
        )
        origin = layers.origin(path)
        lines.append(f"{_shown(path)}: {what}" + (f" (from {origin})" if origin else ""))
    return "; ".join(_unique(lines))


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
