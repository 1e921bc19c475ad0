# test/t/010_kafka_volume.pl
#		Many and large records of a Kafka topic: exact counts, flat memory,
#		ends that are fixed, time-outs in the middle

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(time);

my $node = new_cluster('volume', conf => "max_parallel_workers_per_gather = 0\n");
kafka_server($node);

# The highest memory that the backend of a session has used, in kB
sub peak
{
	my ($session) = @_;
	my $pid = $session->pid;

	open my $fh, '<', "/proc/$pid/status" or die "/proc/$pid/status: $!\n";
	my ($peak) = map { /^VmHWM:\s+(\d+) kB/ ? $1 : () } <$fh>;
	close $fh;
	return $peak;
}

#
# One million records in eight partitions
#
my $many = unique_name('volume');
sql($node, "SELECT pubsub_create_topic('kafka', '$many', partitions => 8);
	CREATE FOREIGN TABLE many (data text, \"partition\" int, \"offset\" bigint)
	SERVER kafka OPTIONS (topic '$many', group_id 'g')");
kafka_tool('fill', $many, 8, 1000000, 100);

my $s = session($node);
# libraries loaded, caches warm
$s->query('SELECT count(*) FROM (SELECT * FROM many LIMIT 1) q');
my $before = peak($s);
foreach my $i (1 .. 3)
{
	my ($out, $err) = $s->query('SELECT count(*) FROM many');

	is("$out$err", '1000000', "count(*) is exact, time $i");
}

my ($out, $err) = $s->query(
	q{SELECT count(*), count(DISTINCT "offset"), sum("offset"), bool_and(length(data) = 100),
	sum(split_part(data, ' ', 1)::bigint) FROM many});
is($out, '1000000|125000|62499500000|t|499999500000',
	'every record is there once');

# How much is fetched ahead depends on who is faster, so there is one limit for
# all: the README's.  A statement that kept 32 bytes a row would pass it here.
$s->query('SELECT sum(length(data)) FROM many') foreach 1 .. 4;
my $after = peak($s);
cmp_ok($after - $before, '<', 128 * 1024,
	"what is fetched ahead is bounded ($before kB, then $after kB)");

# a statement that must stop in the middle
$s->query("SET statement_timeout = '100ms'");
foreach my $sql ('SELECT count(*) FROM many',
	'SELECT count(*) FROM pubsub_read(NULL::many)',
	"SELECT count(*) FROM pubsub_consume(NULL::many, max_records => 1000000)")
{
	my $start = time();

	($out, $err) = $s->query($sql);
	my $took = time() - $start;

	like($err, qr/57014: canceling statement due to statement timeout/,
		"statement_timeout ends $sql");
	cmp_ok($took, '<', 0.6, 'in time');
	cmp_ok($took, '>', 0.09, 'not earlier');
}
$s->query('RESET statement_timeout');
($out, $err) = $s->query('SELECT count(*) FROM many; SELECT count(*) FROM pubsub_offsets');
is($out, "1000000\n0", 'and the session goes on');

# consuming in one go, and in slices of a session each
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pubsub_consume(NULL::many, max_records => 400000)"),
	'400000', 'a slice');
is( $node->safe_psql('postgres',
		"SELECT count(*), count(DISTINCT (\"partition\", \"offset\")) FROM pubsub_consume(NULL::many, max_records => 10000000)"),
	'600000|600000', 'and the rest');
is($node->safe_psql('postgres',
		'SELECT count(*), sum(next_offset) FROM pubsub_offsets'),
	'8|1000000', 'the positions are at the ends');

# publishing many rows: the transaction's memory is bounded
my $out_topic = unique_name('volume_out');
sql($node, "SELECT pubsub_create_topic('kafka', '$out_topic', partitions => 4);
	CREATE FOREIGN TABLE many_out (data text) SERVER kafka OPTIONS (topic '$out_topic')");
$s->query("SET pubsub_fdw.publish_buffer_size = '4MB'");
$s->query('INSERT INTO many_out SELECT \'x\'');
$before = peak($s);
($out, $err) = $s->query(
	q{INSERT INTO many_out SELECT repeat('x', 90) || i FROM generate_series(1, 500000) i});
is($err, '', 'half a million rows are published');
cmp_ok(peak($s) - $before, '<', 160 * 1024, 'in bounded memory');
($out, $err) = $s->query('SELECT count(*), count(DISTINCT data) FROM many_out');
is($out, '500001|500001', 'each once');
$s->quit;

#
# 12 partitions with records of 175 kB: what is fetched ahead is bounded, too
#
my $large = unique_name('volume_large');
sql($node, "SELECT pubsub_create_topic('kafka', '$large', partitions => 12);
	CREATE FOREIGN TABLE large (data bytea) SERVER kafka OPTIONS (topic '$large')");
kafka_tool('fill', $large, 12, 2000, 175000);
$s = session($node);
$s->query('SELECT count(*) FROM (SELECT * FROM many LIMIT 1) q');
$before = peak($s);
($out, $err) = $s->query('SELECT length(data) FROM large LIMIT 1');
is($out, '175000', 'LIMIT 1 of large records');
cmp_ok(peak($s) - $before, '<', 64 * 1024, 'fetches few of them');
($out, $err) = $s->query('BEGIN; DECLARE c CURSOR FOR SELECT length(data) FROM large; FETCH 1 FROM c; SELECT pg_sleep(1); COMMIT');
cmp_ok(peak($s) - $before, '<', 128 * 1024, 'nor does a slow reader let them pile up');
($out, $err) = $s->query('SELECT count(*), sum(length(data)) FROM large');
is($out, '2000|350000000', 'all of them');
cmp_ok(peak($s) - $before, '<', 192 * 1024,
	'no more than a part is in memory at a time');
$s->quit;

# one record that is larger than any fetch
my $huge = unique_name('volume_huge');
sql($node, "SELECT pubsub_create_topic('kafka', '$huge', partitions => 1, config => '{\"max.message.bytes\": \"8388608\"}');
	CREATE FOREIGN TABLE huge (data text) SERVER kafka OPTIONS (topic '$huge', \"properties.message.max.bytes\" '8388608');
	INSERT INTO huge VALUES (repeat('a', 1000)), (repeat('b', 5242880)), (repeat('c', 1000))");
sql_ok($node, 'SELECT left(data, 1), length(data) FROM huge',
	"a|1000\nb|5242880\nc|1000", 'a record larger than a fetch');
sql_ok($node, q{SELECT length(data) FROM huge OFFSET 1 LIMIT 1}, '5242880',
	'also where few records are wanted');

#
# A topic that others go on writing to: a read ends at the end it found
#
my $busy = unique_name('volume_busy');
sql($node, "SELECT pubsub_create_topic('kafka', '$busy', partitions => 2);
	CREATE FOREIGN TABLE busy (data text) SERVER kafka OPTIONS (topic '$busy')");
kafka_tool('fill', $busy, 2, 1000, 100);
my $stop = 0;
my $writer = IPC::Run::start(
	[ 'kcat', '-P', '-b', $ENV{KAFKA_BOOTSTRAP}, '-t', $busy ],
	'<', \my $lines, IPC::Run::timer(120));
my $feed = sub {
	$lines .= "busy\n" x 20;
	$writer->pump_nb;
};
$s = session($node);
$s->send("SELECT count(*) FROM busy WHERE data = 'nomatch'; SELECT count(*) >= 1000 FROM pubsub_read(NULL::busy, max_read_time => '60 s')");
my $start = time();
wait_for('the end of a busy topic', sub { $feed->(); return $s->ready; }, 30);
cmp_ok(time() - $start, '<', 10, 'a read of a busy topic ends');
($out, $err) = $s->receive;
is("$out$err", "0\nt", 'by itself');
$lines .= '';
$writer->finish;
my $n = $node->safe_psql('postgres', 'SELECT count(*) FROM busy');
$s->query('INSERT INTO busy SELECT data FROM busy');
is($node->safe_psql('postgres', 'SELECT count(*) FROM busy'),
	2 * $n, 'a topic that feeds itself doubles');
$s->quit;

# parallel plans, forced
sql_ok($node,
	"SET max_parallel_workers_per_gather = 4; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0; SET force_parallel_mode = on;
	SELECT count(*), count(DISTINCT data) FROM many_out",
	'500001|500001', 'forced parallel query');

unlike(slurp_log(), qr/PANIC|was terminated by signal/, 'the server never went down');
$node->stop;
done_testing();

sub slurp_log
{
	return PostgreSQL::Test::Utils::slurp_file($node->logfile);
}
