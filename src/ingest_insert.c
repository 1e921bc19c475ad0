/*-------------------------------------------------------------------------
 *
 * ingest_insert.c
 *		Rows of pubsub_ingest() into a table, whatever INSERT takes
 *
 * Every batch is the source of an ordinary statement,
 *
 *		INSERT INTO target (...) SELECT ... FROM pubsub_batch
 *
 * in which pubsub_batch is a tuplestore that only this statement can see.  So
 * triggers, partitions, foreign keys, row security, views and what else there
 * is work as they do for INSERT, with the rights of the caller.
 *
 * A plain table takes a faster way.  The statement is planned all the same,
 * and if the plan says nothing but "compute these expressions and put the
 * result into that table", and nobody else has to hear of a new row, then the
 * rows are put there by the means of COPY.  Since the expressions are the
 * plan's, defaults and conversions are those of INSERT, and an extension that
 * plans INSERT in its own way is not passed over.
 *
 * IDENTIFICATION
 *		src/ingest_insert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "executor/spi.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "ingest.h"

/* As COPY does */
#define MAX_BUFFERED_TUPLES 1000
#define MAX_BUFFERED_BYTES 65535

struct PubsubInserter
{
	PubsubIngestTarget *target;
	TupleTableSlot *slot;
	EphemeralNamedRelation enr;

	/* the current batch */
	MemoryContext batch_cxt;
	MemoryContext row_cxt;
	SPIPlanPtr	plan;
	CachedPlan *cached_plan;	/* NULL: the ordinary way */
	int64		nrows;

	/* the ordinary way */
	Tuplestorestate *store;

	/* the fast way */
	EState	   *estate;
	ResultRelInfo *rinfo;
	ProjectionInfo *projection;
	BulkInsertState bistate;
	CommandId	cid;
	TupleTableSlot *buffer[MAX_BUFFERED_TUPLES];
	int			nbuffered;
	Size		nbytes;
};

static bool is_plain_table(Relation rel);
static bool is_plain_plan(const CachedPlan *cached_plan, Relation rel);
static void begin_fast(PubsubInserter *inserter);
static void put_fast(PubsubInserter *inserter);
static void flush_fast(PubsubInserter *inserter);
static void end_fast(PubsubInserter *inserter);

/*
 * pubsub_inserter_create
 *	  Makes an inserter.
 */
PubsubInserter *
pubsub_inserter_create(PubsubIngestTarget *target)
{
	PubsubInserter *inserter = palloc0(sizeof(PubsubInserter));

	inserter->target = target;
	inserter->slot = MakeSingleTupleTableSlot(target->desc, &TTSOpsVirtual);
	inserter->batch_cxt = AllocSetContextCreate(CurrentMemoryContext,
												"pubsub_fdw ingest batch",
												ALLOCSET_DEFAULT_SIZES);

	inserter->enr = palloc0(sizeof(EphemeralNamedRelationData));
	inserter->enr->md.name = PUBSUB_INGEST_BATCH;
	inserter->enr->md.tupdesc = target->desc;
	inserter->enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	inserter->enr->md.enrtuples = 1000;
	if (SPI_register_relation(inserter->enr) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register \"%s\"", PUBSUB_INGEST_BATCH);
	return inserter;
}

/*
 * pubsub_inserter_begin
 *	  Starts a batch: plans the statement, and decides which way to go.
 */
void
pubsub_inserter_begin(PubsubInserter *inserter)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(inserter->batch_cxt);
	Relation	rel = pubsub_ingest_target_open(inserter->target);

	inserter->nrows = 0;
	inserter->plan = SPI_prepare(pubsub_ingest_target_statement(inserter->target, rel),
								 0, NULL);
	if (inserter->plan == NULL)
		elog(ERROR, "could not prepare the INSERT of pubsub_ingest(): %s",
			 SPI_result_code_string(SPI_result));

	inserter->cached_plan = NULL;
	if (inserter->target->conflict == PUBSUB_CONFLICT_ERROR && is_plain_table(rel))
	{
		CachedPlan *cached_plan = SPI_plan_get_cached_plan(inserter->plan);

		if (is_plain_plan(cached_plan, rel))
			inserter->cached_plan = cached_plan;
		else
			ReleaseCachedPlan(cached_plan, NULL);
	}
	if (inserter->cached_plan)
		begin_fast(inserter);
	else
	{
		inserter->store = tuplestore_begin_heap(false, false, work_mem);
		inserter->enr->reldata = inserter->store;
		inserter->row_cxt = AllocSetContextCreate(inserter->batch_cxt,
												  "pubsub_fdw ingest row",
												  ALLOCSET_DEFAULT_SIZES);
	}
	ereport(DEBUG1,
			(errmsg_internal("ingesting into table \"%s\" by %s",
							 RelationGetRelationName(rel),
							 inserter->cached_plan ? "bulk insertion" : "INSERT")));
	table_close(rel, NoLock);
	MemoryContextSwitchTo(oldcxt);
}

/*
 * is_plain_table
 *	  Is there nothing about this table that INSERT does and bulk insertion
 *	  does not?
 *
 * Foreign keys and deferrable constraints are triggers here, too.
 */
static bool
is_plain_table(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;
	TupleConstr *constr = RelationGetDescr(rel)->constr;

	if (rel->rd_rel->relkind != RELKIND_RELATION ||
		rel->rd_rel->relam != HEAP_TABLE_AM_OID ||
		RELATION_IS_OTHER_TEMP(rel) || IsCatalogRelation(rel))
		return false;
	if (triggers &&
		(triggers->trig_insert_before_statement ||
		 triggers->trig_insert_before_row ||
		 triggers->trig_insert_instead_row ||
		 triggers->trig_insert_after_row ||
		 triggers->trig_insert_after_statement))
		return false;
	return constr == NULL || !constr->has_generated_stored;
}

/*
 * is_plain_plan
 *	  Does the INSERT only compute expressions and put them into the table?
 */
static bool
is_plain_plan(const CachedPlan *cached_plan, Relation rel)
{
	PlannedStmt *stmt;
	ModifyTable *modify;
	Plan	   *scan;
	ListCell   *lc;
	int			natts = 0;

	/* rules can make it several statements */
	if (list_length(cached_plan->stmt_list) != 1)
		return false;
	stmt = linitial_node(PlannedStmt, cached_plan->stmt_list);
	if (stmt->commandType != CMD_INSERT || stmt->subplans != NIL ||
		!IsA(stmt->planTree, ModifyTable))
		return false;

	modify = (ModifyTable *) stmt->planTree;
	if (modify->plan.initPlan != NIL || modify->withCheckOptionLists != NIL ||
		modify->returningLists != NIL ||
		modify->onConflictAction != ONCONFLICT_NONE ||
		list_length(modify->resultRelations) != 1 ||
		rt_fetch(linitial_int(modify->resultRelations),
				 stmt->rtable)->relid != RelationGetRelid(rel))
		return false;

	scan = outerPlan(modify);
	if (!IsA(scan, NamedTuplestoreScan) || scan->qual != NIL ||
		scan->initPlan != NIL)
		return false;
	foreach(lc, scan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->resjunk || entry->resno != ++natts)
			return false;
	}
	return natts == RelationGetNumberOfAttributes(rel);
}

/*
 * begin_fast
 *	  Prepares bulk insertion, in the way of CopyFrom().
 */
static void
begin_fast(PubsubInserter *inserter)
{
	PlannedStmt *stmt = linitial_node(PlannedStmt,
									  inserter->cached_plan->stmt_list);
	ModifyTable *modify = (ModifyTable *) stmt->planTree;
	EState	   *estate;
	MemoryContext oldcxt;
	Relation	rel;

	ExecCheckPermissions_compat(stmt);

	estate = inserter->estate = CreateExecutorState();
	oldcxt = MemoryContextSwitchTo(estate->es_query_cxt);
	ExecInitRangeTable_compat(estate, stmt);
	inserter->rinfo = makeNode(ResultRelInfo);
	ExecInitResultRelation(estate, inserter->rinfo,
						   linitial_int(modify->resultRelations));
	ExecOpenIndices(inserter->rinfo, false);
	rel = inserter->rinfo->ri_RelationDesc;

	inserter->projection =
		ExecBuildProjectionInfo(outerPlan(modify)->targetlist,
								GetPerTupleExprContext(estate),
								ExecAllocTableSlot(&estate->es_tupleTable,
												   RelationGetDescr(rel),
												   &TTSOpsVirtual),
								NULL, inserter->target->desc);
	inserter->bistate = GetBulkInsertState();
	inserter->cid = GetCurrentCommandId(true);
	memset(inserter->buffer, 0, sizeof(inserter->buffer));
	inserter->nbuffered = 0;
	inserter->nbytes = 0;
	inserter->row_cxt = GetPerTupleMemoryContext(estate);
	MemoryContextSwitchTo(oldcxt);
}

TupleTableSlot *
pubsub_inserter_slot(PubsubInserter *inserter)
{
	return inserter->slot;
}

MemoryContext
pubsub_inserter_row_context(PubsubInserter *inserter)
{
	return inserter->row_cxt;
}

/*
 * pubsub_inserter_put
 *	  Takes the row in the slot.
 */
void
pubsub_inserter_put(PubsubInserter *inserter)
{
	TupleTableSlot *slot = inserter->slot;

	inserter->nrows++;
	if (inserter->cached_plan)
		put_fast(inserter);
	else
	{
		if (inserter->target->conflict == PUBSUB_CONFLICT_UPDATE)
		{
			slot->tts_values[inserter->target->desc->natts - 1] =
				Int64GetDatum(inserter->nrows);
			slot->tts_isnull[inserter->target->desc->natts - 1] = false;
		}
		tuplestore_putvalues(inserter->store, inserter->target->desc,
							 slot->tts_values, slot->tts_isnull);
	}
	MemoryContextReset(inserter->row_cxt);
}

static void
put_fast(PubsubInserter *inserter)
{
	EState	   *estate = inserter->estate;
	Relation	rel = inserter->rinfo->ri_RelationDesc;
	TupleTableSlot *row;
	TupleTableSlot *buffered;

	ExecClearTuple(inserter->slot);
	ExecStoreVirtualTuple(inserter->slot);
	GetPerTupleExprContext(estate)->ecxt_scantuple = inserter->slot;
	row = ExecProject(inserter->projection);
	row->tts_tableOid = RelationGetRelid(rel);

	if (RelationGetDescr(rel)->constr)
		ExecConstraints(inserter->rinfo, row, estate);
	if (rel->rd_rel->relispartition)
		ExecPartitionCheck(inserter->rinfo, row, estate, true);

	if (inserter->buffer[inserter->nbuffered] == NULL)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(estate->es_query_cxt);

		inserter->buffer[inserter->nbuffered] =
			table_slot_create(rel, &estate->es_tupleTable);
		MemoryContextSwitchTo(oldcxt);
	}
	buffered = inserter->buffer[inserter->nbuffered++];
	ExecCopySlot(buffered, row);
	buffered->tts_tableOid = RelationGetRelid(rel);
	inserter->nbytes += ExecFetchSlotHeapTuple(buffered, false, NULL)->t_len;

	if (inserter->nbuffered == MAX_BUFFERED_TUPLES ||
		inserter->nbytes >= MAX_BUFFERED_BYTES)
		flush_fast(inserter);
}

/*
 * flush_fast
 *	  Writes the buffered rows to the table and its indexes.
 */
static void
flush_fast(PubsubInserter *inserter)
{
	EState	   *estate = inserter->estate;
	MemoryContext oldcxt;

	oldcxt = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	table_multi_insert(inserter->rinfo->ri_RelationDesc, inserter->buffer,
					   inserter->nbuffered, inserter->cid, 0,
					   inserter->bistate);
	MemoryContextSwitchTo(oldcxt);

	for (int i = 0; i < inserter->nbuffered; i++)
	{
		/* not deferrable, so there is nothing to check again */
		if (inserter->rinfo->ri_NumIndices > 0)
			(void) ExecInsertIndexTuples_compat(inserter->rinfo,
												inserter->buffer[i], estate);
		ExecClearTuple(inserter->buffer[i]);
	}
	inserter->nbuffered = 0;
	inserter->nbytes = 0;
}

static void
end_fast(PubsubInserter *inserter)
{
	EState	   *estate = inserter->estate;

	if (inserter->nbuffered > 0)
		flush_fast(inserter);
	FreeBulkInsertState(inserter->bistate);
	table_finish_bulk_insert(inserter->rinfo->ri_RelationDesc, 0);
	ExecResetTupleTable(estate->es_tupleTable, false);
	ExecCloseResultRelations(estate);
	ExecCloseRangeTableRelations(estate);
	FreeExecutorState(estate);
	ReleaseCachedPlan(inserter->cached_plan, NULL);
	CommandCounterIncrement();
}

/*
 * pubsub_inserter_end
 *	  Ends a batch: when it returns, the rows are in the target.
 */
int64
pubsub_inserter_end(PubsubInserter *inserter)
{
	int64		nrows = inserter->nrows;

	if (inserter->cached_plan)
		end_fast(inserter);
	else
	{
		if (nrows > 0)
		{
			int			result = SPI_execute_plan(inserter->plan, NULL, NULL,
												  false, 0);

			/* an INSTEAD rule may have made it something else */
			if (result < 0)
				elog(ERROR, "could not execute the INSERT of pubsub_ingest(): %s",
					 SPI_result_code_string(result));
			nrows = SPI_processed;
		}
		tuplestore_end(inserter->store);
	}
	SPI_freeplan(inserter->plan);
	MemoryContextReset(inserter->batch_cxt);
	return nrows;
}
