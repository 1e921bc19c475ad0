--
-- Publishing to Google Pub/Sub: INSERT, COPY, pubsub_send(), pubsub_publish()
--
\getenv pubsub_endpoint PUBSUB_ENDPOINT
SET TimeZone = 'UTC';
SET bytea_output = 'hex';
-- messages of errors hold names of topics, which are new in each run
\set VERBOSITY sqlstate

SELECT 'regress-publish-' || pg_backend_pid() || '-' || extract(epoch FROM now())::bigint AS topic \gset
\set topic_nowhere :topic -nowhere
CREATE SERVER pub_google FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER pub_google OPTIONS (auth 'none', credentials_required 'false');
SELECT pubsub_create_topic('pub_google', :'topic');
SELECT pubsub_create_subscription('pub_google', :'topic', :'topic', config => '{"message_ordering": true}');
CREATE FOREIGN TABLE pub_raw (data bytea, key text, attributes jsonb, message_id text, publish_time timestamptz)
  SERVER pub_google OPTIONS (topic :'topic', subscription :'topic', poll_timeout '300ms');
CREATE FOREIGN TABLE pub_text (data text, key text, attributes jsonb)
  SERVER pub_google OPTIONS (topic :'topic', subscription :'topic', poll_timeout '300ms');
-- what arrived since the last look
CREATE FUNCTION pub_arrived() RETURNS SETOF pub_text
LANGUAGE sql AS $$SELECT * FROM pubsub_consume(NULL::pub_text, max_records => 100000)$$;

-- ====
-- Every column arrives as it was sent.
INSERT INTO pub_raw (data, key, attributes) VALUES
  ('\x00ff610a00', 'k', '{"a": "1", "ü": "ö"}'),
  ('\xfbfffe', NULL, NULL),
  ('', NULL, '{"a": ""}'),
  (NULL, NULL, '{"n": 5, "b": true}');
SELECT data, key, attributes, message_id IS NOT NULL AS has_id,
  now() - publish_time BETWEEN interval '-1 minute' AND interval '1 minute' AS recent
  FROM pubsub_consume(NULL::pub_raw) ORDER BY data, attributes;

-- ====
-- Nothing is sent before COMMIT, nothing at ROLLBACK or ROLLBACK TO.
BEGIN;
INSERT INTO pub_text (data) VALUES ('kept');
SAVEPOINT a;
INSERT INTO pub_text (data) VALUES ('gone');
ROLLBACK TO a;
INSERT INTO pub_text (data) VALUES ('kept too');
SELECT count(*) FROM pub_text;
COMMIT;
SELECT data FROM pub_arrived() ORDER BY data;
BEGIN;
INSERT INTO pub_text (data) VALUES ('gone');
ROLLBACK;
SELECT data FROM pub_arrived();

-- ====
-- More rows than a request takes: each arrives once; those with a key in order.
-- One row that is bigger than a batch goes alone.
INSERT INTO pub_text (data) SELECT i::text FROM generate_series(1, 2500) i;
SELECT count(*), count(DISTINCT data), sum(data::int) FROM pub_arrived();
INSERT INTO pub_text (data, key) SELECT i::text, 'k' || i % 3 FROM generate_series(1, 300) i;
-- messages of a key wait until the earlier ones are acknowledged
CREATE TABLE pub_got (n int GENERATED ALWAYS AS IDENTITY, data text, key text);
DO $$
BEGIN
  LOOP
    INSERT INTO pub_got (data, key) SELECT data, key FROM pub_arrived();
    EXIT WHEN NOT FOUND;
    COMMIT;
  END LOOP;
END $$;
SELECT key, count(*), count(DISTINCT data), bool_and(in_order) AS in_order
  FROM (SELECT *, data::int > lag(data::int, 1, 0) OVER (PARTITION BY key ORDER BY n) AS in_order FROM pub_got) q
  GROUP BY key ORDER BY key;
-- two tables of one topic, and one that is altered in between, make no difference
TRUNCATE pub_got;
CREATE FOREIGN TABLE pub_same (data text, key text) SERVER pub_google OPTIONS (topic :'topic');
BEGIN;
INSERT INTO pub_text (data, key) VALUES ('1', 'k');
INSERT INTO pub_same (data, key) VALUES ('2', 'k');
INSERT INTO pub_text (data, key) VALUES ('3', 'k');
ALTER FOREIGN TABLE pub_text OPTIONS (ADD strict 'true');
INSERT INTO pub_text (data, key) VALUES ('4', 'k');
INSERT INTO pub_same (data, key) VALUES ('5', 'k');
ALTER FOREIGN TABLE pub_text OPTIONS (DROP strict);
COMMIT;
DO $$
BEGIN
  LOOP
    INSERT INTO pub_got (data, key) SELECT data, key FROM pub_arrived();
    EXIT WHEN NOT FOUND;
    COMMIT;
  END LOOP;
END $$;
SELECT array_agg(data ORDER BY n) FROM pub_got;
INSERT INTO pub_text (data) VALUES ('small'), (repeat('x', 8000000)), ('small too');
SELECT length(data) FROM pub_arrived() ORDER BY 1;

-- ====
-- COPY, a partition of a table
COPY pub_text (data, attributes) FROM stdin;
copied 1	{"a": "1"}
copied 2	\N
\.
CREATE TABLE pub_routed (data text, region text) PARTITION BY LIST (region);
CREATE FOREIGN TABLE pub_routed_there (data text, region text OPTIONS (attribute 'region'))
  SERVER pub_google OPTIONS (topic :'topic', subscription :'topic');
ALTER TABLE pub_routed ATTACH PARTITION pub_routed_there FOR VALUES IN ('there');
INSERT INTO pub_routed VALUES ('routed', 'there') RETURNING *;
SELECT data, attributes FROM pub_arrived() ORDER BY data;

-- ====
-- pubsub_send() and pubsub_publish(); JSON payloads
SELECT pubsub_send('pub_text', 'text', '{"n": 5, "b": true}', 'k');
SELECT pubsub_send('pub_text', NULL::text, '{"no": "data"}');
SELECT i % 2 AS odd, pubsub_publish('pub_text', to_jsonb(i)) FROM generate_series(1, 5) i GROUP BY 1 ORDER BY 1;
CREATE FOREIGN TABLE pub_json (id bigint, name text, tags text[], region text OPTIONS (attribute 'region'))
  SERVER pub_google OPTIONS (topic :'topic', format 'json');
INSERT INTO pub_json VALUES (12345678901234567, 'é"\', '{a,b}', 'eu');
SELECT data, key, attributes FROM pub_arrived() ORDER BY data COLLATE "C";

-- ====
-- The event time goes to the attribute that the table names.
ALTER FOREIGN TABLE pub_raw OPTIONS (ADD timestamp_attribute 'ts');
SELECT pubsub_send('pub_raw', 'x', NULL, NULL, '2001-02-03 04:05:06.789999Z');
INSERT INTO pub_raw (data) VALUES ('y');
SELECT data, CASE WHEN data = 'x' THEN attributes->>'ts' END AS ts,
  CASE WHEN data = 'y' THEN to_timestamp((attributes->>'ts')::numeric / 1000) > now() - interval '1 minute' END AS recent
  FROM pub_arrived() ORDER BY data;
-- one that is there already stays, unless it differs from the event time
INSERT INTO pub_raw (data, attributes) VALUES ('z', '{"ts": "17"}');
SELECT pubsub_send('pub_raw', 'z', '{"ts": "17"}', NULL, '2001-02-03 04:05:06Z');
INSERT INTO pub_raw (data, attributes) VALUES ('z', '{"ts": "soon"}');
SELECT data, attributes FROM pub_arrived();
ALTER FOREIGN TABLE pub_raw OPTIONS (DROP timestamp_attribute);

-- ====
-- The service's limits are checked at the row, in bytes, before anything is
-- sent: also those that the emulator does not know.
INSERT INTO pub_text (data, attributes) SELECT 'fits', jsonb_object_agg('a' || i, repeat('x', 1024)) FROM generate_series(1, 100) i;
INSERT INTO pub_text (data, attributes) VALUES ('fits', jsonb_build_object(repeat('k', 256), repeat('é', 512)));
INSERT INTO pub_text (data, key) VALUES ('fits', repeat('k', 1024));
SELECT data, count(*) FROM pub_arrived() GROUP BY data;
INSERT INTO pub_text (data, attributes) VALUES ('gone', NULL), ('x', jsonb_build_object('a', repeat('x', 1025)));
INSERT INTO pub_text (data, attributes) VALUES ('x', jsonb_build_object('a', repeat('é', 513)));
INSERT INTO pub_text (data, attributes) VALUES ('x', jsonb_build_object(repeat('k', 257), 'x'));
INSERT INTO pub_text (data, attributes) VALUES ('x', '{"": "x"}');
INSERT INTO pub_text (data, attributes) VALUES ('x', '{"googclient_x": "x"}');
INSERT INTO pub_text (data, attributes) SELECT 'x', jsonb_object_agg('a' || i, '') FROM generate_series(1, 101) i;
INSERT INTO pub_text (data, key) VALUES ('x', repeat('k', 1025));
INSERT INTO pub_text (data) VALUES (repeat('x', 10000001));
-- no data and no attributes
INSERT INTO pub_text (data, attributes) VALUES ('gone', '{}'), ('', '{}'), (NULL, NULL), ('gone', '{}');
SELECT pubsub_send('pub_text', NULL::text, key => 'k');
-- attributes that are no text
INSERT INTO pub_text (data, attributes) VALUES ('x', '{"z": null}');
INSERT INTO pub_text (data, attributes) VALUES ('x', '{"o": {"a": 1}}');
INSERT INTO pub_text (data, attributes) VALUES ('x', '{"o": []}');
INSERT INTO pub_text (data, attributes) VALUES ('x', '["a"]');
INSERT INTO pub_text (data, attributes) VALUES ('x', '"a"');
-- columns that are the broker's
INSERT INTO pub_raw (data, message_id) VALUES ('x', '1');
INSERT INTO pub_raw (data, publish_time) VALUES ('x', now());
SELECT data FROM pub_arrived();
-- the error tells which message, and what is wrong
\set VERBOSITY default
DO $$
DECLARE
  detail text;
  context text;
BEGIN
  INSERT INTO pub_text (data, attributes) VALUES ('gone', NULL), ('x', jsonb_build_object('a', repeat('é', 513)));
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '%', detail;
  RAISE NOTICE '%', substring(context FROM '^message \d+ of this transaction');
END $$;
\set VERBOSITY sqlstate

-- ====
-- Topics, servers that are not there
CREATE FOREIGN TABLE pub_nowhere (data text) SERVER pub_google OPTIONS (topic :'topic_nowhere');
INSERT INTO pub_nowhere VALUES ('x');
-- no row, no broker
INSERT INTO pub_nowhere SELECT 'x' WHERE false;
CREATE SERVER pub_down FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint 'http://127.0.0.1:1', connect_timeout '1s');
CREATE USER MAPPING FOR CURRENT_USER SERVER pub_down OPTIONS (auth 'none', credentials_required 'false');
CREATE FOREIGN TABLE pub_down (data text) SERVER pub_down OPTIONS (topic 'xyz');
EXPLAIN (COSTS OFF) INSERT INTO pub_down VALUES ('x');
INSERT INTO pub_down VALUES ('x');

-- ====
-- PREPARE TRANSACTION is refused, and publishes nothing.
BEGIN;
INSERT INTO pub_text (data) VALUES ('gone');
PREPARE TRANSACTION 'regress_publish';
SELECT data FROM pub_arrived();

\set VERBOSITY default
SET client_min_messages = warning;
SELECT pubsub_drop_subscription('pub_google', :'topic'), pubsub_drop_topic('pub_google', :'topic');
DROP SERVER pub_google, pub_down CASCADE;
DROP TABLE pub_routed, pub_got;
