"""The jars of Kafka, and those by which Spark reads it."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from connector.fetching import maven
from connector.fetching.versions import KAFKA, KAFKA_VERSION, SPARK_KAFKA_GROUP, SPARK_KAFKA_NAME, Artifact


def kafka_jars() -> list[Path]:
    """Return the jars of a broker.

    Raises:
        SandboxError: the jars are not in the cache and cannot be fetched.
    """
    return maven.fetch(f"kafka-{KAFKA_VERSION}", KAFKA)


def spark_kafka_jars() -> list[Path]:
    """Return Spark's Kafka connector and its dependencies without those that pyspark has, for `spark.jars`.

    Raises:
        SandboxError: the jars are not in the cache and cannot be fetched.
    """
    connector = Artifact(SPARK_KAFKA_GROUP, SPARK_KAFKA_NAME, version("pyspark"))
    there = {_name(jar) for jar in maven.pyspark_jars().glob("*.jar")}
    jars = maven.fetch(f"{connector.name}-{connector.version}", [connector])
    return [jar for jar in jars if _name(jar) not in there]


def _name(jar: Path) -> str:
    """Return a jar's artifact name: everything before the first part that starts with a digit."""
    return re.split(r"-(?=\d+[.\d]*)", jar.stem, maxsplit=1)[0]
