--
-- pubsub_publish() and pubsub_send(): what the planner makes of functions that
-- have an effect.  Brokers are made of files (test/dummy).
--
LOAD 'pubsub_fdw_dummy';
SET TimeZone = 'UTC';

SELECT dummy_drop('regress_pubsub_aggregate');
CREATE SERVER agg FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_aggregate');
SELECT pubsub_create_topic('agg', 'agg', 1);
CREATE FOREIGN TABLE agg_topic (data text, key text, attributes jsonb, event_time timestamptz, "offset" bigint)
  SERVER agg OPTIONS (topic 'agg');
-- what arrived since the last look, in its order
CREATE FUNCTION agg_arrived() RETURNS text
LANGUAGE sql AS $$SELECT string_agg(coalesce(data, '(null)'), ' ' ORDER BY "offset")
  FROM pubsub_consume(NULL::agg_topic, group_id => 'arrived')$$;
CREATE TABLE agg_rows AS SELECT i, i % 2 AS odd FROM generate_series(1, 6) i;
ANALYZE agg_rows;

-- ====
-- All overloads; the result is the number of messages.
SELECT pubsub_publish('agg_topic', 'text');
SELECT pubsub_publish('agg_topic', 'text'::text, '{"a": "1"}');
SELECT pubsub_publish('agg_topic', 'text'::text, '{"a": "1"}', 'key');
SELECT pubsub_publish('agg_topic', 'text'::text, '{"a": "1"}', 'key', '2001-02-03 04:05:06Z');
SELECT pubsub_publish('agg_topic', 'bytea'::bytea);
SELECT pubsub_publish('agg_topic', 'bytea'::bytea, '{"a": "1"}');
SELECT pubsub_publish('agg_topic', 'bytea'::bytea, '{"a": "1"}', 'key');
SELECT pubsub_publish('agg_topic', 'bytea'::bytea, '{"a": "1"}', 'key', '2001-02-03 04:05:06Z');
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::json);
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::json, '{"a": "1"}');
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::json, '{"a": "1"}', 'key');
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::json, '{"a": "1"}', 'key', '2001-02-03 04:05:06Z');
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::jsonb);
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::jsonb, '{"a": "1"}');
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::jsonb, '{"a": "1"}', 'key');
SELECT pubsub_publish('agg_topic', '{"b":1, "a":1}'::jsonb, '{"a": "1"}', 'key', '2001-02-03 04:05:06Z');
SELECT data, key, attributes, nullif(event_time, date_trunc('year', now())) < '2002-01-01' AS old
  FROM pubsub_consume(NULL::agg_topic, group_id => 'arrived') ORDER BY "offset";

-- ====
-- No rows: 0, not NULL; with GROUP BY no result.  NULL as data is a message
-- without data, NULL as target an error.
SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows WHERE i > 100;
SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows WHERE i > 100 GROUP BY odd;
SELECT pubsub_publish('agg_topic', nullif(i, 2)::text, NULL, NULL, NULL) FROM agg_rows WHERE i < 4;
SELECT agg_arrived();
SELECT pubsub_publish(NULL, i::text) FROM agg_rows;
SELECT pubsub_send(NULL, 'x');
SELECT agg_arrived();

-- ====
-- FILTER, ORDER BY, DISTINCT, HAVING
SELECT pubsub_publish('agg_topic', i::text ORDER BY i DESC) FILTER (WHERE i <> 3) FROM agg_rows;
SELECT agg_arrived();
SELECT pubsub_publish(DISTINCT 'agg_topic', odd::text) FROM agg_rows;
SELECT agg_arrived();
SELECT odd FROM agg_rows GROUP BY odd HAVING pubsub_publish('agg_topic', i::text ORDER BY i) = 3 ORDER BY odd;
SELECT length(agg_arrived());

-- ====
-- Grouping sets publish once per set.
SELECT odd, pubsub_publish('agg_topic', i::text) FROM agg_rows GROUP BY GROUPING SETS ((odd), ()) ORDER BY odd;
SELECT array_length(string_to_array(agg_arrived(), ' '), 1);

-- ====
-- Two targets, chosen per row
SELECT pubsub_create_topic('agg', 'other', 1);
CREATE FOREIGN TABLE agg_other (data text) SERVER agg OPTIONS (topic 'other');
SELECT pubsub_publish(CASE odd WHEN 1 THEN 'agg_topic' ELSE 'agg_other' END::regclass, i::text) FROM agg_rows;
SELECT agg_arrived();
SELECT string_agg(data, ' ' ORDER BY data) FROM agg_other;

-- ====
-- As a window function it would send rows again: refused.
SELECT pubsub_publish('agg_topic', i::text) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM agg_rows;
\echo :LAST_ERROR_SQLSTATE
SELECT pubsub_publish('agg_topic', i::text) OVER () FROM agg_rows;
SELECT agg_arrived();

-- ====
-- Its parts cannot be called by hand.
SELECT pubsub_publish_transfn(0, 'agg_topic', 'x'::text);
\echo :LAST_ERROR_SQLSTATE
SELECT pubsub_publish_finalfn(1);
SELECT agg_arrived();

-- ====
-- The planner drops an aggregate whose result nobody uses, since it takes every
-- aggregate for immutable: nothing is published.
SELECT count(*) FROM (SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows GROUP BY odd) q;
SELECT agg_arrived();
-- A volatile function it leaves alone.
SELECT count(*) FROM (SELECT pubsub_send('agg_topic', i::text) FROM agg_rows) q;
SELECT agg_arrived();

-- ====
-- Equal calls in one select list are one call.
SELECT pubsub_publish('agg_topic', i::text) AS a, pubsub_publish('agg_topic', i::text) AS b FROM agg_rows;
SELECT array_length(string_to_array(agg_arrived(), ' '), 1);

-- ====
-- A CTE that is used twice runs once, unless it says NOT MATERIALIZED; one that
-- is not used does not run.
WITH p AS (SELECT pubsub_publish('agg_topic', i::text) AS n FROM agg_rows)
SELECT a.n, b.n FROM p a, p b;
SELECT array_length(string_to_array(agg_arrived(), ' '), 1);
WITH p AS NOT MATERIALIZED (SELECT pubsub_publish('agg_topic', i::text) AS n FROM agg_rows)
SELECT a.n, b.n FROM p a, p b;
SELECT array_length(string_to_array(agg_arrived(), ' '), 1);
WITH p AS (SELECT pubsub_publish('agg_topic', i::text) AS n FROM agg_rows)
SELECT 1 AS unused;
SELECT agg_arrived();

-- ====
-- EXPLAIN publishes nothing, EXPLAIN ANALYZE each message once.
EXPLAIN (COSTS OFF) SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows;
SELECT agg_arrived();
EXPLAIN ANALYZE SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows \g /dev/null
SELECT agg_arrived();

-- ====
-- Never in a parallel worker
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SELECT set_config(name, 'on', true) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
EXPLAIN (COSTS OFF) SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows;
EXPLAIN (COSTS OFF) SELECT pubsub_send('agg_topic', i::text) FROM agg_rows;
SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows;
COMMIT;
SELECT agg_arrived();

-- ====
-- A cursor publishes what was fetched from it; an aggregate is computed whole.
BEGIN;
DECLARE c CURSOR FOR SELECT i, pubsub_send('agg_topic', i::text) FROM agg_rows;
FETCH 2 FROM c;
DECLARE d CURSOR FOR SELECT odd, pubsub_publish('agg_topic', (10 * i)::text ORDER BY i) FROM agg_rows GROUP BY odd ORDER BY odd;
FETCH 1 FROM d;
COMMIT;
SELECT agg_arrived();
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT i, pubsub_send('agg_topic', i::text) FROM agg_rows WHERE i < 3;
COMMIT;
SELECT agg_arrived();
FETCH ALL FROM c;
CLOSE c;
SELECT agg_arrived();

-- ====
-- From triggers, deferred ones included; what fails later takes it back.
CREATE FUNCTION agg_send() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pubsub_send('agg_topic', TG_NAME || NEW.i);
  RETURN NEW;
END $$;
CREATE TABLE agg_source (i int CHECK (i > 0));
CREATE TRIGGER at_once BEFORE INSERT ON agg_source FOR EACH ROW EXECUTE FUNCTION agg_send();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON agg_source DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION agg_send();
INSERT INTO agg_source VALUES (1), (2);
SELECT agg_arrived();
INSERT INTO agg_source VALUES (3), (-4);
SELECT agg_arrived();
DO $$
BEGIN
  INSERT INTO agg_source VALUES (5);
  BEGIN
    INSERT INTO agg_source VALUES (6), (-7);
  EXCEPTION WHEN check_violation THEN
    NULL;
  END;
END $$;
SELECT agg_arrived();

-- ====
-- Under SERIALIZABLE a transaction may fail after its messages are sent: said
-- once.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pubsub_send('agg_topic', 'a');
SELECT pubsub_send('agg_topic', 'b');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pubsub_send('agg_topic', 'c');
COMMIT;
SELECT agg_arrived();

-- ====
-- Like INSERT, both need INSERT on the table; and a table of ours.
CREATE ROLE regress_pubsub_publisher;
GRANT SELECT ON agg_topic, agg_rows TO regress_pubsub_publisher;
SET ROLE regress_pubsub_publisher;
SELECT pubsub_send('agg_topic', 'x');
SELECT pubsub_publish('agg_topic', i::text) FROM agg_rows;
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT agg_arrived();
SELECT pubsub_send('agg_rows', 'x');
\echo :LAST_ERROR_SQLSTATE
SELECT pubsub_publish('agg_source', 'x'::text);
SELECT pubsub_send(0, 'x');

-- ====
-- A definition that changes between two messages of a transaction: each goes
-- where the table said when it was published.
BEGIN;
SELECT pubsub_send('agg_topic', 'before');
ALTER FOREIGN TABLE agg_topic OPTIONS (SET topic 'other');
SELECT pubsub_send('agg_topic', 'changed');
SAVEPOINT s;
ALTER FOREIGN TABLE agg_topic OPTIONS (SET topic 'agg');
SELECT pubsub_send('agg_topic', 'gone');
ROLLBACK TO s;
SELECT pubsub_send('agg_topic', 'changed too');
ALTER FOREIGN TABLE agg_topic OPTIONS (SET topic 'agg');
SELECT pubsub_send('agg_topic', 'after');
COMMIT;
SELECT agg_arrived();
SELECT string_agg(data, ' ' ORDER BY data) FROM agg_other WHERE data LIKE 'changed%';

SELECT dummy_held();
DROP SERVER agg CASCADE;
DELETE FROM pubsub_offsets WHERE server_name = 'agg';
DROP TABLE agg_rows, agg_source;
DROP FUNCTION agg_arrived, agg_send;
DROP ROLE regress_pubsub_publisher;
SELECT dummy_drop('regress_pubsub_aggregate');
