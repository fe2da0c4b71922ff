"""The servers that only tests use, and their parts.

environment, compose      the servers of the fixtures: the sandbox's, or those of docker/compose.yaml
mysql56, registry         servers that tests start themselves
spark_cluster             a Spark master with workers
mariadb_client            programs of MariaDB that its jar lacks
settings                  ports, versions, server settings
fetch                     `python -m`: puts all of it into the cache
"""
