--
-- Columns: what a column can be bound to, and with which type.  Binding happens
-- when a table is used; planning is enough for it, so this needs no broker.
--
\pset format unaligned
\pset tuples_only on

CREATE SERVER columns_kafka FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'kafka', bootstrap_servers 'k:9092');
CREATE SERVER columns_pubsub FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'pubsub', project 'my-project');

-- Runs statements; returns what became of them, with the SQLSTATE.
CREATE FUNCTION pg_temp.try(VARIADIC statements text[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	statement text; state text; message text; detail text; hint text;
BEGIN
	FOREACH statement IN ARRAY statements LOOP
		EXECUTE statement;
	END LOOP;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE,
		message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT;
	RETURN state || ': ' || message
		|| CASE WHEN detail <> '' THEN E'\n  DETAIL: ' || detail ELSE '' END
		|| CASE WHEN hint <> '' THEN E'\n  HINT: ' || hint ELSE '' END;
END $$;

-- The same for planning a read of a table with these columns and options.
CREATE FUNCTION pg_temp.bind(columns text, options text DEFAULT '',
							 broker text DEFAULT 'kafka') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.try(
		format('CREATE FOREIGN TABLE bound (%s) SERVER columns_%s OPTIONS (%s %s)',
			columns, broker,
			CASE broker WHEN 'kafka' THEN 'topic ''clicks'''
						ELSE 'subscription ''events''' END,
			options),
		'EXPLAIN SELECT * FROM bound',
		'DROP FOREIGN TABLE bound');
$$;

-- ==== With format raw, columns are bound by name, in any order and number
-- ==== (F13); ordering_key is another name for key.
SELECT pg_temp.bind('data bytea, attributes jsonb, event_time timestamptz,
	message_id text, publish_time timestamptz, key text', '', 'pubsub');
SELECT pg_temp.bind('key bytea, data jsonb, attributes jsonb, "partition" int,
	"offset" bigint, publish_time timestamptz, event_time timestamptz, message_id text');
SELECT pg_temp.bind('topic text, headers jsonb, timestamp_type text,
	subscription text, delivery_attempt int, data text');
SELECT pg_temp.bind('ordering_key text, data json', '', 'pubsub');
SELECT pg_temp.bind('');

-- ==== Any other name is an error that lists the items.
SELECT pg_temp.bind('data text, payload text');
SELECT pg_temp.bind('"Data" text');
SELECT pg_temp.bind('leader_epoch int');

-- ==== An option binds a column of any name, with any format.
SELECT pg_temp.bind($$a bytea OPTIONS (metadata 'data'), b text OPTIONS (metadata 'ordering_key'),
	c text OPTIONS (attribute 'trace parent'), d timestamptz OPTIONS (metadata 'event_time'),
	"partition" bigint OPTIONS (attribute 'partition')$$);
SELECT pg_temp.bind($$id bigint, customer text OPTIONS (field 'customer.name'),
	region text OPTIONS (attribute 'region'), raw bytea OPTIONS (metadata 'data')$$,
	$$, format 'json'$$);

-- ==== With format json, a column without options is a field of the payload,
-- ==== whatever its name and type.
SELECT pg_temp.bind('"offset" text, key int[], "a.b[0]" jsonb, data date, headers text',
	$$, format 'json'$$, 'pubsub');

-- ==== A field needs a payload that has fields.
SELECT pg_temp.bind($$a text OPTIONS (field 'a')$$);

-- ==== Each item has its types; a domain counts as its base type.
CREATE DOMAIN regress_offset AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN regress_text AS varchar(10);
SELECT item, type, pg_temp.bind(format('c %s OPTIONS (metadata %L)', type, item))
FROM (VALUES
	('data', 'bytea'), ('data', 'text'), ('data', 'varchar'), ('data', 'json'),
	('data', 'jsonb'), ('data', 'regress_text'), ('data', 'int'), ('data', 'text[]'),
	('key', 'jsonb'), ('key', 'uuid'),
	('attributes', 'jsonb'), ('attributes', 'json'), ('attributes', 'text'),
	('headers', 'jsonb'), ('headers', 'jsonb[]'),
	('event_time', 'timestamptz'), ('event_time', 'timestamptz(3)'), ('event_time', 'timestamp'),
	('publish_time', 'timestamptz'), ('publish_time', 'text'),
	('timestamp_type', 'text'), ('timestamp_type', 'int'),
	('message_id', 'regress_text'), ('message_id', 'bigint'),
	('topic', 'text'), ('topic', 'name'),
	('partition', 'int'), ('partition', 'bigint'), ('partition', 'smallint'),
	('offset', 'bigint'), ('offset', 'regress_offset'), ('offset', 'int'),
	('subscription', 'text'), ('subscription', 'bytea'),
	('delivery_attempt', 'int'), ('delivery_attempt', 'text')
) AS v(item, type);

-- ==== Messages of Pub/Sub have attributes, but no headers.
SELECT pg_temp.bind('headers jsonb', '', 'pubsub');
SELECT pg_temp.bind($$h jsonb OPTIONS (metadata 'headers')$$, $$, format 'json'$$, 'pubsub');

-- ==== A malformed binding is refused in DDL.
SELECT pg_temp.bind($$c text OPTIONS (metadata 'ofset')$$);
SELECT pg_temp.bind($$c text OPTIONS (metadata '')$$);
SELECT pg_temp.bind($$c text OPTIONS (attribute '')$$);
SELECT pg_temp.bind($$c text OPTIONS (metadata 'key', attribute 'key')$$);
SELECT pg_temp.bind($$c text OPTIONS (key_field 'id')$$);
SELECT path, pg_temp.bind(format('c text OPTIONS (field %L)', path), $$, format 'json'$$)
FROM unnest(ARRAY['a', 'a.b.c', 'a[0]', 'a[0][12].b', 'a\.b', 'a\[0\]', 'a\\b', 'a b.$x',
	'a.0', '', '.', 'a.', '.a', 'a..b', '[0]', 'a[', 'a[]', 'a[-1]', 'a[+1]',
	'a[ 1]', 'a[1x]', 'a[1]b', 'a[99999999999]', 'a]', 'a\', 'a\b']) AS path;

-- ==== ALTER can neither add a second binding nor a wrong one.
CREATE FOREIGN TABLE t (data text, k text OPTIONS (metadata 'key')) SERVER columns_kafka
	OPTIONS (topic 'clicks');
SELECT pg_temp.try($$ALTER FOREIGN TABLE t ALTER COLUMN k OPTIONS (ADD attribute 'a')$$);
SELECT pg_temp.try($$ALTER FOREIGN TABLE t ALTER COLUMN k OPTIONS (SET metadata 'keys')$$);
SELECT pg_temp.try($$ALTER FOREIGN TABLE t ALTER COLUMN k OPTIONS (DROP metadata, ADD attribute 'a')$$,
	'EXPLAIN SELECT k FROM t');

-- ==== A dropped column is no obstacle; another name, type or format counts
-- ==== from the next use on, also for a prepared statement.
PREPARE read AS SELECT k FROM t;
SELECT pg_temp.try('EXPLAIN EXECUTE read');
ALTER FOREIGN TABLE t ADD COLUMN wrong int;
SELECT pg_temp.try('EXPLAIN EXECUTE read');
ALTER FOREIGN TABLE t DROP COLUMN wrong;
SELECT pg_temp.try('EXPLAIN EXECUTE read');
ALTER FOREIGN TABLE t ALTER COLUMN data TYPE int;
SELECT pg_temp.try('EXPLAIN EXECUTE read');
ALTER FOREIGN TABLE t OPTIONS (ADD format 'json');
SELECT pg_temp.try('EXPLAIN EXECUTE read');
ALTER FOREIGN TABLE t RENAME COLUMN data TO number;
SELECT pg_temp.try('EXPLAIN EXECUTE read');
ALTER FOREIGN TABLE t OPTIONS (DROP format);
SELECT pg_temp.try('EXPLAIN EXECUTE read');

-- ==== A generated column is bound as any other.
SELECT pg_temp.bind('a int, twice int GENERATED ALWAYS AS (a * 2) STORED', $$, format 'json'$$);
SELECT pg_temp.bind('data text, upper text GENERATED ALWAYS AS (upper(data)) STORED');

DROP FOREIGN TABLE t;
DROP DOMAIN regress_offset, regress_text;
DROP SERVER columns_kafka, columns_pubsub;
