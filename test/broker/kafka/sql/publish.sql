--
-- Publishing to Apache Kafka: INSERT, COPY, pubsub_send(), pubsub_publish()
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP
SET TimeZone = 'UTC';
SET bytea_output = 'hex';
-- messages of errors hold names of topics, which are new in each run
\set VERBOSITY sqlstate

SELECT 'regress_publish_' || pg_backend_pid() || '_' || extract(epoch FROM now())::bigint AS topic \gset
\set topic_small :topic _small
\set topic_nowhere :topic _nowhere
CREATE SERVER pub_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER pub_kafka;
SELECT pubsub_create_topic('pub_kafka', :'topic', partitions => 7, config => '{"retention.ms": "-1"}');
CREATE FOREIGN TABLE pub_raw (
  data bytea, key bytea, headers jsonb, event_time timestamptz, "partition" int, "offset" bigint
) SERVER pub_kafka OPTIONS (topic :'topic');
CREATE FOREIGN TABLE pub_text (
  data text, key text, attributes jsonb, "partition" int, "offset" bigint
) SERVER pub_kafka OPTIONS (topic :'topic');
-- what arrived since the last look
CREATE FUNCTION pub_arrived() RETURNS SETOF pub_text
LANGUAGE sql AS $$SELECT * FROM pubsub_consume(NULL::pub_text, group_id => 'regress_publish') ORDER BY "partition", "offset"$$;

-- ====
-- Every column arrives as it was sent, and the value holds nothing but data.
INSERT INTO pub_raw (data, key, headers, event_time, "partition") VALUES
  ('\x00ff610a00', '\xff00', '[{"key": "h", "value": "1"}, {"key": "h", "value": "2"}, {"key": "n", "value": null}, {"key": "e", "value": ""}]', '2001-02-03 04:05:06.789Z', 0),
  ('', '', '[]', '1960-01-01 00:00:00.001Z', 0),
  (NULL, 'tombstone', NULL, '2001-02-03 04:05:06Z', 0),
  (NULL, NULL, NULL, '2001-02-03 04:05:06Z', 0);
SELECT data, key, headers, event_time, "partition", "offset" FROM pub_raw ORDER BY "offset";
SELECT count(*) FROM pubsub_consume(NULL::pub_raw, group_id => 'regress_publish');

-- without a time of its own a message gets that of the INSERT
INSERT INTO pub_raw (data) VALUES ('now');
SELECT now() - event_time BETWEEN interval '-1 minute' AND interval '1 minute' AS recent
  FROM pubsub_consume(NULL::pub_raw, group_id => 'regress_publish');

-- ====
-- A key goes to the partition that a Java producer would choose.
INSERT INTO pub_text (data, key) VALUES ('1', 'a'), ('2', 'key'), ('3', 'order-17'), ('4', U&'\043A\043B\044E\0447'), ('5', '0123456789');
SELECT data, key, "partition" FROM pub_arrived() ORDER BY data;

-- ====
-- Nothing is sent before COMMIT, nothing at ROLLBACK or ROLLBACK TO.
BEGIN;
INSERT INTO pub_text (data, "partition") VALUES ('kept', 0);
SAVEPOINT a;
INSERT INTO pub_text (data, "partition") VALUES ('gone', 0);
ROLLBACK TO a;
INSERT INTO pub_text (data, "partition") VALUES ('kept too', 0);
SELECT count(*) FROM pub_arrived();
COMMIT;
SELECT data FROM pub_arrived();
BEGIN;
INSERT INTO pub_text (data) VALUES ('gone');
ROLLBACK;
SELECT data FROM pub_arrived();

-- ====
-- Many rows: each once, and in order within a partition; more than
-- publish_buffer_size, too.
INSERT INTO pub_text (data, "partition") SELECT i::text, i % 7 FROM generate_series(1, 50000) i;
CREATE TEMP TABLE got AS SELECT * FROM pubsub_consume(NULL::pub_text, max_records => 1000000, group_id => 'regress_publish');
SELECT count(*), count(DISTINCT data), sum(data::int),
  bool_and(data::int % 7 = "partition") AS right_partition,
  bool_and(in_order) AS in_order
  FROM (SELECT *, data::int > lag(data::int, 1, 0) OVER (PARTITION BY "partition" ORDER BY "offset") AS in_order FROM got) q;
DROP TABLE got;
SET pubsub_fdw.publish_buffer_size = '64kB';
INSERT INTO pub_text (data, key) SELECT i || repeat('x', 200), 'one key' FROM generate_series(1, 20000) i;
RESET pubsub_fdw.publish_buffer_size;
SELECT count(*), count(DISTINCT "partition") AS partitions, bool_and(rtrim(data, 'x') = n::text) AS in_order
  FROM (SELECT *, row_number() OVER (ORDER BY "offset") AS n
        FROM pubsub_consume(NULL::pub_text, max_records => 1000000, group_id => 'regress_publish')) q;

-- ====
-- COPY, a partition of a table, an updatable view
COPY pub_text (data, key, attributes) FROM stdin;
copied 1	k	{"a": "1"}
copied 2	\N	\N
\.
CREATE TABLE pub_routed (data text, key text, region text) PARTITION BY LIST (region);
CREATE TABLE pub_routed_here PARTITION OF pub_routed FOR VALUES IN ('here');
CREATE FOREIGN TABLE pub_routed_there (data text, key text, region text OPTIONS (attribute 'region'))
  SERVER pub_kafka OPTIONS (topic :'topic');
ALTER TABLE pub_routed ATTACH PARTITION pub_routed_there FOR VALUES IN ('there');
INSERT INTO pub_routed VALUES ('routed', 'k', 'there'), ('local', 'k', 'here') RETURNING *;
INSERT INTO pub_routed VALUES ('x', 'k', 'there') ON CONFLICT DO NOTHING;
CREATE VIEW pub_view AS SELECT data, key FROM pub_text;
INSERT INTO pub_view VALUES ('viewed', 'k') RETURNING *;
SELECT data, key, attributes FROM pub_arrived() ORDER BY data;

-- ====
-- pubsub_send() and pubsub_publish()
SELECT pubsub_send('pub_text', 'text', '{"n": 5, "b": true}', 'k', '2001-02-03 04:05:06Z');
SELECT pubsub_send('pub_text', NULL::text, key => 'k');
SELECT i % 2 AS odd, pubsub_publish('pub_text', to_jsonb(i), NULL, 'k' ORDER BY i) FROM generate_series(1, 5) i GROUP BY 1 ORDER BY 1;
SELECT data, key, attributes FROM pub_arrived();

-- ====
-- JSON payloads; a tombstone only if the table asks for it.
CREATE FOREIGN TABLE pub_json (id bigint, name text, tags text[], k text OPTIONS (metadata 'key'))
  SERVER pub_kafka OPTIONS (topic :'topic', format 'json');
INSERT INTO pub_json VALUES (12345678901234567, 'é"\', '{a,b}', 'k'), (NULL, NULL, NULL, 'k');
ALTER FOREIGN TABLE pub_json OPTIONS (ADD tombstones 'true');
INSERT INTO pub_json VALUES (NULL, NULL, NULL, 'k');
SELECT data, key FROM pub_arrived();

-- ====
-- Compression and acks
SELECT format($$ALTER FOREIGN TABLE pub_text OPTIONS (ADD compression %L, ADD acks %L);
  INSERT INTO pub_text (data, "partition") SELECT repeat(%L, 1000), 1;
  ALTER FOREIGN TABLE pub_text OPTIONS (DROP compression, DROP acks)$$, c, a, c)
  FROM (VALUES ('none', 'all'), ('gzip', 'all'), ('snappy', 'all'), ('lz4', 'all'), ('zstd', 'all')) v(c, a) \gexec
SELECT left(data, 4), length(data) FROM pub_arrived();

-- ====
-- What cannot be sent is refused at the row, before anything is sent: too large
-- for the client, a partition that does not exist, a column that is the
-- broker's.
INSERT INTO pub_text (data) VALUES ('gone'), (repeat('x', 2000000));
INSERT INTO pub_text (data, "partition") VALUES ('gone', 0), ('x', 7);
INSERT INTO pub_text (data, "offset") VALUES ('x', 1);
INSERT INTO pub_text (data, attributes) VALUES ('x', '{"o": {"a": 1}}');
INSERT INTO pub_text (data, attributes) VALUES ('x', '[1]');
SELECT data FROM pub_arrived();
-- the error tells which message
\set VERBOSITY default
DO $$
DECLARE
  context text;
BEGIN
  INSERT INTO pub_text (data) VALUES ('gone'), (repeat('x', 2000000));
EXCEPTION WHEN program_limit_exceeded THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '%', substring(context FROM '^message \d+ of this transaction');
END $$;
\set VERBOSITY sqlstate

-- ====
-- Two topics share a producer, and its queue: one that is full of messages for
-- the first does not stop the second.
SELECT pubsub_create_topic('pub_kafka', :'topic_small', partitions => 1, config => '{"max.message.bytes": "10000"}');
CREATE FOREIGN TABLE pub_queue (data text, "partition" int) SERVER pub_kafka
  OPTIONS (topic :'topic', "properties.queue.buffering.max.messages" '1000');
CREATE FOREIGN TABLE pub_queue_small (data text) SERVER pub_kafka
  OPTIONS (topic :'topic_small', "properties.queue.buffering.max.messages" '1000');
BEGIN;
INSERT INTO pub_queue (data) SELECT i::text FROM generate_series(1, 5000) i;
INSERT INTO pub_queue_small (data) SELECT i::text FROM generate_series(1, 10) i;
INSERT INTO pub_queue (data) SELECT i::text FROM generate_series(5001, 6000) i;
COMMIT;
SELECT count(*), count(DISTINCT data) FROM pub_arrived();
SELECT count(*) FROM pub_queue_small;

-- ====
-- What the broker refuses at commit aborts the transaction: here a topic that
-- takes only small messages, and times that are too far in the future.
CREATE FOREIGN TABLE pub_small (data text, event_time timestamptz) SERVER pub_kafka OPTIONS (topic :'topic_small');
CREATE TABLE pub_local (i int);
BEGIN;
INSERT INTO pub_local VALUES (1);
INSERT INTO pub_small (data) VALUES (repeat('x', 20000));
COMMIT;
SELECT count(*) FROM pub_local;
INSERT INTO pub_small (data, event_time) VALUES ('x', now() + interval '1 day');
INSERT INTO pub_small (data) VALUES ('fits');
SELECT left(data, 10) FROM pub_small WHERE data LIKE 'f%';

-- ====
-- Topics, servers that are not there
CREATE FOREIGN TABLE pub_nowhere (data text) SERVER pub_kafka OPTIONS (topic :'topic_nowhere');
INSERT INTO pub_nowhere VALUES ('x');
-- no row, no broker
INSERT INTO pub_nowhere SELECT 'x' WHERE false;
CREATE SERVER pub_down FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers '127.0.0.1:1', connect_timeout '1s');
CREATE USER MAPPING FOR CURRENT_USER SERVER pub_down;
CREATE FOREIGN TABLE pub_down (data text) SERVER pub_down OPTIONS (topic 'x');
EXPLAIN (COSTS OFF) INSERT INTO pub_down VALUES ('x');
INSERT INTO pub_down VALUES ('x');
BEGIN;
INSERT INTO pub_text (data) VALUES ('before');
SAVEPOINT a;
INSERT INTO pub_down VALUES ('x');
ROLLBACK TO a;
INSERT INTO pub_text (data) VALUES ('after');
COMMIT;
SELECT data FROM pub_arrived() ORDER BY data;

-- ====
-- PREPARE TRANSACTION is refused, and publishes nothing.
BEGIN;
INSERT INTO pub_text (data) VALUES ('gone');
PREPARE TRANSACTION 'regress_publish';
SELECT data FROM pub_arrived();

\set VERBOSITY default
SET client_min_messages = warning;
SELECT pubsub_drop_topic('pub_kafka', :'topic'), pubsub_drop_topic('pub_kafka', :'topic_small');
DROP SERVER pub_kafka, pub_down CASCADE;
DELETE FROM pubsub_offsets WHERE server_name = 'pub_kafka';
DROP TABLE pub_routed, pub_local;
