/*-------------------------------------------------------------------------
 *
 * modify.c
 *		INSERT and COPY into a foreign table, also through a partitioned one
 *
 * A row is encoded and handed to pending.c at once; nothing is sent before the
 * transaction commits.  The broker is asked for the topic when the first row
 * comes, so a statement that inserts nothing needs no broker.
 *
 * There is no ExecForeignBatchInsert: rows are batched for the broker at
 * commit, and to collect them before that costs a copy of each and gains
 * nothing.
 *
 * IDENTIFICATION
 *		src/modify.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "compat.h"
#include "pubsub_fdw.h"

/* In es_query_cxt, as ri_FdwState */
typedef struct ModifyState
{
	Oid			userid;			/* who publishes */
	PubsubTarget *target;		/* NULL until the first row */
	PubsubEncoder *encoder;
	MemoryContext row_cxt;		/* reset for each row */
	int64		nmessages;
	int64		nbytes;			/* of data and keys */
} ModifyState;

static void refuse_on_conflict(const ModifyTable *plan, const char *name);
static void begin_modify(EState *estate, ResultRelInfo *rinfo);
static void connect_modify(ModifyState *state, EState *estate, Relation rel);
static void end_modify(ResultRelInfo *rinfo);
static bool options_updatable(List *options, bool updatable);

/*
 * pubsubIsForeignRelUpdatable
 *	  Tells that a table takes INSERT, unless "updatable" says no.
 *
 * This is asked for by views of the information schema, about any table and
 * by any user, so it looks at nothing that could be missing or wrong.
 */
int
pubsubIsForeignRelUpdatable(Relation rel)
{
	ForeignTable *table = GetForeignTable(RelationGetRelid(rel));
	ForeignServer *server = GetForeignServer(table->serverid);
	ForeignDataWrapper *wrapper = GetForeignDataWrapper(server->fdwid);
	bool		updatable = true;

	updatable = options_updatable(wrapper->options, updatable);
	updatable = options_updatable(server->options, updatable);
	updatable = options_updatable(table->options, updatable);
	return updatable ? (1 << CMD_INSERT) : 0;
}

static bool
options_updatable(List *options, bool updatable)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst(lc);

		if (strcmp(def->defname, "updatable") == 0)
			updatable = defGetBoolean(def);
	}
	return updatable;
}

/*
 * pubsubPlanForeignModify
 *	  Refuses what a topic cannot do; there is nothing to plan.
 */
List *
pubsubPlanForeignModify(PlannerInfo *root, ModifyTable *plan,
						Index resultRelation,
						int subplan_index pg_attribute_unused())
{
	const char *name = get_rel_name(planner_rt_fetch(resultRelation,
													 root)->relid);

	if (plan->operation != CMD_INSERT)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 plan->operation == CMD_DELETE ?
				 errmsg("cannot delete from foreign table \"%s\"", name) :
				 errmsg("cannot update foreign table \"%s\"", name),
				 errdetail("Messages of a topic can be added but not changed or deleted.")));
	refuse_on_conflict(plan, name);
	return NIL;
}

static void
refuse_on_conflict(const ModifyTable *plan, const char *name)
{
	if (plan->onConflictAction != ONCONFLICT_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot use ON CONFLICT with foreign table \"%s\"",
						name),
				 errdetail("A topic has no unique keys.")));
}

void
pubsubBeginForeignModify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
						 List *fdw_private pg_attribute_unused(),
						 int subplan_index pg_attribute_unused(), int eflags)
{
	/* ri_FdwState stays NULL */
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	begin_modify(mtstate->ps.state, rinfo);
}

/*
 * pubsubBeginForeignInsert
 *	  As above, for COPY and for a partition that rows are routed to.
 */
void
pubsubBeginForeignInsert(ModifyTableState *mtstate, ResultRelInfo *rinfo)
{
	/* COPY has no plan; that of INSERT was made for the partitioned table */
	if (mtstate->ps.plan != NULL)
		refuse_on_conflict(castNode(ModifyTable, mtstate->ps.plan),
						   RelationGetRelationName(rinfo->ri_RelationDesc));

	begin_modify(mtstate->ps.state, rinfo);
}

static void
begin_modify(EState *estate, ResultRelInfo *rinfo)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(estate->es_query_cxt);
	ModifyState *state = palloc0(sizeof(ModifyState));

	state->userid = ExecGetResultRelCheckAsUser(rinfo, estate);
	state->row_cxt = AllocSetContextCreate(estate->es_query_cxt,
										   "pubsub_fdw row to publish",
										   ALLOCSET_DEFAULT_SIZES);
	rinfo->ri_FdwState = state;
	MemoryContextSwitchTo(oldcxt);
}

/*
 * connect_modify
 *	  At the first row: finds the topic, and how to encode a row for it.
 */
static void
connect_modify(ModifyState *state, EState *estate, Relation rel)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(estate->es_query_cxt);
	PubsubTarget *target = pubsub_pending_target(RelationGetRelid(rel),
												 state->userid);
	const PubsubTable *table = pubsub_target_table(target);

	state->encoder = pubsub_encoder_create(table,
										   pubsub_columns_get(rel, table));
	state->target = target;
	MemoryContextSwitchTo(oldcxt);
}

/*
 * pubsubExecForeignInsert
 *	  Publishes a row.
 *
 * The slot goes back as it came, for RETURNING and AFTER triggers: what the
 * broker will add (offset, message id) is not known before the commit.
 */
TupleTableSlot *
pubsubExecForeignInsert(EState *estate, ResultRelInfo *rinfo,
						TupleTableSlot *slot,
						TupleTableSlot *planSlot pg_attribute_unused())
{
	ModifyState *state = rinfo->ri_FdwState;
	MemoryContext oldcxt;
	PubsubMessage message;

	if (state->target == NULL)
		connect_modify(state, estate, rinfo->ri_RelationDesc);

	oldcxt = MemoryContextSwitchTo(state->row_cxt);
	slot_getallattrs(slot);
	pubsub_encode(state->encoder, slot->tts_values, slot->tts_isnull,
				  &message);
	pubsub_pending_add(state->target, &message);
	state->nmessages++;
	state->nbytes += message.data.len + message.key.len;
	MemoryContextSwitchTo(oldcxt);
	MemoryContextReset(state->row_cxt);

	return slot;
}

void
pubsubEndForeignModify(EState *estate pg_attribute_unused(),
					   ResultRelInfo *rinfo)
{
	end_modify(rinfo);
}

void
pubsubEndForeignInsert(EState *estate pg_attribute_unused(),
					   ResultRelInfo *rinfo)
{
	end_modify(rinfo);
}

static void
end_modify(ResultRelInfo *rinfo)
{
	ModifyState *state = rinfo->ri_FdwState;

	if (state != NULL)
		MemoryContextDelete(state->row_cxt);
	rinfo->ri_FdwState = NULL;
}

/*
 * pubsubExplainForeignModify
 *	  Shows where rows go, and with ANALYZE how many went.  No network.
 */
void
pubsubExplainForeignModify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
						   List *fdw_private pg_attribute_unused(),
						   int subplan_index pg_attribute_unused(),
						   ExplainState *es)
{
	const ModifyState *state = rinfo->ri_FdwState;
	PubsubTable *table;

	table = pubsub_table_get(RelationGetRelid(rinfo->ri_RelationDesc),
							 ExecGetResultRelCheckAsUser(rinfo,
														 mtstate->ps.state));
	if (es->verbose)
		ExplainPropertyText("Broker", table->options.broker, es);
	if (table->options.topic)
		ExplainPropertyText("Topic", table->options.topic, es);
	ExplainPropertyText("Publish", "commit", es);
	if (es->verbose && table->options.batch_size > 0)
		ExplainPropertyInteger("Batch Size", NULL, table->options.batch_size,
							   es);
	if (es->analyze && state != NULL)
	{
		ExplainPropertyInteger("Messages", NULL, state->nmessages, es);
		ExplainPropertyInteger("Bytes", NULL, state->nbytes, es);
	}
}
