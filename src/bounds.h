/*-------------------------------------------------------------------------
 *
 * bounds.h
 *		What bounds.c does for reader.c
 *
 * IDENTIFICATION
 *		src/bounds.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_BOUNDS_H
#define PUBSUB_BOUNDS_H

#include "pubsub_fdw.h"

/* "0,3-5", as intervals */
typedef struct PubsubPartitionSet
{
	int			nintervals;
	int32	   *first;
	int32	   *last;
} PubsubPartitionSet;

typedef enum PubsubOffsetKind
{
	PUBSUB_OFFSET_EARLIEST,
	PUBSUB_OFFSET_LATEST,		/* minus value */
	PUBSUB_OFFSET_NUMBER		/* value */
} PubsubOffsetKind;

typedef struct PubsubOffset
{
	int32		partition;
	PubsubOffsetKind kind;
	int64		value;
} PubsubOffset;

/* A start_offsets or stop_offsets value */
typedef struct PubsubOffsetSpec
{
	PubsubOffset fallback;		/* for partitions that are not named */
	int			noffsets;
	PubsubOffset *offsets;
} PubsubOffsetSpec;

extern PubsubPartitionSet *pubsub_bounds_parse_partitions(const char *option,
														  const char *value);
extern PubsubOffsetSpec *pubsub_bounds_parse_offsets(const char *option,
													 const char *value,
													 const char *topic,
													 PubsubOffsetKind fallback);

/*
 * The ranges of the set, in new memory; NULL = all.  Partitions that do not
 * exist are an error.
 */
extern void pubsub_bounds_select(const PubsubTable *table,
								 const PubsubPartitionSet *set,
								 const PubsubRanges *all,
								 PubsubRanges *chosen);

/* Sets start or end of the ranges from a spec. */
extern void pubsub_bounds_apply_start(const PubsubTable *table,
									  const PubsubOffsetSpec *spec,
									  PubsubRanges *ranges);
extern void pubsub_bounds_apply_stop(const PubsubTable *table,
									 const PubsubOffsetSpec *spec,
									 PubsubRanges *ranges);

/*
 * Sets start (or end) of the ranges from the answers to a time look-up.
 */
extern void pubsub_bounds_apply_times(const PubsubTable *table, bool start,
									  TimestampTz time, const int64 *offsets,
									  PubsubRanges *ranges);

/* A timestamp as Kafka's milliseconds, rounded up, at least 0. */
extern int64 pubsub_bounds_time_ms(TimestampTz time);

/*
 * A start that is not within what exists: an error, or a NOTICE and the
 * nearest that does, as on_data_loss says.
 */
extern int64 pubsub_bounds_check_loss(const PubsubTable *table,
									  const char *what, int32 partition,
									  int64 wanted, int64 low, int64 high,
									  int64 beyond);

#endif							/* PUBSUB_BOUNDS_H */
