-- The text of docs/options.md: run by test/gen_options.sh, which writes the
-- file, and by sql/options.sql, which compares it.
\pset format unaligned
\pset tuples_only on
SELECT $$# Options of pubsub_fdw

Generated from `pubsub_fdw_options()` by `test/gen_options.sh`; do not edit.

Values: a *time* is a number with a unit (`500ms`, `10s`, `5min`, `1h`, `1d`;
without a unit it counts milliseconds), a number of *bytes* may have one (`kB`,
`MB`), a *boolean* is `true` or `false`, and an *enum* is one of the listed
words.  "(kafka)" and "(pubsub)" tell which broker an option is for; one for
another broker than the server's is an error.$$;

SELECT E'\n## ' || title || E'\n\n' || intro || E'\n\n'
	|| E'| Option | Type | Default | Meaning |\n|---|---|---|---|\n'
	|| string_agg(format('| `%s` | %s | %s | %s |', option, type,
						 coalesce("default", ''),
						 replace(description, '<', '&lt;')
						 || CASE WHEN secret THEN ' Secret.' ELSE '' END),
				  E'\n' ORDER BY o.ordinality)
FROM pubsub_fdw_options() WITH ORDINALITY AS o
JOIN (VALUES
	(1, 'foreign-data wrapper', 'Foreign-data wrapper',
		'`ALTER FOREIGN DATA WRAPPER`: for servers that do not say it themselves.'),
	(2, 'server', 'Server',
		'`CREATE SERVER`: one broker. Every role can read these options.'),
	(3, 'user mapping', 'User mapping',
		'`CREATE USER MAPPING`: how a role logs in. Secrets belong here and nowhere else.'),
	(4, 'foreign table', 'Foreign table',
		'`CREATE FOREIGN TABLE`: a topic, a subscription, or both.'),
	(5, 'column', 'Column',
		'At most one per column. Without any, a column of a table with format `raw` is bound to the metadata item of its name, and with other formats to the payload field of its name.')
	) AS c(n, context, title, intro) USING (context)
GROUP BY c.n, c.title, c.intro
ORDER BY c.n;
