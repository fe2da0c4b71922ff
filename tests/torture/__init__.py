"""Every value of the binary log three ways: the connector, MySQL's `mysqlbinlog`, and a SELECT."""
