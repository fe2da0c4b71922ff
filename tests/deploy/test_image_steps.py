"""docker/Dockerfile, run: its context, its steps but apt's, and the installed package, in a folder instead of an image.

With this machine's Python, not the image's, and as this user. What apt installs, users, layers, the engine: not tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from connector.sandbox.ports import free_port
from tests.support.deployed import ROOT
from tests.support.producing import until
from tests.unit.deploy.test_image import ignored, stages

pytestmark = pytest.mark.long
PATHS = ("/opt/thl", "/opt/build", "/wheels", "/home/thl")


def context(folder: Path) -> None:
    """The build's context: what git has, without what .dockerignore leaves out."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for file in filter(None, files):
        if not ignored(file):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, folder / file)


def here(text: str, root: Path) -> str:
    """A step with the image's paths below a folder, and this machine's Python."""
    for path in PATHS:
        text = re.sub(rf"(?<![\w/]){path}(?![\w-])", str(root / path.lstrip("/")), text)
    return re.sub(r"(?<![\w/-])python(?= -m venv)", sys.executable, text)


def run(step: str, folder: Path, environ: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-ec", step], cwd=folder, env={**environ}, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, f"{step}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.mark.timeout(2400)
def test_the_steps_of_the_image_make_a_connector_that_serves(tmp_path: Path) -> None:
    build, last = stages()
    source, root = tmp_path / "context", tmp_path / "root"
    context(source)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    copied = tmp_path / "source"
    copied.mkdir()
    for name, rest in build:
        if name == "COPY":
            *files, place = rest.split()
            for file in files:
                target = copied / place / Path(file).name if place == "./" else copied / place
                shutil.copytree(source / file, target) if (source / file).is_dir() else shutil.copy(
                    source / file, target
                )
        elif name == "RUN" and "apt-get" not in rest:
            run(here(rest, root), copied, environ)
    variables = dict(re.findall(r"(\w+)=(\S+)", here(dict(last)["ENV"], root)))
    installed = {**environ, **variables, "PATH": variables["PATH"].replace("$PATH", environ["PATH"])}
    (copies,) = (rest.split() for name, rest in last if name == "COPY" and "--from" not in rest)
    shutil.copy(source / copies[-2], here(copies[-1], root))
    for name, rest in last:
        if name == "RUN" and "apt-get" not in rest:
            run(rest, tmp_path, installed)
    assert list(Path(installed["THL_CACHE"]).glob("spark-sql-kafka-*"))
    assert list(Path(installed["THL_CACHE"]).glob("spark-classes-*/spark.jsa"))

    thl = str(root / "opt/thl/bin/thl")
    outside = {**installed, "PYTHONPATH": ""}
    said = subprocess.run([thl, "--version"], cwd=tmp_path, env=outside, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("thl, version ")
    port = free_port()
    settings = [f"--set=serve.port={port}", "--set=kafka.bootstrap=127.0.0.1:1", "--set=source.host=127.0.0.9"]
    with subprocess.Popen([thl, "serve", *settings], cwd=tmp_path, env=outside, stderr=subprocess.DEVNULL) as served:
        try:
            until(lambda: fetched(port, "/healthz") == 200)
            assert fetched(port, "/") == 200
        finally:
            served.terminate()
    assert served.returncode == 0


def fetched(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except OSError as error:
        return getattr(error, "code", 0)
