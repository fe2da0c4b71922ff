"""The programs of MariaDB that its jar lacks, from the distribution."""

from __future__ import annotations

from connector.fetching.apt import UnpackedPackages, unpack
from connector.fetching.cache import Cache
from tests.support.servers.settings import MARIADB_CLIENT_PACKAGES, MARIADB_CLIENT_SUITE


def mariadb_binlog() -> list[str]:
    """The command prefix of `mariadb-binlog`, which is not in the jar.

    Raises:
        SandboxError: when the distribution's packages cannot be had.
    """
    name = f"mariadb-client-{MARIADB_CLIENT_SUITE}"
    folder = Cache().ensure(
        name, lambda at: unpack(at, name, suite=MARIADB_CLIENT_SUITE, packages=MARIADB_CLIENT_PACKAGES)
    )
    return UnpackedPackages(folder).command("usr/bin/mariadb-binlog")
