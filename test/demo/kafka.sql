-- test/demo/kafka.sql: the story of "make demo", first broker
--
-- test/demo/run plays it with psql; expect() fails when a step went wrong.

\getenv bootstrap KAFKA_BOOTSTRAP
\set ECHO queries

\echo
\echo '-- A Kafka cluster is a server.  Secrets, if there are any, belong into the'
\echo '-- user mapping.'
CREATE EXTENSION pubsub_fdw;
CREATE SERVER kafka FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'kafka', bootstrap_servers :'bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER kafka;

\echo
\echo '-- A topic is a foreign table: source and target at once.  Columns are fields'
\echo '-- of the JSON message unless they say otherwise.'
CREATE FOREIGN TABLE orders (
	id bigint,
	customer text OPTIONS (field 'customer.name'),
	amount numeric,
	region text OPTIONS (attribute 'region'),
	p integer OPTIONS (metadata 'partition'),
	o bigint OPTIONS (metadata 'offset')
) SERVER kafka OPTIONS (topic 'orders', format 'json', group_id 'demo');

\echo
\echo '-- Publish: a message per row, sent when the transaction commits.'
INSERT INTO orders (id, customer, amount, region)
	SELECT g, 'customer ' || g % 7, g * 1.10, (ARRAY['north', 'south'])[1 + g % 2]
	FROM generate_series(1, 1000) g;

\echo
\echo '-- Rolled back means: nothing was sent.'
BEGIN;
INSERT INTO orders (id, customer, amount) VALUES (0, 'nobody', 0);
ROLLBACK;

\echo
\echo '-- Read the topic, from its beginning to its end as of now.  Reading has no'
\echo '-- effect: the second time it is all there again.'
SELECT count(*), sum(amount) FROM orders;
SELECT id, customer, amount, region FROM orders ORDER BY id LIMIT 5;
SELECT region, count(*) FROM orders GROUP BY region ORDER BY region;
\set ECHO none
SELECT expect('rows in the topic', (SELECT count(*) FROM orders), 1000) \g /dev/null
SELECT expect('cents in the topic', (SELECT sum(amount) * 100 FROM orders)::bigint, 55055000) \g /dev/null
\set ECHO queries

\echo
\echo '-- Ingest it into a table.'
CREATE TABLE orders_landing (id bigint PRIMARY KEY, customer text, amount numeric, region text);
CALL pubsub_ingest('orders', 'orders_landing');
\echo '-- Again: there is nothing new.'
CALL pubsub_ingest('orders', 'orders_landing');
\echo '-- The position is a row of a table, and changes in the transaction of the rows.'
SELECT topic, group_id, sum(next_offset) AS consumed FROM pubsub_offsets GROUP BY topic, group_id;
\set ECHO none
SELECT expect('rows ingested', (SELECT count(*) FROM orders_landing), 1000) \g /dev/null
SELECT expect('messages consumed', (SELECT sum(next_offset) FROM pubsub_offsets)::bigint, 1000) \g /dev/null
\set ECHO queries

\echo
\echo '-- Ten more messages.  Take them in a transaction, and think better of it ...'
INSERT INTO orders (id, customer, amount, region)
	SELECT g, 'late customer', g, 'north' FROM generate_series(1001, 1010) g;
BEGIN;
INSERT INTO orders_landing
	SELECT id, customer, amount, region FROM pubsub_consume(NULL::orders);
SELECT count(*) AS rows_for_now FROM orders_landing;
\set ECHO none
SELECT expect('rows before the rollback', (SELECT count(*) FROM orders_landing), 1010) \g /dev/null
\set ECHO queries
ROLLBACK;
SELECT count(*) AS rows_after_rollback FROM orders_landing;
\set ECHO none
SELECT expect('rows after the rollback', (SELECT count(*) FROM orders_landing), 1000) \g /dev/null
\set ECHO queries

\echo
\echo '-- ... and the ten come again.'
BEGIN;
INSERT INTO orders_landing
	SELECT id, customer, amount, region FROM pubsub_consume(NULL::orders);
COMMIT;
SELECT count(*) AS rows_after_commit FROM orders_landing;
CALL pubsub_ingest('orders', 'orders_landing');
\set ECHO none
SELECT expect('rows at the end', (SELECT count(*) FROM orders_landing), 1010) \g /dev/null
