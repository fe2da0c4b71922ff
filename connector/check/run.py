"""Runs all checks, those of different servers side by side."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from connector.check.java import check_java
from connector.check.result import Check
from connector.check.servers import check_kafka, check_source, check_target_server
from connector.config import Config


def check(config: Config, environ: Mapping[str, str]) -> list[Check]:
    """Check source, grants, Kafka, target and Java.

    Args:
        config: the configuration.
        environ: the environment, for Java.

    Returns:
        At least one result for each, in this order.
    """
    with ThreadPoolExecutor(max_workers=4) as pool:
        kafka = pool.submit(check_kafka, config)
        target = pool.submit(check_target_server, config)
        java = pool.submit(check_java, environ)
        # The source is asked last: the privileges that it needs depend on whether a log exists.
        results, log_exists = kafka.result()
        source = check_source(config, log_exists=log_exists)
        return [*source, *results, *target.result(), java.result()]
