--
-- Format raw, keys, headers and times, on brokers made of files (test/dummy)
--
LOAD 'pubsub_fdw_dummy';
SET TimeZone = 'UTC';

SELECT dummy_drop('regress_pubsub_raw');
CREATE SERVER raw_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_raw');
CREATE SERVER raw_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_raw');
\pset null (null)

-- ====
-- bytea keeps every byte; NULL and empty are told apart.
SELECT pubsub_create_topic('raw_log', 'bytes', 1);
CREATE FOREIGN TABLE raw_bytes (data bytea, key bytea, "offset" bigint)
  SERVER raw_log OPTIONS (topic 'bytes');
INSERT INTO raw_bytes (data, key) VALUES
  ('\x610062ff', '\x00'), ('', ''), (NULL, 'k'), ('v', NULL), (NULL, NULL);
SELECT * FROM raw_bytes ORDER BY "offset";
SELECT md5(data), length(data) FROM raw_bytes WHERE "offset" = 0;

-- ====
-- text must be UTF-8 and is never cut at a zero byte; the error says where.
CREATE FOREIGN TABLE raw_text (data text, key text, "offset" bigint)
  SERVER raw_log OPTIONS (topic 'bytes');
SELECT data FROM raw_text;
SELECT key FROM raw_text;
INSERT INTO raw_bytes (data) VALUES ('\xc3a9ff'), ('\xc3a9');
SELECT * FROM pubsub_read(NULL::raw_text, '{"0":1}', '{"0":5}');
SELECT * FROM pubsub_read(NULL::raw_text, '{"0":5}', '{"0":6}');
SELECT data, length(data) FROM pubsub_read(NULL::raw_text, '{"0":6}');
-- what is not asked for is not looked at
SELECT "offset" FROM raw_text ORDER BY 1;
SELECT count(*) FROM raw_text;

-- ====
-- json is checked and kept as it is; jsonb is PostgreSQL's own.
SELECT pubsub_create_topic('raw_log', 'json', 1);
CREATE FOREIGN TABLE raw_jsontext (data text, "offset" bigint)
  SERVER raw_log OPTIONS (topic 'json');
INSERT INTO raw_jsontext (data) VALUES
  (' {"b":1.50, "a":1,"a":2} '),
  ('{"n":123456789012345678901234567890.123456789}'),
  ('{"n":9007199254740993}'),
  ('"x"'), ('null'), (NULL),
  ('{"a":"\\u0000"}'), ('{"a":"\\u0000''"}'),
  ('{"a":"x\u0000y"}'), ('{"a":"\ud83d"}'), ('{"a":'), ('');
CREATE FOREIGN TABLE raw_json (data json, "offset" bigint)
  SERVER raw_log OPTIONS (topic 'json');
CREATE FOREIGN TABLE raw_jsonb (data jsonb, "offset" bigint)
  SERVER raw_log OPTIONS (topic 'json');
SELECT * FROM pubsub_read(NULL::raw_json, NULL, '{"0":10}');
SELECT * FROM pubsub_read(NULL::raw_json, '{"0":10}', '{"0":11}');
SELECT * FROM pubsub_read(NULL::raw_json, '{"0":11}', '{"0":12}');
SELECT * FROM pubsub_read(NULL::raw_jsonb, NULL, '{"0":8}');
SELECT * FROM pubsub_read(NULL::raw_jsonb, '{"0":8}', '{"0":9}');
SELECT * FROM pubsub_read(NULL::raw_jsonb, '{"0":9}', '{"0":10}');
-- written as their text
INSERT INTO raw_json VALUES ('{"b": 1, "b":2}');
INSERT INTO raw_jsonb VALUES ('{"b": 1, "b":2}');
SELECT * FROM raw_jsontext WHERE "offset" >= 12 ORDER BY "offset";
-- too deep is an ordinary error
INSERT INTO raw_jsontext SELECT repeat('[', 20000) || repeat(']', 20000);
INSERT INTO raw_jsontext SELECT repeat('[', 5000) || repeat(']', 5000);
\set VERBOSITY sqlstate
SELECT length(data::text) FROM pubsub_read(NULL::raw_json, '{"0":14}', '{"0":15}');
SELECT length(data::text) FROM pubsub_read(NULL::raw_jsonb, '{"0":14}', '{"0":15}');
\set VERBOSITY default
SELECT length(data::text) FROM pubsub_read(NULL::raw_json, '{"0":15}', '{"0":16}');

-- ====
-- Domains are honoured, also their NOT NULL.
CREATE DOMAIN raw_short AS text CHECK (length(VALUE) < 4);
CREATE DOMAIN raw_bin AS bytea CHECK (octet_length(VALUE) < 4);
CREATE DOMAIN raw_given AS text NOT NULL;
CREATE FOREIGN TABLE raw_domains (
  data raw_short, bin raw_bin OPTIONS (metadata 'data'),
  key raw_given, "offset" bigint
) SERVER raw_log OPTIONS (topic 'domains');
SELECT pubsub_create_topic('raw_log', 'domains', 1);
SELECT dummy_append('regress_pubsub_raw', 'domains', 0, 'abc', 'k');
SELECT * FROM raw_domains;
SELECT dummy_append('regress_pubsub_raw', 'domains', 0, 'abcd', 'k');
SELECT data FROM raw_domains;
SELECT bin FROM raw_domains;
SELECT key FROM raw_domains;
SELECT dummy_append('regress_pubsub_raw', 'domains', 0, NULL, NULL);
SELECT key FROM raw_domains;
SELECT * FROM pubsub_read(NULL::raw_domains, '{"0":2}');
SELECT "offset" FROM raw_domains;

-- ====
-- Headers: an object, where the last one of a name counts, an array that keeps
-- everything, and single ones.  What is no text is shown as base64, and never
-- fails the scan.
SELECT pubsub_create_topic('raw_log', 'headers', 1);
CREATE FOREIGN TABLE raw_headers (
  attributes jsonb, headers jsonb,
  a text OPTIONS (attribute 'a'),
  n int OPTIONS (attribute 'n'),
  bin bytea OPTIONS (attribute 'bin'),
  t timestamptz OPTIONS (attribute 't'),
  "offset" bigint
) SERVER raw_log OPTIONS (topic 'headers');
INSERT INTO raw_headers (headers) VALUES
  ('[{"key":"a","value":"1"},{"key":"a","value":"2"},{"key":"n","value":null},{"key":"empty","value":""}]'),
  ('[{"key":"bin","value":{"base64":"/wA="}},{"key":"x","value":{"base64":"eAB5"}}]'),
  ('[{"key":{"base64":"/wE="},"value":"v"},{"key":"é","value":"é"},{"key":"","value":1.50},{"key":"b","value":true}]'),
  ('[]'), (NULL);
SELECT "offset", attributes, headers FROM raw_headers ORDER BY "offset";
SELECT "offset", a, n, bin, t FROM raw_headers ORDER BY "offset";
SELECT DISTINCT attributes IS NULL AS isnull FROM raw_headers;
-- one attribute of the wrong type
CREATE FOREIGN TABLE raw_bad_header (
  a text OPTIONS (attribute 'a'), n int OPTIONS (attribute 'n')
) SERVER raw_log OPTIONS (topic 'bad_header');
SELECT pubsub_create_topic('raw_log', 'bad_header', 1);
SELECT dummy_append('regress_pubsub_raw', 'bad_header', 0, NULL, NULL, '{a,x,n,x}');
SELECT * FROM raw_bad_header;
SELECT a FROM raw_bad_header;
INSERT INTO raw_bad_header VALUES ('', 7);
SELECT * FROM pubsub_read(NULL::raw_bad_header, '{"0":1}');
-- the same by columns; text does not depend on the session
SET DateStyle = 'German';
INSERT INTO raw_headers (attributes, a, n, bin, t)
  VALUES ('{"c":1.50,"b":true}', 'a', 42, '\xff00', '2026-01-02 03:04:05.678901+00');
RESET DateStyle;
SELECT headers, n, bin, t FROM raw_headers WHERE "offset" = 5;
-- given twice: only if it is the same
INSERT INTO raw_headers (attributes, a) VALUES ('{"a":"x"}', 'x');
INSERT INTO raw_headers (attributes, a) VALUES ('{"a":"x"}', 'y');
INSERT INTO raw_headers (headers, attributes, a)
  VALUES ('[{"key":"a","value":"1"},{"key":"a","value":"2"}]', '{"a":"2"}', '2');
INSERT INTO raw_headers (headers, attributes)
  VALUES ('[{"key":"a","value":"1"},{"key":"a","value":"2"}]', '{"a":"1"}');
SELECT "offset", headers FROM raw_headers WHERE "offset" > 5 ORDER BY 1;
-- rows can be copied; binary values only by the array or their own columns
INSERT INTO raw_headers SELECT attributes, headers, a, n, bin, t
  FROM raw_headers WHERE "offset" = 6;
INSERT INTO raw_headers (headers, a, n, bin, t) SELECT headers, a, n, bin, t
  FROM raw_headers WHERE "offset" = 5;
INSERT INTO raw_headers (attributes) SELECT attributes
  FROM raw_headers WHERE "offset" = 5;
SELECT headers, array_agg("offset" ORDER BY "offset") FROM raw_headers
  GROUP BY headers HAVING count(*) > 1 ORDER BY 2;

-- ====
-- Attributes that no message can have are refused, by name.
INSERT INTO raw_headers (attributes) VALUES ('{"a":"x","z":null}');
INSERT INTO raw_headers (attributes) VALUES ('{"o":{"a":1}}');
INSERT INTO raw_headers (attributes) VALUES ('{"o":[]}');
INSERT INTO raw_headers (attributes) VALUES ('[]');
INSERT INTO raw_headers (attributes) VALUES ('"x"');
INSERT INTO raw_headers (headers) VALUES ('{}');
INSERT INTO raw_headers (headers) VALUES ('1');
INSERT INTO raw_headers (headers) VALUES ('[{"key":"a","value":1},{"key":"a"}]');
INSERT INTO raw_headers (headers) VALUES ('[{"key":1,"value":1}]');
INSERT INTO raw_headers (headers) VALUES ('[{"key":"a","value":{"base64":"*"}}]');
INSERT INTO raw_headers (headers) VALUES ('[{"key":"a","value":[]}]');
SELECT max("offset") FROM raw_headers;

-- ====
-- Times: what timestamptz holds is shown as it is, -1 ms stands for none.
SELECT pubsub_create_topic('raw_log', 'times', 1);
CREATE FOREIGN TABLE raw_times (
  event_time timestamptz, publish_time timestamptz, timestamp_type text,
  "offset" bigint
) SERVER raw_log OPTIONS (topic 'times');
INSERT INTO raw_times (event_time) VALUES
  ('1970-01-19 19:32:45.568Z'), ('53482-02-14 07:21:18Z'),
  ('294276-12-31 23:59:59.999Z'), ('2026-01-02 03:04:05.678999Z'),
  ('1969-12-31 23:59:59.998999Z');
SELECT dummy_append('regress_pubsub_raw', 'times', 0, 'x', NULL, NULL, '1969-12-31 23:59:59.999Z');
SELECT * FROM raw_times ORDER BY "offset";
INSERT INTO raw_times (event_time) VALUES ('infinity');
INSERT INTO raw_times (event_time) VALUES ('1969-12-31 23:59:59.9995Z');

-- ====
-- Metadata that the broker decides on cannot be written.
CREATE FOREIGN TABLE raw_all (
  data text, key text, attributes jsonb, headers jsonb, event_time timestamptz,
  publish_time timestamptz, timestamp_type text, message_id text, topic text,
  "partition" int, "offset" bigint, subscription text, delivery_attempt int
) SERVER raw_log OPTIONS (topic 'all');
SELECT pubsub_create_topic('raw_log', 'all', 2);
INSERT INTO raw_all (data, "offset") VALUES ('x', 1);
INSERT INTO raw_all (data, publish_time) VALUES ('x', now());
INSERT INTO raw_all (data, topic) VALUES ('x', 'all');
INSERT INTO raw_all (data, message_id) VALUES ('x', '1');
INSERT INTO raw_all (data, timestamp_type) VALUES ('x', 'none');
INSERT INTO raw_all (data, subscription) VALUES ('x', 's');
INSERT INTO raw_all (data, delivery_attempt) VALUES ('x', 1);
INSERT INTO raw_all (data, "partition") VALUES ('x', -1);
INSERT INTO raw_all (data, key, attributes, event_time, "partition", "offset")
  VALUES ('x', 'k', '{"a":"b"}', '2026-01-02 03:04:05.678Z', 1, NULL);
\x on
SELECT * FROM raw_all;
\x off
-- two columns for one thing
CREATE FOREIGN TABLE raw_twice (data text, b bytea OPTIONS (metadata 'data'))
  SERVER raw_log OPTIONS (topic 'all', partitions '0');
INSERT INTO raw_twice VALUES ('x', NULL), (NULL, 'y');
INSERT INTO raw_twice VALUES ('x', 'x');
SELECT * FROM raw_twice ORDER BY data;

-- ====
-- A timestamp attribute: milliseconds, or RFC 3339, whatever DateStyle and
-- TimeZone are.
SELECT pubsub_create_topic('raw_log', 'stamps', 1);
CREATE FOREIGN TABLE raw_stamps (
  event_time timestamptz, publish_time timestamptz, attributes jsonb, "offset" bigint
) SERVER raw_log OPTIONS (topic 'stamps', timestamp_attribute 'ts');
SELECT count(dummy_append('regress_pubsub_raw', 'stamps', 0, 'x', NULL, ARRAY['ts', v]))
  FROM unnest(ARRAY[
    '2019-07-24T20:48:26+04:00', '1625565568878', '1625565568', '20210706', '-1',
    '2015-10-29T23:41:41.123Z', '2015-10-29T23:41:41.123999Z', '2017-05-15T09:00:50Z',
    '2018-12-31T23:59:59.999999999Z', '2016-12-31T23:59:60Z', '2016-02-29t00:00:00.1z',
    '2016-02-29 00:00:00-00:30', '0000-01-01T00:00:00Z',
    -- bad ones
    '', 'yesterday', ' 1625565568878', '1625565568878 ', '+5', '1e3', '1.5', '-',
    '2015-02-29T00:00:00Z', '2016-02-29T24:00:00Z', '2016-02-29T00:00:00',
    '2016-02-29T00:00:00.Z', '2016-02-29T00:00:00+01', '2016-02-29T00:00Z',
    '2016-02-29', '2016-12-31T23:59:61Z', '9224318016000000', '99999999999999999999']) v;
SET TimeZone = 'America/New_York';
SET DateStyle = 'SQL, DMY';
SELECT "offset", event_time AT TIME ZONE 'UTC' AS event_time, attributes
  FROM pubsub_read(NULL::raw_stamps, NULL, '{"0":13}');
RESET DateStyle;
SET TimeZone = 'UTC';
DO $$
BEGIN
  FOR i IN 13..30 LOOP
    BEGIN
      PERFORM * FROM pubsub_read(NULL::raw_stamps, format('{"0":%s}', i), format('{"0":%s}', i + 1));
      RAISE NOTICE '%: no error', i;
    EXCEPTION WHEN OTHERS THEN
      RAISE NOTICE '%: % %', i, SQLSTATE, SQLERRM;
    END;
  END LOOP;
END $$;
SELECT event_time FROM pubsub_read(NULL::raw_stamps, '{"0":14}', '{"0":15}');
SELECT event_time FROM pubsub_read(NULL::raw_stamps, '{"0":29}', '{"0":30}');
SELECT dummy_append('regress_pubsub_raw', 'stamps', 0, 'x', NULL, ARRAY['ts', '1', 'ts', '2']);
SELECT dummy_append('regress_pubsub_raw', 'stamps', 0, 'x', NULL, NULL);
SELECT event_time FROM pubsub_read(NULL::raw_stamps, '{"0":31}', '{"0":32}');
SELECT event_time FROM pubsub_read(NULL::raw_stamps, '{"0":32}', '{"0":33}');
SELECT count(publish_time), count(*) FROM raw_stamps;

-- ====
-- Written: the event time's milliseconds, rounded down, or now.
INSERT INTO raw_stamps (event_time) VALUES ('2026-01-02 03:04:05.678999Z'), ('1969-12-31 23:59:59.9985Z');
INSERT INTO raw_stamps (attributes) VALUES ('{"a":"b"}');
INSERT INTO raw_stamps (event_time, attributes) VALUES
  ('2026-01-02 03:04:05.678999Z', '{"ts":"1767323045678"}'),
  ('2026-01-02 03:04:05.678999Z', '{"ts":"2026-01-02T03:04:05.678Z"}'),
  (NULL, '{"ts":"5"}');
INSERT INTO raw_stamps (event_time, attributes) VALUES
  ('2026-01-02 03:04:05.678999Z', '{"ts":"1767323045679"}');
INSERT INTO raw_stamps (attributes) VALUES ('{"ts":"soon"}');
SELECT "offset", event_time, publish_time, attributes
  FROM pubsub_read(NULL::raw_stamps, '{"0":33}', '{"0":35}');
SELECT event_time BETWEEN now() - interval '1 min' AND clock_timestamp() AS is_now,
  attributes - 'ts' AS attributes FROM pubsub_read(NULL::raw_stamps, '{"0":35}', '{"0":36}');
SELECT "offset", event_time, attributes FROM pubsub_read(NULL::raw_stamps, '{"0":36}');

-- ====
-- A queue: no offsets, no NULL data, ids of its own.
SELECT pubsub_create_topic('raw_queue', 'raw');
SELECT pubsub_create_subscription('raw_queue', 'raw-sub', 'raw');
CREATE FOREIGN TABLE raw_q (
  data bytea, key text, attributes jsonb, event_time timestamptz, publish_time timestamptz,
  timestamp_type text, message_id text, topic text, "partition" int, "offset" bigint,
  subscription text, delivery_attempt int
) SERVER raw_queue OPTIONS (topic 'raw', subscription 'raw-sub', timestamp_attribute 'ts', poll_timeout '100ms');
INSERT INTO raw_q (data, key, attributes, event_time) VALUES
  ('\x00ff', 'k', '{"a":"b"}', '2026-01-02 03:04:05.678Z'),
  (NULL, NULL, '{"a":"c"}', '2026-01-02 03:04:05.679Z');
\x on
SELECT data, key, attributes, event_time, publish_time > '2026-01-01' AS published,
  timestamp_type, message_id IS NOT NULL AS has_id, topic, "partition", "offset", subscription
  FROM raw_q ORDER BY event_time;
\x off
INSERT INTO raw_q (data, "partition") VALUES ('x', 0);
CREATE FOREIGN TABLE raw_q_text (data text)
  SERVER raw_queue OPTIONS (topic 'raw', subscription 'raw-sub', poll_timeout '100ms');
SELECT * FROM raw_q_text;

\set VERBOSITY terse
DROP SERVER raw_log CASCADE;
DROP SERVER raw_queue CASCADE;
DROP DOMAIN raw_short, raw_bin, raw_given;
SELECT dummy_drop('regress_pubsub_raw');
