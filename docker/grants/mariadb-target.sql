-- The least rights on a MariaDB that is the target. Run by an administrator; replace 'change me', and `shop` by the databases
-- that the log has, a GRANT for each. ON *.* also gives rights on the server's own tables of users: avoid it.

-- [user]
CREATE USER 'thl'@'%' IDENTIFIED BY 'change me';

-- [tables] The applier's own database, and each database of the log; with target.history also
-- `shop__history`.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, CREATE VIEW, TRIGGER,
  CREATE TEMPORARY TABLES ON `thl`.* TO 'thl'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, CREATE VIEW, TRIGGER,
  CREATE TEMPORARY TABLES ON `shop`.* TO 'thl'@'%';

-- [ddl once] Which DDL statements were executed, by InnoDB's numbers of tables.
GRANT PROCESS ON *.* TO 'thl'@'%';

-- [session] Only if binlog_format is not ROW, or target.binary_log is false.
GRANT BINLOG ADMIN ON *.* TO 'thl'@'%';
