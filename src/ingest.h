/*-------------------------------------------------------------------------
 *
 * ingest.h
 *		What ingest_target.c and ingest_insert.c do for ingest.c
 *
 * IDENTIFICATION
 *		src/ingest.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_INGEST_H
#define PUBSUB_INGEST_H

#include "executor/tuptable.h"

#include "pubsub_fdw.h"

/* What the INSERT statement selects from */
#define PUBSUB_INGEST_BATCH "pubsub_batch"

typedef enum PubsubConflict
{
	PUBSUB_CONFLICT_ERROR,
	PUBSUB_CONFLICT_NOTHING,
	PUBSUB_CONFLICT_UPDATE
} PubsubConflict;

typedef struct PubsubIngestTarget
{
	Oid			relid;
	const char *source_name;	/* for messages */
	PubsubConflict conflict;

	/* columns that match, in the order of the target */
	int			ncolumns;
	AttrNumber *source_attnums;
	AttrNumber *target_attnums;

	TupleDesc	desc;			/* of a batch: the source's columns, and with
								 * CONFLICT_UPDATE the number of the row */
} PubsubIngestTarget;

typedef struct PubsubInserter PubsubInserter;

/* in ingest_target.c */

/*
 * Matches the columns; "needed" is set for those of the source that have a
 * match.  Keeps the lock.
 */
extern PubsubIngestTarget *pubsub_ingest_target_create(Oid relid,
													   const PubsubTable *source,
													   TupleDesc source_desc,
													   PubsubConflict conflict,
													   bool *needed);
extern Relation pubsub_ingest_target_open(const PubsubIngestTarget *target);

/* The INSERT of a batch; rel is the target, open. */
extern char *pubsub_ingest_target_statement(const PubsubIngestTarget *target,
											Relation rel);

/* in ingest_insert.c */

/*
 * Makes an inserter in the current context, which must be that of an SPI
 * procedure and live as long.
 */
extern PubsubInserter *pubsub_inserter_create(PubsubIngestTarget *target);

/*
 * A batch of rows: begin, any number of puts, end.  All in one transaction,
 * but each batch may have a transaction of its own.  The values and flags of
 * the next row go to slot; put copies them.  Memory of a row should come from
 * row_context, which put resets.  end returns how many rows were inserted or
 * updated.
 */
extern void pubsub_inserter_begin(PubsubInserter *inserter);
extern TupleTableSlot *pubsub_inserter_slot(PubsubInserter *inserter);
extern MemoryContext pubsub_inserter_row_context(PubsubInserter *inserter);
extern void pubsub_inserter_put(PubsubInserter *inserter);
extern int64 pubsub_inserter_end(PubsubInserter *inserter);

#endif							/* PUBSUB_INGEST_H */
