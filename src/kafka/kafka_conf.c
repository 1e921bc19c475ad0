/*-------------------------------------------------------------------------
 *
 * kafka_conf.c
 *		From options to a configuration of librdkafka
 *
 * One table says which properties a user may set, and in which limits.  What
 * is not in it is refused, aliases included: an alias would get around the
 * limits of its property.  The names are never tried on the library to find
 * out, because setting some of them already loads code.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_conf.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <unistd.h>

#include "kafka.h"
#include "kafka_properties.h"

typedef enum PropertyType
{
	PROPERTY_INT,				/* min..max */
	PROPERTY_BOOL,				/* true, false */
	PROPERTY_ENUM,				/* one of values */
	PROPERTY_WORD,				/* [A-Za-z0-9._-]{1,64} */
	PROPERTY_TEXT				/* anything but the empty string */
} PropertyType;

/* who may set it, and on which handles it has a meaning */
#define PROPERTY_SUPERUSER	0x01
#define PROPERTY_CONSUMER	0x02
#define PROPERTY_PRODUCER	0x04
#define PROPERTY_ANY		(PROPERTY_CONSUMER | PROPERTY_PRODUCER)

typedef struct Property
{
	const char *name;
	PropertyType type;
	int			flags;
	int			min;
	int			max;
	const char *values;			/* PROPERTY_ENUM: separated by blanks */
} Property;

/*
 * The limits keep the memory of a backend (which the library would abort when
 * it runs out of it) and the number of connection attempts within reason.
 */
static const Property properties[] = {
	/* connection */
	{"broker.address.family", PROPERTY_ENUM, PROPERTY_ANY, 0, 0, "any v4 v6"},
	{.name = "client.rack", PROPERTY_WORD, PROPERTY_CONSUMER},
	{.name = "connections.max.idle.ms", PROPERTY_INT, PROPERTY_ANY, 0, 3600000},
	{.name = "metadata.max.age.ms", PROPERTY_INT, PROPERTY_ANY, 10000, 86400000},
	{.name = "reconnect.backoff.ms", PROPERTY_INT, PROPERTY_ANY, 50, 3600000},
	{.name = "reconnect.backoff.max.ms", PROPERTY_INT, PROPERTY_ANY, 1000, 3600000},
	{.name = "socket.connection.setup.timeout.ms", PROPERTY_INT, PROPERTY_ANY,
	1000, 60000},
	{.name = "socket.keepalive.enable", PROPERTY_BOOL, PROPERTY_ANY},
	{.name = "socket.nagle.disable", PROPERTY_BOOL, PROPERTY_ANY},
	{.name = "socket.receive.buffer.bytes", PROPERTY_INT, PROPERTY_ANY, 0, 16777216},
	{.name = "socket.send.buffer.bytes", PROPERTY_INT, PROPERTY_ANY, 0, 16777216},
	{.name = "socket.timeout.ms", PROPERTY_INT, PROPERTY_ANY, 1000, 300000},
	{.name = "topic.metadata.refresh.interval.ms", PROPERTY_INT, PROPERTY_ANY,
	10000, 86400000},

	/* reading */
	{.name = "check.crcs", PROPERTY_BOOL, PROPERTY_CONSUMER},
	{.name = "fetch.max.bytes", PROPERTY_INT, PROPERTY_CONSUMER, 1000, 67108864},
	{.name = "fetch.message.max.bytes", PROPERTY_INT, PROPERTY_CONSUMER,
	1000, 67108864},
	{.name = "fetch.min.bytes", PROPERTY_INT, PROPERTY_CONSUMER, 1, 67108864},
	{.name = "fetch.queue.backoff.ms", PROPERTY_INT, PROPERTY_CONSUMER, 1, 1000},
	{.name = "fetch.wait.max.ms", PROPERTY_INT, PROPERTY_CONSUMER, 0, 1000},
	{.name = "queued.max.messages.kbytes", PROPERTY_INT, PROPERTY_CONSUMER,
	1024, 262144},
	{.name = "queued.min.messages", PROPERTY_INT, PROPERTY_CONSUMER, 1000, 1000000},
	{.name = "receive.message.max.bytes", PROPERTY_INT, PROPERTY_ANY,
	1000000, 268435456},

	/* writing */
	{.name = "compression.level", PROPERTY_INT, PROPERTY_PRODUCER, -1, 12},
	{.name = "linger.ms", PROPERTY_INT, PROPERTY_PRODUCER, 0, 1000},
	{.name = "message.max.bytes", PROPERTY_INT, PROPERTY_PRODUCER, 1000, 67108864},
	{.name = "message.timeout.ms", PROPERTY_INT, PROPERTY_PRODUCER, 1000, 300000},
	{"partitioner", PROPERTY_ENUM, PROPERTY_PRODUCER, 0, 0,
		"random consistent consistent_random murmur2 murmur2_random "
	"fnv1a fnv1a_random"},
	{.name = "queue.buffering.max.kbytes", PROPERTY_INT, PROPERTY_PRODUCER,
	1024, 262144},
	{.name = "queue.buffering.max.messages", PROPERTY_INT, PROPERTY_PRODUCER,
	1000, 1000000},
	{.name = "request.timeout.ms", PROPERTY_INT, PROPERTY_PRODUCER, 1000, 300000},

	/* security: reads files of the server, or weakens what protects others */
	{.name = "enable.ssl.certificate.verification", PROPERTY_BOOL,
	PROPERTY_ANY | PROPERTY_SUPERUSER},
	{.name = "ssl.certificate.location", PROPERTY_TEXT,
	PROPERTY_ANY | PROPERTY_SUPERUSER},
	{.name = "ssl.cipher.suites", PROPERTY_TEXT, PROPERTY_ANY | PROPERTY_SUPERUSER},
	{.name = "ssl.crl.location", PROPERTY_TEXT, PROPERTY_ANY | PROPERTY_SUPERUSER},
	{.name = "ssl.curves.list", PROPERTY_TEXT, PROPERTY_ANY | PROPERTY_SUPERUSER},
	{"ssl.endpoint.identification.algorithm", PROPERTY_ENUM,
	PROPERTY_ANY | PROPERTY_SUPERUSER, 0, 0, "none https"},
	{.name = "ssl.key.location", PROPERTY_TEXT, PROPERTY_ANY | PROPERTY_SUPERUSER},
	{.name = "ssl.keystore.location", PROPERTY_TEXT,
	PROPERTY_ANY | PROPERTY_SUPERUSER},
	{.name = "ssl.sigalgs.list", PROPERTY_TEXT, PROPERTY_ANY | PROPERTY_SUPERUSER},

	/* the library's log goes nowhere, so this costs time and shows nothing */
	{.name = "debug", PROPERTY_TEXT, PROPERTY_ANY | PROPERTY_SUPERUSER}
};

/* Properties that have an option of their own, for the hint. */
static const struct
{
	const char *name;
	const char *option;
}			own_options[] = {
	{"acks", "acks"},
	{"batch.num.messages", "batch_size"},
	{"batch.size", "batch_bytes"},
	{"bootstrap.servers", "bootstrap_servers"},
	{"client.id", "client_id"},
	{"compression.type", "compression"},
	{"group.id", "group_id"},
	{"isolation.level", "isolation_level"},
	{"sasl.mechanism", "sasl_mechanism"},
	{"sasl.password", "sasl_password"},
	{"sasl.username", "sasl_username"},
	{"security.protocol", "security_protocol"},
	{"ssl.ca.location", "ssl_ca_location"},
	{"ssl.ca.pem", "ssl_ca_pem"},
	{"ssl.certificate.pem", "ssl_certificate_pem"},
	{"ssl.key.password", "ssl_key_password"},
	{"ssl.key.pem", "ssl_key_pem"}
};

static const Property *find_property(const char *name);
static const char *check_value(const Property *property, const char *value);
static bool is_word(const char *value);
static bool is_in_list(const char *value, const char *list);

/*
 * kafka_property_check
 *		Says what is wrong with an option "properties.<name>", or NULL
 */
const char *
kafka_property_check(const char *name, const char *value, bool superuser)
{
	static char answer[256];
	const Property *property = find_property(name);

	if (property == NULL)
	{
		for (int i = 0; i < (int) lengthof(own_options); i++)
		{
			if (strcmp(own_options[i].name, name) == 0)
			{
				snprintf(answer, sizeof(answer),
						 "This property is set by the option \"%s\".",
						 own_options[i].option);
				return answer;
			}
		}
		return "This property is not on the list of properties that can be set.";
	}
	if (value != NULL)
	{
		const char *expected = check_value(property, value);

		if (expected != NULL)
		{
			snprintf(answer, sizeof(answer), "The value must be %s.",
					 expected);
			return answer;
		}
	}
	if ((property->flags & PROPERTY_SUPERUSER) != 0 && !superuser)
		return "Only superusers can set this property.";
	return NULL;
}

static const Property *
find_property(const char *name)
{
	for (int i = 0; i < (int) lengthof(properties); i++)
	{
		if (strcmp(properties[i].name, name) == 0)
			return &properties[i];
	}
	return NULL;
}

/*
 * check_value
 *		Returns what the value should have been, or NULL if it is fine
 */
static const char *
check_value(const Property *property, const char *value)
{
	static char expected[192];
	char	   *end;
	long		number;

	switch (property->type)
	{
		case PROPERTY_INT:
			errno = 0;
			number = strtol(value, &end, 10);
			if (errno == 0 && end != value && *end == '\0' &&
				!isspace((unsigned char) value[0]) &&
				number >= property->min && number <= property->max)
				return NULL;
			snprintf(expected, sizeof(expected),
					 "a whole number from %d to %d",
					 property->min, property->max);
			return expected;
		case PROPERTY_BOOL:
			if (is_in_list(value, "true false"))
				return NULL;
			return "true or false";
		case PROPERTY_ENUM:
			if (is_in_list(value, property->values))
				return NULL;
			snprintf(expected, sizeof(expected), "one of: %s",
					 property->values);
			return expected;
		case PROPERTY_WORD:
			if (is_word(value))
				return NULL;
			return "1 to 64 letters, digits, dots, dashes or underscores";
		case PROPERTY_TEXT:
			if (value[0] != '\0')
				return NULL;
			return "not empty";
	}
	return "something else";
}

static bool
is_word(const char *value)
{
	size_t		len = strspn(value, "abcdefghijklmnopqrstuvwxyz"
							 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len > 0 && len <= 64 && value[len] == '\0';
}

/*
 * is_in_list
 *		Is the value one of the words of a list separated by blanks?
 */
static bool
is_in_list(const char *value, const char *list)
{
	size_t		len = strlen(value);
	const char *word = list;

	while (len > 0 && strchr(value, ' ') == NULL &&
		   (word = strstr(word, value)) != NULL)
	{
		if ((word == list || word[-1] == ' ') &&
			(word[len] == ' ' || word[len] == '\0'))
			return true;
		word += len;
	}
	return false;
}

/*
 * set
 *		Sets a property; secret ones are set by set_secret
 */
static bool
set(rd_kafka_conf_t *conf, const char *name, const char *value,
	PubsubError *error)
{
	char		text[256];

	/* only the result counts: a text may come with success, too */
	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) ==
		RD_KAFKA_CONF_OK)
		return true;
	pubsub_error_set(error, PUBSUB_ERROR_INVALID,
					 "librdkafka %s does not take the property \"%s\": %s",
					 rd_kafka_version_str(), name, text);
	return false;
}

static bool
set_int(rd_kafka_conf_t *conf, const char *name, int value,
		PubsubError *error)
{
	char		text[16];

	snprintf(text, sizeof(text), "%d", value);
	return set(conf, name, text, error);
}

/*
 * set_secret
 *		Sets a property, if there is a value, without ever repeating it
 */
static bool
set_secret(rd_kafka_conf_t *conf, const char *name, const char *value,
		   PubsubError *error)
{
	if (value == NULL ||
		rd_kafka_conf_set(conf, name, value, NULL, 0) == RD_KAFKA_CONF_OK)
		return true;
	pubsub_error_set(error, PUBSUB_ERROR_INVALID,
					 "librdkafka %s does not take the property \"%s\"",
					 rd_kafka_version_str(), name);
	return false;
}

/*
 * try
 *		Sets a property that not every version of the library has
 */
static void
try(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	(void) rd_kafka_conf_set(conf, name, value, NULL, 0);
}

/*
 * set_properties
 *		Sets what the user gave as "properties.<name>" for this kind of handle
 *
 * They have been checked when they were given, but the list could have been
 * another one then.
 */
static bool
set_properties(rd_kafka_conf_t *conf, int kind, const PubsubOptions *options,
			   PubsubError *error)
{
	for (int i = 0; i < options->nproperties; i++)
	{
		const char *name = options->properties[i].name;
		const char *value = options->properties[i].value;
		const Property *property = find_property(name);
		const char *complaint = kafka_property_check(name, value, true);

		if (complaint != NULL)
		{
			pubsub_error_set(error, PUBSUB_ERROR_INVALID,
							 "property \"%s\": %s", name, complaint);
			return false;
		}
		if ((property->flags & kind) == 0)
			continue;
		if (strcmp(name, "fetch.queue.backoff.ms") == 0)
			try(conf, name, value);
		else if (!set(conf, name, value, error))
			return false;
	}
	return true;
}

/*
 * conf_create
 *		What all handles have in common
 */
static rd_kafka_conf_t *
conf_create(const PubsubOptions *options, PubsubError *error)
{
	static const char *const protocols[] = {
		[PUBSUB_SECURITY_PLAINTEXT] = "plaintext",
		[PUBSUB_SECURITY_SSL] = "ssl",
		[PUBSUB_SECURITY_SASL_PLAINTEXT] = "sasl_plaintext",
		[PUBSUB_SECURITY_SASL_SSL] = "sasl_ssl"
	};
	static const char *const mechanisms[] = {
		[PUBSUB_SASL_NONE] = "PLAIN",
		[PUBSUB_SASL_PLAIN] = "PLAIN",
		[PUBSUB_SASL_SCRAM_SHA_256] = "SCRAM-SHA-256",
		[PUBSUB_SASL_SCRAM_SHA_512] = "SCRAM-SHA-512"
	};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const char *client_id = options->client_id;
	bool		ok;

	if (client_id == NULL)
		client_id = "pubsub_fdw";

	ok = set(conf, "bootstrap.servers", options->bootstrap_servers, error) &&
		set(conf, "client.id", client_id, error) &&
		set(conf, "security.protocol", protocols[options->security_protocol],
			error) &&

	/* never the library's default, GSSAPI, which runs a shell command */
		set(conf, "sasl.mechanism", mechanisms[options->sasl_mechanism],
			error) &&
		set_secret(conf, "sasl.username", options->sasl_username, error) &&
		set_secret(conf, "sasl.password", options->sasl_password, error) &&
		set_secret(conf, "ssl.ca.pem", options->ssl_ca_pem, error) &&
		set_secret(conf, "ssl.ca.location", options->ssl_ca_location, error) &&
		set_secret(conf, "ssl.certificate.pem", options->ssl_certificate_pem,
				   error) &&
		set_secret(conf, "ssl.key.pem", options->ssl_key_pem, error) &&
		set_secret(conf, "ssl.key.password", options->ssl_key_password,
				   error) &&

	/*
	 * A silent host is to be reported before the connect timeout.  The first
	 * connection, too, waits for half the back-off (since some version 2).
	 */
		set_int(conf, "socket.connection.setup.timeout.ms",
				Min(Max(options->connect_timeout / 2, 1000), 60000), error) &&
		set(conf, "reconnect.backoff.ms", "20", error) &&
		set(conf, "reconnect.backoff.max.ms", "1000", error) &&
		set(conf, "socket.nagle.disable", "true", error) &&

	/* so is a topic that goes away, and a wrong name creates none */
		set(conf, "topic.metadata.propagation.max.ms", "1000", error) &&
		set(conf, "allow.auto.create.topics", "false", error) &&
		set(conf, "log.queue", "true", error) &&
		set(conf, "log_level", "6", error) &&

	/* the signals are the backend's */
		set(conf, "internal.termination.signal", "0", error);
	if (!ok)
	{
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	try(conf, "enable.metrics.push", "false");
	return conf;
}

/*
 * kafka_conf_consumer
 *		Settings of a handle that reads
 *
 * A handle lives for one bounded read, and what it fetches ahead is memory
 * that nobody accounts for.  A fetch brings up to 8 MB; further ones wait
 * while 20000 messages or 16 MB are queued.  "limit" as in PubsubSourceSpec.
 */
rd_kafka_conf_t *
kafka_conf_consumer(const PubsubOptions *options, int64 limit,
					PubsubError *error)
{
	rd_kafka_conf_t *conf = conf_create(options, error);
	bool		few = (limit > 0 && limit <= 1000);

	if (conf == NULL)
		return NULL;

	/* on 2.2 and later in place of kafka_source.c's wake-up calls */
	try(conf, "fetch.queue.backoff.ms", "1");

	if (set(conf, "isolation.level",
			options->isolation_level == PUBSUB_READ_COMMITTED ?
			"read_committed" : "read_uncommitted", error) &&
		set(conf, "enable.auto.commit", "false", error) &&
		set(conf, "enable.auto.offset.store", "false", error) &&
		set(conf, "enable.partition.eof", "true", error) &&
		set(conf, "auto.offset.reset", "error", error) &&

	/*
	 * An end of partition without a message is known only after a fetch that
	 * brought nothing, and a fetch holds up all else on its connection.
	 */
		set(conf, "fetch.wait.max.ms", "5", error) &&
		set(conf, "fetch.max.bytes", "8388608", error) &&
		set(conf, "fetch.message.max.bytes", few ? "131072" : "1048576",
			error) &&
		set(conf, "queued.min.messages", "20000", error) &&
		set(conf, "queued.max.messages.kbytes", few ? "1024" : "16384",
			error) &&
		set_properties(conf, PROPERTY_CONSUMER, options, error))
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

/*
 * kafka_conf_producer
 *		Settings of a handle that publishes
 *
 * The time that a message may take is generous, since it also counts while a
 * long queue is being worked off: ring 1 gives up earlier, when nothing moves.
 * message.timeout.ms must not undercut that.
 */
rd_kafka_conf_t *
kafka_conf_producer(const PubsubOptions *options, PubsubError *error)
{
	static const char *const codecs[] = {
		[PUBSUB_COMPRESSION_NONE] = "none",
		[PUBSUB_COMPRESSION_GZIP] = "gzip",
		[PUBSUB_COMPRESSION_SNAPPY] = "snappy",
		[PUBSUB_COMPRESSION_LZ4] = "lz4",
		[PUBSUB_COMPRESSION_ZSTD] = "zstd"
	};
	rd_kafka_conf_t *conf = conf_create(options, error);

	if (conf == NULL)
		return NULL;

	/* the option "acks" leaves no choice: what is confirmed must not be lost */
	if (set(conf, "acks", "all", error) &&
		set(conf, "enable.idempotence", "true", error) &&
		set(conf, "compression.type", codecs[options->compression], error) &&

	/* a key goes where Java producers send it */
		set(conf, "partitioner", "murmur2_random", error) &&
		set(conf, "linger.ms", "5", error) &&
		set_int(conf, "batch.num.messages",
				options->batch_size > 0 ? options->batch_size : 10000,
				error) &&
		set_int(conf, "batch.size",
				options->batch_bytes > 0 ? options->batch_bytes : 1000000,
				error) &&
		set(conf, "queue.buffering.max.messages", "100000", error) &&
		set(conf, "queue.buffering.max.kbytes", "65536", error) &&
		set(conf, "message.timeout.ms", "300000", error) &&
		set_properties(conf, PROPERTY_PRODUCER, options, error))
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

/*
 * kafka_conf_admin
 *		Settings of a handle that creates or drops topics
 */
rd_kafka_conf_t *
kafka_conf_admin(const PubsubOptions *options, PubsubError *error)
{
	rd_kafka_conf_t *conf = conf_create(options, error);

	if (conf != NULL &&
		!set_properties(conf, PROPERTY_PRODUCER, options, error))
	{
		rd_kafka_conf_destroy(conf);
		conf = NULL;
	}
	return conf;
}

/*
 * kafka_conf_producer_key
 *		The settings in which the producers of a session can differ, as text
 *
 * In malloc memory; NULL if there is none.
 */
char *
kafka_conf_producer_key(const PubsubOptions *options)
{
	size_t		size = 64;
	size_t		len;
	char	   *key;

	for (int i = 0; i < options->nproperties; i++)
		size += strlen(options->properties[i].name) +
			strlen(options->properties[i].value) + 2;
	key = malloc(size);
	if (key == NULL)
		return NULL;
	len = snprintf(key, size, "%d %d %d\n", options->compression,
				   options->batch_size, options->batch_bytes);
	for (int i = 0; i < options->nproperties; i++)
		len += snprintf(key + len, size - len, "%s=%s\n",
						options->properties[i].name,
						options->properties[i].value);
	return key;
}

/*
 * kafka_conf_get_int
 *		The effective value of a property that is a number
 */
int64
kafka_conf_get_int(const rd_kafka_conf_t *conf, const char *name)
{
	char		text[32];
	size_t		size = sizeof(text);

	if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
		return 0;
	return strtoll(text, NULL, 10);
}
