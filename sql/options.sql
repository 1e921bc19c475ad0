--
-- Options: what the validator takes and what it refuses, and the checks that
-- wait until a table is used.  Needs no broker: nothing here gets further than
-- planning.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = notice;

CREATE ROLE regress_pubsub_options LOGIN;
CREATE ROLE regress_pubsub_reader LOGIN;
GRANT USAGE ON FOREIGN DATA WRAPPER pubsub_fdw TO regress_pubsub_options;
GRANT pg_read_server_files TO regress_pubsub_reader;
GRANT USAGE ON FOREIGN DATA WRAPPER pubsub_fdw TO regress_pubsub_reader;

-- Runs a statement; returns what became of it, with the SQLSTATE.
CREATE FUNCTION pg_temp.try(statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text; hint text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE,
		message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT;
	RETURN state || ': ' || message
		|| CASE WHEN detail <> '' THEN E'\n  DETAIL: ' || detail ELSE '' END
		|| CASE WHEN hint <> '' THEN E'\n  HINT: ' || hint ELSE '' END;
END $$;

-- The same for the validator alone: options as the catalog has them.
CREATE FUNCTION pg_temp.check(kind text, VARIADIC options text[]) RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.try(format('SELECT pubsub_fdw_validator(%L::text[], %L::regclass)',
		options,
		CASE kind WHEN 'wrapper' THEN 'pg_foreign_data_wrapper'
				  WHEN 'server' THEN 'pg_foreign_server'
				  WHEN 'mapping' THEN 'pg_user_mapping'
				  WHEN 'table' THEN 'pg_foreign_table'
				  ELSE 'pg_attribute' END));
$$;

-- ==== The servers, mappings and tables of SQL-SURFACE are accepted.
CREATE SERVER gcp FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'pubsub', project 'my-project');
CREATE SERVER gcp_emulator FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'pubsub', project 'test-project',
			 endpoint 'http://localhost:8085', transport 'grpc');
CREATE SERVER kafka1 FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'kafka', bootstrap_servers 'k1:9093, k2:9093,[::1]:9092',
			 security_protocol 'sasl_ssl', sasl_mechanism 'SCRAM-SHA-512',
			 ssl_ca_location '/etc/ssl/ca.pem', client_id 'me',
			 connect_timeout '3s', request_timeout '1min', fetch_size '5000',
			 batch_size '1000', batch_bytes '1MB', updatable 'off',
			 "properties.fetch.min.bytes" '100000');
CREATE USER MAPPING FOR regress_pubsub_options SERVER kafka1
	OPTIONS (sasl_username 'ingest', sasl_password 'secret');
CREATE USER MAPPING FOR regress_pubsub_options SERVER gcp
	OPTIONS (credentials_json '{"type": "service_account"}');
CREATE USER MAPPING FOR PUBLIC SERVER gcp_emulator
	OPTIONS (auth 'none', credentials_required 'false');
CREATE FOREIGN TABLE events_raw (data bytea, attributes jsonb)
	SERVER gcp OPTIONS (subscription 'events-sub', topic 'events',
		timestamp_attribute 'ts', ack_deadline '120s', max_lease '2h');
CREATE FOREIGN TABLE clicks (
	user_id bigint,
	url text OPTIONS (field 'page.url'),
	trace text OPTIONS (attribute 'traceparent'),
	o bigint OPTIONS (metadata 'offset')
) SERVER kafka1 OPTIONS (topic 'clicks', format 'json', strict 'yes',
	group_id 'pg1', partitions '0,3-5', start_offsets '{"0": 23, "1": "latest-5"}',
	stop_offsets 'latest', start_read_time '2026-01-01',
	stop_read_time '2026-01-02 12:00+01', timestamp_miss 'latest',
	on_data_loss 'skip', isolation_level 'read_uncommitted', acks 'all',
	compression 'lz4', tombstones 'true', max_records '10', max_read_time '5s',
	poll_timeout '500ms', "properties.linger.ms" '5');

-- ==== An unknown option is refused with the legal ones of this kind of object
-- ==== and, if one is near, the one that may be meant.
SELECT pg_temp.check('wrapper', 'bootstrap_servers=k:9092');
SELECT pg_temp.check('wrapper', 'x=y');
SELECT pg_temp.check('server', 'hosts=k:9092');
SELECT pg_temp.check('server', 'broker=kafka', 'bootstrap_server=k:9092');
SELECT pg_temp.check('server', 'broker=kafka', 'brokers=k:9092');
SELECT pg_temp.check('server', 'broker=pubsub', 'projekt=my-project');
SELECT pg_temp.check('mapping', 'password=secret');
SELECT pg_temp.check('mapping', 'sasl_pasword=secret');
SELECT pg_temp.check('table', 'kafka_topic=t');
SELECT pg_temp.check('table', 'Topic=t');
SELECT pg_temp.check('column', 'meta=key');
-- no name at all, a long name, the bare prefix
SELECT pg_temp.check('column', '=key');
SELECT left(pg_temp.check('column', repeat('x', 300) || '=key'), 50);
SELECT pg_temp.check('server', 'properties.=1');
-- an object that has no options of ours
SELECT pg_temp.try('SELECT pubsub_fdw_validator(NULL, 1259)');
SELECT pg_temp.try($$SELECT pubsub_fdw_validator('{}', 1259)$$);
SELECT pg_temp.try($$SELECT pubsub_fdw_validator('{broker}', 'pg_foreign_server'::regclass)$$);

-- ==== A legal option in the wrong place is refused, and the right place is
-- ==== named; a secret is never repeated (S01).
SELECT pg_temp.try($$CREATE SERVER s FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'kafka', bootstrap_servers 'k:9092', sasl_password 'hush')$$);
SELECT pg_temp.try($$CREATE FOREIGN TABLE t (data text) SERVER kafka1
	OPTIONS (topic 't', sasl_password 'hush')$$);
SELECT pg_temp.try($$ALTER SERVER gcp OPTIONS (ADD access_token 'hush')$$);
SELECT option, pg_temp.check('server', option || '=hush')
	FROM pubsub_fdw_options() WHERE secret ORDER BY option;
SELECT pg_temp.check('table', 'bootstrap_servers=k:9092');
SELECT pg_temp.check('table', 'broker=kafka');
SELECT pg_temp.check('mapping', 'fetch_size=1');
SELECT pg_temp.check('server', 'topic=t');
SELECT pg_temp.check('table', 'field=a.b');
SELECT pg_temp.check('column', 'format=json');

-- ==== Wrong values are refused with option, value and what is legal (F13).
SELECT value, pg_temp.check('table', 'strict=' || value)
	FROM unnest('{true,on,1,yes,TRUE,f,off,maybe,""}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'max_records=' || value)
	FROM unnest('{1,9223372036854775807,9223372036854775808,99999999999999999999,0,-5,abc,1.5,1 x,""}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'fetch_size=' || value)
	FROM unnest('{1,1000000,1000001,99999999999,0,-1,abc,""}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'poll_timeout=' || value)
	FROM unnest('{500ms,2s,1 min,1.5s,1000,0,-1s,5 parsecs,30d,""}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'ack_deadline=' || value)
	FROM unnest('{10s,600s,9s,601s,60,10500ms,10min}'::text[]) AS value;
SELECT value, pg_temp.check('server', 'connect_timeout=' || value)
	FROM unnest('{100ms,1h,99ms,2h}'::text[]) AS value;
SELECT value, pg_temp.check('server', 'batch_bytes=' || value)
	FROM unnest('{1,7500000,10MB,0,10GB,x}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'format=' || value)
	FROM unnest('{raw,JSON,csv,""}'::text[]) AS value;
SELECT option, pg_temp.check(CASE context WHEN 'server' THEN 'server'
								WHEN 'user mapping' THEN 'mapping'
								ELSE 'table' END, option || '=wrong')
	FROM pubsub_fdw_options() WHERE type LIKE 'enum%' ORDER BY option;
-- a long value is not repeated in full, nor one with a password in it, nor any
-- of a user mapping
SELECT pg_temp.check('table', 'format=' || repeat('x', 1000));
SELECT pg_temp.check('server', 'endpoint=https://user:hush@host');
SELECT pg_temp.check('mapping', 'auth=hush');
SELECT pg_temp.check('mapping', 'ssl_key_pem=hush');
SELECT pg_temp.check('mapping', 'credentials_json=/etc/key.json');
SELECT pg_temp.check('mapping', 'credentials_file={"private_key": "hush"}');
SELECT pg_temp.check('mapping', 'sasl_password=');

-- ==== Addresses and names must be well-formed.
SELECT value, pg_temp.check('server', 'bootstrap_servers=' || value)
	FROM unnest('{k:9092,"k1:9092,10.0.0.1:1","[2001:db8::1]:9092",k,k:,k:0,k:65536,k:9092x,":9092","k:9092,",",","PLAINTEXT://k:9092","k 1:9092","[::1]","[]:1","k:9092/x",""}'::text[]) AS value;
SELECT value, pg_temp.check('server', 'endpoint=' || value)
	FROM unnest('{https://pubsub.googleapis.com,http://localhost:8085,"http://[::1]:8085",https://europe-west1-pubsub.googleapis.com:443,localhost:8085,http://,http://h/,http://169.254.169.254/computeMetadata,https://h?x,https://h#x,https://h:,https://h:99999,ftp://h,"https://h ",file:///etc/passwd}'::text[]) AS value;
SELECT value, pg_temp.check('server', 'project=' || value)
	FROM unnest('{my-project,example.com:my-project,short,My-Project,1project,my-project-,my/project}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'subscription=' || value)
	FROM unnest('{events-sub,a1%+~._-,projects/my-project/subscriptions/events-sub,/subscriptions/my-project/events-sub,ab,1abc,google-sub,"a b c",projects/my-project/topics/events,projects/my-project/subscriptions/,projects/x/subscriptions/events,projects/my-project/subscriptions/a/b,/subscriptions/events-sub,/topics/my-project/events}'::text[]) AS value;
SELECT length(name), pg_temp.check('table', 'subscription=' || name)
	FROM (SELECT 'a' || repeat('b', n) AS name FROM unnest('{254,255}'::int[]) AS n) AS names;
SELECT value, pg_temp.check('table', 'topic=' || value)
	FROM unnest('{clicks,0,orders.v1,.,..,a b,"a,b",projects/my-project/topics/events,/topics/my-project/events,events%2}'::text[]) AS value;
-- as soon as another option tells the broker, its rules alone count
SELECT value, pg_temp.check('table', 'group_id=g', 'topic=' || value)
	FROM unnest('{clicks,goog,projects/my-project/topics/events,events%2}'::text[]) AS value;
SELECT length(name), left(pg_temp.check('table', 'group_id=g', 'topic=' || name), 40)
	FROM (SELECT repeat('t', n) AS name FROM unnest('{249,250}'::int[]) AS n) AS names;
SELECT value, pg_temp.check('table', 'subscription=sub', 'topic=' || value)
	FROM unnest('{clicks,goog,t,events%2}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'topic=t', 'partitions=' || value)
	FROM unnest('{0,"0,3-5","0, 1",2147483647,5-3,-1,a,"0,",2147483648,1-,""}'::text[]) AS value;
SELECT value, pg_temp.check('table', 'topic=t', 'start_offsets=' || value)
	FROM unnest(ARRAY['earliest', 'latest', 'latest-100', 'first', 'latest-', '5',
		'{"0": 23, "1": "earliest", "2": -1}', '{"t": {"0": 23}}', '{"a": 1}',
		'{"0": "x"}', '[1]', '{"t": {"u": {"0": 1}}}']) AS value;
SELECT value, pg_temp.check('table', 'topic=t', 'start_read_time=' || value)
	FROM unnest('{2026-01-01,2026-01-01T00:00:00Z,yesterday,infinity,tomorow,2026-13-01,""}'::text[]) AS value;

-- ==== Options of both brokers in one object are refused, and in a server those
-- ==== that do not fit its broker.
SELECT pg_temp.check('table', 'topic=t', 'subscription=events-sub', 'group_id=g');
SELECT pg_temp.check('table', 'partitions=0', 'topic=t', 'ack_deadline=60s');
SELECT pg_temp.check('server', 'project=my-project', 'bootstrap_servers=k:9092');
SELECT pg_temp.check('server', 'project=my-project', 'broker=kafka', 'bootstrap_servers=k:9092');
SELECT pg_temp.check('server', 'broker=pubsub', 'properties.linger.ms=5');
SELECT pg_temp.check('mapping', 'sasl_username=u', 'access_token=hush');
SELECT pg_temp.check('server', 'broker=rabbit');
SELECT pg_temp.check('server', 'broker=Kafka');
-- limits of Pub/Sub, as soon as it is known to be meant
SELECT pg_temp.check('server', 'broker=pubsub', 'fetch_size=1000', 'batch_size=1000', 'batch_bytes=10000000');
SELECT pg_temp.check('server', 'broker=pubsub', 'fetch_size=1001');
SELECT pg_temp.check('table', 'batch_size=1001', 'subscription=events-sub');
SELECT pg_temp.check('table', 'subscription=events-sub', 'batch_bytes=10000001');

-- ==== What is needed together must be there together.
SELECT pg_temp.check('server', 'broker=kafka');
SELECT pg_temp.try($$ALTER SERVER kafka1 OPTIONS (DROP bootstrap_servers)$$);
SELECT pg_temp.check('table', 'group_id=g');
SELECT pg_temp.check('server', 'broker=kafka', 'bootstrap_servers=k:9092', 'security_protocol=sasl_ssl');
SELECT pg_temp.check('server', 'broker=kafka', 'bootstrap_servers=k:9092', 'sasl_mechanism=PLAIN');
SELECT pg_temp.check('server', 'broker=kafka', 'bootstrap_servers=k:9092', 'ssl_ca_location=/ca.pem');
SELECT pg_temp.check('server', 'broker=kafka', 'bootstrap_servers=k:9092', 'security_protocol=ssl',
	'ssl_ca_location=/ca.pem', 'ssl_ca_pem=-----BEGIN CERTIFICATE-----');
SELECT pg_temp.check('server', 'ssl_ca_location=ca.pem');
SELECT pg_temp.check('server', 'broker=pubsub', 'ssl_ca_location=/ca.pem');
SELECT pg_temp.check('server', 'broker=pubsub', 'endpoint=https://localhost:1', 'ssl_ca_location=/ca.pem');
SELECT pg_temp.check('server', 'broker=pubsub', 'endpoint=http://localhost:1', 'ssl_ca_location=/ca.pem');
SELECT pg_temp.check('mapping', 'auth=token');
SELECT pg_temp.check('mapping', 'auth=service_account', 'access_token=hush');
SELECT pg_temp.check('mapping', 'auth=none', 'access_token=hush');
SELECT pg_temp.check('mapping', 'access_token=hush', 'credentials_json={}');
SELECT pg_temp.check('column', 'metadata=key', 'attribute=a');

-- ==== Properties of librdkafka go by the allow-list; what loads code or runs
-- ==== commands is refused for superusers, too (S05).
SELECT name, pg_temp.check('server', 'properties.' || name)
	FROM unnest(ARRAY['fetch.min.bytes=1000', 'fetch.min.bytes=-1',
		'plugin.library.paths=/opt/x', 'sasl.kerberos.kinit.cmd=touch PWNED',
		'ssl.engine.location=/opt/x', 'ssl.providers=x', 'metadata.broker.list=k:9092',
		'bootstrap.servers=k:9092', 'sasl.password=hush', 'group.id=g',
		'ssl.key.location=/etc/key', 'debug=all', 'no.such=1']) AS name;
SET ROLE regress_pubsub_options;
SELECT name, pg_temp.check('server', 'properties.' || name)
	FROM unnest(ARRAY['fetch.min.bytes=1000', 'sasl.kerberos.kinit.cmd=touch PWNED',
		'plugin.library.paths=/opt/x', 'ssl.key.location=/etc/key', 'debug=all',
		'enable.ssl.certificate.verification=false']) AS name;

-- ==== Options that read files of the server need the role for that;
-- ==== credentials_required 'false' needs a superuser.
SELECT pg_temp.check('server', 'broker=kafka', 'bootstrap_servers=k:9092',
	'security_protocol=ssl', 'ssl_ca_location=/etc/ssl/ca.pem');
SELECT pg_temp.check('mapping', 'credentials_file=/etc/key.json');
SELECT pg_temp.check('mapping', 'credentials_required=false');
SELECT pg_temp.check('mapping', 'credentials_required=true');
SET ROLE regress_pubsub_reader;
SELECT pg_temp.check('mapping', 'credentials_file=/etc/key.json');
SELECT pg_temp.check('mapping', 'credentials_required=false');
RESET ROLE;

-- ==== An option for another broker than the server's is an error when the
-- ==== table is used; it names the server.
CREATE FOREIGN TABLE wrong_kafka (data text) SERVER kafka1
	OPTIONS (topic 'events', ack_deadline '60s');
CREATE FOREIGN TABLE wrong_pubsub (data text) SERVER gcp
	OPTIONS (topic 'clicks', group_id 'g');
CREATE FOREIGN TABLE big_pubsub (data text) SERVER gcp
	OPTIONS (topic 'clicks', fetch_size '5000');
SELECT pg_temp.try('EXPLAIN SELECT * FROM wrong_kafka');
SELECT pg_temp.try('EXPLAIN SELECT * FROM wrong_pubsub');
SELECT pg_temp.try('EXPLAIN SELECT * FROM big_pubsub');
CREATE USER MAPPING FOR CURRENT_USER SERVER gcp OPTIONS (sasl_username 'u');
SELECT pg_temp.try('EXPLAIN SELECT * FROM events_raw');
DROP USER MAPPING FOR CURRENT_USER SERVER gcp;

-- ==== What is missing, or does not suit the broker, is an error when the table
-- ==== is used.
CREATE SERVER nothing FOREIGN DATA WRAPPER pubsub_fdw;
CREATE SERVER gcp_bare FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'pubsub');
CREATE FOREIGN TABLE no_broker (data text) SERVER nothing OPTIONS (topic 't');
CREATE FOREIGN TABLE no_topic (data text) SERVER kafka1;
CREATE FOREIGN TABLE no_names (data text) SERVER gcp;
CREATE FOREIGN TABLE no_project (data text) SERVER gcp_bare OPTIONS (subscription 'events-sub');
CREATE FOREIGN TABLE bad_kafka_topic (data text) SERVER kafka1
	OPTIONS (topic 'projects/my-project/topics/events');
CREATE FOREIGN TABLE bad_pubsub_topic (data text) SERVER gcp OPTIONS (topic 't1_');
ALTER FOREIGN TABLE bad_pubsub_topic OPTIONS (SET topic '0');
SELECT name, pg_temp.try('EXPLAIN SELECT * FROM ' || name)
	FROM unnest('{no_broker,no_topic,no_names,no_project,bad_kafka_topic,bad_pubsub_topic}'::text[]) AS name;

-- ==== The broker may come from the wrapper, and the server wins over it.
CREATE FOREIGN DATA WRAPPER regress_pubsub_kafka
	HANDLER pubsub_fdw_handler VALIDATOR pubsub_fdw_validator OPTIONS (broker 'kafka');
CREATE SERVER by_wrapper FOREIGN DATA WRAPPER regress_pubsub_kafka
	OPTIONS (bootstrap_servers 'k:9092');
CREATE SERVER by_wrapper_bare FOREIGN DATA WRAPPER regress_pubsub_kafka;
CREATE SERVER by_server FOREIGN DATA WRAPPER regress_pubsub_kafka
	OPTIONS (broker 'pubsub', project 'my-project');
CREATE FOREIGN TABLE by_wrapper_t (data text) SERVER by_wrapper OPTIONS (topic 't', group_id 'g');
CREATE FOREIGN TABLE by_wrapper_bare_t (data text) SERVER by_wrapper_bare OPTIONS (topic 't');
CREATE FOREIGN TABLE by_server_t (data text) SERVER by_server OPTIONS (topic 't');
SELECT name, pg_temp.try('EXPLAIN SELECT * FROM ' || name)
	FROM unnest('{by_wrapper_t,by_wrapper_bare_t,by_server_t}'::text[]) AS name;

-- ==== A user who is no superuser needs a mapping, and credentials in it that
-- ==== the connection uses, unless a superuser has waived them.
GRANT SELECT ON ALL TABLES IN SCHEMA public TO regress_pubsub_options;
CREATE SERVER plain FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'kafka', bootstrap_servers 'k:9092');
GRANT USAGE ON FOREIGN SERVER plain, gcp, gcp_emulator TO regress_pubsub_options;
CREATE FOREIGN TABLE plain_t (data text) SERVER plain OPTIONS (topic 't');
CREATE FOREIGN TABLE emulator_t (data text) SERVER gcp_emulator OPTIONS (subscription 'events-sub');
GRANT SELECT ON plain_t, emulator_t TO regress_pubsub_options;
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_t');
SET ROLE regress_pubsub_options;
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_t');
CREATE USER MAPPING FOR CURRENT_USER SERVER plain;
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_t');
ALTER USER MAPPING FOR CURRENT_USER SERVER plain OPTIONS (sasl_username 'u', sasl_password 'hush');
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_t');
SELECT pg_temp.try($$ALTER USER MAPPING FOR CURRENT_USER SERVER plain OPTIONS (credentials_required 'false')$$);
RESET ROLE;
ALTER USER MAPPING FOR regress_pubsub_options SERVER plain OPTIONS (credentials_required 'false');
SET ROLE regress_pubsub_options;
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_t');
SELECT pg_temp.try('EXPLAIN SELECT * FROM clicks');
SELECT pg_temp.try('EXPLAIN SELECT * FROM events_raw');
SELECT pg_temp.try('EXPLAIN SELECT * FROM emulator_t');
-- the emulator's endpoint is not encrypted
CREATE USER MAPPING FOR CURRENT_USER SERVER gcp_emulator OPTIONS (access_token 'hush');
SELECT pg_temp.try('EXPLAIN SELECT * FROM emulator_t');
ALTER USER MAPPING FOR CURRENT_USER SERVER gcp_emulator OPTIONS (ADD auth 'token');
SELECT pg_temp.try('EXPLAIN SELECT * FROM emulator_t');
ALTER USER MAPPING FOR CURRENT_USER SERVER gcp_emulator OPTIONS (DROP access_token, SET auth 'none');
SELECT pg_temp.try('EXPLAIN SELECT * FROM emulator_t');
DROP USER MAPPING FOR CURRENT_USER SERVER gcp_emulator;
-- a mapping with the auth of another kind of credentials
ALTER USER MAPPING FOR CURRENT_USER SERVER gcp OPTIONS (DROP credentials_json);
SELECT pg_temp.try('EXPLAIN SELECT * FROM events_raw');
RESET ROLE;

-- ==== A view reads with its owner's mapping.
CREATE VIEW plain_v AS SELECT * FROM plain_t;
DROP USER MAPPING FOR regress_pubsub_options SERVER plain;
GRANT SELECT ON plain_v TO regress_pubsub_options;
SET ROLE regress_pubsub_options;
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_v');
SELECT pg_temp.try('EXPLAIN SELECT * FROM plain_t');
RESET ROLE;

-- ==== The options of a user mapping are hidden from other roles.
SELECT count(*) FROM pg_user_mappings WHERE umoptions::text LIKE '%secret%';
SET ROLE regress_pubsub_reader;
SELECT count(*) FROM pg_user_mappings WHERE umoptions::text LIKE '%secret%';
RESET ROLE;

-- ==== docs/options.md is what the option table says.
\o | diff "$PG_ABS_SRCDIR/docs/options.md" - && echo same
\getenv abs_srcdir PG_ABS_SRCDIR
\set filename :abs_srcdir '/test/options_md.sql'
\set ECHO none
\i :filename
\set ECHO all
\o

SET client_min_messages = warning;
DROP FOREIGN DATA WRAPPER regress_pubsub_kafka CASCADE;
DROP SERVER gcp, gcp_emulator, kafka1, nothing, gcp_bare, plain CASCADE;
DROP OWNED BY regress_pubsub_options, regress_pubsub_reader;
DROP ROLE regress_pubsub_options, regress_pubsub_reader;
