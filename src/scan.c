/*-------------------------------------------------------------------------
 *
 * scan.c
 *		Scanning a foreign table: a read without effect on the broker
 *
 * A topic is read as often as the executor asks for.  A subscription cannot be
 * read twice, so its rows are kept for rescans, whatever eflags say: they are
 * a hint, and a correlated sub-select rescans without it.
 *
 * The broker is first asked when the first row is; EXPLAIN never gets there.
 *
 * IDENTIFICATION
 *		src/scan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/value.h"
#include "parser/parsetree.h"
#include "utils/tuplestore.h"

#include "read_func.h"
#include "scan.h"

/* Ranges that EXPLAIN ANALYZE shows without VERBOSE */
#define MAX_RANGES_SHOWN 8

typedef struct PubsubScanState
{
	PubsubTable *table;
	PubsubColumns *columns;
	bool	   *needed;			/* by attnum - 1 */
	int			limit;

	/* the subtransaction that the scan lives and dies with */
	SubTransactionId subid;
	int			nest_level;

	/* from the first row on */
	PubsubDecoder *decoder;
	PubsubReader *reader;		/* NULL when everything was read */
	PubsubReader *last;			/* the same, or the one that was closed */

	/* a queue's rows, for rescans */
	Tuplestorestate *kept;
	TupleTableSlot *kept_slot;
	bool		replaying;		/* rows come from kept, as far as they go */
	bool		at_end;			/* there is no more, in this pass */
	bool		rescans;		/* a topic's reader is to be used again */

	/* for EXPLAIN ANALYZE: the passes before the reader's present one */
	int64		nmessages;
	int64		nbytes;
	PubsubStopReason stop;
} PubsubScanState;

static void open_reader(ForeignScanState *node);
static bool next_row(PubsubScanState *state, TupleTableSlot *slot);
static void close_reader(PubsubScanState *state);
static void end_pass(PubsubScanState *state);
static void explain_ranges(const PubsubRanges *ranges, ExplainState *es);

/*
 * pubsubBeginForeignScan
 *	  Looks up what the scan is about.
 */
void
pubsubBeginForeignScan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	RangeTblEntry *rte = exec_rt_fetch(plan->scan.scanrelid, estate);
	Oid			userid = rte->checkAsUser ? rte->checkAsUser : GetUserId();
	PubsubScanState *state = palloc0(sizeof(PubsubScanState));
	ListCell   *lc;

	node->fdw_state = state;
	state->table = pubsub_table_get(rte->relid, userid);
	state->columns = pubsub_columns_get(node->ss.ss_currentRelation,
										state->table);
	state->needed = palloc0(state->columns->ncolumns * sizeof(bool) + 1);
	foreach(lc, (List *) list_nth(plan->fdw_private, PubsubScanPrivateNeeded))
		state->needed[lfirst_int(lc) - 1] = true;
	state->limit = intVal(list_nth(plan->fdw_private, PubsubScanPrivateLimit));
	state->rescans = (eflags & EXEC_FLAG_REWIND) != 0;
	state->subid = GetCurrentSubTransactionId();
	state->nest_level = GetCurrentTransactionNestLevel();
}

/*
 * open_reader
 *	  Makes the reader and the decoder.
 */
static void
open_reader(ForeignScanState *node)
{
	PubsubScanState *state = node->fdw_state;
	EState	   *estate = node->ss.ps.state;
	const PubsubDriver *driver = state->table->driver;
	const PubsubOptions *options = &state->table->options;
	MemoryContext oldcxt = MemoryContextSwitchTo(estate->es_query_cxt);
	PubsubReadSpec spec;

	if (state->decoder == NULL)
		state->decoder = pubsub_decoder_create(state->table, state->columns,
											   state->needed);
	pubsub_read_spec_init(&spec, state->table);
	spec.wants = pubsub_columns_wants(state->columns, state->table,
									  state->needed);
	spec.limit = state->limit;
	spec.max_records = options->max_records > 0 ?
		options->max_records : driver->default_scan_records;
	spec.max_read_time = options->max_read_time > 0 ?
		options->max_read_time : driver->default_scan_time;
	spec.estate = estate;

	/*
	 * A cursor outlives the subtransaction that fetches its first row, if it
	 * was declared outside.  Where its own was released, nobody tells which
	 * of the outer ones has it now.
	 */
	spec.nest_level = SubTransactionIsActive(state->subid) ?
		state->nest_level : 1;
	state->last = state->reader = pubsub_reader_open(state->table, &spec);

	if (!(driver->capabilities & PUBSUB_CAN_REWIND) && state->kept == NULL)
	{
		state->kept = tuplestore_begin_heap(false, false, work_mem);
		state->kept_slot =
			MakeSingleTupleTableSlot(node->ss.ss_ScanTupleSlot->tts_tupleDescriptor,
									 &TTSOpsMinimalTuple);
	}
	MemoryContextSwitchTo(oldcxt);
}

/*
 * pubsubIterateForeignScan
 *	  Returns the next row in the scan slot, empty at the end.
 *
 * Called in a context that is reset before each row.
 */
TupleTableSlot *
pubsubIterateForeignScan(ForeignScanState *node)
{
	PubsubScanState *state = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	if (state->replaying)
	{
		if (tuplestore_gettupleslot(state->kept, true, false,
									state->kept_slot))
			return ExecCopySlot(slot, state->kept_slot);
		state->replaying = false;
	}
	if (state->at_end)
		return slot;

	if (state->reader == NULL)
		open_reader(node);
	if (!next_row(state, slot))
	{
		pubsub_report_stop(state->reader);

		/* so that a union of many topics reads them one after the other */
		if (state->kept || !state->rescans)
			close_reader(state);
		state->at_end = true;
		return slot;
	}
	if (state->kept)
		tuplestore_puttupleslot(state->kept, slot);
	return slot;
}

static bool
next_row(PubsubScanState *state, TupleTableSlot *slot)
{
	PubsubMessage *message = pubsub_reader_next(state->reader);

	if (message == NULL)
		return false;
	if (pubsub_reader_nmessages(state->reader) == 1)
		pubsub_decoder_set_topic(state->decoder,
								 pubsub_reader_ranges(state->reader)->topic);
	pubsub_decode(state->decoder, message, slot->tts_values,
				  slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
	return true;
}

/*
 * pubsubReScanForeignScan
 *	  Starts again with the first row.
 */
void
pubsubReScanForeignScan(ForeignScanState *node)
{
	PubsubScanState *state = node->fdw_state;

	if (state->kept)
	{
		/* what the former pass did not get to comes after what it got */
		tuplestore_rescan(state->kept);
		state->replaying = true;
	}
	else
	{
		state->at_end = false;
		state->rescans = true;
		if (state->reader)
		{
			end_pass(state);
			pubsub_reader_rewind(state->reader);
		}
	}
}

/*
 * pubsubEndForeignScan
 *	  Ends the scan.  Not called after an error; see xact.c.
 */
void
pubsubEndForeignScan(ForeignScanState *node)
{
	PubsubScanState *state = node->fdw_state;

	if (state == NULL)
		return;
	if (state->reader)
		close_reader(state);
	if (state->kept)
	{
		ExecDropSingleTupleTableSlot(state->kept_slot);
		tuplestore_end(state->kept);
	}
}

static void
close_reader(PubsubScanState *state)
{
	end_pass(state);
	pubsub_reader_close(state->reader);
	state->reader = NULL;
}

/*
 * end_pass
 *	  Adds up what EXPLAIN ANALYZE shows, before the reader forgets it.
 */
static void
end_pass(PubsubScanState *state)
{
	state->nmessages += pubsub_reader_nmessages(state->reader);
	state->nbytes += pubsub_reader_nbytes(state->reader);
	state->stop = pubsub_reader_stop_reason(state->reader);
}

/*
 * pubsubExplainForeignScan
 *	  Shows what is read, and with ANALYZE what was.  No network.
 */
void
pubsubExplainForeignScan(ForeignScanState *node, ExplainState *es)
{
	PubsubScanState *state = node->fdw_state;
	const PubsubOptions *options = &state->table->options;
	bool		is_log = (state->table->driver->capabilities & PUBSUB_IS_LOG) != 0;
	int64		nmessages = state->nmessages;
	int64		nbytes = state->nbytes;
	PubsubStopReason stop = state->stop;

	ExplainPropertyText("Broker", state->table->driver->name, es);
	if (is_log)
	{
		if (options->topic)
			ExplainPropertyText("Topic", options->topic, es);
		ExplainPropertyText("Isolation",
							options->isolation_level == PUBSUB_READ_COMMITTED ?
							"read_committed" : "read_uncommitted", es);
	}
	else
	{
		if (options->subscription)
			ExplainPropertyText("Subscription", options->subscription, es);
		ExplainPropertyText("Mode", "peek", es);
	}

	if (!es->analyze)
		return;
	if (state->reader)
	{
		nmessages += pubsub_reader_nmessages(state->reader);
		nbytes += pubsub_reader_nbytes(state->reader);
		stop = pubsub_reader_stop_reason(state->reader);
	}
	if (state->last && is_log)
		explain_ranges(pubsub_reader_ranges(state->last), es);
	ExplainPropertyInteger("Messages", NULL, nmessages, es);
	ExplainPropertyInteger("Bytes", NULL, nbytes, es);
	if (state->decoder)			/* else it was never executed */
		ExplainPropertyText("Stopped By", pubsub_stop_reason_name(stop), es);
}

/*
 * explain_ranges
 *	  Shows partitions as "partition:[start,end)".
 */
static void
explain_ranges(const PubsubRanges *ranges, ExplainState *es)
{
	StringInfoData buf;

	if (ranges->ranges == NULL)
		return;
	initStringInfo(&buf);
	for (int i = 0; i < ranges->nranges; i++)
	{
		PubsubRange *range = &ranges->ranges[i];

		if (i == MAX_RANGES_SHOWN && !es->verbose)
		{
			appendStringInfo(&buf, " and %d more", ranges->nranges - i);
			break;
		}
		appendStringInfo(&buf, "%s%d:[" INT64_FORMAT "," INT64_FORMAT ")",
						 i > 0 ? " " : "", range->partition, range->start,
						 range->end);
	}
	ExplainPropertyText("Ranges", buf.data, es);
}
