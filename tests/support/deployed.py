"""A process as a deployment starts it: read by the command line's own parser and the configuration's own loader."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from connector import cli, errors
from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.kafka.transactions import PATIENCE
from connector.producer.producer import GRACE
from tests.unit.commands.test_earlier_forms import parsed

ROOT: Final = Path(__file__).parents[2]
DOCKER: Final = ROOT / "docker"
SECRET: Final = "a secret of some length"
STOPS: Final = GRACE + PATIENCE  # seconds after SIGTERM within which a producer ends, if Kafka answers late


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a deployment.

    Args:
        words: the command's name and its options, as `thl` gets them.
        environ: variables that the deployment sets.
        files: path → text of the configuration files that it puts there.
        secrets: path → text of the secrets that it puts there.
    """

    words: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command's name."""
        return self.words[0]

    def options(self) -> dict[str, Any]:
        """The options, as the command line's own parser reads them; it refuses unknown ones."""
        assert self.command in cli.COMMANDS
        return parsed(" ".join(f"'{word}'" for word in self.words))

    def config(self, folder: Path) -> Config:
        """The configuration, as the loader reads it below a folder that stands for the root folder."""
        for path, text in {**self.files, **self.secrets}.items():
            file = folder / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._below(text, folder))
        options = self.options()
        named = options["files"][0] if self.command == "serve" else options["config_file"]
        file = Path(self._below(str(named), folder))
        assert file.is_file(), f"{named} is not there"
        environ = {name: self._below(value, folder) for name, value in self.environ.items()}
        return load(file, environ, tuple(self._below(one, folder) for one in options["sets"]))

    def _below(self, text: str, folder: Path) -> str:
        """A text in which each path of a file of the deployment is one below a folder."""
        for path in sorted({*self.files, *self.secrets}, key=len, reverse=True):
            text = text.replace(path, str(folder / path.lstrip("/")))
        return text


def errors_of_commands() -> Iterator[type[ConnectorError]]:
    """Every error of this package."""
    for _, one in inspect.getmembers(errors, inspect.isclass):
        if issubclass(one, ConnectorError):
            yield one


def another_start_ends_alike() -> set[int]:
    """The exit codes after which another start ends the same way; after that of Spark's end it does not."""
    gone = errors.SparkGone.exit_code
    return {one.exit_code for one in errors_of_commands() if not one.retry} - {gone}
