# test/t/011_kafka_consume.pl
#		Consuming a Kafka topic: several sessions, crashes, restarts, dumps

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(time);

my $node = new_cluster('consume', conf => "wal_level = replica\nmax_wal_senders = 5\n");
kafka_server($node);

# make(TABLE, PARTITIONS, RECORDS in each)
sub make
{
	my ($table, $partitions, $records) = @_;
	my $topic = unique_name($table);

	$node->safe_psql('postgres',
		"SELECT pubsub_create_topic('kafka', '$topic', partitions => $partitions);
		CREATE FOREIGN TABLE $table (data text, \"partition\" int, \"offset\" bigint)
		SERVER kafka OPTIONS (topic '$topic', group_id 'g');
		CREATE TABLE ${table}_dst (LIKE $table)");
	kafka_tool('fill', $topic, $partitions, $partitions * $records, 50)
	  if $records;
	return $topic;
}

sub value
{
	return $node->safe_psql('postgres', $_[0]);
}

my $consume = 'INSERT INTO %1$s_dst SELECT * FROM pubsub_consume(NULL::%1$s, max_records => %2$d)';

#
# Sessions share the partitions, and nobody waits
#
make('shared', 4, 100);
my ($a, $b, $c) = map { session($node) } 1 .. 3;
my ($out, $err);

$_->query('BEGIN') foreach $a, $b, $c;
within(5, sub { ($out, $err) = $a->query(sprintf($consume, 'shared', 200)); }, 'the first session');
is($err, '', 'takes two partitions');
within(5, sub { ($out, $err) = $b->query(sprintf($consume, 'shared', 1000)); }, 'the second does not wait');
is($err, '', 'and takes the others');
within(5, sub { ($out, $err) = $c->query(sprintf($consume, 'shared', 1000)); }, 'nor does the third');
like($err, qr/NOTICE:.*other sessions are consuming topic/, 'which is told that there is nothing for it');
($out, $err) = $c->query('SELECT count(*) FROM shared_dst; COMMIT');
is($out, '0', 'and gets nothing');
$b->query('ROLLBACK');
$a->query('COMMIT');
is(value('SELECT count(*), count(DISTINCT "partition") FROM shared_dst'), '200|2', 'what was committed');
$b->query(sprintf($consume, 'shared', 1000));
is(value('SELECT count(*), count(DISTINCT ("partition", "offset")) FROM shared_dst'), '400|400',
	'everything once, after a rollback');

# two that start at the same time on a topic that is new to the group
make('race', 4, 500);
my $gate = session($node);
$gate->query('SELECT pg_advisory_lock(1)');
$_->send('SELECT pg_advisory_lock_shared(1) IS NULL; ' . sprintf($consume, 'race', 600) . '; SELECT pg_advisory_unlock_all()')
  foreach $a, $b, $c;
$node->poll_query_until('postgres', "SELECT count(*) = 3 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
  or die "the sessions do not wait\n";
$gate->quit;
foreach ($a, $b, $c)
{
	($out, $err) = $_->receive;
	unlike($err, qr/ERROR/, 'sessions that start together do not get in the way of each other');
}
$a->query(sprintf($consume, 'race', 10000));
is(value('SELECT count(*), count(DISTINCT ("partition", "offset")) FROM race_dst'), '2000|2000', 'everything once');

# "latest" of a new group, in two sessions
my $latest = make('latest', 2, 10);
$node->safe_psql('postgres', "ALTER FOREIGN TABLE latest OPTIONS (ADD start_offsets 'latest')");
$a->query('BEGIN');
($out, $err) = $a->query('SELECT count(*) FROM pubsub_consume(NULL::latest)');
is($out, '0', 'a new group starts at the end');
within(5, sub { ($out, $err) = $b->query('SELECT count(*) FROM pubsub_consume(NULL::latest)'); }, 'another session does not wait');
is($out, '0', 'and gets nothing');
$a->query('COMMIT');
kafka_tool('write', $latest, 0, 'new');
is(value('SELECT data FROM pubsub_consume(NULL::latest)'), 'new', 'what comes after that is read');

#
# Isolation levels: a conflict is 40001, never a duplicate
#
foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	my $t = $level eq 'SERIALIZABLE' ? 'serial' : 'repeatable';

	make($t, 2, 100);
	value(sprintf($consume, $t, 10));
	$a->query("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM pubsub_offsets");
	$b->query(sprintf($consume, $t, 1000));
	($out, $err) = $a->query(sprintf($consume, $t, 1000));
	like($err, qr/40001/, "$level: a position that has moved since the snapshot");
	$a->query('ROLLBACK');
	$a->query("BEGIN ISOLATION LEVEL $level; " . sprintf($consume, $t, 1000) . '; COMMIT');
	is(value("SELECT count(*), count(DISTINCT (\"partition\", \"offset\")) FROM ${t}_dst"), '200|200',
		"$level: everything once");

	# the same where there was no position yet
	$a->query("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM pubsub_offsets");
	$b->query("SELECT count(*) FROM pubsub_consume(NULL::$t, group_id => 'other')");
	($out, $err) = $a->query("SELECT count(*) FROM pubsub_consume(NULL::$t, group_id => 'other')");
	like($err, qr/40001/, "$level: a position that is new since the snapshot");
	$a->query('ROLLBACK');
}

# the partition is free as soon as the subtransaction that took it is undone
make('sub', 1, 10);
$a->query('BEGIN; SAVEPOINT s; SELECT count(*) FROM pubsub_consume(NULL::sub); ROLLBACK TO s');
is(value('SELECT count(*) FROM pubsub_consume(NULL::sub)'), '10', 'ROLLBACK TO frees the partitions');
($out, $err) = $a->query('SELECT count(*) FROM pubsub_consume(NULL::sub)');
is($out, '0', 'and the position is looked at again');
$a->query('ROLLBACK');
$_->quit foreach $b, $c;

#
# A crash: what was not committed comes again, what was does not
#
make('crash', 3, 1000);
value(sprintf($consume, 'crash', 500));
$a->query('BEGIN');
$a->query(sprintf($consume, 'crash', 10000));
($out) = $a->query('SELECT count(*) FROM crash_dst');
is($out, '3000', 'all rows, not committed');
kill 'KILL', $a->pid;
$a->receive if $a->send('SELECT 1');
wait_for('the server after a crash', sub { $node->psql('postgres', 'SELECT 1') == 0 });
is(value('SELECT count(*) FROM crash_dst'), '500', 'they are gone with the backend');
value(sprintf($consume, 'crash', 10000));
is(value('SELECT count(*), count(DISTINCT ("partition", "offset")) FROM crash_dst'), '3000|3000',
	'and all of them come again, once');

# killed in the middle of reading
make('killed', 3, 30000);
foreach my $signal ('KILL', 'TERM')
{
	$a = session($node);
	$a->query('BEGIN');
	$a->send(q{INSERT INTO killed_dst SELECT k.* FROM pubsub_consume(NULL::killed, max_records => 1000000) k});
	select(undef, undef, undef, 0.05);
	kill $signal, $a->pid;
	$a->receive;
	wait_for('the server', sub { $node->psql('postgres', 'SELECT 1') == 0 });
}
is(value('SELECT count(*) FROM killed_dst'), '0', 'nothing of a killed session');
value(sprintf($consume, 'killed', 1000000));
is(value('SELECT count(*), count(DISTINCT ("partition", "offset")) FROM killed_dst'), '90000|90000',
	'then everything, once');

# restarts: of the server in all modes, of the broker
my $restart = make('restart', 2, 100);
value(sprintf($consume, 'restart', 70));
$node->stop('fast');
$node->start;
value(sprintf($consume, 'restart', 70));
$node->stop('immediate');
$node->start;
value(sprintf($consume, 'restart', 70));
is(value('SELECT count(*), count(DISTINCT ("partition", "offset")) FROM restart_dst'), '200|200',
	'positions survive restarts');

#
# A dump holds the positions
#
kafka_tool('write', $restart, 0, 'after the dump');
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-d', $node->connstr('postgres'), '-f', $dump ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ], 'restore');
is($node->safe_psql('restored', 'SELECT count(*) FROM pubsub_offsets'), value('SELECT count(*) FROM pubsub_offsets'),
	'the positions are in the dump');
is($node->safe_psql('restored', 'SELECT data FROM pubsub_consume(NULL::restart)'), 'after the dump',
	'and the restored database goes on where the other was');

#
# The table of positions is not for users
#
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; GRANT USAGE ON FOREIGN SERVER kafka TO plain; GRANT SELECT, DELETE ON restart TO plain');
foreach my $sql ('SELECT * FROM pubsub_offsets', 'DELETE FROM pubsub_offsets', 'TRUNCATE pubsub_offsets',
	"UPDATE pubsub_offsets SET next_offset = 0",
	"INSERT INTO pubsub_offsets (server_name, topic, \"partition\", group_id, next_offset) VALUES ('kafka', 'x', 0, 'g', 0)")
{
	sql_fails($node, "SET ROLE plain; $sql", qr/permission denied for table pubsub_offsets/, "not for users: $sql");
}
# but those who may write it can move positions
is($node->safe_psql('postgres', 'DELETE FROM pubsub_offsets WHERE topic = ' . quote($restart) . '; SELECT count(*) FROM pubsub_consume(NULL::restart)'),
	'201', 'without a position a group starts anew');
is($node->safe_psql('postgres', 'TRUNCATE pubsub_offsets; SELECT count(*) FROM pubsub_consume(NULL::restart)'),
	'201', 'TRUNCATE');
is($node->safe_psql('postgres', 'UPDATE pubsub_offsets SET next_offset = 90 WHERE "partition" = 1; SELECT count(*) FROM pubsub_consume(NULL::restart)'),
	'10', 'UPDATE');

# no lock is left
is(value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', 'no lock is left');

#
# A standby reads, but neither consumes nor publishes; once promoted it goes on
# where the primary was
#
kafka_tool('write', $restart, 0, 's1', 's2', 's3');
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
is(value('SELECT data FROM pubsub_consume(NULL::restart, max_records => 1)'), 's1', 'the primary consumes');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM restart'), '204', 'a standby reads');
sql_fails($standby, 'SELECT * FROM pubsub_consume(NULL::restart)', qr/cannot execute pubsub_consume\(\) (in a read-only transaction|during recovery)/,
	'but does not consume');
sql_fails($standby, "INSERT INTO restart (data) VALUES ('x')", qr/cannot execute INSERT in a read-only transaction/,
	'nor publish');
sql_fails($standby, "SELECT pubsub_send('restart', 'x'::text)", qr/cannot execute .* (in a read-only transaction|during recovery)/,
	'nor by the function');
$node->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', 'SELECT data FROM pubsub_consume(NULL::restart)'), "s2\ns3",
	'promoted, it goes on where the primary was');
$standby->stop;

unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/PANIC/, 'no PANIC');
done_testing();
