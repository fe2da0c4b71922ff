-- The least rights on a MySQL that is the target. Run by an administrator; replace 'change me', and `shop` by the databases
-- that the log has, a GRANT for each. ON *.* also gives rights on the server's own tables of users: avoid it.

-- [user]
CREATE USER 'thl'@'%' IDENTIFIED BY 'change me';

-- [tables] The applier's own database, and each database of the log; with target.history also
-- `shop__history`.
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

-- [statements] Only with target.statements: execute. The second is for triggers whose definer is another user (before MySQL 8.2:
-- SET_USER_ID; a definer with SYSTEM_USER needs it, too); with a binary log the server also needs
-- log_bin_trust_function_creators=ON for them.
GRANT SELECT ON `performance_schema`.* TO 'thl'@'%';
GRANT SET_ANY_DEFINER ON *.* TO 'thl'@'%';
