"""Real schemas, from the packages of their programs, through a log to a MySQL or MariaDB target: `python -m`.

- `__main__`: runs them, and compares source and target.
- `packages`: the packages, which are fetched once, and their scripts.
- `rows`: rows, changes and DDL for tables of which nothing is known but their definition.
"""
