-- The least rights on a PostgreSQL that is the target. Run by an administrator, in that database (psql -d shop -f …); replace
-- 'change me', and shop. The tables belong to their creator: let one user run every applier of a database.

-- [user]
CREATE ROLE thl LOGIN PASSWORD 'change me';

-- [database] The applier creates its schema `thl`, and a schema for each database of the source. (Every user may connect
-- and create temporary tables, unless that was revoked from PUBLIC.)
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE shop TO thl;

-- [schemas] Instead of [database]: an administrator creates the schemas, and the applier no others. A CREATE DATABASE on the
-- source then stops it, unless the schema is there.
GRANT CONNECT, TEMPORARY ON DATABASE shop TO thl;
CREATE SCHEMA thl AUTHORIZATION thl;
CREATE SCHEMA shop AUTHORIZATION thl;

-- [status] Another user, for thl status and thl serve. It sees no rows of the source.
CREATE ROLE thl_status LOGIN PASSWORD 'change me';
GRANT CONNECT ON DATABASE shop TO thl_status;
GRANT USAGE ON SCHEMA thl TO thl_status;
GRANT SELECT ON ALL TABLES IN SCHEMA thl TO thl_status;
ALTER DEFAULT PRIVILEGES FOR ROLE thl IN SCHEMA thl GRANT SELECT ON TABLES TO thl_status;

-- [readers] Programs that read the position beside the tables.
CREATE ROLE reader LOGIN PASSWORD 'change me';
GRANT USAGE ON SCHEMA thl TO reader;
GRANT SELECT ON thl.thl_position, thl.thl_progress TO reader;
