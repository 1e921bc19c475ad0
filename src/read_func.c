/*-------------------------------------------------------------------------
 *
 * read_func.c
 *		pubsub_read() and pubsub_consume()
 *
 * Both return a bounded slice of the rows of a foreign table, whose row type
 * the first argument names: NULL::my_table.  The slice is materialized, so that
 * "consumed" is "returned": a function in FROM is always read to its end.  A
 * call in a select list is refused, as there a LIMIT would drop rows that were
 * consumed.
 *
 * IDENTIFICATION
 *		src/read_func.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "option.h"
#include "pubsub_fdw.h"
#include "read_func.h"

/* What a consuming call takes if nobody says */
#define DEFAULT_CONSUME_RECORDS 10000
#define DEFAULT_CONSUME_TIME_MS 30000

static PubsubTable *argument_table(FunctionCallInfo fcinfo,
								   AclMode required);
static void take_limits(FunctionCallInfo fcinfo, int records_arg,
						int time_arg, const PubsubTable *table,
						int64 default_records, int default_time,
						PubsubReadSpec *spec);
static char *partitions_text(ArrayType *array);
static void return_slice(FunctionCallInfo fcinfo, const PubsubTable *table,
						 PubsubReadSpec *spec);

PG_FUNCTION_INFO_V1(pubsub_read);
PG_FUNCTION_INFO_V1(pubsub_consume);

/*
 * pubsub_read
 *	  (target anyelement, start_offsets text, stop_offsets text,
 *	  start_read_time timestamptz, stop_read_time timestamptz,
 *	  partitions int[], max_records bigint, max_read_time interval,
 *	  timestamp_miss text)
 *
 * NULL = the table's option.
 */
Datum
pubsub_read(PG_FUNCTION_ARGS)
{
	PubsubTable *table = argument_table(fcinfo, ACL_SELECT);
	bool		is_log = (table->driver->capabilities & PUBSUB_IS_LOG) != 0;
	PubsubReadSpec spec;

	for (int i = 1; i <= 8 && !is_log; i++)
	{
		/* the limits, 6 and 7, are for all */
		if (!PG_ARGISNULL(i) && i != 6 && i != 7)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
					 errmsg("foreign table %s has no offsets or partitions to choose from",
							table->name),
					 errdetail("Its server \"%s\" is a \"%s\" server.",
							   table->server->servername,
							   table->driver->name)));
	}

	pubsub_read_spec_init(&spec, table);
	if (!PG_ARGISNULL(1))
	{
		spec.start_offsets = text_to_cstring(PG_GETARG_TEXT_PP(1));
		spec.has_start_read_time = false;
	}
	if (!PG_ARGISNULL(2))
	{
		spec.stop_offsets = text_to_cstring(PG_GETARG_TEXT_PP(2));
		spec.has_stop_read_time = false;
	}
	if (!PG_ARGISNULL(3))
	{
		spec.has_start_read_time = true;
		spec.start_read_time = PG_GETARG_TIMESTAMPTZ(3);
	}
	if (!PG_ARGISNULL(4))
	{
		spec.has_stop_read_time = true;
		spec.stop_read_time = PG_GETARG_TIMESTAMPTZ(4);
	}
	if (!PG_ARGISNULL(5))
		spec.partitions = partitions_text(PG_GETARG_ARRAYTYPE_P(5));
	take_limits(fcinfo, 6, 7, table, table->driver->default_scan_records,
				table->driver->default_scan_time, &spec);
	if (!PG_ARGISNULL(8))
		pubsub_option_set(&table->options,
						  pubsub_option_lookup("timestamp_miss", NULL),
						  "timestamp_miss",
						  text_to_cstring(PG_GETARG_TEXT_PP(8)));
	return_slice(fcinfo, table, &spec);
	return (Datum) 0;
}

/*
 * pubsub_consume
 *	  (target anyelement, max_records bigint, max_read_time interval,
 *	  group_id text, partitions int[])
 */
Datum
pubsub_consume(PG_FUNCTION_ARGS)
{
	PubsubTable *table = argument_table(fcinfo, ACL_SELECT | ACL_DELETE);
	PubsubReadSpec spec;

	pubsub_check_writable("pubsub_consume()");
	pubsub_read_spec_init(&spec, table);
	spec.consume = true;
	if (!PG_ARGISNULL(3))
		spec.group_id = pubsub_check_group_id(PG_GETARG_TEXT_PP(3));
	if (!PG_ARGISNULL(4))
		spec.partitions = partitions_text(PG_GETARG_ARRAYTYPE_P(4));
	pubsub_check_consume_arguments(table, !PG_ARGISNULL(3), !PG_ARGISNULL(4));
	take_limits(fcinfo, 1, 2, table, DEFAULT_CONSUME_RECORDS,
				DEFAULT_CONSUME_TIME_MS, &spec);
	return_slice(fcinfo, table, &spec);
	return (Datum) 0;
}

/*
 * argument_table
 *	  Finds the table whose row type the first argument has.
 */
static PubsubTable *
argument_table(FunctionCallInfo fcinfo, AclMode required)
{
	Oid			typid = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			relid = InvalidOid;

	if (OidIsValid(typid) && get_typtype(typid) == TYPTYPE_COMPOSITE)
		relid = get_typ_typrelid(typid);
	if (!OidIsValid(relid) || !pubsub_is_our_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is not the row type of a pubsub_fdw foreign table",
						OidIsValid(typid) ? format_type_be(typid) : "unknown"),
				 errhint("Write NULL::my_foreign_table as the first argument.")));

	pubsub_check_table_privilege(relid, required);
	return pubsub_table_get(relid, GetUserId());
}

/*
 * pubsub_check_table_privilege
 *	  The current user needs all of these privileges.
 */
void
pubsub_check_table_privilege(Oid relid, AclMode required)
{
	AclResult	result = pg_class_aclmask(relid, GetUserId(), required,
										  ACLMASK_ALL) == required ?
		ACLCHECK_OK : ACLCHECK_NO_PRIV;

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FOREIGN_TABLE, get_rel_name(relid));
}

/*
 * pubsub_check_consume_arguments
 *	  Arguments that only a log understands are an error with a queue.
 */
void
pubsub_check_consume_arguments(const PubsubTable *table, bool has_group_id,
							   bool has_partitions)
{
	if (table->driver->capabilities & PUBSUB_IS_LOG)
		return;
	if (has_group_id || has_partitions)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("argument \"%s\" does not fit foreign table %s",
						has_group_id ? "group_id" : "partitions", table->name),
				 errdetail("Its server \"%s\" is a \"%s\" server.",
						   table->server->servername, table->driver->name)));
}

/*
 * take_limits
 *	  Takes max_records and max_read_time from arguments, else options, else
 *	  defaults.
 */
static void
take_limits(FunctionCallInfo fcinfo, int records_arg, int time_arg,
			const PubsubTable *table, int64 default_records,
			int default_time, PubsubReadSpec *spec)
{
	spec->max_records = table->options.max_records > 0 ?
		table->options.max_records : default_records;
	spec->max_read_time = table->options.max_read_time > 0 ?
		table->options.max_read_time : default_time;
	if (!PG_ARGISNULL(records_arg))
		spec->max_records = pubsub_check_max_records(PG_GETARG_INT64(records_arg));
	if (!PG_ARGISNULL(time_arg))
		spec->max_read_time =
			pubsub_interval_ms("max_read_time", PG_GETARG_INTERVAL_P(time_arg));
}

int64
pubsub_check_max_records(int64 value)
{
	if (value <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"max_records\" must be positive, not " INT64_FORMAT,
						value)));
	return value;
}

/*
 * pubsub_check_group_id
 *	  A group_id argument as a string, if it would do as the table's option.
 */
char *
pubsub_check_group_id(const text *value)
{
	char	   *group_id = text_to_cstring(value);

	if (group_id[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"group_id\" must not be empty")));
	if (strlen(group_id) > PUBSUB_MAX_GROUP_ID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"group_id\" must not be longer than %d bytes",
						PUBSUB_MAX_GROUP_ID)));
	return group_id;
}

/*
 * pubsub_interval_ms
 *	  An interval argument in milliseconds; must be positive.
 *
 * A day has 24 hours and a month 30 days, as in extract(epoch).
 */
int
pubsub_interval_ms(const char *argument, const Interval *interval)
{
	double		ms;

	ms = interval->time / 1000.0 +
		((double) interval->month * DAYS_PER_MONTH + interval->day) *
		(USECS_PER_DAY / 1000.0);
	if (ms < 1 || ms > PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be between 1 millisecond and 24 days",
						argument)));
	return (int) ms;
}

/*
 * partitions_text
 *	  An array argument in the form of the table option.
 */
static char *
partitions_text(ArrayType *array)
{
	StringInfoData buf;
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;

	deconstruct_array(array, INT4OID, sizeof(int32), true, TYPALIGN_INT,
					  &elems, &nulls, &nelems);
	initStringInfo(&buf);
	for (int i = 0; i < nelems; i++)
	{
		if (nulls[i] || DatumGetInt32(elems[i]) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("\"partitions\" must hold partition numbers only")));
		appendStringInfo(&buf, "%s%d", i > 0 ? "," : "",
						 DatumGetInt32(elems[i]));
	}
	if (nelems == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"partitions\" must not be empty")));
	return buf.data;
}

/*
 * return_slice
 *	  Reads the slice into the result of the function.
 */
static void
return_slice(FunctionCallInfo fcinfo, const PubsubTable *table,
			 PubsubReadSpec *spec)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext oldcxt;
	MemoryContext row_cxt;
	Relation	rel;
	TupleDesc	tupdesc;
	Tuplestorestate *result;
	PubsubColumns *columns;
	PubsubDecoder *decoder;
	PubsubReader *reader;
	PubsubMessage *message;
	Datum	   *values;
	bool	   *isnull;
	bool	   *needed;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		!(rsinfo->allowedModes & SFRM_Materialize_Preferred))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s() must be called in FROM",
						get_func_name(fcinfo->flinfo->fn_oid))));

	rel = table_open(table->relid, AccessShareLock);
	columns = pubsub_columns_get(rel, table);
	needed = palloc(columns->ncolumns * sizeof(bool) + 1);
	memset(needed, true, columns->ncolumns);
	decoder = pubsub_decoder_create(table, columns, needed);
	spec->wants = pubsub_columns_wants(columns, table, needed);

	oldcxt = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	tupdesc = CreateTupleDescCopy(RelationGetDescr(rel));
	result = tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0,
								   false, work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = result;
	rsinfo->setDesc = tupdesc;
	MemoryContextSwitchTo(oldcxt);

	values = palloc(tupdesc->natts * sizeof(Datum) + 1);
	isnull = palloc(tupdesc->natts * sizeof(bool) + 1);
	row_cxt = AllocSetContextCreate(CurrentMemoryContext,
									"pubsub_fdw row",
									ALLOCSET_DEFAULT_SIZES);
	reader = pubsub_reader_open(table, spec);
	while ((message = pubsub_reader_next(reader)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (pubsub_reader_nmessages(reader) == 1)
			pubsub_decoder_set_topic(decoder,
									 pubsub_reader_ranges(reader)->topic);
		MemoryContextSwitchTo(row_cxt);
		pubsub_decode(decoder, message, values, isnull);
		tuplestore_putvalues(result, tupdesc, values, isnull);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(row_cxt);
	}
	if (spec->consume)
		pubsub_reader_store_positions(reader);
	pubsub_report_stop(reader);
	pubsub_reader_close(reader);
	MemoryContextDelete(row_cxt);
	table_close(rel, NoLock);
}

/*
 * pubsub_report_stop
 *	  Tells which limit, if any, ended a slice.
 */
void
pubsub_report_stop(const PubsubReader *reader)
{
	switch (pubsub_reader_stop_reason(reader))
	{
		case PUBSUB_STOP_MAX_READ_TIME:
			ereport(NOTICE,
					(errmsg("reading stopped after \"max_read_time\" with " INT64_FORMAT " messages, there may be more",
							pubsub_reader_nmessages(reader))));
			break;
		case PUBSUB_STOP_MAX_RECORDS:
			ereport(DEBUG1,
					(errmsg_internal("reading stopped after \"max_records\" with " INT64_FORMAT " messages",
									 pubsub_reader_nmessages(reader))));
			break;
		default:
			break;
	}
}
