--
-- Reading, from brokers made of files (test/dummy)
--
LOAD 'pubsub_fdw_dummy';
SET TimeZone = 'UTC';

SELECT dummy_drop('regress_pubsub_scan');
CREATE SERVER scan_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_scan');
CREATE SERVER scan_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_scan');

-- Gives a server these orders, and no others.
CREATE FUNCTION scan_orders(server name, VARIADIC orders text[] DEFAULT '{}')
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

-- 30 messages in 3 partitions
SELECT pubsub_create_topic('scan_log', 'numbers', 3);
SELECT count(dummy_append('regress_pubsub_scan', 'numbers', i % 3, i::text::bytea))
  FROM generate_series(1, 30) i;
CREATE FOREIGN TABLE numbers (
  data text, "partition" int, "offset" bigint
) SERVER scan_log OPTIONS (topic 'numbers');

-- ====
-- A scan returns everything, in order within each partition, every time.
SELECT * FROM numbers WHERE "offset" < 3 ORDER BY "partition", "offset";
SELECT count(*), sum(data::int), count(DISTINCT ("partition", "offset")) FROM numbers;
SELECT count(*), sum(data::int), count(DISTINCT ("partition", "offset")) FROM numbers;
SELECT bool_and("offset" = n) AS in_order FROM (
  SELECT "offset", row_number() OVER (PARTITION BY "partition") - 1 AS n FROM numbers) q;

-- ====
-- Small batches, and a broker that often has nothing yet, change nothing.
SELECT scan_orders('scan_log', 'dummy_batch 1', 'dummy_again 3');
SELECT count(*), sum(data::int) FROM numbers;
SELECT scan_orders('scan_log');
ALTER FOREIGN TABLE numbers OPTIONS (ADD fetch_size '4');
SELECT count(*), sum(data::int) FROM numbers;
ALTER FOREIGN TABLE numbers OPTIONS (DROP fetch_size);

-- ====
-- Only what is needed is decoded; nothing needed is fine, too.
SELECT count(*) FROM numbers;
SELECT count(*) FROM numbers WHERE "partition" = 1;
SELECT 1 AS one FROM numbers LIMIT 2;
CREATE FOREIGN TABLE no_columns () SERVER scan_log OPTIONS (topic 'numbers');
SELECT count(*) FROM no_columns;
SELECT * FROM no_columns LIMIT 2;
CREATE FOREIGN TABLE dropped_column (
  gone text, data text, "offset" bigint
) SERVER scan_log OPTIONS (topic 'numbers', partitions '0');
ALTER FOREIGN TABLE dropped_column DROP COLUMN gone;
SELECT * FROM dropped_column ORDER BY "offset" LIMIT 2;
SELECT dropped_column FROM dropped_column ORDER BY "offset" LIMIT 1;
SELECT tableoid::regclass, data FROM dropped_column ORDER BY "offset" LIMIT 1;

-- ====
-- Every kind of column; NULL and empty are told apart.
SELECT pubsub_create_topic('scan_log', 'kinds', 1);
SELECT dummy_append('regress_pubsub_scan', 'kinds', 0, 'v', 'k', '{a,1,b,2}', '2026-01-02 03:04:05.678Z');
SELECT dummy_append('regress_pubsub_scan', 'kinds', 0, NULL, NULL, NULL, '2026-01-02 03:04:06Z');
SELECT dummy_append('regress_pubsub_scan', 'kinds', 0, '', '', '{}', '1969-12-31 23:59:59.998Z');
SELECT dummy_append('regress_pubsub_scan', 'kinds', 0, '\x00ff', '\xff', '{a,1,a,2,n,NULL,e,""}', '2026-01-02 03:04:08Z');
-- a time of -1 ms stands for none
SELECT dummy_append('regress_pubsub_scan', 'kinds', 0, 'x', NULL, NULL, '1969-12-31 23:59:59.999Z');
CREATE FOREIGN TABLE kinds (
  data bytea, key bytea, attributes jsonb, headers jsonb, event_time timestamptz,
  publish_time timestamptz, timestamp_type text, message_id text, topic text,
  "partition" int, "offset" bigint, subscription text, delivery_attempt int,
  a text OPTIONS (attribute 'a')
) SERVER scan_log OPTIONS (topic 'kinds');
\x on
\pset null (null)
SELECT * FROM kinds ORDER BY "offset";
\x off
-- each by itself: the driver leaves out what it was not asked for
SELECT data FROM kinds;
SELECT key FROM kinds;
SELECT attributes FROM kinds;
SELECT headers FROM kinds;
SELECT event_time FROM kinds;
SELECT publish_time FROM kinds;
SELECT timestamp_type FROM kinds;
SELECT a FROM kinds;
SELECT message_id FROM kinds;
SELECT topic, "offset" FROM kinds WHERE key = 'k';
SELECT "offset" FROM kinds WHERE a = '2' AND publish_time > '2026-01-01';
SELECT "offset" FROM kinds ORDER BY event_time;
\pset null ''

-- ====
-- Offsets without a message, also at the end, neither hang nor lose rows.
SELECT pubsub_create_topic('scan_log', 'holes', 2);
SELECT dummy_append_control('regress_pubsub_scan', 'holes', 0, 2);
SELECT dummy_append('regress_pubsub_scan', 'holes', 0, 'a');
SELECT dummy_append_control('regress_pubsub_scan', 'holes', 0, 1);
SELECT dummy_append('regress_pubsub_scan', 'holes', 0, 'b');
SELECT dummy_append_control('regress_pubsub_scan', 'holes', 0, 3);
SELECT dummy_append_control('regress_pubsub_scan', 'holes', 1, 4);
CREATE FOREIGN TABLE holes (data text, "partition" int, "offset" bigint)
  SERVER scan_log OPTIONS (topic 'holes');
SELECT * FROM holes ORDER BY "offset";
SELECT pubsub_create_topic('scan_log', 'empty', 2);
CREATE FOREIGN TABLE empty (data text) SERVER scan_log OPTIONS (topic 'empty');
SELECT * FROM empty;
SELECT count(*) FROM empty;

-- ====
-- Records of open transactions are beyond the end.
SELECT scan_orders('scan_log', 'dummy_unstable 2');
SELECT "partition", count(*) FROM numbers GROUP BY 1 ORDER BY 1;
SELECT scan_orders('scan_log');

-- ====
-- Rescans return the same rows each time.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT i, count(data), sum(data::int) FROM generate_series(1, 3) i
  LEFT JOIN numbers ON true GROUP BY i ORDER BY i;
SELECT i, (SELECT max(data::int) FROM numbers WHERE "partition" = i % 3) AS m
  FROM generate_series(1, 3) i ORDER BY i;
SELECT i, l.* FROM generate_series(1, 3) i, LATERAL
  (SELECT data, "offset" FROM numbers WHERE "partition" = i % 3 AND "offset" >= i
   ORDER BY "offset" LIMIT 2) l ORDER BY 1, 3;
-- also one that stopped in the middle of a batch
SELECT i, (SELECT data FROM dropped_column WHERE "offset" >= i LIMIT 1) AS d
  FROM generate_series(1, 3) i ORDER BY i;
SELECT a."offset", b."offset" FROM dropped_column a JOIN dropped_column b
  ON b."offset" < a."offset" WHERE a."offset" < 3 ORDER BY 1, 2;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

-- ====
-- All scans of a statement see the same end; the next statement sees more.
SELECT pubsub_create_topic('scan_log', 'growing', 1);
SELECT count(dummy_append('regress_pubsub_scan', 'growing', 0, i::text::bytea))
  FROM generate_series(1, 5) i;
CREATE FOREIGN TABLE growing (data text, "offset" bigint)
  SERVER scan_log OPTIONS (topic 'growing');
SELECT (SELECT count(*) FROM growing) AS before,
  dummy_append('regress_pubsub_scan', 'growing', 0, '6') IS NOT NULL AS appended,
  (SELECT count(*) FROM growing g) AS after;
SELECT count(*) FROM growing;
SELECT count(*) FROM growing a JOIN growing b USING ("offset");
-- a scan ends although the topic grows with every row
SELECT count(dummy_append('regress_pubsub_scan', 'growing', 0, data::bytea)) FROM growing;
SELECT count(*) FROM growing;

-- ====
-- Scans are independent of each other.
SELECT count(*) FROM (SELECT data FROM numbers UNION ALL SELECT data FROM numbers) q;
WITH c AS MATERIALIZED (SELECT * FROM numbers)
  SELECT count(*) FROM c a JOIN c b USING ("partition", "offset");
CREATE VIEW numbers_view AS SELECT * FROM numbers WHERE data::int % 2 = 0;
SELECT count(*), sum(data::int) FROM numbers_view;
PREPARE by_partition(int) AS SELECT count(*), min(data::int) FROM numbers WHERE "partition" = $1;
EXECUTE by_partition(0);
EXECUTE by_partition(1);
SET plan_cache_mode = force_generic_plan;
EXECUTE by_partition(2);
RESET plan_cache_mode;
DEALLOCATE by_partition;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*) FROM numbers;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
CREATE TABLE numbers_parent (data text, "partition" int, "offset" bigint);
INSERT INTO numbers_parent VALUES ('local', 9, 9);
ALTER FOREIGN TABLE numbers INHERIT numbers_parent;
SELECT count(*), count(DISTINCT tableoid) FROM numbers_parent;
ALTER FOREIGN TABLE numbers NO INHERIT numbers_parent;

-- ====
-- Cursors
BEGIN;
DECLARE c1 CURSOR FOR SELECT data FROM dropped_column;
DECLARE c2 CURSOR FOR SELECT data FROM dropped_column;
FETCH 2 FROM c1;
FETCH 3 FROM c2;
FETCH 2 FROM c1;
-- a savepoint that is rolled back does not take the cursor along
SAVEPOINT s;
FETCH 1 FROM c1;
ROLLBACK TO s;
FETCH 1 FROM c1;
-- one that was opened inside does go
DECLARE c3 CURSOR FOR SELECT data FROM dropped_column;
FETCH 1 FROM c3;
ROLLBACK TO s;
FETCH 1 FROM c3;
ROLLBACK;
-- nor one whose first row was fetched inside
BEGIN;
DECLARE c1 CURSOR FOR SELECT data FROM dropped_column;
SAVEPOINT s;
FETCH 2 FROM c1;
ROLLBACK TO s;
FETCH 2 FROM c1;
SAVEPOINT t;
DECLARE c2 CURSOR FOR SELECT data FROM dropped_column;
RELEASE t;
SAVEPOINT u;
FETCH 1 FROM c2;
ROLLBACK TO s;
FETCH 1 FROM c1;
FETCH 1 FROM c2;
ROLLBACK;
SELECT dummy_held();
BEGIN;
SAVEPOINT s;
DECLARE c4 SCROLL CURSOR FOR SELECT data FROM dropped_column;
FETCH 2 FROM c4;
RELEASE s;
FETCH 1 FROM c4;
FETCH BACKWARD 2 FROM c4;
MOVE ABSOLUTE 0 FROM c4;
FETCH 1 FROM c4;
COMMIT;
BEGIN;
DECLARE c5 CURSOR WITH HOLD FOR SELECT data FROM dropped_column;
FETCH 1 FROM c5;
COMMIT;
FETCH 1 FROM c5;
CLOSE c5;
DO $$
DECLARE
  r record;
  n int := 0;
BEGIN
  FOR r IN SELECT data FROM dropped_column LOOP
    n := n + r.data::int;
    COMMIT;
  END LOOP;
  RAISE NOTICE 'sum %', n;
END $$;
SELECT dummy_held();

-- ====
-- LIMIT ends the scan, wherever it is, and nothing is left behind.
SELECT data FROM dropped_column LIMIT 1;
SELECT data FROM dropped_column ORDER BY "offset" LIMIT 1 OFFSET 2;
SELECT EXISTS (SELECT FROM numbers);
SELECT dummy_held();

-- ====
-- Where a read starts and stops: table options ...
CREATE FOREIGN TABLE slice (data text, "partition" int, "offset" bigint)
  SERVER scan_log OPTIONS (topic 'numbers', start_offsets 'latest-2');
SELECT "partition", array_agg("offset" ORDER BY "offset") FROM slice GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE slice OPTIONS (SET start_offsets 'latest');
SELECT "partition", array_agg("offset" ORDER BY "offset") FROM slice GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE slice OPTIONS (SET start_offsets '{"0": 8, "1": "latest", "2": -2}');
SELECT "partition", array_agg("offset" ORDER BY "offset") FROM slice GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE slice OPTIONS (SET start_offsets 'earliest', ADD stop_offsets '{"0": 2, "2": 1}', ADD partitions '0,2');
SELECT "partition", array_agg("offset" ORDER BY "offset") FROM slice GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE slice OPTIONS (DROP start_offsets, DROP stop_offsets, SET partitions '1-2');
SELECT "partition", count(*) FROM slice GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE slice OPTIONS (SET partitions '1-7');
SELECT count(*) FROM slice;
ALTER FOREIGN TABLE slice OPTIONS (DROP partitions, ADD max_records '7');
SELECT count(*) FROM slice;
ALTER FOREIGN TABLE slice OPTIONS (DROP max_records);
-- ... and arguments of pubsub_read(), which win over them
SELECT "partition", array_agg("offset" ORDER BY "offset") FROM
  pubsub_read(NULL::slice, start_offsets => 'latest-2', stop_offsets => '{"0": 9}') GROUP BY 1 ORDER BY 1;
SELECT "partition", count(*) FROM pubsub_read(NULL::slice, partitions => '{0,2}') GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM pubsub_read(NULL::slice, max_records => 4);
SELECT count(*) FROM pubsub_read(NULL::slice, max_read_time => '5 s');
SELECT count(*) FROM pubsub_read(NULL::slice) a, pubsub_read(NULL::slice) b;
SELECT count(*) FROM pubsub_read(ROW('x', 1, 2)::slice);
-- a row type with dropped columns, and an alias list
SELECT * FROM pubsub_read(NULL::dropped_column) ORDER BY "offset" LIMIT 2;
SELECT x FROM pubsub_read(NULL::slice, start_offsets => 'latest-1') AS t (x, y, z) ORDER BY y;
SELECT dummy_held();

-- ====
-- By time: a start is the first message at or after it, a stop is exclusive.
SELECT pubsub_create_topic('scan_log', 'times', 1);
SELECT count(dummy_append('regress_pubsub_scan', 'times', 0, i::text::bytea, NULL, NULL,
  '2026-01-01Z'::timestamptz + i * interval '1 hour')) FROM generate_series(1, 5) i;
CREATE FOREIGN TABLE times (data text, publish_time timestamptz)
  SERVER scan_log OPTIONS (topic 'times');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times, start_read_time => '2026-01-01 03:00Z');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times, start_read_time => '2026-01-01 02:59:59.9999Z');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times, start_read_time => '2026-01-01 03:00:00.000001Z');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times, stop_read_time => '2026-01-01 03:00Z');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times, stop_read_time => '2026-01-01 03:00:00.000001Z');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times,
  start_read_time => '1976-06-06Z', stop_read_time => '2026-01-01 05:00Z');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times, start_read_time => '-infinity');
SELECT string_agg(data, ',' ORDER BY data) FROM pubsub_read(NULL::times,
  start_read_time => '2026-01-01 03:00Z', stop_read_time => '2026-01-01 02:00Z');
-- no message at or after that time: by timestamp_miss
SELECT count(*) FROM pubsub_read(NULL::times, start_read_time => '2036-06-06Z');
SELECT count(*) FROM pubsub_read(NULL::times, stop_read_time => '2036-06-06Z');
ALTER FOREIGN TABLE times OPTIONS (ADD timestamp_miss 'latest');
SELECT count(*) FROM pubsub_read(NULL::times, start_read_time => '2036-06-06Z');
SELECT count(*) FROM pubsub_read(NULL::times, stop_read_time => 'infinity');
ALTER FOREIGN TABLE times OPTIONS (ADD start_read_time '2026-01-01 04:00Z', ADD start_offsets 'earliest');
SELECT string_agg(data, ',' ORDER BY data) FROM times;

-- ====
-- Records that are gone: "earliest" means the first that exists, a start
-- below it is an error, or skipped with a NOTICE.
SELECT dummy_truncate('regress_pubsub_scan', 'growing', 0, 4);
SELECT min("offset"), count(*) FROM growing;
SELECT min("offset"), count(*) FROM growing WHERE "offset" >= 2;
SELECT min("offset"), count(*) FROM pubsub_read(NULL::growing, start_offsets => '{"0": 2}');
SELECT min("offset"), count(*) FROM pubsub_read(NULL::growing, start_offsets => '{"0": 99}');
SELECT pubsub_create_topic('scan_log', 'hollow', 1);
CREATE FOREIGN TABLE hollow (data text) SERVER scan_log OPTIONS (topic 'hollow');
SELECT count(*) FROM pubsub_read(NULL::hollow, start_offsets => '{"0": 1}');
SELECT min("offset"), count(*) FROM pubsub_read(NULL::growing, start_offsets => 'latest-99');
ALTER FOREIGN TABLE growing OPTIONS (ADD on_data_loss 'skip');
SELECT min("offset"), count(*) FROM pubsub_read(NULL::growing, start_offsets => '{"0": 2}');
SELECT min("offset"), count(*) FROM pubsub_read(NULL::growing, start_offsets => '{"0": 99}');
ALTER FOREIGN TABLE growing OPTIONS (DROP on_data_loss);

-- ====
-- pubsub_read() refuses what makes no sense.
SELECT * FROM pubsub_read(NULL::slice, max_records => 0);
SELECT * FROM pubsub_read(NULL::slice, max_records => -1);
SELECT * FROM pubsub_read(NULL::slice, max_read_time => '0');
SELECT * FROM pubsub_read(NULL::slice, max_read_time => '-1 s');
SELECT * FROM pubsub_read(NULL::slice, partitions => '{7}');
SELECT * FROM pubsub_read(NULL::slice, partitions => '{NULL}');
SELECT * FROM pubsub_read(NULL::slice, partitions => '{}');
SELECT * FROM pubsub_read(NULL::slice, start_offsets => 'sometimes');
SELECT * FROM pubsub_read(NULL::slice, start_offsets => '{"0": 1');
SELECT * FROM pubsub_read(NULL::slice, start_offsets => '{"7": 1}');
SELECT * FROM pubsub_read(NULL::numbers_parent);
SELECT * FROM pubsub_read(1);
SELECT pubsub_read(NULL::slice);
CREATE DOMAIN slice_domain AS slice;
SELECT count(*) FROM pubsub_read(NULL::slice_domain);

-- ====
-- A SELECT from a queue is a peek: all messages are available afterwards, and
-- the rows of a rescan are replayed.
SELECT pubsub_create_topic('scan_queue', 'jobs');
SELECT pubsub_create_subscription('scan_queue', 'jobs-sub', 'jobs');
SELECT count(dummy_append('regress_pubsub_scan', 'jobs', 0, i::text::bytea))
  FROM generate_series(1, 10) i;
CREATE FOREIGN TABLE jobs (data text, message_id text, subscription text, topic text)
  SERVER scan_queue OPTIONS (subscription 'jobs-sub', poll_timeout '20ms');
SELECT * FROM jobs ORDER BY data::int LIMIT 2;
SELECT count(*), sum(data::int) FROM jobs;
SELECT dummy_subscription('regress_pubsub_scan', 'jobs-sub');
SELECT data FROM jobs LIMIT 1;
-- a LIMIT is for what is above it: a sort needs all rows, and one that is a
-- guess at plan time must not cut the scan at execution time
SELECT data FROM jobs ORDER BY data::int DESC LIMIT 1;
SELECT data FROM jobs ORDER BY data::int DESC OFFSET 2 LIMIT 2;
SET scan.n = 2;
PREPARE by_setting AS SELECT data FROM jobs LIMIT current_setting('scan.n')::int;
EXECUTE by_setting;
SET scan.n = 4;
EXECUTE by_setting;
SET plan_cache_mode = force_generic_plan;
PREPARE by_parameter(int) AS SELECT count(*) FROM (SELECT data FROM jobs LIMIT $1) q;
EXECUTE by_parameter(3);
EXECUTE by_parameter(8);
RESET plan_cache_mode;
DEALLOCATE ALL;
SELECT dummy_subscription('regress_pubsub_scan', 'jobs-sub');
SELECT scan_orders('scan_queue', 'dummy_batch 1', 'dummy_again 2');
SELECT count(*), sum(data::int) FROM jobs;
SELECT scan_orders('scan_queue');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT i, count(data), sum(data::int) FROM generate_series(1, 3) i
  LEFT JOIN jobs ON true GROUP BY i ORDER BY i;
SELECT i, (SELECT max(data::int) FROM jobs WHERE data::int % 3 = i % 3) AS m
  FROM generate_series(1, 3) i ORDER BY i;
-- also one that stopped in the middle
SELECT i, (SELECT data FROM jobs WHERE data::int > 2 * i LIMIT 1) AS m
  FROM generate_series(1, 3) i ORDER BY i;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;
SELECT count(*) FROM pubsub_read(NULL::jobs);
SELECT count(*) FROM pubsub_read(NULL::jobs, max_records => 3);
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM jobs;
FETCH 3 FROM c;
CLOSE c;
SELECT dummy_subscription('regress_pubsub_scan', 'jobs-sub');
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM jobs;
SAVEPOINT s;
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH 2 FROM c;
COMMIT;
SELECT dummy_subscription('regress_pubsub_scan', 'jobs-sub'), dummy_held();
-- request_timeout is for the broker: a reader may take as long as it likes
SELECT scan_orders('scan_queue', 'dummy_batch 2', 'dummy_again 1');
ALTER SERVER scan_queue OPTIONS (ADD request_timeout '100ms');
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM jobs;
FETCH 2 FROM c;
SELECT pg_sleep(0.2);
FETCH 2 FROM c;
COMMIT;
ALTER SERVER scan_queue OPTIONS (DROP request_timeout);
SELECT scan_orders('scan_queue');
-- options and arguments of a log do not fit
SELECT * FROM pubsub_read(NULL::jobs, start_offsets => 'earliest');
SELECT * FROM pubsub_read(NULL::jobs, partitions => '{0}');
SELECT dummy_subscription('regress_pubsub_scan', 'jobs-sub'), dummy_held();

-- ====
-- A read-only transaction may read.
BEGIN READ ONLY;
SELECT count(*) FROM numbers;
SELECT count(*) FROM jobs;
SELECT count(*) FROM pubsub_read(NULL::slice);
COMMIT;

-- ====
-- ANALYZE leaves the broker alone.
SELECT dummy_calls() IS NOT NULL;
ANALYZE numbers;
ANALYZE jobs;
SELECT dummy_calls();

-- ====
-- Names that do not exist
CREATE FOREIGN TABLE no_topic (data text) SERVER scan_log OPTIONS (topic 'nosuch');
SELECT * FROM no_topic;
CREATE FOREIGN TABLE no_subscription (data text) SERVER scan_queue OPTIONS (subscription 'nosuch');
SELECT * FROM no_subscription;
SELECT dummy_held();

SET client_min_messages = warning;
DROP SERVER scan_log, scan_queue CASCADE;
RESET client_min_messages;
DROP TABLE numbers_parent;
DROP FUNCTION scan_orders;
SELECT dummy_drop('regress_pubsub_scan');
