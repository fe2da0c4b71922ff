"""Reads the configuration: a YAML file, over it the environment, over it `--set`.

Every value keeps its origin (file, variable or flag), which errors name beside the field. Error messages never contain
the values of secrets.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from connector.config.model import RENAMED, Config
from connector.config.secret_files import FILE
from connector.config.section import Section
from connector.config.yaml_text import parsed, problem_of
from connector.errors import ConfigError
from connector.redaction import remember, secrets_of

LOG: Final = logging.getLogger("connector.config")
DEFAULT_FILE: Final = Path("thl.yaml")
PREFIX: Final = "THL_"
LEVEL: Final = "__"
FEW: Final = 8  # fields of a section that a message names
# Mappings whose keys are property names of a library.
PROPERTIES: Final = frozenset(
    {("kafka", "properties"), ("kafka", "spark_properties"), ("registry", "properties"), ("apply", "spark")}
)

Path_ = tuple[str, ...]
NEW_NAMES: Final = frozenset((section, new) for (section, _), new in RENAMED.items())


@dataclass(slots=True)
class Layers:
    """Values that override each other, with the origin of each."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path_, str] = field(default_factory=dict)
    names: dict[tuple[str, Path_], str] = field(
        default_factory=dict
    )  # (layer, renamed field) → the name that it has there

    def put(self, path: Path_, value: object, origin: str, *, layer: str | None = None) -> None:
        """Set one value; it overrides the value of an earlier layer. An old name sets the renamed field.

        Args:
            path: the field.
            value: its value, not validated.
            origin: named in errors: a file, a variable, an option.
            layer: the origin of all values that must not set a field by both its names; None: this origin.

        Raises:
            ConfigError: one layer gives a field both its old and its new name.
        """
        given, path = path, current(path)
        if path[:2] in NEW_NAMES:
            self._check_name(given[:2], path[:2], origin, layer or origin)
        inner = self.values
        for name in path[:-1]:
            below = inner.get(name)
            inner[name] = below = below if isinstance(below, dict) else {}
            inner = below
        inner[path[-1]] = value
        self.origins.pop(path, None)
        self.origins[path] = origin

    def origin(self, path: Path_) -> str | None:
        """Return the origin of a value, of its section, or of a value in it."""
        return origin_of(self.origins, path)

    def _check_name(self, given: Path_, path: Path_, origin: str, layer: str) -> None:
        name, old = ".".join(path), ".".join(given)
        before = self.names.get((layer, path))
        if before not in (None, old):
            raise ConfigError.of_fields(
                f"{name} is set twice, by its old and its new name (from {origin})",
                {name: origin},
                hint=f"remove {old if given != path else before}",
            )
        self.names[layer, path] = old
        if given != path and before is None:
            LOG.warning(
                "a field has a new name; the old one still works",
                extra={"field": old, "new_name": name, "from": origin},
            )


def current(path: Path_) -> Path_:
    """Return a field's path with its name of today: that of a renamed field for its old name."""
    new = RENAMED.get((path[0], path[1])) if len(path) > 1 else None
    return path if new is None else (path[0], new, *path[2:])


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective configuration, and the origin of each of its values.

    Args:
        config: the typed model.
        origins: path of a field → file, variable or flag; a field that is missing has its default.
        property_files: path of a property `<name>_file` → the file, whose content the model has as `<name>`.
    """

    config: Config
    origins: dict[Path_, str]
    property_files: dict[Path_, str] = field(default_factory=dict)

    def properties(self, path: Path_, read: Mapping[str, object]) -> dict[str, object]:
        """The properties of a library as they were given: `<name>_file`, not the content of the file.

        Args:
            path: the field of the properties.
            read: the field's value in the model.
        """
        files = {at[-1]: file for at, file in self.property_files.items() if at[:-1] == path}
        return {name: value for name, value in read.items() if name + FILE not in files} | files


def load(file: Path | None = None, environ: Mapping[str, str] | None = None, sets: Sequence[str] = ()) -> Config:
    """Read the configuration; see `load_settings`."""
    return load_settings(file, environ, sets).config


def load_settings(
    file: Path | None = None, environ: Mapping[str, str] | None = None, sets: Sequence[str] = ()
) -> Settings:
    """Read the configuration.

    Args:
        file: YAML; None: `thl.yaml` in the working directory. Without it a warning is logged if nothing else is
            configured.
        environ: `THL_SECTION__FIELD` sets a field; variables with the prefix that name no section are ignored.
        sets: `section.field=value`; the last one wins.

    Returns:
        The configuration with the origin of each value.

    Raises:
        ConfigError: names each wrong field and its origin.
    """
    layers = Layers()
    if file is not None or DEFAULT_FILE.is_file():
        _put_file(layers, file or DEFAULT_FILE)
    for name, value in sorted((environ or {}).items()):
        if path := _variable_path(name):
            layers.put(path, _typed(path, _text(value, name), name), name, layer=PREFIX)
    for text in sets:
        path, value = assignment(_text(text, "--set"))
        layers.put(path, _typed(path, value, f"--set {_shown(path)}"), f"--set {_shown(path)}")
    remember(_secrets(layers.values, ()))
    if not layers.origins and file is None and not DEFAULT_FILE.is_file():
        LOG.warning(
            "no configuration: every field has its default; `thl init` writes a file, --config names another",
            extra={"looked_for": str(DEFAULT_FILE.absolute())},
        )
    try:
        return Settings(Config.model_validate(layers.values), layers.origins, _property_files(layers.values))
    except ValidationError as error:
        raise _refused(error, layers) from None


def _property_files(values: Mapping[str, Any]) -> dict[Path_, str]:
    return {
        (section, name, key): value
        for section, name in sorted(PROPERTIES)
        for key, value in values.get(section, {}).get(name, {}).items()
        if key.endswith(FILE)
    }


def origin_of(origins: dict[Path_, str], path: Path_) -> str | None:
    """Return the origin of a value, of its section, or of a value in it; None: it has its default."""
    for known, origin in reversed(origins.items()):
        length = min(len(known), len(path))
        if known[:length] == path[:length]:
            return origin
    return None


def find_field(path: Path_) -> tuple[FieldInfo, Path_] | None:
    """Return the field that a path names, and the rest of the path: the key in a field that is a mapping."""
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


def _section(path: Path_) -> type[BaseModel] | None:
    """Return the section that a path names; None: it names none."""
    section: type[BaseModel] = Config
    for name in path:
        found = section.model_fields.get(name)
        if found is None or not (isinstance(found.annotation, type) and issubclass(found.annotation, Section)):
            return None
        section = found.annotation
    return section


def _put_file(layers: Layers, file: Path) -> None:
    try:
        document = parsed(file.read_text(encoding="utf-8"))
    except OSError as error:
        hint = f"thl init {file} writes one" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"the configuration cannot be read: {error.strerror}", hint=hint, file=file) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration is not YAML: {problem_of(error)}", file=file) from None
    if document is None:
        return
    if not isinstance(document, dict):
        raise ConfigError("the configuration is not a mapping of sections", file=file)
    for path, value in _leaves(document, ()):
        layers.put(path, value, str(file))


def _text(given: str, origin: str) -> str:
    """Return a value of the environment or the command line, which may be no text at all.

    Raises:
        ConfigError: its bytes are not UTF-8.
    """
    if given.isascii() or not re.search("[\ud800-\udfff]", given):
        return given
    raise ConfigError.of_fields(
        f"{origin}: the value is not UTF-8", {origin: origin}, hint="put a secret of other bytes into a …_file"
    )


def _secrets(values: Mapping[Any, Any], above: Path_) -> Iterator[str]:
    """Return the secrets among values that are not validated yet."""
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
    """Return a path as errors name it.

    A mistyped key may be `password=secret`, or `password:secret` without the blank: it is cut there.
    """
    names = [(str(part), re.split(r"[=:@\s]", str(part), maxsplit=1)[0]) for part in path]
    return ".".join(name if name == whole else f"{name}…" for whole, name in names)


def _leaves(document: Mapping[object, Any], above: Path_) -> Iterator[tuple[Path_, object]]:
    for name, value in document.items():
        path = (*above, str(name))
        if isinstance(value, dict) and value and find_field(current(path)) is None:
            yield from _leaves(value, path)
        elif value is not None or _section(path) is None:  # an empty `source:` sets nothing
            yield path, value


def _variable_path(name: str) -> Path_ | None:
    """Return the path of a variable: source.host for `THL_SOURCE__HOST`; None if it names no section or top field."""
    if not name.startswith(PREFIX):
        return None
    first, *rest = name.removeprefix(PREFIX).split(LEVEL)
    found = Config.model_fields.get(first.lower())
    if found is None:
        return None
    is_section = isinstance(found.annotation, type) and issubclass(found.annotation, Section)
    if is_section and not rest:
        raise ConfigError.of_fields(
            f"{name} names a section, not a field", {first.lower(): name}, hint=f"for example {name}{LEVEL}…"
        )
    path = (first.lower(), *(part.lower() for part in rest))
    known = find_field(current(path))
    if not known or not known[1]:
        return path
    key = LEVEL.join(rest[len(rest) - len(known[1]) :])
    above = path[: len(path) - len(known[1])]
    return (*above, _property(key) if above in PROPERTIES else key)


def _property(key: str) -> str:
    """Return a property's own name. A shell variable has no dots: SASL_PASSWORD is sasl.password."""
    if not re.fullmatch(r"[A-Z0-9_]+", key):
        return key
    name, file, _ = key.lower().partition(FILE) if key.endswith(FILE.upper()) else (key.lower(), "", "")
    return name.replace("_", ".") + file


def assignment(text: str) -> tuple[Path_, str]:
    """Return the path and the value of `section.field=value`.

    Raises:
        ConfigError: it is something else.
    """
    name, equals, value = text.partition("=")
    path = tuple(part.strip() for part in name.split("."))
    if not equals or not all(path):
        raise ConfigError.of_fields(
            f"--set {_shown([name])}: not section.field=value",
            {_shown([name]): "--set"},
            hint="--set source.port=3307",
        )
    known = find_field(current(path))
    if known and known[1]:
        path = (*path[: len(path) - len(known[1])], ".".join(known[1]))
    return path, value


def _typed(path: Path_, text: str, origin: str) -> object:
    """Return a text as the field's type: lists and mappings are written as in YAML, a list also with commas only."""
    known = find_field(current(path))
    if known is None or known[1]:
        return text
    default = known[0].get_default(call_default_factory=True)
    if not isinstance(default, tuple | dict):
        return text
    try:
        value = parsed(text)
    except yaml.YAMLError:
        raise ConfigError.of_fields(f"{_shown(path)}: not YAML (from {origin})", {_shown(path): origin}) from None
    if isinstance(default, tuple) and not isinstance(value, list | dict):
        return [part.strip() for part in text.split(",") if part.strip()]
    return value


def _no_field(path: Path_) -> str:
    """Say that there is no such field, and which may be meant."""
    if path[0] == "target" and path[-1] in ("user", "password", "host", "port"):
        return "there is no such field; it is a part of target.url"
    above = _section(path[:-1])
    if above is None:
        return "there is no such field"
    close = get_close_matches(path[-1], above.model_fields)
    if not close and len(path) == 1:  # source.records without `source`
        close = [f"{name}.{path[0]}" for name in Config.model_fields if _section((name, path[0])) is not None]
    if close:
        return f"there is no such field; did you mean {' or '.join(close)}?"
    few = len(above.model_fields) <= FEW
    return "there is no such field" + (f" beside {', '.join(above.model_fields)}" if few else "")


def _refused(error: ValidationError, layers: Layers) -> ConfigError:
    lines = []
    fields: dict[str, str | None] = {}
    for problem in error.errors(include_url=False, include_input=False):
        path = tuple(str(part) for part in problem["loc"])
        unknown = problem["type"] == "extra_forbidden"
        cause = _no_field(path) if unknown else problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "model_type" and (section := _section(path)) is not None:
            cause = f"a section, whose fields are {', '.join(section.model_fields)}"
        if not path:  # of several fields
            lines.append(cause)
            continue
        origin = layers.origin(path)
        fields[_shown(path)] = origin
        lines.append(f"{_shown(path)}: {cause}" + (f" (from {origin})" if origin else ""))
    return ConfigError.of_fields("; ".join(dict.fromkeys(lines)), fields)
