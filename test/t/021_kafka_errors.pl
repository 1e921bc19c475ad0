# test/t/021_kafka_errors.pl
#		Errors that a Kafka gives now and then (leaders that move, connections
#		that break, records it refuses), from a mock cluster: what passes is
#		waited for, nothing is lost or doubled, what stays is an error

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(time);

use constant {
	PRODUCE => 0,
	FETCH => 1,
	LIST_OFFSETS => 2,

	DISCONNECT => -195,
	OFFSET_OUT_OF_RANGE => 1,
	CORRUPT_MESSAGE => 2,
	UNKNOWN_TOPIC => 3,
	LEADER_NOT_AVAILABLE => 5,
	NOT_LEADER => 6,
	REQUEST_TIMED_OUT => 7,
	MESSAGE_TOO_LARGE => 10,
	NOT_ENOUGH_REPLICAS => 19,
	TOPIC_AUTHORIZATION_FAILED => 29,
	INVALID_RECORD => 87
};

my $node = new_cluster('errors');
my $mock = mock_kafka(3);
$mock->command('topic t 4');
kafka_server($node, bootstrap_servers => $mock->bootstrap, connect_timeout => '2s', request_timeout => '2s');
$node->safe_psql('postgres',
	"CREATE FOREIGN TABLE t (data text, \"partition\" int, \"offset\" bigint) SERVER kafka OPTIONS (topic 't', group_id 'g');
	INSERT INTO t (data, \"partition\") SELECT i, i % 4 FROM generate_series(1, 10000) i");
my $everything = '10000|10000';
my $count = 'SELECT count(*), count(DISTINCT data) FROM t';
my $s = session($node);
my ($out, $err);

sub reads
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($name) = @_;

	($out, $err) = $s->query($count);
	return is("$out$err", $everything, $name);
}

sub fails
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($sql, $regexp, $name) = @_;
	my $start = time();

	($out, $err) = $s->query($sql);
	like($err, $regexp, $name);
	is($out, '', "$name: no result");
	return cmp_ok(time() - $start, '<', 5, "$name: in time");
}

reads('no error');

#
# Reading: what passes
#
foreach my $error (
	[ LIST_OFFSETS, NOT_LEADER, 2, 'offsets: not the leader' ],
	[ LIST_OFFSETS, LEADER_NOT_AVAILABLE, 1, 'offsets: no leader' ],
	[ LIST_OFFSETS, DISCONNECT, 1, 'offsets: connection broken' ],
	[ FETCH, NOT_LEADER, 3, 'fetch: not the leader' ],
	[ FETCH, REQUEST_TIMED_OUT, 3, 'fetch: timed out' ],
	[ FETCH, DISCONNECT, 3, 'fetch: connection broken' ])
{
	my ($apikey, $code, $times, $name) = @$error;

	$mock->command("error $apikey $code $times");
	reads($name);
	$mock->command("clear $apikey");
}
$mock->command("leader t $_ " . ($_ % 3 + 1)) foreach 0 .. 3;
reads('all leaders have moved');
$s->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM t; FETCH 1 FROM c');
$mock->command("leader t $_ 1") foreach 0 .. 3;
($out, $err) = $s->query('FETCH ALL FROM c; COMMIT');
is(scalar(split /\n/, $out), 9999, 'leaders move during a read');

#
# Reading: what stays
#
foreach my $error (
	[ LIST_OFFSETS, TOPIC_AUTHORIZATION_FAILED, qr/42501: permission denied/, 'offsets: denied' ],
	[ LIST_OFFSETS, NOT_LEADER, qr/08001|08006/, 'offsets: never a leader' ],
	[ FETCH, TOPIC_AUTHORIZATION_FAILED, qr/42501: permission denied/, 'fetch: denied' ],
	[ FETCH, OFFSET_OUT_OF_RANGE, qr/HV000: data loss detected/, 'fetch: out of range' ],
	[ FETCH, NOT_LEADER, qr/08006: could not read/, 'fetch: never a leader' ],
	[ FETCH, DISCONNECT, qr/08006: could not read/, 'fetch: always broken' ],
	[ FETCH, CORRUPT_MESSAGE, qr/ERROR/, 'fetch: corrupt' ])
{
	my ($apikey, $code, $regexp, $name) = @$error;

	$mock->command("error $apikey $code 1000");
	fails($count, $regexp, $name);
	$mock->command("clear $apikey");
}
$mock->command('leader t 2 -1');
fails($count, qr/08001|08006/, 'a partition without a leader');
$mock->command('leader t 2 1');
$mock->command('topic-error t ' . UNKNOWN_TOPIC);
fails($count, qr/HV00R: topic "t" does not exist/, 'the topic is gone');
$mock->command('topic-error t ' . TOPIC_AUTHORIZATION_FAILED);
fails($count, qr/42501: permission denied/, 'the topic is denied');
fails("INSERT INTO t (data) VALUES ('no')", qr/42501: permission denied/, 'the topic is denied: INSERT');
$mock->command('topic-error t ' . LEADER_NOT_AVAILABLE);
fails($count, qr/08001|08006/, 'the topic has no leader');
fails("INSERT INTO t (data) VALUES ('no')", qr/08001|08006/, 'the topic has no leader: INSERT');
$mock->command("topic-error t 0");
reads('and all is well again');

#
# Consuming: an error in the middle does not move the position
#
$mock->command('error ' . FETCH . ' ' . NOT_LEADER . ' 2');
($out, $err) = $s->query('SELECT count(*), count(DISTINCT data) FROM pubsub_consume(NULL::t, max_records => 3000)');
is("$out$err", '3000|3000', 'consume: not the leader');
$mock->command('error ' . FETCH . ' ' . TOPIC_AUTHORIZATION_FAILED . ' 1000');
fails('SELECT count(*) FROM pubsub_consume(NULL::t, max_records => 10000)', qr/42501/, 'consume: denied');
$mock->command('clear ' . FETCH);
($out, $err) = $s->query('SELECT count(*), count(DISTINCT data) FROM pubsub_consume(NULL::t, max_records => 10000)');
is("$out$err", '7000|7000', 'consume: the rest');

#
# Publishing
#
my $published = 10000;
foreach my $error (
	[ PRODUCE, NOT_LEADER, 3, 'produce: not the leader' ],
	[ PRODUCE, LEADER_NOT_AVAILABLE, 2, 'produce: no leader' ],
	[ PRODUCE, NOT_ENOUGH_REPLICAS, 2, 'produce: not enough replicas' ],
	[ PRODUCE, DISCONNECT, 2, 'produce: connection broken' ])
{
	my ($apikey, $code, $times, $name) = @$error;

	$mock->command("error $apikey $code $times");
	($out, $err) = $s->query("INSERT INTO t (data) SELECT '$name ' || i FROM generate_series(1, 500) i");
	is("$out$err", '', $name);
	$mock->command("clear $apikey");
	$published += 500;
	$everything = "$published|$published";
	reads("$name: each once");
}
foreach my $error (
	[ PRODUCE, TOPIC_AUTHORIZATION_FAILED, qr/42501: permission denied/, 'produce: denied' ],
	[ PRODUCE, MESSAGE_TOO_LARGE, qr/54000: could not publish/, 'produce: too large' ],
	[ PRODUCE, INVALID_RECORD, qr/22023: could not publish/, 'produce: invalid' ],
	[ PRODUCE, NOT_ENOUGH_REPLICAS, qr/08006: could not publish/, 'produce: never enough replicas' ],
	[ PRODUCE, DISCONNECT, qr/08006: could not publish/, 'produce: always broken' ])
{
	my ($apikey, $code, $regexp, $name) = @$error;

	$mock->command("error $apikey $code 1000");
	fails("INSERT INTO t (data) SELECT '$name ' || i FROM generate_series(1, 10) i", $regexp, $name);
	$mock->command("clear $apikey");
	reads("$name: nothing was stored");
}
($out, $err) = $s->query("INSERT INTO t (data) VALUES ('at last')");
is($err, '', 'and then it works again');
# an error of one message says which
$mock->command('error ' . PRODUCE . ' ' . MESSAGE_TOO_LARGE . ' 1');
($out, $err) = $s->query("BEGIN; INSERT INTO t (data, \"partition\") VALUES ('a', 0); COMMIT");
like($err, qr/CONTEXT:.*message 1 of this transaction for topic "t"/, 'an error says which message it was');

# a slow broker is waited for, a broker that is away is not
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET connect_timeout '20s', SET request_timeout '20s')");
$mock->command('rtt 500');
($out, $err) = $s->query("SELECT count(*) >= $published FROM t");
is("$out$err", 't', 'a slow broker');
($out, $err) = $s->query("INSERT INTO t (data) VALUES ('slowly')");
is($err, '', 'publishing to a slow broker');
$mock->command('rtt 0');
$node->safe_psql('postgres', "ALTER SERVER kafka OPTIONS (SET connect_timeout '1500ms', SET request_timeout '1500ms')");
$mock->command('down');
fails($count, qr/08001: could not connect/, 'brokers are down');
$mock->command('up');
($out, $err) = $s->query("SELECT count(*) >= $published FROM t");
is("$out$err", 't', 'and up again');

$s->quit;
$mock->stop;
$node->stop;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/PANIC|was terminated by signal/, 'no crash');
done_testing();
