# test/t/045_google_stress.pl
#		Four sessions take from one subscription into one table, and commit,
#		roll back, go back to savepoints, are canceled, terminated and killed at
#		random: in the end every message is there

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HTTP::Tiny;
use JSON::PP;
use MIME::Base64;
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = $ENV{STRESS_SEED} // int(rand(1_000_000));
my $nmessages = 4000;
my $naccidents = 7;
my $nsessions = 4;
my $http = HTTP::Tiny->new;
my $topic;
my $node = new_cluster('main');

srand($seed);
pubsub_server($node);

# New tables: t, what is published; dst, where it goes to
sub new_topic
{
	my ($dst) = @_;

	$topic = unique_name('stress');
	$node->safe_psql('postgres', qq{
SELECT pubsub_create_topic('google', '$topic');
SELECT pubsub_create_subscription('google', '$topic', '$topic', '10 s');
DROP FOREIGN TABLE IF EXISTS t;
CREATE FOREIGN TABLE t (data text, message_id text) SERVER google
	OPTIONS (topic '$topic', subscription '$topic', ack_deadline '10s', poll_timeout '300ms');
DROP TABLE IF EXISTS dst;
CREATE TABLE dst (data text, message_id text$dst)});
	return;
}

# Publishes these numbers past the server, which may be down
sub publish
{
	my @numbers = @_;
	my $response = $http->post(
		"$ENV{PUBSUB_ENDPOINT}/v1/projects/regress-project/topics/$topic:publish",
		{
			headers => { 'content-type' => 'application/json' },
			content => encode_json({ messages => [ map { { data => encode_base64($_, '') } } @numbers ] })
		});

	BAIL_OUT("cannot publish: $response->{status}") if !$response->{success};
	return;
}

# A session of a server that may be starting up
sub patient_session
{
	my $s;

	wait_for('the server', sub {
		return 0 if (sql($node, 'SELECT 1'))[0] != 0;
		$s = eval { session($node) };
		return $s && $s->pid;
	}, 30);
	return $s;
}

# Has psql not lost its server?
sub alive
{
	my ($s) = @_;

	return $s->{run}->pumpable && eval { $s->{run}->pump_nb; 1 } && $s->{run}->pumpable;
}

sub busy
{
	my ($s) = @_;

	return $s->{marks} > $s->{received} && !$s->ready;
}

# All sessions work on, each doing SCRIPT->() again and again, while messages are
# published and accidents happen.  Returns which.
sub chaos
{
	my ($script) = @_;
	my @sessions = map { patient_session() } 1 .. $nsessions;
	my %happened;
	my $next = 1;
	my $n = 0;

	while ($next <= $nmessages)
	{
		publish($next .. $next + 19);
		$next += 20;
		foreach my $i (0 .. $#sessions)
		{
			my $s = $sessions[$i];

			if (!alive($s))
			{
				$s->quit;
				$sessions[$i] = $s = patient_session();
			}
			next if busy($s);
			$s->receive if $s->{marks} > $s->{received};
			$s->send($script->());
		}
		if ($next > ($n + 1) * $nmessages / ($naccidents + 1))
		{
			$happened{ accident($sessions[ rand @sessions ]) }++;
			$n++;
		}
		sleep 0.02;
	}
	foreach my $s (@sessions)
	{
		$s->receive if alive($s) && $s->{marks} > $s->{received};
		$s->quit;
	}
	return join(', ', map { "$happened{$_} $_" } sort keys %happened);
}

sub accident
{
	my ($s) = @_;
	my $what = (qw(canceled terminated killed))[ rand 3 ];

	if ($what eq 'killed')
	{
		kill 'KILL', $s->pid;
	}
	else
	{
		my $function = $what eq 'canceled' ? 'cancel' : 'terminate';

		sql($node, "SELECT pg_${function}_backend(" . $s->pid . ')');
	}
	return $what;
}

#
# Consuming: at least once, nothing missing
#
new_topic('');
my $happened = chaos(sub {
	my $n = 1 + int(rand(150));
	my $take = "INSERT INTO dst SELECT data, message_id FROM pubsub_consume(NULL::t, $n)";
	my $sql = "BEGIN; $take;";
	my $last = rand();

	$sql .= " SAVEPOINT a; $take; ROLLBACK TO a;" if rand() < 0.3;
	$sql .= " SAVEPOINT b; $take; RELEASE b;" if rand() < 0.3;
	$sql .= ' SELECT pg_sleep(random() / 20);';
	return $sql . ($last < 0.5 ? ' COMMIT' : $last < 0.8 ? ' ROLLBACK' : ' SELECT 1/0; COMMIT');
});
note("consuming met with accidents: $happened");

wait_for('the last messages', sub {
	sql($node, 'INSERT INTO dst SELECT data, message_id FROM pubsub_consume(NULL::t)');
	return $node->safe_psql('postgres', 'SELECT count(DISTINCT data) FROM dst') >= $nmessages;
}, 60);
sql_ok($node, 'SELECT count(DISTINCT data), count(DISTINCT message_id), min(data::int), max(data::int) FROM dst',
	"$nmessages|$nmessages|1|$nmessages", 'consuming: no message is missing')
  or diag("STRESS_SEED=$seed");
sql_ok($node, "SELECT count(*) FROM pubsub_read(NULL::t, max_read_time => '1 s')", 0,
	'consuming: none comes again');

#
# Ingestion with a key: exactly once
#
new_topic(', PRIMARY KEY (message_id)');
$happened = chaos(sub {
	my $n = 1 + int(rand(100));

	return "CALL pubsub_ingest('t', 'dst', batch_size => $n, max_records => " . $n * 4
	  . ", on_conflict => 'nothing')";
});
note("ingesting met with accidents: $happened");
wait_for('the last messages', sub {
	sql($node, "CALL pubsub_ingest('t', 'dst', on_conflict => 'nothing')");
	return $node->safe_psql('postgres', 'SELECT count(*) FROM dst') >= $nmessages;
}, 60);
sql_ok($node, 'SELECT count(*), count(DISTINCT data), count(DISTINCT message_id), min(data::int), max(data::int) FROM dst',
	"$nmessages|$nmessages|$nmessages|1|$nmessages", 'ingesting: each message is there once')
  or diag("STRESS_SEED=$seed");
sql_ok($node, "SELECT count(*) FROM pubsub_read(NULL::t, max_read_time => '1 s')", 0,
	'ingesting: none comes again');

unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile),
	qr/was terminated by signal (?!9)|PANIC|TRAP/, 'no crash but the ones that were made');
$node->stop;
done_testing();
