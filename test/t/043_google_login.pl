# test/t/043_google_login.pl
#		Who we say we are to Pub/Sub, over TLS: tokens of a service account,
#		given tokens, none; whose they are; that they stay secret
#
# A TLS proxy of our own stands in front of the emulator and writes down the
# Authorization header of each request.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run;
use JSON::PP;
use MIME::Base64;
use PostgreSQL::Test::Utils;
use PubsubTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $dir = PostgreSQL::Test::Utils::tempdir;
my $tls = "$ENV{BROKERS_DIR}/tls";
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $accesslog = "$dir/access.log";
my ($backend) = $ENV{PUBSUB_ENDPOINT} =~ /:(\d+)$/;
my $proxy_log = '';
my $proxy = IPC::Run::start(
	[
		'nghttpx', '--conf=/dev/null', '--single-process',
		"--frontend=127.0.0.1,$port", "--frontend=127.0.0.2,$port",
		"--backend=127.0.0.1,$backend;;proto=h2",
		"--accesslog-file=$accesslog",
		'--accesslog-format=$request|$http_authorization|$status $http_content_length',
		"$tls/server.key", "$tls/server.crt"
	],
	'<', \undef, '>&', \$proxy_log);
my $endpoint = "https://127.0.0.1:$port";

# A TLS server of former times
my $http1_port = PostgreSQL::Test::Cluster::get_free_port();
my $http1_log = '';
my $http1 = IPC::Run::start(
	[
		'nghttpx', '--conf=/dev/null', '--single-process', '--npn-list=http/1.1',
		"--frontend=127.0.0.1,$http1_port", "--backend=127.0.0.1,$backend;;proto=h2",
		'--accesslog-file=/dev/null', "$tls/server.key", "$tls/server.crt"
	],
	'<', \undef, '>&', \$http1_log);

END
{
	my $rc = $?;

	$_->kill_kill foreach grep { $_ } $proxy, $http1;
	$? = $rc;
}

# What requests had in their Authorization header since the last look: method
# => header => number.  And the sizes of all requests to publish.
my $log_at = 0;
my @sizes;

sub authorizations
{
	my %seen;

	open my $fh, '<', $accesslog or die "$accesslog: $!\n";
	seek($fh, $log_at, 0);
	while (<$fh>)
	{
		my ($method, $authorization, $size) =
		  m,^POST /google\.pubsub\.v1\.\w+/(\w+) \S+\|(.*)\|200 (\d+)$,
		  or die "unexpected request: $_";

		push @sizes, $size if $method eq 'Publish';
		$seen{$method}{$authorization}++;
	}
	$log_at = tell($fh);
	close $fh;
	return \%seen;
}

# A test: reading and writing had this header, and no other.  The lease thread
# of a former session may still be at work, with what that one had.
sub sends
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($expected, $name) = @_;
	my %all;

	wait_for('a request', sub {
		my $seen = authorizations();

		$all{$_}++ foreach map { keys %{ $seen->{$_} // {} } } qw(GetTopic Publish GetSubscription Pull);
		return %all || $expected eq '';
	}, 5);
	is(join(' and ', sort keys %all), $expected, $name);
	return;
}

# A service account
my $key = "$dir/key.pem";
my $public = "$dir/public.pem";

system_or_bail('openssl', 'genpkey', '-algorithm', 'RSA', '-pkeyopt',
	'rsa_keygen_bits:2048', '-out', $key);
system_or_bail('openssl', 'pkey', '-in', $key, '-pubout', '-out', $public);

my $pem = slurp_file($key);
my $email = 'ingest@regress-project.iam.gserviceaccount.com';
my %account = (
	type => 'service_account', project_id => 'regress-project',
	private_key_id => 'key-0123456789abcdef', private_key => $pem,
	client_email => $email, token_uri => 'https://oauth2.googleapis.com/token');

sub account
{
	return encode_json({ %account, @_ });
}

my $node = new_cluster('main', conf => q{
log_min_messages = debug5
log_min_error_statement = panic
log_statement = none
});
my $topic = unique_name('login');

# One command after the other, with everything that the server has to say
my %said;

sub say_all
{
	my ($sql) = @_;
	my ($rc, $out, $err) = sql($node, "SET client_min_messages = debug5; $sql");

	$said{$sql} = $out . $err;
	$err = join("\n", grep { !/DEBUG:/ } split(/\n/, $err));
	return ($rc, $out, $err);
}

sub new_server
{
	my ($name, %options) = (
		$_[0], ssl_ca_pem => $ENV{PUBSUB_CA_PEM}, endpoint => $endpoint,
		connect_timeout => '2s', request_timeout => '4s', @_[1 .. $#_]);

	delete $options{ssl_ca_pem} if !defined $options{ssl_ca_pem};
	pubsub_server($node, name => $name, %options);
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE t_$name (data text) SERVER $name OPTIONS (topic '$topic', subscription '$topic', poll_timeout '200ms')");
	return;
}

sub fails
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($name, $pattern, %options) = @_;

	new_server($name, %options);
	my $start = time();
	my ($rc, $out, $err) = say_all("SELECT * FROM t_$name");
	like($err, $pattern, "$name: is told why");
	cmp_ok(time() - $start, '<', 2.5, "$name: in time");
	return;
}

#
# A service account: all kinds of requests
#
new_server('account', mapping => { credentials_json => account() });
wait_for('the proxy', sub {
	return sql($node, "SELECT pubsub_create_topic('account', '$topic')") == 0;
}, 10);
authorizations();
my ($rc, $out, $err) = say_all(qq{
SELECT pubsub_create_subscription('account', '$topic', '$topic', '10 s');
INSERT INTO t_account VALUES ('over TLS'), ('too');
SELECT data FROM pubsub_read(NULL::t_account, max_records => 2) ORDER BY data;
BEGIN;
SELECT data FROM pubsub_consume(NULL::t_account, 2) ORDER BY data;
ROLLBACK;
SELECT data FROM pubsub_consume(NULL::t_account, 2) ORDER BY data});
is($out, "t\n" . join("\n", ('over TLS', 'too') x 3), 'a service account reads and writes over TLS');
my $seen = authorizations();
foreach my $method (qw(CreateSubscription GetTopic Publish GetSubscription Pull
	ModifyAckDeadline Acknowledge))
{
	is(scalar(keys %{ $seen->{$method} // {} }), 1, "$method sends a token");
}
my %tokens = map { $_ => 1 } map { keys %$_ } values %$seen;
is(scalar(keys %tokens), 1, 'the token is kept');
my ($token) = keys %tokens;

# The token
sub base64url
{
	my ($text) = @_;

	$text =~ tr,-_,+/,;
	return decode_base64($text . '=' x (-length($text) % 4));
}

like($token, qr/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/, 'it is a JWT');
my ($head, $claims, $signature) = $token =~ /^Bearer (.*)\.(.*)\.(.*)$/;
is_deeply(decode_json(base64url($head)),
	{ alg => 'RS256', typ => 'JWT', kid => 'key-0123456789abcdef' },
	'its header');
$claims = decode_json(base64url($claims));
my ($iat, $exp) = (delete $claims->{iat}, delete $claims->{exp});
is_deeply($claims, { iss => $email, sub => $email, aud => 'https://127.0.0.1/' },
	'its claims');
cmp_ok(abs($iat - time()), '<=', 60, 'it was issued now');
is($exp - $iat, 3600, 'it is good for an hour');
append_to_file("$dir/signature", base64url($signature));
append_to_file("$dir/signed", $token =~ s/^Bearer (.*)\.[^.]*$/$1/r);
is(system("openssl dgst -sha256 -verify $public -signature $dir/signature $dir/signed >$dir/verify 2>&1"),
	0, 'its signature');

#
# A file, a given token, nothing
#
append_to_file("$dir/account.json", account(private_key_id => 'in-a-file'));
new_server('file', mapping => { credentials_file => "$dir/account.json" });
new_server('token', mapping => { access_token => 'ya29.S3cr3t-42' });
new_server('none');
say_all("INSERT INTO t_$_ VALUES ('$_'); SELECT * FROM pubsub_consume(NULL::t_$_, 1)")
  foreach qw(file token none);
$seen = authorizations();
is(join(' ', sort map { /^Bearer ([\w-]+)\./ && base64url($1) =~ /in-a-file/ ? 'file' : $_ }
		keys %{ $seen->{Publish} }),
	'- Bearer ya29.S3cr3t-42 file', 'a file, a given token, none');
is_deeply($seen->{Publish}, $seen->{Acknowledge}, '... in each request');

#
# No request is larger than the service takes (W01)
#
authorizations();
@sizes = ();
($rc, $out, $err) = say_all(q{
ALTER SERVER none OPTIONS (ADD batch_bytes '10000000', ADD batch_size '1000');
ALTER FOREIGN TABLE t_none OPTIONS (SET poll_timeout '5s');
INSERT INTO t_none SELECT repeat(chr(64 + i), 900000) FROM generate_series(1, 25) i;
SELECT count(*), count(DISTINCT data), sum(length(data)) FROM pubsub_consume(NULL::t_none, 25)});
is($out, '25|25|22500000', 'rows of 22.5 MB arrive');
authorizations();
cmp_ok(scalar(@sizes), '>=', 3, 'in several requests');
is(join(' ', grep { $_ > 10_000_000 } @sizes), '', 'none of them larger than 10 MB');

#
# The next statement goes by what the definition says now, in the same session;
# each role has its own, a view that of its owner (S03).
#
my $s = session($node);

$s->query("INSERT INTO t_token VALUES ('1')");
sends('Bearer ya29.S3cr3t-42', 'a token');
$s->query("ALTER USER MAPPING FOR CURRENT_USER SERVER token OPTIONS (SET access_token 'ya29.S3cr3t-43')");
$s->query("INSERT INTO t_token VALUES ('2')");
sends('Bearer ya29.S3cr3t-43', 'the token of ALTER USER MAPPING');
$s->query("BEGIN; SELECT * FROM pubsub_consume(NULL::t_token, 1)");
sends('Bearer ya29.S3cr3t-43', 'in a transaction');
$s->query("ALTER USER MAPPING FOR CURRENT_USER SERVER token OPTIONS (SET access_token 'ya29.S3cr3t-44')");
$s->query('SELECT * FROM pubsub_consume(NULL::t_token, 1)');
sends('Bearer ya29.S3cr3t-44', 'the new one in the middle of it');
$s->query('ROLLBACK');
wait_for('both messages', sub {
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM pubsub_read(NULL::t_none, max_records => 2, max_read_time => '1 s')") == 2;
}, 10);
authorizations();
$s->query('SELECT * FROM pubsub_consume(NULL::t_token, 2)');
sends('Bearer ya29.S3cr3t-43', 'the old one after ROLLBACK');
$s->query("ALTER SERVER token OPTIONS (SET endpoint '$ENV{PUBSUB_TLS_ENDPOINT}')");
(undef, $err) = $s->query("INSERT INTO t_token VALUES ('3'); SELECT * FROM pubsub_consume(NULL::t_token, 1)");
is($err, '', 'ALTER SERVER: another endpoint');
sends('', '... is where it goes');
$s->query("ALTER SERVER token OPTIONS (SET endpoint '$endpoint')");
$s->query('DROP USER MAPPING FOR CURRENT_USER SERVER token');
(undef, $err) = $s->query('SELECT * FROM t_token LIMIT 1');
like($err, qr/ERROR:  28000: .*HINT:  .*"access_token"/s, 'DROP USER MAPPING: no more');
sends('', '... and no request');

$s->query(qq{
CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE carol;
GRANT SELECT, DELETE, INSERT ON t_token TO alice, bob, carol;
CREATE USER MAPPING FOR alice SERVER token OPTIONS (access_token 'ya29.S3cr3t-alice');
CREATE USER MAPPING FOR bob SERVER token OPTIONS (access_token 'ya29.S3cr3t-bob');
GRANT CREATE ON SCHEMA public TO alice;
SET ROLE alice; CREATE VIEW alices AS SELECT * FROM t_token; GRANT SELECT ON alices TO carol, bob; RESET ROLE});
foreach my $role (qw(alice bob alice))
{
	$s->query("SET ROLE $role; INSERT INTO t_token VALUES ('x'); SELECT * FROM pubsub_consume(NULL::t_token, 1)");
	sends("Bearer ya29.S3cr3t-$role", "SET ROLE $role");
	$s->query('RESET ROLE');
}
(undef, $err) = $s->query("SET ROLE carol; SELECT * FROM t_token");
like($err, qr/ERROR:  42704: user mapping not found for user "carol"/, 'carol has none');
(undef, $err) = $s->query('SELECT * FROM alices LIMIT 1');
is($err, '', 'but may look through a view');
sends('Bearer ya29.S3cr3t-alice', '... with its owner\'s token');
$s->query("SET ROLE bob; SELECT * FROM alices LIMIT 1");
sends('Bearer ya29.S3cr3t-alice', '... as does one who has a token');
$s->query('RESET ROLE');
(undef, $err) = $s->query("ALTER SERVER token OPTIONS (SET endpoint '$ENV{PUBSUB_ENDPOINT}', DROP ssl_ca_pem)");
(undef, $err) = $s->query("SET ROLE alice; SELECT * FROM t_token LIMIT 1");
like($err, qr/ERROR:  22023: credentials cannot be sent to server "token"/, 'no token goes unencrypted');
$s->quit;

#
# Mistakes
#
fails('system_ca', qr/ERROR:  could not connect to server "system_ca"\n.*certificate/s, ssl_ca_pem => undef);
fails('other_ca', qr/ERROR:  could not connect to server "other_ca"\n.*certificate/s, ssl_ca_pem => other_ca());
fails('other_name', qr/ERROR:  could not connect to server "other_name"\n.*(name|address|127\.0\.0\.2)/s,
	endpoint => "https://127.0.0.2:$port");
fails('tls_to_plain', qr/ERROR:  could not connect to server "tls_to_plain"\n.*HINT:  .*endpoint/s,
	endpoint => $ENV{PUBSUB_ENDPOINT} =~ s/^http:/https:/r);
fails('plain_to_tls', qr/ERROR:  could not .*HINT:  .*"endpoint".*https:/s,
	endpoint => $endpoint =~ s/^https:/http:/r, ssl_ca_pem => undef);
fails('http1', qr/ERROR:  could not connect to server "http1"\n.*HTTP\/2/s,
	endpoint => "https://127.0.0.1:$http1_port");
fails('no_credentials', qr/ERROR:  .*"no_credentials"\n.*HINT:  .*"credentials_json"/s, mapping => undef);
fails('no_key', qr/ERROR:  .*"no_key"\n.*"private_key"/s,
	mapping => { credentials_json => account(private_key => undef) });
fails('bad_key', qr/ERROR:  .*"bad_key"\n.*"private_key"/s,
	mapping => { credentials_json => account(private_key => substr($pem, 0, 400) . substr($pem, 460)) });
fails('bad_json', qr/ERROR:  .*"bad_json"/s,
	mapping => { credentials_json => substr(account(), 0, -40) });
fails('other_type', qr/ERROR:  .*"other_type"\n.*service_account/s,
	mapping => { credentials_json => account(type => 'authorized_user', refresh_token => 'S3cr3t-42') });
fails('bad_token', qr/ERROR:  .*"bad_token"\n/s, mapping => { access_token => "S3cr3t-42\r\nX: y" });
fails('no_file', qr/ERROR:  .*"no_file"\n.*No such file/s,
	mapping => { credentials_file => "$dir/not-there.json" });
fails('dir_file', qr/ERROR:  .*"dir_file"\n/s, mapping => { credentials_file => $dir });
sends('', 'and nobody sent anything');
say_all("CREATE SERVER secret FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'pubsub', project 'regress-project', access_token 'S3cr3t-42')");
say_all("CREATE FOREIGN TABLE secret (data text) SERVER none OPTIONS (access_token 'S3cr3t-42')");
say_all("CREATE USER MAPPING FOR carol SERVER none OPTIONS (acces_token 'S3cr3t-42')");
say_all("CREATE USER MAPPING FOR carol SERVER none OPTIONS (credentials_json 'S3cr3t-42')");
say_all('SELECT * FROM t_account LIMIT 1; SELECT * FROM pubsub_get_connections(); EXPLAIN (VERBOSE) SELECT * FROM t_account');

# A certificate that signed nothing here
sub other_ca
{
	system_or_bail('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes',
		'-subj', '/CN=Somebody else', '-keyout', "$dir/other.key", '-out', "$dir/other.crt");
	return slurp_file("$dir/other.crt");
}

#
# Sessions over TLS that end
#
sql($node, 'SELECT * FROM t_account LIMIT 1') for 1 .. 20;

#
# Nothing of all that was said (S02): no line of the key, no token, no given one
#
$node->stop;
my $log = slurp_file($node->logfile);
my $said = join('', values %said);
my ($n, %found) = (0);

unlike($log, qr/was terminated by signal|PANIC|TRAP/, 'no crash');
cmp_ok(length($log), '>', 100_000, 'the log is at level debug5');
foreach my $secret ('S3cr3t-4', 'S3cr3t-b', 'S3cr3t-a', $signature, (split /\./, $token)[1],
	grep { length > 20 && !/---/ } split(/\n/, $pem))
{
	$n++;
	$found{$secret}++ if index($log, $secret) >= 0;
	$found{$secret}++ if index($said, $secret) >= 0;
}
cmp_ok($n, '>', 20, 'there are secrets to look for');
is(join("\n", keys %found), '', 'no secret was said or logged');
unlike($log . $said, qr/Bearer|BEGIN PRIVATE/, 'nor anything that goes with them');

done_testing();
