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
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/ruleutils.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "ingest.h"

#define BATCH_NAME "pubsub_batch"

/* As COPY does */
#define MAX_BUFFERED_TUPLES 1000
#define MAX_BUFFERED_BYTES 65535

struct PubsubInserter
{
	MemoryContext cxt;
	Oid			target;
	const char *source_name;
	PubsubConflict conflict;

	/* columns that match, in the order of the target */
	int			ncolumns;
	AttrNumber *source_attnums;
	AttrNumber *target_attnums;

	TupleDesc	desc;			/* of the batch: the source's, and with
								 * CONFLICT_UPDATE the number of the row */
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

static Relation open_target(Oid target);
static void match_columns(PubsubInserter *inserter, Relation rel,
						  TupleDesc source_desc, bool *needed);
static TupleDesc batch_desc(TupleDesc source_desc, bool numbered);
static char *insert_statement(const PubsubInserter *inserter, Relation rel);
static char *source_column(const PubsubInserter *inserter, int i);
static const char *target_column(const PubsubInserter *inserter,
								 Relation rel, int i);
static Bitmapset *primary_key(const PubsubInserter *inserter, Relation rel);
static bool is_key(const PubsubInserter *inserter, const Bitmapset *key,
				   int i);
static void append_key_values(const PubsubInserter *inserter, Relation rel,
							  const Bitmapset *key, StringInfo sql);
static void append_conflict_update(const PubsubInserter *inserter,
								   Relation rel, const Bitmapset *key,
								   StringInfo sql);
static bool is_plain_table(Relation rel);
static bool is_plain_plan(const CachedPlan *cached_plan, Relation rel);
static void begin_fast(PubsubInserter *inserter);
static void put_fast(PubsubInserter *inserter);
static void flush_fast(PubsubInserter *inserter);
static void end_fast(PubsubInserter *inserter);

/*
 * pubsub_inserter_create
 *	  Makes an inserter, and says which columns of the source it needs.
 */
PubsubInserter *
pubsub_inserter_create(Oid target, const PubsubTable *source,
					   TupleDesc source_desc, PubsubConflict conflict,
					   bool *needed)
{
	PubsubInserter *inserter = palloc0(sizeof(PubsubInserter));
	Relation	rel = open_target(target);

	inserter->cxt = CurrentMemoryContext;
	inserter->target = target;
	inserter->source_name = source->name;
	inserter->conflict = conflict;
	match_columns(inserter, rel, source_desc, needed);
	table_close(rel, NoLock);

	inserter->desc = batch_desc(source_desc,
								conflict == PUBSUB_CONFLICT_UPDATE);
	inserter->slot = MakeSingleTupleTableSlot(inserter->desc,
											  &TTSOpsVirtual);
	inserter->batch_cxt = AllocSetContextCreate(CurrentMemoryContext,
												"pubsub_fdw ingest batch",
												ALLOCSET_DEFAULT_SIZES);

	inserter->enr = palloc0(sizeof(EphemeralNamedRelationData));
	inserter->enr->md.name = BATCH_NAME;
	inserter->enr->md.tupdesc = inserter->desc;
	inserter->enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	inserter->enr->md.enrtuples = 1000;
	if (SPI_register_relation(inserter->enr) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register \"%s\"", BATCH_NAME);
	return inserter;
}

/*
 * open_target
 *	  Opens the target with the lock that INSERT takes.
 */
static Relation
open_target(Oid target)
{
	Relation	rel = try_table_open(target, RowExclusiveLock);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", target)));
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_VIEW:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot ingest into relation \"%s\"",
							RelationGetRelationName(rel)),
					 errdetail_relkind_not_supported(rel->rd_rel->relkind)));
	}
	return rel;
}

/*
 * match_columns
 *	  Pairs the columns of source and target by their names.
 *
 * Columns that only the target can compute are left out.
 */
static void
match_columns(PubsubInserter *inserter, Relation rel, TupleDesc source_desc,
			  bool *needed)
{
	TupleDesc	target_desc = RelationGetDescr(rel);

	memset(needed, false, source_desc->natts * sizeof(bool));
	inserter->source_attnums = palloc(target_desc->natts * sizeof(AttrNumber));
	inserter->target_attnums = palloc(target_desc->natts * sizeof(AttrNumber));
	for (int i = 0; i < target_desc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(target_desc, i);

		if (attr->attisdropped || attr->attgenerated != '\0' ||
			attr->attidentity == ATTRIBUTE_IDENTITY_ALWAYS)
			continue;
		for (int j = 0; j < source_desc->natts; j++)
		{
			Form_pg_attribute source_attr = TupleDescAttr(source_desc, j);

			if (source_attr->attisdropped ||
				strcmp(NameStr(attr->attname),
					   NameStr(source_attr->attname)) != 0)
				continue;
			inserter->source_attnums[inserter->ncolumns] = j + 1;
			inserter->target_attnums[inserter->ncolumns] = i + 1;
			inserter->ncolumns++;
			needed[j] = true;
			break;
		}
	}
	if (inserter->ncolumns == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" and foreign table \"%s\" have no column in common",
						RelationGetRelationName(rel), inserter->source_name),
				 errdetail("Columns are matched by name, except for generated columns and those that are GENERATED ALWAYS AS IDENTITY.")));
}

/*
 * batch_desc
 *	  Makes the row type of a batch.
 */
static TupleDesc
batch_desc(TupleDesc source_desc, bool numbered)
{
	int			natts = source_desc->natts;
	TupleDesc	desc = CreateTemplateTupleDesc(natts + (numbered ? 1 : 0));
	char	   *name = "number";

	for (int i = 1; i <= natts; i++)
		TupleDescCopyEntry(desc, i, source_desc, i);
	if (!numbered)
		return desc;

	for (int i = 0; i < natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
		{
			/* not that one then; look through all of them again */
			name = psprintf("%s_", name);
			i = -1;
		}
	}
	TupleDescInitEntry(desc, natts + 1, name, INT8OID, -1, 0);
	return desc;
}

/*
 * pubsub_inserter_begin
 *	  Starts a batch: plans the statement, and decides which way to go.
 */
void
pubsub_inserter_begin(PubsubInserter *inserter)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(inserter->batch_cxt);
	Relation	rel = open_target(inserter->target);

	inserter->nrows = 0;
	inserter->plan = SPI_prepare(insert_statement(inserter, rel), 0, NULL);
	if (inserter->plan == NULL)
		elog(ERROR, "could not prepare the INSERT of pubsub_ingest(): %s",
			 SPI_result_code_string(SPI_result));

	inserter->cached_plan = NULL;
	if (inserter->conflict == PUBSUB_CONFLICT_ERROR && is_plain_table(rel))
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
 * insert_statement
 *	  Writes the INSERT of a batch.
 *
 * The names are those of the moment; the columns stay those that were matched.
 */
static char *
insert_statement(const PubsubInserter *inserter, Relation rel)
{
	Bitmapset  *key = NULL;
	StringInfoData sql;
	StringInfoData columns;

	initStringInfo(&sql);
	initStringInfo(&columns);
	appendStringInfo(&sql, "INSERT INTO %s (",
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												RelationGetRelationName(rel)));
	for (int i = 0; i < inserter->ncolumns; i++)
	{
		const char *separator = i > 0 ? ", " : "";

		appendStringInfo(&sql, "%s%s", separator,
						 target_column(inserter, rel, i));
		appendStringInfo(&columns, "%s%s", separator,
						 source_column(inserter, i));
	}
	appendStringInfo(&sql, ") SELECT %s FROM ", columns.data);

	if (inserter->conflict != PUBSUB_CONFLICT_UPDATE)
	{
		appendStringInfoString(&sql, BATCH_NAME " b");
		if (inserter->conflict == PUBSUB_CONFLICT_NOTHING)
			appendStringInfoString(&sql, " ON CONFLICT DO NOTHING");
		return sql.data;
	}

	/* of rows with the same key the last one counts */
	key = primary_key(inserter, rel);
	appendStringInfoString(&sql, "(SELECT DISTINCT ON (");
	append_key_values(inserter, rel, key, &sql);
	appendStringInfoString(&sql, ") * FROM " BATCH_NAME " b ORDER BY ");
	append_key_values(inserter, rel, key, &sql);
	appendStringInfo(&sql, ", b.%s DESC) b",
					 quote_identifier(NameStr(TupleDescAttr(inserter->desc,
															inserter->desc->natts - 1)->attname)));
	append_conflict_update(inserter, rel, key, &sql);
	return sql.data;
}

/*
 * source_column, target_column
 *	  Names the columns of a pair.
 */
static char *
source_column(const PubsubInserter *inserter, int i)
{
	Form_pg_attribute attr = TupleDescAttr(inserter->desc,
										   inserter->source_attnums[i] - 1);

	return psprintf("b.%s", quote_identifier(NameStr(attr->attname)));
}

static const char *
target_column(const PubsubInserter *inserter, Relation rel, int i)
{
	Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel),
										   inserter->target_attnums[i] - 1);

	if (attr->attisdropped)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("a column of table \"%s\" was dropped during pubsub_ingest()",
						RelationGetRelationName(rel))));
	return quote_identifier(NameStr(attr->attname));
}

/*
 * primary_key
 *	  Finds the columns of the target's primary key; all must have a match.
 */
static Bitmapset *
primary_key(const PubsubInserter *inserter, Relation rel)
{
	Bitmapset  *key = RelationGetIndexAttrBitmap(rel,
												 INDEX_ATTR_BITMAP_PRIMARY_KEY);
	Bitmapset  *unmatched = bms_copy(key);

	if (bms_is_empty(key))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("table \"%s\" has no primary key",
						RelationGetRelationName(rel)),
				 errdetail("\"on_conflict\" is 'update'.")));
	for (int i = 0; i < inserter->ncolumns; i++)
		unmatched = bms_del_member(unmatched,
								   inserter->target_attnums[i] - FirstLowInvalidHeapAttributeNumber);
	if (!bms_is_empty(unmatched))
	{
		AttrNumber	attnum = bms_next_member(unmatched, -1) +
		FirstLowInvalidHeapAttributeNumber;

		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("column \"%s\" of the primary key of table \"%s\" has no match in foreign table \"%s\"",
						get_attname(RelationGetRelid(rel), attnum, false),
						RelationGetRelationName(rel), inserter->source_name),
				 errdetail("\"on_conflict\" is 'update'.")));
	}
	return key;
}

static bool
is_key(const PubsubInserter *inserter, const Bitmapset *key, int i)
{
	return bms_is_member(inserter->target_attnums[i] - FirstLowInvalidHeapAttributeNumber,
						 key);
}

/*
 * append_key_values
 *	  Appends the key of a row of the batch, as the target will compare it.
 *
 * Text is not cut: a value that is too long must stay an error.
 */
static void
append_key_values(const PubsubInserter *inserter, Relation rel,
				  const Bitmapset *key, StringInfo sql)
{
	const char *separator = "";

	for (int i = 0; i < inserter->ncolumns; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel),
											   inserter->target_attnums[i] - 1);
		int32		typmod = attr->atttypmod;
		char		category;
		bool		preferred;

		if (!is_key(inserter, key, i))
			continue;
		get_type_category_preferred(attr->atttypid, &category, &preferred);
		if (category == TYPCATEGORY_STRING || category == TYPCATEGORY_BITSTRING)
			typmod = -1;
		appendStringInfo(sql, "%sCAST(%s AS %s)", separator,
						 source_column(inserter, i),
						 format_type_extended(attr->atttypid, typmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
											  FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(attr->attcollation))
			appendStringInfo(sql, " COLLATE %s",
							 generate_collation_name(attr->attcollation));
		separator = ", ";
	}
}

static void
append_conflict_update(const PubsubInserter *inserter, Relation rel,
					   const Bitmapset *key, StringInfo sql)
{
	const char *separator = " ON CONFLICT (";

	for (int i = 0; i < inserter->ncolumns; i++)
	{
		if (!is_key(inserter, key, i))
			continue;
		appendStringInfo(sql, "%s%s", separator,
						 target_column(inserter, rel, i));
		separator = ", ";
	}

	separator = ") DO UPDATE SET ";
	for (int i = 0; i < inserter->ncolumns; i++)
	{
		const char *name = target_column(inserter, rel, i);

		if (is_key(inserter, key, i))
			continue;
		appendStringInfo(sql, "%s%s = excluded.%s", separator, name, name);
		separator = ", ";
	}
	if (separator[0] == ')')
		appendStringInfoString(sql, ") DO NOTHING");
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
								NULL, inserter->desc);
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
		if (inserter->conflict == PUBSUB_CONFLICT_UPDATE)
		{
			slot->tts_values[inserter->desc->natts - 1] =
				Int64GetDatum(inserter->nrows);
			slot->tts_isnull[inserter->desc->natts - 1] = false;
		}
		tuplestore_putvalues(inserter->store, inserter->desc,
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
