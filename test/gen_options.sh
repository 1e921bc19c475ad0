#!/bin/sh
# Writes docs/options.md.  Connects with psql's own settings (PGHOST, PGPORT,
# PGDATABASE, ...) to a database that has the extension.
cd "$(dirname "$0")/.." || exit 1
psql -X -q -v ON_ERROR_STOP=1 -f test/options_md.sql -o docs/options.md
