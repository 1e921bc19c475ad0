#!/bin/bash
#
# test/check_layers.sh [COUNTS]
#		The rules that keep the rings apart, and the lists complete
#
# Prints one line per rule, with the offending places, and writes "PASSED
# FAILED" to the file COUNTS.  Rules look at the code without its comments.

set -eu
# "... | check" counts in this shell
shopt -s lastpipe
cd "$(dirname "$0")/.."

PG_CONFIG=${PG_CONFIG:-pg_config}
passed=0
failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# check NAME: the rule holds if its input is empty
check()
{
	local found

	found=$(cat)
	if [ -z "$found" ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1"
		printf '%s\n' "$found" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
}

# The code without comments, one line per file for what spans lines
mapfile -t files < <(find src -name '*.[ch]' ! -name '*.pb-c.[ch]' | sort)
for file in "${files[@]}"; do
	mkdir -p "$tmp/code/$(dirname "$file")"
	gcc -fpreprocessed -dD -E -P -w -x c "$file" >"$tmp/code/$file"
done
[ ${#files[@]} -gt 0 ] || { echo "no source files" >&2; exit 1; }

# code PATTERN: FILE:TEXT of the matches, white space squeezed
code()
{
	(
		cd "$tmp/code"
		for file in "${files[@]}"; do
			tr -s ' \t\n' ' ' <"$file" | grep -oE "$1" | sed "s,^,$file: ," || true
		done
	)
}

# outside PATTERN: drops the matches in files that may
outside()
{
	grep -vE "^($1): " || true
}

inside()
{
	grep -E "^($1): " || true
}

code '# ?include [<"]librdkafka/[^>"]*' | outside 'src/kafka/.*' |
	check "rdkafka.h only under src/kafka"
code '# ?include [<"]curl/[^>"]*' | outside 'src/google/google_http\.c' |
	check "curl.h only in google_http.c"
code '# ?include [<"]jansson[^>"]*' | outside 'src/google/google_json\.c' |
	check "jansson.h only in google_json.c"
code '# ?include [<"](protobuf-c/|[a-z/]*pb-c)[^>"]*' | outside 'src/google/.*' |
	check "protobuf only under src/google"
code '# ?include "(kafka|google)/[^"]*' |
	outside 'src/(kafka|google)/.*|src/option_validate\.c' |
	check "ring 1 includes no header of a driver, the option validator excepted"
code '# ?include [<"](executor|optimizer|nodes|parser|commands|foreign|catalog|access)/[^>"]*|# ?include "pubsub_fdw\.h' |
	inside 'src/(kafka|google)/.*' |
	check "drivers include nothing of the executor or of ring 1"
code '(ereport|elog) ?\( ?(ERROR|FATAL|PANIC)' | inside 'src/(kafka|google)/.*' |
	check "drivers raise no errors"
code 'PG_VERSION_NUM' | outside 'src/compat\.h' |
	check "PG_VERSION_NUM only in compat.h"
code 'Register(Sub)?XactCallback' | outside 'src/xact\.c' |
	check "transaction callbacks are registered in xact.c only"
code '\bjson_object ?\(' |
	check "no json_object(), which is the server's symbol too"
for file in "${files[@]}"; do
	if grep -q 'jansson\.h' "$tmp/code/$file" &&
		grep -q 'utils/builtins\.h' "$tmp/code/$file"; then
		echo "$file"
	fi
done | check "utils/builtins.h not beside jansson.h"
grep -nE '(^|[;{}),])[[:space:]]*//' "${files[@]}" |
	check "no // comments"
grep -nE 'TODO|FIXME|XXX' "${files[@]}" |
	check "no notes to self"
for file in "${files[@]}"; do
	grep -qF "		$file" <(sed -n '/IDENTIFICATION/,/\*----/p' "$file") || echo "$file"
done | check "every file says where it is"

# Headers: each by itself, after postgres.h
mkdir "$tmp/google"
protoc-c --proto_path=src/google --c_out="$tmp/google" src/google/*.proto
for file in "${files[@]}"; do
	case $file in
		*.h)
			printf '#include "postgres.h"\n#include "%s"\n' "${file#src/}" |
				gcc -fsyntax-only -Wall -Wextra -Werror -Wno-unused-parameter \
					-isystem "$("$PG_CONFIG" --includedir-server)" \
					-Isrc -I"$(dirname "$file")" -I"$tmp" -x c - 2>&1 |
				grep -m1 -E 'error' | sed "s,^,$file: ," || true
			;;
	esac
done | check "every header compiles alone"

# Lists
list()
{
	make -s --no-print-directory PG_CONFIG="$PG_CONFIG" "print-$1" | tr ' ' '\n' |
		sed '/^$/d' | sort
}

diff <(list OBJS | sed 's/\.o$/.c/' | grep -v pb-c) \
	<(printf '%s\n' "${files[@]}" | grep '\.c$') |
	check "the Makefile lists every source file"

# listed VARIABLE FOLDER EXTENSION SUBFOLDER
listed()
{
	local name

	diff <(list "$1") <(cd "$2/$4" 2>/dev/null && ls -- *".$3" 2>/dev/null |
		grep -v -- -- | sed "s/\.$3\$//" | sort) |
		check "$1 in the Makefile is what $2/$4 holds"
	for name in $(list "$1"); do
		[ -s "$2/expected/$name.out" ] || echo "$2/expected/$name.out"
	done | check "every test of $1 has an expected file"
}

listed REGRESS . sql sql
listed ISOLATION test/isolation spec specs
listed REGRESS_KAFKA test/broker/kafka sql sql
listed REGRESS_GOOGLE test/broker/google sql sql
grep -nE '(127\.0\.0\.1|localhost):[1-9][0-9]{4}|/(root|home|work)/|/tmp/pubsub_fdw' \
	expected/*.out test/isolation/expected/*.out test/broker/*/expected/*.out |
	check "no expected file holds an address or a path of this machine"
shopt -s nullglob
for file in test/t/*; do
	[[ $(basename "$file") =~ ^[0-9]{3}_[a-z0-9_]+\.pl$ ]] || echo "$file"
done | check "TAP tests are called NNN_area_topic.pl"

version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" pubsub_fdw.control)
grep -o '"version": *"[^"]*"' META.json | sed 1,2\!d |
	grep -vF "\"$version.0\"" | check "META.json has the version of the control file ($version)"
{ [ -f "sql/pubsub_fdw--$version.sql" ] || echo "sql/pubsub_fdw--$version.sql"; } |
	check "there is a script for version $version"

# Every symbol that the library exports has a prefix of ours
if [ -e pubsub_fdw.so ]; then
	nm -D --defined-only pubsub_fdw.so | awk '{print $3}' |
		grep -vE '^(pubsub|pg_finfo_pubsub_|kafka_|google_|_PG_init$|Pg_magic_func$)' |
		check "exported symbols have our prefixes"
fi

for file in "${files[@]}"; do
	lines=$(wc -l <"$file")
	[ "$lines" -le 700 ] || echo "warning: $file has $lines lines"
done

[ $# -eq 0 ] || echo "$passed $failed" >"$1"
[ "$failed" -eq 0 ]
