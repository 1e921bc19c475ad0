--
-- EXPLAIN: what it shows, and that it leaves the broker alone
--
LOAD 'pubsub_fdw_dummy';

SELECT dummy_drop('regress_pubsub_explain');
CREATE SERVER explain_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_explain');
CREATE SERVER explain_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_explain');
-- nobody listens there
CREATE SERVER explain_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers '127.0.0.1:1');
CREATE SERVER explain_pubsub FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'test-project', endpoint 'http://127.0.0.1:1');

CREATE FOREIGN TABLE log (data text, key text, "partition" int, "offset" bigint)
  SERVER explain_log OPTIONS (topic 'log', group_id 'g');
CREATE FOREIGN TABLE queue (data text, message_id text)
  SERVER explain_queue OPTIONS (subscription 'queue-sub', topic 'queue', poll_timeout '20ms');
CREATE FOREIGN TABLE kafka_table (data text, "partition" int)
  SERVER explain_kafka OPTIONS (topic 'clicks', isolation_level 'read_uncommitted');
CREATE FOREIGN TABLE pubsub_table (data text)
  SERVER explain_pubsub OPTIONS (subscription 'orders-sub', topic 'orders');

-- ====
-- Plain EXPLAIN needs no broker: here the topic does not even exist.
SELECT dummy_calls() IS NOT NULL AS reset;
EXPLAIN (COSTS OFF) SELECT * FROM log;
EXPLAIN (COSTS OFF, VERBOSE) SELECT data FROM log WHERE "partition" = 1 AND key LIKE 'a%' LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM queue;
EXPLAIN (COSTS OFF) SELECT data FROM log UNION ALL SELECT data FROM queue;
EXPLAIN (COSTS OFF) SELECT * FROM pubsub_consume(NULL::log);
EXPLAIN (COSTS OFF) SELECT * FROM pubsub_read(NULL::queue, max_records => 5);
EXPLAIN (COSTS OFF) INSERT INTO log (data) VALUES ('x');
EXPLAIN (COSTS OFF, VERBOSE) INSERT INTO queue (data) SELECT data FROM log RETURNING *;
EXPLAIN (COSTS OFF) SELECT pubsub_publish('log', i::text) FROM generate_series(1, 3) i;
PREPARE p(int) AS SELECT * FROM log WHERE "partition" = $1;
EXPLAIN (COSTS OFF) EXECUTE p(1);
DEALLOCATE p;
SELECT dummy_calls();
EXPLAIN (COSTS OFF) SELECT * FROM kafka_table WHERE "partition" = 0;
EXPLAIN (COSTS OFF) INSERT INTO kafka_table VALUES ('x');
EXPLAIN (COSTS OFF) SELECT * FROM pubsub_table;
EXPLAIN (COSTS OFF) INSERT INTO pubsub_table VALUES ('x');
SELECT * FROM pubsub_get_connections() WHERE server_name LIKE 'explain%';

-- ====
-- An estimate: rows of a topic that nobody has counted, and a LIMIT
CREATE FUNCTION estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
  RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT estimate('SELECT * FROM log');
SELECT estimate('SELECT * FROM queue');
SELECT estimate('SELECT * FROM log LIMIT 7');

-- ====
-- EXPLAIN ANALYZE tells what was read.
SELECT pubsub_create_topic('explain_log', 'log', 2);
SELECT count(dummy_append('regress_pubsub_explain', 'log', i % 2, i::text::bytea, 'key'))
  FROM generate_series(1, 20) i;
SELECT pubsub_create_topic('explain_queue', 'queue');
SELECT pubsub_create_subscription('explain_queue', 'queue-sub', 'queue');
SELECT count(dummy_append('regress_pubsub_explain', 'queue', 0, i::text::bytea))
  FROM generate_series(1, 5) i;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM log;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT data FROM log WHERE "offset" < 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT data FROM log LIMIT 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT json) SELECT count(*) FROM log;
-- over all rescans
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
  SELECT * FROM generate_series(1, 3) i LEFT JOIN log ON true;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
  SELECT * FROM generate_series(1, 3) i LEFT JOIN queue ON true;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
ALTER FOREIGN TABLE log OPTIONS (ADD max_records '5');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM log;
ALTER FOREIGN TABLE log OPTIONS (DROP max_records);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM queue;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM queue LIMIT 2;
SELECT dummy_subscription('regress_pubsub_explain', 'queue-sub'), dummy_held();
-- a scan that is never executed asks nobody
SELECT dummy_calls() IS NOT NULL AS reset;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
  SELECT * FROM log WHERE (SELECT false);
SELECT dummy_calls();

-- ====
-- More than eight ranges: VERBOSE shows them all.
SELECT pubsub_create_topic('explain_log', 'wide', 10);
CREATE FOREIGN TABLE wide (data text) SERVER explain_log OPTIONS (topic 'wide');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM wide;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, VERBOSE) SELECT * FROM wide;

-- ====
-- EXPLAIN ANALYZE of publishing and consuming executes: once, and with effect
-- at commit.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO log (data) VALUES ('once');
SELECT count(*) FROM log WHERE data = 'once';
BEGIN;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO log (data) SELECT data FROM log;
ROLLBACK;
SELECT count(*) FROM log;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM pubsub_consume(NULL::log, max_records => 4);
SELECT sum(next_offset) FROM pubsub_offsets WHERE server_name = 'explain_log';
BEGIN;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM pubsub_consume(NULL::queue);
ROLLBACK;
SELECT dummy_subscription('regress_pubsub_explain', 'queue-sub'), dummy_held();

-- ====
-- No secret shows, whatever is asked for.
CREATE USER MAPPING FOR CURRENT_USER SERVER explain_log
  OPTIONS (sasl_username 'somebody', sasl_password 'S3cr3t');
CREATE FUNCTION shows_secret(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, SETTINGS) ' || query LOOP
    IF line ~ 'S3cr3t' THEN
      RETURN true;
    END IF;
  END LOOP;
  RETURN false;
END $$;
SELECT shows_secret('SELECT * FROM log'), shows_secret('INSERT INTO log (data) VALUES (NULL)');

SET client_min_messages = warning;
DROP SERVER explain_log, explain_queue, explain_kafka, explain_pubsub CASCADE;
RESET client_min_messages;
DELETE FROM pubsub_offsets WHERE server_name = 'explain_log';
DROP FUNCTION estimate, shows_secret;
SELECT dummy_drop('regress_pubsub_explain');
