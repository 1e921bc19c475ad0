# test/lib/common.sh: what test/run and test/demo/run share (sourced, bash)
#
# Everything that runs does so in $work, a folder of its own under /tmp that
# the unprivileged $user can reach wherever the source tree is: a private copy
# of PostgreSQL with the extension installed, data directories, brokers.  It is
# removed at the end, and so is every process with that path on its command
# line.  Expects $top, the source tree, and $program, for messages.

export LC_ALL=C.UTF-8
umask 022

PGVERSION=15
work=
user=

say()
{
	printf '%s: %s\n' "$program" "$1"
}

fatal()
{
	printf '%s: %s\n' "$program" "$1" >&2
	shift
	for hint in "$@"; do
		printf 'HINT: %s\n' "$hint" >&2
	done
	exit 1
}

# run COMMAND...: in the background and waited for, so that a signal to this
# script is handled at once
run()
{
	"$@" &
	wait $!
}

# need_packages WHAT...: installs what is missing.  WHAT is a package, or
# COMMAND=PACKAGE where any provider of the command will do.
need_packages()
{
	local what missing=() conf=/etc/postgresql-common/createcluster.d/pubsub_fdw.conf

	command -v dpkg-query >/dev/null || return 0
	for what in "$@"; do
		case $what in
			*=*)
				command -v "${what%%=*}" >/dev/null || missing+=("${what#*=}")
				;;
			*)
				[ "$(dpkg-query -W -f='${db:Status-Status}' "$what" 2>/dev/null)" = installed ] ||
					missing+=("$what")
				;;
		esac
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" -eq 0 ] ||
		fatal "packages are missing: ${missing[*]}" \
			"As root: apt-get install ${missing[*]}"

	say "installing ${missing[*]}"
	# The server's package is not to make a cluster and start it.
	mkdir -p "${conf%/*}"
	echo "create_main_cluster = false" >"$conf"
	run apt-get -qq -o DPkg::Lock::Timeout=300 update ||
		say "apt-get update failed, going on with the lists at hand"
	run env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		--no-install-recommends install "${missing[@]}" >"$top/build/apt.log" 2>&1 || {
		rm -f "$conf"
		tail -n 20 "$top/build/apt.log" >&2
		fatal "could not install ${missing[*]}"
	}
	rm -f "$conf"
}

# need_postgres: sets PG_CONFIG and what follows from it
need_postgres()
{
	local debian=/usr/lib/postgresql/$PGVERSION/bin/pg_config

	if [ -z "${PG_CONFIG:-}" ]; then
		PG_CONFIG=pg_config
		if command -v dpkg-query >/dev/null; then
			need_packages postgresql-$PGVERSION postgresql-server-dev-$PGVERSION
			PG_CONFIG=$debian
		fi
	fi
	command -v "$PG_CONFIG" >/dev/null ||
		fatal "\"$PG_CONFIG\" was not found" "Set PG_CONFIG."
	PG_CONFIG=$(command -v "$PG_CONFIG")
	[ -e "$("$PG_CONFIG" --pgxs)" ] ||
		fatal "\"$PG_CONFIG\" belongs to a PostgreSQL without PGXS" \
			"Install its development package."
}

# The libraries that the extension is built with
build_packages="gcc make librdkafka-dev libcurl4-openssl-dev libjansson-dev
	libprotobuf-c-dev protoc-c=protobuf-c-compiler libssl-dev perl
	setpriv=util-linux setsid=util-linux"

# build: the extension, in the source tree
build()
{
	local log=$top/build/build.log mark=$top/build/built-for

	say "building for $("$PG_CONFIG" --version)"
	if [ "$(cat "$mark" 2>/dev/null)" != "$PG_CONFIG $("$PG_CONFIG" --version)" ]; then
		make -C "$top" -s PG_CONFIG="$PG_CONFIG" clean >"$log" 2>&1 || true
		echo "$PG_CONFIG $("$PG_CONFIG" --version)" >"$mark"
	fi
	run make -C "$top" -j"$(nproc)" PG_CONFIG="$PG_CONFIG" all >"$log" 2>&1 || {
		grep -E -A5 'error|Error|\*\*\*' "$log" | head -n 50 >&2
		fatal "the build failed, see $log"
	}
}

# build_mock: the mock Kafka cluster
build_mock()
{
	run gcc -O2 -Wall -Wextra -Werror -o "$top/build/mock_kafka" \
		"$top/test/fault/mock_kafka.c" -lrdkafka
}

# build_tools: what tests do to a Kafka
build_tools()
{
	run gcc -O2 -Wall -Wextra -Werror -o "$top/build/kafka_tool" \
		"$top/test/lib/kafka_tool.c" -lrdkafka
}

# make_sandbox: $work and $user
make_sandbox()
{
	work=$(mktemp -d "${TMPDIR:-/tmp}/pubsub_fdw.XXXXXX")
	chmod 755 "$work"
	if [ "$(id -u)" -eq 0 ]; then
		user=postgres
		id "$user" >/dev/null 2>&1 || user=nobody
	else
		user=$(id -un)
	fi
	mkdir "$work/run" "$work/run/tmp"
	chown "$user" "$work/run" "$work/run/tmp"
}

# as_user [NAME=VALUE...] COMMAND...: as the unprivileged user, with a clean
# environment
as_user()
{
	local drop=()

	if [ "$(id -u)" -eq 0 ]; then
		drop=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
	fi
	(
		cd "$work/run"
		exec "${drop[@]}" env -i PATH="$PATH" HOME="$work/run" \
			TMPDIR="$work/run/tmp" LC_ALL=C.UTF-8 LANG=C.UTF-8 \
			${JAVA_HOME:+JAVA_HOME="$JAVA_HOME"} "$@"
	)
}

# private_postgres: copies PostgreSQL, which finds its files relative to its
# programs, and installs the extension there
private_postgres()
{
	local dir

	for dir in --bindir --pkglibdir --sharedir; do
		dir=$("$PG_CONFIG" $dir)
		mkdir -p "$work/pg$dir"
		cp -r "$dir/." "$work/pg$dir"
	done
	pgbin=$work/pg$("$PG_CONFIG" --bindir)
	pglib=$work/pg$("$PG_CONFIG" --pkglibdir)
	pgxs=$pglib/pgxs
	run make -C "$top" -s PG_CONFIG="$PG_CONFIG" DESTDIR="$work/pg" install \
		>"$top/build/install.log" 2>&1 || {
		tail -n 20 "$top/build/install.log" >&2
		fatal "could not install the extension"
	}
}

# start_cluster: a throw-away cluster, reached by the socket in $work/run
start_cluster()
{
	pgport=5432
	as_user "$pgbin/initdb" -D "$work/run/data" -U postgres -A trust -N \
		--locale=C.UTF-8 >"$work/run/initdb.log" 2>&1 || {
		cat "$work/run/initdb.log" >&2
		fatal "initdb failed"
	}
	cat >>"$work/run/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$work/run'
port = $pgport
fsync = off
shared_buffers = 32MB
max_prepared_transactions = 10
log_line_prefix = '%m [%p] %q%a '
END
	as_user "$pgbin/pg_ctl" -D "$work/run/data" -l "$work/run/postgres.log" \
		-w -t 60 -s start || {
		tail -n 20 "$work/run/postgres.log" >&2
		fatal "the cluster did not start"
	}
}

stop_cluster()
{
	as_user "$pgbin/pg_ctl" -D "$work/run/data" -w -t 60 -m "${1:-fast}" -s stop
}

# our_processes: those that have $work on their command line or as their
# working directory.  Its name is random, so they are ours.
our_processes()
{
	local dir pid

	[ -n "$work" ] || return 0
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		[ "$pid" != $$ ] || continue
		case "$({ tr '\0' ' ' <"$dir/cmdline"; readlink "$dir/cwd"; } 2>/dev/null || true)" in
			*"$work/"*) echo "$pid" ;;
		esac
	done
}

# sweep: ends what is left of our processes
sweep()
{
	local pid signal

	for signal in TERM KILL; do
		for pid in $(our_processes); do
			kill -s "$signal" "$pid" 2>/dev/null || true
			kill -s CONT "$pid" 2>/dev/null || true
		done
		for _ in $(seq 50); do
			[ -n "$(our_processes)" ] || return 0
			sleep 0.1
		done
	done
}
