create table everything (
 id bigint unsigned not null auto_increment, t1 tinyint, t1u tinyint unsigned, s2 smallint, m3 mediumint, m3u mediumint unsigned, i4 int, i4u int unsigned, i8 bigint, i8u bigint unsigned, b1 bool, zf int zerofill,
 d decimal(65,30), d2 decimal(10,2) unsigned zerofill, f float, fu float(7,4), db double, db2 double(10,3) unsigned, b bit(1), b17 bit(17), b64 bit(64), y year, dt date, ti time, ti6 time(6), da datetime, da3 datetime(3), ts timestamp null, ts6 timestamp(6) null,
 c char(10), cl char(10) charset latin1, v varchar(255), v3 varchar(50) charset utf8mb3, bi binary(8), vb varbinary(20), tt tinytext, tx text, mt mediumtext charset latin1, lt longtext, tb tinyblob, bl blob, mb mediumblob, lb longblob,
 e enum('a','b''c','d,e','ü'), st set('x','y','z'), j json, g geometry, p point, ve vector(3), gen bigint generated always as (t1 * 2) virtual, gens varchar(300) generated always as (concat(v,'!')) stored, inv int invisible default 3,
 primary key (i8u, id), unique key fx ((t1 + 1)), key(id));
create table nokey (a int, b varchar(10));
insert into nokey values (1, 'x'), (1, 'x'), (null, null), (null, null), (null, null), (2, '');
create table prefixed (a varchar(100) not null, n int, primary key (a(5)));
insert into prefixed values ('aaaaab', 1), ('aaaab', 2);
create table zeros (d date, dt datetime(6), ts timestamp null, t time(3), y year, c char(5) charset latin1, b binary(3), vb varbinary(3), x text charset utf8mb3);
insert into zeros values ('0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '-00:00:00.001', 0, '', '', '', ''), ('2020-00-00', '2020-02-00 10:11:12.000001', null, '100:00:00', 1901, x'8081', x'20', x'200000', 'ü');
create table labelled (e enum('', 'a\\b', 'c"d', 'e''f', 'new\nline', ' lead') charset latin1, s set('ä', 'b') charset latin1, e2 enum('x') character set utf8mb3 not null, b enum('x','ü') character set binary, bs set('p','q') character set binary, primary key (e2));
insert into labelled values ('c"d', 'ä,b', 'x', 'ü', 'q,p'), ('new\nline', '', 0, 'x', null);
create table computed (a int, `odd ``name``` varchar(10) as (concat('v', a)) virtual, c int as (a + 1) stored, d int invisible default 3, unique key fx ((a * 2)));
insert into computed (a) values (1), (2);
insert into everything (t1,t1u,s2,m3,m3u,i4,i4u,i8,i8u,b1,zf,d,d2,f,fu,db,db2,b,b17,b64,y,dt,ti,ti6,da,da3,ts,ts6,c,cl,v,v3,bi,vb,tt,tx,mt,lt,tb,bl,mb,lb,e,st,j,g,p,ve) values
 (-128,255,-32768,-8388608,16777215,-2147483648,4294967295,-9223372036854775808,18446744073709551615,1,42,'-12345678901234567890123456789012345.123456789012345678901234567890','12.3',3.1415927,12.3456,0.1,1.5,b'1',b'10000000000000001',0xffffffffffffffff,1901,'9999-12-31','-838:59:59','-838:59:58.999999','1000-01-01 00:00:00','2020-02-29 23:59:59.999','2038-01-19 03:14:07','1970-01-01 00:00:01.000001','char  ','é€','vär😀','ü',0x0100,0x0001020000,'tt','text','latin€','long',0x00ff,0x01,0x02,0x03,'b''c','x,z','{"b": 1.10, "a": [1, 18446744073709551615, 1e100, null, "ü"]}',st_geomfromtext('POINT(1 2)',4326),st_geomfromtext('POINT(1 2)'),string_to_vector('[1,2,3]'));
insert into everything (i8u,t1,f,db,e,st,y,ti,b) values (1,5,-0e0,-0e0,1,"",0,"00:00:01",0),(9223372036854775807,6,1e38,5e-324,"a","x,y,z",2155,"838:59:59",1),(9223372036854775808,7,1.17549e-38,1.7976931348623157e308,4,7,1999,"-00:00:01",1);
