-- The least rights on a MySQL that is the target. Run by an administrator; replace 'change me', and `shop` by the databases
-- that the log has, a GRANT for each. ON *.* also gives rights on the server's own tables of users: avoid it.

-- [user]
CREATE USER 'thl'@'%' IDENTIFIED BY 'change me';

-- [tables] The applier's own database, and each database of the log.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, CREATE VIEW, TRIGGER,
  CREATE TEMPORARY TABLES ON `thl`.* TO 'thl'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, CREATE VIEW, TRIGGER,
  CREATE TEMPORARY TABLES ON `shop`.* TO 'thl'@'%';

-- [ddl once] Which DDL statements were executed: with gtid_mode=ON by GTIDs, else by InnoDB's numbers of tables.
GRANT REPLICATION_APPLIER ON *.* TO 'thl'@'%';
GRANT PROCESS ON *.* TO 'thl'@'%';

-- [session] Only if binlog_format is not ROW, target.binary_log is false, sql_require_primary_key or
-- sql_generate_invisible_primary_key is ON, or explicit_defaults_for_timestamp or default_collation_for_utf8mb4 are not those of the
-- source's statements.
GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'thl'@'%';
