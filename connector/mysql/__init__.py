"""MySQL and MariaDB: their binary log, values, catalogue and behaviour."""
