-- The least rights on a MariaDB that is the source. Run by an administrator; replace 'change me', and `shop` by the captured
-- schemas, a GRANT for each (*.* if source.filters.do is empty). Leave out the sections that you do not need.

-- [user]
CREATE USER 'thl'@'%' IDENTIFIED BY 'change me';

-- [log] Always: the binary log and its files.
GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'thl'@'%';

-- [tables] Always: the tables' definitions; for loads and thl verify also their rows.
GRANT SELECT ON `shop`.* TO 'thl'@'%';

-- [loads] The initial load, and tables without a primary key: FLUSH TABLES WITH READ LOCK.
GRANT RELOAD ON *.* TO 'thl'@'%';

-- [lag] source.snapshot.max_replica_lag, if the source is a replica itself.
GRANT SLAVE MONITOR ON *.* TO 'thl'@'%';

-- [heartbeats] source.heartbeat_table in a schema of its own, which an administrator has created. Its SELECT is that of [tables].
GRANT SELECT, INSERT, DELETE, CREATE ON `thl_heartbeats`.* TO 'thl'@'%';
