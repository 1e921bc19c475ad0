/*-------------------------------------------------------------------------
 *
 * pubsub_fdw.c
 *		Entry point: settings, and the table of the wrapper's functions
 *
 * IDENTIFICATION
 *		src/pubsub_fdw.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"

#include "compat.h"
#include "pubsub_fdw.h"

PG_MODULE_MAGIC;

bool		pubsub_enabled = true;
int			pubsub_connect_timeout = 10000;
int			pubsub_request_timeout = 30000;
int			pubsub_ack_timeout = 5000;
int			pubsub_publish_buffer_size = 65536;

PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(pubsub_fdw_handler);

/*
 * _PG_init
 *	  Defines the settings.
 *
 * Nothing of a client library is started here: under shared_preload_libraries
 * this runs in the postmaster, whose children would inherit it broken.
 */
void
_PG_init(void)
{
	DefineCustomBoolVariable("pubsub_fdw.enabled",
							 "Allows access to brokers.",
							 "Off on clones and staging systems makes every use of a broker an error.",
							 &pubsub_enabled, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pubsub_fdw.connect_timeout",
							"Sets how long to wait for a connection to a broker.",
							"The server option \"connect_timeout\" overrides it.",
							&pubsub_connect_timeout, 10000, 100, 3600000,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pubsub_fdw.request_timeout",
							"Sets how long to wait for a broker that makes no progress.",
							"The server option \"request_timeout\" overrides it.",
							&pubsub_request_timeout, 30000, 100, 3600000,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pubsub_fdw.ack_timeout",
							"Sets how long COMMIT waits until consumed messages are acknowledged.",
							"What is left then comes again.",
							&pubsub_ack_timeout, 5000, 10, 3600000,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pubsub_fdw.publish_buffer_size",
							"Sets how much memory a transaction uses for messages to publish, before they go to a temporary file.",
							NULL,
							&pubsub_publish_buffer_size, 65536, 64, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pubsub_fdw");
}

/*
 * pubsub_fdw_handler
 *	  Returns the wrapper's functions, in the order of their use.
 */
Datum
pubsub_fdw_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	/* SELECT */
	routine->GetForeignRelSize = pubsubGetForeignRelSize;
	routine->GetForeignPaths = pubsubGetForeignPaths;
	routine->GetForeignPlan = pubsubGetForeignPlan;
	routine->BeginForeignScan = pubsubBeginForeignScan;
	routine->IterateForeignScan = pubsubIterateForeignScan;
	routine->ReScanForeignScan = pubsubReScanForeignScan;
	routine->EndForeignScan = pubsubEndForeignScan;
	routine->ExplainForeignScan = pubsubExplainForeignScan;

	/* INSERT, COPY, tuple routing */
	routine->IsForeignRelUpdatable = pubsubIsForeignRelUpdatable;
	routine->PlanForeignModify = pubsubPlanForeignModify;
	routine->BeginForeignModify = pubsubBeginForeignModify;
	routine->ExecForeignInsert = pubsubExecForeignInsert;
	routine->EndForeignModify = pubsubEndForeignModify;
	routine->BeginForeignInsert = pubsubBeginForeignInsert;
	routine->EndForeignInsert = pubsubEndForeignInsert;
	routine->ExplainForeignModify = pubsubExplainForeignModify;

	PG_RETURN_POINTER(routine);
}
