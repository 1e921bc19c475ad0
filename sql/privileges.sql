--
-- Who may do what: SELECT to read, SELECT and DELETE to consume, INSERT to
-- publish; whose user mapping is used
--
LOAD 'pubsub_fdw_dummy';
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_pubsub_owner, regress_pubsub_user, regress_pubsub_other;
RESET client_min_messages;
CREATE ROLE regress_pubsub_owner;
CREATE ROLE regress_pubsub_user;
CREATE ROLE regress_pubsub_other;

SELECT dummy_drop('regress_pubsub_privileges');
CREATE SERVER priv_log FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_log', dummy_dir 'regress_pubsub_privileges');
CREATE SERVER priv_queue FOREIGN DATA WRAPPER pubsub_fdw
  OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'regress_pubsub_privileges');
SELECT pubsub_create_topic('priv_log', 'events', 1);
SELECT count(dummy_append('regress_pubsub_privileges', 'events', 0, i::text::bytea))
  FROM generate_series(1, 3) i;
SELECT pubsub_create_topic('priv_queue', 'jobs');
SELECT pubsub_create_subscription('priv_queue', 'jobs-sub', 'jobs');
CREATE FOREIGN TABLE events (data text, "offset" bigint)
  SERVER priv_log OPTIONS (topic 'events', group_id 'g');
CREATE FOREIGN TABLE jobs (data text)
  SERVER priv_queue OPTIONS (topic 'jobs', subscription 'jobs-sub', poll_timeout '20ms');
CREATE USER MAPPING FOR PUBLIC SERVER priv_log OPTIONS (sasl_username 'public', sasl_password 'x');
CREATE USER MAPPING FOR PUBLIC SERVER priv_queue OPTIONS (sasl_username 'public', sasl_password 'x');

-- ====
-- No privilege: nothing goes.
SET ROLE regress_pubsub_user;
SELECT count(*) FROM events;
SELECT count(*) FROM pubsub_read(NULL::events);
SELECT count(*) FROM pubsub_consume(NULL::events);
INSERT INTO events (data) VALUES ('x');
SELECT pubsub_send('events', 'x');
SELECT pubsub_publish('events', 'x') FROM generate_series(1, 2);
COPY events (data) FROM stdin;
x
\.
RESET ROLE;

-- ====
-- SELECT: reading, and no more
GRANT SELECT ON events, jobs TO regress_pubsub_user;
SET ROLE regress_pubsub_user;
SELECT count(*) FROM events;
SELECT count(*) FROM pubsub_read(NULL::events);
SELECT count(*) FROM jobs;
SELECT count(*) FROM pubsub_consume(NULL::events);
SELECT count(*) FROM pubsub_consume(NULL::jobs);
INSERT INTO events (data) VALUES ('x');
RESET ROLE;

-- ====
-- DELETE alone does not allow to consume, with SELECT it does.
REVOKE SELECT ON events FROM regress_pubsub_user;
GRANT DELETE ON events TO regress_pubsub_user;
SET ROLE regress_pubsub_user;
SELECT count(*) FROM pubsub_consume(NULL::events);
RESET ROLE;
GRANT SELECT ON events TO regress_pubsub_user;
SET ROLE regress_pubsub_user;
SELECT count(*) FROM pubsub_consume(NULL::events);
RESET ROLE;

-- ====
-- INSERT: publishing, and no more
REVOKE ALL ON events FROM regress_pubsub_user;
GRANT INSERT ON events TO regress_pubsub_user;
SET ROLE regress_pubsub_user;
INSERT INTO events (data) VALUES ('inserted');
SELECT pubsub_send('events', 'sent');
SELECT pubsub_publish('events', 'published') FROM generate_series(1, 2);
COPY events (data) FROM stdin;
copied
\.
INSERT INTO events (data) VALUES ('x') RETURNING data;
SELECT count(*) FROM events;
RESET ROLE;
SELECT data FROM events WHERE "offset" >= 3 ORDER BY "offset";

-- ====
-- Privileges on columns suffice for SELECT and INSERT of these columns; the
-- functions deal with whole messages and need the table's.
REVOKE ALL ON events FROM regress_pubsub_user;
GRANT SELECT ("offset"), INSERT (data) ON events TO regress_pubsub_user;
SET ROLE regress_pubsub_user;
SELECT count("offset") FROM events;
SELECT data FROM events;
INSERT INTO events (data) VALUES ('by column');
SELECT count(*) FROM pubsub_read(NULL::events);
SELECT pubsub_send('events', 'x');
RESET ROLE;

-- ====
-- A function reaches no further than its caller; SECURITY DEFINER does.
CREATE FUNCTION consume_events() RETURNS bigint LANGUAGE sql AS
  $$SELECT count(*) FROM pubsub_consume(NULL::events)$$;
CREATE FUNCTION consume_events_for() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
  $$SELECT count(*) FROM pubsub_consume(NULL::events)$$;
SET ROLE regress_pubsub_user;
SELECT consume_events();
SELECT consume_events_for();
RESET ROLE;

-- ====
-- The mapping of the one who asks counts; through a view, of its owner.
CREATE USER MAPPING FOR regress_pubsub_owner SERVER priv_log OPTIONS (sasl_username 'owner', sasl_password 'x');
CREATE USER MAPPING FOR regress_pubsub_user SERVER priv_log OPTIONS (sasl_username 'user', sasl_password 'x');
ALTER SERVER priv_log OPTIONS (ADD dummy_user 'owner');
GRANT ALL ON events TO regress_pubsub_owner, regress_pubsub_user, regress_pubsub_other;
GRANT CREATE ON SCHEMA public TO regress_pubsub_owner;
SET ROLE regress_pubsub_owner;
SELECT count(*) > 0 AS ok FROM events;
CREATE VIEW events_view AS SELECT data FROM events;
CREATE VIEW events_invoker_view WITH (security_invoker = true) AS SELECT data FROM events;
CREATE FUNCTION events_function() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
  $$SELECT count(*) FROM events$$;
GRANT SELECT, INSERT ON events_view, events_invoker_view TO regress_pubsub_user;
RESET ROLE;
SET ROLE regress_pubsub_user;
SELECT count(*) FROM events;
SELECT count(*) FROM pubsub_read(NULL::events);
INSERT INTO events (data) VALUES ('x');
SELECT count(*) > 0 AS ok FROM events_view;
SELECT count(*) > 0 AS ok FROM events_invoker_view;
SELECT events_function() > 0 AS ok;
INSERT INTO events_view VALUES ('through a view');
RESET ROLE;
SET ROLE regress_pubsub_other;
SELECT count(*) FROM events;
RESET ROLE;
SET ROLE regress_pubsub_owner;
SELECT count(*) FROM events WHERE data = 'through a view';
RESET ROLE;
-- the superuser has no mapping of his own: PUBLIC's
SELECT count(*) FROM events;

-- ====
-- A changed or dropped mapping counts at once.
ALTER USER MAPPING FOR regress_pubsub_user SERVER priv_log OPTIONS (SET sasl_username 'owner');
SET ROLE regress_pubsub_user;
SELECT count(*) > 0 AS ok FROM events;
RESET ROLE;
ALTER USER MAPPING FOR regress_pubsub_user SERVER priv_log OPTIONS (DROP sasl_username);
SET ROLE regress_pubsub_user;
SELECT count(*) > 0 AS ok FROM events;
RESET ROLE;
ALTER SERVER priv_log OPTIONS (DROP dummy_user);
SET ROLE regress_pubsub_user;
SELECT count(*) > 0 AS ok FROM events;
RESET ROLE;
DROP USER MAPPING FOR PUBLIC SERVER priv_log;
DROP USER MAPPING FOR regress_pubsub_user SERVER priv_log;
SET ROLE regress_pubsub_user;
SELECT count(*) FROM events;
INSERT INTO events (data) VALUES ('x');
RESET ROLE;
-- a superuser needs none
SELECT count(*) > 0 AS ok FROM events;

-- ====
-- Others need credentials in it, unless a superuser said otherwise.
CREATE USER MAPPING FOR regress_pubsub_user SERVER priv_log;
GRANT USAGE ON FOREIGN SERVER priv_log TO regress_pubsub_user;
SET ROLE regress_pubsub_user;
SELECT count(*) FROM events;
ALTER USER MAPPING FOR regress_pubsub_user SERVER priv_log OPTIONS (ADD credentials_required 'false');
RESET ROLE;
ALTER USER MAPPING FOR regress_pubsub_user SERVER priv_log OPTIONS (ADD credentials_required 'false');
SET ROLE regress_pubsub_user;
SELECT count(*) > 0 AS ok FROM events;
RESET ROLE;

-- ====
-- Positions: users cannot touch them, consuming moves them all the same, and
-- nothing of the user's runs while it does.
SET ROLE regress_pubsub_user;
SELECT * FROM pubsub_offsets;
INSERT INTO pubsub_offsets VALUES ('priv_log', 'events', 0, 'g', 0, now());
UPDATE pubsub_offsets SET next_offset = 0;
DELETE FROM pubsub_offsets;
RESET ROLE;
CREATE SCHEMA regress_pubsub_schema AUTHORIZATION regress_pubsub_user;
SET ROLE regress_pubsub_user;
CREATE FUNCTION regress_pubsub_schema.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS
  $$BEGIN RAISE EXCEPTION 'trapped %', current_user; END$$;
CREATE OPERATOR regress_pubsub_schema.= (LEFTARG = text, RIGHTARG = text,
  FUNCTION = regress_pubsub_schema.trap);
CREATE FUNCTION regress_pubsub_schema.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS
  $$BEGIN RAISE EXCEPTION 'trapped %', current_user; END$$;
CREATE TABLE regress_pubsub_schema.pubsub_offsets (server_name name, topic text, "partition" int,
  group_id text, next_offset bigint, updated_at timestamptz);
SET search_path = regress_pubsub_schema, pg_catalog, public;
SELECT count(*) FROM pubsub_consume(NULL::events, group_id => 'trap');
SELECT count(*) FROM pubsub_consume(NULL::events, group_id => 'trap');
SELECT count(*) FROM pubsub_offsets;
RESET search_path;
RESET ROLE;
SELECT group_id, next_offset > 0 AS moved FROM pubsub_offsets WHERE server_name = 'priv_log' ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA regress_pubsub_schema CASCADE;
RESET client_min_messages;
GRANT pg_monitor TO regress_pubsub_other;
SET ROLE regress_pubsub_other;
SELECT count(*) > 0 AS ok FROM pubsub_offsets;
UPDATE pubsub_offsets SET next_offset = 0;
RESET ROLE;
REVOKE pg_monitor FROM regress_pubsub_other;

-- ====
-- Administration is for those to whom it was granted.
SET ROLE regress_pubsub_other;
SELECT pubsub_create_topic('priv_log', 'mine', 1);
SELECT pubsub_drop_topic('priv_log', 'events');
SELECT pubsub_create_subscription('priv_queue', 'mine', 'jobs');
SELECT pubsub_drop_subscription('priv_queue', 'jobs-sub');
RESET ROLE;
GRANT EXECUTE ON FUNCTION pubsub_create_topic, pubsub_drop_topic TO regress_pubsub_user, regress_pubsub_other;
-- and who may use the server
SET ROLE regress_pubsub_other;
SELECT pubsub_create_topic('priv_log', 'mine', 1);
RESET ROLE;
SET ROLE regress_pubsub_user;
SELECT pubsub_create_topic('priv_log', 'mine', 1);
SELECT pubsub_create_topic('priv_log', 'mine', 1);
SELECT pubsub_create_topic('priv_log', 'mine', 1, if_not_exists => true);
SELECT pubsub_drop_topic('priv_log', 'mine');
SELECT pubsub_drop_topic('priv_log', 'mine');
SELECT pubsub_drop_topic('priv_log', 'mine', if_exists => true);
SELECT server_name, user_name, broker, valid, in_transaction FROM pubsub_get_connections()
  WHERE server_name LIKE 'priv%' ORDER BY 1, 2;
RESET ROLE;

-- ====
-- A superuser can cut a database off from all brokers.
SET ROLE regress_pubsub_user;
SET pubsub_fdw.enabled = off;
RESET ROLE;
SET pubsub_fdw.enabled = off;
SELECT count(*) FROM events;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM pubsub_consume(NULL::jobs);
INSERT INTO events (data) VALUES ('x');
SELECT pubsub_send('jobs', 'x');
SELECT pubsub_create_topic('priv_log', 'mine', 1);
EXPLAIN (COSTS OFF) SELECT count(*) FROM events;
BEGIN;
SET LOCAL pubsub_fdw.enabled = on;
INSERT INTO events (data) VALUES ('x');
SET LOCAL pubsub_fdw.enabled = off;
COMMIT;
RESET pubsub_fdw.enabled;
SELECT dummy_held();

SET client_min_messages = warning;
DROP SERVER priv_log, priv_queue CASCADE;
RESET client_min_messages;
DELETE FROM pubsub_offsets WHERE server_name = 'priv_log';
DROP FUNCTION consume_events, consume_events_for, events_function;
REVOKE EXECUTE ON FUNCTION pubsub_create_topic, pubsub_drop_topic FROM regress_pubsub_user, regress_pubsub_other;
REVOKE CREATE ON SCHEMA public FROM regress_pubsub_owner;
DROP ROLE regress_pubsub_owner, regress_pubsub_user, regress_pubsub_other;
SELECT dummy_drop('regress_pubsub_privileges');
