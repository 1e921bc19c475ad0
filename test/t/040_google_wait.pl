# test/t/040_google_wait.pl
#		Waiting for Pub/Sub: it ends when it should, whoever ends it, and what a
#		pull was about to bring is not lost (P03, F11, F14)

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use IO::Socket::INET;
use POSIX ();
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_cluster('main', conf => "shared_preload_libraries = 'pubsub_fdw'\n");

# Nothing is started in the postmaster.
my $postmaster = $node->safe_psql('postgres',
	"SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)");
is(backend_threads($postmaster), 1, 'the postmaster has no thread');

my $name = unique_name('wait');

pubsub_server($node);
$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$name');
SELECT pubsub_create_subscription('google', '$name', '$name');
CREATE FOREIGN TABLE t (data text) SERVER google
	OPTIONS (topic '$name', subscription '$name', poll_timeout '60s', max_read_time '60s')});

# How long a statement took, and what it said
sub timed
{
	my ($s, $sql) = @_;
	my $start = time();
	my ($out, $err) = $s->query($sql);

	return (time() - $start, $out, $err);
}

# Processor time of a backend with its threads, in seconds
sub cpu
{
	my ($pid) = @_;

	open my $fh, '<', "/proc/$pid/stat" or die "/proc/$pid/stat: $!\n";
	my @fields = split(' ', <$fh> =~ s/.*\) //sr);
	close $fh;
	return ($fields[11] + $fields[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

#
# An empty subscription
#
my $s = session($node);
my $cpu = cpu($s->pid);
my ($took, $out, $err) = timed($s,
	"SELECT count(*) FROM pubsub_read(NULL::t, max_read_time => '3 s')");

is($out, '0', 'an empty subscription has no rows');
like($err, qr/NOTICE:  .*max_read_time/, 'max_read_time ended the read');
cmp_ok(abs($took - 3), '<', 0.5, '... in time');
cmp_ok(cpu($s->pid) - $cpu, '<', 0.5, '... asleep');

foreach my $sql ('SELECT * FROM t', 'SELECT * FROM pubsub_consume(NULL::t)',
	'INSERT INTO t SELECT * FROM pubsub_consume(NULL::t)')
{
	$s->query("SET statement_timeout = '700ms'");
	($took, $out, $err) = timed($s, $sql);
	like($err, qr/ERROR:  57014: .*statement timeout/, "statement_timeout: $sql");
	cmp_ok($took, '<', 1.2, '... in time');
	$s->query('RESET statement_timeout');

	# into the middle of a pull
	$s->send($sql);
	sleep 0.3;
	ok(!$s->ready, 'it waits');
	within(0.8, sub { $s->cancel; (undef, $err) = $s->receive; },
		"pg_cancel_backend: $sql");
	like($err, qr/ERROR:  57014: .*user request/, '... canceled');
	is(($s->query('SELECT 42'))[0], '42', '... the session goes on');
}

#
# No pull was abandoned: what is published after a cancel comes at once, though
# pulls of a minute were in flight.
#
foreach my $how (qw(cancel timeout terminate read_time limit))
{
	my $reader = session($node);

	if ($how eq 'cancel')
	{
		$reader->send('SELECT * FROM t');
		sleep 0.3;
		$reader->cancel;
		$reader->receive;
	}
	elsif ($how eq 'timeout')
	{
		$reader->query("SET statement_timeout = '300ms'; SELECT * FROM t");
	}
	elsif ($how eq 'terminate')
	{
		$reader->send('SELECT * FROM pubsub_consume(NULL::t)');
		sleep 0.3;
		within(2, sub {
			$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $reader->pid . ')');
			$reader->receive;
		}, 'pg_terminate_backend ends it');
	}
	elsif ($how eq 'read_time')
	{
		$reader->query("SELECT * FROM pubsub_consume(NULL::t, max_read_time => '300 ms')");
	}
	else
	{
		$node->safe_psql('postgres', "INSERT INTO t VALUES ('one')");
		is(($reader->query("SELECT * FROM pubsub_consume(NULL::t, 1)"))[0], 'one',
			'max_records ends a read');
	}
	$node->safe_psql('postgres', "INSERT INTO t SELECT '$how ' || i FROM generate_series(1, 20) i");
	($took, $out, $err) = timed($s,
		"SELECT count(*), count(DISTINCT data) FROM pubsub_consume(NULL::t, 20, '20 s')");
	is($out, '20|20', "all messages come after $how");
	cmp_ok($took, '<', 2, '... at once');
	$reader->quit;
}

#
# Threads have all signals blocked.
#
my @masks;
$s->query("BEGIN; SELECT * FROM pubsub_consume(NULL::t, max_read_time => '200 ms')");
foreach my $task (glob('/proc/' . $s->pid . '/task/*'))
{
	next if $task eq '/proc/' . $s->pid . '/task/' . $s->pid;
	open my $fh, '<', "$task/status" or next;
	push @masks, grep { s/^SigBlk:\s+(\S+)\n/$1/ } <$fh>;
	close $fh;
}
cmp_ok(scalar(@masks), '>=', 1, 'there is a lease thread');

# The kernel and the C library let nobody block KILL, STOP, and 32 to 34.
my @unblocked = grep {
	my $mask = hex(substr($_, 8)) | (hex(substr($_, 0, 8)) << 32);
	my $free = (1 << 8) | (1 << 18) | (1 << 31) | (1 << 32);
	(~$mask & ~$free) != 0
} @masks;
is("@unblocked", '', 'it has all signals blocked');
$s->query('COMMIT');

#
# A server that accepts and never answers, and one that does not even accept
#
my $deaf = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1')
  or die "no socket: $!";
my $port = $deaf->sockport;

pubsub_server($node, name => 'deaf', endpoint => "http://127.0.0.1:$port",
	connect_timeout => '500ms', request_timeout => '1s');
pubsub_server($node, name => 'deaf_tls', endpoint => "https://127.0.0.1:$port",
	connect_timeout => '500ms', request_timeout => '1s');
pubsub_server($node, name => 'closed', endpoint => 'http://127.0.0.1:1',
	connect_timeout => '500ms', request_timeout => '1s');
pubsub_server($node, name => 'nowhere', endpoint => 'http://no-such-host.invalid:1',
	connect_timeout => '500ms', request_timeout => '1s');
foreach my $server (qw(deaf deaf_tls closed nowhere))
{
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE t_$server (data text) SERVER $server OPTIONS (topic 'abc', subscription 'abc')");
	foreach my $sql ("SELECT * FROM t_$server",
		"SELECT * FROM pubsub_consume(NULL::t_$server)",
		"INSERT INTO t_$server VALUES ('x')",
		"SELECT pubsub_create_topic('$server', 'abc')")
	{
		($took, $out, $err) = timed($s, $sql);
		# administration goes by request_timeout
		like($err, $server eq 'deaf' && $sql =~ /create/ ?
			qr/ERROR:  08006: .*"projects.regress-project.topics.abc"/ :
			qr/ERROR:  08001: .*"$server"/, "$server: $sql");
		cmp_ok($took, '<', 1.5, '... in time');
	}
}
$s->query("ALTER SERVER deaf OPTIONS (SET connect_timeout '60s', SET request_timeout '60s')");
$s->query("ALTER SERVER deaf_tls OPTIONS (SET connect_timeout '60s', SET request_timeout '60s')");
foreach my $sql ('SELECT * FROM t_deaf', 'SELECT * FROM t_deaf_tls',
	"INSERT INTO t_deaf VALUES ('x')", "INSERT INTO t_deaf_tls VALUES ('x')",
	"SELECT pubsub_create_topic('deaf', 'abc')")
{
	$s->send($sql);
	sleep 0.3;
	ok(!$s->ready, 'it waits');
	within(0.8, sub { $s->cancel; (undef, $err) = $s->receive; }, "cancel: $sql");
	like($err, qr/ERROR:  57014: /, '... canceled');
}
is(($s->query("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 't_deaf'::regclass"))[0],
	'0', 'no lock is left');

#
# The server shuts down while sessions wait.
#
my @waiting = map { session($node) } 1 .. 4;
$waiting[0]->send('SELECT * FROM t');
$waiting[1]->send('SELECT * FROM pubsub_consume(NULL::t)');
$waiting[2]->send('SELECT * FROM t_deaf');
$waiting[3]->send("INSERT INTO t_deaf_tls VALUES ('x')");
sleep 0.3;
within(4, sub { $node->stop('fast'); }, 'pg_ctl stop -m fast');
$_->quit foreach @waiting, $s;

my $log = slurp($node->logfile);
unlike($log, qr/was terminated by signal|PANIC|TRAP/, 'no crash');

# Nothing of it is left at the broker.
$node->start;
sql_ok($node, "INSERT INTO t VALUES ('last'); SELECT * FROM pubsub_consume(NULL::t, 1, '5 s')",
	'last', 'a message comes after the restart');
$node->stop;

sub slurp
{
	my ($file) = @_;

	open my $fh, '<', $file or die "$file: $!\n";
	local $/;
	return <$fh>;
}

done_testing();
