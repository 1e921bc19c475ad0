# test/t/090_readme.pl
#		Every SQL example of README.md runs, in order, as a new user would type it
#
# Only addresses are replaced.  What the text says of the result is tested.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my $readme = "$FindBin::RealBin/../../README.md";
my $node = new_cluster('readme');
my %address = (
	'localhost:9092' => $ENV{KAFKA_BOOTSTRAP},
	'http://localhost:8085' => $ENV{PUBSUB_ENDPOINT});

open my $fh, '<', $readme or die "$readme: $!\n";
my $text = do { local $/; <$fh> };
close $fh;

my @blocks = $text =~ /^```sql\n(.*?)^```$/msg;
cmp_ok(scalar(@blocks), '>=', 10, 'there are examples');

# whatever looks like SQL is marked as SQL, but for the job of pg_cron
(my $rest = $text) =~ s/^```\w+\n.*?^```$//msg;
my @others = grep { /;\s*$/m && !/cron\.schedule/ }
  $rest =~ /^```\n(.*?)^```$/msg;
is(scalar(@others), 0, 'all SQL is marked as such') or diag(@others);

$node->safe_psql('postgres', 'CREATE DATABASE readme');
my $script = '';
foreach my $i (0 .. $#blocks)
{
	my $block = $blocks[$i];

	$block =~ s/\Q$_\E/$address{$_}/g foreach keys %address;
	$script .= "\\echo block $i\n$block";
}

my ($out, $err);
my $rc = $node->psql('readme', $script, stdout => \$out, stderr => \$err,
	on_error_stop => 1, timeout => 120,
	extra_params => [ '-v', 'VERBOSITY=verbose' ]);
is($rc, 0, 'all examples run') or diag("$out\n$err");

like($out, qr/^100\|100$/m, 'a SELECT sees all that was published');
like($out, qr/^42\|\/page\/42\|a$/m, 'typed columns of a JSON payload');
like($out, qr/^100\n0\n/m, 'the second ingestion finds nothing');
like($out, qr/^event 10\|\{"n": "10"\}$/m, 'a peek at a subscription');
like($out, qr/Stopped By: limit/, 'EXPLAIN ANALYZE tells what ended the read');
like($out, qr/^100\nblock \d+\nkafka\|clicks\|\d\|inbox\|t$/m, 'consuming moves positions');

is( $node->safe_psql('readme', 'SELECT count(*) FROM clicks_landing'),
	'101', 'the landing table has each row once');
is( $node->safe_psql('readme', 'SELECT count(*) FROM events_landing'),
	'10', 'and that of the subscription, too');
is( $node->safe_psql('readme', 'SELECT count(*) FROM clicks'),
	'101', 'and the topic what was published');

# the table of functions and the options named are real
foreach my $function ($text =~ /`(?:CALL )?(pubsub_\w+)\(/g)
{
	is( $node->safe_psql('readme',
			"SELECT count(*) > 0 FROM pg_proc WHERE proname = '$function'"),
		't', "function $function exists");
}
my ($options) = $text =~ /^## Options\n(.*?)^## /ms;
foreach my $option ($options =~ /`([a-z_]+)(?: '[a-z]+')?`/g)
{
	is( $node->safe_psql('readme',
			"SELECT count(*) > 0 FROM pubsub_fdw_options() WHERE option = '$option'"),
		't', "option $option exists");
}

done_testing();
