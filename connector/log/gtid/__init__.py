"""GTID sets of MySQL and MariaDB.

- `gtid_range`: consecutive GTIDs, counted instead of parsed; compiled.
- `mysql`: MySQL's sets.
- `mariadb`: MariaDB's positions in each domain.
- `source_gtids`: either of them, chosen by the text's form.
"""
