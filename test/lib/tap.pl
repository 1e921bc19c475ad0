# test/lib/tap.pl COUNTS FILE...
#		Runs TAP tests and writes "PASSED FAILED" to COUNTS
#
# Two at a time, as they mostly wait; those that do something to a broker, by
# broker() of PubsubTest, come last, and alone.
#
# A file that ends early, has no plan or exits with an error counts as one
# failure more; so does every skipped test: what cannot run here is a failure.

use strict;
use warnings;

use Cwd;
use File::Basename;
use TAP::Harness;

my $counts = shift;
my $tree = Cwd::abs_path(dirname(__FILE__) . '/../..');

die "no TAP tests\n" if !@ARGV;
chdir $tree or die "$tree: $!\n";

sub disturbs
{
	my ($file) = @_;

	open my $fh, '<', $file or die "$file: $!\n";
	return scalar(grep { /\bbroker\(/ } <$fh>);
}

my $passed = 0;
my $failed = 0;

sub run_files
{
	my ($jobs, @files) = @_;
	my $harness = TAP::Harness->new(
		{
			exec => [
				'timeout', '-k', '10', $ENV{TAP_TIMEOUT} || 600,
				$^X, "-I$ENV{PGXS_PERL}", "-I$tree/test/lib"
			],
			failures => 1,
			timer => 1,
			jobs => $jobs,
		});
	my $result = $harness->runtests(@files);

	$passed += $result->passed - $result->skipped;
	$failed += $result->failed;

	foreach my $file ($result->descriptions)
	{
		my ($parser) = $result->parsers($file);

		if (defined $parser->skip_all || $parser->skipped)
		{
			print "$file: skipped tests count as failed\n";
			$failed += defined $parser->skip_all ? 1 : $parser->skipped;
		}
		# Beyond what its tests say
		if (!$parser->failed && ($parser->parse_errors || $parser->exit))
		{
			print "$file: did not end well\n";
			$failed++;
		}
	}
	return;
}

my @together = grep { !disturbs($_) } @ARGV;
my @alone = grep { disturbs($_) } @ARGV;

run_files(2, @together) if @together;
run_files(1, @alone) if @alone;

open my $fh, '>', $counts or die "$counts: $!\n";
print $fh "$passed $failed\n";
close $fh;
exit($failed ? 1 : 0);
