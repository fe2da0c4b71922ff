"""A JVM in which `thl apply` processes start Spark, one after the other: it starts once, and each has a new context."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from connector.spark.settings import LOG4J, jvm_options
from tests.support.clock import PATIENCE


class WarmJvm:
    """The JVM.

    Attributes:
        environ: has a process use it, as Spark's own launcher has its Python programs do.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        java = gateway.java_parameters
        self.environ = {"PYSPARK_GATEWAY_PORT": str(java.port), "PYSPARK_GATEWAY_SECRET": java.auth_token}

    def stop_context(self) -> None:
        """Stop the context that a killed process has left: a JVM has one at a time."""
        self._gateway.jvm.org.apache.spark.SparkContext.getOrCreate().stop()


@contextmanager
def warm_jvm(folder: Path) -> Iterator[WarmJvm]:
    """Start a JVM as `connector.spark.session` does; it ends with the context."""
    folder.mkdir()
    log4j = folder / "log4j2.properties"
    log4j.write_text(LOG4J)
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.driver.memory", "512m")
    conf.set("spark.driver.extraClassPath", ":".join(map(str, spark_kafka_jars())))
    conf.set("spark.driver.extraJavaOptions", jvm_options(log4j, folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java_home()))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        gateway: Any = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
    try:
        yield WarmJvm(gateway)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(PATIENCE)
