--
-- Kafka's metadata, topics, and what does not exist
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET bytea_output = 'hex';

CREATE SERVER meta_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER meta_kafka;
CREATE FUNCTION new_topic(topic text, partitions int, config jsonb DEFAULT '{}') RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pubsub_drop_topic('meta_kafka', new_topic.topic, if_exists => true);
  RETURN pubsub_create_topic('meta_kafka', new_topic.topic, partitions => new_topic.partitions, config => new_topic.config);
END $$;

-- ====
-- NULL and empty, key and value, written by another client (-Z: empty is NULL)
SELECT new_topic('regress_meta', 1, '{"retention.ms": "-1"}');
\! printf 'k1:v\nk2:\n:v\n' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta -p 0 -K : -Z
\! printf ':v\nk2:\n:\n' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta -p 0 -K :
\! $KAFKA_TOOL write regress_meta 0 '' '' '' '' ''
CREATE FOREIGN TABLE m (
  data bytea, key bytea, attributes jsonb, headers jsonb, event_time timestamptz,
  publish_time timestamptz, timestamp_type text, message_id text, topic text,
  "partition" int, "offset" bigint, subscription text, delivery_attempt int
) SERVER meta_kafka OPTIONS (topic 'regress_meta');
CREATE FOREIGN TABLE m_text (data text, key text, "offset" bigint) SERVER meta_kafka OPTIONS (topic 'regress_meta');
\pset null '(null)'
SELECT data, key FROM m ORDER BY "offset";
SELECT data, key FROM m_text ORDER BY "offset";
SELECT "offset", data IS NULL AS tombstone, length(data) FROM m ORDER BY "offset";
-- the other metadata
SELECT attributes, headers, event_time = publish_time AS same, now() - publish_time BETWEEN '-1 min' AND '10 min' AS now,
  timestamp_type, message_id, topic, "partition", subscription, delivery_attempt FROM m WHERE "offset" = 0;

-- ====
-- Headers: a name twice, NULL, empty, not UTF-8, an empty name
SELECT new_topic('regress_meta_headers', 1);
\! printf 'x\n' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta_headers -p 0 -H a=1 -H a=2 -H novalue -H empty=
\! printf 'y\n' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta_headers -p 0 -H "bin=$(printf '\377\001')" -H "$(printf 'n\377')=1"
\! printf 'z\n' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta_headers -p 0
CREATE FOREIGN TABLE m_headers (data text, attributes jsonb, headers jsonb, "offset" bigint)
  SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
CREATE FOREIGN TABLE m_attribute (data text OPTIONS (metadata 'data'), a text OPTIONS (attribute 'a'), n int OPTIONS (attribute 'a'),
  novalue text OPTIONS (attribute 'novalue'), empty text OPTIONS (attribute 'empty'), absent text OPTIONS (attribute 'absent'))
  SERVER meta_kafka OPTIONS (topic 'regress_meta_headers', format 'json');
SELECT data, attributes, headers FROM m_headers ORDER BY "offset";
SELECT * FROM m_attribute ORDER BY data;
INSERT INTO m_headers (data, headers) SELECT 'copy', headers FROM m_headers WHERE data = 'x';
SELECT a.headers = b.headers AS same FROM m_headers a, m_headers b WHERE a.data = 'x' AND b.data = 'copy';

-- ====
-- What we write, another client reads: nothing but data in the body
SELECT new_topic('regress_meta_out', 1);
CREATE FOREIGN TABLE m_out (data bytea, key bytea, headers jsonb, event_time timestamptz, "partition" int)
  SERVER meta_kafka OPTIONS (topic 'regress_meta_out');
INSERT INTO m_out VALUES
  ('\x6100ff0a62', '\x00ff', '[{"key": "h", "value": "1"}, {"key": "h", "value": null}, {"key": "e", "value": ""}]', '2001-02-03 04:05:06.789Z', 0),
  ('', '', NULL, '2001-02-03 04:05:06.789Z', 0),
  (NULL, NULL, NULL, '2001-02-03 04:05:06.789Z', 0);
\! kcat -C -b $KAFKA_BOOTSTRAP -t regress_meta_out -p 0 -e -q -f '%o key %K value %S headers %h time %T\n'
\! kcat -C -b $KAFKA_BOOTSTRAP -t regress_meta_out -p 0 -e -q -c 1 -f '%s' | od -An -tx1
\! kcat -C -b $KAFKA_BOOTSTRAP -t regress_meta_out -p 0 -e -q -c 1 -f '%k' | od -An -tx1

-- ====
-- Times: odd ones, none at all, the broker's own
SELECT new_topic('regress_meta_times', 1, '{"retention.ms": "-1", "message.timestamp.after.max.ms": "9223372036854775807"}');
CREATE FOREIGN TABLE m_times (data text, event_time timestamptz, publish_time timestamptz, timestamp_type text, "offset" bigint)
  SERVER meta_kafka OPTIONS (topic 'regress_meta_times');
INSERT INTO m_times (data, event_time) VALUES
  ('seconds', '1970-01-19 19:32:45.568Z'), ('micro', '1999-12-31 23:59:59.999999Z'),
  ('late', '53482-01-01Z'), ('last', '294276-12-31 23:59:59.999999Z');
INSERT INTO m_times (data, event_time) VALUES ('before 1970', '1969-12-31 23:59:59.999Z');
INSERT INTO m_times (data, event_time) VALUES ('zero', '1970-01-01Z');
INSERT INTO m_times (data, event_time) VALUES ('never', 'infinity');
INSERT INTO m_times (data, event_time) VALUES ('ever', '-infinity');
INSERT INTO m_times (data, publish_time) VALUES ('mine', now());
SELECT data, event_time, publish_time, timestamp_type FROM m_times ORDER BY "offset";
\! $KAFKA_TOOL write regress_meta_times 0 @1625565568878:ms @1625565568878000:us @9224318015999999:end
SELECT data, event_time FROM pubsub_read(NULL::m_times, start_offsets => 'latest-3') ORDER BY "offset";
\! $KAFKA_TOOL write regress_meta_times 0 @9224318016000000:too-late @9223372036854775807:much-too-late after
SELECT data, event_time FROM pubsub_read(NULL::m_times, start_offsets => 'latest-3') ORDER BY "offset";
SELECT data, event_time FROM pubsub_read(NULL::m_times, start_offsets => 'latest-2') ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_times, start_offsets => 'latest-3') ORDER BY "offset";
SELECT data FROM m_times WHERE "offset" >= 4 ORDER BY "offset";
SELECT new_topic('regress_meta_append', 1, '{"message.timestamp.type": "LogAppendTime"}');
CREATE FOREIGN TABLE m_append (data text, event_time timestamptz, timestamp_type text)
  SERVER meta_kafka OPTIONS (topic 'regress_meta_append');
INSERT INTO m_append (data, event_time) VALUES ('a', '2001-02-03 04:05:06Z');
SELECT data, now() - event_time BETWEEN '-1 min' AND '1 min' AS now, timestamp_type FROM m_append;

-- ====
-- Bytes that text, and JSON that jsonb cannot hold
SELECT new_topic('regress_meta_bytes', 1);
\! printf 'a\0b' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta_bytes -p 0
\! printf '\377' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta_bytes -p 0
\! printf '%s\n' '{"a":"x\u0000y"}' '{"a":"\\u0000"}' '{"a":"\\u0000'"'"'"}' | kcat -P -b $KAFKA_BOOTSTRAP -t regress_meta_bytes -p 0
CREATE FOREIGN TABLE m_b (data bytea, "offset" bigint) SERVER meta_kafka OPTIONS (topic 'regress_meta_bytes');
CREATE FOREIGN TABLE m_t (data text, "offset" bigint) SERVER meta_kafka OPTIONS (topic 'regress_meta_bytes');
CREATE FOREIGN TABLE m_j (data json, "offset" bigint) SERVER meta_kafka OPTIONS (topic 'regress_meta_bytes');
CREATE FOREIGN TABLE m_jb (data jsonb, "offset" bigint) SERVER meta_kafka OPTIONS (topic 'regress_meta_bytes');
SELECT data FROM m_b ORDER BY "offset";
SELECT data FROM m_t ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_t, start_offsets => '{"0": 1}') ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_t, start_offsets => '{"0": 2}') ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_j, start_offsets => '{"0": 1}') ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_j, start_offsets => '{"0": 2}') ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_jb, start_offsets => '{"0": 2}') ORDER BY "offset";
SELECT data FROM pubsub_read(NULL::m_jb, start_offsets => '{"0": 3}') ORDER BY "offset";
-- a column that is not asked for is not looked at
SELECT count(*) FROM m_t;
SELECT "offset" FROM m_jb ORDER BY 1;

-- ====
-- Columns: none, in another order, of the wrong type, with a made-up name
CREATE FOREIGN TABLE m_none () SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
SELECT count(*) FROM m_none;
SELECT * FROM m_none LIMIT 1;
SELECT count(*) FROM pubsub_read(NULL::m_none);
CREATE FOREIGN TABLE m_order ("offset" bigint, key text, dropped int, data text, "partition" int)
  SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
ALTER FOREIGN TABLE m_order DROP COLUMN dropped;
SELECT * FROM m_order ORDER BY "offset" LIMIT 1;
SELECT * FROM pubsub_read(NULL::m_order, max_records => 1);
ALTER FOREIGN TABLE m_order ADD COLUMN message_id text;
SELECT * FROM m_order ORDER BY "offset" LIMIT 1;
CREATE FOREIGN TABLE m_int (data int) SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
SELECT * FROM m_int;
SELECT count(*) FROM m_int;
INSERT INTO m_int VALUES (1);
CREATE FOREIGN TABLE m_attr (data text, attributes text) SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
SELECT * FROM m_attr;
CREATE FOREIGN TABLE m_made_up (data text, ofset bigint) SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
SELECT data FROM m_made_up;
INSERT INTO m_made_up (data) VALUES ('x');
CREATE FOREIGN TABLE m_twice (a text OPTIONS (metadata 'data'), b bytea OPTIONS (metadata 'data')) SERVER meta_kafka OPTIONS (topic 'regress_meta_headers');
SELECT * FROM m_twice WHERE a = 'x';
INSERT INTO m_twice VALUES ('x', 'y');

-- ====
-- A topic that does not exist is an error, at once, and is not made.
CREATE FOREIGN TABLE m_typo (data text, "partition" int) SERVER meta_kafka OPTIONS (topic 'regress_meta_typo');
EXPLAIN (COSTS OFF) SELECT * FROM m_typo;
SELECT * FROM m_typo;
SELECT * FROM pubsub_read(NULL::m_typo);
SELECT * FROM pubsub_consume(NULL::m_typo, group_id => 'g');
EXPLAIN (COSTS OFF) INSERT INTO m_typo VALUES ('x');
INSERT INTO m_typo VALUES ('x');
SELECT pubsub_drop_topic('meta_kafka', 'regress_meta_typo');
SELECT pubsub_drop_topic('meta_kafka', 'regress_meta_typo', if_exists => true);
CREATE FOREIGN TABLE m_part (data text, "partition" int) SERVER meta_kafka OPTIONS (topic 'regress_meta', partitions '0,99');
SELECT * FROM m_part;
INSERT INTO m_part VALUES ('x', 99);
INSERT INTO m_part VALUES ('x', -1);
CREATE FOREIGN TABLE m_bad (data text) SERVER meta_kafka OPTIONS (topic 'no such name');
SELECT * FROM m_bad;
CREATE FOREIGN TABLE m_no_topic (data text) SERVER meta_kafka;
SELECT * FROM m_no_topic;
INSERT INTO m_no_topic VALUES ('x');
CREATE FOREIGN TABLE m_option (data text) SERVER meta_kafka OPTIONS (topci 'x');
CREATE FOREIGN TABLE m_option (data text) SERVER meta_kafka OPTIONS (topic 'x', subscription 'y');

-- ====
-- Topics
SELECT pubsub_create_topic('meta_kafka', 'regress_meta', partitions => 3);
SELECT pubsub_create_topic('meta_kafka', 'regress_meta', partitions => 3, if_not_exists => true);
SELECT pubsub_create_topic('meta_kafka', 'regress_meta_new', partitions => 0);
SELECT pubsub_create_topic('meta_kafka', 'regress_meta_new', partitions => 1, replication_factor => 2);
SELECT pubsub_create_topic('meta_kafka', 'regress_meta_new', partitions => 1, config => '{"cleanup.policy": "burn"}');
SELECT pubsub_create_topic('meta_kafka', 'regress_meta_new', partitions => 1, config => '{"no.such.thing": "1"}');
SELECT pubsub_create_topic('meta_kafka', 'regress_meta_new', partitions => 1, config => '[]');
SELECT pubsub_create_topic('meta_kafka', 'no such name', partitions => 1);
SELECT pubsub_create_topic('meta_kafka', '', partitions => 1);
SELECT pubsub_create_topic('meta_kafka', NULL);
SELECT pubsub_create_topic(NULL, 'x');
SELECT pubsub_create_topic('nowhere', 'x');
SELECT pubsub_create_subscription('meta_kafka', 's', 't');
SELECT pubsub_drop_subscription('meta_kafka', 's');
-- not undone by ROLLBACK, and usable at once
BEGIN;
SELECT new_topic('regress_meta_now', 2);
CREATE FOREIGN TABLE m_now (data text, "partition" int) SERVER meta_kafka OPTIONS (topic 'regress_meta_now');
SELECT count(*) FROM m_now;
INSERT INTO m_now VALUES ('x', 1);
ROLLBACK;
CREATE FOREIGN TABLE m_now (data text, "partition" int) SERVER meta_kafka OPTIONS (topic 'regress_meta_now');
INSERT INTO m_now VALUES ('y', 1);
SELECT * FROM m_now;
-- made anew, with fewer partitions, in the same session
SELECT new_topic('regress_meta_now', 1);
SELECT * FROM m_now;
INSERT INTO m_now VALUES ('z', 1);
INSERT INTO m_now VALUES ('z', 0);
SELECT * FROM m_now;

-- ====
-- Statements on a table that it does not take; ANALYZE reads nothing.
UPDATE m_now SET data = 'x';
DELETE FROM m_now;
TRUNCATE m_now;
SELECT * FROM m_now FOR UPDATE;
MERGE INTO m_now USING (SELECT 'x' AS d) s ON data = d WHEN MATCHED THEN DELETE;
ANALYZE m_now;
VACUUM m_now;
SELECT * FROM m_now;

SET client_min_messages = warning;
SELECT count(pubsub_drop_topic('meta_kafka', topic)) FROM unnest('{regress_meta,regress_meta_headers,regress_meta_out,regress_meta_times,regress_meta_append,regress_meta_bytes,regress_meta_now}'::text[]) AS topic;
DROP SERVER meta_kafka CASCADE;
DROP FUNCTION new_topic;
