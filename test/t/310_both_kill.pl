# test/t/310_both_kill.pl
#		What a crash leaves: consumed but not committed means it comes again,
#		once; committed means it is done with
#
# The backend is killed with SIGKILL, and the server is stopped the hard way.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my $node = new_cluster('main');
my $nrows = 50;
my %table;

kafka_server($node);
pubsub_server($node);
foreach my $server (qw(kafka google))
{
	my $name = unique_name('kill');

	$table{$server} = "t_$server";
	$node->safe_psql('postgres', "SELECT pubsub_create_topic('$server', '$name')");
	$node->safe_psql('postgres',
		"SELECT pubsub_create_subscription('google', '$name', '$name', '10 s')")
	  if $server eq 'google';
	$node->safe_psql('postgres',
		"CREATE TABLE dst_$server (n int);"
		  . "CREATE FOREIGN TABLE t_$server (data text) SERVER $server OPTIONS (topic '$name', "
		  . ($server eq 'kafka' ? "group_id 'kill')" :
			  "subscription '$name', ack_deadline '10s', poll_timeout '500ms')"));
	$node->safe_psql('postgres',
		"INSERT INTO t_$server SELECT g FROM generate_series(1, $nrows) g");
}

# Takes everything that comes until all is there, however often that needs
# asking: a lease that died with its backend has to expire first
sub take_all
{
	my ($server, $expected) = @_;

	wait_for("$expected rows of $server", sub {
		$node->safe_psql('postgres',
			"INSERT INTO dst_$server SELECT data::int FROM pubsub_consume(NULL::t_$server, max_records => 1000, max_read_time => '1 s')");
		return $node->safe_psql('postgres', "SELECT count(*) FROM dst_$server") >= $expected;
	}, 60);
	return;
}

sub alive
{
	return (sql($node, 'SELECT 1'))[0] == 0;
}

foreach my $server (qw(kafka google))
{
	# kill -9 before COMMIT
	my $s = session($node);

	$s->query('BEGIN');
	$s->query("INSERT INTO dst_$server SELECT data::int FROM pubsub_consume(NULL::t_$server, max_records => $nrows)");
	is(($s->query("SELECT count(*) FROM dst_$server"))[0], $nrows,
		"$server: all is consumed");
	kill 'KILL', $s->pid;
	$s->query('COMMIT');
	$s->quit;
	wait_for('the server', \&alive);
	sql_ok($node, "SELECT count(*) FROM dst_$server", 0,
		"$server: nothing of it after kill -9");
	take_all($server, $nrows);
	sql_ok($node, "SELECT count(*), count(DISTINCT n) FROM dst_$server",
		"$nrows|$nrows", "$server: all rows again, once");

	# The whole server, after COMMIT: what is done is done
	$node->stop('immediate');
	$node->start;
	sql_ok($node, "SELECT count(*) FROM dst_$server", $nrows,
		"$server: committed rows survive");
	sql_ok($node, "SELECT count(*) FROM pubsub_consume(NULL::t_$server, max_read_time => '2 s')",
		0, "$server: and do not come again");

	# A message published by a transaction that dies is not published
	$s = session($node);
	$s->query('BEGIN');
	$s->query("INSERT INTO t_$server VALUES ('0')");
	kill 'KILL', $s->pid;
	$s->query('COMMIT');
	$s->quit;
	wait_for('the server', \&alive);
	sql_ok($node, "SELECT count(*) FROM pubsub_consume(NULL::t_$server, max_read_time => '2 s')",
		0, "$server: a killed transaction published nothing");
}

$node->stop;
done_testing();
