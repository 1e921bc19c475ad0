# test/t/044_google_leak.pl
#		What 300 statements that failed, were canceled or were cut short leave
#		behind: nothing.  Memory does not grow with messages, rows or rescans
#		(F10).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_cluster('main');
my $topic = unique_name('leak');

pubsub_server($node);
$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$topic');
SELECT pubsub_create_subscription('google', '$topic', '$topic');
SELECT pubsub_create_subscription('google', '$topic-empty', '$topic');
CREATE FOREIGN TABLE t (data text, message_id text) SERVER google
	OPTIONS (topic '$topic', subscription '$topic', max_read_time '20s', batch_size '1000');
INSERT INTO t (data) SELECT i::text FROM generate_series(1, 10) i;
CREATE FOREIGN TABLE empty (data text) SERVER google
	OPTIONS (subscription '$topic-empty', poll_timeout '30s')});

# The topic's messages of the second subscription are in nobody's way.
$node->safe_psql('postgres', 'SELECT * FROM pubsub_consume(NULL::empty, 10)');

#
# Threads and descriptors
#
my $s = session($node);

sub round
{
	my $n = 0;

	foreach my $sql ('SELECT 1 / (length(data) - length(data)) FROM t',
		'SELECT * FROM t LIMIT 1',
		'SELECT * FROM pubsub_consume(NULL::t, 3) WHERE 1 / (length(data) - length(data)) = 1',
		'BEGIN; SELECT * FROM pubsub_consume(NULL::t, 3); SAVEPOINT a; SELECT * FROM pubsub_consume(NULL::t, 3); ROLLBACK TO a; ROLLBACK',
		"SET statement_timeout = '20ms'; SELECT * FROM empty; RESET statement_timeout",
		"SET statement_timeout = '20ms'; SELECT * FROM pubsub_consume(NULL::empty); RESET statement_timeout",
		"SELECT * FROM pubsub_read(NULL::empty, max_read_time => '10 ms')",
		'BEGIN; DECLARE c CURSOR FOR SELECT * FROM t; FETCH 2 c; SELECT 1/0; ROLLBACK')
	{
		$s->query($sql);
		$n++;
	}
	return $n;
}

# Pulls that lost their reader are seen through, so wait for that.
sub settled
{
	my ($threads, $fds) = @_;

	return wait_for('threads and descriptors', sub {
		return backend_threads($s->pid) <= $threads && backend_fds($s->pid) <= $fds;
	}, 10);
}

round();
sleep 3;
my $threads = backend_threads($s->pid);
my $fds = backend_fds($s->pid);
my $n = 0;
$n += round() while $n < 300;
ok(settled($threads, $fds), "$n statements: no thread and no descriptor is left");
is($threads, 2, 'there is one lease thread');
is(($s->query('SELECT count(DISTINCT message_id) FROM pubsub_consume(NULL::t, 10)'))[0], 10,
	'and no message was lost');
is(($s->query("SELECT count(*) FROM pubsub_read(NULL::t, max_read_time => '300 ms')"))[0], 0,
	'nor made twice');
$s->query('SELECT pubsub_disconnect()');
is(backend_threads($s->pid), 1, 'pubsub_disconnect() ends the thread');
$s->quit;

#
# Memory, in kB
#
sub memory
{
	my ($pid, $what) = @_;

	open my $fh, '<', "/proc/$pid/status" or die "/proc/$pid/status: $!\n";
	my ($kb) = map { /^$what:\s+(\d+) kB/ ? $1 : () } <$fh>;
	close $fh;
	return $kb;
}

$s = session($node);
$s->query("SET pubsub_fdw.publish_buffer_size = '1MB'");
$s->query("INSERT INTO t (data) SELECT repeat('x', 100) FROM generate_series(1, 5000)");
my $before = memory($s->pid, 'VmHWM');
$s->query("INSERT INTO t (data) SELECT repeat('x', 100) FROM generate_series(1, 95000)");
cmp_ok(memory($s->pid, 'VmHWM') - $before, '<', 24_000, 'publishing 95,000 messages takes less than 24 MB');
$s->quit;

$s = session($node);
my ($out, $err) = $s->query(q{
CREATE TABLE dst (message_id text, data text);
CREATE PROCEDURE take(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		INSERT INTO dst SELECT message_id, data FROM pubsub_consume(NULL::t, 5000);
		COMMIT;
	END LOOP;
END $$;
CALL take(4)});
is($err, '', '20,000 messages are consumed');
$before = memory($s->pid, 'RssAnon');
($out, $err) = $s->query('CALL take(16)');
is($err, '', '80,000 more');
is(($s->query('SELECT count(*), count(DISTINCT message_id), sum(length(data)) FROM dst'))[0],
	'100000|100000|10000000', 'all of them');
cmp_ok(memory($s->pid, 'RssAnon') - $before, '<', 10_000, 'that takes less than 10 MB more');
$s->quit;

$s = session($node);
$s->query("INSERT INTO t (data) SELECT i::text FROM generate_series(1, 10) i");
$s->query('SET jit = off; SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off');
my $loop = 'SELECT count(*), count(DISTINCT message_id) FROM generate_series(1, %d) i LEFT JOIN (SELECT * FROM t LIMIT 10) t ON length(t.data) > 0 AND i > 0';
is(($s->query(sprintf($loop, 10)))[0], '100|10', 'rescans');
$before = memory($s->pid, 'RssAnon');
is(($s->query("SELECT count(*) FROM generate_series(1, 100000) i CROSS JOIN LATERAL (SELECT 1 FROM t WHERE i > 0 LIMIT 5) q"))[0],
	500000, '100,000 rescans');
cmp_ok(memory($s->pid, 'RssAnon') - $before, '<', 10_000, 'take less than 10 MB');
$s->quit;

$node->stop;
done_testing();
