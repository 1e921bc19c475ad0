--
-- CALL pubsub_ingest(), from brokers made of files (test/dummy): a batch is a
-- transaction, whatever goes wrong between, within, or after batches
--
LOAD 'pubsub_fdw_dummy';
-- no DETAIL, it would show transaction numbers
\set VERBOSITY terse

SELECT dummy_drop('regress_pubsub_ingest');
CREATE SERVER ing_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_ingest');
CREATE SERVER ing_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_ingest');

-- Gives a server these orders, and no others.
CREATE FUNCTION ing_orders(server name, VARIADIC orders text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  o text;
BEGIN
  FOR o IN SELECT option_name FROM pg_foreign_server, pg_options_to_table(srvoptions)
           WHERE srvname = server AND option_name LIKE 'dummy\_%' AND option_name <> 'dummy_dir' LOOP
    EXECUTE format('ALTER SERVER %I OPTIONS (DROP %I)', server, o);
  END LOOP;
  FOREACH o IN ARRAY orders LOOP
    EXECUTE format('ALTER SERVER %I OPTIONS (ADD %I %L)', server,
                   split_part(o, ' ', 1), substr(o, strpos(o, ' ') + 1));
  END LOOP;
END $$;

SELECT pubsub_create_topic('ing_log', 'feed', 3);
CREATE FOREIGN TABLE feed (data int)
  SERVER ing_log OPTIONS (topic 'feed', format 'json', group_id 'g');
SELECT pubsub_create_topic('ing_queue', 'jobs');
SELECT pubsub_create_subscription('ing_queue', 'jobs-sub', 'jobs');
CREATE FOREIGN TABLE jobs (data int)
  SERVER ing_queue OPTIONS (topic 'jobs', format 'json', subscription 'jobs-sub', poll_timeout '20ms');
CREATE FUNCTION publish(topic text, first int, last int, partitions int DEFAULT 1) RETURNS bigint LANGUAGE sql AS
  $$SELECT count(dummy_append('regress_pubsub_ingest', topic, i % partitions,
    convert_to(format('{"data": %s}', i), 'UTF8'))) FROM generate_series(first, last) i$$;
CREATE FUNCTION positions() RETURNS TABLE ("partition" int, next_offset bigint) LANGUAGE sql AS
  $$SELECT "partition", next_offset FROM pubsub_offsets WHERE server_name = 'ing_log' AND group_id = 'g' ORDER BY 1$$;
CREATE FUNCTION ack_state() RETURNS text LANGUAGE sql AS
  $$SELECT dummy_subscription('regress_pubsub_ingest', 'jobs-sub')$$;
-- xid tells which rows came in one transaction
CREATE TABLE dst (data int, xid xid8 DEFAULT pg_current_xact_id());
CREATE FUNCTION batches() RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(n::text, ' ' ORDER BY xid) FROM (SELECT xid, count(*) AS n FROM dst GROUP BY xid) q$$;

-- ====
-- A log: all rows, once, in batches; a second call finds nothing.
SELECT publish('feed', 1, 30, 3);
CALL pubsub_ingest('feed', 'dst', batch_size => 7);
SELECT count(*), count(DISTINCT data), sum(data) FROM dst;
SELECT batches();
SELECT * FROM positions();
CALL pubsub_ingest('feed', 'dst');
SELECT dummy_held();

-- ====
-- An error in a batch takes back that batch, and no other; so does a message
-- that cannot be decoded.
SELECT publish('feed', 31, 60, 3);
ALTER TABLE dst ADD CONSTRAINT no_44 CHECK (data <> 44);
TRUNCATE dst;
CALL pubsub_ingest('feed', 'dst', batch_size => 6);
SELECT batches(), max(data) FROM dst;
SELECT * FROM positions();
SELECT dummy_held();
ALTER TABLE dst DROP CONSTRAINT no_44;
CALL pubsub_ingest('feed', 'dst', batch_size => 6);
SELECT count(*), count(DISTINCT data), sum(data) FROM dst;
SELECT dummy_append('regress_pubsub_ingest', 'feed', 0, '{"data": "no number"}');
CALL pubsub_ingest('feed', 'dst');
SELECT * FROM positions();
ALTER FOREIGN TABLE feed ALTER data TYPE text;
SELECT data FROM pubsub_consume(NULL::feed);
ALTER FOREIGN TABLE feed ALTER data TYPE int;

-- ====
-- A broker that fails in a later batch: what was committed stays.
SELECT publish('feed', 61, 90, 3);
TRUNCATE dst;
SELECT ing_orders('ing_log', 'dummy_batch 2', 'dummy_fail_poll 6');
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
SELECT batches();
SELECT dummy_held();
SELECT ing_orders('ing_log', 'dummy_batch 2', 'dummy_hang poll');
SET statement_timeout = '200ms';
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
RESET statement_timeout;
SELECT dummy_held();
SELECT ing_orders('ing_log', 'dummy_batch 3', 'dummy_again 2');
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
SELECT count(*), count(DISTINCT data), sum(data) FROM dst;
SELECT ing_orders('ing_log');

-- ====
-- The end is where it was at the call: rows that come meanwhile are not
-- followed.
SELECT publish('feed', 91, 99, 3);
CREATE FUNCTION echo() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM publish('feed', 1000 + NEW.data, 1000 + NEW.data, 3); RETURN NULL; END$$;
CREATE TRIGGER echo AFTER INSERT ON dst FOR EACH ROW EXECUTE FUNCTION echo();
TRUNCATE dst;
CALL pubsub_ingest('feed', 'dst', batch_size => 2);
SELECT count(*) FROM dst;
DROP TRIGGER echo ON dst;
CALL pubsub_ingest('feed', 'dst');
SELECT count(*) FROM dst;

-- ====
-- Limits
SELECT publish('feed', 101, 130, 3);
TRUNCATE dst;
CALL pubsub_ingest('feed', 'dst', max_records => 10, batch_size => 4);
SELECT batches();
SELECT ing_orders('ing_log', 'dummy_hang poll');
CALL pubsub_ingest('feed', 'dst', max_read_time => '100 ms');
SELECT ing_orders('ing_log');
CALL pubsub_ingest('feed', 'dst', rows_ingested => 100);
SELECT count(*), count(DISTINCT data) FROM dst;
CALL pubsub_ingest('feed', 'dst', max_records => 0);
CALL pubsub_ingest('feed', 'dst', batch_size => 0);
CALL pubsub_ingest('feed', 'dst', max_read_time => '0');
CALL pubsub_ingest('feed', 'dst', on_conflict => 'whatever');
CALL pubsub_ingest('feed', 'dst', group_id => '');
CALL pubsub_ingest('dst', 'dst');
CALL pubsub_ingest('feed', NULL);

-- ====
-- In a transaction block it is one transaction, which is told.
SELECT publish('feed', 131, 142, 3);
TRUNCATE dst;
BEGIN;
CALL pubsub_ingest('feed', 'dst', batch_size => 5);
SELECT batches();
ROLLBACK;
SELECT count(*) FROM dst;
BEGIN;
CALL pubsub_ingest('feed', 'dst', batch_size => 5, max_records => 5);
SAVEPOINT s;
CALL pubsub_ingest('feed', 'dst', batch_size => 5);
ROLLBACK TO s;
COMMIT;
SELECT batches();
DO $$
DECLARE
  n bigint := 0;
BEGIN
  BEGIN
    CALL pubsub_ingest('feed', 'dst', batch_size => 3, max_records => 4, rows_ingested => n);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'caught';
  END;
  BEGIN
    CALL pubsub_ingest('feed', 'dst', batch_size => 3, max_records => 4, rows_ingested => n);
  EXCEPTION WHEN division_by_zero THEN
    NULL;
  END;
END $$;
SELECT batches();
-- in a procedure that may commit it does
SELECT publish('feed', 143, 154, 3);
TRUNCATE dst;
DO $$
DECLARE
  n bigint := 0;
BEGIN
  CALL pubsub_ingest('feed', 'dst', batch_size => 5, rows_ingested => n);
  RAISE NOTICE '% rows', n;
  ROLLBACK;
END $$;
SELECT batches();
SELECT dummy_held();

-- ====
-- A queue: each batch is acknowledged at its COMMIT.
SELECT publish('jobs', 1, 20);
TRUNCATE dst;
CALL pubsub_ingest('jobs', 'dst', batch_size => 6);
SELECT batches(), count(DISTINCT data) FROM dst;
SELECT ack_state(), dummy_held();
-- an error in a batch gives back that batch
SELECT publish('jobs', 21, 40);
ALTER TABLE dst ADD CONSTRAINT no_30 CHECK (data <> 30);
TRUNCATE dst;
CALL pubsub_ingest('jobs', 'dst', batch_size => 6);
SELECT batches();
SELECT ack_state(), dummy_held();
ALTER TABLE dst DROP CONSTRAINT no_30;
-- a failed acknowledgement is a WARNING; those messages come again
SELECT ing_orders('ing_queue', 'dummy_fail_send_acks 1');
CALL pubsub_ingest('jobs', 'dst', batch_size => 10);
SELECT count(*), count(DISTINCT data) FROM dst;
SELECT ack_state(), dummy_held();
SELECT ing_orders('ing_queue', 'dummy_fail_prepare_acks 2');
SELECT publish('jobs', 41, 60);
TRUNCATE dst;
CALL pubsub_ingest('jobs', 'dst', batch_size => 6);
SELECT batches();
SELECT ack_state(), dummy_held();
SELECT ing_orders('ing_queue');
CALL pubsub_ingest('jobs', 'dst');
SELECT count(*), count(DISTINCT data) FROM dst;
SELECT ack_state(), dummy_held();

-- ====
-- From a queue into a topic, by a trigger of the target
SELECT publish('jobs', 61, 70);
CREATE FUNCTION forward() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM pubsub_send('feed', to_jsonb(NEW)); RETURN NULL; END$$;
CREATE TRIGGER forward AFTER INSERT ON dst FOR EACH ROW EXECUTE FUNCTION forward();
TRUNCATE dst;
SELECT ing_orders('ing_log', 'dummy_fail_delivery 2');
CALL pubsub_ingest('jobs', 'dst', batch_size => 4);
SELECT batches();
SELECT ack_state(), dummy_held();
SELECT ing_orders('ing_log');
CALL pubsub_ingest('jobs', 'dst', batch_size => 4);
SELECT batches();
SELECT ack_state(), dummy_held();
DROP TRIGGER forward ON dst;
-- and straight into a topic
SELECT count(*) >= 0 AS whatever FROM pubsub_consume(NULL::feed);
SELECT publish('jobs', 71, 80);
CALL pubsub_ingest('jobs', 'feed', batch_size => 4);
SELECT count(*) FROM pubsub_consume(NULL::feed);
SELECT ack_state(), dummy_held();

-- ====
-- A trigger of the target that consumes from the same group goes on where the
-- batch ends, and the next batch after that; nobody gets a row twice.
SELECT count(*) >= 0 AS whatever FROM pubsub_consume(NULL::feed);
SELECT publish('feed', 301, 320, 1);
TRUNCATE dst;
CREATE TABLE aside (data int);
CREATE FUNCTION aside() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN INSERT INTO aside SELECT data::int FROM pubsub_consume(NULL::feed, 1); RETURN NULL; END$$;
CREATE TRIGGER aside AFTER INSERT ON dst EXECUTE FUNCTION aside();
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
SELECT count(*), count(DISTINCT data) FROM (SELECT data FROM dst UNION ALL SELECT data FROM aside) d;
SELECT array_agg(data ORDER BY data) FROM aside;
SELECT publish('feed', 321, 340, 1);
BEGIN;
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
COMMIT;
SELECT count(*), count(DISTINCT data) FROM (SELECT data FROM dst UNION ALL SELECT data FROM aside) d;
DROP TRIGGER aside ON dst;

-- ====
-- A server or a mapping that is altered between batches ends the call or not,
-- but loses nothing.
SELECT publish('feed', 201, 230, 3);
TRUNCATE dst;
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM ing_orders('ing_log', 'dummy_batch 5'); RETURN NULL; END$$;
CREATE TRIGGER meddle AFTER INSERT ON dst EXECUTE FUNCTION meddle();
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
SELECT count(*), count(DISTINCT data) FROM dst;
DROP TRIGGER meddle ON dst;
CALL pubsub_ingest('feed', 'dst', batch_size => 4);
SELECT count(*), count(DISTINCT data) FROM dst;
SELECT dummy_held();

-- ====
-- What is not allowed
BEGIN READ ONLY;
CALL pubsub_ingest('feed', 'dst');
ROLLBACK;
CALL pubsub_ingest('feed', 'pg_class');
CALL pubsub_ingest('feed', 'feed_copy');
CALL pubsub_ingest('feed', 'dst', group_id => repeat('x', 256));
-- a target that may not be written is not even locked, rows or no rows
CREATE ROLE regress_pubsub_ingester;
GRANT SELECT, DELETE ON feed TO regress_pubsub_ingester;
CREATE USER MAPPING FOR regress_pubsub_ingester SERVER ing_log OPTIONS (credentials_required 'false');
CREATE VIEW dst_view AS SELECT data FROM dst;
SET ROLE regress_pubsub_ingester;
CALL pubsub_ingest('feed', 'dst');
CALL pubsub_ingest('feed', 'dst', on_conflict => 'nothing');
CALL pubsub_ingest('feed', 'dst_view');
RESET ROLE;
-- one column will do
GRANT INSERT (data) ON dst TO regress_pubsub_ingester;
CREATE FOREIGN TABLE feed_late (data int) SERVER ing_log OPTIONS (topic 'feed', format 'json', group_id 'late', start_offsets 'latest');
GRANT SELECT, DELETE ON feed_late TO regress_pubsub_ingester;
SET ROLE regress_pubsub_ingester;
CALL pubsub_ingest('feed_late', 'dst');
RESET ROLE;

SET client_min_messages = warning;
DROP SERVER ing_log, ing_queue CASCADE;
RESET client_min_messages;
DELETE FROM pubsub_offsets WHERE server_name = 'ing_log';
DROP FUNCTION batches, positions, ack_state, publish, ing_orders, echo, forward, aside, meddle;
DROP VIEW dst_view;
DROP TABLE dst, aside;
DROP ROLE regress_pubsub_ingester;
SELECT dummy_drop('regress_pubsub_ingest');
