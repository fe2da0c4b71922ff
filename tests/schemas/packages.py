"""The packages whose programs' schemas are used, and what a MySQL client reads of their files.

They are fetched into the cache once, from one suite of the distribution, without their dependencies: nothing of them
runs.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from connector.errors import SandboxError
from connector.fetching.apt import unpack
from connector.fetching.cache import Cache

SUITE: Final = "bookworm"
_NAME: Final = f"schemas-{SUITE}-2"
# What is about the server and not the database, and the client's own way to read another file.
_OF_SERVER: Final = re.compile(
    r"(?im)^[ \t]*(?:use [`\w]+;|(?:create|drop) database\b[^;\n]*;|flush privileges;|source .*|call [\w.]+\(\);)"
    r"[ \t]*$"
)
_HEAD: Final = re.compile(r"\A\s*/\*.*?\*/", re.DOTALL)  # in which the client would take a DELIMITER for SQL
_CREATE: Final = re.compile(r"CREATE TABLE \$wpdb->(\w+) \(.*?\) \$charset_collate;", re.DOTALL)
_INSTALL: Final = "usr/share/dbconfig-common/data/{}/install/mysql"


def of_wordpress(text: str) -> str:
    """The statements in the strings of a PHP file; of a table that is in two of them the first."""
    found: dict[str, str] = {}
    for statement in _CREATE.finditer(text):
        found.setdefault(statement[1], statement[0].replace("$wpdb->", "wp_").replace("$max_index_length", "191"))
    return "\n".join(found.values()).replace("$charset_collate", "DEFAULT CHARACTER SET utf8mb4")


def of_cacti(text: str) -> str:
    """The statements without a mode that MySQL 8 lacks, which a function of theirs expects of a MySQL 9."""
    return text.replace("NO_AUTO_CREATE_USER,", "")


def of_request_tracker(text: str) -> str:
    """The statements with the name of a table quoted that is a word of MySQL 8."""
    return re.sub(r"\bGroups\b", "`Groups`", text)


def of_mediawiki(text: str) -> str:
    """The statements with the table options that its installer puts in."""
    return text.replace("/*$wgDBTableOptions*/", "ENGINE=InnoDB, DEFAULT CHARSET=binary")


@dataclass(frozen=True)
class Schema:
    """The schema of a program.

    Args:
        name: of its databases.
        package: the package.
        files: patterns of its files, in their order.
        charset: that of its database.
        made: makes the script of the files' text.
    """

    name: str
    package: str
    files: tuple[str, ...]
    charset: str = "utf8mb4"
    made: Callable[[str], str] = str


_KAMAILIO: Final = ("standard*", "[!is]*", "imc*", "s[!t]*")  # the first one has the table of all versions
_MEDIAWIKI: Final = (
    *("maintenance/tables-generated.sql", "maintenance/tables.sql"),
    "extensions-core/*/*/mysql/tables-generated.sql",
)
_ZABBIX: Final = ("schema", "images", "data")

SCHEMAS: Final = (
    Schema("bacula", "bacula-director-mysql", (_INSTALL.format("bacula-director-mysql"),), "latin1"),
    Schema("cacti", "cacti", ("usr/share/cacti/conf_templates/cacti.sql",), made=of_cacti),
    Schema("director", "icingaweb2-module-director", ("usr/share/icingaweb2/modules/director/schema/mysql.sql",)),
    Schema("ejabberd", "ejabberd", ("usr/share/ejabberd/sql/mysql.new.sql",)),
    Schema("freeradius", "freeradius-config", ("etc/freeradius/3.0/mods-config/sql/*/mysql/schema.sql",)),
    Schema("gammu", "gammu-smsd", ("usr/share/doc/gammu-smsd/examples/mysql.sql",)),
    Schema("icinga", "icinga2-ido-mysql", ("usr/share/icinga2-ido-mysql/schema/mysql.sql",), "latin1"),
    Schema("icingadb", "icingadb", ("usr/share/icingadb/schema/mysql/schema.sql",)),
    Schema("icingaweb", "icingaweb2", ("usr/share/icingaweb2/schema/mysql.schema.sql",)),
    Schema(
        "kamailio",
        "kamailio-mysql-modules",
        tuple(f"usr/share/kamailio/mysql/{one}.sql" for one in _KAMAILIO),
        "latin1",
    ),
    Schema("mediawiki", "mediawiki", tuple(f"usr/share/mediawiki/{one}" for one in _MEDIAWIKI), made=of_mediawiki),
    Schema("opendmarc", "opendmarc", (_INSTALL.format("opendmarc"),)),
    Schema("pdns", "pdns-backend-mysql", ("usr/share/pdns-backend-mysql/schema/schema.mysql.sql",)),
    Schema("phpmyadmin", "phpmyadmin", ("usr/share/phpmyadmin/sql/create_tables.sql",)),
    Schema("prelude", "libpreludedb7-mysql", ("usr/share/libpreludedb/classic/mysql.sql",)),
    Schema("roundcube", "roundcube-core", (_INSTALL.format("roundcube"),)),
    Schema("rsyslog", "rsyslog-mysql", (_INSTALL.format("rsyslog-mysql"),)),
    Schema("rt", "request-tracker5", ("usr/share/request-tracker5/etc/schema.mysql",), made=of_request_tracker),
    Schema("tango", "tango-db", ("usr/share/tango-db/create_db_tables.sql", _INSTALL.format("tango-db")), "latin1"),
    Schema("ttrss", "tt-rss", ("usr/share/tt-rss/schema/ttrss_schema_mysql.sql",)),
    Schema("wordpress", "wordpress", ("usr/share/wordpress/wp-admin/includes/schema.php",), made=of_wordpress),
    Schema("zabbix", "zabbix-server-mysql", tuple(f"usr/share/zabbix-server-mysql/{one}.sql.gz" for one in _ZABBIX)),
    Schema(
        "zoneminder", "zoneminder", tuple(f"usr/share/zoneminder/db/{one}.sql" for one in ("zm_create", "triggers"))
    ),
)


def scripts() -> dict[str, str]:
    """The scripts of all schemas, by name.

    Raises:
        SandboxError: a package cannot be fetched, or lacks a file.
    """
    folder = Cache().ensure(_NAME, _install)
    return {one.name: (folder / f"{one.name}.sql").read_text() for one in SCHEMAS}


def _install(folder: Path) -> None:
    packages = list(dict.fromkeys(one.package for one in SCHEMAS))
    with TemporaryDirectory(dir=folder.parent, prefix=".schemas.") as work:
        unpack(Path(work), _NAME, suite=SUITE, packages=packages, dependencies=False)
        for one in SCHEMAS:
            (folder / f"{one.name}.sql").write_text(_script(Path(work), one))


def _script(folder: Path, schema: Schema) -> str:
    files = [file for pattern in schema.files for file in sorted(folder.glob(pattern))]
    if not files:
        raise SandboxError(f"{schema.package} has none of {', '.join(schema.files)}")
    return _OF_SERVER.sub("", _HEAD.sub("", schema.made("\n".join(map(_text, files)))))


def _text(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
