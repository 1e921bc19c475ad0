# test/t/041_google_lease.pl
#		Leases: they are extended while a transaction is open, however busy its
#		backend is; given back when it ends; lost only when it was said so
#
# The subscription's own deadline is 10 s, the shortest there is.  What takes
# longer than that goes on in sessions of its own, all at the same time.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_cluster('main', conf => "max_connections = 120\n");
my $nmessages = 30;
my %case;

pubsub_server($node);

# case_of(NAME, TABLE OPTIONS, NUMBER OF MESSAGES): a topic of its own
sub case_of
{
	my ($name, $options, $n) = @_;
	my $topic = unique_name($name);

	$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$topic');
SELECT pubsub_create_subscription('google', '$topic', '$topic', '10 s');
CREATE FOREIGN TABLE t_$name (data text, message_id text) SERVER google
	OPTIONS (topic '$topic', subscription '$topic', max_read_time '30s', batch_size '1000'$options);
INSERT INTO t_$name (data) SELECT i::text FROM generate_series(1, $n) i});
	return $case{$name} = session($node);
}

# How many messages of a case somebody else would get now
sub visible
{
	my ($name) = @_;

	return $node->safe_psql('postgres',
		"SELECT count(*) FROM pubsub_read(NULL::t_$name, max_read_time => '300 ms')");
}

sub consume
{
	my ($name, $n) = @_;

	return ($case{$name}->query(
		"SELECT count(*), count(DISTINCT message_id) FROM pubsub_consume(NULL::t_$name, $n)"))[0];
}

my $s;

# A transaction that is idle, one that is busy all the time, one with two
# savepoints, one that consumed twice
case_of('idle', ", ack_deadline '10s'", $nmessages)->query('BEGIN');
is(consume('idle', $nmessages), "$nmessages|$nmessages", 'idle: consumed');

$s = case_of('busy', ", ack_deadline '10s'", 3000);
$s->query('BEGIN');
is(consume('busy', 3000), '3000|3000', 'busy: consumed');
$s->send("SELECT count(*) FROM generate_series(1, 17) i, pg_sleep(1)");

$s = case_of('deep', ", ack_deadline '10s'", 20);
$s->query('BEGIN; SAVEPOINT a');
is(consume('deep', 10), '10|10', 'deep: consumed');
$s->query('RELEASE a; SAVEPOINT b');
is(consume('deep', 10), '10|10', 'deep: the rest');

# Leases that end: max_lease
$s = case_of('short', ", ack_deadline '10s', max_lease '2s'", 5);
$s->query('BEGIN');
is(consume('short', 5), '5|5', 'short: consumed');

# A peek that takes long: a cursor
$s = case_of('peek', ", ack_deadline '10s'", 5);
$s->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM t_peek');
is(scalar(my @rows = split /\n/, ($s->query('FETCH 2 c'))[0]), 2, 'peek: two rows');

my $begin = time();

# Meanwhile: sessions that exit with leases, in each way
my $sessions = 50;
case_of('exit', '', $sessions * 2);
my @exits = map { session($node) } 1 .. $sessions;
my %got;
foreach my $e (@exits)
{
	my ($out) = $e->query('BEGIN; SELECT data FROM pubsub_consume(NULL::t_exit, 2)');

	$got{$_}++ foreach split /\n/, $out;
}
is(scalar(keys %got), $sessions * 2, 'exit: 50 sessions hold all messages');
is(visible('exit'), 0, 'exit: nobody else gets any');
foreach my $i (0 .. $sessions - 1)
{
	if ($i % 2)
	{
		$exits[$i]->quit;
	}
	else
	{
		$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $exits[$i]->pid . ')');
	}
}
is($node->safe_psql('postgres',
		"SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::t_exit, max_read_time => '5 s', max_records => " . $sessions * 2 . ")"),
	$sessions * 2, 'exit: they have given all of it back');
$_->quit foreach @exits;
wait_for('the sessions to end', sub {
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") < 10;
});
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile),
	qr/was terminated by signal|PANIC|TRAP/, 'exit: no crash');

# 5000 messages in one transaction: more than one request can name
my $many = case_of('many', '', 5000);
$many->query('BEGIN');
is(consume('many', 5000), '5000|5000', 'many: 5000 consumed');
is(($many->query('COMMIT'))[1], '', 'many: committed');
is(visible('many'), 0, 'many: all are acknowledged');

# At more than one and a half times the deadline
sleep($begin + 16 - time()) if $begin + 16 > time();
foreach my $name (qw(idle busy deep peek))
{
	is(visible($name), 0, "$name: nobody else gets them after 16 s");
}
$case{busy}->receive;
$case{deep}->query('ROLLBACK TO b');
is($node->safe_psql('postgres',
		"SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::t_deep, max_records => 10, max_read_time => '5 s')"),
	10, 'deep: what was rolled back is there at once');
is(scalar(@rows = split /\n/, ($case{peek}->query('FETCH 10 c'))[0]), 3,
	'peek: goes on with the other rows');
is($node->safe_psql('postgres',
		"SELECT count(DISTINCT message_id) FROM pubsub_read(NULL::t_peek, max_records => 5, max_read_time => '5 s')"),
	5, 'peek: gives all of it back at its end');
$case{peek}->query('COMMIT');

foreach my $name (qw(idle busy deep))
{
	is(($case{$name}->query('COMMIT'))[1], '', "$name: COMMIT without a word");
}
my (undef, $err) = $case{short}->query('COMMIT');
like($err, qr/WARNING:  01000: the lease of 5 of 5 consumed messages has expired.*HINT: /s,
	'short: COMMIT warns that max_lease was over');
unlike($err, qr/ERROR/, 'short: but it is committed');

# Nothing of what was committed comes again, ever: after another deadline
sleep 11;
foreach my $name (qw(idle busy many))
{
	is(visible($name), 0, "$name: nothing comes again");
}
is($node->safe_psql('postgres',
		"SELECT count(*) FROM pubsub_consume(NULL::t_deep, 10, '5 s')"),
	10, 'deep: only what was rolled back comes again');
is(visible('deep'), 0, 'deep: and no more');

$_->quit foreach values %case;
$node->stop;
done_testing();
