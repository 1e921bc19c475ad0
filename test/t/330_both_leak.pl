# test/t/330_both_leak.pl
#		A thousand failed statements leave as many threads and descriptors as
#		there were before

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my $node = new_cluster('main');

kafka_server($node);
pubsub_server($node);
foreach my $server (qw(kafka google))
{
	my $name = unique_name('leak');

	$node->safe_psql('postgres', "SELECT pubsub_create_topic('$server', '$name')");
	$node->safe_psql('postgres', "SELECT pubsub_create_subscription('google', '$name', '$name')")
	  if $server eq 'google';
	my $where = "topic '$name'"
	  . ($server eq 'google' ? ", subscription '$name', poll_timeout '100ms'" : '');
	$node->safe_psql('postgres', qq{
CREATE FOREIGN TABLE t_$server (data text) SERVER $server OPTIONS ($where);
CREATE FOREIGN TABLE j_$server (data int, message_id text) SERVER $server OPTIONS ($where);
CREATE FOREIGN TABLE missing_$server (data text) SERVER $server OPTIONS (
	}
		  . ($server eq 'google' ? "subscription 'no-such-subscription'" :
			  "topic 'no-such-topic'") . ");");
	$node->safe_psql('postgres', "INSERT INTO t_$server VALUES ('not a number'), ('7')");
}

# Errors of every stage, in turn: before, while and after messages are read, at
# the row and at the end of a transaction that publishes
sub failures
{
	my ($server, $rounds) = @_;
	my $too_long = $server eq 'kafka' ? 2_000_000 : 11_000_000;

	return qq{
DO \$\$
DECLARE
	failed int := 0;
BEGIN
	FOR i IN 1..$rounds LOOP
		BEGIN
			PERFORM * FROM missing_$server;
		EXCEPTION WHEN fdw_table_not_found THEN
			failed := failed + 1;
		END;
		BEGIN
			PERFORM data::int FROM t_$server;
		EXCEPTION WHEN invalid_text_representation THEN
			failed := failed + 1;
		END;
		BEGIN
			PERFORM 1 / (length(data) - length(data)) FROM t_$server LIMIT 1;
		EXCEPTION WHEN division_by_zero THEN
			failed := failed + 1;
		END;
		BEGIN
			INSERT INTO t_$server VALUES ('never'), (repeat('x', $too_long));
		EXCEPTION WHEN program_limit_exceeded THEN
			failed := failed + 1;
		END;
	END LOOP;
	IF failed <> $rounds * 4 THEN
		RAISE EXCEPTION '% errors instead of %', failed, $rounds * 4;
	END IF;
END \$\$;
};
}

foreach my $server (qw(kafka google))
{
	my $s = session($node);
	my ($out, $err) = $s->query(failures($server, 5));

	is($err, '', "$server: the errors are the expected ones");
	my $fds = backend_fds($s->pid);
	my $threads = backend_threads($s->pid);

	for my $i (1 .. 10)
	{
		($out, $err) = $s->query(failures($server, 25));
		last if $err ne '';
	}
	is($err, '', "$server: 1,000 statements fail as expected");

	# what the last statement was waiting for may end a moment after it
	ok(eval { wait_for('descriptors', sub { backend_fds($s->pid) <= $fds }, 10) },
		"$server: no descriptor is left") or diag(backend_fds($s->pid) . " instead of $fds");
	ok(eval { wait_for('threads', sub { backend_threads($s->pid) <= $threads }, 10) },
		"$server: no thread is left");
	is(($s->query("SELECT count(*) FROM t_$server"))[0], 2,
		"$server: and nothing was published");
	$s->quit;
}

$node->stop;
done_testing();
