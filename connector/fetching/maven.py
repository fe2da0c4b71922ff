"""Fetches jars and other files from Maven repositories, with the Ivy resolver that pyspark contains."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element, SubElement, tostring

from connector.errors import SandboxError
from connector.fetching import checksums
from connector.fetching.cache import Cache
from connector.fetching.java import java_home
from connector.fetching.versions import Artifact

_MAVEN = "http://ant.apache.org/ivy/maven"  # the namespace of attributes that Ivy's own files lack
# Fetches one file of a module without its POM and parent POMs, which need not exist.
_AS_IT_IS = """<ivysettings><settings defaultResolver="maven"/><resolvers>
<ibiblio name="maven" m2compatible="true" usepoms="false"/></resolvers></ivysettings>"""
_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


def fetch(name: str, artifacts: Sequence[Artifact], *, transitive: bool = True) -> list[Path]:
    """Return the files of artifacts, mostly jars, from the cache; fetch them first if they are missing.

    Args:
        name: name of the folder in the cache.
        artifacts: coordinates with versions; "latest" is never resolved.
        transitive: include the dependencies at run time.

    Raises:
        SandboxError: the files cannot be fetched (the message has the resolver's last lines), or a checksum differs.
    """

    def install(folder: Path) -> None:
        _retrieve(folder, artifacts, transitive=transitive)
        for file in folder.iterdir():
            checksums.check(file, f"{name}/{file.name}")

    folder = Cache().ensure(name, install)
    return sorted(folder.iterdir())


def _retrieve(folder: Path, artifacts: Sequence[Artifact], *, transitive: bool) -> None:
    with TemporaryDirectory(dir=folder.parent, prefix=".ivy.") as work:
        description = Path(work, "ivy.xml")
        description.write_bytes(_description(artifacts, transitive=transitive))
        command: list[str | Path] = [java_home() / "bin" / "java", "-jar", _ivy(), "-cache", Path(work, "cache")]
        # An Ivy settings file can name a mirror.
        settings = os.environ.get("THL_IVY_SETTINGS")
        if settings is None and all(artifact.classifier for artifact in artifacts):
            settings = str(Path(work, "settings.xml"))
            Path(settings).write_text(_AS_IT_IS)
        if settings:
            command += ["-settings", settings]
        command += ["-ivy", description, "-retrieve", folder / _PATTERN]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode or not any(folder.iterdir()):
        said = "\n".join(done.stdout.splitlines()[-15:])
        raise SandboxError(
            f"{', '.join(map(str, artifacts))} could not be fetched\n{said}",
            hint="is a Maven repository reachable? THL_IVY_SETTINGS can name an Ivy settings file with a mirror",
        )


def _description(artifacts: Sequence[Artifact], *, transitive: bool) -> bytes:
    """Return the Ivy file. `default->default` means an artifact and its dependencies at run time."""
    module = Element("ivy-module", version="2.0")
    SubElement(module, "info", organisation="sandbox", module="sandbox")
    SubElement(SubElement(module, "configurations"), "conf", name="default")
    dependencies = SubElement(module, "dependencies")
    for artifact in artifacts:
        dependency = SubElement(
            dependencies,
            "dependency",
            org=artifact.group,
            name=artifact.name,
            rev=artifact.version,
            conf="default->default",
            transitive=str(transitive).lower(),
        )
        if artifact.classifier:
            kind = {
                "type": artifact.extension,
                "ext": artifact.extension,
                f"{{{_MAVEN}}}classifier": artifact.classifier,
            }
            SubElement(dependency, "artifact", {"name": artifact.name, **kind})
    return tostring(module)


def _ivy() -> Path:
    jars = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not jars:
        raise SandboxError("the installed pyspark has no Ivy resolver", folder=pyspark_jars())
    return jars[-1]


def pyspark_jars() -> Path:
    """Return the folder with the jars of the installed pyspark, without importing pyspark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SandboxError("pyspark is not installed", hint="make build")
    return Path(spec.origin).parent / "jars"
