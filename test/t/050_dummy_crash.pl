# test/t/050_dummy_crash.pl
#		What a backend or the server leaves behind when it dies: nothing lost,
#		nothing held back.  On the brokers made of files (test/dummy), which
#		show what they were told; the real ones have tests of their own.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(time);

my $node = new_cluster('main', conf => "wal_level = replica\nmax_wal_senders = 4\n");

# Sessions find the brokers by this; new_cluster's "kill -9" restarts the server
$node->safe_psql('postgres', q{
CREATE EXTENSION pubsub_fdw_dummy;
ALTER DATABASE postgres SET session_preload_libraries = 'pubsub_fdw_dummy';
});
$node->safe_psql('postgres', q{
CREATE SERVER log FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'dummy_log', dummy_dir 'dummy');
CREATE SERVER queue FOREIGN DATA WRAPPER pubsub_fdw
	OPTIONS (broker 'dummy_queue', project 'test-project', dummy_dir 'dummy');
SELECT pubsub_create_topic('log', 'feed', 2);
SELECT pubsub_create_topic('queue', 'jobs');
SELECT pubsub_create_subscription('queue', 'jobs-sub', 'jobs');
CREATE FOREIGN TABLE feed (data text) SERVER log OPTIONS (topic 'feed', group_id 'g');
CREATE FOREIGN TABLE jobs (data text) SERVER queue
	OPTIONS (topic 'jobs', subscription 'jobs-sub', poll_timeout '20ms');
CREATE TABLE dst (data text);
SELECT count(dummy_append('dummy', 'feed', i % 2, i::text::bytea)) FROM generate_series(1, 20) i;
SELECT count(dummy_append('dummy', 'jobs', 0, i::text::bytea)) FROM generate_series(1, 20) i;
});

my $jobs = "SELECT dummy_subscription('dummy', 'jobs-sub')";
my $rows = 'SELECT count(*), count(DISTINCT data) FROM dst';

# Kills a backend as the system would; the server restarts by itself
sub kill_hard
{
	my ($session) = @_;
	my $start = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

	kill('KILL', $session->pid) == 1 or die "kill: $!\n";
	$session->quit;
	wait_for('crash recovery', sub {
		my ($rc, $out) = sql($node, 'SELECT count(*) FROM dst');

		return $rc == 0;
	});
	is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
		$start, 'the server stays up');
	return;
}

# ====
# A backend that is told to go, in the middle of a transaction: what it had
# read is there for others at once.
my $s = session($node);

$s->query('BEGIN');
$s->query('INSERT INTO dst SELECT data FROM pubsub_consume(NULL::jobs, max_records => 5)');
$s->query('INSERT INTO dst SELECT data FROM pubsub_consume(NULL::feed, max_records => 5)');
is($node->safe_psql('postgres', $jobs), 'waiting 15, leased 5, acked 0', 'five jobs are leased');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(" . $s->pid . ", 10000)");
$s->quit;
is($node->safe_psql('postgres', $jobs), 'waiting 20, leased 0, acked 0', 'terminated: they are back');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pubsub_offsets'), '0', 'no position has moved');

# ====
# The same while it waits for a broker that does not answer
$node->safe_psql('postgres', "ALTER SERVER log OPTIONS (ADD dummy_hang 'poll')");
$s = session($node);
$s->send('SELECT count(*) FROM feed');
wait_for('the wait', sub {
	return $node->safe_psql('postgres',
		"SELECT wait_event FROM pg_stat_activity WHERE pid = " . $s->pid) eq 'Extension';
});
within(2, sub {
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(" . $s->pid . ", 10000)");
}, 'a waiting backend ends at once');
$s->quit;
$s = session($node);
$s->send('SELECT count(*) FROM feed');
wait_for('the wait', sub {
	return $node->safe_psql('postgres',
		"SELECT wait_event FROM pg_stat_activity WHERE pid = " . $s->pid) eq 'Extension';
});
$s->cancel;
my ($out, $err) = $s->receive;
like($err, qr/57014/, 'a waiting backend can be cancelled');
($out) = $s->query('SELECT dummy_held() IS NULL');
is($out, 't', 'it holds nothing then');
$s->send('SELECT count(*) FROM feed');
wait_for('the wait', sub {
	return $node->safe_psql('postgres',
		"SELECT wait_event FROM pg_stat_activity WHERE pid = " . $s->pid) eq 'Extension';
});
within(5, sub { $node->stop('fast'); }, 'the server stops while a backend waits');
$s->quit;
$node->start;
$node->safe_psql('postgres', "ALTER SERVER log OPTIONS (DROP dummy_hang)");

# ====
# kill -9 before COMMIT: everything comes again, once
$s = session($node);
$s->query('BEGIN');
$s->query('INSERT INTO dst SELECT data FROM pubsub_consume(NULL::jobs, max_records => 5)');
$s->query('INSERT INTO dst SELECT data FROM pubsub_consume(NULL::feed, max_records => 5)');
kill_hard($s);
is($node->safe_psql('postgres', $jobs), 'waiting 20, leased 0, acked 0', 'killed: the jobs are back');
is($node->safe_psql('postgres', $rows), '0|0', 'and no row is there');
$node->safe_psql('postgres', 'INSERT INTO dst SELECT data FROM pubsub_consume(NULL::feed)');
is($node->safe_psql('postgres', $rows), '20|20', 'all of the feed, once');

# ====
# kill -9 after COMMIT and before the acknowledgement has been sent: the rows
# are there, and the messages come again
$node->safe_psql('postgres', "TRUNCATE dst; ALTER SERVER queue OPTIONS (ADD dummy_hang 'send_acks')");
$s = session($node);
$s->query("SET pubsub_fdw.ack_timeout = '1h'");
$s->send('INSERT INTO dst SELECT data FROM pubsub_consume(NULL::jobs, max_records => 5)');
wait_for('the commit', sub { return $node->safe_psql('postgres', $rows) eq '5|5'; });
kill_hard($s);
is($node->safe_psql('postgres', $rows), '5|5', 'the rows are there');
is($node->safe_psql('postgres', $jobs), 'waiting 20, leased 0, acked 0', 'the messages, too');
$node->safe_psql('postgres', "ALTER SERVER queue OPTIONS (DROP dummy_hang)");

# ====
# kill -9 within a CALL: its committed batches stay, the others come again
$node->safe_psql('postgres', q{
TRUNCATE dst;
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT count(*) FROM dst) >= 12 THEN
		PERFORM pg_sleep(3600);
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER hold AFTER INSERT ON dst EXECUTE FUNCTION hold();
});
$s = session($node);
$s->send("CALL pubsub_ingest('jobs', 'dst', batch_size => 4)");
wait_for('two batches', sub { return $node->safe_psql('postgres', $rows) eq '8|8'; });
wait_for('a third one', sub {
	return $node->safe_psql('postgres',
		"SELECT wait_event FROM pg_stat_activity WHERE pid = " . $s->pid) eq 'PgSleep';
});
kill_hard($s);
is($node->safe_psql('postgres', $rows), '8|8', 'two batches are there');
is($node->safe_psql('postgres', $jobs), 'waiting 12, leased 0, acked 8', 'what was not committed comes again');
$node->safe_psql('postgres', 'DROP TRIGGER hold ON dst');
$node->safe_psql('postgres', "CALL pubsub_ingest('jobs', 'dst', batch_size => 4)");
is($node->safe_psql('postgres', $rows), '20|20', 'all jobs, once');

# ====
# kill -9 while messages are being published: no row without its message
$node->safe_psql('postgres', "TRUNCATE dst; ALTER SERVER log OPTIONS (ADD dummy_hang 'drain')");
$s = session($node);
$s->query('BEGIN');
$s->query("INSERT INTO dst VALUES ('x')");
$s->query("INSERT INTO feed VALUES ('x')");
$s->send('COMMIT');
wait_for('the commit to wait', sub {
	return $node->safe_psql('postgres',
		"SELECT wait_event FROM pg_stat_activity WHERE pid = " . $s->pid) eq 'Extension';
});
kill_hard($s);
$node->safe_psql('postgres', "ALTER SERVER log OPTIONS (DROP dummy_hang)");
is($node->safe_psql('postgres', $rows), '0|0', 'no row');
is($node->safe_psql('postgres', 'SELECT count(*) FROM feed'), '20', 'no message either');

# ====
# Descriptors and threads after a thousand failures
my $fail = q{
DO $$
BEGIN
	FOR i IN 1..%d LOOP
		BEGIN
			PERFORM 1 / (data::int - 10) FROM feed;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
	END LOOP;
END $$};
$s = session($node);
$s->query(sprintf($fail, 10));
my $fds = backend_fds($s->pid);
my $threads = backend_threads($s->pid);

$s->query(sprintf($fail, 1000));
is(backend_fds($s->pid), $fds, 'as many descriptors as before');
is(backend_threads($s->pid), $threads, 'as many threads');
$s->quit;

# ====
# A dump takes servers, tables and positions along.
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->run_log([ 'sh', '-c', 'pg_dump postgres | psql -Xq -v ON_ERROR_STOP=1 restored',
], ) or diag('dump and restore failed');
is($node->safe_psql('restored', q{
LOAD 'pubsub_fdw_dummy';
SELECT count(*) FROM pubsub_consume(NULL::feed);
SELECT count(*) FROM feed;}), "0\n20", 'a restored database goes on where the other one was');

# ====
# In shared_preload_libraries nothing is started in the postmaster.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pubsub_fdw, pubsub_fdw_dummy'\n");
$node->restart;
my ($postmaster) = split(/\n/, PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid'));

is(backend_threads($postmaster), 1, 'the postmaster has one thread');
is($node->safe_psql('postgres', 'SELECT count(*) FROM feed'), '20', 'preloaded, it works');

# ====
# A standby may read, but neither consume nor publish.
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');

$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $node->connstr . "'\n");
$standby->set_standby_mode() if !-e $standby->data_dir . '/standby.signal';
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT count(*) FROM feed'), '20', 'a standby reads');
sql_fails($standby, 'SELECT count(*) FROM pubsub_consume(NULL::feed)',
	qr/cannot execute pubsub_consume\(\) (in a read-only transaction|during recovery)/,
	'a standby does not consume');
sql_fails($standby, "INSERT INTO feed VALUES ('x')",
	qr/cannot execute INSERT in a read-only transaction/, 'a standby does not publish');
$standby->stop('fast');
$node->stop('fast');

done_testing();
