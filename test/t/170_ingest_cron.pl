# test/t/170_ingest_cron.pl
#		pubsub_ingest() as a job of pg_cron
#
# pg_cron 1.4 knows no schedule finer than a minute, so this test waits for the
# next full one, once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my $node = new_cluster('cron', conf => qq{
shared_preload_libraries = 'pg_cron'
cron.database_name = 'postgres'
cron.use_background_workers = on
cron.timezone = 'GMT'
});
my $topic = unique_name('cron');

kafka_server($node);
pubsub_server($node);
$node->safe_psql('postgres', qq{
CREATE EXTENSION pg_cron;
SELECT pubsub_create_topic('kafka', '$topic', partitions => 4),
       pubsub_create_topic('google', '$topic'), pubsub_create_subscription('google', '$topic', '$topic');
CREATE FOREIGN TABLE clicks (id int) SERVER kafka OPTIONS (topic '$topic', format 'json', group_id 'cron');
CREATE FOREIGN TABLE events (id int) SERVER google
  OPTIONS (topic '$topic', subscription '$topic', format 'json', poll_timeout '500ms');
INSERT INTO clicks SELECT generate_series(1, 100000);
INSERT INTO events SELECT generate_series(1, 1000);
CREATE TABLE clicks_landing (id int, xid xid8 DEFAULT pg_current_xact_id());
CREATE TABLE events_landing (id int PRIMARY KEY);
CREATE TABLE broken_landing (id int CHECK (id < 0));
});

# Two jobs on one topic at the same minute, of which one is the README's, one on
# a subscription, and one that fails
open my $fh, '<', "$FindBin::RealBin/../../README.md" or die "README.md: $!\n";
my ($example) = do { local $/; <$fh> } =~ /^(SELECT cron\.schedule.*?;)/ms;
close $fh;
$node->safe_psql('postgres', $example);
$node->safe_psql('postgres', q{
SELECT cron.schedule('other-clicks', '* * * * *', $$CALL pubsub_ingest('clicks', 'clicks_landing', batch_size => 1000, max_read_time => '50 s')$$),
       cron.schedule('events', '* * * * *', $$CALL pubsub_ingest('events', 'events_landing', on_conflict => 'nothing')$$),
       cron.schedule('broken', '* * * * *', $$CALL pubsub_ingest('clicks', 'broken_landing', group_id => 'broken')$$);
});

# The state of the first run of each job
sub runs
{
	return $node->safe_psql('postgres', q{
SELECT string_agg(jobname || ' ' || status, ', ' ORDER BY jobname)
  FROM (SELECT DISTINCT ON (jobid) jobid, status FROM cron.job_run_details
        WHERE end_time IS NOT NULL ORDER BY jobid, runid) r JOIN cron.job USING (jobid)});
}

my $expected = 'broken failed, events succeeded, ingest-clicks succeeded, other-clicks succeeded';

wait_for('the jobs to run', sub { (() = runs() =~ /failed|succeeded/g) == 4 }, 90);
is(runs(), $expected, 'the jobs ran');
$node->safe_psql('postgres', 'SELECT cron.unschedule(jobid) FROM cron.job');

sql_ok($node, 'SELECT count(*), count(DISTINCT id), sum(id) FROM clicks_landing',
	'100000|100000|5000050000', 'a topic is ingested exactly once by two jobs at a time');
sql_ok($node, 'SELECT count(DISTINCT xid) >= 10 FROM clicks_landing', 't', 'in a transaction per batch');
sql_ok($node, 'SELECT count(*), sum(id) FROM events_landing', '1000|500500', 'so is a subscription');
like($node->safe_psql('postgres', q{SELECT return_message FROM cron.job_run_details WHERE status = 'failed' ORDER BY runid LIMIT 1}),
	qr/violates check constraint/, 'a failing job says why');
sql_ok($node, q{SELECT count(*) FROM pubsub_offsets WHERE group_id = 'broken'}, '0', 'and takes nothing');
sql_ok($node, q{CALL pubsub_ingest('clicks', 'clicks_landing')}, '0', 'nothing is left to ingest');

$node->stop;
done_testing();
