/*-------------------------------------------------------------------------
 *
 * option_validate.c
 *		The validator: options as written in CREATE and ALTER
 *
 * It is told the options of one object (all of them, as they will be) and the
 * kind of that object, but neither which object nor, for a table or a user
 * mapping, which server.  So it checks each option by its row in the option
 * table, and then what can be known of their combination.  The rest waits
 * until the first use: see option_resolve.c.
 *
 * IDENTIFICATION
 *		src/option_validate.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "kafka/kafka_properties.h"
#include "option.h"
#include "pubsub_fdw.h"

PG_FUNCTION_INFO_V1(pubsub_fdw_validator);

/* The brokers that the options seen so far may be for */
typedef struct Brokers
{
	int			possible;		/* PUBSUB_FOR_* */
	const char *broker;			/* the option "broker", or NULL */
	const char *option;			/* the one that ruled a broker out, or NULL */
} Brokers;

static int	context_of_catalog(Oid catalog);
static const char *find_broker(List *list);
static void narrow_brokers(Brokers *brokers, const PubsubOptionDef *def,
						   const char *name);
static void check_option(const PubsubOptionDef *def, const char *name,
						 const char *value, const PubsubOptions *options);
static void check_property(const char *name, const char *value);
static void check_server(const PubsubOptions *options);
static void check_mapping(const PubsubOptions *options);
static void check_table(const PubsubOptions *options,
						const Brokers *brokers);
static void check_columns(List *list);
static void report_legacy(const char *name, const char *kind);

/*
 * pubsub_fdw_validator
 *	  SQL function: raises an error if the options of an object are wrong.
 */
Datum
pubsub_fdw_validator(PG_FUNCTION_ARGS)
{
	List	   *list = untransformRelOptions(PG_GETARG_DATUM(0));
	int			context = context_of_catalog(PG_GETARG_OID(1));
	PubsubOptions *options = pubsub_options_create();
	Brokers		brokers = {.possible = PUBSUB_FOR_BOTH};
	bool		any_broker = false;
	ListCell   *lc;

	/* the broker decides on the others, wherever it stands in the list */
	if (context == PUBSUB_ON_SERVER || context == PUBSUB_ON_WRAPPER)
		brokers.broker = find_broker(list);
	if (brokers.broker != NULL)
	{
		brokers.possible = pubsub_option_brokers(brokers.broker);
		any_broker = brokers.possible == 0;
	}

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);
		char	   *value = defGetString(elem);
		const PubsubOptionDef *def;

		def = pubsub_option_find(elem->defname, context, brokers.possible,
								 brokers.broker);
		if (!any_broker)
			narrow_brokers(&brokers, def, elem->defname);
		if (def->type == PUBSUB_TYPE_PROPERTY && !any_broker)
			check_property(elem->defname, value);
		pubsub_option_set(options, def, elem->defname, value);
		check_option(def, elem->defname, value, options);
	}

	if (brokers.possible == PUBSUB_FOR_PUBSUB)
	{
		foreach(lc, list)
		{
			DefElem    *elem = lfirst_node(DefElem, lc);

			pubsub_option_check_max(pubsub_option_lookup(elem->defname, NULL),
									defGetString(elem), options);
		}
	}

	switch (context)
	{
		case PUBSUB_ON_SERVER:
			check_server(options);
			break;
		case PUBSUB_ON_MAPPING:
			check_mapping(options);
			break;
		case PUBSUB_ON_TABLE:
			check_table(options, &brokers);
			break;
		case PUBSUB_ON_COLUMN:
			check_columns(list);
			break;
	}

	PG_RETURN_VOID();
}

static int
context_of_catalog(Oid catalog)
{
	switch (catalog)
	{
		case ForeignDataWrapperRelationId:
			return PUBSUB_ON_WRAPPER;
		case ForeignServerRelationId:
			return PUBSUB_ON_SERVER;
		case UserMappingRelationId:
			return PUBSUB_ON_MAPPING;
		case ForeignTableRelationId:
			return PUBSUB_ON_TABLE;
		case AttributeRelationId:
			return PUBSUB_ON_COLUMN;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("objects of catalog %u have no options of pubsub_fdw",
					catalog)));
}

/*
 * find_broker
 *	  Returns the value of the option "broker", or NULL; an unknown broker is
 *	  an error.
 */
static const char *
find_broker(List *list)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);

		if (strcmp(elem->defname, "broker") == 0)
		{
			const char *value = defGetString(elem);
			const char *hint = pubsub_check_broker(value);

			if (hint != NULL)
				pubsub_option_invalid(pubsub_option_lookup("broker", NULL),
									  elem->defname, value, hint);
			return value;
		}
	}
	return NULL;
}

/*
 * narrow_brokers
 *	  Rules out the brokers that an option is not for; if none is left, that
 *	  is an error (HV00C).
 */
static void
narrow_brokers(Brokers *brokers, const PubsubOptionDef *def, const char *name)
{
	if ((brokers->possible & def->brokers) == 0)
	{
		if (brokers->broker != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_INDEX),
					 errmsg("option \"%s\" does not fit broker \"%s\"",
							name, brokers->broker),
					 errdetail("It is an option for broker \"%s\".",
							   pubsub_broker_name(def->brokers))));
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_INDEX),
				 errmsg("options \"%s\" and \"%s\" are for different brokers",
						brokers->option, name),
				 errdetail("The first is for broker \"%s\", the second for broker \"%s\".",
						   pubsub_broker_name(brokers->possible),
						   pubsub_broker_name(def->brokers))));
	}
	if ((brokers->possible & def->brokers) != brokers->possible)
	{
		brokers->possible &= def->brokers;
		brokers->option = name;
	}
}

/*
 * check_option
 *	  Checks a single option: its syntax, and who may set it.
 */
static void
check_option(const PubsubOptionDef *def, const char *name, const char *value,
			 const PubsubOptions *options)
{
	const char *hint = def->check ? def->check(value) : NULL;

	if (hint != NULL)
		pubsub_option_invalid(def, name, value, hint);
	if (def->verify)
		def->verify(name, value);

	if ((def->flags & PUBSUB_READS_FILE) &&
		!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set option \"%s\"", name),
				 errdetail("The option makes the database server read a file."),
				 errhint("Only roles with privileges of the \"pg_read_server_files\" role may set it.")));

	if ((def->flags & PUBSUB_SUPERUSER_FALSE) &&
		!*(const bool *) ((const char *) options + def->offset) &&
		!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set option \"%s\" to false",
						name),
				 errhint("User mappings with this option set to false may only be created or modified by a superuser.")));
}

/*
 * check_property
 *	  Checks a property against the allow-lists.
 */
static void
check_property(const char *name, const char *value)
{
	const char *property = name + strlen(PUBSUB_PROPERTY_PREFIX);
	const char *reason;

	reason = kafka_property_check(property, NULL, true);
	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("invalid option \"%s\"", name),
				 errdetail("%s", reason)));

	reason = kafka_property_check(property, value, true);
	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\"", name),
				 errhint("%s", reason)));

	reason = kafka_property_check(property, value, superuser());
	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set option \"%s\"", name),
				 errdetail("%s", reason)));
}

/*
 * check_server
 *	  Checks what the options of a server say together.
 *
 * A server without "broker" may have it from the wrapper, which is not at
 * hand here.
 */
static void
check_server(const PubsubOptions *options)
{
	bool		is_kafka = options->broker != NULL &&
		pubsub_option_brokers(options->broker) == PUBSUB_FOR_KAFKA;
	bool		has_sasl = options->security_protocol == PUBSUB_SECURITY_SASL_PLAINTEXT ||
		options->security_protocol == PUBSUB_SECURITY_SASL_SSL;
	bool		has_ssl = options->security_protocol == PUBSUB_SECURITY_SSL ||
		options->security_protocol == PUBSUB_SECURITY_SASL_SSL;
	bool		is_pubsub = options->broker != NULL &&
		pubsub_option_brokers(options->broker) == PUBSUB_FOR_PUBSUB;

	/* Pub/Sub is encrypted unless its endpoint says otherwise */
	if (is_pubsub)
		has_ssl = strncmp(options->endpoint, "http://",
						  strlen("http://")) != 0;

	if (is_kafka && options->bootstrap_servers == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s\" is missing", "bootstrap_servers"),
				 errhint("A server with broker \"kafka\" needs a comma-separated list of host:port.")));

	if (has_sasl && options->sasl_mechanism == PUBSUB_SASL_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s\" is missing", "sasl_mechanism"),
				 errhint("The security_protocol of the server needs it.")));

	/* otherwise the connection would be less protected than it looks */
	if (!has_sasl && options->sasl_mechanism != PUBSUB_SASL_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" has no effect without SASL",
						"sasl_mechanism"),
				 errhint("Set security_protocol to sasl_ssl or sasl_plaintext.")));
	if (!has_ssl &&
		(options->ssl_ca_pem != NULL || options->ssl_ca_location != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" has no effect without TLS",
						options->ssl_ca_pem ? "ssl_ca_pem" : "ssl_ca_location"),
				 is_pubsub ?
				 errhint("Use an https:// endpoint.") :
				 errhint("Set security_protocol to ssl or sasl_ssl.")));

	if (options->ssl_ca_pem != NULL && options->ssl_ca_location != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%s\" and \"%s\" exclude each other",
						"ssl_ca_pem", "ssl_ca_location")));
}

/*
 * check_mapping
 *	  Checks that there is at most one way to log in, and that it is the one
 *	  that "auth" says.
 */
static void
check_mapping(const PubsubOptions *options)
{
	bool		has_key = options->credentials_json != NULL ||
		options->credentials_file != NULL;
	bool		has_token = options->access_token != NULL;

	if ((options->credentials_json != NULL) +
		(options->credentials_file != NULL) + has_token > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%s\", \"%s\" and \"%s\" exclude each other",
						"credentials_json", "credentials_file",
						"access_token")));

	switch ((PubsubAuth) options->auth)
	{
		case PUBSUB_AUTH_DEFAULT:
			break;
		case PUBSUB_AUTH_SERVICE_ACCOUNT:
			if (!has_key)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
						 errmsg("option \"%s\" is missing",
								"credentials_json"),
						 errhint("With auth 'service_account', give \"credentials_json\" or \"credentials_file\".")));
			break;
		case PUBSUB_AUTH_TOKEN:
			if (!has_token)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
						 errmsg("option \"%s\" is missing", "access_token"),
						 errhint("With auth 'token', give \"access_token\".")));
			break;
		case PUBSUB_AUTH_NONE:
			if (has_key || has_token)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("credentials have no effect with auth 'none'"),
						 errhint("Drop the credentials or change the option \"auth\".")));
			break;
	}
}

/*
 * check_table
 *	  Checks the names, by the broker as far as the options tell it, and the
 *	  stretch to be read.
 */
static void
check_table(const PubsubOptions *options, const Brokers *brokers)
{
	const PubsubOptionDef *def = pubsub_option_lookup("topic", NULL);

	if (options->topic != NULL)
	{
		const char *project;
		const char *id;
		int			len;
		bool		legacy;
		const char *hint = NULL;

		if (brokers->possible == PUBSUB_FOR_KAFKA)
			hint = pubsub_check_kafka_topic(options->topic);
		else if (brokers->possible == PUBSUB_FOR_PUBSUB &&
				 !pubsub_parse_path(options->topic, "topics", &project, &len,
									&id, &legacy))
			hint = pubsub_path_rule("topics");
		if (hint != NULL)
			pubsub_option_invalid(def, def->name, options->topic, hint);
		report_legacy(options->topic, "topics");
	}
	else if (brokers->possible == PUBSUB_FOR_KAFKA)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s\" is missing", "topic"),
				 errdetail("Option \"%s\" makes this a Kafka table.",
						   brokers->option)));

	if (options->subscription != NULL)
		report_legacy(options->subscription, "subscriptions");
}

/*
 * report_legacy
 *	  Points out a name in the form of old Beam programs.
 */
static void
report_legacy(const char *name, const char *kind)
{
	const char *project;
	const char *id;
	int			len;
	bool		legacy;

	if (pubsub_parse_path(name, kind, &project, &len, &id, &legacy) && legacy)
		ereport(NOTICE,
				(errmsg("\"%s\" is read as \"projects/%.*s/%s/%s\"",
						name, len, project, kind, id),
				 errhint("The form /%s/<project>/<name> is deprecated.",
						 kind)));
}

/*
 * check_columns
 *	  Checks the options of a column: one, and well-formed.
 */
static void
check_columns(List *list)
{
	ListCell   *lc;

	if (list_length(list) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%s\" and \"%s\" exclude each other",
						linitial_node(DefElem, list)->defname,
						lsecond_node(DefElem, list)->defname),
				 errhint("Bind a column to one thing only.")));

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);

		pubsub_column_check_option(elem->defname, defGetString(elem));
	}
}
