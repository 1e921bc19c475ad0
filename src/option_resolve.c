/*-------------------------------------------------------------------------
 *
 * option_resolve.c
 *		The options of a server or a foreign table, resolved for use
 *
 * Merges what the catalogs say about the wrapper, the server, the user
 * mapping and the table, in this order, the later one winning.  Here the
 * broker is known, so this is the place of all checks that the validator had
 * to leave, and of the question whether this user may use this mapping.
 *
 * IDENTIFICATION
 *		src/option_resolve.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "option.h"
#include "pubsub_fdw.h"

static bool is_our_wrapper(Oid fdwid);
static const PubsubDriver *find_driver(ForeignServer *server,
									   ForeignDataWrapper *wrapper);
static const char *find_option(List *list, const char *name);
static void apply_options(PubsubOptions *options, List *list, int context,
						  const PubsubDriver *driver,
						  const ForeignServer *server, const char *table);
static void check_max(const PubsubOptions *options, List *list);
static List *get_mapping(ForeignServer *server, Oid userid, Oid *umid);
static void check_server(PubsubOptions *options, const ForeignServer *server,
						 Oid userid);
static bool has_credentials(const PubsubOptions *options);
static void check_table(PubsubOptions *options, const PubsubTable *table);

/*
 * pubsub_is_our_table
 *	  Tells whether this is a foreign table of a wrapper with our handler.
 */
bool
pubsub_is_our_table(Oid relid)
{
	HeapTuple	tuple;
	Oid			serverid;

	tuple = SearchSysCache1(FOREIGNTABLEREL, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return false;
	serverid = ((Form_pg_foreign_table) GETSTRUCT(tuple))->ftserver;
	ReleaseSysCache(tuple);

	return is_our_wrapper(GetForeignServer(serverid)->fdwid);
}

/*
 * is_our_wrapper
 *	  Several wrappers may have our handler, under whatever name: ask it.
 */
static bool
is_our_wrapper(Oid fdwid)
{
	ForeignDataWrapper *wrapper = GetForeignDataWrapper(fdwid);

	return OidIsValid(wrapper->fdwhandler) &&
		GetFdwRoutine(wrapper->fdwhandler)->BeginForeignScan == pubsubBeginForeignScan;
}

/*
 * pubsub_table_get
 *	  Looks a foreign table up; see pubsub_fdw.h.
 */
PubsubTable *
pubsub_table_get(Oid relid, Oid userid)
{
	PubsubTable *table = palloc0(sizeof(PubsubTable));
	ForeignTable *foreign_table = GetForeignTable(relid);

	table->relid = relid;
	table->name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
											 get_rel_name(relid));
	table->userid = userid;
	table->server = GetForeignServer(foreign_table->serverid);
	table->options = *pubsub_server_options(table->server, userid,
											&table->umid);
	table->driver = pubsub_driver_find(table->options.broker);
	apply_options(&table->options, foreign_table->options, PUBSUB_ON_TABLE,
				  table->driver, table->server, table->name);
	check_table(&table->options, table);
	return table;
}

/*
 * pubsub_server_options
 *	  Resolves the options of a server and a user's mapping.
 */
PubsubOptions *
pubsub_server_options(ForeignServer *server, Oid userid, Oid *umid)
{
	PubsubOptions *options = pubsub_options_create();
	ForeignDataWrapper *wrapper = GetForeignDataWrapper(server->fdwid);
	const PubsubDriver *driver;

	if (!is_our_wrapper(server->fdwid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not a server of pubsub_fdw",
						server->servername)));

	driver = find_driver(server, wrapper);
	options->connect_timeout = pubsub_connect_timeout;
	options->request_timeout = pubsub_request_timeout;
	apply_options(options, wrapper->options, PUBSUB_ON_WRAPPER, driver,
				  server, NULL);
	apply_options(options, server->options, PUBSUB_ON_SERVER, driver,
				  server, NULL);
	apply_options(options, get_mapping(server, userid, umid),
				  PUBSUB_ON_MAPPING, driver, server, NULL);
	check_server(options, server, userid);
	return options;
}

/*
 * find_driver
 *	  Finds the driver by the option "broker" of the server, else of its
 *	  wrapper.
 */
static const PubsubDriver *
find_driver(ForeignServer *server, ForeignDataWrapper *wrapper)
{
	const char *broker = find_option(server->options, "broker");
	const PubsubDriver *driver;

	if (broker == NULL)
		broker = find_option(wrapper->options, "broker");
	if (broker == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("server \"%s\" has no option \"%s\"",
						server->servername, "broker"),
				 errhint("Use ALTER SERVER %s OPTIONS (ADD broker '...') with kafka or pubsub.",
						 quote_identifier(server->servername))));

	driver = pubsub_driver_find(broker);
	if (driver == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("broker \"%s\" of server \"%s\" is not known",
						broker, server->servername),
				 errhint("%s", pubsub_check_broker(broker))));
	return driver;
}

static const char *
find_option(List *list, const char *name)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);

		if (strcmp(elem->defname, name) == 0)
			return defGetString(elem);
	}
	return NULL;
}

/*
 * apply_options
 *	  Puts the options of one object into the struct, over those before.
 *
 * An option for another broker than the server's is an error (HV00C).  table
 * is the name of the table if that is the object.
 */
static void
apply_options(PubsubOptions *options, List *list, int context,
			  const PubsubDriver *driver, const ForeignServer *server,
			  const char *table)
{
	int			brokers = pubsub_option_brokers(driver->name);
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);
		const PubsubOptionDef *def;

		def = pubsub_option_find(elem->defname, context, brokers,
								 driver->name);
		if (brokers != 0 && (def->brokers & brokers) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_INDEX),
					 table ?
					 errmsg("option \"%s\" of foreign table \"%s\" does not fit server \"%s\"",
							elem->defname, table, server->servername) :
					 errmsg("option \"%s\" of %s does not fit server \"%s\"",
							elem->defname, pubsub_context_name(context, true),
							server->servername),
					 errdetail("It is an option for broker \"%s\", but the server's broker is \"%s\".",
							   pubsub_broker_name(def->brokers),
							   driver->name)));
		pubsub_option_set(options, def, elem->defname, defGetString(elem));
	}

	if (brokers == PUBSUB_FOR_PUBSUB)
		check_max(options, list);
}

static void
check_max(const PubsubOptions *options, List *list)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);

		pubsub_option_check_max(pubsub_option_lookup(elem->defname, NULL),
								defGetString(elem), options);
	}
}

/*
 * get_mapping
 *	  Returns the options of the user's mapping, or else of PUBLIC's.
 *
 * A superuser who has neither gets an empty one.
 */
static List *
get_mapping(ForeignServer *server, Oid userid, Oid *umid)
{
	HeapTuple	tuple;
	Datum		datum;
	bool		isnull;
	List	   *list = NIL;

	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid),
							ObjectIdGetDatum(server->serverid));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER,
								ObjectIdGetDatum(InvalidOid),
								ObjectIdGetDatum(server->serverid));
	if (!HeapTupleIsValid(tuple))
	{
		if (!superuser_arg(userid))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("user mapping not found for user \"%s\" and server \"%s\"",
							GetUserNameFromId(userid, false),
							server->servername),
					 errhint("Use CREATE USER MAPPING FOR %s SERVER %s.",
							 quote_identifier(GetUserNameFromId(userid, false)),
							 quote_identifier(server->servername))));
		*umid = InvalidOid;
		return NIL;
	}

	*umid = ((Form_pg_user_mapping) GETSTRUCT(tuple))->oid;
	datum = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple,
							Anum_pg_user_mapping_umoptions, &isnull);
	if (!isnull)
		list = untransformRelOptions(datum);
	ReleaseSysCache(tuple);
	return list;
}

/*
 * check_server
 *	  Checks server and mapping together, and whether the user may use them.
 */
static void
check_server(PubsubOptions *options, const ForeignServer *server, Oid userid)
{
	int			brokers = pubsub_option_brokers(options->broker);

	if (brokers == PUBSUB_FOR_KAFKA && options->bootstrap_servers == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("server \"%s\" has no option \"%s\"",
						server->servername, "bootstrap_servers"),
				 errhint("Use ALTER SERVER %s OPTIONS (ADD bootstrap_servers 'host:port').",
						 quote_identifier(server->servername))));

	if (options->auth == PUBSUB_AUTH_DEFAULT)
	{
		if (options->credentials_json != NULL ||
			options->credentials_file != NULL)
			options->auth = PUBSUB_AUTH_SERVICE_ACCOUNT;
		else if (options->access_token != NULL)
			options->auth = PUBSUB_AUTH_TOKEN;
	}

	if (brokers == PUBSUB_FOR_PUBSUB &&
		strncmp(options->endpoint, "http://", strlen("http://")) == 0 &&
		(options->auth == PUBSUB_AUTH_SERVICE_ACCOUNT ||
		 options->auth == PUBSUB_AUTH_TOKEN))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("credentials cannot be sent to server \"%s\"",
						server->servername),
				 errdetail("The endpoint \"%s\" is not encrypted.",
						   options->endpoint),
				 errhint("Use an https:// endpoint, or auth 'none' in the user mapping.")));

	if (options->credentials_required && !superuser_arg(userid) &&
		!has_credentials(options))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("credentials are required for server \"%s\"",
						server->servername),
				 errdetail("User \"%s\" is not a superuser, and the user mapping has no credentials that this server would ask for.",
						   GetUserNameFromId(userid, false)),
				 errhint("Put credentials into the user mapping, or have a superuser set credentials_required 'false' there.")));
}

/*
 * has_credentials
 *	  Tells whether the connection will use credentials of the user mapping,
 *	  rather than the mere fact that it comes from this host.
 */
static bool
has_credentials(const PubsubOptions *options)
{
	bool		has_token = options->access_token != NULL ||
		options->credentials_json != NULL ||
		options->credentials_file != NULL;

	switch (pubsub_option_brokers(options->broker))
	{
		case PUBSUB_FOR_KAFKA:
			switch ((PubsubSecurityProtocol) options->security_protocol)
			{
				case PUBSUB_SECURITY_PLAINTEXT:
					return false;
				case PUBSUB_SECURITY_SSL:
					return options->ssl_key_pem != NULL;
				case PUBSUB_SECURITY_SASL_PLAINTEXT:
				case PUBSUB_SECURITY_SASL_SSL:
					return options->sasl_password != NULL;
			}
			return false;
		case PUBSUB_FOR_PUBSUB:
			return options->auth != PUBSUB_AUTH_NONE && has_token;
		default:
			return has_token || options->sasl_password != NULL ||
				options->ssl_key_pem != NULL;
	}
}

/*
 * check_table
 *	  Checks a table's names by the rules of its broker, and completes them.
 */
static void
check_table(PubsubOptions *options, const PubsubTable *table)
{
	switch (pubsub_option_brokers(options->broker))
	{
		case PUBSUB_FOR_KAFKA:
			{
				const char *hint;

				if (options->topic == NULL)
					pubsub_option_missing(table, "topic",
										  "read and to publish");
				hint = pubsub_check_kafka_topic(options->topic);
				if (hint != NULL)
					pubsub_option_invalid(pubsub_option_lookup("topic", NULL),
										  "topic", options->topic, hint);
				break;
			}

		case PUBSUB_FOR_PUBSUB:
			if (options->topic == NULL && options->subscription == NULL)
				pubsub_option_missing(table, "subscription", "read");
			if (options->topic != NULL)
				options->topic = pubsub_resource_path(options->topic,
													  "topics",
													  options->project);
			if (options->subscription != NULL)
				options->subscription = pubsub_resource_path(options->subscription,
															 "subscriptions",
															 options->project);
			break;
	}
}

/*
 * pubsub_option_missing
 *	  Raises HV002 for an option of a table that is needed "to <purpose>".
 */
void
pubsub_option_missing(const PubsubTable *table, const char *option,
					  const char *purpose)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
			 errmsg("foreign table \"%s\" has no option \"%s\"", table->name,
					option),
			 errdetail("It is needed to %s.", purpose),
			 errhint("Use ALTER FOREIGN TABLE %s OPTIONS (ADD %s '...').",
					 table->name, quote_identifier(option))));
}

/*
 * pubsub_resource_path
 *	  Returns the full path of a topic or subscription; see pubsub_fdw.h.
 */
char *
pubsub_resource_path(const char *name, const char *kind, const char *project)
{
	const char *own_project;
	const char *id;
	int			len;
	bool		legacy;

	if (!pubsub_parse_path(name, kind, &own_project, &len, &id, &legacy))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid Pub/Sub name \"%s\"", name),
				 errhint("%s", pubsub_path_rule(kind))));
	if (own_project == NULL)
	{
		if (project == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("Pub/Sub name \"%s\" has no project", name),
					 errhint("Write projects/<project>/%s/%s, or set the option \"project\" of the server.",
							 kind, id)));
		own_project = project;
		len = strlen(project);
	}
	return psprintf("projects/%.*s/%s/%s", len, own_project, kind, id);
}
