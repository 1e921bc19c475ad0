# test/t/031_kafka_process.pl
#		What librdkafka leaves in the process of a backend: threads, descriptors,
#		signals, its exit

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use IO::Socket::INET;
use PubsubTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = new_cluster('process',
	conf => "shared_preload_libraries = 'pubsub_fdw'\nmax_connections = 150\n");
my ($out, $err);

my $topic = unique_name('process');
kafka_server($node);
kafka_server($node, name => 'tls', bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP},
	security_protocol => 'sasl_ssl', sasl_mechanism => 'PLAIN', ssl_ca_pem => $ENV{KAFKA_CA_PEM},
	mapping => { sasl_username => $ENV{KAFKA_USER}, sasl_password => $ENV{KAFKA_PASSWORD} });
$node->safe_psql('postgres',
	"SELECT pubsub_create_topic('kafka', '$topic', partitions => 4);
	CREATE FOREIGN TABLE plain (data text) SERVER kafka OPTIONS (topic '$topic', group_id 'g');
	CREATE FOREIGN TABLE plain_json (data jsonb) SERVER kafka OPTIONS (topic '$topic');
	CREATE FOREIGN TABLE nowhere (data text) SERVER kafka OPTIONS (topic '${topic}_nowhere');
	CREATE FOREIGN TABLE tls (data text) SERVER tls OPTIONS (topic '$topic')");
kafka_tool('fill', $topic, 4, 20000, 100);

#
# Preloaded: nothing is started in the postmaster
#
my $postmaster = PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid');
($postmaster) = $postmaster =~ /^(\d+)/;
is(backend_threads($postmaster), 1, 'the postmaster has one thread');
my $maps = PostgreSQL::Test::Utils::slurp_file("/proc/$postmaster/maps");
like($maps, qr/librdkafka/, 'although the library is there');
is($node->safe_psql('postgres', 'SELECT count(*) FROM plain'), '20000', 'and works in its backends');

#
# Threads block all signals, and go with what they were for
#
my $s = session($node);
my $pid = $s->pid;

# The masks of blocked signals of the threads but the backend's own
sub masks
{
	my @masks;

	foreach my $task (glob "/proc/$pid/task/*")
	{
		next if $task =~ m,/$pid$,;
		my $status = eval { PostgreSQL::Test::Utils::slurp_file("$task/status") } // next;
		push @masks, $status =~ /^SigBlk:\s+(\w+)/m;
	}
	return @masks;
}

is(backend_threads($pid), 1, 'a session has one thread');
foreach my $table ('plain', 'tls')
{
	$s->query("BEGIN; DECLARE c CURSOR FOR SELECT data FROM $table; FETCH 1 FROM c; INSERT INTO $table VALUES ('x')");
	my @masks = masks();

	cmp_ok(scalar @masks, '>=', 4, "$table: there are threads");
	# All but KILL and STOP, and 32 and 33, which libc keeps from being blocked
	my @open = grep { $_ ne 'fffffffe7ffbfeff' } @masks;
	is("@open", '', "$table: which block all signals");
	$s->query('ROLLBACK');
}
$s->query('SELECT pubsub_disconnect()');
wait_for('the threads to end', sub { backend_threads($pid) == 1 }, 10);

# a first round, for what a process opens once
my $round = sub {
	my $n = 0;

	foreach my $sql ('SELECT * FROM plain LIMIT 1', 'SELECT count(data) FROM plain_json', 'SELECT * FROM nowhere',
		'SELECT count(*) FROM plain a', "INSERT INTO plain VALUES (repeat('x', 2000000))", "INSERT INTO nowhere VALUES ('x')",
		"BEGIN; INSERT INTO plain VALUES ('x'); ROLLBACK", 'BEGIN; DECLARE c CURSOR FOR SELECT data FROM plain; FETCH 1 FROM c; SELECT 1/0; ROLLBACK',
		'BEGIN; SELECT count(*) FROM pubsub_consume(NULL::plain, max_records => 10); ROLLBACK',
		"SELECT pubsub_create_topic('kafka', '$topic', partitions => 1)", 'SELECT * FROM tls LIMIT 1',
		"BEGIN; SAVEPOINT a; SELECT * FROM plain_json LIMIT 1; ROLLBACK TO a; SELECT * FROM plain LIMIT 1; COMMIT",
		"SET statement_timeout = 3; SELECT count(*) FROM plain a, plain b; RESET statement_timeout")
	{
		$s->query($sql);
		$n++;
	}
	return $n;
};
$round->();
$s->query('SELECT pubsub_disconnect()');
wait_for('the threads to end', sub { backend_threads($pid) == 1 }, 10);
my $fds = backend_fds($pid);
my $n = 0;
$n += $round->() while $n < 300;
($out, $err) = $s->query('SELECT count(*) FROM plain');
is("$out$err", '20000', "$n statements that failed, or stopped early: the session goes on");
$s->query('SELECT pubsub_disconnect()');
wait_for('the threads to end', sub { backend_threads($pid) == 1 }, 10);
is(backend_threads($pid), 1, 'they left no thread');
is(backend_fds($pid), $fds, 'and no descriptor');

# cancelled while connecting, to a host that does not answer
my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100) or die $!;
kafka_server($node, name => 'silent', bootstrap_servers => '127.0.0.1:' . $silent->sockport);
$node->safe_psql('postgres', "CREATE FOREIGN TABLE silent (data text) SERVER silent OPTIONS (topic 'x')");
my $start = time();
foreach my $i (1 .. 10)
{
	$s->query("SET statement_timeout = '20ms'; SELECT * FROM silent; INSERT INTO silent VALUES ('x')");
}
cmp_ok(time() - $start, '<', 6, 'cancelled while it connects, again and again');
$s->query('RESET statement_timeout; SELECT pubsub_disconnect()');
wait_for('the threads to end', sub { backend_threads($pid) == 1 }, 20);
is(backend_threads($pid), 1, 'no thread is left of these');
is(backend_fds($pid), $fds, 'and no descriptor');
# a session that ends while it connects
$s->send('SELECT * FROM silent');
sleep 0.1;
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_for('the backend to end', sub { !-e "/proc/$pid" }, 5);
$s->quit;
$silent->close;

#
# Many sessions that come, read over TLS, and go
#
my @sessions = map {
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SELECT count(*) FROM tls' ],
		'<', \'', '>', \my $out, '2>', \my $err, IPC::Run::timer(120));
	} 1 .. 20;
ok($_->finish, 'a session of twenty at a time') foreach @sessions;
my $script = "SELECT data FROM tls LIMIT 1;\n\\c\n" x 80;
($out, $err) = ('', '');
my $rc = $node->psql('postgres', $script, stdout => \$out, stderr => \$err, timeout => 120);
is($rc, 0, 'and eighty, one after the other') or diag($err);
is(scalar(() = $out =~ /^\d+ x/mg), 80, 'each of which has read');
# exits in the middle
foreach my $i (1 .. 10)
{
	my $t = session($node);

	$t->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM tls; FETCH 1 FROM c; INSERT INTO tls VALUES (\'x\')');
	$t->quit;
}
is($node->safe_psql('postgres', "SELECT count(*) FROM plain WHERE data = 'x'"), '0', 'sessions that end in a transaction publish nothing');

$node->stop('fast');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
unlike($log, qr/PANIC|was terminated by signal|terminating any other|SEGV/, 'no crash in the log');
done_testing();
