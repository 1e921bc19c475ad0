# test/t/070_dummy_encoding.pl
#		Databases that are not in UTF-8: messages are in UTF-8 all the same,
#		names and texts in the encoding of the database.  Brokers made of files.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my $node = new_cluster('encoding');

# Names with a letter of the encoding, an upper-case one, a blank and a quote
my %letters = (latin1 => "\x{e4}", euc_jp => "\x{7d75}", sql_ascii => "\x{e4}");

# run(DATABASE, SQL): output and messages in UTF-8
sub run
{
	my ($db, $sql) = @_;
	my ($out, $err);

	utf8::encode($sql);
	$node->psql($db, "SET client_encoding = 'UTF8';\n$sql",
		stdout => \$out, stderr => \$err);
	utf8::decode($out);
	utf8::decode($err);
	return ($out, $err);
}

foreach my $db (sort keys %letters)
{
	my $c = $letters{$db};
	my $name = "N $c\"\"'";
	my ($out, $err);

	$node->safe_psql('postgres',
		"CREATE DATABASE $db ENCODING '$db' LOCALE 'C' TEMPLATE template0");
	$node->safe_psql($db, q{
CREATE EXTENSION pubsub_fdw;
CREATE EXTENSION pubsub_fdw_dummy;
ALTER DATABASE }
		  . $db . q{ SET session_preload_libraries = 'pubsub_fdw_dummy'});

	($out, $err) = run($db, qq{
CREATE SERVER "$name" FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'dummy_log', dummy_dir 'dummy_$db');
SELECT pubsub_create_topic('N $c"''', 'events', 1);
CREATE SCHEMA "$name";
CREATE FOREIGN TABLE "$name"."$name" (
	"$name" text,
	a text OPTIONS (attribute 'attribute $c'),
	t timestamptz OPTIONS (metadata 'event_time'))
	SERVER "$name" OPTIONS (topic 'events', format 'json',
		timestamp_attribute 'time $c', group_id 'group $c');
CREATE FOREIGN TABLE bytes (data bytea, headers jsonb) SERVER "$name" OPTIONS (topic 'events');
CREATE TABLE "copy $name" ("$name" text, a text);
INSERT INTO "$name"."$name" VALUES ('value $c', 'attribute $c', '2026-01-02 03:04:05Z');
});
	is($err, '', "$db: names");

	# ====
	# What is in a message does not depend on the database.
	my $payload = "{\"N $c\\\"'\":\"value $c\"}";
	utf8::encode($payload);
	($out) = run($db, q{SELECT encode(data, 'hex') FROM bytes});
	is($out, unpack('H*', $payload), "$db: payload in UTF-8");

	# ====
	# It comes back as it was, also through the functions.
	($out) = run($db, qq{SELECT "$name", a, t AT TIME ZONE 'UTC' FROM "$name"."$name"});
	is($out, "value $c|attribute $c|2026-01-02 03:04:05", "$db: SELECT");
	($out) = run($db, qq{CALL pubsub_ingest(\$\$"$name"."$name"\$\$, \$\$"copy $name"\$\$);
		TABLE "copy $name";
		SELECT server_name, group_id, next_offset FROM pubsub_offsets});
	is($out, "1\nvalue $c|attribute $c\nN $c\"'|group $c|1",
		"$db: pubsub_ingest()");

	# ====
	# Errors name things as the user does.
	($out, $err) = run($db, qq{
SELECT dummy_append('dummy_$db', 'events', 0, '{}');
SELECT t FROM pubsub_read(NULL::"$name"."$name", 'latest-1')});
	like($err, qr/message has no timestamp attribute "time $c"/,
		"$db: no event time");
	($out, $err) = run($db, qq{
INSERT INTO bytes VALUES ('{}', '[{"key": "time $c", "value": "soon"}]');
SELECT t FROM pubsub_read(NULL::"$name"."$name", 'latest-1')});
	like($err, qr/invalid value for timestamp attribute "time $c": "soon"/,
		"$db: bad event time");
}

# ====
# A message with a letter that the encoding does not have: where it is text
# that is an error, where bytes will do they come.
my ($out, $err) = run('latin1', qq{
SELECT dummy_append('dummy_latin1', 'events', 0, '\\x7b2261223a22e282ac227d');
CREATE FOREIGN TABLE euro (a text) SERVER "N \x{e4}""'" OPTIONS (topic 'events', format 'json');
SELECT * FROM pubsub_read(NULL::euro, 'latest-1')});
like($err, qr/has no equivalent in encoding "LATIN1"/, 'text that does not fit');
($out, $err) = run('latin1',
	q{SELECT data FROM pubsub_read(NULL::bytes, 'latest-1')});
is($out, '\x7b2261223a22e282ac227d', 'the same as bytes');

$node->stop;
done_testing();
