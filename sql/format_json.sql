--
-- Format json, on brokers made of files (test/dummy)
--
LOAD 'pubsub_fdw_dummy';
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';

SELECT dummy_drop('regress_pubsub_json');
CREATE SERVER json_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_json');
CREATE SERVER json_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_json');
\pset null (null)

-- Makes a topic of these payloads.
CREATE FUNCTION json_topic(topic text, VARIADIC payloads text[]) RETURNS bigint
LANGUAGE sql AS $$
  SELECT pubsub_create_topic('json_log', topic, 1);
  SELECT count(dummy_append('regress_pubsub_json', topic, 0, convert_to(p, 'UTF8')))
    FROM unnest(payloads) p;
$$;

-- ====
-- Fields become columns, by name or by path; numbers keep their digits.
CREATE TYPE json_mood AS ENUM ('sad', 'ok');
CREATE TYPE json_comp AS (x int, y text, z numeric(6, 2)[]);
CREATE DOMAIN json_positive AS int CHECK (VALUE > 0);
CREATE DOMAIN json_pair AS int[] CHECK (cardinality(VALUE) = 2);
CREATE FOREIGN TABLE json_types (
  id bigint, small smallint, n numeric, money numeric(10, 2), f double precision,
  yes boolean, t text, v varchar(5), b bytea, d date, ts timestamptz, iv interval,
  u uuid, mood json_mood, j json, jb jsonb, tags text[], grid int[],
  c json_comp, cs json_comp[], p json_positive, pair json_pair
) SERVER json_log OPTIONS (topic 'types', format 'json');
SELECT json_topic('types',
  '{"id":9007199254740993,"small":-5,"n":123456789012345678901234567890.123456789,
    "money":1.005,"f":1e-3,"yes":true,"t":"B\u00e9a \"q\" \ud83d\ude00\n","v":"abcde",
    "b":"\\x00ff","d":"2026-01-02","ts":"2026-01-02T03:04:05.678+02:00","iv":"1 day",
    "u":"00000000-0000-0000-0000-00000000000a","mood":"ok",
    "j":{"b":1.50, "a":1e2, "a":"\u0000"},"jb":{"b":1.50, "a":1e2, "a":2},
    "tags":["a",null,"c,d",5,{"k":1}],"grid":[[1,2],[3,4]],
    "c":{"x":"7","y":[1, 2],"z":[1.005,2]},"cs":[{"x":1},null],"p":1,"pair":[1,2]}',
  '{}',
  '{"id":null,"n":null,"t":null,"j":null,"jb":null,"tags":null,"c":null,"p":null}',
  '{"id":"12","yes":"off","n":"NaN","t":true,"j":"text","jb":"text","tags":"{x,y}","c":"(1,y,)","unknown":[1,{"a":"\u0000"}]}',
  '{"id":1e3,"small":1.5e1,"t":1e3,"n":1e3,"f":1e3}',
  '  {"t":{"a": [1, 2]}, "id" : 1 } ');
\x on
SELECT * FROM json_types;
\x off

-- ====
-- Paths: into objects and arrays; the whole and its parts at once.
CREATE FOREIGN TABLE json_paths (
  name text OPTIONS (field 'customer.name'),
  customer jsonb OPTIONS (field 'customer'),
  first text OPTIONS (field 'lines[0].sku'),
  second jsonb OPTIONS (field 'lines[1]'),
  dotted int OPTIONS (field 'a\.b'),
  deep int OPTIONS (field 'm[1][0].x'),
  "offset" bigint OPTIONS (metadata 'offset')
) SERVER json_log OPTIONS (topic 'paths', format 'json');
SELECT json_topic('paths',
  '{"customer":{"name":"A","n":1},"lines":[{"sku":"s1"},{"sku":"s2"}],"a.b":5,"a":{"b":6},"m":[0,[{"x":7}]]}',
  '{"customer":"A","lines":{"0":{"sku":"no"}},"m":[[{"x":1}]]}',
  '{"customer":null,"lines":[]}',
  '{"c\u0075stomer":{"n\u0061me":"B"},"a\u002eb":8}');
SELECT * FROM json_paths;

-- ====
-- Of duplicate names the last one counts, as a whole, as in jsonb.
CREATE FOREIGN TABLE json_duplicates (
  a int, x text OPTIONS (field 'o.x'), y text OPTIONS (field 'o.y'), e int OPTIONS (field 'l[0]')
) SERVER json_log OPTIONS (topic 'duplicates', format 'json');
CREATE FOREIGN TABLE json_duplicates_jsonb (data jsonb)
  SERVER json_log OPTIONS (topic 'duplicates');
SELECT json_topic('duplicates',
  '{"a":1,"a":2,"\u0061":3}', '{"o":{"x":1,"x":2}}', '{"o":{"x":1},"o":{"y":2}}',
  '{"o":{"x":1},"o":5}', '{"o":{"x":1},"o":null}', '{"l":[1],"l":[]}', '{"a":1,"a":null}');
SELECT * FROM json_duplicates;
SELECT data->'a' AS a, data->'o'->>'x' AS x, data->'o'->>'y' AS y, data->'l'->0 AS e
  FROM json_duplicates_jsonb;

-- ====
-- A payload is one JSON object, in UTF-8; anything else is an error that says
-- where.  A tombstone has no fields.
CREATE FOREIGN TABLE json_bad (a int, t text)
  SERVER json_log OPTIONS (topic 'bad', format 'json');
SELECT json_topic('bad', '', ' ', '[{"a":1}]', '1', '"a"', 'null', '{', '{"a"', '{"a":',
  '{"a":1', '{"a":1,', '{"a":1,}', '{"a" 1}', '{,}', '{"a":1}}', '{"a":1} {"a":2}', '{a:1}',
  '{"a":[1,]}', '{"a":[1', '{"zz":[}', '{"zz":tru}', '{"zz":01}', '{"zz":"\q"}',
  '{"a":"x"}', '{"a":1.0}', '{"a":{}}', '{"a":99999999999}', '{"a":1e400000}',
  '{"t":"\u0000"}', '{"t":"\ud83d"}', '{"t":"a' || chr(9) || 'b"}');
SELECT dummy_append('regress_pubsub_json', 'bad', 0, '\x7b2274223a22ff227d');
SELECT dummy_append('regress_pubsub_json', 'bad', 0, '\x7b2274223a2200227d');
DO $$
DECLARE
  context text;
  detail text;
BEGIN
  FOR i IN 0..32 LOOP
    BEGIN
      PERFORM * FROM pubsub_read(NULL::json_bad, format('{"0":%s}', i), format('{"0":%s}', i + 1));
      RAISE NOTICE '%: no error', i;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT, detail = PG_EXCEPTION_DETAIL;
      RAISE NOTICE '%: % % (%) %', i, SQLSTATE, SQLERRM, detail,
        CASE WHEN context ~ format('message at partition 0, offset %s of topic "bad"', i)
             THEN substring(context from 'column "[a-z]*"') ELSE context END;
    END;
  END LOOP;
END $$;
SELECT * FROM pubsub_read(NULL::json_bad, '{"0":23}', '{"0":24}');
SELECT count(*) FROM json_bad;
SELECT dummy_append('regress_pubsub_json', 'bad', 0, NULL);
SELECT * FROM pubsub_read(NULL::json_bad, '{"0":33}');

-- ====
-- Wrong types inside arrays, composites and domains.
CREATE FUNCTION json_try(payload text) RETURNS SETOF json_types
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM dummy_append('regress_pubsub_json', 'types', 0, convert_to(payload, 'UTF8'));
  RETURN QUERY SELECT * FROM pubsub_read(NULL::json_types, 'latest-1');
END $$;
\set SHOW_CONTEXT never
SELECT json_try('{"tags":5}');
SELECT json_try('{"grid":[1,[2]]}');
SELECT json_try('{"c":{"x":"q"}}');
SELECT json_try('{"p":0}');
SELECT json_try('{"pair":[1]}');
SELECT json_try('{"v":"abcdef"}');
SELECT json_try('{"mood":"happy"}');
SELECT json_try('{"jb":"\u0000"}');
SELECT json_try('{"ts":"yesterdaay"}');
-- not what looks like an exponent
SELECT json_try('{"id":true}');
SELECT json_try('{"id":{"e":1}}');
\set SHOW_CONTEXT errors
CREATE DOMAIN json_given AS int NOT NULL;
CREATE FOREIGN TABLE json_not_null (a json_given, t text)
  SERVER json_log OPTIONS (topic 'given', format 'json');
SELECT json_topic('given', '{"t":"x"}');
SELECT * FROM json_not_null;
SELECT t FROM json_not_null;

-- ====
-- strict: what is missing is an error, NULL is not; nor are tombstones.
CREATE FOREIGN TABLE json_strict (a int, x text OPTIONS (field 'o.l[1]'))
  SERVER json_log OPTIONS (topic 'strict', format 'json', strict 'true');
SELECT json_topic('strict', '{"a":1,"o":{"l":[1,2]}}', '{"a":null,"o":{"l":[1,null]}}');
SELECT dummy_append('regress_pubsub_json', 'strict', 0, NULL);
SELECT * FROM json_strict;
SELECT json_topic('strict2', '{"a":1,"o":{"l":[1]}}');
ALTER FOREIGN TABLE json_strict OPTIONS (SET topic 'strict2');
SELECT a FROM json_strict;
SELECT * FROM json_strict;

-- ====
-- Deep nesting is an ordinary error, where it is too deep.
CREATE FOREIGN TABLE json_deep (a int) SERVER json_log OPTIONS (topic 'deep', format 'json');
SELECT json_topic('deep', '{"q":' || repeat('[', 20000) || repeat(']', 20000) || '}',
  '{"q":' || repeat('[', 2000) || repeat(']', 2000) || ',"a":5}');
\set VERBOSITY sqlstate
SELECT * FROM json_deep;
\set VERBOSITY default
SELECT * FROM pubsub_read(NULL::json_deep, '{"0":1}');

-- ====
-- Written: all columns, in their order, nested by their paths, as to_json().
CREATE FOREIGN TABLE json_out (data text, key text, headers jsonb, "offset" bigint)
  SERVER json_log OPTIONS (topic 'out');
SELECT pubsub_create_topic('json_log', 'out', 1);
CREATE FOREIGN TABLE json_in (
  id bigint, name text OPTIONS (field 'customer.name'), n numeric, f double precision,
  yes boolean, ts timestamptz, d date, j json, jb jsonb, tags text[], c json_comp,
  b bytea, "odd ""name" char(3), age json_positive OPTIONS (field 'customer.more.age'),
  key text OPTIONS (metadata 'key'), region text OPTIONS (attribute 'region'),
  first text OPTIONS (field 'lines[0]'), whole jsonb OPTIONS (field 'customer'),
  raw bytea OPTIONS (metadata 'data')
) SERVER json_log OPTIONS (topic 'out', format 'json');
SET DateStyle = 'German';
INSERT INTO json_in (id, name, n, f, yes, ts, d, j, jb, tags, c, b, "odd ""name", age, key, region)
  VALUES (9007199254740993, E'B\u00e9a "q"\n', 123456789012345678901234567890.123456789, 'NaN', true,
          '2026-01-02 03:04:05.678901Z', '2026-01-02', '{"b" : 1.50}', '{"b" : 1.50}',
          '{a,NULL,"c d"}', ROW(1, 'y', '{1.5}'), '\x00ff', 'x', 5, 'k', 'eu');
SET DateStyle = 'ISO';
INSERT INTO json_in (key) VALUES ('nothing');
SELECT data, key, headers FROM json_out;
SELECT id, name, n, f, yes, ts, d, j::text, jb, tags, c, b, "odd ""name", age, region FROM json_in;
-- the same as the server's own, but for the nested objects
SELECT data::jsonb - 'customer' = to_jsonb(r) AS same FROM json_out,
  (SELECT id, n, f, yes, ts, d, j, jb, tags, c, b, "odd ""name" FROM json_in LIMIT 1) r
  WHERE key = 'k';
-- these are for reading only
INSERT INTO json_in (id, first) VALUES (1, 'x');
INSERT INTO json_in (id, whole) VALUES (1, '{}');
INSERT INTO json_in (id, raw) VALUES (1, 'x');
SELECT count(*) FROM json_out;

-- ====
-- tombstones: no field at all is a NULL payload.
CREATE FOREIGN TABLE json_tombstones (
  a int, x text OPTIONS (field 'o.x'), key text OPTIONS (metadata 'key'),
  raw bytea OPTIONS (metadata 'data')
) SERVER json_log OPTIONS (topic 'tombstones', format 'json', tombstones 'true');
SELECT pubsub_create_topic('json_log', 'tombstones', 1);
INSERT INTO json_tombstones VALUES (NULL, NULL, 'k1'), (1, NULL, 'k2'), (NULL, 'x', 'k3');
ALTER FOREIGN TABLE json_tombstones OPTIONS (DROP tombstones);
INSERT INTO json_tombstones VALUES (NULL, NULL, 'k4');
SELECT a, x, key, convert_from(raw, 'UTF8') AS raw FROM json_tombstones;

-- ====
-- A queue
SELECT pubsub_create_topic('json_queue', 'json');
SELECT pubsub_create_subscription('json_queue', 'json-sub', 'json');
CREATE FOREIGN TABLE json_q (a int, o text OPTIONS (field 'o.x'), r text OPTIONS (attribute 'r'))
  SERVER json_queue OPTIONS (topic 'json', subscription 'json-sub', format 'json', poll_timeout '100ms');
INSERT INTO json_q VALUES (1, 'x', 'r'), (NULL, NULL, NULL);
SELECT * FROM json_q ORDER BY a;
SELECT pubsub_send('json_q', '[1]'::text);
SELECT * FROM json_q;

\set VERBOSITY terse
DROP SERVER json_log CASCADE;
DROP SERVER json_queue CASCADE;
DROP TYPE json_mood, json_comp CASCADE;
DROP DOMAIN json_positive, json_pair, json_given;
DROP FUNCTION json_topic;
SELECT dummy_drop('regress_pubsub_json');
