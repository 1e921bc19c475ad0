# test/brokers/lib.sh: what start, stop and broker share (sourced, bash)
#
# All state is under $BROKERS_DIR (default build/brokers); the addresses are in
# $BROKERS_DIR.env.  A process is known by its pid together with its start
# time, so that a number that the system gave to somebody else is left alone.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

BROKERS_DIR=${BROKERS_DIR:-$top/build/brokers}
mkdir -p "$(dirname "$BROKERS_DIR")"
BROKERS_DIR=$(cd "$(dirname "$BROKERS_DIR")" && pwd)/$(basename "$BROKERS_DIR")
BROKERS_ENV=$BROKERS_DIR.env

# Kept between runs: what came from the package registries
KAFKA_LIBS=${KAFKA_LIBS:-$top/build/kafka-libs}

# Seconds that a broker may take until it answers
START_TIMEOUT=${START_TIMEOUT:-60}

all_brokers="kafka pubsub proxy"

die()
{
	printf 'brokers: %s\n' "$1" >&2
	shift
	for hint in "$@"; do
		printf 'HINT: %s\n' "$hint" >&2
	done
	exit 1
}

need()
{
	command -v "$1" >/dev/null || die "\"$1\" is missing" \
		"Install it: apt-get install $2"
}

# start_time PID: field 22 of /proc/PID/stat, counted behind the name
start_time()
{
	local stat

	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	[ "$1" != Z ] || return 1
	echo "${20}"
}

# pid_of NAME: its pid, if it is alive
pid_of()
{
	local pid started

	[ -f "$BROKERS_DIR/$1.pid" ] || return 1
	read -r pid started <"$BROKERS_DIR/$1.pid" || return 1
	[ "$(start_time "$pid")" = "$started" ] || return 1
	echo "$pid"
}

# spawn NAME COMMAND...: runs it in a session of its own, log in NAME.log
spawn()
{
	local name=$1 pid

	shift
	setsid "$@" </dev/null >>"$BROKERS_DIR/$name.log" 2>&1 &
	pid=$!
	# A process that is gone already leaves a file that matches nobody.
	echo "$pid $(start_time "$pid" || true)" >"$BROKERS_DIR/$name.pid"
}

# free_ports N: ports on loopback below the range that the system gives to
# outgoing connections, so that a broker gets its own back when it restarts
free_ports()
{
	perl -MIO::Socket::INET -e '
		my (@held, @ports);
		for (my $try = 0; @ports < $ARGV[0] && $try < 1000; $try++)
		{
			my $port = 10240 + int(rand(22000));
			my $socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
				LocalPort => $port, Listen => 1) or next;
			push @held, $socket;
			push @ports, $port;
		}
		@ports == $ARGV[0] or die "no free ports\n";
		print "@ports\n";' "$1"
}

# ready NAME PORT: does it answer?
ready()
{
	case $1 in
		kafka)
			# Metadata, version 1, no topics: the node must list itself, a
			# broker that is fenced yet does not
			perl -MIO::Socket::INET -e '
				alarm 2;
				my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
					PeerPort => $ARGV[0]) or exit 1;
				my $r = pack("nnNn a4 N", 3, 1, 7, 4, "test", 0);
				print $s pack("N", length $r), $r;
				$s->flush;
				read($s, my $head, 12) == 12 or exit 1;
				my (undef, $id, $nodes) = unpack("NNN", $head);
				exit($id == 7 && $nodes >= 1 ? 0 : 1);' "$2" 2>/dev/null
			;;
		pubsub)
			perl -MIO::Socket::INET -e '
				alarm 2;
				my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
					PeerPort => $ARGV[0]) or exit 1;
				print $s "GET / HTTP/1.0\r\n\r\n";
				$s->flush;
				exit(defined($_ = <$s>) && m,^HTTP/1\.. 200 , ? 0 : 1);' \
				"$2" 2>/dev/null
			;;
		*)
			perl -MIO::Socket::INET -e '
				alarm 2;
				exit(IO::Socket::INET->new(PeerAddr => "127.0.0.1",
					PeerPort => $ARGV[0]) ? 0 : 1);' "$2" 2>/dev/null
			;;
	esac
}

# wait_ready NAME PORT: until it answers, dies, or the time is over
wait_ready()
{
	local end=$((SECONDS + START_TIMEOUT))

	until ready "$1" "$2"; do
		if ! pid_of "$1" >/dev/null; then
			tail -n 20 "$BROKERS_DIR/$1.log" >&2
			die "$1 ended while starting, see $BROKERS_DIR/$1.log"
		fi
		if [ "$SECONDS" -ge "$end" ]; then
			tail -n 20 "$BROKERS_DIR/$1.log" >&2
			die "$1 did not answer within $START_TIMEOUT s, see $BROKERS_DIR/$1.log"
		fi
		sleep 0.1
	done
}

# No file outside of $BROKERS_DIR, however a Java program ends
java_options=(-Xms64m -XX:+UseSerialGC -XX:-UsePerfData
	"-Djava.io.tmpdir=$BROKERS_DIR/tmp")

# run_NAME: starts the process with what is in $BROKERS_DIR
run_kafka()
{
	spawn kafka java "${java_options[@]}" -Xmx384m -XX:TieredStopAtLevel=1 \
		-cp "$KAFKA_LIBS/*" kafka.Kafka "$BROKERS_DIR/server.properties"
}

run_pubsub()
{
	JAVA_OPTS="${java_options[*]} -Xmx1g" \
		spawn pubsub "$PUBSUB_EMULATOR" --host=127.0.0.1 \
		--port="$(port_of pubsub)"
}

run_proxy()
{
	spawn proxy nghttpx --conf=/dev/null --single-process \
		--frontend="127.0.0.1,$(port_of proxy)" \
		--backend="127.0.0.1,$(port_of pubsub);;proto=h2" \
		--frontend-http2-read-timeout=300 --backend-read-timeout=300 \
		--errorlog-file=/dev/stderr \
		"$BROKERS_DIR/tls/server.key" "$BROKERS_DIR/tls/server.crt"
}

port_of()
{
	cat "$BROKERS_DIR/$1.port"
}

# end_of NAME SIGNAL: sends it, waits until the process is gone, insists
end_of()
{
	local pid end=$((SECONDS + 10))

	pid=$(pid_of "$1") || { rm -f "$BROKERS_DIR/$1.pid"; return 0; }
	kill -s "$2" "$pid" 2>/dev/null || true
	kill -s CONT "$pid" 2>/dev/null || true
	while pid_of "$1" >/dev/null; do
		if [ "$SECONDS" -ge "$end" ]; then
			kill -s KILL "$pid" 2>/dev/null || true
			end=$((SECONDS + 10))
		fi
		sleep 0.05
	done
	rm -f "$BROKERS_DIR/$1.pid"
}
