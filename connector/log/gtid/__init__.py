"""GTID sets of MySQL and MariaDB.

- `gtid_range`: consecutive GTIDs, counted instead of parsed; compiled.
- `gtid_runs`: GTIDs that grow as their events' seqnos do, joined to ranges.
- `mysql`: MySQL's sets.
- `mariadb`: MariaDB's positions in each domain.
- `source_gtids`: either of them, chosen by the text's form.
"""
