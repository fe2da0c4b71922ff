"""Every value of the binary log three ways: our reader, MySQL's `mysqlbinlog`, and what a SELECT said."""
