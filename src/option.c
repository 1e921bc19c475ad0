/*-------------------------------------------------------------------------
 *
 * option.c
 *		The option table
 *
 * Every option there is has one row below.  From it come the validator with
 * its hints, the PubsubOptions struct, pubsub_fdw_options(), and with that
 * docs/options.md.  A new option is a new row, and a field in options.h.
 * The neighbours are listed in option.h.
 *
 * IDENTIFICATION
 *		src/option.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "option.h"
#include "pubsub_fdw.h"

#define PROPERTY_NAME		PUBSUB_PROPERTY_PREFIX "<name>"

/* How far from a known name a misspelt one may be, as in the server */
#define MAX_DISTANCE		4

PG_FUNCTION_INFO_V1(pubsub_fdw_options);

static bool is_broker_option(const char *name, const char *broker);
static bool is_legal(const PubsubOptionDef *def, int context, int brokers);
static void unknown_option(const char *name, int context, int brokers)
			pg_attribute_noreturn();
static void misplaced_option(const PubsubOptionDef *def, int context)
			pg_attribute_noreturn();

static const struct config_enum_entry security_protocols[] = {
	{"plaintext", PUBSUB_SECURITY_PLAINTEXT, false},
	{"ssl", PUBSUB_SECURITY_SSL, false},
	{"sasl_plaintext", PUBSUB_SECURITY_SASL_PLAINTEXT, false},
	{"sasl_ssl", PUBSUB_SECURITY_SASL_SSL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry sasl_mechanisms[] = {
	{"PLAIN", PUBSUB_SASL_PLAIN, false},
	{"SCRAM-SHA-256", PUBSUB_SASL_SCRAM_SHA_256, false},
	{"SCRAM-SHA-512", PUBSUB_SASL_SCRAM_SHA_512, false},
	{NULL, 0, false}
};

static const struct config_enum_entry transports[] = {
	{"grpc", PUBSUB_TRANSPORT_GRPC, false},
	{NULL, 0, false}
};

static const struct config_enum_entry auths[] = {
	{"service_account", PUBSUB_AUTH_SERVICE_ACCOUNT, false},
	{"token", PUBSUB_AUTH_TOKEN, false},
	{"none", PUBSUB_AUTH_NONE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry formats[] = {
	{"raw", PUBSUB_FORMAT_RAW, false},
	{"json", PUBSUB_FORMAT_JSON, false},
	{NULL, 0, false}
};

static const struct config_enum_entry timestamp_misses[] = {
	{"error", PUBSUB_TIMESTAMP_MISS_ERROR, false},
	{"latest", PUBSUB_TIMESTAMP_MISS_LATEST, false},
	{NULL, 0, false}
};

static const struct config_enum_entry data_losses[] = {
	{"error", PUBSUB_DATA_LOSS_ERROR, false},
	{"skip", PUBSUB_DATA_LOSS_SKIP, false},
	{NULL, 0, false}
};

static const struct config_enum_entry isolation_levels[] = {
	{"read_committed", PUBSUB_READ_COMMITTED, false},
	{"read_uncommitted", PUBSUB_READ_UNCOMMITTED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry acks[] = {
	{"all", PUBSUB_ACKS_ALL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry compressions[] = {
	{"none", PUBSUB_COMPRESSION_NONE, false},
	{"gzip", PUBSUB_COMPRESSION_GZIP, false},
	{"snappy", PUBSUB_COMPRESSION_SNAPPY, false},
	{"lz4", PUBSUB_COMPRESSION_LZ4, false},
	{"zstd", PUBSUB_COMPRESSION_ZSTD, false},
	{NULL, 0, false}
};

#define FIELD(name) offsetof(PubsubOptions, name)

/* In the order of the documentation: by object, the needed ones first. */
const PubsubOptionDef pubsub_option_defs[] = {
	{"broker", PUBSUB_ON_WRAPPER | PUBSUB_ON_SERVER, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, FIELD(broker),
		"Kind of broker: kafka or pubsub.",
		.flags = PUBSUB_REQUIRED, .check = pubsub_check_broker},

	/* server */
	{"bootstrap_servers", PUBSUB_ON_SERVER, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(bootstrap_servers),
		"Brokers to contact first: a comma-separated list of host:port.",
		.flags = PUBSUB_REQUIRED, .max = 1024,
	.check = pubsub_check_bootstrap_servers},
	{"security_protocol", PUBSUB_ON_SERVER, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(security_protocol),
		"Protocol of the connection.",
		.defval = "plaintext", .values = security_protocols},
	{"sasl_mechanism", PUBSUB_ON_SERVER, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(sasl_mechanism),
		"How to log in, with a security_protocol that has SASL.",
		.values = sasl_mechanisms},
	{"ssl_ca_pem", PUBSUB_ON_SERVER, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, FIELD(ssl_ca_pem),
		"Certificates of the trusted authorities, as PEM text.",
		.defdoc = "the system's", .check = pubsub_check_pem},
	{"ssl_ca_location", PUBSUB_ON_SERVER, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, FIELD(ssl_ca_location),
		"File on the database server with the certificates of the trusted authorities; needs the role pg_read_server_files.",
		.flags = PUBSUB_READS_FILE, .defdoc = "the system's",
	.check = pubsub_check_file},
	{"client_id", PUBSUB_ON_SERVER, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(client_id),
		"Name under which the broker's logs and quotas know the client.",
		.max = 255, .defval = "pubsub_fdw"},
	{"project", PUBSUB_ON_SERVER, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_STRING, FIELD(project),
		"Project of topics and subscriptions that are given by a bare name.",
		.check = pubsub_check_project},
	{"transport", PUBSUB_ON_SERVER, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_ENUM, FIELD(transport),
		"Protocol of the service.",
		.defval = "grpc", .values = transports},
	{"endpoint", PUBSUB_ON_SERVER, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_STRING, FIELD(endpoint),
		"Address of the service, a regional one, or an emulator; http:// only with auth 'none'.",
		.defval = "https://pubsub.googleapis.com",
	.check = pubsub_check_endpoint},
	{"connect_timeout", PUBSUB_ON_SERVER, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_TIME, FIELD(connect_timeout),
		"How long to wait for a connection.",
		.min = 100, .max = 3600000, .defdoc = "pubsub_fdw.connect_timeout"},
	{"request_timeout", PUBSUB_ON_SERVER, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_TIME, FIELD(request_timeout),
		"How long to wait without any progress.",
		.min = 100, .max = 3600000, .defdoc = "pubsub_fdw.request_timeout"},

	/* server, and table which overrides it */
	{"fetch_size", PUBSUB_ON_SERVER | PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_INT, FIELD(fetch_size),
		"Messages taken from the broker at a time.",
		.min = 1, .max = 1000000, .pubsub_max = 1000,
	.defdoc = "10000 (kafka), 1000 (pubsub)"},
	{"batch_size", PUBSUB_ON_SERVER | PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_INT, FIELD(batch_size),
		"Messages published in one request, at most.",
		.min = 1, .max = 1000000, .pubsub_max = 1000,
	.defdoc = "10000 (kafka), 100 (pubsub)"},
	{"batch_bytes", PUBSUB_ON_SERVER | PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_BYTES, FIELD(batch_bytes),
		"Bytes published in one request, at most; a bigger message goes alone.",
		.min = 1, .max = INT_MAX, .pubsub_max = 10000000,
	.defdoc = "1000000 (kafka), 7500000 (pubsub)"},
	{"updatable", PUBSUB_ON_SERVER | PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_BOOL, FIELD(updatable),
		"Whether INSERT and the publishing functions are allowed.",
		.defval = "true"},
	{.name = PROPERTY_NAME, PUBSUB_ON_SERVER | PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_PROPERTY, -1,
	"A property of librdkafka, out of an allow-list."},

	/* user mapping */
	{.name = "sasl_username", PUBSUB_ON_MAPPING, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(sasl_username),
	"User to log in as."},
	{"sasl_password", PUBSUB_ON_MAPPING, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(sasl_password),
		"Password of that user.",
		.flags = PUBSUB_SECRET},
	{"ssl_certificate_pem", PUBSUB_ON_MAPPING, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(ssl_certificate_pem),
		"Client certificate, as PEM text.",
		.check = pubsub_check_pem},
	{"ssl_key_pem", PUBSUB_ON_MAPPING, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(ssl_key_pem),
		"Private key of the client certificate, as PEM text.",
		.flags = PUBSUB_SECRET, .check = pubsub_check_pem},
	{"ssl_key_password", PUBSUB_ON_MAPPING, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(ssl_key_password),
		"Password of the private key.",
		.flags = PUBSUB_SECRET},
	{"auth", PUBSUB_ON_MAPPING, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_ENUM, FIELD(auth),
		"How to log in.",
		.defdoc = "by the credentials given", .values = auths},
	{"credentials_json", PUBSUB_ON_MAPPING, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_STRING, FIELD(credentials_json),
		"Key of a service account, as JSON text.",
		.flags = PUBSUB_SECRET, .check = pubsub_check_credentials},
	{"credentials_file", PUBSUB_ON_MAPPING, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_STRING, FIELD(credentials_file),
		"File on the database server with the key of a service account; needs the role pg_read_server_files.",
		.flags = PUBSUB_READS_FILE, .check = pubsub_check_file},
	{"access_token", PUBSUB_ON_MAPPING, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_STRING, FIELD(access_token),
		"OAuth 2.0 token, valid for about an hour.",
		.flags = PUBSUB_SECRET},
	{"credentials_required", PUBSUB_ON_MAPPING, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_BOOL, FIELD(credentials_required),
		"Whether users who are no superusers need credentials; only a superuser may set false.",
		.flags = PUBSUB_SUPERUSER_FALSE, .defval = "true"},

	/* table */
	{"topic", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, FIELD(topic),
		"Topic to read (kafka only) and to publish to.",
		.defdoc = "kafka: required", .check = pubsub_check_topic},
	{"subscription", PUBSUB_ON_TABLE, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_STRING, FIELD(subscription),
		"Subscription to read: a bare name, or projects/<project>/subscriptions/<name>.",
		.check = pubsub_check_subscription},
	{"format", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_ENUM, FIELD(format),
		"Format of the payload; with raw the type of the column data decides.",
		.defval = "raw", .values = formats},
	{"strict", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_BOOL, FIELD(strict),
		"Whether a missing payload field is an error instead of NULL.",
		.defval = "false"},
	{"timestamp_attribute", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, FIELD(timestamp_attribute),
		"Attribute or header that holds the event time.",
		.max = 256},
	{"max_records", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_INT64, FIELD(max_records),
		"A read ends after so many messages.",
		.min = 1, .max = PG_INT64_MAX,
	.defdoc = "SELECT: none (kafka), 100 (pubsub); consume: 10000"},
	{"max_read_time", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_TIME, FIELD(max_read_time),
		"A read ends after so long.",
		.min = 1, .max = INT_MAX,
	.defdoc = "SELECT: none (kafka), 5s (pubsub); consume: 30s"},
	{"poll_timeout", PUBSUB_ON_TABLE, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_TIME, FIELD(poll_timeout),
		"A read of a subscription ends when nothing new has come for so long.  A topic of Kafka is read to its end, so there it has no effect.",
		.min = 1, .max = INT_MAX, .defval = "2s"},

	/* Kafka table */
	{"partitions", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(partitions),
		"Partitions to read, such as 0,3-5.",
		.defdoc = "all", .verify = pubsub_bounds_check_partitions},
	{"start_offsets", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(start_offsets),
		"Where a read starts: earliest, latest, latest-<n>, or JSON such as {\"0\":23,\"1\":\"earliest\"}.",
		.defdoc = "earliest", .verify = pubsub_bounds_check_offsets},
	{"stop_offsets", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(stop_offsets),
		"Where a read stops, exclusive; same syntax.",
		.defdoc = "latest", .verify = pubsub_bounds_check_offsets},
	{"start_read_time", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(start_read_time),
		"A read starts at the first record of this time or later; wins over start_offsets.",
		.verify = pubsub_bounds_check_time},
	{"stop_read_time", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(stop_read_time),
		"A read stops before the first record of this time or later; wins over stop_offsets.",
		.verify = pubsub_bounds_check_time},
	{"timestamp_miss", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(timestamp_miss),
		"What to do if a partition has no record of such a time.",
		.defval = "error", .values = timestamp_misses},
	{"on_data_loss", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(on_data_loss),
		"What to do if records that should be read do not exist any more.",
		.defval = "error", .values = data_losses},
	{"isolation_level", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(isolation_level),
		"Whether records of open and aborted Kafka transactions are read.",
		.defval = "read_committed", .values = isolation_levels},
	{"group_id", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_STRING, FIELD(group_id),
		"Name of the position that consuming moves; SELECT never uses it.",
		.max = PUBSUB_MAX_GROUP_ID},
	{"acks", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(acks),
		"Replicas that must have a published record before it counts: all that are in sync.  There is no other value, as a confirmed record must not be lost.",
		.defval = "all", .values = acks},
	{"compression", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_ENUM, FIELD(compression),
		"Compression of published records.",
		.defval = "none", .values = compressions},
	{"tombstones", PUBSUB_ON_TABLE, PUBSUB_FOR_KAFKA,
		PUBSUB_TYPE_BOOL, FIELD(tombstones),
		"Whether an INSERT with all payload columns NULL publishes a record without value.",
		.defval = "false"},

	/* Pub/Sub table */
	{"ack_deadline", PUBSUB_ON_TABLE, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_TIME, FIELD(ack_deadline),
		"How long a message that was read is withheld from other readers, in whole seconds.",
		.min = 10000, .max = 600000, .defval = "60s",
	.check = pubsub_check_seconds},
	{"max_lease", PUBSUB_ON_TABLE, PUBSUB_FOR_PUBSUB,
		PUBSUB_TYPE_TIME, FIELD(max_lease),
		"How long that is extended while the reading transaction is open.",
		.min = 0, .max = INT_MAX, .defval = "1h"},

	/* column: read by column.c */
	{.name = "metadata", PUBSUB_ON_COLUMN, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, -1,
	"Binds the column to an item of the message, such as key or offset."},
	{.name = "attribute", PUBSUB_ON_COLUMN, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, -1,
	"Binds the column to the attribute or header of this name."},
	{.name = "field", PUBSUB_ON_COLUMN, PUBSUB_FOR_BOTH,
		PUBSUB_TYPE_STRING, -1,
	"Binds the column to a field of the payload, such as customer.name or lines[0].price."},

	{NULL}
};

/* Names that users of other wrappers try */
static const struct
{
	const char *name;
	const char *ours;
}			foreign_names[] = {
	{"brokers", "bootstrap_servers"},
	{"kafka_topic", "topic"},
	{"username", "sasl_username"},
	{"password", "sasl_password"}
};

/*
 * pubsub_option_lookup
 *	  Finds the row for an option, wherever it may stand, or NULL.
 *
 * broker may be NULL: not known.
 */
const PubsubOptionDef *
pubsub_option_lookup(const char *name, const char *broker)
{
	bool		is_property;

	is_property = strncmp(name, PUBSUB_PROPERTY_PREFIX,
						  strlen(PUBSUB_PROPERTY_PREFIX)) == 0 ||
		is_broker_option(name, broker);

	for (const PubsubOptionDef *def = pubsub_option_defs; def->name; def++)
	{
		if (def->type == PUBSUB_TYPE_PROPERTY ? is_property :
			strcmp(def->name, name) == 0)
			return def;
	}
	return NULL;
}

/*
 * is_broker_option
 *	  Tells whether this is an option that only the driver knows.
 *
 * A driver that is not one of ours (the tests have "dummy_log") may have
 * options.  They begin with its name up to the first underscore ("dummy_"),
 * and are passed to it as properties.
 */
static bool
is_broker_option(const char *name, const char *broker)
{
	size_t		len;

	if (broker == NULL || pubsub_option_brokers(broker) != 0)
		return false;
	len = strcspn(broker, "_");
	return strncmp(name, broker, len) == 0 && name[len] == '_';
}

/*
 * pubsub_option_find
 *	  Finds the row for an option of an object.
 *
 * An unknown or misplaced option is an error that says which ones are legal.
 * brokers: those that it may be for, for the hint.  Never shows the value.
 */
const PubsubOptionDef *
pubsub_option_find(const char *name, int context, int brokers,
				   const char *broker)
{
	const PubsubOptionDef *def = pubsub_option_lookup(name, broker);

	if (def == NULL)
		unknown_option(name, context, brokers);
	if (!(def->contexts & context))
		misplaced_option(def, context);
	return def;
}

static bool
is_legal(const PubsubOptionDef *def, int context, int brokers)
{
	return (def->contexts & context) != 0 && (def->brokers & brokers) != 0;
}

/*
 * unknown_option
 *	  Raises HV00D with the options there are and the one that may be meant.
 */
static void
unknown_option(const char *name, int context, int brokers)
{
	const char *meant = NULL;
	int			distance = Min(MAX_DISTANCE, strlen(name) / 2) + 1;
	StringInfoData hint;

	if (brokers == 0)
		brokers = PUBSUB_FOR_BOTH;

	initStringInfo(&hint);
	for (const PubsubOptionDef *def = pubsub_option_defs; def->name; def++)
	{
		if (!is_legal(def, context, brokers))
			continue;
		appendStringInfo(&hint, "%s%s", hint.len > 0 ? ", " : "", def->name);

		/* a longer name is no slip of the pen, and the search is quadratic */
		if (strlen(name) < NAMEDATALEN)
		{
			int			d = varstr_levenshtein_less_equal(name, strlen(name),
														  def->name,
														  strlen(def->name),
														  1, 1, 1,
														  distance, true);

			if (d < distance)
			{
				distance = d;
				meant = def->name;
			}
		}
	}

	for (int i = 0; i < (int) lengthof(foreign_names); i++)
	{
		if (strcmp(name, foreign_names[i].name) == 0 &&
			is_legal(pubsub_option_lookup(foreign_names[i].ours, NULL),
					 context, brokers))
			meant = foreign_names[i].ours;
	}

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 meant ?
			 errhint("Perhaps you meant the option \"%s\". Valid options for %s are: %s.",
					 meant, pubsub_context_name(context, true), hint.data) :
			 errhint("Valid options for %s are: %s.",
					 pubsub_context_name(context, true), hint.data)));
}

/*
 * misplaced_option
 *	  Raises HV00D for an option that belongs to another kind of object.
 */
static void
misplaced_option(const PubsubOptionDef *def, int context)
{
	StringInfoData places;

	initStringInfo(&places);
	for (int bit = PUBSUB_ON_WRAPPER; bit <= PUBSUB_ON_COLUMN; bit <<= 1)
	{
		if (def->contexts & bit)
			appendStringInfo(&places, "%sthe %s", places.len > 0 ? " or " : "",
							 pubsub_context_name(bit, false));
	}

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("option \"%s\" is not allowed for %s", def->name,
					pubsub_context_name(context, true)),
			 (def->flags & PUBSUB_SECRET) ?
			 errdetail("It is a secret, and only the options of a user mapping are hidden from other roles.") : 0,
			 errhint("Put it into the options of %s.", places.data)));
}

/*
 * pubsub_option_brokers
 *	  Returns the bit of a broker, or 0 for one that has none of its own:
 *	  it may use the options of all.
 */
int
pubsub_option_brokers(const char *broker)
{
	if (strcmp(broker, kafka_driver.name) == 0)
		return PUBSUB_FOR_KAFKA;
	if (strcmp(broker, google_driver.name) == 0)
		return PUBSUB_FOR_PUBSUB;
	return 0;
}

/*
 * pubsub_broker_name
 *	  Returns the name to a single bit.
 */
const char *
pubsub_broker_name(int brokers)
{
	Assert(brokers == PUBSUB_FOR_KAFKA || brokers == PUBSUB_FOR_PUBSUB);
	return brokers == PUBSUB_FOR_KAFKA ? kafka_driver.name : google_driver.name;
}

const char *
pubsub_context_name(int context, bool article)
{
	const char *name;

	switch (context)
	{
		case PUBSUB_ON_WRAPPER:
			name = "a foreign-data wrapper";
			break;
		case PUBSUB_ON_SERVER:
			name = "a server";
			break;
		case PUBSUB_ON_MAPPING:
			name = "a user mapping";
			break;
		case PUBSUB_ON_TABLE:
			name = "a foreign table";
			break;
		default:
			Assert(context == PUBSUB_ON_COLUMN);
			name = "a column";
			break;
	}
	return article ? name : name + strlen("a ");
}

/*
 * pubsub_fdw_options
 *	  SQL function: one row per option and kind of object.
 */
Datum
pubsub_fdw_options(PG_FUNCTION_ARGS)
{
	static const char *const type_names[] = {
		[PUBSUB_TYPE_STRING] = "string",
		[PUBSUB_TYPE_BOOL] = "boolean",
		[PUBSUB_TYPE_INT] = "integer",
		[PUBSUB_TYPE_INT64] = "integer",
		[PUBSUB_TYPE_TIME] = "time",
		[PUBSUB_TYPE_BYTES] = "bytes",
		[PUBSUB_TYPE_PROPERTY] = "string",
	};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);

	for (int bit = PUBSUB_ON_WRAPPER; bit <= PUBSUB_ON_COLUMN; bit <<= 1)
	{
		for (const PubsubOptionDef *def = pubsub_option_defs; def->name; def++)
		{
			const char *defval = def->defdoc ? def->defdoc : def->defval;
			const char *type;
			const char *doc;
			Datum		values[7];
			bool		nulls[7] = {0};

			if (!(def->contexts & bit))
				continue;

			if ((def->flags & PUBSUB_REQUIRED) && bit == PUBSUB_ON_SERVER)
				defval = "required";
			else if (bit == PUBSUB_ON_TABLE &&
					 (def->contexts & PUBSUB_ON_SERVER))
				defval = "the server's";

			type = def->type == PUBSUB_TYPE_ENUM ?
				psprintf("enum: %s", pubsub_option_values(def)) :
				type_names[def->type];
			/* before the full stop */
			doc = def->brokers == PUBSUB_FOR_BOTH ? def->doc :
				psprintf("%.*s (%s).", (int) strlen(def->doc) - 1, def->doc,
						 pubsub_broker_name(def->brokers));

			values[0] = CStringGetTextDatum(def->name);
			values[1] = CStringGetTextDatum(pubsub_context_name(bit, false));
			values[2] = CStringGetTextDatum(type);
			if (defval)
				values[3] = CStringGetTextDatum(defval);
			else
				nulls[3] = true;
			values[4] = BoolGetDatum((def->flags & PUBSUB_SECRET) != 0);
			values[5] = BoolGetDatum((def->flags & (PUBSUB_READS_FILE |
													PUBSUB_SUPERUSER_FALSE)) != 0);
			values[6] = CStringGetTextDatum(doc);
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc,
								 values, nulls);
		}
	}
	return (Datum) 0;
}
