--
-- Reading from Google Pub/Sub: a look that changes nothing
--
-- Waits for messages are long, and reads are told how many to expect: a read
-- that finds them ends at once, one that does not fails the test.
--
\getenv pubsub_endpoint PUBSUB_ENDPOINT
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET bytea_output = 'hex';
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS dblink;
RESET client_min_messages;

SELECT 'regress-read-' || pg_backend_pid() || '-' || extract(epoch FROM now())::bigint AS topic \gset
\set topic_empty :topic -empty
\set topic_many :topic -many
\set topic_ts :topic -ts
CREATE SERVER rd_google FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER rd_google OPTIONS (auth 'none');
SELECT count(pubsub_create_topic('rd_google', t)), count(pubsub_create_subscription('rd_google', t, t))
  FROM unnest(ARRAY[:'topic', :'topic_empty', :'topic_many', :'topic_ts']) t;
CREATE FOREIGN TABLE rd_all (
  data bytea, key text, attributes jsonb, event_time timestamptz, publish_time timestamptz,
  timestamp_type text, message_id text, topic text, subscription text,
  "partition" int, "offset" bigint, delivery_attempt int
) SERVER rd_google OPTIONS (topic :'topic', subscription :'topic', max_read_time '20s');
CREATE FOREIGN TABLE rd_text (data text, message_id text)
  SERVER rd_google OPTIONS (topic :'topic', subscription :'topic', max_read_time '20s');
CREATE FOREIGN TABLE rd_empty (data text)
  SERVER rd_google OPTIONS (topic :'topic_empty', subscription :'topic_empty', poll_timeout '100ms');
-- what another session sees, at most n messages of them
SELECT dblink_connect('other', format('host=%s port=%s user=%I dbname=%I', current_setting('unix_socket_directories'),
  current_setting('port'), current_user, current_database()));
CREATE FUNCTION rd_other(n int) RETURNS bigint LANGUAGE sql AS $$
  SELECT n FROM dblink('other', format('SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::rd_text, max_records => %s)', n)) AS t (n bigint);
$$;

-- EXPLAIN ANALYZE, in words that are the same in each run
CREATE FUNCTION rd_explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    RETURN NEXT regexp_replace(line, 'regress-read-[0-9]+-[0-9]+', 'regress-read');
  END LOOP;
END $$;

-- ====
-- Every part of a message: bytes, attributes alone, data alone (P04).
INSERT INTO rd_all (data, key, attributes) VALUES
  ('\x00ff610a00', 'k', '{"a": "1", "ü": "ö"}'),
  (NULL, NULL, '{"a": "b"}'),
  ('\xfbfffe', NULL, NULL);
SELECT data, key, attributes, attributes->>'a' AS a, timestamp_type, message_id ~ '^\d+$' AS has_id,
  now() - publish_time BETWEEN interval '-1 minute' AND interval '1 minute' AS recent, event_time = publish_time AS same_time,
  topic = 'projects/regress-project/topics/' || :'topic' AS topic,
  subscription = 'projects/regress-project/subscriptions/' || :'topic' AS subscription,
  "partition", "offset", delivery_attempt
  FROM rd_all ORDER BY data LIMIT 3;
SELECT data, k FROM pubsub_read(NULL::rd_all, max_records => 3) LEFT JOIN LATERAL jsonb_object_keys(attributes) k ON true ORDER BY data, k;
SELECT count(*) FROM pubsub_consume(NULL::rd_all, max_records => 3);

-- ====
-- A look gives back what it saw, at once: to itself, to others, also in the
-- middle of a transaction, from a cursor, after an error, at ROLLBACK.
INSERT INTO rd_text (data) SELECT i::text FROM generate_series(1, 5) i;
SELECT count(*), sum(data::int) FROM pubsub_read(NULL::rd_text, max_records => 5);
SELECT count(*), sum(data::int) FROM pubsub_read(NULL::rd_text, max_records => 5);
SELECT rd_other(5);
BEGIN;
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_records => 5);
SELECT rd_other(5);
SELECT count(*) FROM (SELECT 1 FROM rd_text LIMIT 2) q;
SELECT rd_other(5);
DECLARE c CURSOR FOR SELECT data FROM rd_text;
MOVE 3 c;
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_records => 5, max_read_time => '300 ms');
CLOSE c;
SELECT rd_other(5);
DECLARE c CURSOR FOR SELECT data FROM rd_text;
MOVE 3 c;
SAVEPOINT a;
MOVE 1 c;
ROLLBACK TO a;
MOVE 1 c;
ROLLBACK;
SELECT rd_other(5);
SELECT 1 / (data::int - data::int) FROM rd_text;
SELECT rd_other(5);
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM rd_text;
MOVE 2 c;
SELECT 1 / 0;
COMMIT;
SELECT rd_other(5);

-- ====
-- LIMIT, max_records, max_read_time, silence: what ends a look
SELECT count(*) FROM (SELECT * FROM rd_text LIMIT 2) q;
SELECT count(*) FROM (SELECT * FROM rd_text LIMIT 0) q;
SELECT rd_explain('SELECT 1 FROM rd_empty');
SELECT count(*) FROM rd_empty;
ALTER FOREIGN TABLE rd_text OPTIONS (ADD max_records '4');
SELECT count(*) FROM rd_text;
SELECT count(*) FROM pubsub_read(NULL::rd_text);
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_records => 5);
-- a condition is checked on what was read, a sort needs all of it
SELECT count(*) FROM rd_text WHERE data = 'no such';
SELECT count(*) FROM (SELECT * FROM rd_text ORDER BY message_id LIMIT 1) q;
ALTER FOREIGN TABLE rd_text OPTIONS (DROP max_records);
ALTER FOREIGN TABLE rd_empty OPTIONS (SET poll_timeout '30s', ADD max_read_time '200ms');
SELECT count(*) FROM rd_empty;
SELECT count(*) FROM pubsub_read(NULL::rd_empty);
SELECT count(*) FROM pubsub_read(NULL::rd_empty, max_read_time => '100 ms');
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_records => 0);
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_records => -1);
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_read_time => '0');
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_read_time => '-1 s');
ALTER FOREIGN TABLE rd_text OPTIONS (ADD max_records '0');
ALTER FOREIGN TABLE rd_text OPTIONS (ADD max_records 'many');
ALTER FOREIGN TABLE rd_text OPTIONS (ADD max_records '99999999999999999999');
ALTER FOREIGN TABLE rd_text OPTIONS (SET max_read_time '0');
ALTER FOREIGN TABLE rd_text OPTIONS (ADD poll_timeout '-1s');
-- what only a log has
SELECT count(*) FROM pubsub_read(NULL::rd_text, start_offsets => 'earliest');
SELECT count(*) FROM pubsub_read(NULL::rd_text, partitions => '{0}');

-- ====
-- The executor may ask for the rows again: nested loops, sub-selects, LATERAL,
-- cursors.  It gets the same ones, each message was pulled once (F01).
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CREATE TABLE rd_three AS SELECT i FROM generate_series(1, 3) i;
ANALYZE rd_three;
ALTER FOREIGN TABLE rd_text OPTIONS (ADD max_records '5');
SELECT rd_explain('SELECT * FROM rd_three t LEFT JOIN rd_text r ON r.data::int >= t.i');
SELECT count(*), count(DISTINCT message_id) FROM rd_three t LEFT JOIN rd_text r ON r.data::int >= t.i;
SELECT i, (SELECT string_agg(data, ',' ORDER BY data) FROM rd_text WHERE data::int > i),
  (SELECT count(*) FROM rd_text WHERE data::int > i) FROM rd_three ORDER BY i;
SELECT i, l.n FROM rd_three CROSS JOIN LATERAL (SELECT count(*) AS n FROM rd_text WHERE data::int <> i) l ORDER BY i;
-- passes that stop early
SELECT i, (SELECT 'some' FROM rd_text WHERE data::int > i LIMIT 1) FROM rd_three ORDER BY i;
SELECT i, l.n FROM rd_three CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM rd_text LIMIT i) q) l ORDER BY i;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT data FROM rd_text ORDER BY data::int;
FETCH 2 c;
COMMIT;
FETCH FIRST c;
FETCH LAST c;
FETCH RELATIVE -1 c;
CLOSE c;
-- one statement, two scans: the second starts when the first has given back
SELECT count(*), count(DISTINCT message_id) FROM (SELECT * FROM rd_text UNION ALL SELECT * FROM rd_text) q;
-- a prepared statement, a view, a function
PREPARE rd_some AS SELECT count(*) FROM rd_text WHERE data::int > $1;
EXECUTE rd_some (2);
EXECUTE rd_some (4);
DEALLOCATE rd_some;
CREATE VIEW rd_view AS SELECT data FROM rd_text;
SELECT count(*) FROM rd_view;
DO $$
DECLARE
  n int := 0;
  r record;
BEGIN
  FOR r IN SELECT data FROM rd_text LOOP
    n := n + 1;
    EXIT WHEN n = 3;
  END LOOP;
  RAISE NOTICE '% of %', n, (SELECT count(*) FROM rd_text);
END $$;
SELECT rd_other(5);

-- ====
-- No columns, the whole row, columns that are gone, nothing needed
SELECT count(*) FROM rd_text;
SELECT count(r) FROM rd_text r;
SELECT bool_and(r.data = (r).data AND r.tableoid = 'rd_text'::regclass) FROM rd_text r;
CREATE FOREIGN TABLE rd_none () SERVER rd_google OPTIONS (subscription :'topic', max_records '5');
SELECT count(*) FROM rd_none;
SELECT count(*) FROM pubsub_read(NULL::rd_none);
CREATE FOREIGN TABLE rd_other_order (x int, message_id text, y int, "Body" text OPTIONS (metadata 'data'))
  SERVER rd_google OPTIONS (subscription :'topic', max_records '5');
ALTER FOREIGN TABLE rd_other_order DROP COLUMN x, DROP COLUMN y;
SELECT sum("Body"::int), count(message_id) FROM rd_other_order;
SELECT sum("Body"::int), count(message_id) FROM pubsub_read(NULL::rd_other_order);
ALTER FOREIGN TABLE rd_text OPTIONS (DROP max_records);
SELECT count(*) FROM pubsub_consume(NULL::rd_text, max_records => 5);

-- ====
-- Asked for 1000 of 3000, got 1000, though a pull brings 100 at most (P01).
CREATE FOREIGN TABLE rd_many (data text, message_id text)
  SERVER rd_google OPTIONS (topic :'topic_many', subscription :'topic_many', batch_size '1000', max_read_time '60s');
INSERT INTO rd_many (data) SELECT i::text FROM generate_series(1, 3000) i;
SELECT count(*), count(DISTINCT data) FROM pubsub_read(NULL::rd_many, max_records => 1000);
SELECT count(*), count(DISTINCT data) FROM (SELECT * FROM rd_many) q;
SELECT count(*), count(DISTINCT data) FROM pubsub_consume(NULL::rd_many, max_records => 1000);
SELECT count(*), count(DISTINCT data) FROM pubsub_consume(NULL::rd_many, max_records => 2000);
SELECT count(*) FROM pubsub_read(NULL::rd_many, max_read_time => '300 ms');

-- ====
-- The event time comes from the attribute that the table names, whatever
-- DateStyle and TimeZone say; digits are milliseconds (P06).
CREATE FOREIGN TABLE rd_ts (data text, attributes jsonb, event_time timestamptz, publish_time timestamptz)
  SERVER rd_google OPTIONS (topic :'topic_ts', subscription :'topic_ts', timestamp_attribute 'ts', max_read_time '20s');
CREATE FOREIGN TABLE rd_ts_raw (data text, attributes jsonb)
  SERVER rd_google OPTIONS (topic :'topic_ts', subscription :'topic_ts');
-- what the reading of a table says, in words that are the same in each run
CREATE FUNCTION rd_error(query text) RETURNS TABLE (state text, message text, detail text, context text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE query;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
  context := regexp_replace(regexp_replace(context, E'\nSQL.*', ''), 'message "[0-9]+"', 'message "<id>"');
  context := regexp_replace(context, 'regress-read-[0-9]+-[0-9]+', 'regress-read');
  RETURN NEXT;
END $$;
INSERT INTO rd_ts_raw (data, attributes)
  SELECT row_number() OVER (), jsonb_build_object('ts', ts)
  FROM unnest(ARRAY['2019-07-24T20:48:26+04:00', '1625565568878', '1625565568', '20210706', '2017-05-15T09:00:50Z',
    '2017-05-15T09:00:50.5Z', '2018-12-31T23:59:59.999999999Z', '-1', '0', '9224318015999999']) ts;
SET DateStyle = 'SQL, DMY';
SET TimeZone = 'Asia/Tokyo';
SELECT attributes->>'ts' AS ts, to_char(event_time AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS event_time
  FROM pubsub_consume(NULL::rd_ts, max_records => 10) ORDER BY data::int;
SET DateStyle = 'ISO';
SET TimeZone = 'UTC';
-- what is no time, or is missing, is an error that names the message and the
-- value; nothing is acknowledged (P07)
\x on
INSERT INTO rd_ts_raw (data, attributes) VALUES ('yesterday', '{"ts": "yesterday"}');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_ts, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_ts_raw, max_records => 1);
INSERT INTO rd_ts_raw (data) VALUES ('missing');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_ts, max_records => 1)');
-- ... unless nobody asks for the time
SELECT data, publish_time IS NOT NULL FROM rd_ts LIMIT 1;
SELECT data FROM pubsub_consume(NULL::rd_ts_raw, max_records => 1);
INSERT INTO rd_ts_raw (data, attributes) VALUES ('empty', '{"ts": ""}');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_ts, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_ts_raw, max_records => 1);
INSERT INTO rd_ts_raw (data, attributes) VALUES ('late', '{"ts": "9224318016000000"}');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_ts, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_ts_raw, max_records => 1);
\x off

-- ====
-- Text that is no text, JSON that is none, or that jsonb cannot hold: an error
-- that names the message; json and bytea take what they are given (D01, D02).
CREATE FOREIGN TABLE rd_json (data json) SERVER rd_google OPTIONS (topic :'topic', subscription :'topic', max_read_time '20s');
CREATE FOREIGN TABLE rd_jsonb (data jsonb) SERVER rd_google OPTIONS (topic :'topic', subscription :'topic', max_read_time '20s');
CREATE FOREIGN TABLE rd_bytea (data bytea) SERVER rd_google OPTIONS (topic :'topic', subscription :'topic', max_read_time '20s');
\x on
INSERT INTO rd_bytea VALUES ('\x610062');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_text, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_bytea, max_records => 1);
INSERT INTO rd_bytea VALUES ('\x61ff');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_text, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_bytea, max_records => 1);
INSERT INTO rd_text (data) VALUES ('{"a":"x\u0000y"}');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_jsonb, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_json, max_records => 1);
INSERT INTO rd_text (data) VALUES ('{"a":"\\u0000"}'), ('{"a":"\\u0000''"}');
\x off
SELECT data FROM pubsub_read(NULL::rd_jsonb, max_records => 2) ORDER BY data::text;
SELECT data FROM pubsub_consume(NULL::rd_json, max_records => 2) ORDER BY data::text;
\x on
INSERT INTO rd_text (data) VALUES ('{"a": 1');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_json, max_records => 1)');
SELECT data FROM pubsub_consume(NULL::rd_text, max_records => 1);
\x off
-- no data: empty, or NULL where that is none of the type's values
INSERT INTO rd_all (data, attributes) VALUES (NULL, '{"a": "b"}');
SELECT data IS NULL AS is_null FROM pubsub_read(NULL::rd_json, max_records => 1);
SELECT data IS NULL AS is_null FROM pubsub_read(NULL::rd_jsonb, max_records => 1);
SELECT data = '' AS is_empty FROM pubsub_read(NULL::rd_text, max_records => 1);
SELECT data = '' AS is_empty FROM pubsub_consume(NULL::rd_bytea, max_records => 1);

-- ====
-- Format json: typed columns, attributes beside them
CREATE FOREIGN TABLE rd_typed (
  id bigint, amount numeric, name text OPTIONS (field 'customer.name'), tags text[],
  region text OPTIONS (attribute 'region'), message_id text OPTIONS (metadata 'message_id')
) SERVER rd_google OPTIONS (topic :'topic', subscription :'topic', format 'json', max_read_time '20s');
INSERT INTO rd_all (data, attributes) VALUES
  (convert_to('{"id": 9007199254740993, "amount": 123456789012345678901234567890.123456789, "customer": {"name": "Zoë"}, "tags": ["a", null]}', 'UTF8'), '{"region": "eu"}'),
  ('{"id": 1}', NULL);
SELECT id, amount, name, tags, region, message_id IS NOT NULL AS has_id
  FROM pubsub_consume(NULL::rd_typed, max_records => 2) ORDER BY id;
\x on
INSERT INTO rd_text (data) VALUES ('[1]');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_typed, max_records => 1)');
SELECT count(*) FROM pubsub_consume(NULL::rd_text, max_records => 1);
INSERT INTO rd_text (data) VALUES ('{"id": "one"}');
SELECT * FROM rd_error('SELECT * FROM pubsub_consume(NULL::rd_typed, max_records => 1)');
SELECT count(*) FROM pubsub_consume(NULL::rd_text, max_records => 1);
\x off

-- ====
-- What is misspelt is named: subscription, project, topic, column, option,
-- server, type (F13).
CREATE FOREIGN TABLE rd_typo (data text, message_id text) SERVER rd_google OPTIONS (subscription 'regress-read-nowhere', topic 'regress-read-nowhere');
SELECT * FROM rd_typo;
SELECT * FROM pubsub_read(NULL::rd_typo);
SELECT * FROM pubsub_consume(NULL::rd_typo);
INSERT INTO rd_typo (data) VALUES ('x');
ALTER FOREIGN TABLE rd_typo OPTIONS (SET subscription 'projects/regress-elsewhere/subscriptions/regress-read-nowhere');
SELECT * FROM rd_typo;
ALTER FOREIGN TABLE rd_typo OPTIONS (SET subscription 'no good');
ALTER FOREIGN TABLE rd_typo OPTIONS (SET subscription E'projects/p/subscriptions/x\r\ny: z');
ALTER FOREIGN TABLE rd_typo OPTIONS (DROP subscription);
SELECT * FROM rd_typo;
CREATE FOREIGN TABLE rd_wrong (data text, made_up text) SERVER rd_google OPTIONS (subscription :'topic');
SELECT * FROM rd_wrong;
CREATE FOREIGN TABLE rd_wrong2 (data int) SERVER rd_google OPTIONS (subscription :'topic');
SELECT * FROM rd_wrong2;
CREATE FOREIGN TABLE rd_wrong3 (attributes text) SERVER rd_google OPTIONS (subscription :'topic');
SELECT * FROM rd_wrong3;
CREATE FOREIGN TABLE rd_wrong4 (headers jsonb) SERVER rd_google OPTIONS (subscription :'topic');
SELECT * FROM rd_wrong4;
CREATE FOREIGN TABLE rd_wrong5 (data text) SERVER rd_google OPTIONS (subscriptoin 'x');
CREATE FOREIGN TABLE rd_wrong5 (data text) SERVER rd_google OPTIONS (subscription 'x-y-z', group_id 'g');
CREATE FOREIGN TABLE rd_wrong5 (data text) SERVER rd_google OPTIONS (subscription :'topic', strict 'maybe');
CREATE FOREIGN TABLE rd_wrong5 (data text OPTIONS (metadata 'datum')) SERVER rd_google OPTIONS (subscription :'topic');
CREATE FOREIGN TABLE rd_kafka (data text) SERVER rd_google OPTIONS (topic 'xyz', group_id 'g');
SELECT * FROM rd_kafka;
SELECT * FROM pubsub_read(NULL::rd_three);
SELECT * FROM pubsub_read(NULL);
SELECT pubsub_read(NULL::rd_text);

-- ====
-- EXPLAIN asks nobody; the same goes for ANALYZE, which skips the table
-- (F03, F04).
CREATE SERVER rd_down FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint 'http://127.0.0.1:1', connect_timeout '1s');
CREATE USER MAPPING FOR CURRENT_USER SERVER rd_down OPTIONS (auth 'none');
CREATE FOREIGN TABLE rd_down (data text) SERVER rd_down OPTIONS (topic 'xyz', subscription 'xyz');
EXPLAIN (COSTS OFF) SELECT * FROM rd_down;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM rd_down WHERE data = 'x';
EXPLAIN (COSTS OFF) SELECT * FROM pubsub_consume(NULL::rd_down);
EXPLAIN (COSTS OFF) INSERT INTO rd_down VALUES ('x');
ANALYZE rd_down;
SELECT * FROM rd_down;
SELECT * FROM pubsub_consume(NULL::rd_down);
BEGIN;
SELECT * FROM rd_down LIMIT 0;
SAVEPOINT a;
SELECT * FROM rd_down;
ROLLBACK TO a;
SELECT 'alive';
COMMIT;
-- EXPLAIN ANALYZE reads, and publishes once
SELECT rd_explain('INSERT INTO rd_text (data) VALUES (''once'')');
SELECT rd_explain('SELECT data FROM rd_text LIMIT 1');
ANALYZE rd_text;
SELECT data FROM pubsub_consume(NULL::rd_text, max_records => 1);
SELECT count(*) FROM pubsub_read(NULL::rd_text, max_read_time => '300 ms');

-- ====
-- What a subscription cannot do is refused.
UPDATE rd_text SET data = 'x';
DELETE FROM rd_text;
TRUNCATE rd_text;
SELECT * FROM rd_text FOR UPDATE;
SELECT * FROM rd_text TABLESAMPLE SYSTEM (1);
CREATE INDEX ON rd_text (data);

SELECT dblink_disconnect('other');
SET client_min_messages = warning;
SELECT count(pubsub_drop_subscription('rd_google', t)), count(pubsub_drop_topic('rd_google', t))
  FROM unnest(ARRAY[:'topic', :'topic_empty', :'topic_many', :'topic_ts']) t;
DROP SERVER rd_google, rd_down CASCADE;
DROP TABLE rd_three;
DROP FUNCTION rd_other, rd_explain, rd_error;
DROP EXTENSION dblink;
