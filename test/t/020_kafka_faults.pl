# test/t/020_kafka_faults.pl
#		A Kafka that is gone, frozen, or no Kafka at all: errors in time, never
#		a short result, nothing reported as sent that was not; cancelling

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use IO::Socket::INET;
use PubsubTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = new_cluster('faults');
kafka_server($node, connect_timeout => '2s', request_timeout => '1500ms');

sub make
{
	my ($table, $partitions, $records, $bytes) = @_;
	my $topic = unique_name($table);

	$node->safe_psql('postgres',
		"SELECT pubsub_create_topic('kafka', '$topic', partitions => $partitions);
		CREATE FOREIGN TABLE $table (data text, \"partition\" int, \"offset\" bigint)
		SERVER kafka OPTIONS (topic '$topic', group_id 'g')");
	kafka_tool('fill', $topic, $partitions, $records, $bytes) if $records;
	return $topic;
}

sub value
{
	return $node->safe_psql('postgres', $_[0]);
}

# fails(SESSION, SQL, REGEXP, MIN, MAX SECONDS, NAME): it fails like that, and
# that fast
sub fails
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($session, $sql, $regexp, $min, $max, $name) = @_;
	my $start = time();
	my ($out, $err) = $session->query($sql);
	my $took = time() - $start;

	like($err, $regexp, $name);
	is($out, '', "$name: no result");
	ok($took >= $min && $took <= $max, "$name: in time")
	  or diag("took $took s");
	return $err;
}

my $s = session($node);
my ($out, $err);

#
# Whoever listens there never answers
#
my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100) or die $!;
my $address = '127.0.0.1:' . $silent->sockport;
kafka_server($node, name => 'silent', bootstrap_servers => $address, connect_timeout => '1s');
kafka_server($node, name => 'silent_tls', bootstrap_servers => $address, connect_timeout => '1s',
	security_protocol => 'ssl');
kafka_server($node, name => 'patient', bootstrap_servers => $address, connect_timeout => '60s');
$node->safe_psql('postgres',
	"CREATE FOREIGN TABLE silent (data text) SERVER silent OPTIONS (topic 'x', group_id 'g');
	CREATE FOREIGN TABLE silent_tls (data text) SERVER silent_tls OPTIONS (topic 'x');
	CREATE FOREIGN TABLE patient (data text) SERVER patient OPTIONS (topic 'x', group_id 'g')");

my %statement = (
	'SELECT' => 'SELECT * FROM %s',
	'consume' => 'SELECT * FROM pubsub_consume(NULL::%s)',
	'INSERT' => "INSERT INTO %s VALUES ('x')",
	'create_topic' => "SELECT pubsub_create_topic('%s', 'x')",
	'drop_topic' => "SELECT pubsub_drop_topic('%s', 'x')");
foreach my $name (sort keys %statement)
{
	$err = fails($s, sprintf($statement{$name}, 'silent'), qr/08001: could not connect to server "silent"/,
		0.9, 1.8, "connect timeout: $name");
	like($err, qr/\Q$address\E/, "connect timeout: $name: names the address");
	fails($s, "SET statement_timeout = '300ms'; " . sprintf($statement{$name}, 'patient'), qr/57014: canceling statement due to statement timeout/,
		0.29, 0.8, "statement timeout: $name");
	$s->query('RESET statement_timeout');
	$s->send(sprintf($statement{$name}, 'patient'));
	sleep 0.2;
	my $start = time();
	$s->cancel;
	($out, $err) = $s->receive;
	like($err, qr/57014: canceling statement due to user request/, "cancel: $name");
	cmp_ok(time() - $start, '<', 0.6, "cancel: $name: at once");
}
fails($s, 'SELECT * FROM silent_tls', qr/08001: could not connect to server "silent_tls"/, 0.9, 1.8, 'connect timeout in a TLS handshake');
($out, $err) = $s->query('SELECT 1');
is("$out$err", '1', 'the session goes on');
# planning talks to nobody
within(0.5, sub { ($out, $err) = $s->query(
		'EXPLAIN SELECT * FROM patient; EXPLAIN INSERT INTO patient VALUES (\'x\'); EXPLAIN (GENERIC_PLAN OFF) SELECT 1;
		PREPARE p AS SELECT * FROM patient; EXPLAIN EXECUTE p'); }, 'EXPLAIN does not connect');
within(1, sub { ($out, $err) = $s->query('ANALYZE; ANALYZE patient'); }, 'ANALYZE does not connect');
like($err, qr/WARNING:.*skipping "patient"/, 'but says that it skips the table');

# terminated while it connects; the lock on the table goes with it
foreach my $name ('SELECT', 'INSERT')
{
	my $t = session($node);

	$t->send(sprintf($statement{$name}, 'patient'));
	sleep 0.2;
	value('SELECT pg_terminate_backend(' . $t->pid . ')');
	my $start = time();
	wait_for('the backend to end', sub { !-e "/proc/" . $t->pid }, 10);
	cmp_ok(time() - $start, '<', 2, "terminate: $name");
	($out, $err) = $t->receive;
	like($err, qr/terminating connection due to administrator command/, "terminate: $name: is said");
}
$node->safe_psql('postgres', "SET lock_timeout = '1s'; ALTER FOREIGN TABLE patient OPTIONS (SET topic 'y')");
close $silent;

#
# Nobody listens, no such host
#
kafka_server($node, name => 'refused', bootstrap_servers => $address, connect_timeout => '2s');
kafka_server($node, name => 'nohost', bootstrap_servers => 'no-such-host.invalid:9092', connect_timeout => '2s');
$node->safe_psql('postgres',
	"CREATE FOREIGN TABLE refused (data text) SERVER refused OPTIONS (topic 'x');
	CREATE FOREIGN TABLE nohost (data text) SERVER nohost OPTIONS (topic 'x')");
$err = fails($s, 'SELECT * FROM refused', qr/08001: could not connect to server "refused"/, 0, 2.8, 'refused');
like($err, qr/Connection refused/, 'refused: says so');
$err = fails($s, 'SELECT * FROM nohost', qr/08001: could not connect to server "nohost"/, 0, 2.8, 'no such host');
like($err, qr/no-such-host\.invalid/, 'no such host: names it');

#
# The broker freezes, in the middle of everything
#
make('many', 4, 200000, 500);
my $frozen_out = make('frozen_out', 2, 0);
# 100 MB are more than is fetched ahead
$s->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM many; FETCH 1 FROM c');
$s->query("CREATE TABLE local (i int)");
$s->query('COMMIT; BEGIN; DECLARE c CURSOR FOR SELECT data FROM many; FETCH 1 FROM c; INSERT INTO local VALUES (1)');
my $w = session($node);
$w->query("INSERT INTO frozen_out VALUES ('before')");
$w->query("BEGIN; INSERT INTO local VALUES (2); INSERT INTO frozen_out VALUES ('while frozen')");
broker('freeze', 'kafka');
$s->send('MOVE FORWARD ALL IN c');
$w->send('COMMIT');
my $start = time();
($out, $err) = $s->receive;
like($err, qr/08006: could not read from topic ".*"/, 'frozen broker: the read fails');
cmp_ok(time() - $start, '<', 4, 'frozen broker: the read fails in time');
($out, $err) = $w->receive;
like($err, qr/08006: could not publish to topic ".*"/, 'frozen broker: COMMIT fails');
like($err, qr/0 of 1 messages confirmed/, 'frozen broker: nothing is reported as sent');
cmp_ok(time() - $start, '<', 5, 'frozen broker: COMMIT fails in time');
$s->query('ROLLBACK');
$err = fails($s, 'SELECT count(*) FROM many', qr/08001: could not connect to server "kafka"/, 1.9, 3, 'frozen broker: a new read');
fails($s, "SET statement_timeout = '500ms'; INSERT INTO frozen_out VALUES ('x')", qr/57014/, 0.4, 1, 'frozen broker: statement_timeout of an INSERT');
# statement_timeout holds for the COMMIT, too, and so does a cancel
$s->query('RESET statement_timeout');
broker('thaw', 'kafka');
$s->query("SELECT count(*) FROM many; BEGIN; INSERT INTO frozen_out VALUES ('x'), ('y')");
$w->query("BEGIN; INSERT INTO frozen_out VALUES ('z')");
broker('freeze', 'kafka');
fails($s, "SET LOCAL statement_timeout = '300ms'; COMMIT", qr/57014: canceling statement due to statement timeout/, 0.29, 1, 'frozen broker: statement_timeout of a COMMIT');
$w->send('COMMIT');
sleep 0.2;
$w->cancel;
($out, $err) = $w->receive;
like($err, qr/57014: canceling statement due to user request/, 'frozen broker: a COMMIT is cancelled');
broker('thaw', 'kafka');
is(value('SELECT count(*) FROM local'), '0', 'frozen broker: what did not publish did not commit');
($out, $err) = $s->query('SELECT count(*) FROM many');
is("$out$err", '200000', 'thawed broker: the session goes on');
($out, $err) = $w->query("INSERT INTO frozen_out VALUES ('after'); SELECT count(*) > 0 FROM frozen_out WHERE data = 'after'");
is("$out$err", 't', 'thawed broker: publishing, too');

#
# The broker is killed
#
$s->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM many; FETCH 1 FROM c');
$w->query("BEGIN; INSERT INTO local VALUES (3); INSERT INTO frozen_out SELECT 'killed' FROM generate_series(1, 1000)");
my $u = session($node);
$u->query("INSERT INTO frozen_out VALUES ('warm')");
my $n = value('SELECT count(*) FROM frozen_out');
broker('kill', 'kafka');
$err = fails($s, 'MOVE FORWARD ALL IN c', qr/08006: could not read from topic ".*"/, 0, 4, 'killed broker: the read');
$s->query('ROLLBACK');
$err = fails($w, 'COMMIT', qr/08006: could not publish to topic ".*"/, 0, 5, 'killed broker: COMMIT');
like($err, qr/\b0 of 1000 messages confirmed/, 'killed broker: nothing is reported as sent');
$err = fails($u, "INSERT INTO frozen_out VALUES ('down')", qr/08001: could not connect|08006: could not publish/, 0, 5, 'stopped broker: INSERT');
like($err, qr/Connection refused/, 'stopped broker: says why');
fails($s, 'SELECT count(*) FROM many', qr/08001: could not connect to server "kafka"/, 0, 5, 'stopped broker: SELECT');
fails($s, "SELECT pubsub_create_topic('kafka', 'x')", qr/08001: could not connect to server "kafka"/, 0, 5, 'stopped broker: create_topic');
# one broker of two is there: nothing is committed, and the error says which
my $two = mock_kafka(1);
$two->command('topic t 1');
kafka_server($node, name => 'other', bootstrap_servers => $two->bootstrap);
$node->safe_psql('postgres', "CREATE FOREIGN TABLE other (data text) SERVER other OPTIONS (topic 't')");
($out, $err) = $s->query("BEGIN; INSERT INTO local VALUES (5); INSERT INTO other VALUES ('x'); INSERT INTO frozen_out VALUES ('x'); COMMIT");
like($err, qr/could not connect to server "kafka"/, 'stopped broker: a transaction with two');
is(value('SELECT count(*) FROM other'), '0', 'stopped broker: publishes nothing');
$two->stop;
# planning, and statements that need no row, do without
($out, $err) = $s->query("EXPLAIN (COSTS OFF) SELECT * FROM many; EXPLAIN (COSTS OFF) INSERT INTO frozen_out VALUES ('x'); INSERT INTO frozen_out SELECT 'x' WHERE false; SELECT * FROM many WHERE false; SELECT * FROM many LIMIT 0");
is($err, '', 'stopped broker: EXPLAIN works');
# an error that is caught
($out, $err) = $s->query(
	q{DO $$
	BEGIN
		BEGIN
			BEGIN
				PERFORM count(*) FROM many;
			EXCEPTION WHEN OTHERS THEN
				RAISE NOTICE 'caught %', SQLSTATE;
				PERFORM count(*) FROM many;
			END;
		EXCEPTION WHEN OTHERS THEN
			RAISE NOTICE 'again %', SQLSTATE;
			INSERT INTO local VALUES (4);
		END;
	END $$});
like($err, qr/caught 08001.*again 08001/s, 'stopped broker: handlers of exceptions run');
is(value('SELECT string_agg(i::text, \' \') FROM local'), '4', 'stopped broker: only what was not to be published is committed');
broker('start', 'kafka');
($out, $err) = $s->query('SELECT count(*) FROM many');
is("$out$err", '200000', 'restarted broker: the session reads again');
($out, $err) = $u->query("INSERT INTO frozen_out VALUES ('up again')");
is($err, '', 'restarted broker: and publishes');
($out, $err) = $w->query("INSERT INTO frozen_out VALUES ('up again')");
is($err, '', 'restarted broker: as does the one that failed');
is(value('SELECT count(*) FROM frozen_out'), $n + 2, 'and nothing came through that was refused');

# a restart in the middle of a read: it waits for as long as it may
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET request_timeout '20s')");
$s->send('SELECT count(*), count(DISTINCT data) FROM (SELECT data, CASE WHEN "offset" % 5000 = 0 THEN pg_sleep(0.02) END FROM many OFFSET 0) q');
sleep 0.2;
broker('restart', 'kafka');
($out, $err) = $s->receive;
is("$out$err", '200000|200000', 'a restart in the middle of a read');
# the handle of a publisher that sat idle over a restart
($out, $err) = $u->query("INSERT INTO frozen_out VALUES ('over a restart')");
is($err, '', 'a publisher that was idle during a restart');

#
# Cancel, terminate, stop in the middle of a read of data that flows
#
foreach my $i (1 .. 3)
{
	$s->send('SELECT count(*) FROM many a, LATERAL (SELECT b.data FROM many b OFFSET 0) q');
	sleep 0.1 * $i;
	$start = time();
	$s->cancel;
	($out, $err) = $s->receive;
	like($err, qr/57014/, "cancelled in the middle of a read, time $i");
	cmp_ok(time() - $start, '<', 0.6, 'at once');
}
$s->send('SELECT count(*) FROM many a, many b, many c');
sleep 0.2;
$start = time();
value('SELECT pg_terminate_backend(' . $s->pid . ')');
wait_for('the backend to end', sub { !-e "/proc/" . $s->pid }, 10);
cmp_ok(time() - $start, '<', 2, 'terminated in the middle of a read');
$s->quit;

my @sessions = map { session($node) } 1 .. 4;
$sessions[0]->send('SELECT count(*) FROM many a, many b');
$sessions[1]->send('INSERT INTO frozen_out SELECT data FROM many a');
$sessions[2]->send('SELECT count(*) FROM pubsub_consume(NULL::many, max_records => 100000000)');
$sessions[3]->send('BEGIN; DECLARE c CURSOR FOR SELECT data FROM many; FETCH 1 FROM c');
sleep 0.3;
$start = time();
$node->stop('fast');
cmp_ok(time() - $start, '<', 5, 'pg_ctl stop -m fast in the middle of everything');
$_->quit foreach @sessions, $w, $u;

my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
unlike($log, qr/PANIC|was terminated by signal|TRAP|terminating any other/, 'no crash in the log');
done_testing();
