"""Our schema in a registry with Confluent's API: asked once, when a producer starts, never while it runs.

The subject is `<topic>-value`, as TopicNameStrategy names it, which is what serializers take that are told nothing. Its
compatibility is FULL_TRANSITIVE: a log is read by programs older and newer than those that wrote it, and holds what
several versions wrote. So the registry refuses a version that breaks what docs/consuming.md promises.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from connector.addresses import on_this_machine
from connector.config.model import Config, Registry
from connector.errors import ConfigError, ConnectorError, PreflightError, RegistryUnavailable

LOG: Final = logging.getLogger(__name__)
COMPATIBILITY: Final = "FULL_TRANSITIVE"
_NOT_FOUND: Final = 404
_INCOMPATIBLE: Final = 409
_SERVER: Final = 500  # it, and what is above, is said of the registry and not of what was asked
_BUSY: Final = 429
_NUMBERS: Final = frozenset(("cache.capacity", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "timeout"))


def subject_of(config: Config) -> str:
    """The name under which the event topic's schema is registered."""
    return f"{config.topic}-value"


def unverified(registry: Registry) -> str:
    """Why a password that is sent to the registry can be read by others, as a sentence; "": it cannot."""
    for url in registry.url.get_secret_value().split(","):
        secret = "@" in url or any("auth" in name for name in registry.properties)
        if secret and url.strip().startswith("http://"):
            host, _, _ = url.strip().removeprefix("http://").split("/")[0].rpartition("@")[2].partition(":")
            if not on_this_machine(host):
                return f"the password for the schema registry at {host} crosses the network without TLS: registry.url"
    return ""


def registered_number(config: Config, schema: dict[str, Any]) -> int:
    """Register the schema, and make sure that only compatible ones follow.

    Args:
        config: the service and its registry.
        schema: of fragments.

    Returns:
        The schema's number in the registry: the same however often one asks.

    Raises:
        RegistryUnavailable: it does not answer.
        PreflightError: it refuses us, or the schema: the subject has one that does not go with it.
        ConfigError: what speaks to registries is not installed, or its properties are wrong.
    """
    try:
        # With all that they import these cost a third of a second, and are not in every installation.
        from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # noqa: PLC0415
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415
        from httpx2 import TransportError  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"registry.url is set, and what speaks to registries is not installed: {error.name}",
            hint="pip install 'thl-connector[registry]'",
        ) from error
    subject = subject_of(config)
    given = _properties(config)
    try:
        client = SchemaRegistryClient(given)
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(f"registry.properties: {error}") from error
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
            hint="registry.url; a producer that runs does not need it, one that starts does",
            subject=subject,
        ) from error
    LOG.info("registered", extra={"subject": subject, "number": number, "compatibility_was": level or "the registry's"})
    return number


def _properties(config: Config) -> dict[str, str | int]:
    """What the client wants: some as numbers, and an address that it has nothing to say about: that may be secret."""
    url = config.registry.url.get_secret_value()
    if not all(one.strip().startswith(("http://", "https://")) for one in url.split(",")):
        raise ConfigError("registry.url: not http(s)://host:port/path")
    given: dict[str, str | int] = {"url": url}
    for name, value in config.registry.properties.items():
        if name in _NUMBERS and not value.isdecimal():
            raise ConfigError(f"registry.properties: {name} is not a number")
        given[name] = int(value) if name in _NUMBERS else value
    return given


def _level(client: Any, subject: str, failed: type[Any]) -> str | None:
    """The subject's own compatibility; None: it has none, or is not there."""
    try:
        return str(client.get_compatibility(subject))
    except failed as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise


def _failure(status: int, message: str, subject: str) -> ConnectorError:
    if status == _INCOMPATIBLE:
        return PreflightError(
            f"the schema registry refuses our schema, which does not go with one that it has: {message}",
            hint="a newer producer has registered a version that breaks the promise, or the subject is someone else's",
            subject=subject,
        )
    if status >= _SERVER or status == _BUSY:
        return RegistryUnavailable(f"the schema registry failed: {message}", hint="", status=status, subject=subject)
    return PreflightError(
        f"the schema registry refuses us: {message}",
        hint="registry.url and registry.properties, and what the registry allows this user",
        status=status,
        subject=subject,
    )
