/*-------------------------------------------------------------------------
 *
 * dummy_func.c
 *		SQL functions by which tests look at the dummy brokers
 *
 * IDENTIFICATION
 *		test/dummy/dummy_func.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "dummy.h"

PG_FUNCTION_INFO_V1(dummy_append);
PG_FUNCTION_INFO_V1(dummy_append_control);
PG_FUNCTION_INFO_V1(dummy_truncate);
PG_FUNCTION_INFO_V1(dummy_subscription);
PG_FUNCTION_INFO_V1(dummy_held);
PG_FUNCTION_INFO_V1(dummy_calls);
PG_FUNCTION_INFO_V1(dummy_drop);
PG_FUNCTION_INFO_V1(dummy_at_commit);

/*
 * dummy_result
 *	  Raises an error if a file operation failed.
 */
static void
dummy_result(int rc, const char *what, const char *name)
{
	if (rc < 0)
		ereport(ERROR,
				(errmsg("could not %s \"%s\": %m", what, name)));
}

static PubsubBytes
dummy_bytes(Datum value)
{
	bytea	   *varlena = DatumGetByteaPP(value);
	PubsubBytes bytes;

	bytes.data = VARDATA_ANY(varlena);
	bytes.len = VARSIZE_ANY_EXHDR(varlena);
	return bytes;
}

/*
 * dummy_append
 *	  Adds a message to a partition, past ring 1.
 *
 * Headers are given as a flat array of names and values.
 */
Datum
dummy_append(PG_FUNCTION_ARGS)
{
	char	   *dir = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *topic = text_to_cstring(PG_GETARG_TEXT_PP(1));
	PubsubMessage message = {0};

	message.time_ms = PUBSUB_NO_TIME;
	if (!PG_ARGISNULL(3))
		message.data = dummy_bytes(PG_GETARG_DATUM(3));
	if (!PG_ARGISNULL(4))
		message.key = dummy_bytes(PG_GETARG_DATUM(4));
	if (!PG_ARGISNULL(5))
	{
		Datum	   *values;
		bool	   *nulls;
		int			nvalues;
		int			i;

		deconstruct_array(PG_GETARG_ARRAYTYPE_P(5), TEXTOID, -1, false,
						  TYPALIGN_INT, &values, &nulls, &nvalues);
		message.headers = palloc0(sizeof(PubsubHeader) * (nvalues / 2 + 1));
		message.nheaders = nvalues / 2;
		for (i = 0; i < message.nheaders; i++)
		{
			message.headers[i].name = dummy_bytes(values[2 * i]);
			if (!nulls[2 * i + 1])
				message.headers[i].value = dummy_bytes(values[2 * i + 1]);
		}
	}
	if (!PG_ARGISNULL(6))
	{
		int64		us = PG_GETARG_TIMESTAMPTZ(6) +
			(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;

		message.time_us = (us % 1000 + 1000) % 1000;
		message.time_ms = (us - message.time_us) / 1000;
	}
	dummy_result(dummy_record_append(dir, topic, PG_GETARG_INT32(2), &message),
				 "append to topic", topic);
	PG_RETURN_VOID();
}

/*
 * dummy_append_control
 *	  Adds records that take offsets and are not messages.
 */
Datum
dummy_append_control(PG_FUNCTION_ARGS)
{
	char	   *dir = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *topic = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int			n = PG_GETARG_INT32(3);

	while (n-- > 0)
		dummy_result(dummy_record_append_control(dir, topic,
												 PG_GETARG_INT32(2)),
					 "append to topic", topic);
	PG_RETURN_VOID();
}

/*
 * dummy_truncate
 *	  Removes the records below an offset.
 */
Datum
dummy_truncate(PG_FUNCTION_ARGS)
{
	char	   *dir = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *topic = text_to_cstring(PG_GETARG_TEXT_PP(1));

	dummy_result(dummy_topic_truncate(dir, topic, PG_GETARG_INT32(2),
									  PG_GETARG_INT64(3)),
				 "truncate topic", topic);
	PG_RETURN_VOID();
}

/*
 * dummy_subscription
 *	  Says how many messages wait, are leased, and are acknowledged.
 */
Datum
dummy_subscription(PG_FUNCTION_ARGS)
{
	char	   *dir = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int64		counts[3] = {0};

	dummy_result(dummy_subscription_count(dir, name, counts),
				 "read subscription", name);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("waiting " INT64_FORMAT
											  ", leased " INT64_FORMAT
											  ", acked " INT64_FORMAT,
											  counts[DUMMY_WAITING],
											  counts[DUMMY_LEASED],
											  counts[DUMMY_ACKED])));
}

/*
 * dummy_held
 *	  Says what this backend holds of the brokers; NULL = nothing.
 */
Datum
dummy_held(PG_FUNCTION_ARGS)
{
	DummyLive  *live = &dummy_live;

	if (live->sources == 0 && live->sinks == 0 && live->batches == 0 &&
		live->leases == 0 && live->messages == 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("sources %d, sinks %d, "
											  "batches %d, leases %d, "
											  "messages %d",
											  live->sources, live->sinks,
											  live->batches, live->leases,
											  live->messages)));
}

/*
 * dummy_calls
 *	  Returns how often the drivers were called since the last time.
 */
Datum
dummy_calls(PG_FUNCTION_ARGS)
{
	int64		n = dummy_ncalls;

	dummy_ncalls = 0;
	PG_RETURN_INT64(n);
}

/*
 * dummy_drop
 *	  Removes a broker.
 */
Datum
dummy_drop(PG_FUNCTION_ARGS)
{
	char	   *dir = text_to_cstring(PG_GETARG_TEXT_PP(0));

	dummy_result(dummy_remove(dir), "remove broker", dir);
	PG_RETURN_VOID();
}

/* What is to be executed when the transaction commits, or NULL */
static char *at_commit;

static void
dummy_execute_at_commit(XactEvent event, void *arg pg_attribute_unused())
{
	char	   *statement = at_commit;

	at_commit = NULL;
	if (event != XACT_EVENT_PRE_COMMIT || statement == NULL)
		return;
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) SPI_execute(statement, false, 0);
	PopActiveSnapshot();
	SPI_finish();
}

/*
 * dummy_at_commit
 *	  Has a statement executed by a transaction callback, as some extensions
 *	  do: after those of extensions that register theirs later.
 */
Datum
dummy_at_commit(PG_FUNCTION_ARGS)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(dummy_execute_at_commit, NULL);
	registered = true;
	at_commit = MemoryContextStrdup(TopTransactionContext,
									text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}
