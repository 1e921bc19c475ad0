# test/lib/PubsubTest.pm
#		What the TAP tests need beside PostgreSQL::Test::Cluster
#
#	use FindBin;
#	use lib "$FindBin::RealBin/../lib";
#	use PubsubTest;
#
#	my $node = new_cluster('main');
#	kafka_server($node);						# server "kafka"
#	my $topic = unique_name('kill');
#	my ($rc, $out, $err) = sql($node, "SELECT ...");
#
# The addresses of the brokers are in the environment, see test/brokers/README.

package PubsubTest;

use strict;
use warnings;

use Cwd;
use Exporter 'import';
use File::Basename;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  new_cluster new_librdkafka kafka_server pubsub_server unique_name quote
  sql sql_ok sql_fails session wait_for within
  backend_threads backend_fds broker mock_kafka kcat_produce kafka_tool);

my $top = Cwd::abs_path(dirname(__FILE__) . '/../..');
my $timeout = $PostgreSQL::Test::Utils::timeout_default || 60;
my %touched;

# new_cluster(NAME, conf => TEXT)
#		A running cluster whose database "postgres" has the extension.  Unlike
#		PostgreSQL::Test::Cluster's it survives the kill -9 of a backend.
sub new_cluster
{
	my ($name, %params) = @_;
	my $node = PubsubTest::Cluster->adopt(PostgreSQL::Test::Cluster->new($name));

	$node->init(extra => ['--locale=C.UTF-8']);
	$node->append_conf('postgresql.conf',
		"restart_after_crash = on\n" . ($params{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pubsub_fdw');
	return $node;
}

# new_librdkafka()
#		The folder with a librdkafka that can do SCRAM with Kafka 4.  Put it in
#		LD_LIBRARY_PATH before the cluster starts.
sub new_librdkafka
{
	my $dir = $ENV{LIBRDKAFKA_NEW} || "$top/build/librdkafka";

	die "no librdkafka in $dir: run test/brokers/fetch librdkafka\n"
	  if !-e "$dir/librdkafka.so.1";
	return $dir;
}

# quote(TEXT)
#		As an SQL literal
sub quote
{
	my ($text) = @_;

	$text =~ s/'/''/g;
	return "'$text'";
}

sub _options
{
	my (%options) = @_;

	return join(', ',
		map { /\W/ ? "\"$_\" " . quote($options{$_}) : "$_ " . quote($options{$_}) }
		sort keys %options);
}

sub _address
{
	my ($name) = @_;

	return $ENV{$name} // die "$name is not set: start the brokers, see test/brokers/README\n";
}

# kafka_server(NODE, name => NAME, mapping => {OPTION => VALUE}, OPTION => VALUE...)
#		A server, called "kafka" unless said; the PLAINTEXT listener unless
#		options say otherwise.  A user mapping for the superuser if given.
sub kafka_server
{
	my ($node, %options) = @_;

	return _server($node, 'kafka', broker => 'kafka',
		exists $options{bootstrap_servers} ? () :
		  (bootstrap_servers => _address('KAFKA_BOOTSTRAP')), %options);
}

# pubsub_server(NODE, name => NAME, mapping => {...}, OPTION => VALUE...)
#		A server, called "google" unless said; the emulator and no
#		authentication unless options say otherwise
sub pubsub_server
{
	my ($node, %options) = @_;

	return _server($node, 'google', broker => 'pubsub',
		exists $options{endpoint} ? () :
		  (endpoint => _address('PUBSUB_ENDPOINT')),
		exists $options{project} ? () : (project => 'regress-project'),
		exists $options{mapping} ? () : (mapping => { auth => 'none' }),
		%options);
}

sub _server
{
	my ($node, $name, %options) = @_;
	my $mapping = delete $options{mapping};

	$name = delete $options{name} if exists $options{name};
	$node->safe_psql('postgres',
		"CREATE SERVER $name FOREIGN DATA WRAPPER pubsub_fdw OPTIONS ("
		  . _options(%options) . ");"
		  . ($mapping ? "CREATE USER MAPPING FOR CURRENT_USER SERVER $name OPTIONS ("
			  . _options(%$mapping) . ")" : ''));
	return $name;
}

# unique_name(TEST)
#		A name for a topic or subscription that nobody used before
my $nnames = 0;

sub unique_name
{
	my ($test) = @_;

	return sprintf('regress_%s_%d_%d', $test, $$, ++$nnames);
}

# sql(NODE, SQL)
#		Runs it in database "postgres".  Returns the exit code of psql (3 =
#		error in the script, 2 = connection lost), its output, its messages
sub sql
{
	my ($node, $sql) = @_;
	my ($out, $err);
	my $rc = $node->psql('postgres', $sql, stdout => \$out, stderr => \$err,
		on_error_stop => 1, timeout => $timeout * 5);

	return ($rc, $out, $err);
}

# sql_ok(NODE, SQL, EXPECTED, NAME)
#		A test: it runs and gives that output
sub sql_ok
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($node, $sql, $expected, $name) = @_;
	my ($rc, $out, $err) = sql($node, $sql);

	return is($out, $expected, $name) if $rc == 0;
	diag($err);
	return ok(0, $name);
}

# sql_fails(NODE, SQL, REGEXP, NAME)
#		A test: it fails and says so; returns the messages
sub sql_fails
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($node, $sql, $regexp, $name) = @_;
	my ($rc, $out, $err) = sql($node, $sql);

	if ($rc != 3)
	{
		diag("psql ended with $rc: $out$err");
		ok(0, $name);
	}
	else
	{
		like($err, $regexp, $name);
	}
	return $err;
}

# wait_for(NAME, CODE, SECONDS)
#		Until CODE returns true.  Dies when the time is over.
sub wait_for
{
	my ($name, $code, $seconds) = @_;
	my $end = time() + ($seconds // $timeout);

	while (1)
	{
		my $result = $code->();

		return $result if $result;
		die "timed out waiting for $name\n" if time() >= $end;
		sleep 0.02;
	}
}

# within(SECONDS, CODE, NAME)
#		A test: CODE takes no longer than that; returns the time it took
sub within
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($seconds, $code, $name) = @_;
	my $start = time();

	$code->();
	cmp_ok(time() - $start, '<=', $seconds, $name);
	return time() - $start;
}

# backend_threads(PID), backend_fds(PID)
#		How many threads a process has, and how many sockets, pipes and the
#		like; files do not count, the server keeps those of its tables open
sub backend_threads
{
	my ($pid) = @_;

	return scalar(my @list = glob("/proc/$pid/task/[0-9]*"));
}

sub backend_fds
{
	my ($pid) = @_;

	opendir(my $dir, "/proc/$pid/fd") or die "/proc/$pid/fd: $!\n";
	return scalar(grep { (readlink("/proc/$pid/fd/$_") // '') =~ /^\w+:/ }
		readdir($dir));
}

# broker(ACTION, NAME)
#		Stops, kills, starts, restarts, freezes or thaws a broker.  At the end
#		of the test each is running again.
sub broker
{
	my ($action, $name) = @_;

	$touched{$name} = 1;
	system("$top/test/brokers/broker", $action, $name) == 0
	  or die "could not $action broker $name\n";
	return;
}

# kcat_produce(TOPIC, [MESSAGE...], ARGUMENT...)
#		Sends messages past the extension, one per line
sub kcat_produce
{
	my ($topic, $messages, @arguments) = @_;
	my $input = join('', map { "$_\n" } @$messages);
	my $err;

	IPC::Run::run([ 'kcat', '-P', '-b', _address('KAFKA_BOOTSTRAP'),
			'-t', $topic, @arguments ],
		'<', \$input, '2>', \$err,
		IPC::Run::timeout($timeout))
	  or die "kcat: $err\n";
	return;
}

# kafka_tool(ARGUMENT...)
#		Runs test/lib/kafka_tool.c, which says what it can do; returns its output
sub kafka_tool
{
	my @arguments = @_;
	my ($out, $err);

	IPC::Run::run([ $ENV{KAFKA_TOOL} || "$top/build/kafka_tool", @arguments ],
		'>', \$out, '2>', \$err, IPC::Run::timeout($timeout * 5))
	  or die "@arguments: $err\n";
	chomp $out;
	return $out;
}

# session(NODE)
#		A psql in the background, see below
sub session
{
	return PubsubTest::Session->new(@_);
}

# mock_kafka(NUMBER OF BROKERS)
#		A mock Kafka cluster, see below
sub mock_kafka
{
	return PubsubTest::Mock->new(@_);
}

END
{
	my $rc = $?;

	foreach my $name (keys %touched)
	{
		my $broker = "$top/test/brokers/broker";

		if (system("$broker status $name 2>/dev/null") == 0)
		{
			system($broker, 'thaw', $name);
		}
		else
		{
			system($broker, 'start', $name);
		}
	}
	$? = $rc;
}

#
# A cluster whose server does not inherit the addresses and secrets of the
# brokers: a server has no business to know them, and logs its environment
#
package PubsubTest::Cluster;

use strict;
use warnings;

our @ISA;

sub adopt
{
	my ($class, $node) = @_;

	@ISA = (ref $node);
	return bless $node, $class;
}

sub _clean_environment
{
	return map { $_ => $ENV{$_} } grep { !/^(KAFKA|PUBSUB|BROKERS)_/ } keys %ENV;
}

sub start
{
	my ($self, @arguments) = @_;
	local %ENV = _clean_environment();

	return $self->SUPER::start(@arguments);
}

sub restart
{
	my ($self, @arguments) = @_;
	local %ENV = _clean_environment();

	return $self->SUPER::restart(@arguments);
}

#
# A session that lives on between statements
#
#	my $s = session($node);
#	my ($out, $err) = $s->query('BEGIN');		# dies when it takes too long
#	$s->send("SELECT pg_sleep(10)");			# returns at once
#	$s->cancel;									# as a user would
#	($out, $err) = $s->receive;					# what send() led to, or the last
#												# words of a psql that is gone
#	$s->pid;									# of the backend
#	$s->quit;
#
package PubsubTest::Session;

use strict;
use warnings;

sub new
{
	my ($class, $node) = @_;
	my $self = bless { node => $node, in => '', out => '', err => '',
		marks => 0, received => 0 }, $class;

	$self->{timer} = IPC::Run::timer($timeout);
	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-v', 'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=0', '-f', '-' ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err},
		$self->{timer});
	($self->{pid}) = $self->query('SELECT pg_backend_pid()');
	return $self;
}

sub pid
{
	my ($self) = @_;

	return $self->{pid};
}

sub send
{
	my ($self, $sql) = @_;
	my $mark = 'mark ' . ++$self->{marks};

	$self->{in} .= "$sql\n;\n\\echo '$mark'\n\\warn '$mark'\n";
	$self->{run}->pump_nb;
	return;
}

# Output and messages of the oldest statement that was sent
sub receive
{
	my ($self) = @_;
	my $mark = 'mark ' . ++$self->{received};
	my @result;

	die "nothing was sent\n" if $self->{received} > $self->{marks};
	$self->{timer}->start($timeout);
	until ($self->{out} =~ /^$mark\n/m && $self->{err} =~ /^$mark\n/m)
	{
		die "no answer: $self->{out}$self->{err}\n" if $self->{timer}->is_expired;
		# A psql that lost its server ends: what it said is the answer
		if (!$self->{run}->pumpable || !eval { $self->{run}->pump; 1 })
		{
			@result = ($self->{out}, $self->{err});
			$self->{out} = $self->{err} = '';
			return @result;
		}
	}
	$self->{timer}->reset;
	foreach my $stream (qw(out err))
	{
		$self->{$stream} =~ s/\A(.*?)^$mark\n//ms;
		my $text = $1;

		chomp $text;
		push @result, $text;
	}
	return @result;
}

# Has the oldest statement been answered?
sub ready
{
	my ($self) = @_;
	my $mark = 'mark ' . ($self->{received} + 1);

	$self->{run}->pump_nb;
	return $self->{out} =~ /^$mark\n/m && $self->{err} =~ /^$mark\n/m;
}

sub query
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->receive;
}

sub cancel
{
	my ($self) = @_;

	$self->{node}->safe_psql('postgres', "SELECT pg_cancel_backend($self->{pid})");
	return;
}

# Ends psql in order; what it said last
sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	$self->{timer}->start($timeout);
	eval { $self->{run}->finish; };
	return $self->{err};
}

#
# A Kafka made for faults: test/fault/mock_kafka.c has the commands
#
#	my $mock = mock_kafka(1);
#	kafka_server($node, bootstrap_servers => $mock->bootstrap);
#	$mock->command('topic t 1');
#	$mock->command('error 1 6 3');
#
package PubsubTest::Mock;

use strict;
use warnings;

sub new
{
	my ($class, $nbrokers) = @_;
	my $self = bless { in => '', out => '' }, $class;

	$self->{timer} = IPC::Run::timer($timeout);
	$self->{run} = IPC::Run::start(
		[ $ENV{MOCK_KAFKA} || "$top/build/mock_kafka", $nbrokers // 1 ],
		'<', \$self->{in}, '>', \$self->{out}, $self->{timer});
	$self->{bootstrap} = $self->_line;
	return $self;
}

sub _line
{
	my ($self) = @_;

	$self->{timer}->start($timeout);
	until ($self->{out} =~ /\n/)
	{
		die "mock_kafka does not answer\n" if $self->{timer}->is_expired;
		$self->{run}->pump;
	}
	$self->{timer}->reset;
	$self->{out} =~ s/\A(.*)\n//;
	return $1;
}

sub bootstrap
{
	my ($self) = @_;

	return $self->{bootstrap};
}

sub command
{
	my ($self, $command) = @_;

	$self->{in} .= "$command\n";
	my $answer = $self->_line;

	die "mock_kafka: $command: $answer\n" if $answer ne 'ok';
	return;
}

sub stop
{
	my ($self) = @_;

	$self->{run}->finish if $self->{run};
	delete $self->{run};
	return;
}

sub DESTROY
{
	my ($self) = @_;

	eval { $self->stop; };
	return;
}

1;
