"""Prometheus and its `promtool`, from the distribution."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from connector.errors import SandboxError
from connector.fetching.apt import unpack
from connector.fetching.cache import Cache
from connector.sandbox.ports import free_port
from tests.support.producing import until

SUITE: Final = "bookworm"  # Prometheus 2.42
NAME: Final = f"prometheus-{SUITE}"


def prometheus_folder() -> Path:
    """The folder with the unpacked packages.

    Raises:
        SandboxError: the distribution's packages cannot be fetched.
    """
    return Cache().ensure(NAME, lambda at: unpack(at, NAME, suite=SUITE, packages=["prometheus"]))


def prometheus(program: str) -> list[str]:
    """The command prefix of `prometheus` or `promtool`.

    Raises:
        SandboxError: the distribution's packages cannot be fetched.
    """
    return [str(prometheus_folder() / "usr" / "bin" / program)]  # needs the C library alone


class Prometheus:
    """A running Prometheus, which scrapes ports of this machine every second.

    Args:
        folder: of its files.
        port: its own.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port

    def scrape(self, job: str, *ports: int) -> None:
        """Scrape these ports as a job from now on, and no others."""
        found = [{"targets": [f"127.0.0.1:{port}" for port in ports], "labels": {"job": job}}]
        written = self._folder / f"{job}.new"
        written.write_text(json.dumps(found))
        written.rename(self._folder / f"{job}.json")  # it looks at once, and never at a part of it

    def query(self, text: str) -> list[dict[str, Any]]:
        """The series that a query finds now."""
        found: list[dict[str, Any]] = self._answer("query", query=text)["result"]
        return found

    def firing(self) -> list[dict[str, Any]]:
        """The alerts that fire; those that wait for their time are not among them."""
        return [one for one in self._answer("alerts")["alerts"] if one["state"] == "firing"]

    def pending(self) -> list[dict[str, Any]]:
        """The alerts that wait for their time."""
        return [one for one in self._answer("alerts")["alerts"] if one["state"] == "pending"]

    def _answer(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.loads(answer.read())["data"]

    def is_ready(self) -> bool:
        """True once it answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def scraping(folder: Path, rules: Path) -> Iterator[Prometheus]:
    """A Prometheus with a file of rules, which it evaluates every second; it scrapes nothing yet."""
    try:
        command = prometheus("prometheus")
    except SandboxError as error:
        pytest.skip(f"no Prometheus can be had: {error.message}")
    folder.mkdir(exist_ok=True)
    found = Prometheus(folder, port := free_port())
    document = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "files", "file_sd_configs": [{"files": [f"{folder}/*.json"]}]}],
        "rule_files": [str(rules)],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(document))
    options = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *options, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
        )
    try:
        until(found.is_ready)
        yield found
    finally:
        process.terminate()
        process.wait(30)
