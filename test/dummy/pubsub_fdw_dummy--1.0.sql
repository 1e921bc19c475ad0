/* test/dummy/pubsub_fdw_dummy--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pubsub_fdw_dummy" to load this file. \quit

CREATE FUNCTION dummy_append(
	dir text,
	topic text,
	"partition" integer,
	data bytea,
	key bytea DEFAULT NULL,
	headers text[] DEFAULT NULL,
	"time" timestamptz DEFAULT NULL)
	RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION dummy_append(text, text, integer, bytea, bytea, text[], timestamptz) IS 'adds a message to a partition';

CREATE FUNCTION dummy_append_control(
	dir text,
	topic text,
	"partition" integer,
	n integer)
	RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION dummy_append_control(text, text, integer, integer) IS 'adds records that take offsets and are not messages';

CREATE FUNCTION dummy_truncate(
	dir text,
	topic text,
	"partition" integer,
	low bigint)
	RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION dummy_truncate(text, text, integer, bigint) IS 'removes the records below an offset';

CREATE FUNCTION dummy_subscription(dir text, subscription text) RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION dummy_subscription(text, text) IS 'how many messages wait, are leased, are acknowledged';

CREATE FUNCTION dummy_held() RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION dummy_held() IS 'what this backend holds of the brokers; NULL = nothing';

CREATE FUNCTION dummy_calls() RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION dummy_calls() IS 'calls of the drivers since the last time';

CREATE FUNCTION dummy_drop(dir text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION dummy_drop(text) IS 'removes a broker with all that it holds';

CREATE FUNCTION dummy_at_commit(statement text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION dummy_at_commit(text) IS 'has a statement executed by a transaction callback';
