--
-- Publishing, to brokers made of files (test/dummy): what is sent when the
-- transaction commits, and what is not when it does not
--
LOAD 'pubsub_fdw_dummy';
SET TimeZone = 'UTC';

SELECT dummy_drop('regress_pubsub_publish');
CREATE SERVER pub_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_publish');
CREATE SERVER pub_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_publish');

-- Gives a server these orders, and no others.
CREATE FUNCTION pub_orders(server name, VARIADIC orders text[] DEFAULT '{}')
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

SELECT pubsub_create_topic('pub_log', 'out', 3);
CREATE FOREIGN TABLE "out" (
  data text, key text, attributes jsonb, event_time timestamptz,
  "partition" int, "offset" bigint
) SERVER pub_log OPTIONS (topic 'out');
-- what arrived since the last look
CREATE FUNCTION arrived() RETURNS TABLE (data text, key text, attributes jsonb, p int, o bigint)
LANGUAGE sql AS $$SELECT data, key, attributes, "partition", "offset"
  FROM pubsub_consume(NULL::"out", group_id => 'arrived') ORDER BY "partition", "offset"$$;

-- ====
-- INSERT publishes one message per row; every column arrives.
INSERT INTO "out" (data, key, attributes) VALUES ('one', NULL, NULL), ('two', 'a', '{"x": "1"}'), ('', '', '{}');
INSERT INTO "out" (data, "partition") SELECT i::text, i FROM generate_series(0, 2) i;
INSERT INTO "out" (data, event_time) VALUES ('then', '2001-02-03 04:05:06.789Z');
SELECT event_time FROM "out" WHERE data = 'then';
SELECT * FROM arrived();

-- ====
-- Nothing is sent before COMMIT, nothing at ROLLBACK.
BEGIN;
INSERT INTO "out" (data) VALUES ('kept');
SELECT count(*) FROM "out" WHERE data = 'kept';
COMMIT;
SELECT data FROM arrived();
BEGIN;
INSERT INTO "out" (data) VALUES ('gone');
ROLLBACK;
SELECT data FROM arrived();

-- ====
-- Savepoints: what was rolled back is not sent, the rest is, in order.
BEGIN;
INSERT INTO "out" (data) VALUES ('1');
SAVEPOINT a;
INSERT INTO "out" (data) VALUES ('2 gone');
ROLLBACK TO a;
INSERT INTO "out" (data) VALUES ('3');
SAVEPOINT b;
INSERT INTO "out" (data) VALUES ('4');
SAVEPOINT c;
INSERT INTO "out" (data) VALUES ('5 gone');
ROLLBACK TO c;
RELEASE b;
INSERT INTO "out" (data) VALUES ('6');
SAVEPOINT d;
INSERT INTO "out" (data) VALUES ('7');
RELEASE d;
COMMIT;
SELECT data FROM arrived();
DO $$
BEGIN
  FOR i IN 1..6 LOOP
    BEGIN
      INSERT INTO "out" (data) VALUES (i::text);
      IF i % 2 = 0 THEN
        RAISE division_by_zero;
      END IF;
    EXCEPTION WHEN division_by_zero THEN
      NULL;
    END;
  END LOOP;
END $$;
SELECT data FROM arrived();
-- a target that is first used in a subtransaction that fails
BEGIN;
SAVEPOINT a;
INSERT INTO "out" (data) VALUES ('gone');
ROLLBACK TO a;
COMMIT;
BEGIN;
SAVEPOINT a;
INSERT INTO "out" (data) VALUES ('gone');
ROLLBACK TO a;
INSERT INTO "out" (data) VALUES ('kept');
COMMIT;
SELECT data FROM arrived();

-- ====
-- Beyond publish_buffer_size messages go through a file: all of them, in
-- order, and savepoints hold there, too.
SET pubsub_fdw.publish_buffer_size = '64kB';
BEGIN;
INSERT INTO "out" (data, "partition") SELECT i || repeat('x', 1000), 0 FROM generate_series(1, 500) i;
SAVEPOINT a;
INSERT INTO "out" (data, "partition") SELECT 'gone' || repeat('x', 1000), 0 FROM generate_series(1, 300) i;
ROLLBACK TO a;
INSERT INTO "out" (data, "partition") SELECT i || repeat('x', 1000), 0 FROM generate_series(501, 700) i;
SAVEPOINT b;
INSERT INTO "out" (data, "partition") VALUES ('gone', 0);
ROLLBACK TO b;
-- one bigger than the buffer
INSERT INTO "out" (data, "partition") VALUES ('big' || repeat('y', 200000), 0);
COMMIT;
SELECT count(*), count(*) FILTER (WHERE rtrim(data, 'x') = n::text) AS in_place,
  count(*) FILTER (WHERE data LIKE 'big%' AND n = 701 AND length(data) = 200003) AS big
  FROM (SELECT data, row_number() OVER (ORDER BY o) AS n FROM arrived()) q;
BEGIN;
INSERT INTO "out" (data) SELECT repeat('x', 1000) FROM generate_series(1, 200);
ROLLBACK;
SELECT count(*) FROM arrived();
RESET pubsub_fdw.publish_buffer_size;
SELECT dummy_held();

-- ====
-- COPY
COPY "out" (data, key) FROM stdin;
copied 1	k
copied 2	\N
\.
SELECT data, key FROM arrived();
COPY "out" (data, "partition") FROM stdin;
copied 3	1
copied 4	x
\.
SELECT data, key FROM arrived();

-- ====
-- Rows routed to a partition that is a foreign table
CREATE TABLE routed (data text, key text, region text) PARTITION BY LIST (region);
CREATE TABLE routed_local PARTITION OF routed FOR VALUES IN ('local');
CREATE FOREIGN TABLE routed_out (data text, key text, region text OPTIONS (attribute 'region'))
  SERVER pub_log OPTIONS (topic 'out');
ALTER TABLE routed ATTACH PARTITION routed_out FOR VALUES IN ('remote');
INSERT INTO routed VALUES ('here', 'k', 'local'), ('there', 'k', 'remote');
INSERT INTO routed VALUES ('there too', 'k', 'remote') RETURNING *;
COPY routed FROM stdin;
copied here	k	local
copied there	k	remote
\.
SELECT data, key, attributes FROM arrived();
SELECT * FROM routed_local;
INSERT INTO routed VALUES ('x', 'k', 'remote') ON CONFLICT DO NOTHING;
SELECT count(*) FROM arrived();

-- ====
-- What is published is the row after defaults, generated columns and BEFORE
-- triggers.
CREATE FOREIGN TABLE shaped (
  data text DEFAULT 'default',
  key text GENERATED ALWAYS AS (upper(data)) STORED,
  attributes jsonb DEFAULT '{"src": "pg"}'
) SERVER pub_log OPTIONS (topic 'out');
INSERT INTO shaped (data) VALUES ('a'), ('b');
INSERT INTO shaped DEFAULT VALUES;
SELECT data, key, attributes FROM arrived();
CREATE FUNCTION edit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.data = 'suppress' THEN
    RETURN NULL;
  END IF;
  NEW.data := 'edited ' || NEW.data;
  RETURN NEW;
END $$;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'after: %', NEW.data;
  RETURN NULL;
END $$;
CREATE TRIGGER edit BEFORE INSERT ON shaped FOR EACH ROW EXECUTE FUNCTION edit();
CREATE TRIGGER tell AFTER INSERT ON shaped FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO shaped (data) VALUES ('c'), ('suppress'), ('d');
SELECT data, key FROM arrived();
-- (constraints of foreign tables are a promise, never checked)
ALTER FOREIGN TABLE shaped ADD CONSTRAINT no_e CHECK (data <> 'edited e');
INSERT INTO shaped (data) VALUES ('f'), ('e');
SELECT data, key FROM arrived();

-- ====
-- RETURNING returns the row as it is sent; through a view, too.
INSERT INTO "out" (data, key) VALUES ('r', 'k') RETURNING *;
INSERT INTO "out" (data, key) VALUES ('r', 'k') RETURNING "out", data || key AS both, tableoid::regclass;
CREATE VIEW out_view AS SELECT data, key FROM "out" WHERE data <> 'hidden' WITH CHECK OPTION;
INSERT INTO out_view VALUES ('v', 'k') RETURNING *;
INSERT INTO out_view VALUES ('hidden', 'k');
WITH i AS (INSERT INTO "out" (data) SELECT 'w' RETURNING data) SELECT * FROM i;
SELECT data, key FROM arrived();

-- ====
-- Triggers of local tables publish, also those that wait for COMMIT.
CREATE TABLE notify_on (i int);
CREATE FUNCTION notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pubsub_send('"out"', TG_NAME || ' ' || NEW.i);
  RETURN NULL;
END $$;
CREATE TRIGGER at_once AFTER INSERT ON notify_on FOR EACH ROW EXECUTE FUNCTION notify();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON notify_on DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION notify();
BEGIN;
INSERT INTO notify_on VALUES (1);
INSERT INTO "out" (data) VALUES ('in between');
COMMIT;
SELECT data FROM arrived();
-- transactions inside of a block
DO $$
BEGIN
  INSERT INTO "out" (data) VALUES ('committed');
  COMMIT;
  INSERT INTO "out" (data) VALUES ('rolled back');
  ROLLBACK;
  INSERT INTO "out" (data) VALUES ('committed, too');
END $$;
SELECT data FROM arrived();

-- ====
-- Reading and writing one topic in a statement ends, and doubles the topic.
SELECT pubsub_create_topic('pub_log', 'loop', 1);
CREATE FOREIGN TABLE loop (data text) SERVER pub_log OPTIONS (topic 'loop');
INSERT INTO loop VALUES ('1'), ('2');
INSERT INTO loop SELECT data FROM loop;
SELECT count(*) FROM loop;

-- ====
-- pubsub_send() and pubsub_publish()
SELECT pubsub_send('"out"', 'sent');
SELECT pubsub_send('"out"', 'sent'::bytea, '{"a": "b"}', 'k');
SELECT pubsub_send('"out"', '{"j": 1}'::json);
SELECT pubsub_send('"out"', '{"j": 2}'::jsonb, key => 'k');
SELECT pubsub_send('"out"', NULL::text, key => 'k');
SELECT data, key, attributes FROM arrived();
SELECT i % 2 AS odd, pubsub_publish('"out"', i::text, NULL, 'k' ORDER BY i)
  FROM generate_series(1, 5) i GROUP BY 1 ORDER BY 1;
SELECT pubsub_publish('"out"', i::text) FROM generate_series(1, 0) i;
BEGIN;
SELECT pubsub_publish('"out"', i::text) FROM generate_series(1, 5) i;
ROLLBACK;
SELECT data, key FROM arrived();

-- ====
-- Delivery is confirmed message by message; a queue that is full and a broker
-- that is slow change nothing.
SELECT pub_orders('pub_log', 'dummy_queue_size 3', 'dummy_drain 1', 'dummy_again 1');
INSERT INTO "out" (data, "partition") SELECT i::text, 0 FROM generate_series(1, 10) i;
SELECT pub_orders('pub_log');
SELECT string_agg(data, ',' ORDER BY o) FROM arrived();

-- ====
-- A delivery that fails aborts the transaction; it says which message.
CREATE TABLE local_rows (i int);
SELECT pub_orders('pub_log', 'dummy_fail_delivery 3', 'dummy_error too_large', 'dummy_drain 2');
BEGIN;
INSERT INTO local_rows VALUES (1);
INSERT INTO "out" (data) SELECT i::text FROM generate_series(1, 5) i;
COMMIT;
SELECT pub_orders('pub_log');
SELECT count(*) FROM local_rows;
SELECT dummy_held();
-- two had been delivered: the broker has them, the transaction is gone
SELECT string_agg(data, ',') FROM arrived();

-- ====
-- A delivery that is never confirmed, and a broker that stops answering, end
-- COMMIT with an error: by request_timeout, statement_timeout, cancel.
SET pubsub_fdw.request_timeout = '200ms';
SELECT pub_orders('pub_log', 'dummy_lose_report 2');
INSERT INTO "out" (data) VALUES ('1'), ('2'), ('3');
\echo :LAST_ERROR_SQLSTATE
-- it is not enough that the driver says it is done
SELECT pub_orders('pub_log', 'dummy_lose_report 2', 'dummy_lie on');
INSERT INTO "out" (data) VALUES ('1'), ('2'), ('3');
SELECT pub_orders('pub_log', 'dummy_hang drain', 'dummy_soft_cause nobody is there', 'dummy_error lost');
INSERT INTO "out" (data) VALUES ('1');
\echo :LAST_ERROR_SQLSTATE
SELECT pub_orders('pub_log', 'dummy_hang put');
INSERT INTO "out" (data) VALUES ('1');
RESET pubsub_fdw.request_timeout;
SELECT pub_orders('pub_log', 'dummy_hang drain');
SET statement_timeout = '200ms';
INSERT INTO "out" (data) VALUES ('1');
BEGIN;
INSERT INTO "out" (data) VALUES ('1');
COMMIT;
RESET statement_timeout;
SELECT pub_orders('pub_log');
SELECT dummy_held();
SELECT count(*) >= 0 AS whatever FROM arrived();
INSERT INTO "out" (data) VALUES ('fine');
SELECT data FROM arrived();

-- ====
-- put and drain may fail
SELECT pub_orders('pub_log', 'dummy_fail_put 2');
INSERT INTO "out" (data) VALUES ('1'), ('2'), ('3');
SELECT pub_orders('pub_log', 'dummy_fail_drain 1', 'dummy_error throttled');
INSERT INTO "out" (data) VALUES ('1'), ('2'), ('3');
SELECT pub_orders('pub_log');
SELECT data FROM arrived();
SELECT dummy_held();

-- ====
-- What the broker would refuse is refused at the row, before anything is sent.
SELECT pub_orders('pub_log', 'dummy_max_message 10');
BEGIN;
INSERT INTO "out" (data) VALUES ('1234567890');
INSERT INTO "out" (data) VALUES ('ok'), ('12345678901');
COMMIT;
SELECT pub_orders('pub_log');
INSERT INTO "out" (data, "partition") VALUES ('x', 3);
INSERT INTO "out" (data, "partition") VALUES ('x', -1);
SELECT data FROM arrived();
CREATE FOREIGN TABLE no_topic (data text) SERVER pub_log OPTIONS (topic 'nosuch');
INSERT INTO no_topic VALUES ('x');
-- a row that is refused, in a subtransaction
DO $$
BEGIN
  INSERT INTO "out" (data) VALUES ('before');
  BEGIN
    INSERT INTO "out" (data, "partition") VALUES ('x', 3);
  EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE '%', SQLERRM;
  END;
  INSERT INTO "out" (data) VALUES ('after');
END $$;
SELECT data FROM arrived();

-- ====
-- A queue's topic; the subscriptions get what comes after their creation.
SELECT pubsub_create_topic('pub_queue', 'jobs');
CREATE FOREIGN TABLE jobs (data text, attributes jsonb, key text, message_id text)
  SERVER pub_queue OPTIONS (topic 'jobs', subscription 'jobs-sub', poll_timeout '20ms');
INSERT INTO jobs (data) VALUES ('too early');
SELECT pubsub_create_subscription('pub_queue', 'jobs-sub', 'jobs');
INSERT INTO jobs (data, attributes, key) VALUES ('job', '{"a": "1"}', 'k') RETURNING *;
INSERT INTO jobs (data) VALUES ('x'), ('');
SELECT data, attributes, key FROM pubsub_consume(NULL::jobs);
-- consume and publish in one transaction
BEGIN;
INSERT INTO jobs (data) VALUES ('next');
SELECT count(*) FROM pubsub_consume(NULL::jobs);
COMMIT;
INSERT INTO "out" (data) SELECT data FROM pubsub_consume(NULL::jobs);
SELECT data FROM arrived();
SELECT dummy_subscription('regress_pubsub_publish', 'jobs-sub');
-- a failed delivery gives the consumed message back
INSERT INTO jobs (data) VALUES ('again');
SELECT pub_orders('pub_log', 'dummy_fail_delivery 1');
INSERT INTO "out" (data) SELECT data FROM pubsub_consume(NULL::jobs);
SELECT pub_orders('pub_log');
SELECT dummy_subscription('regress_pubsub_publish', 'jobs-sub');
SELECT data FROM arrived();

-- ====
-- What publishing does not do
INSERT INTO "out" (data) VALUES ('x') ON CONFLICT DO NOTHING;
INSERT INTO "out" (data, "offset") VALUES ('x', 1);
INSERT INTO jobs (data, message_id) VALUES ('x', 'y');
UPDATE "out" SET data = 'x';
DELETE FROM "out";
TRUNCATE "out";
SELECT data FROM "out" FOR UPDATE;
SELECT l.i FROM local_rows l, loop FOR SHARE OF l;
MERGE INTO "out" USING (VALUES (1)) v ON false WHEN NOT MATCHED THEN INSERT (data) VALUES ('x');
CREATE FOREIGN TABLE read_only (data text) SERVER pub_queue OPTIONS (subscription 'jobs-sub');
INSERT INTO read_only VALUES ('x');
ALTER FOREIGN TABLE read_only OPTIONS (ADD topic 'jobs', ADD updatable 'false');
INSERT INTO read_only VALUES ('x');
SELECT pubsub_send('read_only', 'x');
SELECT is_insertable_into FROM information_schema.tables WHERE table_name = 'read_only';
ALTER FOREIGN TABLE read_only OPTIONS (DROP updatable);
SELECT is_insertable_into FROM information_schema.tables WHERE table_name = 'read_only';
ALTER SERVER pub_queue OPTIONS (ADD updatable 'false');
INSERT INTO jobs (data) VALUES ('x');
ALTER SERVER pub_queue OPTIONS (DROP updatable);
BEGIN READ ONLY;
INSERT INTO "out" (data) VALUES ('x');
ROLLBACK;
BEGIN READ ONLY;
SELECT pubsub_send('"out"', 'x');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
INSERT INTO "out" (data) VALUES ('x');
SET TRANSACTION READ ONLY;
ROLLBACK;
SELECT pubsub_send('local_rows', 'x');
SELECT pubsub_send('nosuch', 'x');
BEGIN;
INSERT INTO "out" (data) VALUES ('x');
PREPARE TRANSACTION 'regress_pubsub_publish';
\echo :LAST_ERROR_SQLSTATE
SELECT data FROM arrived();
SELECT dummy_held();

-- ====
-- ALTER SERVER between INSERT and COMMIT: the messages go where they were
-- meant to go when they were written.
BEGIN;
INSERT INTO "out" (data) VALUES ('old server');
ALTER SERVER pub_log OPTIONS (SET dummy_dir 'regress_pubsub_nowhere');
COMMIT;
ALTER SERVER pub_log OPTIONS (SET dummy_dir 'regress_pubsub_publish');
SELECT data FROM arrived();
-- DROP, the same
BEGIN;
INSERT INTO loop (data) VALUES ('3');
DROP FOREIGN TABLE loop;
COMMIT;
CREATE FOREIGN TABLE loop (data text) SERVER pub_log OPTIONS (topic 'loop');
SELECT count(*) FROM loop;

-- ====
-- What a callback of another extension publishes or consumes after we are
-- through would be lost; it is refused.  (In a new session theirs is older.)
\c -
LOAD 'pubsub_fdw_dummy';
BEGIN;
SELECT dummy_at_commit($$INSERT INTO "out" (data) VALUES ('too late')$$);
INSERT INTO "out" (data) VALUES ('in time');
COMMIT;
BEGIN;
SELECT dummy_at_commit($$SELECT * FROM pubsub_consume(NULL::jobs)$$);
INSERT INTO "out" (data) VALUES ('in time');
COMMIT;
INSERT INTO "out" (data) VALUES ('after that');
SELECT dummy_held();

SET client_min_messages = warning;
DROP SERVER pub_log, pub_queue CASCADE;
RESET client_min_messages;
DELETE FROM pubsub_offsets WHERE server_name = 'pub_log';
DROP TABLE routed, local_rows, notify_on;
DROP FUNCTION pub_orders, edit, tell, notify;
SELECT dummy_drop('regress_pubsub_publish');
