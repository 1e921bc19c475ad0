/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Every test of the PostgreSQL version in the project
 *
 * A function whose signature has changed is called by a name of its own that
 * ends in _compat and takes what the extension needs.
 *
 * IDENTIFICATION
 *		src/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_COMPAT_H
#define PUBSUB_COMPAT_H

#if PG_VERSION_NUM < 150000
#error pubsub_fdw needs PostgreSQL 15 or later
#endif

#include "executor/executor.h"
#include "miscadmin.h"

/* 17 added fdw_restrictinfo, 18 disabled_nodes */
#if PG_VERSION_NUM >= 180000
#define create_foreignscan_path_compat(root, rel, rows, startup, total, outer) \
	create_foreignscan_path(root, rel, NULL, rows, 0, startup, total, NIL, \
							outer, NULL, NIL, NIL)
#elif PG_VERSION_NUM >= 170000
#define create_foreignscan_path_compat(root, rel, rows, startup, total, outer) \
	create_foreignscan_path(root, rel, NULL, rows, startup, total, NIL, \
							outer, NULL, NIL, NIL)
#else
#define create_foreignscan_path_compat(root, rel, rows, startup, total, outer) \
	create_foreignscan_path(root, rel, NULL, rows, startup, total, NIL, \
							outer, NULL, NIL)
#endif

#if PG_VERSION_NUM < 160000
/* Which user the privileges of a result relation are checked as. */
static inline Oid
ExecGetResultRelCheckAsUser(ResultRelInfo *rinfo, EState *estate)
{
	RangeTblEntry *rte;

	/* a partition that rows are routed to goes by its root */
	if (rinfo->ri_RangeTableIndex == 0)
		rinfo = rinfo->ri_RootResultRelInfo;
	rte = exec_rt_fetch(rinfo->ri_RangeTableIndex, estate);
	return OidIsValid(rte->checkAsUser) ? rte->checkAsUser : GetUserId();
}
#endif

/*
 * Executing a plan by hand: 16 keeps permissions apart from the range table,
 * 18 can prune relations while it runs.
 */
#if PG_VERSION_NUM >= 160000
#define ExecCheckPermissions_compat(stmt) \
	ExecCheckPermissions((stmt)->rtable, (stmt)->permInfos, true)
#else
#define ExecCheckPermissions_compat(stmt) \
	ExecCheckRTPerms((stmt)->rtable, true)
#endif
#if PG_VERSION_NUM >= 180000
#define ExecInitRangeTable_compat(estate, stmt) \
	ExecInitRangeTable(estate, (stmt)->rtable, (stmt)->permInfos, \
					   bms_copy((stmt)->unprunableRelids))
#elif PG_VERSION_NUM >= 160000
#define ExecInitRangeTable_compat(estate, stmt) \
	ExecInitRangeTable(estate, (stmt)->rtable, (stmt)->permInfos)
#else
#define ExecInitRangeTable_compat(estate, stmt) \
	ExecInitRangeTable(estate, (stmt)->rtable)
#endif

/* 16 added an argument for summarizing indexes */
#if PG_VERSION_NUM >= 160000
#define ExecInsertIndexTuples_compat(rinfo, slot, estate) \
	ExecInsertIndexTuples(rinfo, slot, estate, false, false, NULL, NIL, false)
#else
#define ExecInsertIndexTuples_compat(rinfo, slot, estate) \
	ExecInsertIndexTuples(rinfo, slot, estate, false, false, NULL, NIL)
#endif

/* common/jsonapi.h, utils/jsonfuncs.h; users include these */
#if PG_VERSION_NUM >= 170000
#define makeJsonLexContext_compat(json, len, need_escapes) \
	makeJsonLexContextCstringLen(NULL, json, len, GetDatabaseEncoding(), \
								 need_escapes)
#else
#define makeJsonLexContext_compat(json, len, need_escapes) \
	makeJsonLexContextCstringLen(json, len, GetDatabaseEncoding(), need_escapes)
#endif
#if PG_VERSION_NUM >= 160000
#define json_ereport_error(error, lex) json_errsave_error(error, lex, NULL)
#endif

#endif							/* PUBSUB_COMPAT_H */
