/*-------------------------------------------------------------------------
 *
 * publish.c
 *		The function pubsub_send() and the aggregate pubsub_publish()
 *
 * Both take a payload and send it as given, whatever the table's "format":
 * the table says where to, not what.  NULL is a payload, too: none (a
 * tombstone on Kafka).  Like INSERT they need INSERT on the table, and nothing
 * is sent before the transaction commits.
 *
 * IDENTIFICATION
 *		src/publish.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "codec.h"

/* In fn_extra: what need not be found out again for each row */
typedef struct PublishState
{
	PubsubOutput data;			/* makes bytes of the payload */
	Oid			relid;			/* known to be one of our tables */
} PublishState;

static void publish_row(FunctionCallInfo fcinfo, int first_arg);
static PubsubTarget *find_target(PublishState *state, Oid relid);
static void require_aggregate(FunctionCallInfo fcinfo, const char *function);

PG_FUNCTION_INFO_V1(pubsub_send);
PG_FUNCTION_INFO_V1(pubsub_publish_transfn);
PG_FUNCTION_INFO_V1(pubsub_publish_finalfn);

/*
 * pubsub_send
 *	  Publishes one message.  Arguments: target, data, attributes, key,
 *	  event_time.
 *
 * The result is the message's id, which is not known before the commit: NULL.
 */
Datum
pubsub_send(PG_FUNCTION_ARGS)
{
	publish_row(fcinfo, 0);
	PG_RETURN_NULL();
}

/*
 * pubsub_publish_transfn
 *	  Publishes one message and counts it.
 *
 * Arguments: the count, then those of pubsub_send(), of which the aggregate at
 * hand may lack the last ones.
 */
Datum
pubsub_publish_transfn(PG_FUNCTION_ARGS)
{
	require_aggregate(fcinfo, "pubsub_publish_transfn");
	publish_row(fcinfo, 1);
	PG_RETURN_INT64(PG_ARGISNULL(0) ? 1 : PG_GETARG_INT64(0) + 1);
}

Datum
pubsub_publish_finalfn(PG_FUNCTION_ARGS)
{
	require_aggregate(fcinfo, "pubsub_publish_finalfn");
	PG_RETURN_INT64(PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0));
}

/*
 * require_aggregate
 *	  Refuses a call by hand, and a window function, whose moving frame would
 *	  publish rows again.
 */
static void
require_aggregate(FunctionCallInfo fcinfo, const char *function)
{
	if (AggCheckCallContext(fcinfo, NULL) != AGG_CONTEXT_AGGREGATE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function %s() can only be called as part of the aggregate pubsub_publish()",
						function)));
}

/*
 * publish_row
 *	  Makes the arguments from first_arg on a message of this transaction.
 */
static void
publish_row(FunctionCallInfo fcinfo, int first_arg)
{
	PublishState *state = fcinfo->flinfo->fn_extra;
	int			data_arg = first_arg + 1;
	int			attributes_arg = first_arg + 2;
	int			key_arg = first_arg + 3;
	int			time_arg = first_arg + 4;
	PubsubTarget *target;
	PubsubMessage message;
	MemoryContext oldcxt;
	bool		has_time;

#define HAS_ARG(n) (PG_NARGS() > (n) && !PG_ARGISNULL(n))

	if (!HAS_ARG(first_arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("target table must not be null")));

	if (state == NULL)
	{
		state = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
									   sizeof(PublishState));
		oldcxt = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		pubsub_output_init(&state->data,
						   get_fn_expr_argtype(fcinfo->flinfo, data_arg));
		MemoryContextSwitchTo(oldcxt);
		fcinfo->flinfo->fn_extra = state;
	}
	target = find_target(state, PG_GETARG_OID(first_arg));

	memset(&message, 0, sizeof(message));
	message.partition = -1;
	message.offset = -1;
	message.time_ms = PUBSUB_NO_TIME;
	if (HAS_ARG(data_arg))
		message.data = pubsub_output_bytes(&state->data,
										   PG_GETARG_DATUM(data_arg));
	if (HAS_ARG(key_arg))
	{
		text	   *key = PG_GETARG_TEXT_PP(key_arg);

		message.key = pubsub_text_to_utf8(VARDATA_ANY(key),
										  VARSIZE_ANY_EXHDR(key));
	}
	if (HAS_ARG(attributes_arg))
		pubsub_encode_attributes(PG_GETARG_JSONB_P(attributes_arg), &message);
	has_time = HAS_ARG(time_arg);
	pubsub_encode_time(pubsub_target_table(target), has_time,
					   has_time ? PG_GETARG_TIMESTAMPTZ(time_arg) : 0,
					   &message);
#undef HAS_ARG

	pubsub_pending_add(target, &message);
}

/*
 * find_target
 *	  Finds the target for a row, with the checks that INSERT would make.
 */
static PubsubTarget *
find_target(PublishState *state, Oid relid)
{
	Oid			userid = GetUserId();
	AclResult	aclresult;

	pubsub_check_writable("publish");
	LockRelationOid(relid, RowExclusiveLock);
	if (state->relid != relid)
	{
		char	   *name = get_rel_name(relid);

		if (name == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("relation with OID %u does not exist", relid)));
		if (!pubsub_is_our_table(relid))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not a foreign table of pubsub_fdw",
							name)));
		state->relid = relid;
	}

	aclresult = pg_class_aclcheck(relid, userid, ACL_INSERT);
	if (aclresult != ACLCHECK_OK)
		aclcheck_error(aclresult, OBJECT_FOREIGN_TABLE, get_rel_name(relid));

	return pubsub_pending_target(relid, userid);
}
