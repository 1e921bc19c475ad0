--
-- Names of projects, topics and subscriptions at Google Pub/Sub, and what is
-- made and dropped by them
--
\getenv pubsub_endpoint PUBSUB_ENDPOINT
-- a project of our own, so that names need not be new in each run
SELECT 'regress-n' || pg_backend_pid() || '-' || extract(epoch FROM now())::bigint % 1000000 AS project \gset
\set other_project :project -b
CREATE SERVER nam_google FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project :'project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER nam_google OPTIONS (auth 'none');
-- errors, with the project's name replaced
CREATE FUNCTION nam_try(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  message text;
  detail text;
  hint text;
  result text;
BEGIN
  EXECUTE query INTO result;
  RETURN coalesce(result, 'ok');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN regexp_replace(concat_ws(E'\n', SQLSTATE || ': ' || message, nullif(detail, ''), nullif('HINT: ' || hint, 'HINT: ')),
    'regress-n[0-9]+-[0-9]+', 'regress-n', 'g');
END $$;
\t on
\pset format unaligned

-- ====
-- Making and dropping: once, twice, with and without "if"
SELECT pubsub_create_topic('nam_google', 'nam-topic');
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'nam-topic')$$);
SELECT pubsub_create_topic('nam_google', 'nam-topic', if_not_exists => true);
SELECT pubsub_create_subscription('nam_google', 'nam-sub', 'nam-topic', '15 s');
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub', 'nam-topic')$$);
SELECT pubsub_create_subscription('nam_google', 'nam-sub', 'nam-topic', if_not_exists => true);
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub2', 'nam-nowhere')$$);
SELECT nam_try($$SELECT pubsub_drop_subscription('nam_google', 'nam-sub2')$$);
SELECT pubsub_drop_subscription('nam_google', 'nam-sub2', if_exists => true);
SELECT nam_try($$SELECT pubsub_drop_topic('nam_google', 'nam-nowhere')$$);
SELECT pubsub_drop_topic('nam_google', 'nam-nowhere', if_exists => true);
-- what is wrong with the arguments
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'x')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', '')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', NULL)$$);
SELECT nam_try($$SELECT pubsub_create_topic(NULL, 'nam-topic')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_nowhere', 'nam-topic')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', '1nam')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'googtopic')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'nam topic')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'nam-töpic')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', repeat('n', 256))$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'projects/p/subscriptions/nam')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'nam-topic3', partitions => 3)$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'nam-topic3', config => '{"retention": "1d"}')$$);
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub3', 'nam-topic', '9 s')$$);
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub3', 'nam-topic', '601 s')$$);
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub3', 'nam-topic', config => '{"no_such": true}')$$);
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub3', 'nam-topic', config => '{"message_ordering": 3}')$$);
SELECT nam_try($$SELECT pubsub_create_subscription('nam_google', 'nam-sub3', 'nam-topic', config => '[]')$$);
-- not in a read-only transaction; not undone by ROLLBACK
BEGIN READ ONLY;
SELECT nam_try($$SELECT pubsub_create_topic('nam_google', 'nam-topic4')$$);
ROLLBACK;
BEGIN;
SELECT pubsub_create_topic('nam_google', 'nam-topic4');
ROLLBACK;
SELECT pubsub_drop_topic('nam_google', 'nam-topic4');

-- ====
-- Bare and full names mean the same; another project, another topic of the
-- same name.
CREATE FOREIGN TABLE nam_bare (data text) SERVER nam_google
  OPTIONS (topic 'nam-topic', subscription 'nam-sub', max_read_time '20s');
SELECT format('projects/%s/topics/nam-topic', :'project') AS full_topic, format('projects/%s/subscriptions/nam-sub', :'project') AS full_sub,
  format('projects/%s/topics/nam-topic', :'other_project') AS other_topic, format('projects/%s/subscriptions/nam-sub', :'other_project') AS other_sub \gset
CREATE FOREIGN TABLE nam_full (data text, topic text, subscription text) SERVER nam_google
  OPTIONS (topic :'full_topic', subscription :'full_sub', max_read_time '20s');
SELECT pubsub_create_topic('nam_google', :'other_topic'), pubsub_create_subscription('nam_google', :'other_sub', :'other_topic');
CREATE FOREIGN TABLE nam_other (data text, topic text, subscription text) SERVER nam_google
  OPTIONS (topic :'other_topic', subscription :'other_sub', max_read_time '20s');
INSERT INTO nam_bare VALUES ('bare');
INSERT INTO nam_full (data) VALUES ('full');
INSERT INTO nam_other (data) VALUES ('other');
SELECT data FROM pubsub_read(NULL::nam_bare, max_records => 2) ORDER BY data;
SELECT data, topic = :'full_topic', subscription = :'full_sub' FROM pubsub_consume(NULL::nam_full, 2) ORDER BY data;
SELECT data, topic = :'other_topic', subscription = :'other_sub' FROM pubsub_consume(NULL::nam_other, 1);
-- a subscription in one project to a topic of another
SELECT pubsub_create_subscription('nam_google', 'nam-cross', :'other_topic');
CREATE FOREIGN TABLE nam_cross (data text, topic text) SERVER nam_google OPTIONS (subscription 'nam-cross', max_read_time '20s');
INSERT INTO nam_other (data) VALUES ('across');
SELECT data, topic = :'other_topic' FROM pubsub_consume(NULL::nam_cross, 1);
SELECT data FROM pubsub_consume(NULL::nam_other, 1);
-- a server without a project
CREATE SERVER nam_no_project FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'pubsub', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER nam_no_project OPTIONS (auth 'none');
CREATE FOREIGN TABLE nam_no_project (data text) SERVER nam_no_project OPTIONS (subscription 'nam-sub', topic 'nam-topic');
SELECT nam_try('SELECT data FROM nam_no_project');
SELECT nam_try($$INSERT INTO nam_no_project VALUES ('x')$$);
SELECT nam_try($$SELECT pubsub_create_topic('nam_no_project', 'nam-topic')$$);
CREATE FOREIGN TABLE nam_no_project2 (data text) SERVER nam_no_project OPTIONS (subscription :'full_sub', topic :'full_topic', max_read_time '20s');
INSERT INTO nam_no_project2 VALUES ('no project');
SELECT data FROM pubsub_consume(NULL::nam_no_project2, 1);

-- ====
-- Case matters, and every character that is allowed
SELECT repeat('n', 255) AS longest \gset
SELECT count(pubsub_create_topic('nam_google', t)), count(pubsub_create_subscription('nam_google', t, t))
  FROM unnest(ARRAY['Nam-Topic', 'n.a_m~t+o%p-1', 'n.a_m~t+o%70-1', :'longest']) t;
CREATE FUNCTION nam_echo(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE nam_echoing (data text, subscription text) SERVER nam_google OPTIONS (topic %1$L, subscription %1$L, max_read_time ''20s'')', name);
  EXECUTE format('SELECT pubsub_send(''nam_echoing'', left(%L, 20))', name);
END $$;
SELECT nam_echo('Nam-Topic');
SELECT data, subscription LIKE '%/subscriptions/Nam-Topic' FROM pubsub_consume(NULL::nam_echoing, 1);
DROP FOREIGN TABLE nam_echoing;
SELECT nam_echo('n.a_m~t+o%p-1');
SELECT data, subscription LIKE '%/subscriptions/n.a\_m~t+o\%p-1' FROM pubsub_consume(NULL::nam_echoing, 1);
DROP FOREIGN TABLE nam_echoing;
SELECT nam_echo('n.a_m~t+o%70-1');
SELECT data, subscription LIKE '%/subscriptions/n.a\_m~t+o\%70-1' FROM pubsub_consume(NULL::nam_echoing, 1);
DROP FOREIGN TABLE nam_echoing;
SELECT nam_echo(:'longest');
SELECT data, length(subscription) - length(:'project') FROM pubsub_consume(NULL::nam_echoing, 1);
DROP FOREIGN TABLE nam_echoing;
-- an identifier that needs quotes, everywhere
CREATE SERVER "it's a ""server""; ü" FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'pubsub', project :'project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER "it's a ""server""; ü" OPTIONS (auth 'none');
CREATE SCHEMA "nam ""S""";
CREATE FOREIGN TABLE "nam ""S"""."a Table" ("The Data" text OPTIONS (metadata 'data'), "x'y" text OPTIONS (attribute E'a "b"\n''c'))
  SERVER "it's a ""server""; ü" OPTIONS (topic 'nam-topic', subscription 'nam-sub', max_read_time '20s');
INSERT INTO "nam ""S"""."a Table" VALUES ('quoted', 'value');
SELECT * FROM pubsub_read(NULL::"nam ""S"""."a Table", max_records => 1);
SELECT * FROM pubsub_consume(NULL::"nam ""S"""."a Table", 1);
SELECT pubsub_send('"nam ""S"""."a Table"', 'sent', '{"a \"b\"\n''c": "attribute"}');
SELECT * FROM pubsub_consume(NULL::"nam ""S"""."a Table", 1);
ALTER FOREIGN TABLE "nam ""S"""."a Table" OPTIONS (SET subscription 'nam-nowhere', DROP topic);
SELECT nam_try($$SELECT * FROM "nam ""S"""."a Table"$$);
SELECT nam_try($$INSERT INTO "nam ""S"""."a Table" VALUES ('x')$$);
SELECT server_name, broker, in_transaction FROM pubsub_get_connections() WHERE server_name LIKE 'it%';
SELECT pubsub_disconnect('it''s a "server"; ü');

-- ====
-- A topic that was deleted leaves its subscription readable.
INSERT INTO nam_full (data) VALUES ('orphan');
SELECT pubsub_drop_topic('nam_google', 'nam-topic');
SELECT data, topic FROM pubsub_consume(NULL::nam_full, 1);
SELECT nam_try($$INSERT INTO nam_bare VALUES ('x')$$);
SELECT pubsub_drop_subscription('nam_google', 'nam-sub');
SELECT nam_try('SELECT data FROM nam_bare');

\t off
\pset format aligned
SET client_min_messages = warning;
SELECT count(pubsub_drop_topic('nam_google', t)), count(pubsub_drop_subscription('nam_google', t))
  FROM unnest(ARRAY['Nam-Topic', 'n.a_m~t+o%p-1', 'n.a_m~t+o%70-1', :'longest']) t;
SELECT pubsub_drop_subscription('nam_google', 'nam-cross'), pubsub_drop_subscription('nam_google', :'other_sub'), pubsub_drop_topic('nam_google', :'other_topic');
DROP SERVER nam_google, nam_no_project, "it's a ""server""; ü" CASCADE;
DROP SCHEMA "nam ""S""" CASCADE;
DROP FUNCTION nam_try, nam_echo;
