-- Run by the mysql client as root on an empty MySQL 9.7 with the sandbox's settings; see README.md.
RESET BINARY LOGS AND GTIDS;
SET timestamp = 1700000000;
CREATE DATABASE shop;
CREATE TABLE shop.t (
  id bigint unsigned PRIMARY KEY, a int, d decimal(20,5), f double, s varchar(40), l varchar(10) CHARACTER SET latin1,
  b varbinary(20), at datetime(6), ts timestamp(3) NULL, e enum('x','y'), m set('p','q','r'), j json, bt bit(9)
);
INSERT INTO shop.t VALUES
  (1, -7, 12.5, 0.1, 'héllo', 'é€', x'00ff', '2024-02-29 01:02:03.000004', '2023-11-14 22:13:20.5', 'y', 'p,r',
   '{"a": [1, 2.5, null, true, "x"], "big": 12345678901}', b'100000001'),
  (18446744073709551615, NULL, -0.00001, -1e300, '', '', '', '0001-01-01', NULL, NULL, '', '[]', b'0');
UPDATE shop.t SET a = a + 1, j = JSON_SET(j, '$.a[0]', 100) WHERE id = 1;
BEGIN;
DELETE FROM shop.t WHERE id = 1;
SAVEPOINT s;
INSERT INTO shop.t (id, s) VALUES (3, 'kept');
COMMIT;
SET SESSION binlog_transaction_compression = ON;
INSERT INTO shop.t (id, s) VALUES (4, 'compressed');
SET SESSION binlog_transaction_compression = OFF, gtid_next = 'AUTOMATIC:tagged';
INSERT INTO shop.t (id, s) VALUES (5, 'tagged');
SET gtid_next = 'AUTOMATIC', SESSION binlog_rows_query_log_events = ON;
DELETE FROM shop.t WHERE id = 5;
DROP TABLE shop.t;
FLUSH BINARY LOGS;
