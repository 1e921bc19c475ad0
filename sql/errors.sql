--
-- What a broker can do wrong, by order (test/dummy), and what the user sees:
-- a clear error, in bounded time, and a session that is as good as new
--
LOAD 'pubsub_fdw_dummy';

SELECT dummy_drop('regress_pubsub_errors');
CREATE SERVER err_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_errors');
CREATE SERVER err_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_errors');
SELECT pubsub_create_topic('err_log', 'events', 2);
SELECT count(dummy_append('regress_pubsub_errors', 'events', i % 2, i::text::bytea))
  FROM generate_series(1, 10) i;
SELECT pubsub_create_topic('err_queue', 'jobs');
SELECT pubsub_create_subscription('err_queue', 'jobs-sub', 'jobs');
SELECT count(dummy_append('regress_pubsub_errors', 'jobs', 0, i::text::bytea))
  FROM generate_series(1, 5) i;
CREATE FOREIGN TABLE events (data text, "partition" int, "offset" bigint)
  SERVER err_log OPTIONS (topic 'events', group_id 'g');
CREATE FOREIGN TABLE jobs (data text)
  SERVER err_queue OPTIONS (topic 'jobs', subscription 'jobs-sub', poll_timeout '20ms');

-- Gives a server these orders, and no others.
CREATE FUNCTION err_orders(server name, VARIADIC orders text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  o text;
BEGIN
  FOR o IN SELECT option_name FROM pg_foreign_server, pg_options_to_table(srvoptions)
           WHERE srvname = server AND option_name LIKE 'dummy\_%' AND option_name <> 'dummy_dir' LOOP
    EXECUTE format('ALTER SERVER %I OPTIONS (DROP %I)', server, o);
  END LOOP;
  FOREACH o IN ARRAY orders LOOP
    EXECUTE format('ALTER SERVER %I OPTIONS (ADD %I %L)', server,
                   split_part(o, ' ', 1), substr(o, strpos(o, ' ') + 1));
  END LOOP;
END $$;

-- Runs a query in a subtransaction and shows its error, and whether it took
-- longer than two seconds.
CREATE FUNCTION try(query text, OUT state text, OUT message text, OUT detail text, OUT hint text, OUT slow boolean)
LANGUAGE plpgsql AS $$
DECLARE
  start timestamptz := clock_timestamp();
BEGIN
  BEGIN
    EXECUTE query;
  EXCEPTION WHEN OTHERS OR query_canceled THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
      detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  END;
  slow := clock_timestamp() - start > interval '2 s';
END $$;

-- A query meets each kind of error.
CREATE FUNCTION try_kinds(query text, server name, call text, VARIADIC orders text[] DEFAULT '{}')
RETURNS TABLE (kind text, state text, message text) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH kind IN ARRAY '{connect,lost,auth,permission,not_found,exists,invalid,too_large,throttled,data_loss,memory,other}'::text[] LOOP
    PERFORM err_orders(server, VARIADIC orders || ARRAY['dummy_fail_' || call || ' 1', 'dummy_error ' || kind]);
    SELECT t.state, t.message INTO state, message FROM try(query) t;
    RETURN NEXT;
  END LOOP;
  PERFORM err_orders(server);
END $$;

-- ====
-- Every kind of error has its SQLSTATE and says what we could not do.
SELECT * FROM try_kinds('SELECT count(*) FROM events', 'err_log', 'resolve');
SELECT * FROM try_kinds('SELECT count(*) FROM events', 'err_log', 'poll');
SELECT * FROM try_kinds('INSERT INTO events (data) VALUES (1)', 'err_log', 'ready');
SELECT * FROM try_kinds('INSERT INTO events (data) VALUES (1)', 'err_log', 'check');
SELECT * FROM try_kinds('SELECT pubsub_create_topic(''err_log'', ''new'')', 'err_log', 'admin');

-- ====
-- Every call may fail; the next statement works.
CREATE FUNCTION try_calls(query text, server name, VARIADIC calls text[])
RETURNS TABLE (call text, state text, message text, detail text, held text, after text) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH call IN ARRAY calls LOOP
    PERFORM err_orders(server, 'dummy_fail_' || call || ' 1');
    SELECT t.state, t.message, t.detail INTO state, message, detail FROM try(query) t;
    held := dummy_held();
    SELECT coalesce(t.state, 'fine') INTO after FROM try(query) t;
    RETURN NEXT;
  END LOOP;
  PERFORM err_orders(server);
END $$;
SELECT * FROM try_calls('SELECT count(*) FROM events', 'err_log',
  'open_source', 'resolve', 'assign', 'poll');
SELECT * FROM try_calls('SELECT count(*) FROM pubsub_read(NULL::events, start_read_time => ''1999-01-01'')', 'err_log',
  'lookup');
SELECT * FROM try_calls('SELECT count(*) FROM pubsub_consume(NULL::events, max_records => 1)', 'err_log',
  'open_source', 'resolve', 'assign', 'poll');
SELECT * FROM try_calls('SELECT count(*) FROM jobs', 'err_queue',
  'open_source', 'resolve', 'assign', 'poll', 'finish');
SELECT call, state, message, detail, after
  FROM try_calls('INSERT INTO events (data) VALUES (1)', 'err_log', 'open_sink', 'ready', 'check');
SELECT err_orders('err_log', 'dummy_fail_attach 1');
SELECT count(*) FROM events;
INSERT INTO events (data) VALUES ('x');
SELECT count(*) FROM pubsub_get_connections();
SELECT err_orders('err_log');
SELECT dummy_held(), dummy_subscription('regress_pubsub_errors', 'jobs-sub');

-- ====
-- Failure in the middle: of a batch, of a rescan, of a cursor; at top level.
SELECT err_orders('err_log', 'dummy_fail_poll 3', 'dummy_batch 2');
SELECT data FROM events;
SELECT dummy_held();
SELECT count(*) FROM events;
SET enable_material = off;
SELECT err_orders('err_log', 'dummy_fail_assign 2');
SELECT count(*) FROM generate_series(1, 3) i LEFT JOIN events ON true;
RESET enable_material;
SELECT err_orders('err_log', 'dummy_fail_poll 3', 'dummy_batch 2');
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM events WHERE "partition" = 0;
FETCH 1 FROM c;
SAVEPOINT s;
FETCH ALL FROM c;
ROLLBACK TO s;
-- the cursor cannot go on, the transaction can
FETCH 1 FROM c;
ROLLBACK TO s;
SELECT count(*) FROM events;
COMMIT;
SELECT dummy_held();

-- ====
-- A handler of an error runs although the broker is gone by then.
SELECT err_orders('err_queue', 'dummy_fail_poll 2', 'dummy_batch 2', 'dummy_error lost', 'dummy_fail_finish 1');
DO $$
DECLARE
  n bigint;
BEGIN
  BEGIN
    SELECT count(*) INTO n FROM pubsub_consume(NULL::jobs);
  EXCEPTION WHEN connection_failure THEN
    RAISE NOTICE 'caught: %', SQLERRM;
  END;
  SELECT count(*) INTO n FROM pubsub_consume(NULL::jobs);
  RAISE NOTICE 'then % messages', n;
  RAISE division_by_zero;
END $$;
SELECT dummy_held(), dummy_subscription('regress_pubsub_errors', 'jobs-sub');
-- an open cursor and savepoints, three deep
SELECT err_orders('err_queue');
BEGIN;
DECLARE c CURSOR FOR SELECT data FROM jobs;
FETCH 1 FROM c;
SAVEPOINT a;
FETCH 1 FROM c;
SAVEPOINT b;
SELECT count(*) FROM pubsub_consume(NULL::jobs, max_records => 1);
SAVEPOINT d;
SELECT 1 / 0;
ROLLBACK TO b;
FETCH 1 FROM c;
ROLLBACK TO a;
FETCH 1 FROM c;
COMMIT;
SELECT dummy_held(), dummy_subscription('regress_pubsub_errors', 'jobs-sub');

-- ====
-- A broker that does not answer: an error after connect_timeout or
-- request_timeout, with the last cause that the library gave.
SET pubsub_fdw.connect_timeout = '200ms';
SET pubsub_fdw.request_timeout = '200ms';
SELECT err_orders('err_log', 'dummy_hang resolve');
SELECT * FROM try('SELECT count(*) FROM events');
SELECT err_orders('err_log', 'dummy_hang resolve', 'dummy_soft_cause nobody is there', 'dummy_error connect');
SELECT * FROM try('SELECT count(*) FROM events');
SELECT err_orders('err_log', 'dummy_hang resolve', 'dummy_soft_cause wrong password', 'dummy_error auth');
SELECT * FROM try('SELECT count(*) FROM events');
SELECT err_orders('err_log', 'dummy_hang poll');
SELECT * FROM try('SELECT count(*) FROM events');
SELECT err_orders('err_log', 'dummy_hang poll', 'dummy_soft_cause broker 1 is down', 'dummy_error lost');
SELECT * FROM try('SELECT count(*) FROM pubsub_consume(NULL::events)');
SELECT err_orders('err_log', 'dummy_hang lookup');
SELECT * FROM try('SELECT count(*) FROM pubsub_read(NULL::events, start_read_time => ''1999-01-01'')');
SELECT err_orders('err_log', 'dummy_hang ready');
SELECT * FROM try('INSERT INTO events (data) VALUES (1)');
SELECT err_orders('err_log', 'dummy_hang admin');
SELECT * FROM try('SELECT pubsub_create_topic(''err_log'', ''new'')');
SELECT err_orders('err_queue', 'dummy_hang resolve');
SELECT * FROM try('SELECT count(*) FROM jobs');
SELECT err_orders('err_queue', 'dummy_hang poll');
SELECT * FROM try('SELECT count(*) FROM pubsub_consume(NULL::jobs)');
-- the server's options win over the settings
ALTER SERVER err_queue OPTIONS (ADD request_timeout '100ms');
SELECT * FROM try('SELECT count(*) FROM pubsub_consume(NULL::jobs)');
ALTER SERVER err_queue OPTIONS (DROP request_timeout);
RESET pubsub_fdw.connect_timeout;
RESET pubsub_fdw.request_timeout;
SELECT dummy_held(), dummy_subscription('regress_pubsub_errors', 'jobs-sub');

-- ====
-- A reader that cannot show that it reached the end fails; it never returns
-- less.
SET pubsub_fdw.request_timeout = '200ms';
SELECT dummy_append_control('regress_pubsub_errors', 'events', 1, 1);
SELECT err_orders('err_log', 'dummy_no_eof on');
SELECT * FROM try('SELECT count(*) FROM events');
RESET pubsub_fdw.request_timeout;
SELECT err_orders('err_log');
SELECT count(*) FROM events;

-- ====
-- A message that does not fit its column: the input function's error, and
-- where the message is.
SELECT pubsub_create_topic('err_log', 'odd', 1);
SELECT dummy_append('regress_pubsub_errors', 'odd', 0, v) FROM unnest(ARRAY['A', '\xff41', '\x410041']::bytea[]) v;
CREATE FOREIGN TABLE odd (data text, "offset" bigint) SERVER err_log OPTIONS (topic 'odd');
SELECT data FROM odd;
SELECT "offset" FROM odd;
SELECT data FROM pubsub_read(NULL::odd, start_offsets => '{"0": 2}');
SELECT data FROM pubsub_read(NULL::odd, stop_offsets => '{"0": 1}');
SELECT dummy_held();

-- ====
-- Cancel and statement_timeout work while a broker is silent, everywhere.
SELECT err_orders('err_log', 'dummy_hang resolve');
SET statement_timeout = '200ms';
SELECT count(*) FROM events;
RESET statement_timeout;
SELECT err_orders('err_log', 'dummy_hang poll');
SET statement_timeout = '200ms';
SELECT count(*) FROM events;
SELECT count(*) FROM pubsub_consume(NULL::events);
RESET statement_timeout;
SELECT err_orders('err_log', 'dummy_hang ready');
SET statement_timeout = '200ms';
INSERT INTO events (data) VALUES ('x');
SELECT pubsub_send('events', 'x');
RESET statement_timeout;
SELECT err_orders('err_log', 'dummy_hang admin');
SET statement_timeout = '200ms';
SELECT pubsub_create_topic('err_log', 'new');
RESET statement_timeout;
SELECT err_orders('err_queue', 'dummy_hang finish');
SET statement_timeout = '200ms';
SELECT count(*) FROM jobs;
RESET statement_timeout;
SELECT err_orders('err_log');
SELECT err_orders('err_queue');
SELECT count(*) FROM events;
SELECT count(*) FROM jobs;
SELECT dummy_held(), dummy_subscription('regress_pubsub_errors', 'jobs-sub');

-- ====
-- A library that blocks longer than it was told delays a cancel no further
-- than that one call.
SELECT err_orders('err_log', 'dummy_block_ms 300', 'dummy_hang resolve');
SET statement_timeout = '100ms';
SELECT * FROM try('SELECT count(*) FROM events');
RESET statement_timeout;
SELECT err_orders('err_log');

-- ====
-- Nothing is left, however often things fail: a thousand times.
SELECT err_orders('err_log', 'dummy_fail_poll 2', 'dummy_batch 2');
DO $$
BEGIN
  FOR i IN 1..1000 LOOP
    BEGIN
      IF i % 3 = 0 THEN
        PERFORM err_orders('err_log', 'dummy_fail_poll 2', 'dummy_batch 2');
      END IF;
      PERFORM 1 / (data::int - 4) FROM events;
    EXCEPTION WHEN OTHERS THEN
      NULL;
    END;
  END LOOP;
END $$;
SELECT dummy_held();
SELECT count(*) FROM pubsub_get_connections() WHERE server_name = 'err_log';
SELECT err_orders('err_log');
SELECT count(*) FROM events;

-- ====
-- pubsub_disconnect() closes what is idle.
SELECT count(*) FROM events;
SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() ORDER BY 1;
SELECT pubsub_disconnect('err_log');
SELECT pubsub_disconnect('err_log');
SELECT pubsub_disconnect();
SELECT count(*) FROM pubsub_get_connections();
BEGIN;
SELECT count(*) FROM events;
SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() ORDER BY 1;
SELECT pubsub_disconnect('err_log');
SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() ORDER BY 1;
SELECT count(*) FROM events;
COMMIT;
SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() ORDER BY 1;
SELECT pubsub_disconnect('nosuch');
-- one that is not valid any more goes without being asked for
BEGIN;
ALTER SERVER err_log OPTIONS (ADD request_timeout '20s');
SELECT count(*) FROM events;
COMMIT;
SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() ORDER BY 1;
SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() ORDER BY 1;
ALTER SERVER err_log OPTIONS (DROP request_timeout);

-- ====
-- A server without its driver, or without what the driver needs
CREATE SERVER err_nodir FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'dummy_log');
CREATE FOREIGN TABLE nodir (data text) SERVER err_nodir OPTIONS (topic 'x');
SELECT * FROM nodir;
INSERT INTO nodir VALUES ('x');
SELECT dummy_held();

SET client_min_messages = warning;
DROP SERVER err_log, err_queue, err_nodir CASCADE;
RESET client_min_messages;
DELETE FROM pubsub_offsets WHERE server_name = 'err_log';
DROP FUNCTION err_orders, try, try_kinds, try_calls;
SELECT dummy_drop('regress_pubsub_errors');
