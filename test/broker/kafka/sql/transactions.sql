--
-- Transactions across PostgreSQL and Apache Kafka: publishing and consuming
-- together, savepoints, exceptions, cursors, what is refused
--
\getenv kafka_bootstrap KAFKA_BOOTSTRAP

CREATE SERVER tx_kafka FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'kafka', bootstrap_servers :'kafka_bootstrap');
CREATE USER MAPPING FOR CURRENT_USER SERVER tx_kafka;
CREATE FUNCTION new_topic(topic text, partitions int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pubsub_drop_topic('tx_kafka', new_topic.topic, if_exists => true);
  RETURN pubsub_create_topic('tx_kafka', new_topic.topic, partitions => new_topic.partitions);
END $$;
SELECT new_topic('regress_tx', 1), new_topic('regress_tx_out', 1);
CREATE FOREIGN TABLE t (data text, "offset" bigint) SERVER tx_kafka OPTIONS (topic 'regress_tx', group_id 'g');
CREATE FOREIGN TABLE t_out (data text, "offset" bigint) SERVER tx_kafka OPTIONS (topic 'regress_tx_out', group_id 'g');
CREATE TABLE local (data text UNIQUE DEFERRABLE INITIALLY DEFERRED);
-- what arrived since the last look
CREATE FUNCTION arrived() RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(data, ' ' ORDER BY "offset") FROM pubsub_consume(NULL::t_out)$$;

-- ====
-- Publishing: nothing before COMMIT, nothing after ROLLBACK
BEGIN;
INSERT INTO t_out (data) VALUES ('a1'), ('a2'), ('a3');
SELECT arrived();
ROLLBACK;
SELECT arrived();
BEGIN;
INSERT INTO t_out (data) VALUES ('b1');
SAVEPOINT s1;
INSERT INTO t_out (data) VALUES ('b2');
SAVEPOINT s2;
INSERT INTO t_out (data) VALUES ('b3');
RELEASE s2;
INSERT INTO t_out (data) VALUES ('b4');
ROLLBACK TO s1;
INSERT INTO t_out (data) VALUES ('b5');
SAVEPOINT s3;
SAVEPOINT s4;
INSERT INTO t_out (data) VALUES ('b6');
ROLLBACK TO s4;
INSERT INTO t_out (data) VALUES ('b7');
RELEASE s3;
COMMIT;
SELECT arrived();
DO $$
BEGIN
  FOR i IN 1..5 LOOP
    BEGIN
      INSERT INTO t_out (data) VALUES ('c' || i);
      INSERT INTO t_out (data) VALUES ('d' || i);
      IF i % 2 = 0 THEN
        PERFORM 1 / 0;
      END IF;
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO t_out (data) VALUES ('e' || i);
    END;
  END LOOP;
END $$;
SELECT arrived();
-- a procedure that commits in between
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..4 LOOP
    INSERT INTO t_out (data) VALUES ('f' || i);
    IF i = 2 THEN
      ROLLBACK;
    ELSE
      COMMIT;
    END IF;
  END LOOP;
END $$;
CALL in_steps();
SELECT arrived();
-- an error at COMMIT publishes nothing
BEGIN;
INSERT INTO local VALUES ('x'), ('x');
INSERT INTO t_out (data) VALUES ('g');
COMMIT;
SELECT arrived();
-- a statement that fails halfway
INSERT INTO t_out (data) SELECT 1 / (4 - i) FROM generate_series(1, 4) i;
SELECT arrived();

-- ====
-- From topic to topic through a transaction
INSERT INTO t (data) SELECT 'm' || i FROM generate_series(1, 6) i;
BEGIN;
INSERT INTO t_out (data) SELECT upper(data) FROM pubsub_consume(NULL::t, max_records => 2);
ROLLBACK;
BEGIN;
INSERT INTO t_out (data) SELECT upper(data) FROM pubsub_consume(NULL::t, max_records => 2);
SAVEPOINT a;
INSERT INTO t_out (data) SELECT upper(data) FROM pubsub_consume(NULL::t, max_records => 2);
INSERT INTO local SELECT data FROM pubsub_consume(NULL::t, max_records => 1);
ROLLBACK TO a;
INSERT INTO t_out (data) SELECT lower(data) FROM pubsub_consume(NULL::t, max_records => 3);
COMMIT;
SELECT arrived();
SELECT * FROM local;
SELECT data FROM pubsub_consume(NULL::t);
-- what a transaction publishes it cannot read
BEGIN;
INSERT INTO t (data) VALUES ('mine');
SELECT data FROM pubsub_consume(NULL::t);
SELECT count(*) FROM t WHERE data = 'mine';
COMMIT;
SELECT data FROM pubsub_consume(NULL::t);

-- ====
-- Errors of reading, caught: the session and its cursors go on
CREATE FOREIGN TABLE t_nowhere (data text) SERVER tx_kafka OPTIONS (topic 'regress_tx_nowhere');
CREATE FOREIGN TABLE t_json (data jsonb) SERVER tx_kafka OPTIONS (topic 'regress_tx');
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM t;
FETCH 1 FROM c;
DO $$
BEGIN
  FOR i IN 1..20 LOOP
    BEGIN
      PERFORM count(data) FROM t_json;
    EXCEPTION WHEN invalid_text_representation THEN
      NULL;
    END;
  END LOOP;
  PERFORM * FROM t_nowhere;
EXCEPTION WHEN fdw_table_not_found THEN
  RAISE NOTICE '%', SQLERRM;
END $$;
FETCH 1 FROM c;
SAVEPOINT a;
SELECT * FROM t_nowhere;
ROLLBACK TO a;
FETCH 1 FROM c;
SAVEPOINT b;
DECLARE d CURSOR FOR SELECT data FROM t;
FETCH 1 FROM d;
ROLLBACK TO b;
FETCH 1 FROM d;
ROLLBACK TO b;
FETCH 1 FROM c;
INSERT INTO t_out (data) VALUES ('after errors');
COMMIT;
SELECT arrived();
-- a loop over a topic, with a rollback in each step
DO $$
DECLARE
  r record;
  n int := 0;
BEGIN
  FOR r IN SELECT data FROM t LOOP
    BEGIN
      n := n + 1;
      RAISE EXCEPTION 'no';
    EXCEPTION WHEN raise_exception THEN
      NULL;
    END;
  END LOOP;
  RAISE NOTICE '% rows', n;
END $$;
-- and with a COMMIT in each step
DO $$
DECLARE
  r record;
  n int := 0;
BEGIN
  FOR r IN SELECT data FROM t LOOP
    n := n + 1;
    INSERT INTO local VALUES ('loop ' || n);
    COMMIT;
  END LOOP;
  RAISE NOTICE '% rows', n;
END $$;
-- a cursor whose first row is fetched inside a block that fails
DO $$
DECLARE
  c CURSOR FOR SELECT data FROM t;
  r record;
BEGIN
  OPEN c;
  BEGIN
    FETCH c INTO r;
    RAISE EXCEPTION 'no';
  EXCEPTION WHEN raise_exception THEN
    NULL;
  END;
  FETCH c INTO r;
  RAISE NOTICE '%', r.data;
END $$;

-- ====
-- PREPARE TRANSACTION is refused after any use of a broker.
BEGIN;
SELECT count(*) FROM t;
PREPARE TRANSACTION 'regress_tx';
BEGIN;
INSERT INTO local VALUES ('prepared');
SELECT count(*) FROM pubsub_consume(NULL::t, group_id => 'prepared');
PREPARE TRANSACTION 'regress_tx';
BEGIN;
INSERT INTO t_out (data) VALUES ('prepared');
PREPARE TRANSACTION 'regress_tx';
SELECT arrived();
SELECT count(*) FROM local WHERE data = 'prepared';
SELECT count(*) FROM pubsub_offsets WHERE group_id = 'prepared';
-- planning uses none
BEGIN;
EXPLAIN (COSTS OFF) SELECT * FROM t;
PREPARE TRANSACTION 'regress_tx';
ROLLBACK PREPARED 'regress_tx';

-- ====
-- Read-only transactions
BEGIN READ ONLY;
SELECT count(*) FROM t;
INSERT INTO t_out (data) VALUES ('x');
ROLLBACK;
BEGIN READ ONLY;
SELECT pubsub_send('t_out', 'x'::text);
ROLLBACK;

-- ====
-- Partitions of a table: INSERT and COPY into the parent, before and after
-- the topic was attached
CREATE TABLE parent (data text, region text) PARTITION BY LIST (region);
CREATE TABLE parent_here PARTITION OF parent FOR VALUES IN ('here');
CREATE FOREIGN TABLE parent_there (data text OPTIONS (metadata 'data'), region text OPTIONS (attribute 'region'))
  SERVER tx_kafka OPTIONS (topic 'regress_tx_out');
ALTER TABLE parent ATTACH PARTITION parent_there FOR VALUES IN ('there');
INSERT INTO parent VALUES ('r1', 'here'), ('r2', 'there'), ('r3', 'here'), ('r4', 'there');
COPY parent FROM stdin;
r5	there
r6	here
r7	there
\.
COPY parent_there FROM stdin;
r8	there
\.
BEGIN;
COPY parent FROM stdin;
r9	there
\.
ROLLBACK;
COPY parent FROM stdin;
r10	there
r11	nowhere
\.
SELECT arrived();
SELECT data FROM parent_here ORDER BY 1;
SELECT data, region FROM parent WHERE data LIKE 'r_' ORDER BY data;
UPDATE parent SET region = 'there' WHERE data = 'r1';
SELECT arrived();
SELECT count(*) FROM parent_here WHERE data = 'r1';
DROP TABLE parent;

-- ====
-- EXPLAIN publishes and reads nothing, EXPLAIN ANALYZE what it says
EXPLAIN (COSTS OFF) INSERT INTO t_out (data) VALUES ('planned');
SELECT arrived();
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO t_out (data) VALUES ('analyzed');
SELECT arrived();
BEGIN;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO t_out (data) VALUES ('analyzed again');
ROLLBACK;
SELECT arrived();

-- ====
-- The definition changes between two statements of a transaction: each message
-- goes to the topic that the table had when it was sent.
SELECT new_topic('regress_tx_second', 1);
BEGIN;
INSERT INTO t_out (data) VALUES ('to the first');
ALTER FOREIGN TABLE t_out OPTIONS (SET topic 'regress_tx_second');
INSERT INTO t_out (data) VALUES ('to the second');
ALTER FOREIGN TABLE t_out OPTIONS (SET topic 'regress_tx_out');
COMMIT;
SELECT arrived();
ALTER FOREIGN TABLE t_out OPTIONS (SET topic 'regress_tx_second');
SELECT arrived();
BEGIN;
INSERT INTO t_out (data) VALUES ('orphan');
DROP FUNCTION arrived();
DROP FOREIGN TABLE t_out;
COMMIT;

-- ====
-- pubsub_fdw.enabled
SET pubsub_fdw.enabled = off;
SELECT count(*) FROM t;
INSERT INTO t (data) VALUES ('x');
SELECT * FROM pubsub_consume(NULL::t);
SELECT pubsub_create_topic('tx_kafka', 'x');
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
RESET pubsub_fdw.enabled;

SET client_min_messages = warning;
SELECT count(pubsub_drop_topic('tx_kafka', topic)) FROM unnest('{regress_tx,regress_tx_out,regress_tx_second}'::text[]) AS topic;
DROP SERVER tx_kafka CASCADE;
DROP FUNCTION new_topic;
DROP PROCEDURE in_steps;
DROP TABLE local;
