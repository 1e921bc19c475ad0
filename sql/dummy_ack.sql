--
-- Consuming, from brokers made of files (test/dummy): what takes effect when
-- the transaction commits, and what comes back when it does not
--
LOAD 'pubsub_fdw_dummy';
SET TimeZone = 'UTC';

SELECT dummy_drop('regress_pubsub_ack');
CREATE SERVER ack_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_ack');
CREATE SERVER ack_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_ack');

-- Gives a server these orders, and no others.
CREATE FUNCTION ack_orders(server name, VARIADIC orders text[] DEFAULT '{}')
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

-- ----------------------------------------------------------------------
-- A log: positions in pubsub_offsets
-- ----------------------------------------------------------------------
SELECT pubsub_create_topic('ack_log', 'feed', 2);
SELECT count(dummy_append('regress_pubsub_ack', 'feed', i % 2, i::text::bytea))
  FROM generate_series(1, 10) i;
CREATE FOREIGN TABLE feed (data text, "partition" int, "offset" bigint)
  SERVER ack_log OPTIONS (topic 'feed', group_id 'g');
CREATE VIEW ack_positions AS
  SELECT topic, "partition", group_id, next_offset FROM pubsub_offsets
  WHERE server_name = 'ack_log' ORDER BY 1, 2, 3;

-- ====
-- A call returns what was not consumed yet and moves the positions.
SELECT count(*), sum(data::int) FROM pubsub_consume(NULL::feed);
SELECT * FROM ack_positions;
SELECT count(*) FROM pubsub_consume(NULL::feed);
SELECT dummy_append('regress_pubsub_ack', 'feed', 0, '11');
SELECT data FROM pubsub_consume(NULL::feed);
SELECT * FROM ack_positions;
-- a plain SELECT does not look at them
SELECT count(*) FROM feed;

-- ====
-- ROLLBACK takes the positions back; so does ROLLBACK TO, exactly as far.
SELECT count(dummy_append('regress_pubsub_ack', 'feed', 1, i::text::bytea))
  FROM generate_series(21, 26) i;
BEGIN;
SELECT count(*) FROM pubsub_consume(NULL::feed);
SELECT * FROM ack_positions;
ROLLBACK;
SELECT * FROM ack_positions;
BEGIN;
SELECT data FROM pubsub_consume(NULL::feed, max_records => 2);
SAVEPOINT s;
-- the second call in a transaction goes on where the first one stopped
SELECT data FROM pubsub_consume(NULL::feed, max_records => 2);
SELECT next_offset FROM ack_positions WHERE "partition" = 1;
ROLLBACK TO s;
SELECT next_offset FROM ack_positions WHERE "partition" = 1;
SELECT data FROM pubsub_consume(NULL::feed, max_records => 1);
RELEASE s;
SAVEPOINT t;
SELECT data FROM pubsub_consume(NULL::feed, max_records => 1);
RELEASE t;
COMMIT;
SELECT * FROM ack_positions;
SELECT data FROM pubsub_consume(NULL::feed);

-- ====
-- A failing statement consumes nothing.
SELECT count(dummy_append('regress_pubsub_ack', 'feed', 0, i::text::bytea))
  FROM generate_series(31, 40) i;
CREATE TABLE feed_copy (data int PRIMARY KEY);
INSERT INTO feed_copy VALUES (36);
INSERT INTO feed_copy SELECT data::int FROM pubsub_consume(NULL::feed);
SELECT * FROM ack_positions;
DO $$
BEGIN
  INSERT INTO feed_copy SELECT data::int FROM pubsub_consume(NULL::feed);
EXCEPTION WHEN unique_violation THEN
  RAISE NOTICE 'caught';
END $$;
SELECT * FROM ack_positions;
INSERT INTO feed_copy SELECT data::int FROM pubsub_consume(NULL::feed) ON CONFLICT DO NOTHING;
SELECT count(*) FROM feed_copy;
SELECT * FROM ack_positions;
-- also when it fails as late as at COMMIT
SELECT dummy_append('regress_pubsub_ack', 'feed', 0, '41');
CREATE TABLE feed_child (data int REFERENCES feed_copy DEFERRABLE INITIALLY DEFERRED);
BEGIN;
INSERT INTO feed_child SELECT data::int FROM pubsub_consume(NULL::feed);
COMMIT;
SELECT data FROM pubsub_consume(NULL::feed);

-- ====
-- A message that cannot be decoded stops the call and is not consumed.
SELECT count(dummy_append('regress_pubsub_ack', 'feed', 0, v::bytea))
  FROM unnest('{"{\"a\": 1}","{\"a\":"}'::text[]) v;
CREATE FOREIGN TABLE feed_json (data jsonb) SERVER ack_log OPTIONS (topic 'feed', group_id 'g');
SELECT data FROM pubsub_consume(NULL::feed_json);
SELECT * FROM ack_positions;
SELECT data FROM pubsub_consume(NULL::feed_json, max_records => 1);
SELECT data FROM pubsub_consume(NULL::feed);

-- ====
-- Groups do not know of each other; the argument wins over the option.
SELECT count(*) FROM pubsub_consume(NULL::feed, group_id => 'other', max_records => 3);
SELECT count(*) FROM pubsub_consume(NULL::feed, group_id => 'other', partitions => '{1}');
SELECT * FROM ack_positions;
CREATE FOREIGN TABLE feed_no_group (data text) SERVER ack_log OPTIONS (topic 'feed');
SELECT * FROM pubsub_consume(NULL::feed_no_group);
SELECT count(*) FROM pubsub_consume(NULL::feed_no_group, group_id => 'third');

-- ====
-- max_records is exact, also over several partitions and with small batches.
SELECT pubsub_create_topic('ack_log', 'wide', 3);
SELECT count(dummy_append('regress_pubsub_ack', 'wide', i % 3, i::text::bytea))
  FROM generate_series(1, 30) i;
CREATE FOREIGN TABLE wide (data text, "partition" int)
  SERVER ack_log OPTIONS (topic 'wide', group_id 'g', fetch_size '4');
SELECT "partition", count(*) FROM pubsub_consume(NULL::wide, max_records => 13) GROUP BY 1 ORDER BY 1;
SELECT * FROM ack_positions WHERE topic = 'wide';
-- who waits longest is next
SELECT "partition", count(*) FROM pubsub_consume(NULL::wide, max_records => 8) GROUP BY 1 ORDER BY 1;
SELECT * FROM ack_positions WHERE topic = 'wide';
SELECT count(*) FROM pubsub_consume(NULL::wide);
SELECT count(*) FROM pubsub_consume(NULL::wide);

-- ====
-- Offsets without a message are passed, also at the end of a partition.
SELECT pubsub_create_topic('ack_log', 'holes', 1);
SELECT dummy_append('regress_pubsub_ack', 'holes', 0, 'a');
SELECT dummy_append_control('regress_pubsub_ack', 'holes', 0, 2);
SELECT dummy_append('regress_pubsub_ack', 'holes', 0, 'b');
SELECT dummy_append_control('regress_pubsub_ack', 'holes', 0, 1);
CREATE FOREIGN TABLE holes (data text) SERVER ack_log OPTIONS (topic 'holes', group_id 'g');
SELECT data FROM pubsub_consume(NULL::holes, max_records => 1);
SELECT next_offset FROM ack_positions WHERE topic = 'holes';
SELECT data FROM pubsub_consume(NULL::holes);
SELECT next_offset FROM ack_positions WHERE topic = 'holes';
SELECT data FROM pubsub_consume(NULL::holes);

-- ====
-- Start options count for a group that is new to the topic, only: "latest" is
-- when it first consumes, for all partitions, also those it did not get to.
CREATE FOREIGN TABLE wide_late (data text, "partition" int)
  SERVER ack_log OPTIONS (topic 'wide', group_id 'late', start_offsets 'latest-2');
SELECT "partition", count(*) FROM pubsub_consume(NULL::wide_late) GROUP BY 1 ORDER BY 1;
ALTER FOREIGN TABLE wide_late OPTIONS (SET start_offsets 'earliest');
SELECT count(*) FROM pubsub_consume(NULL::wide_late);
ALTER FOREIGN TABLE wide_late OPTIONS (SET start_offsets '{"0": 999}');
SELECT count(*) FROM pubsub_consume(NULL::wide_late);
ALTER FOREIGN TABLE wide_late OPTIONS (DROP start_offsets, ADD start_read_time '2100-01-01Z');
SELECT count(*) FROM pubsub_consume(NULL::wide_late);
ALTER FOREIGN TABLE wide_late OPTIONS (DROP start_read_time, ADD start_offsets 'latest');
SELECT count(*) FROM pubsub_consume(NULL::wide_late, group_id => 'latest');
SELECT count(dummy_append('regress_pubsub_ack', 'wide', i % 3, i::text::bytea))
  FROM generate_series(31, 36) i;
SELECT count(*) FROM pubsub_consume(NULL::wide_late, group_id => 'latest', max_records => 1);
SELECT count(*) FROM pubsub_consume(NULL::wide_late, group_id => 'latest');
ALTER FOREIGN TABLE wide_late OPTIONS (SET start_offsets 'latest-1');
SELECT data FROM pubsub_consume(NULL::wide_late, group_id => 'latest-1', max_records => 1);
SELECT "partition", next_offset FROM ack_positions WHERE group_id = 'latest-1';
SELECT data FROM pubsub_consume(NULL::wide_late, group_id => 'latest-1');
ALTER FOREIGN TABLE wide_late OPTIONS (DROP start_offsets, ADD start_read_time '1999-01-01Z');
SELECT count(*) FROM pubsub_consume(NULL::wide_late, group_id => 'by time');
ALTER FOREIGN TABLE wide_late OPTIONS (SET start_read_time '2100-01-01Z');
SELECT count(*) FROM pubsub_consume(NULL::wide_late, group_id => 'by time');
SELECT count(*) FROM pubsub_consume(NULL::wide_late, group_id => 'by time, too');

-- ====
-- A position that is outside of what exists: an error, or skipped.
SELECT pubsub_create_topic('ack_log', 'lossy', 1);
SELECT count(dummy_append('regress_pubsub_ack', 'lossy', 0, i::text::bytea))
  FROM generate_series(0, 9) i;
CREATE FOREIGN TABLE lossy (data text, "offset" bigint)
  SERVER ack_log OPTIONS (topic 'lossy', group_id 'g');
SELECT count(*) FROM pubsub_consume(NULL::lossy, max_records => 2);
SELECT dummy_truncate('regress_pubsub_ack', 'lossy', 0, 5);
SELECT count(*) FROM pubsub_consume(NULL::lossy);
SELECT next_offset FROM ack_positions WHERE topic = 'lossy';
ALTER FOREIGN TABLE lossy OPTIONS (ADD on_data_loss 'skip');
SELECT min("offset"), count(*) FROM pubsub_consume(NULL::lossy);
SELECT next_offset FROM ack_positions WHERE topic = 'lossy';
-- the topic was made anew
SELECT pubsub_drop_topic('ack_log', 'lossy');
SELECT pubsub_create_topic('ack_log', 'lossy', 1);
SELECT count(dummy_append('regress_pubsub_ack', 'lossy', 0, i::text::bytea))
  FROM generate_series(0, 3) i;
ALTER FOREIGN TABLE lossy OPTIONS (SET on_data_loss 'error');
SELECT count(*) FROM pubsub_consume(NULL::lossy);
-- beyond the last stable offset is no loss
SELECT count(*) FROM pubsub_consume(NULL::lossy, group_id => 'stable');
SELECT ack_orders('ack_log', 'dummy_unstable 2');
SELECT count(*) FROM pubsub_consume(NULL::lossy, group_id => 'stable');
SELECT ack_orders('ack_log');
-- records that go between the look and the read
SELECT ack_orders('ack_log', 'dummy_truncate 2');
SELECT count(*) FROM pubsub_consume(NULL::lossy, group_id => 'racing');
SELECT ack_orders('ack_log');
SELECT count(*) FROM ack_positions WHERE group_id = 'racing';

-- ====
-- Cancelled in the middle: nothing is consumed.
SELECT pubsub_create_topic('ack_log', 'stuck', 1);
SELECT count(dummy_append('regress_pubsub_ack', 'stuck', 0, i::text::bytea))
  FROM generate_series(1, 5) i;
CREATE FOREIGN TABLE stuck (data text) SERVER ack_log OPTIONS (topic 'stuck', group_id 'g');
SELECT ack_orders('ack_log', 'dummy_fail_poll 3', 'dummy_batch 1');
SELECT data FROM pubsub_consume(NULL::stuck);
SELECT count(*) FROM ack_positions WHERE topic = 'stuck';
SELECT ack_orders('ack_log', 'dummy_hang poll');
-- cut short by max_read_time, which is told
SELECT data FROM pubsub_consume(NULL::stuck, max_read_time => '100 ms');
SET statement_timeout = '200ms';
SELECT data FROM pubsub_consume(NULL::stuck);
RESET statement_timeout;
SELECT ack_orders('ack_log');
SELECT data FROM pubsub_consume(NULL::stuck);
SELECT dummy_held();

-- ----------------------------------------------------------------------
-- A queue: acknowledgements after COMMIT
-- ----------------------------------------------------------------------
SELECT pubsub_create_topic('ack_queue', 'jobs');
SELECT pubsub_create_subscription('ack_queue', 'jobs-sub', 'jobs');
SELECT count(dummy_append('regress_pubsub_ack', 'jobs', 0, i::text::bytea))
  FROM generate_series(1, 20) i;
CREATE FOREIGN TABLE jobs (data text, delivery_attempt int)
  SERVER ack_queue OPTIONS (subscription 'jobs-sub', topic 'jobs', poll_timeout '20ms');
CREATE FUNCTION ack_state() RETURNS text LANGUAGE sql VOLATILE AS
  $$SELECT dummy_subscription('regress_pubsub_ack', 'jobs-sub')$$;

-- ====
-- COMMIT acknowledges what was returned; what was not returned is available
-- at once.
BEGIN;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 3);
SELECT ack_state();
COMMIT;
SELECT ack_state();

-- ====
-- ROLLBACK gives everything back at once.
BEGIN;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 3);
SELECT ack_state();
ROLLBACK;
SELECT ack_state();
SELECT string_agg(data || '/' || delivery_attempt, ',') FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT ack_state();

-- ====
-- ROLLBACK TO gives back what was read since; RELEASE hands it to the outer
-- transaction.
BEGIN;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 1);
SAVEPOINT a;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 2);
SAVEPOINT b;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT ack_state();
ROLLBACK TO b;
SELECT ack_state();
RELEASE a;
SELECT ack_state();
SAVEPOINT c;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 1);
ROLLBACK TO c;
ROLLBACK TO c;
COMMIT;
SELECT ack_state(), dummy_held();

-- ====
-- A failing statement, at once or at COMMIT, gives back what it read.
INSERT INTO feed_copy SELECT 36 FROM pubsub_consume(NULL::jobs, max_records => 5);
SELECT ack_state();
DO $$
BEGIN
  PERFORM 1 / (data::int - 10) FROM pubsub_consume(NULL::jobs, max_records => 5);
EXCEPTION WHEN division_by_zero THEN
  RAISE NOTICE 'caught: %', ack_state();
END $$;
SELECT ack_state();
BEGIN;
INSERT INTO feed_child SELECT 1000 FROM pubsub_consume(NULL::jobs, max_records => 5);
COMMIT;
SELECT ack_state(), dummy_held();

-- ====
-- A peek in the same transaction neither acknowledges nor keeps anything.
BEGIN;
SELECT count(*) FROM jobs;
SELECT string_agg(data, ',') FROM pubsub_consume(NULL::jobs, max_records => 1);
SELECT count(*) FROM jobs;
SELECT ack_state();
COMMIT;
SELECT ack_state();

-- ====
-- A failed acknowledgement is a WARNING, since the commit is done; the
-- message comes again, and the session goes on.
CREATE TABLE jobs_done (data text);
SELECT ack_orders('ack_queue', 'dummy_fail_acks 1', 'dummy_error lost');
INSERT INTO jobs_done SELECT data FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT * FROM jobs_done ORDER BY data::int;
SELECT ack_state();
SELECT ack_orders('ack_queue', 'dummy_fail_send_acks 1');
INSERT INTO jobs_done SELECT data FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT count(*) FROM jobs_done;
SELECT ack_state();

-- ====
-- A broker that does not answer holds COMMIT for no longer than ack_timeout.
SELECT ack_orders('ack_queue', 'dummy_hang send_acks', 'dummy_soft_cause nobody is there');
SET pubsub_fdw.ack_timeout = '100ms';
INSERT INTO jobs_done SELECT data FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT count(*) FROM jobs_done;
RESET pubsub_fdw.ack_timeout;
SELECT ack_state(), dummy_held();
SELECT ack_orders('ack_queue', 'dummy_again 3');
INSERT INTO jobs_done SELECT data FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT ack_state(), dummy_held();

-- ====
-- What can fail before the commit, fails the transaction.
SELECT ack_orders('ack_queue', 'dummy_fail_prepare_acks 1', 'dummy_error memory');
INSERT INTO jobs_done SELECT data FROM pubsub_consume(NULL::jobs, max_records => 2);
SELECT count(*) FROM jobs_done;
SELECT ack_state(), dummy_held();

-- ====
-- Lost leases are told.
SELECT ack_orders('ack_queue', 'dummy_expired 1');
BEGIN;
SELECT count(*) FROM pubsub_consume(NULL::jobs, max_records => 2);
COMMIT;
SELECT ack_state(), dummy_held();
SELECT ack_orders('ack_queue');

-- ====
-- Two servers in one transaction, and both kinds of broker.
BEGIN;
SELECT count(*) FROM pubsub_consume(NULL::jobs, max_records => 1);
SELECT count(*) FROM pubsub_consume(NULL::feed, group_id => 'both', max_records => 1);
SELECT count(*) FROM pubsub_consume(NULL::jobs, max_records => 1);
COMMIT;
SELECT ack_state();
SELECT "partition", next_offset FROM ack_positions WHERE group_id = 'both';

-- ====
-- The read ends early: a batch that is half returned, and an error inside.
SELECT ack_orders('ack_queue', 'dummy_batch 2', 'dummy_fail_poll 2');
SELECT count(*) FROM pubsub_consume(NULL::jobs);
SELECT ack_state(), dummy_held();
SELECT ack_orders('ack_queue', 'dummy_hang finish');
SET pubsub_fdw.ack_timeout = '100ms';
SELECT count(*) FROM pubsub_consume(NULL::jobs, max_records => 1);
RESET pubsub_fdw.ack_timeout;
SELECT ack_state(), dummy_held();
SELECT ack_orders('ack_queue');

-- ====
-- Everything that is left
SELECT count(*) FROM pubsub_consume(NULL::jobs);
SELECT count(*) FROM pubsub_consume(NULL::jobs);
SELECT ack_state();

-- ====
-- A WARNING at COMMIT that the client's encoding cannot show is lost, but
-- nothing else is: the session can be cancelled as before.
CREATE SERVER U&"ack_queue_\20AC" FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_ack', dummy_fail_acks '1');
CREATE FOREIGN TABLE jobs_euro (data text) SERVER U&"ack_queue_\20AC"
  OPTIONS (topic 'jobs', subscription 'jobs-sub', poll_timeout '10ms');
SELECT dummy_append('regress_pubsub_ack', 'jobs', 0, 'x');
SET client_encoding = 'LATIN1';
SELECT data FROM pubsub_consume(NULL::jobs_euro);
SET statement_timeout = '50ms';
SELECT pg_sleep(10);
RESET statement_timeout;
RESET client_encoding;
SELECT data FROM pubsub_consume(NULL::jobs);
SELECT ack_state();

-- ====
-- What consuming does not do
BEGIN READ ONLY;
SELECT * FROM pubsub_consume(NULL::feed);
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM pubsub_consume(NULL::jobs);
ROLLBACK;
SELECT * FROM pubsub_consume(NULL::jobs, max_records => 0);
SELECT * FROM pubsub_consume(NULL::jobs, max_read_time => '0 s');
SELECT * FROM pubsub_consume(NULL::jobs, group_id => 'g');
SELECT * FROM pubsub_consume(NULL::jobs, partitions => '{0}');
SELECT * FROM pubsub_consume(NULL::feed, partitions => '{9}');
SELECT * FROM pubsub_consume(NULL::feed, group_id => '');
SELECT * FROM pubsub_consume(NULL::feed, group_id => repeat('x', 256));
SELECT * FROM pubsub_consume(NULL::feed_copy);
SELECT pubsub_consume(NULL::feed);
-- LIMIT does not make a function call consume less than it returns
SELECT count(dummy_append('regress_pubsub_ack', 'jobs', 0, i::text::bytea))
  FROM generate_series(1, 3) i;
SELECT data FROM pubsub_consume(NULL::jobs) LIMIT 1;
SELECT ack_state();

-- ====
-- PREPARE TRANSACTION is refused after any use of a broker.
SELECT count(dummy_append('regress_pubsub_ack', 'jobs', 0, i::text::bytea))
  FROM generate_series(1, 2) i;
BEGIN;
SELECT count(*) FROM pubsub_consume(NULL::jobs);
PREPARE TRANSACTION 'regress_pubsub_ack';
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT count(*) > 0 FROM feed;
PREPARE TRANSACTION 'regress_pubsub_ack';
SELECT ack_state(), dummy_held();

-- ====
-- Nobody but the extension writes the positions; they are dumped.
SELECT extconfig::regclass[] FROM pg_extension WHERE extname = 'pubsub_fdw';

SET client_min_messages = warning;
DROP SERVER ack_log, ack_queue, U&"ack_queue_\20AC" CASCADE;
RESET client_min_messages;
DROP VIEW ack_positions;
DELETE FROM pubsub_offsets WHERE server_name = 'ack_log';
DROP TABLE feed_child, feed_copy, jobs_done;
DROP FUNCTION ack_orders, ack_state;
SELECT dummy_drop('regress_pubsub_ack');
