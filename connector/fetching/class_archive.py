"""An archive of the classes that Spark's JVM loads when it starts: with it the JVM needs half the time.

`make` fills it: a JVM runs a small query (`connector.spark.training`) and writes its classes as it ends. `find_options`
finds it. A missing archive, or one that the JVM refuses, only makes the start slower.

An archive belongs to one Java and one class path. Its name in the cache is a digest of them, with the size and the time
of each jar.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from connector.errors import SandboxError
from connector.fetching.cache import Cache
from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from connector.fetching.maven import pyspark_jars

FILE: Final = "spark.jsa"
_ABOUT: Final = "about.json"
_PREFIX: Final = "spark-classes-"
_TRAINING: Final = "connector.spark.training"
_SECONDS: Final = 300  # for the training
_FORMAT: Final = 1  # to be raised when the training changes
_OTHER_SPARK: Final = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH")
# Or the JVM would write on standard output why it refuses an archive.
_QUIET: Final = "-Xlog:cds*=off"


@dataclass(frozen=True, slots=True)
class Key:
    """The Java and the class path that an archive belongs to.

    Args:
        java: the folder of Java.
        class_path: the part of the class path before Spark's own jars.
        spark: the folder of Spark's own jars.
    """

    java: str
    class_path: str
    spark: str

    @classmethod
    def here(cls, class_path: str, java: str) -> Self | None:
        """Return the key for this process's Spark; None without a Java, or if the environment names another Spark."""
        if not java or any(os.environ.get(name) for name in _OTHER_SPARK):
            return None
        return cls(os.path.realpath(java), class_path, str(pyspark_jars()))

    def name(self) -> str:
        """Return the archive's name in the cache.

        Raises:
            OSError: a file of Java or a jar is missing.
        """
        digest = hashlib.sha256(json.dumps([_FORMAT, asdict(self)]).encode())
        for file in self._files():
            found = file.stat()
            digest.update(f"{file}\0{found.st_size}\0{int(found.st_mtime)}\n".encode())
        return _PREFIX + digest.hexdigest()[:16]

    def _files(self) -> Iterator[Path]:
        yield Path(self.java, "lib", "modules")
        yield from (Path(part) for part in self.class_path.split(os.pathsep) if part)
        yield from sorted(Path(self.spark).iterdir())


def find_options(class_path: str) -> tuple[str, ...]:
    """Return the options by which the JVM of JAVA_HOME uses the archive; none if there is no archive for it.

    Args:
        class_path: the part of the class path before Spark's own jars.
    """
    try:
        key = Key.here(class_path, os.environ.get("JAVA_HOME", ""))
        if key is None:
            return ()
        archive = Cache().path(key.name()) / FILE
        usable = os.access(archive, os.R_OK) and archive.stat().st_size == _about(archive.parent)["size"]
    except (OSError, SandboxError, ValueError, TypeError, KeyError):
        return ()
    return options(archive) if usable else ()


def options(archive: Path) -> tuple[str, ...]:
    """Return the JVM's options to use an archive, and to say nothing if it does not fit."""
    return f"-XX:SharedArchiveFile={archive}", _QUIET


def make() -> Path:
    """Return the archive for Spark with its Kafka connector; make it first if it is missing.

    This takes 20 seconds and 1 GB of memory. Archives whose Java or jars have changed are removed.

    Raises:
        SandboxError: Java or the jars are missing, the cache cannot be written, or this Java makes no archive.
    """
    jars = spark_kafka_jars()
    key = Key.here(os.pathsep.join(map(str, jars)), str(java_home()))
    if key is None:
        raise SandboxError(f"no archive of classes is made while one of {', '.join(_OTHER_SPARK)} is set")

    def install(folder: Path) -> None:
        _train(folder / FILE, key)
        # The JVM does not check the size: it would crash in a shorter file.
        about = {"size": (folder / FILE).stat().st_size, "key": asdict(key)}
        (folder / _ABOUT).write_text(json.dumps(about))

    cache = Cache()
    try:
        archive = cache.ensure(key.name(), install) / FILE
        _remove_outdated(cache.folder)
    except OSError as error:
        raise SandboxError(f"the archive of Spark's classes cannot be written: {error}", folder=cache.folder) from error
    return archive


def _train(archive: Path, key: Key) -> None:
    """Run the training; a JVM that is killed while it writes leaves a part, which is not used."""
    command = [sys.executable, "-P", "-m", _TRAINING, key.class_path]
    command += [f"-XX:ArchiveClassesAtExit={archive}", _QUIET]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "JAVA_HOME": key.java},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"Spark's classes were not archived in {_SECONDS} s") from error
    if done.returncode or not archive.is_file():
        said = "\n".join(done.stdout.splitlines()[-5:])
        raise SandboxError(f"Spark's classes could not be archived: Spark starts slower\n{said}")
    with archive.open("rb") as written:  # the JVM checks only the header: no crash may leave empty pages after it
        os.fsync(written.fileno())


def _remove_outdated(folder: Path) -> None:
    for old in folder.glob(f"{_PREFIX}*"):
        try:
            current = Key(**_about(old)["key"]).name() == old.name
        except (OSError, ValueError, TypeError, KeyError):
            current = False
        if not current:
            shutil.rmtree(old, ignore_errors=True)


def _about(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((folder / _ABOUT).read_text())
    return about
