/*-------------------------------------------------------------------------
 *
 * plan.c
 *		Planning a scan of a foreign table
 *
 * There is one path: the broker is read from the start to the captured end,
 * and every condition is checked here.  Planning never talks to the broker, so
 * the number of rows comes from ANALYZE-like knowledge (pg_class) or is a guess.
 *
 * IDENTIFICATION
 *		src/plan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "scan.h"

/* Rows of a topic that nobody has counted */
#define PUBSUB_DEFAULT_ROWS 1000

/* Costs in units of cpu_tuple_cost: of starting a scan, and of each message */
#define PUBSUB_STARTUP_COST 100.0
#define PUBSUB_MESSAGE_COST 2.0

/*
 * pubsubGetForeignRelSize
 *	  Estimates the number of rows.
 */
void
pubsubGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel,
						Oid foreigntableid)
{
	PlanRowMark *mark = get_plan_rowmark(root->rowMarks, baserel->relid);

	/* the server would let it pass, and lock nothing */
	if (mark != NULL && mark->strength != LCS_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot lock rows in foreign table \"%s\"",
						get_rel_name(foreigntableid)),
				 errdetail("Messages of a topic or a subscription cannot be locked.")));

	if (baserel->tuples <= 0)
		baserel->tuples = PUBSUB_DEFAULT_ROWS;
	set_baserel_size_estimates(root, baserel);
}

/*
 * pubsubGetForeignPaths
 *	  Adds the only path there is.
 *
 * It is not parallel safe: each worker would read everything.
 */
void
pubsubGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel,
					  Oid foreigntableid pg_attribute_unused())
{
	Cost		startup_cost = PUBSUB_STARTUP_COST * cpu_tuple_cost +
		baserel->baserestrictcost.startup;
	Cost		total_cost = startup_cost + baserel->tuples *
		(PUBSUB_MESSAGE_COST * cpu_tuple_cost +
		 baserel->baserestrictcost.per_tuple);

	add_path(baserel, (Path *)
			 create_foreignscan_path_compat(root, baserel, baserel->rows,
											startup_cost, total_cost,
											baserel->lateral_relids));
}

static bool
is_constant(Node *expr)
{
	return expr == NULL || IsA(expr, Const);
}

/*
 * pubsubGetForeignPlan
 *	  Makes the plan node: which columns are needed, and how many rows at most.
 */
ForeignScan *
pubsubGetForeignPlan(PlannerInfo *root, RelOptInfo *baserel,
					 Oid foreigntableid, ForeignPath *best_path pg_attribute_unused(), List *tlist,
					 List *scan_clauses, Plan *outer_plan)
{
	Bitmapset  *attrs_used = NULL;
	List	   *needed = NIL;
	Relation	rel;
	int			natts;
	bool		whole_row;
	ListCell   *lc;
	int			limit = 0;

	scan_clauses = extract_actual_clauses(scan_clauses, false);

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid,
				   &attrs_used);
	foreach(lc, baserel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause,
					   baserel->relid, &attrs_used);

	/* the clauses of the plan may hold more, moved down by lateral joins */
	pull_varattnos((Node *) scan_clauses, baserel->relid, &attrs_used);

	whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber,
							  attrs_used);
	rel = table_open(foreigntableid, NoLock);
	natts = RelationGetNumberOfAttributes(rel);
	table_close(rel, NoLock);
	for (int attnum = 1; attnum <= natts; attnum++)
	{
		if (whole_row ||
			bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber,
						  attrs_used))
			needed = lappend_int(needed, attnum);
	}

	/*
	 * A queue takes no more messages than this, so it must be certain that no
	 * more are needed: not if something between the scan and the LIMIT drops
	 * rows or wants all of them, nor if the number is the planner's guess.
	 */
	if (root->limit_tuples > 0 && root->limit_tuples < INT_MAX &&
		scan_clauses == NIL && root->parse->sortClause == NIL &&
		is_constant(root->parse->limitCount) &&
		is_constant(root->parse->limitOffset) &&
		bms_membership(root->all_baserels) == BMS_SINGLETON)
		limit = (int) root->limit_tuples;

	return make_foreignscan(tlist, scan_clauses, baserel->relid, NIL,
							list_make2(needed, makeInteger(limit)),
							NIL, NIL, outer_plan);
}
