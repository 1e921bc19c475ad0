--
-- Formats, attributes and times over Google Pub/Sub.  The details of decoding
-- are in sql/format_raw.sql and sql/format_json.sql.
--
\getenv pubsub_endpoint PUBSUB_ENDPOINT
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
\pset null (null)

SELECT 'regress-format-' || pg_backend_pid() || '-' || extract(epoch FROM now())::bigint AS topic \gset
CREATE SERVER fmt_google FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER fmt_google OPTIONS (auth 'none', credentials_required 'false');
SELECT pubsub_create_topic('fmt_google', :'topic');
SELECT pubsub_create_subscription('fmt_google', :'topic', :'topic', config => '{"message_ordering": true}');
CREATE FOREIGN TABLE fmt_raw (
  data bytea, key text, attributes jsonb, event_time timestamptz, publish_time timestamptz,
  timestamp_type text, message_id text, topic text, "partition" int, "offset" bigint,
  subscription text, delivery_attempt int, a text OPTIONS (attribute 'a')
) SERVER fmt_google OPTIONS (topic :'topic', subscription :'topic', poll_timeout '300ms');

-- ====
-- Messages with attributes alone, or with data alone: data is empty and
-- attributes are {}, never NULL.  The first two come from outside.
\setenv TOPIC :topic
\! curl -s -o /dev/null -d '{"messages":[{"attributes":{"a":"1"}}]}' -H 'Content-Type: application/json' "$PUBSUB_ENDPOINT/v1/projects/regress-project/topics/$TOPIC:publish"
\! curl -s -o /dev/null -d '{"messages":[{"data":"AP9hCg=="}]}' -H 'Content-Type: application/json' "$PUBSUB_ENDPOINT/v1/projects/regress-project/topics/$TOPIC:publish"
INSERT INTO fmt_raw (data, key, attributes, a) VALUES
  ('\x00ff', 'k', '{"n":5,"b":true,"é":"é"}', 'x'), (NULL, NULL, '{"e":""}', NULL);
SELECT data, key, attributes, a FROM fmt_raw ORDER BY attributes;
SELECT DISTINCT event_time = publish_time AS same,
  publish_time BETWEEN now() - interval '5 min' AND now() + interval '5 min' AS is_now, timestamp_type,
  message_id ~ '^\d+$' AS id, topic = format('projects/regress-project/topics/%s', :'topic') AS topic,
  subscription = format('projects/regress-project/subscriptions/%s', :'topic') AS subscription,
  "partition", "offset"
  FROM fmt_raw;
SELECT count(*) FROM pubsub_consume(NULL::fmt_raw);
SELECT count(*) FROM fmt_raw;

-- ====
-- An event time in an attribute: milliseconds or RFC 3339, written as the
-- former.
CREATE FOREIGN TABLE fmt_stamp (data text, event_time timestamptz, attributes jsonb)
  SERVER fmt_google OPTIONS (topic :'topic', subscription :'topic', poll_timeout '300ms', timestamp_attribute 'ts');
INSERT INTO fmt_raw (data, a, attributes) SELECT v::bytea, v, jsonb_build_object('ts', v)
  FROM unnest(ARRAY['2019-07-24T20:48:26+04:00', '1625565568878', '1625565568', '20210706',
    '2017-05-15T09:00:50Z', '2018-12-31T23:59:59.999999999Z']) v;
INSERT INTO fmt_stamp (data, event_time) VALUES ('written', '2026-01-02 03:04:05.678999Z');
SET TimeZone = 'America/New_York';
SET DateStyle = 'SQL, DMY';
SELECT data, event_time AT TIME ZONE 'UTC' AS event_time, attributes->>'ts' AS ts
  FROM fmt_stamp ORDER BY data;
SET DateStyle = 'ISO';
SET TimeZone = 'UTC';
SELECT count(*) FROM pubsub_consume(NULL::fmt_stamp);

-- ====
-- A message whose attribute is missing or no time: an error that names message
-- and value; nothing is acknowledged.
INSERT INTO fmt_raw (data, attributes) VALUES ('x', '{"ts":"yesterday"}');
CREATE FUNCTION fmt_error(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  context text;
BEGIN
  EXECUTE query;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RETURN SQLSTATE || ' ' || SQLERRM || E'\n' || regexp_replace(regexp_replace(split_part(context, E'\nSQL', 1),
    'regress-format-\d+-\d+', 'SUBSCRIPTION'), '"\d+"', '"ID"');
END $$;
SELECT fmt_error('SELECT event_time FROM fmt_stamp');
SELECT fmt_error('SELECT * FROM pubsub_consume(NULL::fmt_stamp)');
SELECT data, attributes FROM fmt_raw;
SELECT data FROM fmt_stamp;
SELECT count(*) FROM pubsub_consume(NULL::fmt_raw);
INSERT INTO fmt_raw (data) VALUES ('x');
SELECT fmt_error('SELECT event_time FROM fmt_stamp');
SELECT count(*) FROM pubsub_consume(NULL::fmt_raw);

-- ====
-- Attributes that no message can have are refused at the row, by name.
INSERT INTO fmt_raw (data, attributes) VALUES ('x', '{"n":5,"z":null}');
INSERT INTO fmt_raw (data, attributes) VALUES ('x', '{"o":{"a":1}}');
INSERT INTO fmt_raw (data, attributes) VALUES ('x', '[1]');
INSERT INTO fmt_raw (data, "partition") VALUES ('x', 0);
INSERT INTO fmt_raw (data, message_id) VALUES ('x', '0');
SELECT count(*) FROM fmt_raw;

-- ====
-- json
CREATE FOREIGN TABLE fmt_json (
  id bigint, name text OPTIONS (field 'customer.name'), amount numeric, tags text[],
  region text OPTIONS (attribute 'region'), key text OPTIONS (metadata 'key')
) SERVER fmt_google OPTIONS (topic :'topic', subscription :'topic', format 'json', poll_timeout '300ms');
INSERT INTO fmt_json VALUES (9007199254740993, 'Ann', 1.10, '{a,NULL}', 'eu', 'k'),
  (NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM fmt_json ORDER BY id;
SELECT convert_from(data, 'UTF8') AS data, key, attributes FROM fmt_raw ORDER BY attributes;
SELECT count(*) FROM pubsub_consume(NULL::fmt_json);
INSERT INTO fmt_raw (data) VALUES ('[1]');
SELECT fmt_error('SELECT id FROM fmt_json');
SELECT count(*) FROM fmt_json;

\set VERBOSITY terse
SELECT pubsub_drop_subscription('fmt_google', :'topic'), pubsub_drop_topic('fmt_google', :'topic');
DROP SERVER fmt_google CASCADE;
DROP FUNCTION fmt_error;
