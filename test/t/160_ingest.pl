# test/t/160_ingest.pl
#		pubsub_ingest() among others: sharing, kill -9, cancel, memory

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(time);

my $node = new_cluster('ingest', conf => "max_wal_size = 2GB\nwal_writer_delay = 10s\n");
my $shared = unique_name('shared');
my $one = unique_name('one');
my $bad = unique_name('bad');

kafka_server($node);
pubsub_server($node);

# The trigger of table "slow" stops at a row until the lock is free.
$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('kafka', '$shared', partitions => 8),
       pubsub_create_topic('kafka', '$one', partitions => 1),
       pubsub_create_topic('kafka', '$bad', partitions => 1);
CREATE FOREIGN TABLE shared (id int OPTIONS (field 'id'), "partition" int OPTIONS (metadata 'partition'))
  SERVER kafka OPTIONS (topic '$shared', format 'json', group_id 'g');
CREATE FOREIGN TABLE one (data text, "offset" bigint) SERVER kafka OPTIONS (topic '$one', group_id 'g');
CREATE FOREIGN TABLE bad_raw (data text) SERVER kafka OPTIONS (topic '$bad');
CREATE FOREIGN TABLE bad (id int, v int) SERVER kafka OPTIONS (topic '$bad', format 'json', group_id 'g');
INSERT INTO shared (id, "partition") SELECT i, i % 8 FROM generate_series(1, 80000) i;
INSERT INTO one (data) SELECT i::text FROM generate_series(1, 5000) i;
CREATE TABLE plain (id int, "partition" int, pid int DEFAULT pg_backend_pid());
CREATE TABLE slow (data text, "offset" bigint);
CREATE FUNCTION stop_at() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
  IF NEW.data = '2500' THEN PERFORM pg_advisory_xact_lock(1); END IF;
  RETURN NEW;
END \$\$;
CREATE TRIGGER stop_at BEFORE INSERT ON slow FOR EACH ROW EXECUTE FUNCTION stop_at();
});

# Until the backend waits for the lock
sub stopped
{
	my ($pid) = @_;

	return wait_for('the backend to stop', sub {
		$node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity
			WHERE pid = $pid AND wait_event = 'advisory'") eq '1';
	});
}

# ====
# Two calls at a time share the partitions: every row once, nobody waits for
# the other, and both have something to do.
my $s1 = session($node);
my $s2 = session($node);
my $call = "CALL pubsub_ingest('shared', 'plain', batch_size => 500)";

$_->send($call) foreach ($s1, $s2);
my @n = map { ($_->receive)[0] } ($s1, $s2);
is($n[0] + $n[1], 80000, 'two calls take all rows between them');
ok($n[0] > 0 && $n[1] > 0, "each some of them ($n[0] and $n[1])");
sql_ok($node, 'SELECT count(*), count(DISTINCT id), sum(id::bigint), count(DISTINCT pid) FROM plain',
	'80000|80000|3200040000|2', 'every row once');
sql_ok($node, "SELECT sum(next_offset) FROM pubsub_offsets WHERE topic = '$shared'",
	'80000', 'positions are at the end');

# ====
# A third call while others hold all that there is: 0 rows and a NOTICE, at
# once, as a queued run of a scheduler would.
$s1->query('BEGIN');
$s1->query("SELECT count(*) FROM pubsub_consume(NULL::one, max_records => 1, group_id => 'busy')");
within(2, sub {
	my ($rc, $out, $err) = sql($node,
		"CREATE TABLE busy (data text); CALL pubsub_ingest('one', 'busy', group_id => 'busy')");

	is($out, '0', 'nothing is taken from under another session');
	like($err, qr/NOTICE:  other sessions are consuming topic/, 'which is said');
}, 'without waiting');
$s1->query('ROLLBACK');
sql_ok($node, "CALL pubsub_ingest('one', 'busy', group_id => 'busy')", '5000', 'and later taken');

# ====
# kill -9 in the middle of a batch: what was committed stays, the rest comes
# again, every row once.
my $holder = session($node);

$holder->query('SELECT pg_advisory_lock(1)');
$s1->send("CALL pubsub_ingest('one', 'slow', batch_size => 1000)");
stopped($s1->pid);
sql_ok($node, 'SELECT count(*), max("offset") FROM slow', '2000|1999', 'two batches are committed');
kill 'KILL', $s1->pid;
wait_for('the crash to be over', sub { $node->poll_query_until('postgres', 'SELECT true') });
sql_ok($node, 'SELECT count(*), max("offset") FROM slow', '2000|1999', 'they survive the crash');
sql_ok($node, "CALL pubsub_ingest('one', 'slow', batch_size => 1000)", '3000', 'the rest comes again');
sql_ok($node, 'SELECT count(*), count(DISTINCT "offset"), sum(data::int) FROM slow',
	'5000|5000|12502500', 'every row once');
$_->quit foreach ($s1, $s2, $holder);

# ====
# Cancelled in the middle of a batch, and the server was altered meanwhile
$node->safe_psql('postgres', 'TRUNCATE slow');
$holder = session($node);
$s1 = session($node);
$holder->query('SELECT pg_advisory_lock(1)');
$s1->send("CALL pubsub_ingest('one', 'slow', batch_size => 1000, group_id => 'cancel')");
stopped($s1->pid);
$s1->cancel;
like(($s1->receive)[1], qr/57014/, 'cancelled');
sql_ok($node, 'SELECT count(*) FROM slow', '2000', 'two batches stay');
$s1->send("CALL pubsub_ingest('one', 'slow', batch_size => 1000, group_id => 'cancel')");
stopped($s1->pid);
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (ADD client_id 'other')");
$holder->query('SELECT pg_advisory_unlock(1)');
is(($s1->receive)[0], '3000', 'a call goes on though the server is altered');
sql_ok($node, 'SELECT count(*), count(DISTINCT "offset") FROM slow', '5000|5000', 'every row once');

# ====
# A broken session of the other kind: pg_terminate_backend
$node->safe_psql('postgres', 'TRUNCATE slow');
$holder->query('SELECT pg_advisory_lock(1)');
$s1->send("CALL pubsub_ingest('one', 'slow', batch_size => 1000, group_id => 'terminate')");
stopped($s1->pid);
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $s1->pid . ')');
like(($s1->receive)[1], qr/57P01|terminating connection/, 'terminated');
$holder->query('SELECT pg_advisory_unlock(1)');
sql_ok($node, "CALL pubsub_ingest('one', 'slow', batch_size => 1000, group_id => 'terminate')",
	'3000', 'the next session goes on');
sql_ok($node, 'SELECT count(*), count(DISTINCT "offset") FROM slow', '5000|5000', 'every row once');

# ====
# A malformed message stops the feed: the error names it, the batches before it
# stay, and the next call stops at the same one.
$node->safe_psql('postgres', q[
INSERT INTO bad_raw SELECT CASE i WHEN 500 THEN '{"id": 500, "v"' ELSE json_build_object('id', i, 'v', i)::text END
  FROM generate_series(1, 1000) i;
CREATE TABLE good (id int, v int);
]);
foreach my $try (1, 2)
{
	my $err = sql_fails($node, "\\set VERBOSITY verbose\nCALL pubsub_ingest('bad', 'good', batch_size => 100)",
		qr/ERROR:  22P02/, "a malformed message is an error, try $try");

	like($err, qr/partition 0, offset 499/, 'which names the message');
	sql_ok($node, 'SELECT count(*), max(id) FROM good', '400|400', 'what came before is there');
}

# ====
# Failing calls leave nothing open: threads, descriptors, locks.
$s1 = session($node);
$s1->query("CALL pubsub_ingest('bad', 'good', batch_size => 100)");
my @before = (backend_threads($s1->pid), backend_fds($s1->pid));

$s1->query("CALL pubsub_ingest('bad', 'good', batch_size => 100)") foreach (1 .. 30);
wait_for('threads to end', sub { backend_threads($s1->pid) <= $before[0] });
cmp_ok(backend_fds($s1->pid), '<=', $before[1], 'no descriptor is left open');
is(($s1->query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))[0], '0', 'no lock is left');

# ====
# An idle wait on a queue ends in time: statement_timeout, a cancel.
my $sub = unique_name('idle');

$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$sub'), pubsub_create_subscription('google', '$sub', '$sub');
CREATE FOREIGN TABLE queue (id int) SERVER google OPTIONS (topic '$sub', subscription '$sub', format 'json', poll_timeout '60s');
CREATE TABLE from_queue (id int, pid int DEFAULT pg_backend_pid());
INSERT INTO queue SELECT generate_series(1, 100);
});
$s1->query("SET statement_timeout = '2s'");
within(4, sub {
	like(($s1->query("CALL pubsub_ingest('queue', 'from_queue', batch_size => 50)"))[1], qr/57014/,
		'statement_timeout ends an idle wait');
}, 'in time');
$s1->query('RESET statement_timeout');
sql_ok($node, 'SELECT count(*), count(DISTINCT id) FROM from_queue', '100|100', 'full batches were committed');
$s1->send("CALL pubsub_ingest('queue', 'from_queue')");
wait_for('the call to begin', sub {
	$node->safe_psql('postgres', 'SELECT state FROM pg_stat_activity WHERE pid = ' . $s1->pid) eq 'active';
});
within(2, sub {
	$s1->cancel;
	like(($s1->receive)[1], qr/57014/, 'so does a cancel');
}, 'at once');

# ====
# Two calls share a subscription.
$node->safe_psql('postgres', q{
ALTER FOREIGN TABLE queue OPTIONS (SET poll_timeout '500ms');
TRUNCATE from_queue;
INSERT INTO queue SELECT generate_series(1, 5000);
});
$s2 = session($node);
$_->send("CALL pubsub_ingest('queue', 'from_queue', batch_size => 200)") foreach ($s1, $s2);
@n = map { ($_->receive)[0] } ($s1, $s2);
is($n[0] + $n[1], 5000, "two calls share a subscription ($n[0] and $n[1])");
sql_ok($node, 'SELECT count(*), count(DISTINCT id) FROM from_queue', '5000|5000', 'every message once');

# ====
# A batch that fills slowly is committed before it is full.
$node->safe_psql('postgres', "ALTER FOREIGN TABLE queue OPTIONS (SET poll_timeout '10s')");
$node->safe_psql('postgres', 'TRUNCATE from_queue');
$s1->send("CALL pubsub_ingest('queue', 'from_queue')");
my $i = 0;

wait_for('a batch that is not full', sub {
	$node->safe_psql('postgres', 'INSERT INTO queue VALUES (' . ++$i . ')');
	$node->safe_psql('postgres', 'SELECT count(*) FROM from_queue') > 0;
}, 20);
ok(!$s1->ready, 'a batch is committed though the call goes on');
$s1->cancel;
like(($s1->receive)[1], qr/57014/, 'and can still be cancelled');

# ====
# Messages are acknowledged after the rows are safe, also where the session does
# not ask for it.
$node->safe_psql('postgres', q{
TRUNCATE from_queue;
ALTER FOREIGN TABLE queue OPTIONS (SET poll_timeout '500ms');
CALL pubsub_ingest('queue', 'from_queue');
TRUNCATE from_queue;
INSERT INTO queue SELECT generate_series(1, 100);
});
$s2->query('SET synchronous_commit = off');
is(($s2->query("CALL pubsub_ingest('queue', 'from_queue')"))[0], '100', 'ingested without synchronous_commit');
$_->quit foreach ($s1, $s2, $holder);
$node->stop('immediate');
$node->start;
sql_ok($node, "CALL pubsub_ingest('queue', 'from_queue')", '0', 'acknowledged');
sql_ok($node, 'SELECT count(*) FROM from_queue', '100', 'and safe');

# ====
# Memory is the same for many rows as for few.
sub memory
{
	my ($pid) = @_;

	open(my $fh, '<', "/proc/$pid/status") or die "/proc/$pid/status: $!\n";
	my ($kb) = map { /^RssAnon:\s+(\d+)/ ? $1 : () } <$fh>;
	close $fh;
	return $kb;
}

$node->safe_psql('postgres', q{
INSERT INTO shared (id) SELECT generate_series(1, 1000000);
CREATE TABLE many (id int);
CREATE TABLE many_keys (id int PRIMARY KEY);
});
$s1 = session($node);
foreach my $target ([ 'many', 'error', 1080000 ], [ 'many_keys', 'nothing', 1000000 ])
{
	my ($table, $conflict, $expected) = @$target;
	my $arguments = "'shared', '$table', on_conflict => '$conflict', group_id => '$table'";
	my $most = 0;

	$s1->query("CALL pubsub_ingest($arguments, max_records => 200000)");
	my $first = memory($s1->pid);

	$s1->send("CALL pubsub_ingest($arguments)");
	until ($s1->ready)
	{
		my $now = memory($s1->pid);

		$most = $now if $now > $most;
		Time::HiRes::sleep(0.01);
	}
	$s1->receive;
	sql_ok($node, "SELECT count(*), count(DISTINCT id) FROM $table", "$expected|1000000", "a million rows into $table");
	cmp_ok($most - $first, '<', 40 * 1024, "without more memory than for some ($first kB, then $most kB)");
}

$s1->quit;
$node->stop;
done_testing();
