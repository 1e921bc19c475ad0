/*-------------------------------------------------------------------------
 *
 * ingest.h
 *		What ingest_insert.c does for ingest.c: rows into a table
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

typedef enum PubsubConflict
{
	PUBSUB_CONFLICT_ERROR,
	PUBSUB_CONFLICT_NOTHING,
	PUBSUB_CONFLICT_UPDATE
} PubsubConflict;

typedef struct PubsubInserter PubsubInserter;

/*
 * Makes an inserter for rows of the source, in the current context, which must
 * be that of an SPI procedure and live as long.  Matches the columns; "needed"
 * is set for those of the source that have a match.
 */
extern PubsubInserter *pubsub_inserter_create(Oid target,
											  const PubsubTable *source,
											  TupleDesc source_desc,
											  PubsubConflict conflict,
											  bool *needed);

/*
 * A batch of rows: begin, any number of puts, end.  All in one transaction,
 * but each batch may have a transaction of its own.  The values and flags of
 * the next row go to slot; put copies them.  Memory of a row should come from
 * row_cxt, which put resets.  end returns how many rows were inserted or
 * updated.
 */
extern void pubsub_inserter_begin(PubsubInserter *inserter);
extern TupleTableSlot *pubsub_inserter_slot(PubsubInserter *inserter);
extern MemoryContext pubsub_inserter_row_context(PubsubInserter *inserter);
extern void pubsub_inserter_put(PubsubInserter *inserter);
extern int64 pubsub_inserter_end(PubsubInserter *inserter);

#endif							/* PUBSUB_INGEST_H */
