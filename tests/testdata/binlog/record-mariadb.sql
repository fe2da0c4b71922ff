-- Run by the mariadb client as root on an empty MariaDB 11.4 with the sandbox's settings; see README.md.
RESET MASTER;
SET timestamp = 1700000000, time_zone = '+00:00';
CREATE DATABASE shop CHARACTER SET utf8mb4;
CREATE TABLE shop.t (
  id bigint unsigned PRIMARY KEY, a int, d decimal(20,5), s varchar(40) COLLATE utf8mb4_uca1400_ai_ci,
  l varchar(10) CHARACTER SET latin1, b varbinary(20), at datetime(6), ts timestamp(3) NULL, e enum('x','y'),
  m set('p','q','r'), j json, bt bit(9), u uuid, c text COMPRESSED, g point
);
INSERT INTO shop.t VALUES
  (1, -7, 12.5, 'héllo', 'é€', x'00ff', '2024-02-29 01:02:03.000004', '2023-11-14 22:13:20.5', 'y', 'p,r',
   '{"a": [1, 2.5]}', b'100000001', '123e4567-e89b-12d3-a456-426655440000', REPEAT('z', 300), POINT(1, 2)),
  (18446744073709551615, NULL, -0.00001, '', '', '', '0001-01-01', NULL, NULL, '', '[]', b'0', NULL, '', NULL);
UPDATE shop.t SET a = a + 1 WHERE id = 1;
SET SESSION gtid_domain_id = 7;
DELETE FROM shop.t WHERE id > 1;
SET SESSION gtid_domain_id = 0;
CREATE TABLE shop.m (id int PRIMARY KEY) ENGINE = MyISAM;
INSERT INTO shop.m VALUES (1);
SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10;
INSERT INTO shop.t (id, s, c) VALUES (3, REPEAT('q', 40), NULL), (4, REPEAT('q', 40), REPEAT('y', 99)),
  (5, REPEAT('q', 40), REPEAT('x', 99)), (6, REPEAT('q', 40), REPEAT('w', 99));
UPDATE shop.t SET s = 'é' WHERE id > 2;
DELETE FROM shop.t WHERE id > 2;
CREATE TABLE shop.c (a int COMMENT 'a long definition is compressed too............................................................') AS SELECT 1 AS a;
SET GLOBAL log_bin_compress = OFF, log_bin_compress_min_len = 256;
SET SESSION binlog_alter_two_phase = ON;
ALTER TABLE shop.t DROP COLUMN g;
DROP TABLE shop.t;
FLUSH BINARY LOGS;
