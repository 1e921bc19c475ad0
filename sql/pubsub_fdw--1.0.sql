/* sql/pubsub_fdw--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pubsub_fdw" to load this file. \quit

--
-- The wrapper
--

CREATE FUNCTION pubsub_fdw_handler() RETURNS fdw_handler
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION pubsub_fdw_handler() IS 'handler of the foreign-data wrapper';

CREATE FUNCTION pubsub_fdw_validator(text[], oid) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION pubsub_fdw_validator(text[], oid) IS 'checks the options of servers, user mappings, foreign tables and columns';

CREATE FOREIGN DATA WRAPPER pubsub_fdw
	HANDLER pubsub_fdw_handler VALIDATOR pubsub_fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER pubsub_fdw IS 'Apache Kafka topics and Google Cloud Pub/Sub subscriptions';

--
-- Positions of Kafka consumers.  Changed only by the extension's functions.
--

CREATE TABLE pubsub_offsets (
	server_name name NOT NULL,
	topic text NOT NULL,
	"partition" integer NOT NULL,
	group_id text NOT NULL,
	next_offset bigint NOT NULL,
	updated_at timestamptz NOT NULL,
	PRIMARY KEY (server_name, topic, "partition", group_id)
);
COMMENT ON TABLE pubsub_offsets IS 'next offset to consume, per server, topic, partition and group';
GRANT SELECT ON pubsub_offsets TO pg_monitor;
SELECT pg_catalog.pg_extension_config_dump('pubsub_offsets', '');

--
-- Reading
--

CREATE FUNCTION pubsub_read(
	target anyelement,
	start_offsets text DEFAULT NULL,
	stop_offsets text DEFAULT NULL,
	start_read_time timestamptz DEFAULT NULL,
	stop_read_time timestamptz DEFAULT NULL,
	partitions integer[] DEFAULT NULL,
	max_records bigint DEFAULT NULL,
	max_read_time interval DEFAULT NULL,
	timestamp_miss text DEFAULT NULL)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_read(anyelement, text, text, timestamptz, timestamptz, integer[], bigint, interval, text) IS 'reads a bounded slice, without effect on the broker';

CREATE FUNCTION pubsub_consume(
	target anyelement,
	max_records bigint DEFAULT NULL,
	max_read_time interval DEFAULT NULL,
	group_id text DEFAULT NULL,
	partitions integer[] DEFAULT NULL)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_consume(anyelement, bigint, interval, text, integer[]) IS 'takes a bounded slice, with effect when the transaction commits';

--
-- Publishing
--

CREATE FUNCTION pubsub_send(target regclass, data text, attributes jsonb DEFAULT NULL, key text DEFAULT NULL, event_time timestamptz DEFAULT NULL)
	RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_send(regclass, text, jsonb, text, timestamptz) IS 'publishes one message when the transaction commits';

CREATE FUNCTION pubsub_send(target regclass, data bytea, attributes jsonb DEFAULT NULL, key text DEFAULT NULL, event_time timestamptz DEFAULT NULL)
	RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_send(regclass, bytea, jsonb, text, timestamptz) IS 'publishes one message when the transaction commits';

CREATE FUNCTION pubsub_send(target regclass, data json, attributes jsonb DEFAULT NULL, key text DEFAULT NULL, event_time timestamptz DEFAULT NULL)
	RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_send(regclass, json, jsonb, text, timestamptz) IS 'publishes one message when the transaction commits';

CREATE FUNCTION pubsub_send(target regclass, data jsonb, attributes jsonb DEFAULT NULL, key text DEFAULT NULL, event_time timestamptz DEFAULT NULL)
	RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_send(regclass, jsonb, jsonb, text, timestamptz) IS 'publishes one message when the transaction commits';

CREATE FUNCTION pubsub_publish_finalfn(bigint) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_finalfn(bigint) IS 'internal to pubsub_publish()';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, text) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, text) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, text) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, text, jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, text, jsonb) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, text, jsonb) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, text, jsonb) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, text, jsonb, text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, text, jsonb, text) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, text, jsonb, text) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, text, jsonb, text) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, text, jsonb, text, timestamptz) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, text, jsonb, text, timestamptz) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, text, jsonb, text, timestamptz) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, text, jsonb, text, timestamptz) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, bytea) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, bytea) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, bytea) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, bytea) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, bytea, jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, bytea, jsonb) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, bytea, jsonb) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, bytea, jsonb) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, bytea, jsonb, text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, bytea, jsonb, text) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, bytea, jsonb, text) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, bytea, jsonb, text) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, bytea, jsonb, text, timestamptz) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, bytea, jsonb, text, timestamptz) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, bytea, jsonb, text, timestamptz) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, bytea, jsonb, text, timestamptz) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, json) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, json) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, json) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, json) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, json, jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, json, jsonb) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, json, jsonb) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, json, jsonb) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, json, jsonb, text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, json, jsonb, text) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, json, jsonb, text) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, json, jsonb, text) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, json, jsonb, text, timestamptz) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, json, jsonb, text, timestamptz) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, json, jsonb, text, timestamptz) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, json, jsonb, text, timestamptz) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, jsonb) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, jsonb) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb, jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb, jsonb) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, jsonb, jsonb) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, jsonb, jsonb) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb, jsonb, text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb, jsonb, text) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, jsonb, jsonb, text) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, jsonb, jsonb, text) IS 'publishes one message per row when the transaction commits, returns their number';

CREATE FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb, jsonb, text, timestamptz) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pubsub_publish_transfn(bigint, regclass, jsonb, jsonb, text, timestamptz) IS 'internal to pubsub_publish()';
CREATE AGGREGATE pubsub_publish(regclass, jsonb, jsonb, text, timestamptz) (
	SFUNC = pubsub_publish_transfn,
	STYPE = bigint,
	INITCOND = '0',
	-- READ_WRITE makes the server refuse the aggregate as a window function,
	-- which would send rows again as its frame moves
	FINALFUNC = pubsub_publish_finalfn,
	FINALFUNC_MODIFY = READ_WRITE,
	PARALLEL = UNSAFE
);
COMMENT ON AGGREGATE pubsub_publish(regclass, jsonb, jsonb, text, timestamptz) IS 'publishes one message per row when the transaction commits, returns their number';

--
-- Ingestion
--

CREATE PROCEDURE pubsub_ingest(
	source regclass,
	target regclass,
	max_records bigint DEFAULT NULL,
	max_read_time interval DEFAULT '50 s',
	batch_size integer DEFAULT 10000,
	on_conflict text DEFAULT 'error',
	group_id text DEFAULT NULL,
	INOUT rows_ingested bigint DEFAULT 0)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE pubsub_ingest(regclass, regclass, bigint, interval, integer, text, text, bigint) IS 'consumes into a table, committing after each batch';

--
-- Administration.  Takes effect at once and is not undone by ROLLBACK.
--

CREATE FUNCTION pubsub_create_topic(
	server name,
	topic text,
	partitions integer DEFAULT NULL,
	replication_factor integer DEFAULT NULL,
	config jsonb DEFAULT '{}',
	if_not_exists boolean DEFAULT false)
	RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE EXECUTE ON FUNCTION pubsub_create_topic(name, text, integer, integer, jsonb, boolean) FROM PUBLIC;
COMMENT ON FUNCTION pubsub_create_topic(name, text, integer, integer, jsonb, boolean) IS 'creates a topic; false if it was there already';

CREATE FUNCTION pubsub_drop_topic(
	server name,
	topic text,
	if_exists boolean DEFAULT false)
	RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE EXECUTE ON FUNCTION pubsub_drop_topic(name, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION pubsub_drop_topic(name, text, boolean) IS 'deletes a topic; false if it did not exist';

CREATE FUNCTION pubsub_create_subscription(
	server name,
	subscription text,
	topic text,
	ack_deadline interval DEFAULT '60 s',
	config jsonb DEFAULT '{}',
	if_not_exists boolean DEFAULT false)
	RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE EXECUTE ON FUNCTION pubsub_create_subscription(name, text, text, interval, jsonb, boolean) FROM PUBLIC;
COMMENT ON FUNCTION pubsub_create_subscription(name, text, text, interval, jsonb, boolean) IS 'creates a Pub/Sub subscription; false if it was there already';

CREATE FUNCTION pubsub_drop_subscription(
	server name,
	subscription text,
	if_exists boolean DEFAULT false)
	RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE EXECUTE ON FUNCTION pubsub_drop_subscription(name, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION pubsub_drop_subscription(name, text, boolean) IS 'deletes a Pub/Sub subscription; false if it did not exist';

--
-- Session
--

CREATE FUNCTION pubsub_fdw_version(OUT component text, OUT version text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION pubsub_fdw_version() IS 'versions of the extension and of the libraries it runs with';

CREATE FUNCTION pubsub_fdw_options(
	OUT option text,
	OUT context text,
	OUT type text,
	OUT "default" text,
	OUT secret boolean,
	OUT superuser boolean,
	OUT description text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION pubsub_fdw_options() IS 'the options there are';

CREATE FUNCTION pubsub_get_connections(
	OUT server_name name,
	OUT user_name name,
	OUT broker text,
	OUT valid boolean,
	OUT in_transaction boolean)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION pubsub_get_connections() IS 'broker sessions that this backend keeps';

CREATE FUNCTION pubsub_disconnect(server name DEFAULT NULL) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION pubsub_disconnect(name) IS 'closes the idle broker sessions of this backend; true if there were any';
