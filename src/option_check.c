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
 *	  host:port,...; blanks around the commas are allowed.
 */
const char *
pubsub_check_bootstrap_servers(const char *value)
{
	for (;;)
	{
		const char *end;
		int			len;

		value += strspn(value, " ");
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
	char	   *port_end;

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
	return *p >= '1' && *p <= '9' && strtol(p, &port_end, 10) <= 65535 &&
		port_end == end;
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
		(int) strspn(text, LOWER DIGITS "-:.") >= len &&
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
	value += strspn(value, " \t\r\n");
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
