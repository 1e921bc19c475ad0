# test/t/071_kafka_admin.pl
#		An administrative call that fails leaves nothing behind, also when the
#		error is caught and the next one follows in the same transaction

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PubsubTest;
use Test::More;

my $node = new_cluster('admin');

kafka_server($node, name => 'dead', bootstrap_servers => '127.0.0.1:1',
	request_timeout => '300ms');

my $s = session($node);
my $threads = backend_threads($s->pid);
my $fds = backend_fds($s->pid);

my ($out, $err) = $s->query(q{
BEGIN;
DO $$
BEGIN
	FOR i IN 1..4 LOOP
		BEGIN
			PERFORM pubsub_create_topic('dead', 'x');
		EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN
			RAISE NOTICE 'caught';
		END;
	END LOOP;
END $$;
COMMIT;
});
is(scalar(my @caught = $err =~ /caught/g), 4, 'four calls fail');
$s->query('SELECT pubsub_disconnect()');
wait_for('the threads to end',
	sub { backend_threads($s->pid) == $threads }, 10);
is(backend_fds($s->pid), $fds, 'no descriptor is left');
$s->quit;

$node->stop;
done_testing();
