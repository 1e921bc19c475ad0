--
-- Reading from Apache Kafka: SELECT and pubsub_read()
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP
\getenv kafka_tool KAFKA_TOOL
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';

CREATE SERVER read_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER read_kafka;

-- a topic that is new, also when the test is run again
CREATE FUNCTION new_topic(topic text, partitions int, config jsonb DEFAULT '{}') RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pubsub_drop_topic('read_kafka', new_topic.topic, if_exists => true);
  RETURN pubsub_create_topic('read_kafka', new_topic.topic, partitions => new_topic.partitions, config => new_topic.config);
END $$;
-- runs test/lib/kafka_tool in the middle of a statement
CREATE TABLE tool_output (line text);
SELECT format('KAFKA_BOOTSTRAP=%s %s ', :'kafka_bootstrap', :'kafka_tool') AS tool \gset
\set ECHO none
SELECT format($x$CREATE FUNCTION tool(arguments text) RETURNS text VOLATILE LANGUAGE plpgsql AS $f$
BEGIN
  EXECUTE format('COPY tool_output FROM PROGRAM %%L', %L || arguments);
  RETURN 'done';
END $f$$x$, :'tool') \gexec
\set ECHO all

-- ====
-- All partitions, to their end; an empty one, one that nobody wrote to; an
-- empty topic.
SELECT new_topic('regress_read', 4);
\! $KAFKA_TOOL write regress_read 0 a0 a1 a2
\! $KAFKA_TOOL write regress_read 2 k=c0 c1
\! $KAFKA_TOOL write regress_read 3 d0 d1 d2 d3
\! $KAFKA_TOOL delete regress_read 3 4
CREATE FOREIGN TABLE r (data text, key text, "partition" int, "offset" bigint, publish_time timestamptz)
  SERVER read_kafka OPTIONS (topic 'regress_read');
SELECT data, key, "partition", "offset" FROM r ORDER BY "partition", "offset";
SELECT count(*) FROM r;
SELECT "partition", count(*) FROM r GROUP BY 1 ORDER BY 1;
SELECT data FROM r WHERE "partition" = 2 ORDER BY "offset";
SELECT data FROM r WHERE data = 'nomatch';
SELECT new_topic('regress_read_empty', 3);
CREATE FOREIGN TABLE r_empty (data text) SERVER read_kafka OPTIONS (topic 'regress_read_empty');
SELECT * FROM r_empty;
SELECT * FROM pubsub_read(NULL::r_empty);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM r;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM r_empty;

-- ====
-- Control records of transactions take offsets and are no rows, at the end of
-- a partition, too.
SELECT new_topic('regress_read_tx', 4);
\! $KAFKA_TOOL write regress_read_tx 0 begin a commit begin b abort c begin d commit
\! $KAFKA_TOOL write regress_read_tx 1 begin e abort
\! $KAFKA_TOOL write regress_read_tx 2 f begin g h abort
CREATE FOREIGN TABLE r_tx (data text, "partition" int, "offset" bigint)
  SERVER read_kafka OPTIONS (topic 'regress_read_tx');
CREATE FOREIGN TABLE r_tx_all (data text, "partition" int, "offset" bigint)
  SERVER read_kafka OPTIONS (topic 'regress_read_tx', isolation_level 'read_uncommitted');
SELECT * FROM r_tx ORDER BY "partition", "offset";
SELECT * FROM r_tx_all ORDER BY "partition", "offset";
-- an open transaction is the end, at once; what comes after it waits
\! $KAFKA_TOOL write regress_read_tx 3 i begin j
\! $KAFKA_TOOL write regress_read_tx 3 k
SET statement_timeout = '5s';
SELECT * FROM r_tx WHERE "partition" = 3 ORDER BY "offset";
SELECT * FROM r_tx_all WHERE "partition" = 3 ORDER BY "offset";
-- a start past the last stable offset is no loss of data
SELECT * FROM pubsub_read(NULL::r_tx, start_offsets => '{"0": "latest", "1": "latest", "2": "latest", "3": 1}');
SELECT * FROM pubsub_read(NULL::r_tx, start_offsets => '{"0": "latest", "1": "latest", "2": "latest", "3": 3}');
RESET statement_timeout;
\! $KAFKA_TOOL end regress_read_tx 3
SELECT * FROM r_tx WHERE "partition" = 3 ORDER BY "offset";
-- max_records counts rows, not offsets
SELECT * FROM pubsub_read(NULL::r_tx, partitions => '{0}', max_records => 2) ORDER BY "offset";
SELECT * FROM pubsub_read(NULL::r_tx, start_offsets => '{"0": 1, "1": "latest", "2": "latest", "3": "latest"}', stop_offsets => '{"0": 5}');

-- ====
-- Holes made by compaction, in the middle and at the end: the last record of
-- all is a tombstone that goes, too.
SELECT new_topic('regress_read_holes', 1, '{"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0", "min.compaction.lag.ms": "0", "max.compaction.lag.ms": "50"}');
\! $KAFKA_TOOL write regress_read_holes 0 a=1 b=1 a=2 a=3 a=4 b=2 a=5
CREATE FOREIGN TABLE r_holes (key text, data text, "offset" bigint)
  SERVER read_kafka OPTIONS (topic 'regress_read_holes');
-- the active segment is not compacted: write until one is rolled, and wait
DO $$
DECLARE
  deadline timestamptz := clock_timestamp() + interval '60 s';
BEGIN
  WHILE (SELECT count(*) FROM r_holes WHERE key IN ('a', 'b')) > 2 LOOP
    PERFORM tool('write regress_read_holes 0 z=1');
    IF clock_timestamp() > deadline THEN
      RAISE EXCEPTION 'the topic is not compacted';
    END IF;
    PERFORM pg_sleep(0.1);
  END LOOP;
END $$;
SELECT * FROM r_holes WHERE key IN ('a', 'b') ORDER BY "offset";
-- a start inside a hole; an end inside and at the end of one
SELECT * FROM pubsub_read(NULL::r_holes, start_offsets => '{"0": 3}', stop_offsets => '{"0": 7}') ORDER BY "offset";
SELECT * FROM pubsub_read(NULL::r_holes, start_offsets => '{"0": 0}', stop_offsets => '{"0": 4}') ORDER BY "offset";
SELECT * FROM pubsub_read(NULL::r_holes, start_offsets => '{"0": 1}', stop_offsets => '{"0": 5}') ORDER BY "offset";

-- ====
-- start_offsets, stop_offsets, partitions
SELECT data FROM pubsub_read(NULL::r, start_offsets => 'earliest', stop_offsets => 'latest') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => 'latest') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => 'latest-1') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => 'latest-100') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, stop_offsets => 'latest-2') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, stop_offsets => 'earliest') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => '-1') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => '-2', stop_offsets => '-1') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": 1, "2": "latest-1"}') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"regress_read": {"0": 2, "2": -1}}') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": 1}', stop_offsets => '{"0": 2, "2": -2}') ORDER BY data;
-- an end past the end, and before the start, is no error
SELECT data FROM pubsub_read(NULL::r, stop_offsets => '{"0": 5000}') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": 2}', stop_offsets => '{"0": 1, "2": 0}') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, partitions => '{2,0,2}') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r, partitions => '{1}') ORDER BY data;
CREATE FOREIGN TABLE r_some (data text, "partition" int)
  SERVER read_kafka OPTIONS (topic 'regress_read', partitions '0-1, 3', start_offsets '{"0": 1}', stop_offsets 'latest-1');
SELECT data FROM r_some ORDER BY data;
-- arguments win over options
SELECT data FROM pubsub_read(NULL::r_some, start_offsets => 'earliest', stop_offsets => 'latest', partitions => '{0}') ORDER BY data;
-- what does not exist, what makes no sense
SELECT data FROM pubsub_read(NULL::r, partitions => '{4}');
SELECT data FROM pubsub_read(NULL::r, partitions => '{}');
SELECT data FROM pubsub_read(NULL::r, partitions => '{0,NULL}');
SELECT data FROM pubsub_read(NULL::r, partitions => '{-1}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"4": 0}');
SELECT data FROM pubsub_read(NULL::r, partitions => '{1}', start_offsets => '{"0": 0}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"other": {"0": 0}}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => 'first');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": -3}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": 1.5}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": 99999999999999999999}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": null}');
SELECT data FROM pubsub_read(NULL::r, start_offsets => '{"0": ');
SELECT data FROM pubsub_read(NULL::r, stop_offsets => '');

-- ====
-- start_read_time, stop_read_time: records of known times, and some that share
-- a millisecond
SELECT new_topic('regress_read_time', 3, '{"retention.ms": "-1", "message.timestamp.after.max.ms": "9223372036854775807"}');
CREATE FOREIGN TABLE r_time (data text, event_time timestamptz, "partition" int)
  SERVER read_kafka OPTIONS (topic 'regress_read_time');
INSERT INTO r_time VALUES
  ('a', '2025-06-10 01:07:42.125Z', 0), ('b', '2025-06-10 01:07:42.125Z', 0), ('c', '2025-06-10 01:07:42.125Z', 0),
  ('d', '2025-06-10 01:08:11.82Z', 0), ('e', '2025-06-10 01:08:11.82Z', 0),
  ('f', '2025-06-10 01:08:00Z', 1);
CREATE FOREIGN TABLE r_time_latest (data text, event_time timestamptz, "partition" int)
  SERVER read_kafka OPTIONS (topic 'regress_read_time', timestamp_miss 'latest');
CREATE FUNCTION between_times(start_at timestamptz, stop_at timestamptz) RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(data, ' ' ORDER BY data) FROM pubsub_read(NULL::r_time_latest, start_read_time => $1, stop_read_time => $2)$$;
SELECT start_at, stop_at, between_times(start_at, stop_at) FROM (VALUES
  ('2025-06-10 01:07:42.125Z'::timestamptz, NULL::timestamptz),
  ('2025-06-10 01:07:42.1250005Z', NULL),
  ('2025-06-10 01:07:42.124999Z', NULL),
  ('2025-06-10 01:07:42.126Z', NULL),
  ('2025-06-10 01:08:11.82Z', NULL),
  ('2025-06-10 01:08:11.821Z', NULL),
  (NULL, '2025-06-10 01:07:42.125Z'),
  (NULL, '2025-06-10 01:07:42.125001Z'),
  (NULL, '2025-06-10 01:07:42.126Z'),
  (NULL, '2025-06-10 01:08:11.82Z'),
  (NULL, '2030-01-01Z'),
  ('2025-06-10 01:07:42.125Z', '2025-06-10 01:07:42.125Z'),
  ('2025-06-10 01:07:42.125Z', '2025-06-10 01:08:11.82Z'),
  ('1974-06-09 00:53:20Z', NULL),
  ('1969-12-31 23:59:59.999Z', NULL),
  ('-infinity', 'infinity'),
  ('4713-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00'),
  ('2100-01-01Z', NULL)) v(start_at, stop_at);
SELECT between_times('2025-06-10 01:08Z', '2025-06-10 01:07Z');
-- without "latest" a partition that has no such record is an error, an empty
-- one among them
SELECT data FROM pubsub_read(NULL::r_time, start_read_time => '2025-06-10 01:08:05Z');
SELECT data FROM pubsub_read(NULL::r_time, start_read_time => '2025-06-10 01:08:05Z', partitions => '{0}') ORDER BY data;
SELECT data FROM pubsub_read(NULL::r_time, start_read_time => '2100-01-01Z');
SELECT data FROM pubsub_read(NULL::r_time, stop_read_time => '2030-01-01Z', partitions => '{0}');
-- a time wins over offsets
SELECT data FROM pubsub_read(NULL::r_time, start_read_time => '2025-06-10 01:08:05Z', start_offsets => 'earliest', partitions => '{0}') ORDER BY data;
-- as options
ALTER FOREIGN TABLE r_time_latest OPTIONS (ADD start_read_time '2025-06-10 01:08:00Z', ADD stop_read_time '2025-06-10 01:08:11.82Z');
SELECT data FROM r_time_latest;
ALTER FOREIGN TABLE r_time_latest OPTIONS (SET start_read_time 'infinity');
ALTER FOREIGN TABLE r_time_latest OPTIONS (SET start_read_time 'soon');
-- predicates on times see all records, also where the bound is past the last
SELECT data FROM r_time WHERE event_time < '2025-06-10 01:07:42.126Z' ORDER BY data;
SELECT data FROM r_time WHERE event_time < '2100-01-01Z' ORDER BY data;
SELECT data FROM r_time WHERE event_time > '2100-01-01Z' LIMIT 10;
SELECT data FROM r_time WHERE event_time BETWEEN '2025-06-10 01:07:42.125Z' AND '2025-06-10 01:08Z' ORDER BY data;

-- ====
-- max_records, max_read_time, LIMIT
SELECT count(*) FROM pubsub_read(NULL::r, max_records => 3);
SELECT count(*) FROM pubsub_read(NULL::r, max_records => 5);
SELECT count(*) FROM pubsub_read(NULL::r, max_records => 9223372036854775807);
SELECT count(*) FROM pubsub_read(NULL::r, max_records => 0);
SELECT count(*) FROM pubsub_read(NULL::r, max_records => -1);
SELECT count(*) FROM pubsub_read(NULL::r, max_read_time => '0');
SELECT count(*) FROM pubsub_read(NULL::r, max_read_time => '-1 s');
SELECT count(*) FROM pubsub_read(NULL::r, max_read_time => '1 month');
SELECT count(*) FROM pubsub_read(NULL::r, max_read_time => '10 s');
CREATE FOREIGN TABLE r_limited (data text) SERVER read_kafka OPTIONS (topic 'regress_read', max_records '2');
SELECT count(*) FROM r_limited;
SELECT count(*) FROM pubsub_read(NULL::r_limited, max_records => 4);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM r_limited;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM r LIMIT 2;
SELECT count(*) FROM (SELECT * FROM r LIMIT 0) q;
SELECT count(*) FROM (SELECT * FROM r OFFSET 1 LIMIT 2) q;
SELECT count(*) FROM (SELECT * FROM r LIMIT 100) q;

-- a time that is over is told, and what was read until then is a prefix
SELECT new_topic('regress_read_many', 2);
\! $KAFKA_TOOL fill regress_read_many 2 20000 100
CREATE FOREIGN TABLE r_many (data text, "partition" int, "offset" bigint) SERVER read_kafka OPTIONS (topic 'regress_read_many');
CREATE FOREIGN TABLE r_slow (data text, "offset" bigint) SERVER read_kafka OPTIONS (topic 'regress_read_many', partitions '1', max_read_time '150ms');
SET client_min_messages = warning;
SELECT count(*) < 10000 AND count(*) = coalesce(max("offset"), -1) + 1 AS prefix
  FROM (SELECT "offset", CASE WHEN "offset" % 10 = 9 THEN pg_sleep(0.02) END FROM r_slow OFFSET 0) q;
SELECT count(*) = coalesce(max("offset"), -1) + 1 AS prefix FROM pubsub_read(NULL::r_slow, max_read_time => '1 ms');
RESET client_min_messages;
-- small fetches change nothing
CREATE FOREIGN TABLE r_small (data text) SERVER read_kafka
  OPTIONS (topic 'regress_read_many', fetch_size '7', "properties.fetch.message.max.bytes" '1000', "properties.queued.min.messages" '1000');
SELECT count(*), count(DISTINCT data) FROM r_small;

-- ====
-- Rescans give the same rows again.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT i, count(*), min(data), max(data) FROM generate_series(1, 3) i JOIN r ON true GROUP BY i ORDER BY i;
SELECT i, (SELECT count(*) FROM r WHERE "offset" < i) FROM generate_series(1, 3) i;
SELECT i, (SELECT count(*) FROM r_tx WHERE "offset" >= i) FROM generate_series(1, 3) i;
SELECT i, n FROM generate_series(1, 3) i, LATERAL (SELECT count(*) AS n FROM (SELECT * FROM r WHERE "offset" >= i - 1 LIMIT 2) q) l;
SELECT i, data FROM generate_series(1, 3) i, LATERAL (SELECT data FROM r WHERE "partition" = 0 ORDER BY "offset" OFFSET i - 1 LIMIT 1) l;
-- not to its end, then from the start
SELECT count(*) FROM generate_series(1, 20) i, LATERAL (SELECT i, data FROM r_many LIMIT 10) l;
SELECT count(*), count(DISTINCT data) FROM generate_series(1, 3) i, LATERAL (SELECT i, data FROM r_many OFFSET 0) l;
SELECT count(*) FROM r a, r b;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
  SELECT * FROM generate_series(1, 3) i LEFT JOIN r ON i > 1 AND "offset" >= 0;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;
PREPARE p AS SELECT count(*) FROM r;
EXECUTE p;
EXECUTE p;
EXECUTE p;
EXECUTE p;
EXECUTE p;
EXECUTE p;
DEALLOCATE p;

-- ====
-- All scans of a topic in a statement see the same ends, whatever is written
-- in the meantime; the next statement sees it.
SELECT new_topic('regress_read_ends', 2);
\! $KAFKA_TOOL write regress_read_ends 0 a b c
CREATE FOREIGN TABLE r_ends (data text, "partition" int, "offset" bigint) SERVER read_kafka OPTIONS (topic 'regress_read_ends');
CREATE FOREIGN TABLE r_ends_again (data text) SERVER read_kafka OPTIONS (topic 'regress_read_ends');
SELECT 'first', count(*) FROM r_ends
UNION ALL SELECT tool('write regress_read_ends 0 late'), 1
UNION ALL SELECT tool('write regress_read_ends 1 late'), 1
UNION ALL SELECT 'second', count(*) FROM r_ends
UNION ALL SELECT 'other table', count(*) FROM r_ends_again;
SELECT count(*) FROM r_ends;
SELECT count(*) FROM r_ends a FULL JOIN r_ends b USING ("partition", "offset") WHERE a.data IS NULL OR b.data IS NULL;
-- so does each rescan
SET enable_material = off;
SELECT i, n FROM generate_series(1, 3) i,
  LATERAL (SELECT count(*) AS n FROM r_ends WHERE i > 0) c,
  LATERAL (SELECT tool('write regress_read_ends 0 later') WHERE i > 0) w;
RESET enable_material;
SELECT count(*) FROM r_ends;
-- a new partition, and what is in it, is seen by the next statement
SELECT 'first', count(*) FROM r_ends
UNION ALL SELECT tool('partitions regress_read_ends 3'), 1
UNION ALL SELECT tool('write regress_read_ends 2 late'), 1
UNION ALL SELECT 'second', count(*) FROM r_ends;
SELECT count(*) FROM r_ends;
-- reading from the topic that is written to ends, and doubles it exactly
INSERT INTO r_ends (data) SELECT data FROM r_ends;
SELECT count(*) FROM r_ends;
INSERT INTO r_ends (data) SELECT data FROM r_ends UNION ALL SELECT data FROM r_ends;
SELECT count(*) FROM r_ends;
INSERT INTO r_many (data) SELECT data FROM r_many;
SELECT count(*), count(DISTINCT data) FROM r_many;

-- ====
-- Cursors are independent of each other.
BEGIN;
DECLARE c1 CURSOR FOR SELECT data FROM r WHERE "partition" = 0;
DECLARE c2 CURSOR FOR SELECT data FROM r WHERE "partition" = 0;
DECLARE c3 CURSOR WITH HOLD FOR SELECT data FROM r WHERE "partition" = 2;
FETCH 1 FROM c1;
FETCH 2 FROM c2;
FETCH 1 FROM c1;
FETCH 1 FROM c2;
FETCH 1 FROM c2;
CLOSE c2;
FETCH 1 FROM c1;
FETCH 1 FROM c1;
COMMIT;
FETCH ALL FROM c3;
CLOSE c3;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT data FROM r WHERE "partition" = 0;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 1 FROM c;
COMMIT;
-- a cursor lives on when the savepoint that first fetched from it does not
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM r WHERE "partition" = 0;
SAVEPOINT a;
FETCH 1 FROM c;
ROLLBACK TO a;
FETCH 1 FROM c;
RELEASE a;
SAVEPOINT b;
DECLARE d CURSOR FOR SELECT data FROM r WHERE "partition" = 2;
RELEASE b;
SAVEPOINT b;
FETCH 1 FROM d;
FETCH 1 FROM c;
ROLLBACK TO b;
FETCH 1 FROM d;
FETCH 1 FROM c;
COMMIT;

-- ====
-- Many topics in one statement
CREATE TABLE r_parent (data text, n int) PARTITION BY LIST (n);
SELECT count(format) FROM (SELECT format('') FROM generate_series(1, 50)) f;
DO $$
BEGIN
  FOR i IN 1..50 LOOP
    EXECUTE format('CREATE FOREIGN TABLE r_parent_%s PARTITION OF r_parent FOR VALUES IN (%s) SERVER read_kafka OPTIONS (topic ''regress_read'', format ''json'')', i, i);
    EXECUTE format('ALTER FOREIGN TABLE r_parent_%s ALTER data OPTIONS (metadata ''data''), ALTER n OPTIONS (metadata ''partition'')', i);
  END LOOP;
END $$;
SELECT count(*) FROM r_parent;
DROP TABLE r_parent;

-- ====
-- Data loss: what was asked for is not there any more, or never was.
SELECT new_topic('regress_read_loss', 1);
\! $KAFKA_TOOL write regress_read_loss 0 a b c d e
\! $KAFKA_TOOL delete regress_read_loss 0 3
CREATE FOREIGN TABLE r_loss (data text, "offset" bigint) SERVER read_kafka OPTIONS (topic 'regress_read_loss');
SELECT * FROM r_loss ORDER BY "offset";
SELECT * FROM r_loss WHERE "offset" >= 1 ORDER BY "offset";
SELECT * FROM r_loss WHERE "offset" >= 5000;
SELECT * FROM pubsub_read(NULL::r_loss, start_offsets => '{"0": 1}');
SELECT * FROM pubsub_read(NULL::r_loss, start_offsets => '{"0": 5}');
SELECT * FROM pubsub_read(NULL::r_loss, start_offsets => '{"0": 6}');
SELECT * FROM pubsub_read(NULL::r_loss, stop_offsets => '{"0": 1}');
SELECT * FROM pubsub_read(NULL::r_loss, start_offsets => 'latest-5') ORDER BY "offset";
ALTER FOREIGN TABLE r_loss OPTIONS (ADD on_data_loss 'skip');
SELECT * FROM pubsub_read(NULL::r_loss, start_offsets => '{"0": 1}') ORDER BY "offset";
SELECT * FROM pubsub_read(NULL::r_loss, start_offsets => '{"0": 5000}');
\! $KAFKA_TOOL delete regress_read_loss 0 5
SELECT * FROM r_loss;
-- the records go while a cursor stands before them
SELECT new_topic('regress_read_going', 1);
\! $KAFKA_TOOL fill regress_read_going 1 100000 1000
CREATE FOREIGN TABLE r_going (data text, "offset" bigint) SERVER read_kafka OPTIONS (topic 'regress_read_going');
BEGIN;
DECLARE c CURSOR FOR SELECT "offset" FROM r_going;
FETCH 1 FROM c;
\! $KAFKA_TOOL delete regress_read_going 0 99999
DO $$
DECLARE
  c refcursor := 'c';
BEGIN
  MOVE FORWARD ALL IN c;
EXCEPTION WHEN fdw_error THEN
  RAISE NOTICE '% (%)', SQLERRM, SQLSTATE;
END $$;
COMMIT;
SELECT "offset" FROM r_going;

SET client_min_messages = warning;
SELECT pubsub_drop_topic('read_kafka', topic) FROM unnest('{regress_read,regress_read_empty,regress_read_tx,regress_read_holes,regress_read_time,regress_read_many,regress_read_ends,regress_read_loss,regress_read_going}'::text[]) AS topic;
DROP SERVER read_kafka CASCADE;
DROP FUNCTION new_topic, tool, between_times;
DROP TABLE tool_output;
