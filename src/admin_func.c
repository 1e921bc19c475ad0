/*-------------------------------------------------------------------------
 *
 * admin_func.c
 *		Functions for administration and about the session
 *
 * Topics and subscriptions are created and dropped at once; ROLLBACK does not
 * undo it.  The rest looks at this backend only.
 *
 * IDENTIFICATION
 *		src/admin_func.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_foreign_server.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/tuplestore.h"

#include "read_func.h"
#include "session.h"

static PubsubSession *admin_session(FunctionCallInfo fcinfo,
									const char *what);
static const char *argument_text(FunctionCallInfo fcinfo, int arg,
								 const char *name);
static const char *resource_name(PubsubSession *session, const char *name,
								 const char *kind);
static int	argument_count(FunctionCallInfo fcinfo, int arg,
						   const char *name);
static void take_config(FunctionCallInfo fcinfo, int arg,
						PubsubAdminRequest *request);
static void take_ordering(PubsubAdminRequest *request);
static bool run_request(PubsubSession *session, PubsubAdminRequest *request,
						bool tolerant, const char *action,
						const char *object);

PG_FUNCTION_INFO_V1(pubsub_create_topic);
PG_FUNCTION_INFO_V1(pubsub_drop_topic);
PG_FUNCTION_INFO_V1(pubsub_create_subscription);
PG_FUNCTION_INFO_V1(pubsub_drop_subscription);
PG_FUNCTION_INFO_V1(pubsub_fdw_version);
PG_FUNCTION_INFO_V1(pubsub_get_connections);
PG_FUNCTION_INFO_V1(pubsub_disconnect);

/*
 * pubsub_create_topic
 *	  (server name, topic text, partitions int, replication_factor int,
 *	  config jsonb, if_not_exists bool)
 */
Datum
pubsub_create_topic(PG_FUNCTION_ARGS)
{
	PubsubAdminRequest request = {.op = PUBSUB_ADMIN_CREATE_TOPIC};
	PubsubSession *session = admin_session(fcinfo, "pubsub_create_topic()");

	request.topic = resource_name(session, argument_text(fcinfo, 1, "topic"),
								  "topics");
	request.partitions = argument_count(fcinfo, 2, "partitions");
	request.replication_factor = argument_count(fcinfo, 3,
												"replication_factor");
	take_config(fcinfo, 4, &request);
	PG_RETURN_BOOL(run_request(session, &request,
							   !PG_ARGISNULL(5) && PG_GETARG_BOOL(5),
							   "create topic", request.topic));
}

/*
 * pubsub_drop_topic
 *	  (server name, topic text, if_exists bool)
 */
Datum
pubsub_drop_topic(PG_FUNCTION_ARGS)
{
	PubsubAdminRequest request = {.op = PUBSUB_ADMIN_DROP_TOPIC};
	PubsubSession *session = admin_session(fcinfo, "pubsub_drop_topic()");

	request.topic = resource_name(session, argument_text(fcinfo, 1, "topic"),
								  "topics");
	PG_RETURN_BOOL(run_request(session, &request,
							   !PG_ARGISNULL(2) && PG_GETARG_BOOL(2),
							   "drop topic", request.topic));
}

/*
 * pubsub_create_subscription
 *	  (server name, subscription text, topic text, ack_deadline interval,
 *	  config jsonb, if_not_exists bool)
 */
Datum
pubsub_create_subscription(PG_FUNCTION_ARGS)
{
	PubsubAdminRequest request = {.op = PUBSUB_ADMIN_CREATE_SUBSCRIPTION};
	PubsubSession *session = admin_session(fcinfo,
										   "pubsub_create_subscription()");

	request.subscription = resource_name(session,
										 argument_text(fcinfo, 1, "subscription"),
										 "subscriptions");
	request.topic = resource_name(session, argument_text(fcinfo, 2, "topic"),
								  "topics");
	if (PG_ARGISNULL(3))
		request.ack_deadline = 60;
	else
		request.ack_deadline =
			pubsub_interval_ms("ack_deadline", PG_GETARG_INTERVAL_P(3)) / 1000;
	if (request.ack_deadline < 10 || request.ack_deadline > 600)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"ack_deadline\" must be between 10 and 600 seconds")));
	take_config(fcinfo, 4, &request);
	take_ordering(&request);
	PG_RETURN_BOOL(run_request(session, &request,
							   !PG_ARGISNULL(5) && PG_GETARG_BOOL(5),
							   "create subscription", request.subscription));
}

/*
 * pubsub_drop_subscription
 *	  (server name, subscription text, if_exists bool)
 */
Datum
pubsub_drop_subscription(PG_FUNCTION_ARGS)
{
	PubsubAdminRequest request = {.op = PUBSUB_ADMIN_DROP_SUBSCRIPTION};
	PubsubSession *session = admin_session(fcinfo,
										   "pubsub_drop_subscription()");

	request.subscription = resource_name(session,
										 argument_text(fcinfo, 1, "subscription"),
										 "subscriptions");
	PG_RETURN_BOOL(run_request(session, &request,
							   !PG_ARGISNULL(2) && PG_GETARG_BOOL(2),
							   "drop subscription", request.subscription));
}

/*
 * admin_session
 *	  The session for the server that the first argument names.
 *
 * Besides EXECUTE on the function, the user needs USAGE on the server.
 */
static PubsubSession *
admin_session(FunctionCallInfo fcinfo, const char *what)
{
	ForeignServer *server;
	AclResult	aclresult;
	PubsubSession *session;

	pubsub_check_writable(what);
	server = GetForeignServerByName(argument_text(fcinfo, 0, "server"), false);
	aclresult = pg_foreign_server_aclcheck(server->serverid, GetUserId(),
										   ACL_USAGE);
	if (aclresult != ACLCHECK_OK)
		aclcheck_error(aclresult, OBJECT_FOREIGN_SERVER, server->servername);

	session = pubsub_session_get(server, GetUserId());
	if (session->driver->admin == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("broker \"%s\" cannot be administrated",
						session->driver->name)));
	return session;
}

/*
 * argument_text
 *	  A text or name argument that must be given.
 */
static const char *
argument_text(FunctionCallInfo fcinfo, int arg, const char *name)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", name)));
	if (get_fn_expr_argtype(fcinfo->flinfo, arg) == NAMEOID)
		return NameStr(*PG_GETARG_NAME(arg));
	return text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/*
 * resource_name
 *	  The name of a topic or a subscription as the broker wants it.
 */
static const char *
resource_name(PubsubSession *session, const char *name, const char *kind)
{
	if (!(session->driver->capabilities & PUBSUB_IS_LOG))
		return pubsub_resource_path(name, kind, session->options->project);
	if (strcmp(kind, "subscriptions") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("server \"%s\" has no subscriptions",
						session->server_name),
				 errdetail("It is a \"%s\" server.", session->driver->name)));
	return name;
}

/*
 * argument_count
 *	  A number that must be positive; NULL = -1, the broker's default.
 */
static int
argument_count(FunctionCallInfo fcinfo, int arg, const char *name)
{
	if (PG_ARGISNULL(arg))
		return -1;
	if (PG_GETARG_INT32(arg) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be positive, not %d", name,
						PG_GETARG_INT32(arg))));
	return PG_GETARG_INT32(arg);
}

/*
 * take_config
 *	  Takes a flat jsonb object as configuration entries.
 */
static void
take_config(FunctionCallInfo fcinfo, int arg, PubsubAdminRequest *request)
{
	Jsonb	   *config;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	val;
	PubsubProperty *entries;
	char	   *key = NULL;

	if (PG_ARGISNULL(arg))
		return;
	config = PG_GETARG_JSONB_P(arg);
	if (!JB_ROOT_IS_OBJECT(config))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"config\" must be a JSON object")));

	entries = palloc0((JB_ROOT_COUNT(config) + 1) * sizeof(PubsubProperty));
	it = JsonbIteratorInit(&config->root);
	while ((token = JsonbIteratorNext(&it, &val, true)) != WJB_DONE)
	{
		char	   *value;

		if (token == WJB_KEY)
			key = pnstrdup(val.val.string.val, val.val.string.len);
		if (token != WJB_VALUE)
			continue;

		switch (val.type)
		{
			case jbvString:
				value = pnstrdup(val.val.string.val, val.val.string.len);
				break;
			case jbvNumeric:
				value = DatumGetCString(DirectFunctionCall1(numeric_out,
															NumericGetDatum(val.val.numeric)));
				break;
			case jbvBool:
				value = val.val.boolean ? "true" : "false";
				break;
			default:
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("\"config\" has no text, number or boolean for \"%s\"",
								key)));
		}
		entries[request->nconfig].name = key;
		entries[request->nconfig].value = value;
		request->nconfig++;
	}
	request->config = entries;
}

/*
 * take_ordering
 *	  Finds "message_ordering" among the entries and takes it out.
 */
static void
take_ordering(PubsubAdminRequest *request)
{
	PubsubProperty *entries = (PubsubProperty *) request->config;

	for (int i = 0; i < request->nconfig; i++)
	{
		if (strcmp(entries[i].name, "message_ordering") != 0)
			continue;
		if (!parse_bool(entries[i].value, &request->ordering))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("\"message_ordering\" requires a Boolean value")));
		entries[i] = entries[--request->nconfig];
		return;
	}
}

/*
 * run_request
 *	  Carries a request out.  False = there was nothing to do, and tolerant.
 */
static bool
run_request(PubsubSession *session, PubsubAdminRequest *request,
			bool tolerant, const char *action, const char *object)
{
	const PubsubAdminRoutine *admin = session->driver->admin;
	bool		is_create = (request->op == PUBSUB_ADMIN_CREATE_TOPIC ||
							 request->op == PUBSUB_ADMIN_CREATE_SUBSCRIPTION);
	PubsubDeadline connect_deadline;
	PubsubDeadline deadline;
	PubsubStatus status;
	PubsubError error;

	pubsub_error_clear(&error);
	pubsub_deadline_set(&connect_deadline, session->options->connect_timeout);
	pubsub_deadline_set(&deadline, session->options->request_timeout);

	/*
	 * An error on the way leaves the request to the end of the transaction;
	 * or to the next one, if it was caught.
	 */
	admin->end(session);
	status = admin->begin(session, request, &error);
	if (status == PUBSUB_OK)
	{
		while ((status = admin->step(session, PUBSUB_SLICE_MS,
									 &error)) == PUBSUB_AGAIN)
		{
			CHECK_FOR_INTERRUPTS();
			if (error.kind == PUBSUB_ERROR_CONNECT &&
				pubsub_deadline_passed(&connect_deadline))
				deadline = connect_deadline;
			if (pubsub_deadline_passed(&deadline))
				pubsub_throw_timeout(session, &error,
									 error.kind == PUBSUB_ERROR_CONNECT ?
									 PUBSUB_ERROR_CONNECT : PUBSUB_ERROR_LOST,
									 deadline.ms, "%s \"%s\"", action, object);
			pubsub_error_clear(&error);
		}
	}
	admin->end(session);

	if (status == PUBSUB_OK)
		return true;
	if (tolerant && error.kind == (is_create ? PUBSUB_ERROR_EXISTS :
								   PUBSUB_ERROR_NOT_FOUND))
		return false;
	pubsub_throw(session, &error, "%s \"%s\"", action, object);
}

/*
 * pubsub_fdw_version
 *	  Versions of the extension and of the libraries that are loaded.
 */
Datum
pubsub_fdw_version(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const PubsubDriver *driver;
	Datum		values[2];
	bool		isnull[2] = {false, false};

	InitMaterializedSRF(fcinfo, 0);
	values[0] = CStringGetTextDatum("pubsub_fdw");
	values[1] = CStringGetTextDatum(PUBSUB_FDW_VERSION);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);

	for (int i = 0; (driver = pubsub_driver_get(i)) != NULL; i++)
	{
		const char *component;
		const char *version;

		for (int j = 0; driver->version &&
			 driver->version(j, &component, &version); j++)
		{
			values[0] = CStringGetTextDatum(component);
			values[1] = CStringGetTextDatum(version);
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
								 isnull);
		}
	}
	return (Datum) 0;
}

/*
 * pubsub_get_connections
 *	  The sessions of this backend.
 */
Datum
pubsub_get_connections(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	dlist_iter	iter;

	InitMaterializedSRF(fcinfo, 0);
	dlist_foreach(iter, pubsub_session_list())
	{
		PubsubSessionEntry *entry = dlist_container(PubsubSessionEntry, node,
													iter.cur);
		char	   *user_name = GetUserNameFromId(entry->userid, true);
		NameData	server_name;
		NameData	user;
		Datum		values[5];
		bool		isnull[5] = {false};

		if (!entry->attached)
			continue;
		namestrcpy(&server_name, entry->session.server_name);
		values[0] = NameGetDatum(&server_name);
		isnull[1] = (user_name == NULL);
		if (user_name)
			namestrcpy(&user, user_name);
		values[1] = NameGetDatum(&user);
		values[2] = CStringGetTextDatum(entry->session.driver->name);
		values[3] = BoolGetDatum(!entry->retired);
		values[4] = BoolGetDatum(entry->in_xact);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
							 isnull);
	}
	return (Datum) 0;
}

/*
 * pubsub_disconnect
 *	  (server name) closes sessions; NULL = all.
 */
Datum
pubsub_disconnect(PG_FUNCTION_ARGS)
{
	Oid			serverid = InvalidOid;

	if (!PG_ARGISNULL(0))
		serverid = GetForeignServerByName(NameStr(*PG_GETARG_NAME(0)),
										  false)->serverid;
	PG_RETURN_BOOL(pubsub_session_disconnect(serverid));
}
