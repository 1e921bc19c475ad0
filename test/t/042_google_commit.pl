# test/t/042_google_commit.pl
#		The end of a transaction behind a Pub/Sub that is gone or does not
#		answer: what is committed stays committed, nobody waits for long, the
#		server stays up, and what was to be told is told when it can be

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_cluster('main', conf => "pubsub_fdw.ack_timeout = '1s'\n");

pubsub_server($node, connect_timeout => '2s', request_timeout => '2s');
$node->safe_psql('postgres', 'CREATE TABLE dst (data text)');

# A topic and a subscription of ten messages, as table t
sub new_topic
{
	my $topic = unique_name('commit');

	$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$topic');
SELECT pubsub_create_subscription('google', '$topic', '$topic');
DROP FOREIGN TABLE IF EXISTS t;
CREATE FOREIGN TABLE t (data text, message_id text) SERVER google
	OPTIONS (topic '$topic', subscription '$topic', max_read_time '20s');
INSERT INTO t (data) SELECT i::text FROM generate_series(1, 10) i;
TRUNCATE dst});
	return;
}

# A session with a transaction that has consumed all of it
sub consumer
{
	my $s = session($node);

	$s->query('BEGIN');
	$s->query('INSERT INTO dst SELECT data FROM pubsub_consume(NULL::t, 10)');
	is(($s->query('SELECT count(*) FROM dst'))[0], 10, 'ten messages are consumed');
	return $s;
}

sub dst_has
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($n, $name) = @_;

	sql_ok($node, 'SELECT count(*) FROM dst', $n, $name);
	return;
}

# Whoever reads now gets all ten, or none
sub all_are_back
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($name) = @_;

	sql_ok($node,
		"SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::t, max_records => 10, max_read_time => '5 s')",
		10, $name);
	return;
}

sub none_is_back
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($name) = @_;

	sql_ok($node, "SELECT count(*) FROM pubsub_read(NULL::t, max_read_time => '1 s')", 0, $name);
	return;
}

sub no_crash
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile),
		qr/was terminated by signal|PANIC|TRAP/, 'the server stays up');
	return;
}

#
# Gone before the COMMIT
#
new_topic();
my $s = consumer();
my $err;

broker('kill', 'pubsub');
within(1.6, sub { (undef, $err) = $s->query('COMMIT') }, 'gone: COMMIT takes ack_timeout at most');
like($err, qr/\A\S+ WARNING:  01000: .*server "google"/, 'gone: with a warning');
unlike($err, qr/ERROR|FATAL|PANIC/, 'gone: and nothing worse');
dst_has(10, 'gone: committed');
is(($s->query('SELECT 42'))[0], '42', 'gone: the session goes on');
within(3.5, sub { $s->quit }, 'gone: and ends');
no_crash();

# The same with publishing: nothing is committed that was not sent (X04).
broker('start', 'pubsub');
new_topic();
$s = session($node);
$s->query("BEGIN; INSERT INTO dst VALUES ('with it'); INSERT INTO t (data) SELECT 'more' FROM generate_series(1, 3)");
broker('kill', 'pubsub');
within(5, sub { (undef, $err) = $s->query('COMMIT') }, 'gone: COMMIT fails in bounded time');
like($err, qr/ERROR:  0800[16]: .*(server "google"|topics\/regress_commit)/s, 'gone: as it could not publish');
dst_has(0, 'gone: nothing is committed');
$s->quit;
broker('start', 'pubsub');
new_topic();

#
# Not to be reached at the COMMIT, but soon after: the acknowledgement follows,
# and nothing comes again.  That is looked at in the end, when the leases of
# 10 s are over.
#
my $late = unique_name('late');

pubsub_server($node, name => 'tls', endpoint => $ENV{PUBSUB_TLS_ENDPOINT},
	ssl_ca_pem => $ENV{PUBSUB_CA_PEM});
$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$late');
SELECT pubsub_create_subscription('google', '$late', '$late', '10 s');
CREATE FOREIGN TABLE late (data text) SERVER google OPTIONS (topic '$late', subscription '$late');
CREATE FOREIGN TABLE late_tls (data text) SERVER tls OPTIONS (subscription '$late', ack_deadline '10s');
INSERT INTO late SELECT i::text FROM generate_series(1, 10) i});
my $late_session = session($node);
is(($late_session->query('BEGIN; SELECT count(*) FROM pubsub_consume(NULL::late_tls, 10)'))[0], 10,
	'not reached: ten messages are consumed');
broker('kill', 'proxy');
within(1.6, sub { (undef, $err) = $late_session->query('COMMIT') }, 'not reached: COMMIT is quick');
like($err, qr/\A\S+ WARNING:  01000: .*server "tls", they may come again/, 'not reached: with a warning');
my $late_at = time();
broker('start', 'proxy');

#
# Silent before the COMMIT: the acknowledgement follows when it speaks again.
#
$s = consumer();
broker('freeze', 'pubsub');
within(1.6, sub { (undef, $err) = $s->query('COMMIT') }, 'silent: COMMIT takes ack_timeout at most');
like($err, qr/\A\S+ WARNING:  01000: server "google" did not confirm .* within 1000 ms/, 'silent: with a warning');
dst_has(10, 'silent: committed');
broker('thaw', 'pubsub');
none_is_back('silent: acknowledged later');
$s->quit;

# ... also when the session ends right then
new_topic();
$s = consumer();
broker('freeze', 'pubsub');
$s->query('COMMIT');
$s->send('\q');
sleep 0.3;
broker('thaw', 'pubsub');
$s->quit;
none_is_back('silent: acknowledged after the session has ended');

# A session that may not wait for it ends all the same.
new_topic();
$s = consumer();
broker('freeze', 'pubsub');
$s->query('COMMIT');
within(4, sub {
	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $s->pid . ')');
	wait_for('the backend to end', sub { !kill(0, $s->pid) });
}, 'silent: a terminated session ends');
broker('thaw', 'pubsub');
$s->quit;

#
# Silent before a ROLLBACK, to the beginning, to a savepoint, after an error
#
new_topic();
$s = consumer();
broker('freeze', 'pubsub');
within(0.7, sub { (undef, $err) = $s->query('ROLLBACK') }, 'silent: ROLLBACK waits for nobody');
is($err, '', 'silent: and says nothing');
broker('thaw', 'pubsub');
all_are_back('silent: all is given back later');
$s->quit;

$s = session($node);
$s->query('BEGIN; SAVEPOINT a; INSERT INTO dst SELECT data FROM pubsub_consume(NULL::t, 4)');
$s->query('SAVEPOINT b; INSERT INTO dst SELECT data FROM pubsub_consume(NULL::t, 6)');
broker('freeze', 'pubsub');
within(0.7, sub { (undef, $err) = $s->query('ROLLBACK TO b') }, 'silent: ROLLBACK TO waits for nobody');
within(0.7, sub { (undef, $err) = $s->query('SELECT 1/0') }, 'silent: nor does an error');
within(0.7, sub { (undef, $err) = $s->query('ROLLBACK TO a') }, 'silent: nor the next ROLLBACK TO');
within(1, sub { (undef, $err) = $s->query('COMMIT') }, 'silent: nothing is left to acknowledge');
is($err, '', 'silent: and nothing to say');
broker('thaw', 'pubsub');
all_are_back('silent: what savepoints had is given back later');
$s->quit;

# An exception handler is a savepoint; the abort must not throw (X05).
$s = session($node);
$s->send(q{DO $$
BEGIN
	BEGIN
		PERFORM * FROM pubsub_consume(NULL::t, 10);
		PERFORM pg_sleep(1);
		RAISE EXCEPTION 'no';
	EXCEPTION WHEN OTHERS THEN
		RAISE NOTICE 'handled %', SQLERRM;
	END;
END $$});
sleep 0.5;
broker('freeze', 'pubsub');
(undef, $err) = $s->receive;
like($err, qr/handled no/, 'silent: an exception handler runs');
broker('thaw', 'pubsub');
all_are_back('silent: and what its block had is given back');
$s->quit;

#
# Silent at the end of a look: a warning after ack_timeout, or a cancel
#
$s = session($node);
$s->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM t; FETCH 2 c');
broker('freeze', 'pubsub');
within(1.6, sub { (undef, $err) = $s->query('CLOSE c') }, 'silent: CLOSE takes ack_timeout at most');
like($err, qr/\A\S+ WARNING:  01000: could not give back unread messages of subscription /, 'silent: with a warning');
within(1.6, sub { (undef, $err) = $s->query('COMMIT') }, 'silent: COMMIT after that');
is($err, '', 'silent: has nothing to say');
broker('thaw', 'pubsub');
all_are_back('silent: all is given back later');
$s->query("SET pubsub_fdw.ack_timeout = '60s'; BEGIN; DECLARE c CURSOR FOR SELECT data FROM t; FETCH 2 c");
broker('freeze', 'pubsub');
$s->send('CLOSE c');
sleep 0.3;
ok(!$s->ready, 'silent: CLOSE waits');
within(0.8, sub { $s->cancel; (undef, $err) = $s->receive }, 'silent: and can be canceled');
like($err, qr/ERROR:  57014: /, 'silent: canceled');
$s->query('ROLLBACK');
broker('thaw', 'pubsub');
all_are_back('silent: all is given back after that');
$s->quit;

#
# Silent while publishing: request_timeout, statement_timeout, cancel; what was
# consumed in the same transaction is given back, not acknowledged.
#
$s = session($node);
$s->query("BEGIN; INSERT INTO dst SELECT data FROM pubsub_consume(NULL::t, 10); INSERT INTO t (data) VALUES ('never')");
broker('freeze', 'pubsub');
$s->send('COMMIT');
sleep 0.3;
ok(!$s->ready, 'silent: COMMIT that publishes waits');
within(0.8, sub { $s->cancel; (undef, $err) = $s->receive }, 'silent: and can be canceled');
like($err, qr/ERROR:  57014: /, 'silent: canceled');
$s->query("BEGIN; SET LOCAL statement_timeout = '400ms'");
broker('thaw', 'pubsub');
dst_has(0, 'silent: nothing is committed');
$s->query('ROLLBACK');
# the message may have been sent
my $seen = $node->safe_psql('postgres', "SELECT count(DISTINCT data) FROM pubsub_read(NULL::t, max_records => 10, max_read_time => '5 s') WHERE data <> 'never'");
cmp_ok($seen, '>=', 9, 'silent: what was consumed comes again');
new_topic();
$s->query("SET statement_timeout = '400ms'; BEGIN; INSERT INTO t (data) VALUES ('never')");
broker('freeze', 'pubsub');
within(0.9, sub { (undef, $err) = $s->query('COMMIT') }, 'silent: statement_timeout bounds COMMIT');
like($err, qr/ERROR:  57014: .*statement timeout/, 'silent: timed out');
broker('thaw', 'pubsub');
$s->quit;

# The leases of the first are over
sleep($late_at + 11 - time()) if $late_at + 11 > time();
sql_ok($node, "SELECT count(*) FROM pubsub_read(NULL::late, max_read_time => '1 s')", 0,
	'not reached: acknowledged when it was');
$late_session->quit;

no_crash();
$node->stop;
done_testing();
