# test/t/030_kafka_security.pl
#		TLS, logins and certificates of Kafka; what goes wrong is named, secrets
#		are not; whose credentials are used

use strict;
use warnings;

use FindBin;
use MIME::Base64;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $secret = 'S3cr3t-42';
my $node = new_cluster('security');
my ($out, $err);

my $log_start = -s $node->logfile;
# now, not at the start: the server dumps its environment there
$node->safe_psql('postgres', 'ALTER SYSTEM SET log_min_messages = debug5; SELECT pg_reload_conf()');

# table(SERVER, TOPIC, NAME): a foreign table
sub table
{
	my ($server, $topic, $name) = @_;

	$name //= $server;
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE $name (data text, \"offset\" bigint) SERVER $server OPTIONS (topic '$topic', group_id 'g')");
	return;
}

# The options of the listeners
my %plain = (bootstrap_servers => $ENV{KAFKA_BOOTSTRAP});
my %sasl = (bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP},
	security_protocol => 'sasl_ssl', sasl_mechanism => 'PLAIN', ssl_ca_pem => $ENV{KAFKA_CA_PEM});
my %ssl = (bootstrap_servers => $ENV{KAFKA_SSL_BOOTSTRAP},
	security_protocol => 'ssl', ssl_ca_pem => $ENV{KAFKA_CA_PEM});
my %alice = (sasl_username => $ENV{KAFKA_USER}, sasl_password => $ENV{KAFKA_PASSWORD});
my %certificate = (ssl_certificate_pem => $ENV{KAFKA_CLIENT_CERT_PEM}, ssl_key_pem => $ENV{KAFKA_CLIENT_KEY_PEM});

my $topic = unique_name('security');
kafka_server($node);
$node->safe_psql('postgres', "SELECT pubsub_create_topic('kafka', '$topic', partitions => 1)");
table('kafka', $topic);
$node->safe_psql('postgres', "INSERT INTO kafka VALUES ('one')");

#
# What works
#
kafka_server($node, name => 'sasl', %sasl, mapping => \%alice);
table('sasl', $topic);
sql_ok($node, 'SELECT data FROM sasl', 'one', 'PLAIN over TLS: SELECT');
sql_ok($node, "INSERT INTO sasl VALUES ('two'); SELECT data FROM pubsub_consume(NULL::sasl)", "one\ntwo", 'PLAIN over TLS: INSERT, consume');
sql_ok($node, "SELECT pubsub_create_topic('sasl', '${topic}_2', partitions => 1), pubsub_drop_topic('sasl', '${topic}_2')", 't|t', 'PLAIN over TLS: topics');
kafka_server($node, name => 'ssl', %ssl, mapping => \%certificate);
table('ssl', $topic);
sql_ok($node, "INSERT INTO ssl VALUES ('three'); SELECT data FROM ssl WHERE \"offset\" > 0", "two\nthree", 'a client certificate');
kafka_server($node, name => 'ca_file', %ssl, mapping => \%certificate);
$node->safe_psql('postgres', "ALTER SERVER ca_file OPTIONS (DROP ssl_ca_pem, ADD ssl_ca_location '$ENV{BROKERS_CA_FILE}')");
table('ca_file', $topic);
sql_ok($node, 'SELECT count(*) FROM ca_file', '3', 'the authority in a file');

#
# What does not: an error that names the thing, within the connect timeout, on
# a server of its own
#
my $other_ca = other_ca();
my $nserver = 0;
my @faults = (
	[ 'wrong password', qr/28000: could not log in to server "S"/, qr/HINT:.*sasl_password/,
		{ %sasl }, { %alice, sasl_password => $secret } ],
	[ 'wrong user', qr/28000: could not log in to server "S"/, qr/HINT:.*sasl_username/,
		{ %sasl }, { %alice, sasl_username => 'mallory', sasl_password => $secret } ],
	[ 'no password', qr/28000: could not log in to server "S"/, qr/HINT:.*"sasl_username" and "sasl_password"/,
		{ %sasl }, undef ],
	[ 'SCRAM with an old librdkafka', qr/28000: could not log in to server "S"/, qr/HINT:.*librdkafka 2\.0\.2 cannot log in with SCRAM/,
		{ %sasl, sasl_mechanism => 'SCRAM-SHA-512' }, { %alice } ],
	[ 'TLS against a plaintext port', qr/08001: could not connect to server "S"/, qr/SSL.*HINT:.*security_protocol/s,
		{ %ssl, %plain }, { %certificate } ],
	[ 'plaintext against a TLS port', qr/08001: could not connect to server "S"/, qr/HINT:.*security_protocol/,
		{ bootstrap_servers => $ENV{KAFKA_SSL_BOOTSTRAP} }, undef ],
	[ 'plaintext against a SASL port', qr/08001: could not connect to server "S"/, qr/HINT:.*security_protocol/,
		{ bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP} }, undef ],
	[ 'a login at a plaintext port', qr/(28000: could not log in|08001: could not connect) to server "S"/, qr/HINT:.*security_protocol/,
		{ %plain, security_protocol => 'sasl_plaintext', sasl_mechanism => 'PLAIN' }, { %alice, sasl_password => $secret } ],
	[ 'TLS without a login at a SASL port', qr/(28000|08001): .*"S"/, qr/HINT:.*security_protocol/,
		{ %ssl, bootstrap_servers => $ENV{KAFKA_SASL_BOOTSTRAP} }, undef ],
	[ 'the wrong authority', qr/08001: could not connect to server "S"/, qr/certificate verify failed.*HINT:.*ssl_ca_pem/s,
		{ %sasl, ssl_ca_pem => $other_ca }, { %alice } ],
	[ 'no authority', qr/08001: could not connect to server "S"/, qr/certificate verify failed.*HINT:.*ssl_ca_pem/s,
		{ %sasl, ssl_ca_pem => undef }, { %alice } ],
	[ 'another host name', qr/08001: could not connect to server "S"/, qr/(hostname|IP address) mismatch.*HINT:/si,
		{ %sasl, bootstrap_servers => other_name($ENV{KAFKA_SASL_BOOTSTRAP}) }, { %alice } ],
	[ 'no certificate', qr/(08001|28000): could not (connect|log in) to server "S"/, qr/DETAIL:/,
		{ %ssl }, undef ],
	[ 'a key that is none', qr/22023: .*/, qr/ssl\.key\.pem|key/,
		{ %ssl }, { %certificate, ssl_key_pem => "-----BEGIN PRIVATE KEY-----\n$secret\n-----END PRIVATE KEY-----" } ],
	[ 'an authority that is none', qr/22023: .*/, qr/ca/i,
		{ %ssl, ssl_ca_pem => "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----" }, { %certificate } ]);

foreach my $fault (@faults)
{
	my ($name, $message, $rest, $options, $mapping) = @$fault;
	my $server = 'bad' . ++$nserver;

	delete $options->{$_} foreach grep { !defined $options->{$_} } keys %$options;
	kafka_server($node, name => $server, %$options, connect_timeout => '2s', $mapping ? (mapping => $mapping) : ());
	table($server, $topic);
	foreach my $sql ("SELECT count(*) FROM $server",
		$nserver <= 2 ? "INSERT INTO $server VALUES ('no')" : ())
	{
		my $start = time();

		(undef, $out, $err) = verbose($sql);
		my $took = time() - $start;
		(my $text = $err) =~ s/"$server"/"S"/g;

		like($text, $message, "$name: $sql") or diag($err);
		like($text, $rest, "$name: tells what to look at");
		is($out, '', "$name: no result");
		cmp_ok($took, '<', 3, "$name: in time");
	}
}
sql_ok($node, 'SELECT count(*) FROM kafka', '3', 'nothing was published by these');

# a user who may log in, and no more
kafka_server($node, name => 'denied', %sasl,
	mapping => { sasl_username => $ENV{KAFKA_DENIED_USER}, sasl_password => $ENV{KAFKA_DENIED_PASSWORD} });
table('denied', $topic);
foreach my $sql ('SELECT count(*) FROM denied', "INSERT INTO denied VALUES ('no')",
	'SELECT count(*) FROM pubsub_consume(NULL::denied)',
	"SELECT pubsub_create_topic('denied', '${topic}_denied', partitions => 1)", "SELECT pubsub_drop_topic('denied', '$topic')")
{
	within(5, sub { (undef, undef, $err) = verbose($sql); }, "denied by the broker: $sql: in time");
	like($err, qr/42501: permission denied by server "denied"/, "denied by the broker: $sql");
}
sql_ok($node, 'SELECT count(*) FROM kafka', '3', 'the topic is still there');

#
# Secrets: in no message and not in the log
#
(undef, $out, $err) = sql($node,
	"SET client_min_messages = debug5; SELECT * FROM pubsub_get_connections(); EXPLAIN VERBOSE SELECT * FROM sasl;
	SELECT count(*) FROM sasl; SELECT * FROM pubsub_get_connections(); SELECT count(*) FROM bad1");
unlike("$out$err", qr/\Q$secret\E|\Q$ENV{KAFKA_PASSWORD}\E/, 'no secret in messages with debug5');
sql($node, "SET client_min_messages = debug5; ALTER SERVER bad1 OPTIONS (ADD \"properties.debug\" 'all'); SELECT count(*) FROM bad1");
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $log_start);
# but for the statements that set them, which the server logs as they are
$log = join("\n", grep { !/USER MAPPING/ } split(/\n(?=\d{4}-)/, $log));
cmp_ok(length $log, '>', 10000, 'there is a log');
ok($log !~ /\Q$secret\E|\Q$ENV{KAFKA_PASSWORD}\E/, 'no secret in the log with debug5');
ok(index($log, MIME::Base64::encode_base64($secret, '')) < 0, 'not in base64 either');
sql_fails($node, "CREATE SERVER leak FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'kafka', bootstrap_servers 'x:1', sasl_password '$secret')",
	qr/option "sasl_password" is not allowed.*user mapping/s, 'a secret in a server is refused');
sql_fails($node, "CREATE FOREIGN TABLE leak (data text) SERVER kafka OPTIONS (topic 'x', sasl_password '$secret')",
	qr/option "sasl_password" is not allowed.*user mapping/s, 'and in a table');

#
# Properties that run or load something, or read files of the server
#
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; GRANT USAGE ON FOREIGN DATA WRAPPER pubsub_fdw TO plain; GRANT ALL ON SCHEMA public TO plain');
my $pwned = $node->basedir . '/PWNED';
foreach my $option ("\"properties.sasl.kerberos.kinit.cmd\" 'touch $pwned'", "\"properties.plugin.library.paths\" 'x'",
	"\"properties.ssl.engine.location\" 'x'", "\"properties.ssl.providers\" 'x'",
	"\"properties.bootstrap.servers\" 'x:1'", "\"properties.metadata.broker.list\" 'x:1'",
	"\"properties.group.id\" 'x'", "\"properties.enable.auto.commit\" 'true'", "\"properties.sasl.password\" 'x'",
	"\"properties.isolation.level\" 'read_uncommitted'", "\"properties.transactional.id\" 'x'",
	"\"properties.security.protocol\" 'plaintext'", "\"properties.internal.termination.signal\" '1'",
	"\"properties. debug\" 'all'", "\"properties.DEBUG\" 'all'", "\"properties.\" 'x'")
{
	sql_fails($node, "CREATE SERVER evil FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'kafka', bootstrap_servers '$ENV{KAFKA_BOOTSTRAP}', $option)",
		qr/ERROR:/, "refused, also to superusers: $option");
}
foreach my $option ("\"properties.ssl.key.location\" '/etc/passwd'", "\"properties.ssl.certificate.location\" '/etc/passwd'",
	"\"properties.ssl.keystore.location\" '/etc/passwd'", "\"properties.ssl.crl.location\" '/etc/passwd'",
	"ssl_ca_location '/etc/passwd'", "\"properties.debug\" 'all'", "\"properties.enable.ssl.certificate.verification\" 'false'",
	"\"properties.ssl.endpoint.identification.algorithm\" 'none'")
{
	sql_fails($node, "SET ROLE plain; CREATE SERVER evil FOREIGN DATA WRAPPER pubsub_fdw OPTIONS (broker 'kafka', bootstrap_servers 'x:1', $option)",
		qr/ERROR:.*(superuser|permission denied|pg_read_server_files)/is, "for superusers only: $option");
}
ok(!-e $pwned, 'nothing was run');
# set by a superuser, changed by a plain owner
sql_fails($node, "ALTER SERVER ca_file OWNER TO plain; SET ROLE plain; ALTER SERVER ca_file OPTIONS (SET ssl_ca_location '/etc/passwd')",
	qr/ERROR:/, 'nor may a plain owner change a file');

#
# Whose credentials: changes take effect in the session that is open
#
my $s = session($node);
kafka_server($node, name => 'who', %sasl, connect_timeout => '2s', mapping => \%alice);
table('who', $topic);
($out, $err) = $s->query('SELECT count(*) FROM who');
is("$out$err", '3', 'with the right password');
$node->safe_psql('postgres', "ALTER USER MAPPING FOR CURRENT_USER SERVER who OPTIONS (SET sasl_password '$secret')");
($out, $err) = $s->query('SELECT count(*) FROM who');
like($err, qr/28000/, 'ALTER USER MAPPING: the new password is used');
($out, $err) = $s->query("INSERT INTO who VALUES ('no')");
like($err, qr/28000/, 'ALTER USER MAPPING: by INSERT, too');
$node->safe_psql('postgres', "ALTER USER MAPPING FOR CURRENT_USER SERVER who OPTIONS (SET sasl_password '$ENV{KAFKA_PASSWORD}')");
($out, $err) = $s->query("INSERT INTO who VALUES ('four'); SELECT count(*) FROM who");
is("$out$err", '4', 'and the old one again');
$node->safe_psql('postgres', "ALTER SERVER who OPTIONS (SET bootstrap_servers '127.0.0.1:1')");
($out, $err) = $s->query('SELECT count(*) FROM who');
like($err, qr/08001.*127\.0\.0\.1:1\b/s, 'ALTER SERVER: the new host is used');
($out, $err) = $s->query("INSERT INTO who VALUES ('no')");
like($err, qr/08001.*127\.0\.0\.1:1\b/s, 'ALTER SERVER: by INSERT, too');
$node->safe_psql('postgres', "ALTER SERVER who OPTIONS (SET bootstrap_servers '$ENV{KAFKA_SASL_BOOTSTRAP}')");
($out, $err) = $s->query("INSERT INTO who VALUES ('five'); SELECT count(*) FROM who");
is("$out$err", '5', 'and the old one again');
# a statement goes on with what it began with
$s->query('BEGIN; DECLARE c CURSOR FOR SELECT data FROM who; FETCH 1 FROM c');
$node->safe_psql('postgres', 'DROP USER MAPPING FOR CURRENT_USER SERVER who');
($out, $err) = $s->query('FETCH ALL FROM c');
is(scalar(split /\n/, $out), 4, 'a cursor that is open goes on');
($out, $err) = $s->query('SELECT count(*) FROM who');
like($err, qr/28000: could not log in to server "who"/, 'DROP USER MAPPING: no login without');
$s->query('ROLLBACK');
($out, $err) = $s->query("INSERT INTO who VALUES ('no')");
like($err, qr/28000: could not log in to server "who"/, 'DROP USER MAPPING: by INSERT, too');

# roles with mappings of their own, in one session
$node->safe_psql('postgres',
	"CREATE ROLE may_all; CREATE ROLE may_nothing; CREATE ROLE no_mapping; CREATE ROLE by_view;
	CREATE USER MAPPING FOR may_all SERVER who OPTIONS (sasl_username '$ENV{KAFKA_USER}', sasl_password '$ENV{KAFKA_PASSWORD}');
	CREATE USER MAPPING FOR may_nothing SERVER who OPTIONS (sasl_username '$ENV{KAFKA_DENIED_USER}', sasl_password '$ENV{KAFKA_DENIED_PASSWORD}');
	GRANT SELECT, INSERT, DELETE ON who TO may_all, may_nothing, no_mapping;
	CREATE VIEW who_view AS SELECT data FROM who; ALTER VIEW who_view OWNER TO may_all;
	CREATE FUNCTION who_definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM who';
	ALTER FUNCTION who_definer() OWNER TO may_all;
	CREATE FUNCTION who_consume() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM pubsub_consume(NULL::who)';
	ALTER FUNCTION who_consume() OWNER TO may_all;
	GRANT SELECT, INSERT ON who_view TO by_view, may_nothing");
foreach my $i (1 .. 2)
{
	($out, $err) = $s->query('SET ROLE may_all; SELECT count(*) FROM who');
	is("$out$err", '5', "SET ROLE to one who may, time $i");
	($out, $err) = $s->query('SET ROLE may_nothing; SELECT count(*) FROM who');
	like($err, qr/42501: permission denied by server "who"/, "SET ROLE to one who may not, time $i");
	($out, $err) = $s->query("INSERT INTO who VALUES ('no')");
	like($err, qr/42501: permission denied by server "who"/, "and may not publish, time $i");
	($out, $err) = $s->query('SELECT count(*) FROM pubsub_consume(NULL::who)');
	like($err, qr/42501: permission denied by server "who"/, "nor consume, time $i");
	($out, $err) = $s->query('SELECT count(*) FROM who_view');
	is("$out$err", '5', "a view reads as its owner, time $i");
}
($out, $err) = $s->query('SET ROLE by_view; SELECT count(*) FROM who_view');
is("$out$err", '5', 'also for those without a mapping');
($out, $err) = $s->query("INSERT INTO who_view VALUES ('six'); SELECT count(*) FROM who_view");
is("$out$err", '6', 'and publishes as its owner');
($out, $err) = $s->query('SELECT who_definer()');
is("$out$err", '6', 'a security definer function reads as its owner');
($out, $err) = $s->query('SELECT who_consume()');
is("$out$err", '6', 'and consumes');
($out, $err) = $s->query('SELECT count(*) FROM who');
like($err, qr/42501: permission denied for foreign table who/, 'the table itself is not theirs');
($out, $err) = $s->query('SET ROLE no_mapping; SELECT count(*) FROM who');
like($err, qr/42704: user mapping not found for user "no_mapping"/, 'no mapping');
$s->query('RESET ROLE');

# a mapping without credentials is for superusers to allow
$node->safe_psql('postgres', "GRANT USAGE ON FOREIGN SERVER kafka TO plain; GRANT SELECT ON kafka TO plain; CREATE USER MAPPING FOR plain SERVER kafka");
($out, $err) = $s->query('SET ROLE plain; SELECT count(*) FROM kafka');
like($err, qr/ERROR:.*credentials|ERROR:.*password/i, 'a plain user needs credentials');
($out, $err) = $s->query("ALTER USER MAPPING FOR plain SERVER kafka OPTIONS (ADD credentials_required 'false')");
like($err, qr/42501/, 'and cannot do away with that');
($out, $err) = $s->query("RESET ROLE; ALTER USER MAPPING FOR plain SERVER kafka OPTIONS (ADD credentials_required 'false'); SET ROLE plain; SELECT count(*) FROM kafka");
is("$out$err", '6', 'a superuser can');
$s->query('RESET ROLE');

# pubsub_get_connections, pubsub_disconnect
($out, $err) = $s->query("SELECT count(*) FROM sasl; SELECT server_name, broker, valid, in_transaction FROM pubsub_get_connections() WHERE server_name = 'sasl'; SELECT pubsub_disconnect('sasl'), pubsub_disconnect('sasl')");
is("$out$err", "6\nsasl|kafka|t|f\nt|f", 'connections are listed and closed');
$s->quit;

#
# SCRAM, with a librdkafka that can
#
{
	local $ENV{LD_LIBRARY_PATH} = new_librdkafka();
	my $new = new_cluster('scram');

	my $version = $new->safe_psql('postgres', "SELECT version FROM pubsub_fdw_version() WHERE component = 'librdkafka'");
	like($version, qr/^2\.([6-9]|\d\d)\./, "librdkafka $version");
	foreach my $mechanism ('SCRAM-SHA-256', 'SCRAM-SHA-512', 'PLAIN')
	{
		(my $server = lc $mechanism) =~ s/-/_/g;
		kafka_server($new, name => $server, %sasl, sasl_mechanism => $mechanism, mapping => \%alice);
		$new->safe_psql('postgres', "CREATE FOREIGN TABLE $server (data text) SERVER $server OPTIONS (topic '$topic')");
		sql_ok($new, "INSERT INTO $server VALUES ('$mechanism'); SELECT data FROM $server WHERE data = '$mechanism'", $mechanism, "$mechanism");
		kafka_server($new, name => "${server}_bad", %sasl, sasl_mechanism => $mechanism, connect_timeout => '2s',
			mapping => { %alice, sasl_password => $secret });
		$new->safe_psql('postgres', "CREATE FOREIGN TABLE ${server}_bad (data text) SERVER ${server}_bad OPTIONS (topic '$topic')");
		my $err = sql_fails($new, "SELECT * FROM ${server}_bad", qr/could not log in to server "${server}_bad"/, "$mechanism, wrong password");
		unlike($err, qr/2\.6\.1/, "$mechanism: the hint is not about the library");
	}
	$new->stop;
}

$node->stop;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/PANIC|was terminated by signal/, 'no crash');
done_testing();

# Runs SQL with the SQLSTATE in its messages
sub verbose
{
	my ($sql) = @_;

	return sql($node, "\\set VERBOSITY verbose\n$sql");
}

# An authority that signed nothing here
sub other_ca
{
	my $dir = $node->basedir;

	system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=other' -keyout $dir/ca.key -out $dir/ca.crt 2>/dev/null") == 0
	  or die "openssl failed\n";
	return PostgreSQL::Test::Utils::slurp_file("$dir/ca.crt");
}

# The same port by a name that the certificate does not have
sub other_name
{
	my ($address) = @_;

	$address =~ s/^127\.0\.0\.1/127.1/;
	return $address;
}
