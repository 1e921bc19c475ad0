/*-------------------------------------------------------------------------
 *
 * reader.h
 *		A reader from inside: reader.c, consume.c, ends.c
 *
 * IDENTIFICATION
 *		src/reader.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_READER_H
#define PUBSUB_READER_H

#include "pubsub_fdw.h"

struct PubsubReader
{
	MemoryContext cxt;
	const PubsubTable *table;
	PubsubReadSpec spec;
	char	   *what;			/* 'topic "x"', for messages */
	bool		is_log;
	PubsubSession *session;
	PubsubSource *source;		/* NULL: not open yet, or closed */
	int			fetch_size;

	PubsubRanges ranges;		/* what this read covers */
	PubsubRanges assigned;		/* what the source reads: all of it, or one
								 * range when consuming a log */
	PubsubBatch batch;
	int			next;			/* in batch; batch.nmessages = none left */
	PubsubDeadline read_deadline;	/* max_read_time */
	PubsubDeadline idle_deadline;	/* no progress */
	PubsubStopReason stop;
	int64		nmessages;
	int64		nbytes;

	/* consuming a log */
	PubsubPosition *positions;	/* one per range */
	int		   *order;			/* of ranges, least recently consumed first */
	int			next_in_order;
	int			current;		/* the range being read, or -1 */
	int64		next_offset;	/* in it, after what was handed over */
	int			nbusy;			/* partitions that others have */
};

/* in reader.c */

/* Lets the source read what is in reader->assigned. */
extern void pubsub_reader_assign(PubsubReader *reader);

/* Sets the start of every range as asked for. */
extern void pubsub_reader_apply_start(PubsubReader *reader);

/* Is this start of a range within what exists?  Returns where to start. */
extern int64 pubsub_reader_check_start(PubsubReader *reader, int i,
									   bool is_position, int64 wanted);

/* Asks for an offset of every range of this read. */
extern void pubsub_reader_look_up(PubsubReader *reader, PubsubLookup what,
								  int64 time_ms, int64 *offsets);

/* in consume.c: consuming a log */
extern void pubsub_consume_start(PubsubReader *reader);
extern bool pubsub_consume_next(PubsubReader *reader);
extern void pubsub_consume_leave(PubsubReader *reader);

/* in ends.c */
extern void pubsub_ends_share(PubsubReader *reader, PubsubRanges *all);

#endif							/* PUBSUB_READER_H */
