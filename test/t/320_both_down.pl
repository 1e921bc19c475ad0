# test/t/320_both_down.pl
#		A broker that is away, frozen or comes back: errors in bounded time,
#		cancel at once, nothing reported as sent, and the session goes on

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_cluster('main');
my %broker = (kafka => 'kafka', google => 'pubsub');
my %timeouts = (connect_timeout => '3s', request_timeout => '4s');

kafka_server($node, %timeouts);
pubsub_server($node, %timeouts);

# The emulator forgets everything when it ends, so tables are made anew.
sub make_table
{
	my ($server) = @_;
	my $name = unique_name('down');

	$node->safe_psql('postgres', "SELECT pubsub_create_topic('$server', '$name', "
		  . ($server eq 'kafka' ? '2' : 'NULL') . ")");
	$node->safe_psql('postgres', "SELECT pubsub_create_subscription('google', '$name', '$name')")
	  if $server eq 'google';
	$node->safe_psql('postgres',
		"DROP FOREIGN TABLE IF EXISTS t_$server;"
		  . "CREATE FOREIGN TABLE t_$server (data text) SERVER $server OPTIONS (topic '$name'"
		  . ($server eq 'kafka' ? ", group_id 'down')" :
			  ", subscription '$name', poll_timeout '500ms')"));
	return;
}

# A statement that must fail within some seconds, and tell why
sub bounded_error
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($s, $sql, $seconds, $pattern, $name) = @_;
	my $err;

	within($seconds, sub { (undef, $err) = $s->query($sql) }, "$name: in time");
	like($err, $pattern, $name);
	return;
}

# A statement that hangs ends at once when it is cancelled or times out
sub cancellable
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($s, $sql, $name) = @_;
	my $err;

	$s->send($sql);
	sleep 0.5;
	ok(!$s->ready, "$name waits");
	within(1, sub { $s->cancel; (undef, $err) = $s->receive; }, "$name: cancel is quick");
	like($err, qr/57014/, "$name: canceled");

	$s->query("SET statement_timeout = '300ms'");
	within(1.3, sub { (undef, $err) = $s->query($sql); }, "$name: statement_timeout is kept");
	like($err, qr/57014/, "$name: timed out");
	$s->query('RESET statement_timeout');
	$s->query('ROLLBACK');
	is(($s->query('SELECT 42'))[0], '42', "$name: the session goes on");
	return;
}

foreach my $server (qw(kafka google))
{
	my $s = session($node);

	make_table($server);
	$s->query("INSERT INTO t_$server VALUES ('before')");
	is(($s->query("SELECT data FROM t_$server"))[0], 'before', "$server works");
	my $fds = backend_fds($s->pid);
	my $threads = backend_threads($s->pid);

	# Stopped: nobody listens
	broker('stop', $broker{$server});
	bounded_error($s, "SELECT * FROM t_$server", 6,
		qr/ERROR:  (08001|08006): .*"\Q$server\E"|ERROR:  08006: .*"t_\Q$server\E"/,
		"$server stopped: reading");
	bounded_error($s, "INSERT INTO t_$server VALUES ('lost')", 10,
		qr/ERROR:  0800[16]: /, "$server stopped: publishing");
	my $fresh = session($node);
	bounded_error($fresh, "SELECT * FROM t_$server", 6,
		qr/ERROR:  08001: .*"\Q$server\E"/, "$server stopped: a first read");
	bounded_error($fresh, "INSERT INTO t_$server VALUES ('lost')", 10,
		qr/ERROR:  0800[16]: /, "$server stopped: a first publication");
	$fresh->quit;

	# Back again: the same session finds it
	broker('start', $broker{$server});
	make_table($server) if $server eq 'google';
	$s->query("INSERT INTO t_$server VALUES ('after')");
	my ($out) = $s->query("SELECT string_agg(data, ',' ORDER BY data) FROM t_$server");
	is($out, $server eq 'kafka' ? 'after,before' : 'after',
		"$server is back: nothing that failed was sent, what was committed is there");

	# Frozen: it listens and does not answer
	broker('freeze', $broker{$server});
	cancellable($s, "SELECT * FROM t_$server", "$server frozen: reading");
	cancellable($s, "INSERT INTO t_$server VALUES ('frozen')",
		"$server frozen: publishing");
	bounded_error($s, "SELECT * FROM t_$server", 12,
		qr/ERROR:  0800[16]: /, "$server frozen: reading");
	broker('thaw', $broker{$server});
	wait_for("$server to answer", sub {
		return ($s->query("SELECT count(*) > 0 FROM t_$server"))[0] eq 't';
	});

	# Nothing is left behind by all that
	$s->query("SELECT pubsub_disconnect()");
	wait_for("the threads of $server to end", sub {
		return backend_threads($s->pid) == 1;
	}, 10);
	pass("$server: no thread is left after pubsub_disconnect()");
	cmp_ok(backend_fds($s->pid), '<=', $fds,
		"$server: no descriptor is left after all the errors");
	$s->quit;
}

$node->stop;
done_testing();
