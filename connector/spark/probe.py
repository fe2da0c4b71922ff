"""Describes a Python process: its version, this package, its libraries, whether it reaches the brokers.

`connector.spark.executors` calls `describe` in the driver, and sends it by value to executors, which may lack this
package. So it imports what it uses itself, and its result has only plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any


def task(
    modules: Sequence[str], libraries: Mapping[str, str], log: Mapping[str, str]
) -> Callable[[Iterable[int]], Iterator[dict[str, Any]]]:
    """Return the function for a task of Spark that yields `describe` of its process."""

    def run(_: Iterable[int]) -> Iterator[dict[str, Any]]:
        yield describe(modules, libraries, log)

    return run


def describe(modules: Sequence[str], libraries: Mapping[str, str], log: Mapping[str, str] | None) -> dict[str, Any]:
    """Describe this process.

    Args:
        modules: modules of this package that must be importable, compiled ones among them.
        libraries: module → distribution, for those whose version is reported.
        log: options of the format `thl` that name a log, whose brokers are asked for the ends of its partitions; None:
            they are not asked.

    Returns:
        host, folder (the working directory, by which executors differ), executable, python (version), missing (modules
        that cannot be imported → reason), package (version and digest of the Python files), libraries (distribution →
        version), brokers (the reason why they cannot be reached, or "").
    """
    import hashlib
    import importlib
    import platform
    import socket
    import sys
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    def installed(distribution: str) -> str:
        try:
            return version(distribution)
        except PackageNotFoundError:
            return "unknown"

    missing: dict[str, str] = {}
    for module in ("connector", *libraries, *modules):
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 (an import can raise anything; it is reported)
            missing[module] = f"{type(error).__name__}: {error}"
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "folder": str(Path.cwd()),
        "executable": sys.executable,
        "python": platform.python_version(),
        "missing": missing,
        "package": "",
        "libraries": {name: installed(name) for name in libraries.values()},
        "brokers": "",
    }
    if missing:
        return found
    root = Path(str(importlib.import_module("connector").__file__)).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    framing = importlib.import_module("connector.log.format.framing")
    found["package"] = f"{installed('thl-connector')}, format {framing.FINGERPRINT}, files {digest.hexdigest()[:12]}"
    if log is not None:
        found["brokers"] = unreachable(log)
    return found


def unreachable(log: Mapping[str, str]) -> str:
    """Ask the brokers for the ends of a log's partitions, as a task that reads them does.

    Args:
        log: options of the format `thl` that name the log.

    Returns:
        The reason why that fails; "" if it does not, or there is no log yet.
    """
    from connector.errors import ConnectorError
    from connector.kafka.log_reader import LogReader
    from connector.spark.source.options import Options

    config = Options.read(log).config
    try:
        with LogReader(config, patience=5.0, role="probe") as reader:
            for partition in range(reader.partitions(config.topic)):
                reader.bounds(partition)
    except ConnectorError as error:
        return error.located
    return ""
