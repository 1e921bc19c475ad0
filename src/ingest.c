/*-------------------------------------------------------------------------
 *
 * ingest.c
 *		pubsub_ingest(): consume into a table, committing after each batch
 *
 * The rows of a batch, the positions after them (a log) and the messages to
 * acknowledge (a queue) belong to one transaction.  So a log is ingested
 * exactly once, and a queue at least once: nothing is acknowledged before the
 * rows are safe.
 *
 * The source stays open from batch to batch, since opening it anew would take
 * longer than many a batch.  What belongs to a transaction - locks, snapshots,
 * open relations - is taken anew for each.  Everything else lives in the
 * memory of the SPI procedure, which survives COMMIT and dies with the CALL,
 * also after an error.
 *
 * Where COMMIT is not possible, in a transaction block or a function, all
 * batches are one transaction.
 *
 * The statement that fills the table is ingest_target.c's part, how rows get
 * there ingest_insert.c's.
 *
 * IDENTIFICATION
 *		src/ingest.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ingest.h"
#include "read_func.h"

/*
 * A batch that fills slowly is committed after this time, so that rows are
 * soon seen, leases given up and old snapshots too.
 */
#define MAX_BATCH_MS 5000

typedef struct Ingest
{
	PubsubTable *table;			/* the source */
	int			batch_size;
	bool		atomic;			/* no COMMIT possible */
	PubsubColumns *columns;
	PubsubDecoder *decoder;
	PubsubReader *reader;
	PubsubInserter *inserter;
} Ingest;

static Oid	relation_argument(FunctionCallInfo fcinfo, int arg,
							  const char *name);
static PubsubConflict conflict_argument(FunctionCallInfo fcinfo, int arg);
static bool can_commit(FunctionCallInfo fcinfo);
static void take_arguments(FunctionCallInfo fcinfo, const PubsubTable *table,
						   PubsubReadSpec *spec);
static Relation open_source(const Ingest *ingest);
static int64 ingest_all(Ingest *ingest);
static int64 ingest_batch(Ingest *ingest);
static Datum result_row(FunctionCallInfo fcinfo, int64 rows_ingested);

PG_FUNCTION_INFO_V1(pubsub_ingest);

/*
 * pubsub_ingest
 *	  (source regclass, target regclass, max_records bigint,
 *	  max_read_time interval, batch_size integer, on_conflict text,
 *	  group_id text, INOUT rows_ingested bigint)
 *
 * Limits that are NULL are those of the table, if it has any.
 */
Datum
pubsub_ingest(PG_FUNCTION_ARGS)
{
	Oid			source = relation_argument(fcinfo, 0, "source");
	Oid			target = relation_argument(fcinfo, 1, "target");
	PubsubConflict conflict = conflict_argument(fcinfo, 5);
	int64		rows_ingested = PG_ARGISNULL(7) ? 0 : PG_GETARG_INT64(7);
	PubsubReadSpec spec;
	Ingest		ingest;
	Relation	rel;
	bool	   *needed;

	if (PG_ARGISNULL(4) || PG_GETARG_INT32(4) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"batch_size\" must be positive")));
	ingest.batch_size = PG_GETARG_INT32(4);
	ingest.atomic = !can_commit(fcinfo);
	if (SPI_connect_ext(ingest.atomic ? 0 :
						SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");

	if (!pubsub_is_our_table(source))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a pubsub_fdw foreign table",
						get_rel_name(source))));
	pubsub_check_table_privilege(source, ACL_SELECT | ACL_DELETE);
	pubsub_check_writable("pubsub_ingest()");
	ingest.table = pubsub_table_get(source, GetUserId());
	take_arguments(fcinfo, ingest.table, &spec);

	rel = table_open(source, AccessShareLock);
	ingest.columns = pubsub_columns_get(rel, ingest.table);
	table_close(rel, NoLock);
	needed = palloc(Max(ingest.columns->ncolumns, 1) * sizeof(bool));
	ingest.inserter =
		pubsub_inserter_create(pubsub_ingest_target_create(target, ingest.table,
														   ingest.columns->tupdesc,
														   conflict, needed));
	ingest.decoder = pubsub_decoder_create(ingest.table, ingest.columns,
										   needed);
	spec.wants = pubsub_columns_wants(ingest.columns, ingest.table, needed);
	ingest.reader = pubsub_reader_open(ingest.table, &spec);

	if (ingest.atomic)
		ereport(NOTICE,
				(errmsg("pubsub_ingest() cannot commit here, all rows will be one transaction"),
				 errhint("Call it outside of transaction blocks, functions and exception handlers.")));
	rows_ingested += ingest_all(&ingest);
	SPI_finish();
	return result_row(fcinfo, rows_ingested);
}

static Oid
relation_argument(FunctionCallInfo fcinfo, int arg, const char *name)
{
	Oid			relid = PG_ARGISNULL(arg) ? InvalidOid : PG_GETARG_OID(arg);

	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"%s\" must not be null", name)));
	if (get_rel_name(relid) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	return relid;
}

static PubsubConflict
conflict_argument(FunctionCallInfo fcinfo, int arg)
{
	char	   *value = PG_ARGISNULL(arg) ? "" :
		text_to_cstring(PG_GETARG_TEXT_PP(arg));

	if (strcmp(value, "error") == 0)
		return PUBSUB_CONFLICT_ERROR;
	if (strcmp(value, "nothing") == 0)
		return PUBSUB_CONFLICT_NOTHING;
	if (strcmp(value, "update") == 0)
		return PUBSUB_CONFLICT_UPDATE;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for \"on_conflict\": \"%s\"", value),
			 errhint("Valid values are \"error\", \"nothing\", and \"update\".")));
}

/*
 * can_commit
 *	  Are we where COMMIT may be used?
 */
static bool
can_commit(FunctionCallInfo fcinfo)
{
	return fcinfo->context && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic &&
		!IsSubTransaction();
}

/*
 * take_arguments
 *	  Takes what the reader has to know.
 */
static void
take_arguments(FunctionCallInfo fcinfo, const PubsubTable *table,
			   PubsubReadSpec *spec)
{
	pubsub_read_spec_init(spec, table);
	spec->consume = true;
	spec->keep = true;
	spec->max_records = PG_ARGISNULL(2) ? table->options.max_records :
		pubsub_check_max_records(PG_GETARG_INT64(2));
	spec->max_read_time = PG_ARGISNULL(3) ? table->options.max_read_time :
		pubsub_interval_ms("max_read_time", PG_GETARG_INTERVAL_P(3));
	pubsub_check_consume_arguments(table, !PG_ARGISNULL(6), false);
	if (!PG_ARGISNULL(6))
		spec->group_id = pubsub_check_group_id(PG_GETARG_TEXT_PP(6));
}

/*
 * ingest_all
 *	  Batch after batch; returns the number of rows.
 */
static int64
ingest_all(Ingest *ingest)
{
	int64		nrows = 0;

	do
	{
		nrows += ingest_batch(ingest);
		if (!ingest->atomic)
		{
			SPI_commit();
			EnsurePortalSnapshotExists();
		}
		pubsub_reader_resume(ingest->reader);
	} while (pubsub_reader_stop_reason(ingest->reader) == PUBSUB_STOP_NONE);

	pubsub_report_stop(ingest->reader);
	pubsub_reader_close(ingest->reader);
	return nrows;
}

/*
 * ingest_batch
 *	  Reads and inserts a batch; returns the number of rows.
 */
static int64
ingest_batch(Ingest *ingest)
{
	Relation	source = open_source(ingest);
	PubsubMessage *message;
	PubsubDeadline deadline;
	TupleTableSlot *slot = pubsub_inserter_slot(ingest->inserter);
	int			nread = 0;
	int64		nrows;

	pubsub_inserter_begin(ingest->inserter);
	pubsub_deadline_set(&deadline, MAX_BATCH_MS);
	while (nread < ingest->batch_size &&
		   (message = pubsub_reader_next(ingest->reader)) != NULL)
	{
		MemoryContext oldcxt;

		CHECK_FOR_INTERRUPTS();
		if (nread++ == 0)
			pubsub_decoder_set_topic(ingest->decoder,
									 pubsub_reader_ranges(ingest->reader)->topic);
		oldcxt = MemoryContextSwitchTo(pubsub_inserter_row_context(ingest->inserter));
		pubsub_decode(ingest->decoder, message, slot->tts_values,
					  slot->tts_isnull);
		pubsub_inserter_put(ingest->inserter);
		MemoryContextSwitchTo(oldcxt);

		/* look at the clock only where reading on may take a while */
		if (pubsub_reader_nbuffered(ingest->reader) == 0 &&
			pubsub_deadline_passed(&deadline))
			break;
	}

	/* before triggers run: what they consume comes after the batch */
	pubsub_reader_store_positions(ingest->reader);
	nrows = pubsub_inserter_end(ingest->inserter);
	table_close(source, NoLock);
	return nrows;
}

/*
 * open_source
 *	  Takes the source for a batch.  We go on only if we still may, and if its
 *	  columns are those that the decoder was made for.
 */
static Relation
open_source(const Ingest *ingest)
{
	Relation	rel = try_table_open(ingest->table->relid, AccessShareLock);

	if (rel == NULL ||
		!equalTupleDescs(RelationGetDescr(rel), ingest->columns->tupdesc))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" was altered or dropped during pubsub_ingest()",
						ingest->table->name),
				 errhint("Call it again.")));
	pubsub_check_table_privilege(ingest->table->relid,
								 ACL_SELECT | ACL_DELETE);
	return rel;
}

/*
 * result_row
 *	  Makes the row of INOUT arguments.
 */
static Datum
result_row(FunctionCallInfo fcinfo, int64 rows_ingested)
{
	TupleDesc	tupdesc;
	Datum		values[1];
	bool		isnull[1] = {false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "pubsub_ingest() must return a row");
	values[0] = Int64GetDatum(rows_ingested);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values,
											 isnull));
}
