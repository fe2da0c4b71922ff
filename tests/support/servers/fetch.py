"""`python -m tests.support.servers.fetch [NAME…]`: fetches servers; default: those that only tests need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from connector.fetching import fetch
from connector.fetching.mariadb_programs import mariadb_folder
from tests.schemas.packages import scripts
from tests.support.servers.chromium import chromium_folder
from tests.support.servers.kafka_tools import kafka_tools_jar
from tests.support.servers.kubernetes_schemas import RELEASES, kubernetes_schema
from tests.support.servers.mariadb_client import mariadb_binlog
from tests.support.servers.mysql56 import mysql56_folder
from tests.support.servers.prometheus import prometheus_folder
from tests.support.servers.registry import registry_jar
from tests.support.servers.settings import MARIADB_OLDER

THINGS: Mapping[str, Callable[[], object]] = {
    "mariadb-binlog": mariadb_binlog,
    "mysql56": mysql56_folder,
    "registry": registry_jar,
    "kafka-tools": kafka_tools_jar,
}
# With what is fetched only by those who ask for it.
FETCHABLE: Mapping[str, Callable[[], object]] = {
    **fetch.THINGS,
    **THINGS,
    "an older mariadb": lambda: mariadb_folder(MARIADB_OLDER),
    "prometheus": prometheus_folder,
    "chromium": chromium_folder,
    "schemas": scripts,
    "kubernetes-schemas": lambda: kubernetes_schema(RELEASES[0]),
}


if __name__ == "__main__":
    sys.exit(fetch.fetch(sys.argv[1:] or list(THINGS), FETCHABLE))
