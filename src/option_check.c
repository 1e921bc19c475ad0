/*-------------------------------------------------------------------------
 *
 * option_check.c
 *		The syntax of options that are more than a word or a number
 *
 * A check returns NULL if the text is well-formed, and otherwise a sentence
 * that says what it should be; it neither raises an error nor looks at
 * anything but the text.
 *
 * IDENTIFICATION
 *		src/option_check.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

#include "compat.h"
#include "option.h"
#include "pubsub_fdw.h"

#define DIGITS			"0123456789"
#define LOWER			"abcdefghijklmnopqrstuvwxyz"
#define UPPER			"ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Limits of Kafka and of Pub/Sub */
#define MAX_KAFKA_TOPIC		249
#define MIN_PROJECT			6
#define MAX_PROJECT			63
#define MIN_RESOURCE		3
#define MAX_RESOURCE		255

static bool is_host_port(const char *text, int len, bool port_needed);
static bool is_project(const char *text, int len);
static bool parse_number(const char **text, int64 max, int64 *number);
static bool is_offset(const char *text, int len);
static bool parse_offsets(const char **text, bool nested);
static bool parse_json_string(const char **text, const char **start,
							  int *len);
static void skip_blanks(const char **text);
static bool skip_char(const char **text, char c);

/*
 * pubsub_check_broker
 *	  A driver must have registered under this name.
 */
const char *
pubsub_check_broker(const char *value)
{
	StringInfoData hint;
	const PubsubDriver *driver;

	if (pubsub_driver_find(value) != NULL)
		return NULL;

	initStringInfo(&hint);
	for (int i = 0; (driver = pubsub_driver_get(i)) != NULL; i++)
		appendStringInfo(&hint, "%s%s", i == 0 ? "Valid values are " : ", ",
						 driver->name);
	appendStringInfoChar(&hint, '.');
	return hint.data;
}

/*
 * pubsub_check_bootstrap_servers
 *	  host:port, …; blanks around the commas are allowed.
 */
const char *
pubsub_check_bootstrap_servers(const char *value)
{
	for (;;)
	{
		const char *end;
		int			len;

		skip_blanks(&value);
		end = value + strcspn(value, ",");
		len = end - value;
		while (len > 0 && value[len - 1] == ' ')
			len--;
		if (!is_host_port(value, len, true))
			return "The value must be a comma-separated list of host:port.";
		if (*end == '\0')
			return NULL;
		value = end + 1;
	}
}

/*
 * is_host_port
 *	  A name, an IPv4 address or an IPv6 address in brackets, and a port.
 */
static bool
is_host_port(const char *text, int len, bool port_needed)
{
	const char *end = text + len;
	const char *p = text;
	int64		port;

	if (*p == '[')
	{
		p++;
		p += strspn(p, DIGITS "abcdefABCDEF:.");
		if (*p++ != ']' || p - text < 4)
			return false;
	}
	else
	{
		p += strspn(p, LOWER UPPER DIGITS "._-");
		if (p == text)
			return false;
	}
	if (p == end)
		return !port_needed;
	if (p > end || *p++ != ':')
		return false;
	return parse_number(&p, 65535, &port) && p == end && port > 0;
}

const char *
pubsub_check_project(const char *value)
{
	return is_project(value, strlen(value)) ? NULL :
		"The value must be a project id of Google Cloud: 6 to 63 lower-case letters, digits, and - : . characters.";
}

static bool
is_project(const char *text, int len)
{
	return len >= MIN_PROJECT && len <= MAX_PROJECT &&
		text[0] >= 'a' && text[0] <= 'z' &&
		strspn(text, LOWER DIGITS "-:.") >= len &&
		strchr(LOWER DIGITS, text[len - 1]) != NULL;
}

/*
 * pubsub_check_endpoint
 *	  Scheme, host, and perhaps a port; nothing that could steer a request
 *	  elsewhere.
 */
const char *
pubsub_check_endpoint(const char *value)
{
	const char *host = value;

	if (strncmp(value, "https://", 8) == 0)
		host += 8;
	else if (strncmp(value, "http://", 7) == 0)
		host += 7;

	return host > value && is_host_port(host, strlen(host), false) ? NULL :
		"The value must be https://host[:port] or http://host[:port], without user, path or query.";
}

const char *
pubsub_check_pem(const char *value)
{
	return strstr(value, "-----BEGIN ") != NULL ? NULL :
		"The value must be PEM text, which has a line that starts with -----BEGIN.";
}

const char *
pubsub_check_credentials(const char *value)
{
	skip_blanks(&value);
	return *value == '{' ? NULL :
		"The value must be the JSON text itself; for the name of a file there is the option \"credentials_file\".";
}

const char *
pubsub_check_file(const char *value)
{
	return is_absolute_path(value) ? NULL :
		"The value must be an absolute path.";
}

/*
 * pubsub_check_partitions
 *	  Numbers and ranges: 0,3-5
 */
const char *
pubsub_check_partitions(const char *value)
{
	do
	{
		int64		first;
		int64		last;

		if (!parse_number(&value, PG_INT32_MAX, &first))
			break;
		last = first;
		if (skip_char(&value, '-') &&
			!parse_number(&value, PG_INT32_MAX, &last))
			break;
		if (first > last)
			break;
		if (*value == '\0')
			return NULL;
	} while (skip_char(&value, ','));

	return "The value must be a list of partition numbers and ranges, such as 0,3-5.";
}

/*
 * parse_number
 *	  Reads digits; false if there are none, or too many.
 */
static bool
parse_number(const char **text, int64 max, int64 *number)
{
	const char *p = *text;

	*number = 0;
	while (*p >= '0' && *p <= '9')
	{
		if (*number > (max - (*p - '0')) / 10)
			return false;
		*number = *number * 10 + (*p++ - '0');
	}
	if (p == *text)
		return false;
	*text = p;
	return true;
}

/*
 * pubsub_check_offsets
 *	  A word for all partitions, or a JSON object with one for each: of a
 *	  single topic, or by topic.
 */
const char *
pubsub_check_offsets(const char *value)
{
	if (is_offset(value, strlen(value)))
		return NULL;

	skip_blanks(&value);
	if (parse_offsets(&value, false))
	{
		skip_blanks(&value);
		if (*value == '\0')
			return NULL;
	}
	return "The value must be earliest, latest, latest-<n>, or JSON such as {\"0\": 23, \"1\": \"earliest\"}.";
}

static bool
is_offset(const char *text, int len)
{
	int64		n;
	const char *p = text + strlen("latest-");

	if (len == strlen("earliest") && memcmp(text, "earliest", len) == 0)
		return true;
	if (len == strlen("latest") && memcmp(text, "latest", len) == 0)
		return true;
	return len > strlen("latest-") &&
		memcmp(text, "latest-", strlen("latest-")) == 0 &&
		parse_number(&p, PG_INT64_MAX, &n) && p == text + len;
}

/*
 * parse_offsets
 *	  Reads {"<partition>": <offset>, …} or {"<topic>": {…}, …}.
 *
 * An offset is a number, where -2 and -1 stand for earliest and latest, or a
 * word in quotes.  nested: within the object of a topic.
 */
static bool
parse_offsets(const char **text, bool nested)
{
	if (!skip_char(text, '{'))
		return false;
	do
	{
		const char *key;
		const char *word;
		int			len;
		int64		number;

		skip_blanks(text);
		if (!parse_json_string(text, &key, &len))
			return false;
		skip_blanks(text);
		if (!skip_char(text, ':'))
			return false;
		skip_blanks(text);

		if (**text == '{')
		{
			if (nested || !parse_offsets(text, true))
				return false;
		}
		else
		{
			const char *p = key;

			if (!parse_number(&p, PG_INT32_MAX, &number) || p != key + len)
				return false;
			if (**text == '"')
			{
				if (!parse_json_string(text, &word, &len) ||
					!is_offset(word, len))
					return false;
			}
			else
			{
				bool		negative = skip_char(text, '-');

				if (!parse_number(text, PG_INT64_MAX, &number) ||
					(negative && number != 1 && number != 2))
					return false;
			}
		}
		skip_blanks(text);
	} while (skip_char(text, ','));

	return skip_char(text, '}');
}

/*
 * parse_json_string
 *	  Reads a string in quotes.  None that is legal here needs an escape.
 */
static bool
parse_json_string(const char **text, const char **start, int *len)
{
	if (!skip_char(text, '"'))
		return false;
	*start = *text;
	*len = strcspn(*text, "\"\\");
	*text += *len;
	return *len > 0 && skip_char(text, '"');
}

static void
skip_blanks(const char **text)
{
	*text += strspn(*text, " \t\r\n");
}

static bool
skip_char(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

/*
 * pubsub_check_timestamp
 *	  Whatever timestamptz takes, but infinity.
 *
 * The type's input function would raise an error that does not name the
 * option, so this does what it does.
 */
const char *
pubsub_check_timestamp(const char *value)
{
	char		workbuf[MAXDATELEN + MAXDATEFIELDS];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	int			nfields;
	int			dtype;
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;
	TimestampTz timestamp;

	if (ParseDateTime(value, workbuf, sizeof(workbuf), field, ftype,
					  MAXDATEFIELDS, &nfields) == 0 &&
		DecodeDateTime_compat(field, ftype, nfields, &dtype, &tm, &fsec,
							  &tz) == 0 &&
		(dtype == DTK_EPOCH ||
		 (dtype == DTK_DATE &&
		  tm2timestamp(&tm, fsec, &tz, &timestamp) == 0)))
		return NULL;

	return "The value must be a timestamp, such as 2026-01-31 12:00:00+00.";
}

/*
 * pubsub_check_seconds
 *	  A time without a fraction of a second.
 */
const char *
pubsub_check_seconds(const char *value)
{
	int			ms;

	return parse_int(value, &ms, GUC_UNIT_MS, NULL) && ms % 1000 == 0 ? NULL :
		"The value must be in whole seconds.";
}

/*
 * pubsub_check_topic
 *	  A topic of either broker: a table does not know its server's.
 */
const char *
pubsub_check_topic(const char *value)
{
	const char *project;
	const char *id;
	int			len;
	bool		legacy;

	if (pubsub_check_kafka_topic(value) == NULL ||
		pubsub_parse_path(value, "topics", &project, &len, &id, &legacy))
		return NULL;
	return "The value must be the name of a Kafka topic (letters, digits, and . _ - characters), or of a Pub/Sub topic (bare, or projects/<project>/topics/<name>).";
}

const char *
pubsub_check_kafka_topic(const char *value)
{
	size_t		len = strlen(value);

	return len > 0 && len <= MAX_KAFKA_TOPIC &&
		strspn(value, LOWER UPPER DIGITS "._-") == len &&
		strcmp(value, ".") != 0 && strcmp(value, "..") != 0 ? NULL :
		"The name of a Kafka topic has 1 to 249 letters, digits, and . _ - characters.";
}

const char *
pubsub_check_subscription(const char *value)
{
	const char *project;
	const char *id;
	int			len;
	bool		legacy;

	return pubsub_parse_path(value, "subscriptions", &project, &len, &id,
							 &legacy) ? NULL :
		pubsub_path_rule("subscriptions");
}

const char *
pubsub_path_rule(const char *kind)
{
	return psprintf("The value must be a name, or projects/<project>/%s/<name>; a name has 3 to 255 letters, digits, and - . _ ~ %% + characters, starts with a letter, and not with \"goog\".",
					kind);
}

/*
 * pubsub_parse_path
 *	  Takes the name of a Pub/Sub topic or subscription apart.
 *
 * kind is "topics" or "subscriptions".  *project is NULL for a bare name.
 * *legacy: written as in old Beam programs, /topics/<project>/<name>.  The
 * results point into name.
 */
bool
pubsub_parse_path(const char *name, const char *kind, const char **project,
				  int *project_len, const char **id, bool *legacy)
{
	size_t		kind_len = strlen(kind);
	size_t		len;

	*project = NULL;
	*project_len = 0;
	*legacy = false;

	if (strncmp(name, "projects/", strlen("projects/")) == 0)
	{
		*project = name + strlen("projects/");
		*project_len = strcspn(*project, "/");
		name = *project + *project_len;
		if (*name++ != '/' || strncmp(name, kind, kind_len) != 0)
			return false;
		name += kind_len;
		if (*name++ != '/')
			return false;
	}
	else if (name[0] == '/')
	{
		*legacy = true;
		if (strncmp(name + 1, kind, kind_len) != 0 ||
			name[1 + kind_len] != '/')
			return false;
		*project = name + 1 + kind_len + 1;
		*project_len = strcspn(*project, "/");
		name = *project + *project_len;
		if (*name++ != '/')
			return false;
	}
	if (*project != NULL && !is_project(*project, *project_len))
		return false;

	*id = name;
	len = strlen(name);
	return len >= MIN_RESOURCE && len <= MAX_RESOURCE &&
		strspn(name, LOWER UPPER) > 0 &&
		strspn(name, LOWER UPPER DIGITS "-._~%+") == len &&
		strncmp(name, "goog", 4) != 0;
}
