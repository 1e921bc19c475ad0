--
-- pubsub_consume() on Google Pub/Sub: acknowledged at COMMIT, given back at
-- ROLLBACK
--
-- A message that was not given back would come again after the ack deadline
-- only, which is longer than these reads wait: "at once" is what is tested.
--
\getenv pubsub_endpoint PUBSUB_ENDPOINT
SET TimeZone = 'UTC';
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS dblink;
DROP ROLE IF EXISTS regress_pubsub_consumer;
RESET client_min_messages;

SELECT 'regress-consume-' || pg_backend_pid() || '-' || extract(epoch FROM now())::bigint AS topic \gset
CREATE SERVER con_google FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER con_google OPTIONS (auth 'none');
SELECT pubsub_create_topic('con_google', :'topic');
SELECT pubsub_create_subscription('con_google', :'topic', :'topic', ack_deadline => '60 s');
CREATE FOREIGN TABLE con_jobs (id int, message_id text OPTIONS (metadata 'message_id'))
  SERVER con_google OPTIONS (topic :'topic', subscription :'topic', format 'json', max_read_time '20s');
CREATE TABLE con_dst (id int PRIMARY KEY, message_id text);
CREATE FUNCTION con_send(low int, high int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO con_jobs (id) SELECT i FROM generate_series(low, high) i;
$$;
-- takes n messages, which are to be there
CREATE FUNCTION con_take(n int) RETURNS text LANGUAGE sql AS $$
  SELECT format('%s: %s to %s', count(*), min(id), max(id)) FROM pubsub_consume(NULL::con_jobs, max_records => n);
$$;
-- nothing is there
CREATE FUNCTION con_rest() RETURNS bigint LANGUAGE sql SET client_min_messages = warning AS $$
  SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_read_time => '400 ms');
$$;
-- another session
SELECT dblink_connect('other', format('host=%s port=%s user=%I dbname=%I', current_setting('unix_socket_directories'),
  current_setting('port'), current_user, current_database()));
CREATE FUNCTION con_other(query text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT * FROM dblink('other', query) AS t (line text);
$$;

-- ====
-- ROLLBACK: all of them again, at once.  COMMIT: once.
SELECT con_send(1, 100);
BEGIN;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 100);
SELECT count(*) FROM con_dst;
ROLLBACK;
SELECT con_other('SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::con_jobs, max_records => 100)');
BEGIN;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 100);
COMMIT;
SELECT count(*), min(id), max(id), count(DISTINCT message_id) FROM con_dst;
SELECT con_rest();
TRUNCATE con_dst;

-- ====
-- While the transaction is open nobody else gets them; several calls in one
-- transaction go on where the former stopped.
SELECT con_send(1, 10);
BEGIN;
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 4);
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 6);
SELECT con_other('SELECT con_rest()');
COMMIT;
SELECT con_rest();

-- ====
-- SAVEPOINT and ROLLBACK TO, three deep, released and rolled back
SELECT con_send(1, 30);
BEGIN;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
SAVEPOINT a;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 10);
ROLLBACK TO a;
SAVEPOINT b;
SAVEPOINT c;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
RELEASE c;
SAVEPOINT d;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
ROLLBACK TO d;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
RELEASE b;
SELECT count(*) FROM con_dst;
-- what was rolled back is there for others already
SELECT con_other('SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::con_jobs, max_records => 15)');
COMMIT;
SELECT count(*) FROM con_dst;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 15);
SELECT count(*), min(id), max(id) FROM con_dst;
SELECT con_rest();
TRUNCATE con_dst;
-- all levels at once
SELECT con_send(1, 3);
BEGIN;
SAVEPOINT a;
SELECT con_take(1) IS NOT NULL;
SAVEPOINT b;
SELECT con_take(1) IS NOT NULL;
RELEASE b;
SELECT con_take(1) IS NOT NULL;
ROLLBACK TO a;
COMMIT;
SELECT con_take(3);

-- ====
-- Exception blocks of PL/pgSQL are savepoints, too.
SELECT con_send(1, 20);
DO $$
BEGIN
  INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
  BEGIN
    INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 10);
    RAISE EXCEPTION 'no';
  EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'caught %', SQLERRM;
  END;
  BEGIN
    INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
  EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'caught %', SQLERRM;
  END;
END $$;
SELECT count(*) FROM con_dst;
-- with a COMMIT in between: the first part stays
DO $$
BEGIN
  INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 3);
  COMMIT;
  INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 3);
  ROLLBACK;
  INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 2);
END $$;
SELECT count(*) FROM con_dst;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 5);
SELECT count(*), min(id), max(id) FROM con_dst;
SELECT con_rest();
TRUNCATE con_dst;

-- ====
-- Errors in the middle: a unique violation, a bad row, one after the statement;
-- a constraint that fails at COMMIT (X01)
SELECT con_send(1, 100);
INSERT INTO con_dst VALUES (50, 'in the way');
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 100);
SELECT sum(1 / (id - 50)) FROM pubsub_consume(NULL::con_jobs, max_records => 100);
BEGIN;
SELECT con_take(100);
SELECT 1 / 0;
COMMIT;
TRUNCATE con_dst;
CREATE TABLE con_ids (id int PRIMARY KEY);
CREATE TABLE con_deferred (id int REFERENCES con_ids DEFERRABLE INITIALLY DEFERRED, message_id text);
INSERT INTO con_ids SELECT i FROM generate_series(1, 99) i;
BEGIN;
INSERT INTO con_deferred SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 100);
SELECT count(*) FROM con_deferred;
COMMIT;
INSERT INTO con_deferred SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 100);
SELECT count(*) FROM con_deferred;
INSERT INTO con_ids VALUES (100);
INSERT INTO con_deferred SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 100);
SELECT count(*), count(DISTINCT id) FROM con_deferred;
SELECT con_rest();
-- a message that is none of what the table expects: the error names it, and
-- nothing is lost, also by an ingestion, which keeps what came before (O02)
CREATE FOREIGN TABLE con_raw (data text, message_id text)
  SERVER con_google OPTIONS (topic :'topic', subscription :'topic', max_read_time '20s');
SELECT con_send(1, 5);
INSERT INTO con_raw (data) VALUES ('{"id": "bad"}');
DO $$
DECLARE
  bad text = (SELECT message_id FROM pubsub_read(NULL::con_raw, max_records => 6) WHERE data LIKE '%bad%');
  context text;
BEGIN
  PERFORM * FROM pubsub_consume(NULL::con_jobs, max_records => 6);
EXCEPTION WHEN invalid_text_representation THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '%, named: %', SQLERRM, context LIKE '%message "' || bad || '" of subscription %';
END $$;
\set VERBOSITY sqlstate
CALL pubsub_ingest('con_jobs', 'con_dst', batch_size => 1);
CALL pubsub_ingest('con_jobs', 'con_dst', batch_size => 1);
\set VERBOSITY default
SELECT count(*) + (SELECT count(*) FROM pubsub_read(NULL::con_raw, max_records => 6 - (SELECT count(*) FROM con_dst))) FROM con_dst;
-- out of the way
CREATE TABLE con_bad AS SELECT data FROM pubsub_consume(NULL::con_raw, max_records => 6 - (SELECT count(*) FROM con_dst));
SELECT count(*) + (SELECT count(*) FROM con_dst), bool_or(data LIKE '%bad%') FROM con_bad;
SELECT con_rest();
TRUNCATE con_dst;
-- a row that a trigger consumes while the transaction is about to commit
SELECT con_send(1, 2);
CREATE FUNCTION con_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '%', con_take(1) IS NOT NULL;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER con_late AFTER INSERT ON con_ids DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION con_late();
INSERT INTO con_ids VALUES (101), (102);
SELECT con_rest();

-- ====
-- What was pulled beyond max_records, or beyond a LIMIT of the read, is there
-- for others at once, before the COMMIT (P12).
SELECT con_send(1, 100);
BEGIN;
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 1);
SELECT con_other('SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::con_jobs, max_records => 99)');
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM pubsub_consume(NULL::con_jobs, max_records => 3);
MOVE 1 c;
CLOSE c;
SELECT con_other('SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::con_jobs, max_records => 96)');
COMMIT;
-- a function in FROM is read to its end, whatever LIMIT and WHERE say
SELECT count(*) FROM (SELECT id FROM pubsub_consume(NULL::con_jobs, max_records => 6) LIMIT 1) q;
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 10) WHERE id < 0;
SELECT con_other('SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::con_jobs, max_records => 80)');
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 80);
SELECT con_rest();
-- nested loops replay, they do not take more (F01)
SELECT con_send(1, 4);
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT count(*), count(DISTINCT message_id) FROM generate_series(1, 3) i LEFT JOIN pubsub_consume(NULL::con_jobs, max_records => 4) c ON c.id <> i;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
SELECT con_rest();
-- max_read_time ends a slice and says so
BEGIN;
SELECT con_send(1, 2);
COMMIT;
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_read_time => '500 ms');
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 0);
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_read_time => '0 s');
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, group_id => 'g');
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, partitions => '{0}');
SELECT pubsub_consume(NULL::con_jobs);

-- ====
-- Two sessions share a subscription: disjoint sets, nothing left out.
SELECT con_send(1, 600);
SELECT dblink_exec('other', 'BEGIN');
SELECT dblink_exec('other', 'INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 250)');
BEGIN;
INSERT INTO con_dst SELECT * FROM pubsub_consume(NULL::con_jobs, max_records => 350);
COMMIT;
SELECT dblink_exec('other', 'COMMIT');
SELECT count(*), count(DISTINCT message_id), min(id), max(id) FROM con_dst;
SELECT con_rest();
TRUNCATE con_dst;

-- ====
-- Consuming and publishing in one transaction, into the subscription itself
SELECT con_send(1, 5);
BEGIN;
SELECT con_send(6, 8);
SELECT con_take(5);
INSERT INTO con_jobs (id) SELECT id + 100 FROM generate_series(1, 2) id;
COMMIT;
SELECT con_take(5);
BEGIN;
SELECT con_send(1, 5);
ROLLBACK;
SELECT con_rest();
-- a copy from a queue to itself ends
SELECT con_send(1, 5);
INSERT INTO con_jobs (id) SELECT id + 10 FROM pubsub_consume(NULL::con_jobs, max_records => 5);
SELECT con_take(5);
SELECT con_rest();

-- ====
-- PREPARE TRANSACTION is refused, after a look, too; what was read is given
-- back (X03).
SELECT con_send(1, 5);
BEGIN;
SELECT con_take(5);
PREPARE TRANSACTION 'regress_consume';
BEGIN;
SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_records => 5);
PREPARE TRANSACTION 'regress_consume';
SELECT count(*) FROM pg_prepared_xacts WHERE gid = 'regress_consume';

-- ====
-- A read-only transaction may look, not consume.
BEGIN READ ONLY;
SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_records => 5);
SAVEPOINT a;
SELECT count(*) FROM pubsub_consume(NULL::con_jobs, max_records => 5);
ROLLBACK TO a;
INSERT INTO con_jobs (id) VALUES (1);
ROLLBACK;

-- ====
-- Looking takes SELECT, consuming SELECT and DELETE, and a mapping that a
-- superuser has allowed to do without credentials.
CREATE ROLE regress_pubsub_consumer;
SET ROLE regress_pubsub_consumer;
SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_records => 5);
RESET ROLE;
GRANT SELECT ON con_jobs TO regress_pubsub_consumer;
SET ROLE regress_pubsub_consumer;
SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_records => 5);
RESET ROLE;
CREATE USER MAPPING FOR regress_pubsub_consumer SERVER con_google OPTIONS (auth 'none');
SET ROLE regress_pubsub_consumer;
SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_records => 5);
RESET ROLE;
ALTER USER MAPPING FOR regress_pubsub_consumer SERVER con_google OPTIONS (ADD credentials_required 'false');
SET ROLE regress_pubsub_consumer;
SELECT count(*) FROM pubsub_read(NULL::con_jobs, max_records => 5);
SELECT con_take(5);
RESET ROLE;
GRANT DELETE ON con_jobs TO regress_pubsub_consumer;
SET ROLE regress_pubsub_consumer;
SELECT con_take(5);
RESET ROLE;

-- ====
-- The switch of a superuser
SELECT con_send(1, 3);
SET pubsub_fdw.enabled = off;
SELECT con_take(3);
SELECT count(*) FROM con_jobs;
SELECT con_send(4, 4);
RESET pubsub_fdw.enabled;
SELECT con_take(3);

-- ====
-- Things that happen to the definition in mid-transaction
SELECT con_send(1, 4);
BEGIN;
SELECT con_take(2) IS NOT NULL;
ALTER SERVER con_google OPTIONS (ADD fetch_size '500');
SELECT con_take(2) IS NOT NULL;
COMMIT;
SELECT con_rest();
SELECT con_send(1, 4);
BEGIN;
SELECT con_take(2) IS NOT NULL;
SELECT pubsub_disconnect('con_google');
SELECT con_take(2) IS NOT NULL;
ROLLBACK;
SELECT con_take(4);
SELECT con_send(1, 2);
BEGIN;
SELECT con_take(2);
DROP FUNCTION con_take;
DROP FOREIGN TABLE con_jobs CASCADE;
DROP USER MAPPING FOR CURRENT_USER SERVER con_google;
ROLLBACK;
SELECT con_take(2);
-- (a superuser needs no mapping)
SELECT con_send(1, 4);
BEGIN;
SELECT con_take(2) IS NOT NULL;
DROP USER MAPPING FOR CURRENT_USER SERVER con_google;
SELECT con_take(2) IS NOT NULL;
ROLLBACK;
SELECT con_take(4);
-- the subscription goes away before the COMMIT: that is too late for an error
SELECT con_send(1, 2);
BEGIN;
SELECT con_take(2);
SELECT pubsub_drop_subscription('con_google', :'topic');
\set VERBOSITY sqlstate
COMMIT;
\set VERBOSITY default
SELECT 'alive';

SELECT dblink_disconnect('other');
SET client_min_messages = warning;
SELECT pubsub_drop_topic('con_google', :'topic');
DROP SERVER con_google CASCADE;
DROP TABLE con_dst, con_deferred, con_ids, con_bad;
DROP FUNCTION con_send, con_take, con_rest, con_other, con_late;
DROP ROLE regress_pubsub_consumer;
DROP EXTENSION dblink;
