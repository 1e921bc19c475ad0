--
-- Format raw, keys, headers and times over Apache Kafka.  The details of
-- decoding are in sql/format_raw.sql.
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
\pset null (null)

SELECT 'regress_format_raw_' || pg_backend_pid() || '_' || extract(epoch FROM now())::bigint AS topic \gset
CREATE SERVER fmt_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER fmt_kafka;
-- timestamps of any age are accepted
SELECT pubsub_create_topic('fmt_kafka', :'topic', partitions => 2,
  config => '{"message.timestamp.before.max.ms": "9223372036854775807", "message.timestamp.after.max.ms": "9223372036854775807", "retention.ms": "-1"}');
CREATE FOREIGN TABLE fmt_raw (
  data bytea, key bytea, attributes jsonb, headers jsonb,
  event_time timestamptz, publish_time timestamptz, timestamp_type text,
  message_id text, topic text, "partition" int, "offset" bigint,
  subscription text, delivery_attempt int,
  a text OPTIONS (attribute 'a'), bin bytea OPTIONS (attribute 'bin')
) SERVER fmt_kafka OPTIONS (topic :'topic', partitions '0');

-- ====
-- Every column comes back as it was sent, byte for byte; NULL, empty and
-- absent are told apart.
INSERT INTO fmt_raw (data, key, headers, event_time, "partition") VALUES
  ('\x610062ff0a0d', '\x00ff',
   '[{"key":"a","value":"1"},{"key":"a","value":"2"},{"key":"novalue","value":null},{"key":"empty","value":""},{"key":"bin","value":{"base64":"/wA="}},{"key":{"base64":"/wE="},"value":"é"}]',
   '2026-01-02 03:04:05.678999Z', 0),
  ('', '', '[]', '1970-01-19 19:32:45.568Z', 0),
  (NULL, 'k', NULL, '53482-02-14 07:21:18Z', 0),
  ('v', NULL, NULL, '294276-12-31 23:59:59.999Z', 0),
  (NULL, NULL, NULL, '2026-01-02 03:04:06Z', 0);
INSERT INTO fmt_raw (data, attributes, bin, "partition")
  VALUES ('x', '{"a":"x","n":1.50,"b":false}', '\xfe00', 0);
SELECT "offset", data, key, attributes, headers, a, bin FROM fmt_raw ORDER BY "offset";
SELECT "offset", event_time, publish_time = event_time AS same, timestamp_type
  FROM fmt_raw WHERE "offset" < 5 ORDER BY 1;
SELECT event_time BETWEEN now() - interval '5 min' AND now() + interval '5 min' AS is_now
  FROM fmt_raw WHERE "offset" = 5;
SELECT topic = :'topic' AS topic, message_id = format('%s:0:%s', :'topic', "offset") AS message_id,
  "partition", subscription, delivery_attempt
  FROM fmt_raw WHERE "offset" = 5;

-- ====
-- Rows can be copied from topic to topic.
CREATE FOREIGN TABLE fmt_copy (
  data bytea, key bytea, headers jsonb, event_time timestamptz, "partition" int
) SERVER fmt_kafka OPTIONS (topic :'topic', partitions '1');
INSERT INTO fmt_copy SELECT data, key, headers, event_time, 1 FROM fmt_raw ORDER BY "offset";
SELECT count(*) FROM (
  SELECT data, key, headers, event_time FROM fmt_raw
  INTERSECT SELECT data, key, headers, event_time FROM fmt_copy) q;
SELECT count(*) FROM fmt_copy;

-- ====
-- What another program sees is the same.
\setenv TOPIC :topic
\! kcat -C -b "$KAFKA_BOOTSTRAP" -t "$TOPIC" -p 0 -o 0 -e -q -f '%o %K %S [%k] %T %h\n' | head -2 | od -An -c
\! kcat -C -b "$KAFKA_BOOTSTRAP" -t "$TOPIC" -p 0 -o 2 -e -q -f '%o key %K value %S %T\n' | sed 's/ [0-9]\{13\}$/ now/'

-- ====
-- An error says which message and which column.
CREATE FOREIGN TABLE fmt_text (data text, key text)
  SERVER fmt_kafka OPTIONS (topic :'topic', partitions '0');
DO $$
DECLARE
  context text;
BEGIN
  PERFORM data FROM fmt_text;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '% %, %', SQLSTATE, SQLERRM,
    regexp_replace(split_part(context, E'\nSQL', 1), 'regress_format_raw_\d+_\d+', 'TOPIC');
END $$;
SELECT count(*) FROM fmt_text;

-- ====
-- A topic with the broker's own timestamps
SELECT pubsub_create_topic('fmt_kafka', :'topic' || '_log', partitions => 1,
  config => '{"message.timestamp.type": "LogAppendTime"}');
SELECT :'topic' || '_log' AS topic_log \gset
CREATE FOREIGN TABLE fmt_log (data text, event_time timestamptz, publish_time timestamptz, timestamp_type text)
  SERVER fmt_kafka OPTIONS (topic :'topic_log');
INSERT INTO fmt_log (data, event_time) VALUES ('x', '2001-01-01');
SELECT data, timestamp_type, event_time > now() - interval '5 min' AS is_now,
  event_time = publish_time AS same FROM fmt_log;
-- the event time in a header of its own
ALTER FOREIGN TABLE fmt_log OPTIONS (timestamp_attribute 'ts');
INSERT INTO fmt_log (data, event_time) VALUES ('y', '2001-01-01 00:00:00.5Z');
SELECT data, event_time, publish_time > now() - interval '5 min' AS is_now
  FROM pubsub_read(NULL::fmt_log, 'latest-1');

\set VERBOSITY terse
SELECT pubsub_drop_topic('fmt_kafka', :'topic'), pubsub_drop_topic('fmt_kafka', :'topic_log');
DROP SERVER fmt_kafka CASCADE;
