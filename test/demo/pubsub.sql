-- test/demo/pubsub.sql: the story of "make demo", second broker
--
-- test/demo/run plays it with psql after kafka.sql; expect() fails when a step
-- went wrong.

\getenv endpoint PUBSUB_ENDPOINT
\set ECHO queries

\echo
\echo '-- Google Cloud Pub/Sub works the same way; here it is Google''s emulator, which'
\echo '-- asks for no credentials.'
CREATE SERVER google FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'pubsub', project 'demo-project', endpoint :'endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER google OPTIONS (auth 'none');
SELECT pubsub_create_topic('google', 'events');
SELECT pubsub_create_subscription('google', 'events-sub', 'events');

\echo
\echo '-- Messages as they are: columns are bound by their names.'
CREATE FOREIGN TABLE events (
	data jsonb,
	attributes jsonb,
	message_id text,
	publish_time timestamptz
) SERVER google OPTIONS (topic 'events', subscription 'events-sub', poll_timeout '500ms');

\echo
\echo '-- Publish.'
INSERT INTO events (data, attributes)
	SELECT jsonb_build_object('id', g), '{"source": "demo"}' FROM generate_series(1, 50) g;

\echo
\echo '-- A SELECT only peeks: what it saw goes back to the subscription.'
SELECT data, attributes, message_id IS NOT NULL AS has_id, publish_time <= now() AS published
	FROM events ORDER BY (data->>'id')::int LIMIT 3;

\echo
\echo '-- Take them, and roll back: they are not lost ...'
CREATE TABLE events_landing (LIKE events);
BEGIN;
INSERT INTO events_landing SELECT * FROM pubsub_consume(NULL::events, max_records => 50);
SELECT count(*) AS rows_for_now FROM events_landing;
\set ECHO none
SELECT expect('rows before the rollback', (SELECT count(*) FROM events_landing), 50) \g /dev/null
\set ECHO queries
ROLLBACK;
SELECT count(*) AS rows_after_rollback FROM events_landing;

\echo
\echo '-- ... but come again, and are acknowledged once this transaction has committed.'
CALL pubsub_ingest('events', 'events_landing');
\echo '-- Now the subscription is empty.'
CALL pubsub_ingest('events', 'events_landing');
SELECT count(*), count(DISTINCT message_id) AS messages FROM events_landing;
\set ECHO none
SELECT expect('rows at the end', (SELECT count(*) FROM events_landing), 50) \g /dev/null
SELECT expect('messages at the end', (SELECT count(DISTINCT message_id) FROM events_landing), 50) \g /dev/null
SELECT expect('rows left', (SELECT count(*) FROM pubsub_consume(NULL::events)), 0) \g /dev/null
