--
-- Format json over Apache Kafka.  The details of decoding are in
-- sql/format_json.sql.
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
\pset null (null)

SELECT 'regress_format_json_' || pg_backend_pid() || '_' || extract(epoch FROM now())::bigint AS topic \gset
CREATE SERVER fmt_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER fmt_kafka;
SELECT pubsub_create_topic('fmt_kafka', :'topic', partitions => 1);

-- ====
-- Written as one object, in column order, and read back the same.
CREATE TYPE fmt_address AS (street text, zip int);
CREATE FOREIGN TABLE fmt_json (
  id bigint, name text OPTIONS (field 'customer.name'), amount numeric,
  ordered timestamptz, tags text[], address fmt_address OPTIONS (field 'customer.address'),
  extra jsonb, doc json, paid boolean,
  key text OPTIONS (metadata 'key'), trace text OPTIONS (attribute 'traceparent'),
  o bigint OPTIONS (metadata 'offset'), ts timestamptz OPTIONS (metadata 'event_time')
) SERVER fmt_kafka OPTIONS (topic :'topic', format 'json', tombstones 'true');
INSERT INTO fmt_json (id, name, amount, ordered, tags, address, extra, doc, paid, key, trace, ts)
  VALUES (9007199254740993, 'Ann "é"', 123456789012345678901234567890.123456789,
          '2026-01-02 03:04:05.678901Z', '{a,NULL,"b c"}', ROW('Main St', 12345),
          '{"n": 1.50}', '{"n" : 1.50}', true, 'k1', '00-1', '2026-01-02 03:04:05.678Z'),
         (2, NULL, 'NaN', NULL, '{}', NULL, NULL, 'null', false, 'k2', NULL, '2026-01-02 03:04:05.678Z'),
         (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'k1', NULL, '2026-01-02 03:04:05.678Z');
\x on
SELECT * FROM fmt_json ORDER BY o;
\x off
\setenv TOPIC :topic
\! kcat -C -b "$KAFKA_BOOTSTRAP" -t "$TOPIC" -o beginning -e -q -Z -f '%k: %s %h\n'

-- ====
-- What others wrote: paths, numbers digit for digit, duplicates, unknown fields.
\! printf '%s\n' '{"id":1e3,"id":12345678901234567,"customer":{"name":"x"},"customer":{"name":"B\u00e9a"},"amount":1.10,"doc":{"a":1,"a":"\u0000"},"extra":{"a":1,"a":2},"new":[{}]}' '{}' | kcat -P -b "$KAFKA_BOOTSTRAP" -t "$TOPIC"
SELECT id, name, amount, extra, doc::text FROM pubsub_read(NULL::fmt_json, '{"0":3}');
SELECT count(*), count(id), count(name) FROM fmt_json;

-- ====
-- What is no JSON object is an error that says where; the rows before it and
-- the columns that need no payload are still there.
\! printf '%s\n' '[1]' '{"id":"x"}' '{"extra":"\u0000"}' '{"id":6}' | kcat -P -b "$KAFKA_BOOTSTRAP" -t "$TOPIC"
DO $$
DECLARE
  context text;
BEGIN
  FOR i IN 5..8 LOOP
    BEGIN
      PERFORM * FROM pubsub_read(NULL::fmt_json, format('{"0":%s}', i), format('{"0":%s}', i + 1));
      RAISE NOTICE 'no error';
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
      RAISE NOTICE '% %, %', SQLSTATE, SQLERRM,
        regexp_replace(split_part(context, E'\nSQL', 1), 'regress_format_json_\d+_\d+', 'TOPIC');
    END;
  END LOOP;
END $$;
SELECT count(*), max(o) FROM fmt_json;
SELECT id FROM pubsub_read(NULL::fmt_json, '{"0":8}');

-- ====
-- strict: a missing field is an error.
ALTER FOREIGN TABLE fmt_json OPTIONS (strict 'true');
\set VERBOSITY sqlstate
SELECT id FROM pubsub_read(NULL::fmt_json, '{"0":8}');
\set VERBOSITY terse
SELECT count(key) FROM fmt_json;

SELECT pubsub_drop_topic('fmt_kafka', :'topic');
DROP SERVER fmt_kafka CASCADE;
DROP TYPE fmt_address;
