"""Registers the fragment schema in a registry with Confluent's API, once, when a producer starts.

The subject is `<topic>-value`, as in TopicNameStrategy, the serializers' default; for loads `<topic>-load-value`.
Its compatibility is FULL_TRANSITIVE: programs older and newer than the producer read a log, and a log holds messages of
several versions. So the registry refuses a version that breaks the promise in docs/consuming.md.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from connector.addresses import on_this_machine
from connector.config.kafka import Registry
from connector.config.model import Config
from connector.config.secret_files import present
from connector.errors import ConfigError, ConnectorError, PreflightError, RegistryUnavailable

LOG: Final = logging.getLogger(__name__)
COMPATIBILITY: Final = "FULL_TRANSITIVE"
_NOT_FOUND: Final = 404
_INCOMPATIBLE: Final = 409
_SERVER: Final = 500  # from this status on the registry failed, not the request
_BUSY: Final = 429
_NUMBERS: Final = frozenset(("cache.capacity", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "timeout"))


def subject_of(config: Config) -> str:
    """The name under which the event topic's schema is registered."""
    return f"{config.topic}-value"


def load_subject_of(config: Config) -> str:
    """The name under which the schema of the event topic's loads is registered."""
    return f"{config.topic}-load-value"


def unverified(registry: Registry) -> str:
    """The reason why others can read a password that is sent to the registry; "" if they cannot."""
    for url in registry.url.get_secret_value().split(","):
        secret = "@" in url or any("auth" in name for name in registry.properties)
        if secret and url.strip().startswith("http://"):
            host, _, _ = url.strip().removeprefix("http://").split("/")[0].rpartition("@")[2].partition(":")
            if not on_this_machine(host):
                return f"the password for the schema registry at {host} crosses the network without TLS: registry.url"
    return ""


def registered_number(config: Config, schema: dict[str, Any], subject: str = "") -> int:
    """Register the schema, and make the registry refuse incompatible versions.

    Args:
        config: the service and its registry.
        schema: the fragment's schema, as parsed JSON.
        subject: the name under which it is registered; by default `subject_of`.

    Returns:
        The schema's number in the registry; the same for each call.

    Raises:
        RegistryUnavailable: the registry does not answer.
        PreflightError: it refuses access, or the schema is incompatible with one of the subject.
        ConfigError: the registry client is not installed, or its properties are wrong.
    """
    try:
        # These imports take a third of a second, and not every installation has them.
        from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # noqa: PLC0415
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415
        from httpx2 import TransportError  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"registry.url is set, but the registry client is not installed: {error.name}",
            hint="pip install 'thl-connector[registry]'",
        ) from error
    subject = subject or subject_of(config)
    given = _properties(config)
    try:
        client = SchemaRegistryClient(given)
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(
            f"the registry client refuses its properties: {error}", option="registry.properties"
        ) from error
    try:
        level = _level(client, subject, SchemaRegistryError)
        if level != COMPATIBILITY:
            client.set_compatibility(subject, COMPATIBILITY)
        number = int(client.register_schema(subject, Schema(json.dumps(schema), "AVRO")))
    except SchemaRegistryError as error:
        raise _failure(error.http_status_code, error.error_message, subject) from error
    except TransportError as error:
        raise RegistryUnavailable(
            f"the schema registry does not answer: {error}",
            hint="check registry.url; a producer needs the registry when it starts, not while it runs",
            subject=subject,
        ) from error
    LOG.info("registered", extra={"subject": subject, "number": number, "compatibility_was": level or "the registry's"})
    return number


def _properties(config: Config) -> dict[str, str | int]:
    """The client's properties, numbers converted. Errors never show the URL: it may hold a password."""
    url = config.registry.url.get_secret_value()
    if not all(one.strip().startswith(("http://", "https://")) for one in url.split(",")):
        raise ConfigError("a URL is not http(s)://host:port/path", option="registry.url")
    given: dict[str, str | int] = {"url": url}
    for name, value in present(config.registry.properties).items():
        if name in _NUMBERS and not value.isdecimal():
            raise ConfigError("a property is not a number", option="registry.properties", property=name)
        given[name] = int(value) if name in _NUMBERS else value
    return given


def _level(client: Any, subject: str, failed: type[Any]) -> str | None:
    """The subject's own compatibility; None if it has none or does not exist."""
    try:
        return str(client.get_compatibility(subject))
    except failed as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise


def _failure(status: int, message: str, subject: str) -> ConnectorError:
    if status == _INCOMPATIBLE:
        return PreflightError(
            f"the schema registry refuses the fragment schema as incompatible: {message}",
            hint="a newer producer registered an incompatible version, or another program uses the subject",
            subject=subject,
        )
    if status >= _SERVER or status == _BUSY:
        return RegistryUnavailable(f"the schema registry failed: {message}", hint="", status=status, subject=subject)
    return PreflightError(
        f"the schema registry refuses access: {message}",
        hint="check registry.url, registry.properties and the user's rights in the registry",
        status=status,
        subject=subject,
    )
