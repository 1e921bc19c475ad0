# test/t/110_kafka_login.pl
#		Who may in, and who is told why not: TLS, SASL, wrong everything
#
# SCRAM with Kafka 4 needs a newer librdkafka than Debian 12's.  There the error
# has to say so; a second cluster runs with a newer one and logs in.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my %ca = (ssl_ca_pem => $ENV{KAFKA_CA_PEM});
my %sasl = (
	bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP},
	security_protocol => 'sasl_ssl', %ca);
my %alice = (
	sasl_username => $ENV{KAFKA_USER}, sasl_password => $ENV{KAFKA_PASSWORD});
my $topic = unique_name('login');

# Reads and writes through a server, as a table of its own
sub works
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($node, $server) = @_;

	sql_ok($node, qq{
CREATE FOREIGN TABLE t_$server (data text) SERVER $server OPTIONS (topic '$topic');
INSERT INTO t_$server VALUES ('via $server');
SELECT data FROM t_$server WHERE data = 'via $server';},
		"via $server", "$server reads and writes");
	return;
}

# Cannot do anything through a server, and hears so in bounded time
sub refused
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($node, $server, $pattern) = @_;
	my $err;

	within(12, sub {
		$err = sql_fails($node, qq{
\\set VERBOSITY verbose
CREATE FOREIGN TABLE t_$server (data text) SERVER $server OPTIONS (topic '$topic');
SELECT * FROM t_$server;},
			$pattern, "$server is refused");
	}, "$server hears it within the connect timeout");
	unlike($err, qr/secret/, "$server: no password in the message");
	return $err;
}

my $node = new_cluster('old');

kafka_server($node, name => 'plaintext');
$node->safe_psql('postgres', "SELECT pubsub_create_topic('plaintext', '$topic', 1)");
works($node, 'plaintext');

kafka_server($node, name => 'plain', %sasl, sasl_mechanism => 'PLAIN',
	mapping => \%alice);
works($node, 'plain');

kafka_server($node, name => 'mutual', %ca,
	bootstrap_servers => $ENV{KAFKA_SSL_BOOTSTRAP},
	security_protocol => 'ssl',
	mapping => {
		ssl_certificate_pem => $ENV{KAFKA_CLIENT_CERT_PEM},
		ssl_key_pem => $ENV{KAFKA_CLIENT_KEY_PEM}
	});
works($node, 'mutual');

kafka_server($node, name => 'wrong_password', %sasl, sasl_mechanism => 'PLAIN',
	mapping => { %alice, sasl_password => 'not-the-secret' });
refused($node, 'wrong_password', qr/ERROR:  28000: .*HINT:  /s);

kafka_server($node, name => 'no_certificate', %ca,
	bootstrap_servers => $ENV{KAFKA_SSL_BOOTSTRAP},
	security_protocol => 'ssl');
refused($node, 'no_certificate', qr/ERROR:  (08001|28000): /);

kafka_server($node, name => 'unknown_ca',
	bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP},
	security_protocol => 'sasl_ssl', sasl_mechanism => 'PLAIN',
	mapping => \%alice);
refused($node, 'unknown_ca', qr/ERROR:  08001: .*certificate.*HINT:  .*ssl_ca_pem/s);

kafka_server($node, name => 'tls_to_plaintext', %ca,
	security_protocol => 'ssl');
refused($node, 'tls_to_plaintext', qr/ERROR:  08001: .*HINT:  .*security_protocol/s);

kafka_server($node, name => 'plaintext_to_tls',
	bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP});
refused($node, 'plaintext_to_tls', qr/ERROR:  08001: .*HINT:  .*security_protocol/s);

kafka_server($node, name => 'denied', %sasl, sasl_mechanism => 'PLAIN',
	mapping => {
		sasl_username => $ENV{KAFKA_DENIED_USER},
		sasl_password => $ENV{KAFKA_DENIED_PASSWORD}
	});
refused($node, 'denied', qr/ERROR:  42501: .*\Q$topic\E/s);

# SCRAM with the distribution's library
my $version = $node->safe_psql('postgres',
	"SELECT version FROM pubsub_fdw_version() WHERE component = 'librdkafka'");
my ($major, $minor, $patch) = $version =~ /^(\d+)\.(\d+)\.(\d+)/;

kafka_server($node, name => 'scram', %sasl, sasl_mechanism => 'SCRAM-SHA-256',
	mapping => \%alice);
if ($major * 1_000_000 + $minor * 1000 + $patch < 2_006_001)
{
	my $err = refused($node, 'scram', qr/ERROR:  28000: .*HINT:  .*SCRAM.*2\.6\.1/s);

	like($err, qr/\Q$version\E/, 'the hint names the version');
}
else
{
	works($node, 'scram');
}
$node->stop;

# ... and with a newer one
$ENV{LD_LIBRARY_PATH} = new_librdkafka();
my $new = new_cluster('new');

isnt($new->safe_psql('postgres',
		"SELECT version FROM pubsub_fdw_version() WHERE component = 'librdkafka'"),
	$version, 'a newer librdkafka is in use');
foreach my $bits (256, 512)
{
	kafka_server($new, name => "scram_$bits", %sasl,
		sasl_mechanism => "SCRAM-SHA-$bits", mapping => \%alice);
	works($new, "scram_$bits");
}
kafka_server($new, name => 'scram_wrong', %sasl,
	sasl_mechanism => 'SCRAM-SHA-512',
	mapping => { %alice, sasl_password => 'not-the-secret' });
my $err = refused($new, 'scram_wrong', qr/ERROR:  28000: .*HINT:  /s);
unlike($err, qr/2\.6\.1/, 'a wrong password is not blamed on the library');

done_testing();
