"""Sessions with a MySQL or MariaDB that is a target, the facts that they read, and the server's errors.

- `connection`: sessions with the server.
- `file_connection`: a connection that sends the file of LOAD DATA LOCAL.
- `errors`: MySQL's errors as the connector's.
- `grants`: the privileges of its user.
- `catalog_checks`: tables that cannot be replaced by upserts, or deleted from.
- `table_facts`: columns that the server itself computes or updates; a storage engine without transactions.
"""
