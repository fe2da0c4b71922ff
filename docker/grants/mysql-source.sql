-- The least rights on a MySQL that is the source. Run by an administrator; replace 'change me', and `shop` by the captured
-- schemas, a GRANT for each (*.* if source.filters.do is empty). Leave out the sections that you do not need.

-- [user]
CREATE USER 'thl'@'%' IDENTIFIED BY 'change me';

-- [log] Always: the binary log, its files, and the replicas that are registered.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'thl'@'%';

-- [tables] Always: the tables' definitions; for loads and thl verify also their rows.
GRANT SELECT ON `shop`.* TO 'thl'@'%';

-- [loads] The initial load, source.snapshot.lock: brief, and tables without a primary key: FLUSH TABLES WITH READ LOCK, and the
-- XA transactions that are prepared. Without it: --start now, earliest, a GTID set or file:position.
GRANT FLUSH_TABLES, XA_RECOVER_ADMIN ON *.* TO 'thl'@'%';

-- [loads before MySQL 8.0.23] Instead of [loads]; from 8.0 on with XA_RECOVER_ADMIN, as there.
GRANT RELOAD ON *.* TO 'thl'@'%';

-- [heartbeats] source.heartbeat_table in a schema of its own, which an administrator has created. Its SELECT is that of [tables].
GRANT SELECT, INSERT, DELETE, CREATE ON `thl_heartbeats`.* TO 'thl'@'%';
