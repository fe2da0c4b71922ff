"""The services that `thl serve` shows: each is one log, and the targets of the configurations that name it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.config.model import Config
from connector.config.target_url import address_of
from connector.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ServedTarget:
    """A target of a service.

    Args:
        name: `target.id`; where that is empty `target`, or the configuration's number if the service has several.
        config: the configuration that names it.
        file: the file of that configuration; None: the default, or the environment alone.
    """

    name: str
    config: Config
    file: Path | None

    @property
    def address(self) -> str:
        """The target without user, password and parameters."""
        return address_of(self.config.target.url.get_secret_value())


@dataclass(frozen=True, slots=True)
class ServedService:
    """A service.

    Args:
        targets: at least one; the first one's configuration names the source.
    """

    targets: tuple[ServedTarget, ...]

    @property
    def config(self) -> Config:
        """The configuration that names the source."""
        return self.targets[0].config

    @property
    def name(self) -> str:
        """The service's name."""
        return self.config.service

    @property
    def source(self) -> str:
        """The source's address."""
        return f"{self.config.source.host}:{self.config.source.port}"


def served_services(given: Sequence[tuple[Path | None, Config]]) -> list[ServedService]:
    """Return the services of some configurations; those of one service are its targets.

    Raises:
        ConfigError: two configurations of one service name other logs, or the same target.
    """
    by_name: dict[str, list[tuple[Path | None, Config]]] = {}
    for file, config in given:
        by_name.setdefault(config.service, []).append((file, config))
    return [_service(name, group) for name, group in by_name.items()]


def _service(name: str, group: Sequence[tuple[Path | None, Config]]) -> ServedService:
    logs = {(config.kafka.bootstrap, config.topic) for _, config in group}
    if len(logs) > 1:
        raise ConfigError.of_fields(
            f"two configurations name the service {name}, with different logs",
            {"service": None, "kafka.bootstrap": None},
            hint="give each log a service name of its own",
        )
    targets: list[ServedTarget] = []
    for number, (file, config) in enumerate(group, 1):
        target = ServedTarget(config.target.id or (str(number) if len(group) > 1 else "target"), config, file)
        if any(target.name == one.name for one in targets):
            raise ConfigError.of_fields(
                f"two configurations of the service {name} have the target.id {target.name}",
                {"target.id": None},
                hint="give each target of a service a target.id of its own",
            )
        targets.append(target)
    return ServedService(tuple(targets))
