--
-- CALL pubsub_ingest() from Google Pub/Sub: acknowledged when a batch has
-- committed, and only then
--
\getenv pubsub_endpoint PUBSUB_ENDPOINT
SET TimeZone = 'UTC';

SELECT 'regress-ingest-' || pg_backend_pid() || '-' || extract(epoch FROM now())::bigint AS topic \gset
CREATE SERVER ing_google FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'pubsub', project 'regress-project', endpoint :'pubsub_endpoint');
CREATE USER MAPPING FOR CURRENT_USER SERVER ing_google OPTIONS (auth 'none');
SELECT pubsub_create_topic('ing_google', :'topic');
SELECT pubsub_create_subscription('ing_google', :'topic', :'topic');
CREATE FOREIGN TABLE ing_events (
  id int, kind text,
  message_id text OPTIONS (metadata 'message_id'),
  publish_time timestamptz OPTIONS (metadata 'publish_time'),
  attributes jsonb OPTIONS (metadata 'attributes')
) SERVER ing_google OPTIONS (topic :'topic', subscription :'topic', format 'json', poll_timeout '300ms');
CREATE FUNCTION ing_send(low int, high int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO ing_events (id, kind, attributes)
    SELECT i, 'k' || i % 3, jsonb_build_object('n', i::text) FROM generate_series(low, high) i;
$$;

-- ====
-- All messages, once; a second CALL finds nothing.
SELECT ing_send(1, 500);
CREATE TABLE ing_plain (id int, kind text, message_id text PRIMARY KEY, publish_time timestamptz, attributes jsonb,
                        xid xid8 DEFAULT pg_current_xact_id());
CALL pubsub_ingest('ing_events', 'ing_plain', batch_size => 100);
SELECT count(*), count(DISTINCT id), sum((attributes->>'n')::int), count(publish_time) FROM ing_plain;
SELECT count(*) FROM ing_plain GROUP BY xid ORDER BY 1;
CALL pubsub_ingest('ing_events', 'ing_plain');

-- ====
-- max_records ends a CALL; what was pulled beyond it is there for the next one.
SELECT ing_send(501, 700);
CALL pubsub_ingest('ing_events', 'ing_plain', batch_size => 30, max_records => 70);
SELECT count(*), count(DISTINCT id) FROM ing_plain;
CALL pubsub_ingest('ing_events', 'ing_plain');
SELECT count(*), count(DISTINCT id) FROM ing_plain;

-- ====
-- max_read_time ends one, too, and says so.
ALTER FOREIGN TABLE ing_events OPTIONS (SET poll_timeout '30s');
\set VERBOSITY terse
CALL pubsub_ingest('ing_events', 'ing_plain', max_read_time => '100 ms');
\set VERBOSITY default
ALTER FOREIGN TABLE ing_events OPTIONS (SET poll_timeout '300ms');

-- ====
-- A failing batch gives its messages back at once, all of them.
SELECT ing_send(701, 800);
CREATE TABLE ing_strict (id int CHECK (id <> 750), kind text);
CALL pubsub_ingest('ing_events', 'ing_strict');
SELECT count(*) FROM ing_strict;
ALTER TABLE ing_strict DROP CONSTRAINT ing_strict_id_check;
CALL pubsub_ingest('ing_events', 'ing_strict');
SELECT count(*), count(DISTINCT id) FROM ing_strict;
-- the same, found out only at COMMIT
SELECT ing_send(801, 900);
CREATE TABLE ing_kinds (kind text PRIMARY KEY);
CREATE TABLE ing_deferred (id int, kind text REFERENCES ing_kinds DEFERRABLE INITIALLY DEFERRED);
INSERT INTO ing_kinds VALUES ('k0'), ('k1');
CALL pubsub_ingest('ing_events', 'ing_deferred');
SELECT count(*) FROM ing_deferred;
INSERT INTO ing_kinds VALUES ('k2');
CALL pubsub_ingest('ing_events', 'ing_deferred');
SELECT count(*), count(DISTINCT id) FROM ing_deferred;

-- ====
-- In a transaction block: acknowledged at COMMIT, given back at ROLLBACK and
-- ROLLBACK TO.
SELECT ing_send(901, 1000);
CREATE TABLE ing_block (id int);
BEGIN;
CALL pubsub_ingest('ing_events', 'ing_block', batch_size => 30);
ROLLBACK;
BEGIN;
SAVEPOINT a;
CALL pubsub_ingest('ing_events', 'ing_block', batch_size => 30);
ROLLBACK TO a;
CALL pubsub_ingest('ing_events', 'ing_block', batch_size => 30);
COMMIT;
SELECT count(*), count(DISTINCT id) FROM ing_block;
CALL pubsub_ingest('ing_events', 'ing_block');

-- ====
-- What is already there: at least once becomes exactly once by a key.
SELECT ing_send(1001, 1010);
INSERT INTO ing_plain (id, message_id) SELECT id, message_id FROM ing_events;
CALL pubsub_ingest('ing_events', 'ing_plain', on_conflict => 'nothing');
SELECT count(*), count(kind) FROM ing_plain WHERE id > 1000;
SELECT ing_send(1001, 1010);
CREATE TABLE ing_ids (id int PRIMARY KEY, kind text, publish_time timestamptz);
INSERT INTO ing_ids SELECT i, 'old' FROM generate_series(1001, 1005) i;
CALL pubsub_ingest('ing_events', 'ing_ids', on_conflict => 'update');
SELECT count(*), count(publish_time), min(kind), max(kind) FROM ing_ids;

-- ====
-- group_id is Kafka's; a subscription that does not exist; nothing to match
CALL pubsub_ingest('ing_events', 'ing_plain', group_id => 'g');
CREATE FOREIGN TABLE ing_nowhere (data text) SERVER ing_google OPTIONS (subscription 'regress-ingest-nowhere');
CREATE TABLE ing_data (data text);
CALL pubsub_ingest('ing_nowhere', 'ing_data');
CALL pubsub_ingest('ing_events', 'ing_data');

SELECT pubsub_drop_subscription('ing_google', :'topic'), pubsub_drop_topic('ing_google', :'topic');
DROP SERVER ing_google CASCADE;
