--
-- Consuming from Apache Kafka: positions move with the transaction
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP
\getenv kafka_tool KAFKA_TOOL
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';

CREATE SERVER con_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER con_kafka;
CREATE FUNCTION new_topic(topic text, partitions int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pubsub_drop_topic('con_kafka', new_topic.topic, if_exists => true);
  RETURN pubsub_create_topic('con_kafka', new_topic.topic, partitions => new_topic.partitions);
END $$;
CREATE VIEW positions AS SELECT topic, group_id, "partition", next_offset FROM pubsub_offsets WHERE server_name = 'con_kafka' ORDER BY 1, 2, 3;

SELECT new_topic('regress_consume', 3);
\! $KAFKA_TOOL write regress_consume 0 a0 a1 a2
\! $KAFKA_TOOL write regress_consume 1 b0 b1
CREATE FOREIGN TABLE c (data text, "partition" int, "offset" bigint)
  SERVER con_kafka OPTIONS (topic 'regress_consume', group_id 'g');
CREATE FOREIGN TABLE c_no_group (data text) SERVER con_kafka OPTIONS (topic 'regress_consume');
CREATE TABLE dst (data text PRIMARY KEY);

-- ====
-- Once, and by a committed transaction only
BEGIN;
INSERT INTO dst SELECT data FROM pubsub_consume(NULL::c);
SELECT data FROM dst ORDER BY 1;
SELECT * FROM positions;
-- the next call of the same transaction goes on
SELECT data FROM pubsub_consume(NULL::c);
ROLLBACK;
SELECT * FROM positions;
BEGIN;
INSERT INTO dst SELECT data FROM pubsub_consume(NULL::c);
COMMIT;
SELECT data FROM dst ORDER BY 1;
SELECT * FROM positions;
SELECT data FROM pubsub_consume(NULL::c);
-- an error in the middle: nothing has happened
\! $KAFKA_TOOL write regress_consume 0 a3 a0 a4
INSERT INTO dst SELECT data FROM pubsub_consume(NULL::c);
SELECT * FROM positions;
SELECT data FROM dst ORDER BY 1;
INSERT INTO dst SELECT data FROM pubsub_consume(NULL::c) ON CONFLICT DO NOTHING;
SELECT data FROM dst ORDER BY 1;
SELECT * FROM positions;
-- an error at COMMIT
CREATE TABLE dst_deferred (data text REFERENCES dst DEFERRABLE INITIALLY DEFERRED);
\! $KAFKA_TOOL write regress_consume 1 b2 a0
BEGIN;
INSERT INTO dst_deferred SELECT data FROM pubsub_consume(NULL::c);
COMMIT;
SELECT count(*) FROM dst_deferred;
SELECT data FROM pubsub_consume(NULL::c) ORDER BY 1;
SELECT data FROM pubsub_consume(NULL::c) ORDER BY 1;

-- ====
-- Savepoints
\! $KAFKA_TOOL write regress_consume 0 s1 s2 s3 s4
BEGIN;
SELECT data FROM pubsub_consume(NULL::c, max_records => 1);
SAVEPOINT a;
SELECT data FROM pubsub_consume(NULL::c, max_records => 1);
SAVEPOINT b;
SELECT data FROM pubsub_consume(NULL::c, max_records => 1);
RELEASE b;
ROLLBACK TO a;
SELECT data FROM pubsub_consume(NULL::c, max_records => 1);
SAVEPOINT c;
SELECT data FROM pubsub_consume(NULL::c, max_records => 1);
RELEASE c;
COMMIT;
SELECT data FROM pubsub_consume(NULL::c);
-- an exception that is caught undoes its block
\! $KAFKA_TOOL write regress_consume 0 e1 e2
DO $$
DECLARE
  got text;
BEGIN
  FOR i IN 1..3 LOOP
    BEGIN
      SELECT string_agg(data, ' ') INTO got FROM pubsub_consume(NULL::c, max_records => 1);
      RAISE NOTICE 'attempt %: %', i, got;
      IF i < 3 THEN
        RAISE EXCEPTION 'no';
      END IF;
    EXCEPTION WHEN raise_exception THEN
      NULL;
    END;
  END LOOP;
END $$;
SELECT data FROM pubsub_consume(NULL::c);

-- ====
-- Several calls add up to everything, in order within a partition.
SELECT new_topic('regress_consume_many', 4);
\! $KAFKA_TOOL fill regress_consume_many 4 10007 20
CREATE FOREIGN TABLE c_many (data text, "partition" int, "offset" bigint)
  SERVER con_kafka OPTIONS (topic 'regress_consume_many', group_id 'g');
CREATE TABLE got (call int, data text, "partition" int, "offset" bigint);
DO $$
DECLARE
  n int;
  i int := 0;
BEGIN
  LOOP
    i := i + 1;
    INSERT INTO got SELECT i, * FROM pubsub_consume(NULL::c_many, max_records => 977);
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE NOTICE '% rows', n;
    EXIT WHEN n < 977;
  END LOOP;
END $$;
SELECT count(*), count(DISTINCT data), sum(split_part(data, ' ', 1)::int) = 10007 * 10006 / 2 AS all_of_them FROM got;
SELECT "partition", count(*), min("offset"), max("offset") FROM got GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM (SELECT "offset" - lag("offset") OVER (PARTITION BY "partition" ORDER BY call, "offset") AS step FROM got) q WHERE step <> 1;
SELECT * FROM positions WHERE topic = 'regress_consume_many';
-- a time that is over before anything has come: the next call goes on; it may
-- take a few, but nothing is lost and nothing comes twice
SELECT count(*) FROM pubsub_consume(NULL::c_many, group_id => 'brief', max_records => 5);
DO $$
DECLARE
  n bigint := 5;
  deadline timestamptz := clock_timestamp() + interval '60 s';
BEGIN
  SET LOCAL client_min_messages = warning;
  WHILE n < 10007 LOOP
    n := n + (SELECT count(*) FROM pubsub_consume(NULL::c_many, group_id => 'brief', max_read_time => '20 ms', max_records => 3000));
    IF clock_timestamp() > deadline THEN
      RAISE EXCEPTION 'got % rows only', n;
    END IF;
  END LOOP;
  RAISE WARNING '% rows', n;
END $$;

-- ====
-- A group of its own; partitions; which group is required
SELECT count(*) FROM pubsub_consume(NULL::c, group_id => 'other');
SELECT count(*) FROM pubsub_consume(NULL::c, group_id => 'other');
SELECT count(*) FROM pubsub_consume(NULL::c, group_id => 'third', partitions => '{1}');
SELECT "partition", next_offset FROM positions WHERE group_id = 'third';
SELECT count(*) FROM pubsub_consume(NULL::c, group_id => 'third', partitions => '{7}');
SELECT * FROM pubsub_consume(NULL::c_no_group);
SELECT count(*) FROM pubsub_consume(NULL::c_no_group, group_id => 'fourth', max_records => 2);
SELECT * FROM pubsub_consume(NULL::c_no_group, group_id => '');
SELECT * FROM pubsub_consume(NULL::c, max_records => 0);
SELECT * FROM pubsub_consume(NULL::c, max_read_time => '0');
SELECT * FROM pubsub_consume(NULL);
SELECT * FROM pubsub_consume(NULL::dst);
SELECT pubsub_consume(NULL::c);
BEGIN READ ONLY;
SELECT * FROM pubsub_consume(NULL::c);
ROLLBACK;

-- ====
-- What comes later is read from where it starts: records, partitions.
SELECT new_topic('regress_consume_grow', 1);
CREATE FOREIGN TABLE c_grow (data text, "partition" int, "offset" bigint)
  SERVER con_kafka OPTIONS (topic 'regress_consume_grow', group_id 'g', start_offsets 'latest');
\! $KAFKA_TOOL write regress_consume_grow 0 before
SELECT * FROM pubsub_consume(NULL::c_grow);
\! $KAFKA_TOOL write regress_consume_grow 0 after
\! $KAFKA_TOOL partitions regress_consume_grow 3
\! $KAFKA_TOOL write regress_consume_grow 2 new
SELECT * FROM pubsub_consume(NULL::c_grow) ORDER BY "partition";
SELECT * FROM pubsub_consume(NULL::c_grow);
SELECT "partition", next_offset FROM positions WHERE topic = 'regress_consume_grow';

-- ====
-- Control records and compaction at the end move the position, too.
SELECT new_topic('regress_consume_tx', 2);
\! $KAFKA_TOOL write regress_consume_tx 0 begin a commit begin b abort
\! $KAFKA_TOOL write regress_consume_tx 1 begin x abort c begin d
CREATE FOREIGN TABLE c_tx (data text, "partition" int, "offset" bigint)
  SERVER con_kafka OPTIONS (topic 'regress_consume_tx', group_id 'g');
SELECT * FROM pubsub_consume(NULL::c_tx) ORDER BY "partition";
SELECT "partition", next_offset FROM positions WHERE topic = 'regress_consume_tx';
SELECT * FROM pubsub_consume(NULL::c_tx);
\! $KAFKA_TOOL write regress_consume_tx 1 e
SELECT * FROM pubsub_consume(NULL::c_tx);
\! $KAFKA_TOOL end regress_consume_tx 1
SELECT * FROM pubsub_consume(NULL::c_tx);
SELECT * FROM pubsub_consume(NULL::c_tx);
SELECT "partition", next_offset FROM positions WHERE topic = 'regress_consume_tx';
-- max_records counts rows
SELECT * FROM pubsub_consume(NULL::c_tx, group_id => 'ones', partitions => '{1}', max_records => 1);
SELECT * FROM pubsub_consume(NULL::c_tx, group_id => 'ones', partitions => '{1}', max_records => 1);
SELECT * FROM pubsub_consume(NULL::c_tx, group_id => 'ones', partitions => '{1}', max_records => 1);

-- ====
-- Data loss: the position is not there any more, or the topic was made anew.
SELECT new_topic('regress_consume_loss', 1);
\! $KAFKA_TOOL write regress_consume_loss 0 a b c d e f
CREATE FOREIGN TABLE c_loss (data text, "offset" bigint)
  SERVER con_kafka OPTIONS (topic 'regress_consume_loss', group_id 'g');
SELECT data FROM pubsub_consume(NULL::c_loss, max_records => 2);
\! $KAFKA_TOOL delete regress_consume_loss 0 4
SELECT data FROM pubsub_consume(NULL::c_loss);
SELECT "partition", next_offset FROM positions WHERE topic = 'regress_consume_loss';
ALTER FOREIGN TABLE c_loss OPTIONS (ADD on_data_loss 'skip');
SELECT data FROM pubsub_consume(NULL::c_loss);
ALTER FOREIGN TABLE c_loss OPTIONS (DROP on_data_loss);
-- deleted to the end: no record that was not consumed is gone
\! $KAFKA_TOOL delete regress_consume_loss 0 6
SELECT data FROM pubsub_consume(NULL::c_loss);
SELECT new_topic('regress_consume_loss', 1);
\! $KAFKA_TOOL write regress_consume_loss 0 x y z
SELECT data FROM pubsub_consume(NULL::c_loss);
ALTER FOREIGN TABLE c_loss OPTIONS (ADD on_data_loss 'skip');
SELECT data FROM pubsub_consume(NULL::c_loss);
\! $KAFKA_TOOL write regress_consume_loss 0 later
SELECT data FROM pubsub_consume(NULL::c_loss);
-- anew, and nothing in it yet: what comes is read
SELECT new_topic('regress_consume_loss', 1);
SELECT data FROM pubsub_consume(NULL::c_loss);
\! $KAFKA_TOOL write regress_consume_loss 0 p q r s t u v
SELECT data FROM pubsub_consume(NULL::c_loss);
-- deleted up to the end before it was consumed: told once
\! $KAFKA_TOOL write regress_consume_loss 0 w
\! $KAFKA_TOOL delete regress_consume_loss 0 8
SELECT data FROM pubsub_consume(NULL::c_loss);
SELECT data FROM pubsub_consume(NULL::c_loss);

-- ====
-- A cursor, a join with itself, a materialized function: each consumes once
-- what it was given
\! $KAFKA_TOOL write regress_consume 2 j1 j2 j3 j4 j5 j6
SELECT count(*) FROM pubsub_consume(NULL::c, max_records => 2) a, pubsub_consume(NULL::c, max_records => 2) b;
SELECT data FROM generate_series(1, 3) i, LATERAL pubsub_consume(NULL::c, max_records => 1 + 0 * i) ORDER BY 1;
\! $KAFKA_TOOL write regress_consume 2 k1 k2 k3
SELECT data FROM pubsub_consume(NULL::c) LIMIT 1;
SELECT count(*) FROM pubsub_consume(NULL::c);
\! $KAFKA_TOOL write regress_consume 2 l1 l2 l3
BEGIN;
DECLARE cur CURSOR FOR SELECT data FROM pubsub_consume(NULL::c);
FETCH 1 FROM cur;
FETCH 1 FROM cur;
COMMIT;
SELECT count(*) FROM pubsub_consume(NULL::c);
-- one that was never fetched from consumes nothing
\! $KAFKA_TOOL write regress_consume 2 m1
BEGIN;
DECLARE cur CURSOR FOR SELECT data FROM pubsub_consume(NULL::c);
COMMIT;
EXPLAIN (COSTS OFF) SELECT data FROM pubsub_consume(NULL::c);
SELECT data FROM pubsub_consume(NULL::c) WHERE false;
SELECT data FROM pubsub_consume(NULL::c);
-- a row that cannot be decoded stops it, and does not get lost
CREATE FOREIGN TABLE c_json (data jsonb) SERVER con_kafka OPTIONS (topic 'regress_consume', group_id 'json');
SELECT count(*) FROM pubsub_consume(NULL::c_json, partitions => '{0}');
SELECT * FROM positions WHERE group_id = 'json';

SET client_min_messages = warning;
SELECT count(pubsub_drop_topic('con_kafka', topic)) FROM unnest('{regress_consume,regress_consume_many,regress_consume_grow,regress_consume_tx,regress_consume_loss}'::text[]) AS topic;
DROP SERVER con_kafka CASCADE;
DROP FUNCTION new_topic;
DROP VIEW positions;
DROP TABLE dst_deferred, dst, got;
