-- The roles of Loci and its database, to be created once by an administrator who may create roles and databases
-- (a superuser, or the administrator that a managed Postgres gives you). The passwords come from the environment:
--   LOCI_OWNER_PASSWORD=… LOCI_LOGIN_PASSWORD=… LOCI_SCALER_PASSWORD=… LOCI_BACKUP_PASSWORD=… \
--     psql -v ON_ERROR_STOP=1 -f roles.sql
\getenv owner_password LOCI_OWNER_PASSWORD
\getenv login_password LOCI_LOGIN_PASSWORD
\getenv scaler_password LOCI_SCALER_PASSWORD
\getenv backup_password LOCI_BACKUP_PASSWORD

-- Else a notice warns of the setting of loci_login, which concerns loci_login only.
SET client_min_messages = warning;
-- All roles or none, so that a run that failed can be repeated.
BEGIN;
-- The role that Loci's processes act as. It owns nothing and cannot bypass row-level security.
CREATE ROLE loci_app NOLOGIN NOBYPASSRLS;
-- The owner of the schema. Only the migration logs in as this role.
CREATE ROLE loci_owner LOGIN NOBYPASSRLS PASSWORD :'owner_password';
-- Gateway and workers log in as this role and may only act as loci_app.
CREATE ROLE loci_login LOGIN NOINHERIT NOBYPASSRLS IN ROLE loci_app PASSWORD :'login_password';
-- Behind a proxy that pools connections, the processes cannot ask for their role when they connect.
ALTER ROLE loci_login SET role = 'loci_app';
-- For the scaler: may call one function (the migration grants it) and can read no table.
CREATE ROLE loci_scaler LOGIN NOBYPASSRLS PASSWORD :'scaler_password';
-- For pg_dump: may read every row and write none (the migration grants it, table by table).
CREATE ROLE loci_backup LOGIN NOBYPASSRLS PASSWORD :'backup_password';
-- From Postgres 16 on, an administrator who is no superuser must be able to act as the owner of a new database.
GRANT loci_owner TO CURRENT_USER;
COMMIT;

-- The owner of a database may create tables in its schema `public` (Postgres 15 or newer).
CREATE DATABASE loci OWNER loci_owner;
REVOKE loci_owner FROM CURRENT_USER;
