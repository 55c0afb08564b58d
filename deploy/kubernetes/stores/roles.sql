-- The roles of Loci and its database, to be created once by an administrator:
--   LOCI_OWNER_PASSWORD=… LOCI_LOGIN_PASSWORD=… LOCI_SCALER_PASSWORD=… psql -v ON_ERROR_STOP=1 -f roles.sql
\getenv owner_password LOCI_OWNER_PASSWORD
\getenv login_password LOCI_LOGIN_PASSWORD
\getenv scaler_password LOCI_SCALER_PASSWORD

-- The role that Loci's processes act as. It owns nothing and cannot bypass row-level security.
CREATE ROLE loci_app NOLOGIN NOBYPASSRLS;
-- The owner of the schema. Only the migration logs in as this role.
CREATE ROLE loci_owner LOGIN NOBYPASSRLS PASSWORD :'owner_password';
-- Gateway and workers log in as this role and may only act as loci_app.
CREATE ROLE loci_login LOGIN NOINHERIT NOBYPASSRLS IN ROLE loci_app PASSWORD :'login_password';
-- For the scaler: may call one function (the migration grants it) and can read no table.
CREATE ROLE loci_scaler LOGIN NOBYPASSRLS PASSWORD :'scaler_password';

CREATE DATABASE loci OWNER loci_owner;
\connect loci
ALTER SCHEMA public OWNER TO loci_owner;
