/*-------------------------------------------------------------------------
 *
 * kafka_source.h
 *		What kafka_source.c and kafka_offsets.c share
 *
 * IDENTIFICATION
 *		src/kafka/kafka_source.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef KAFKA_SOURCE_H
#define KAFKA_SOURCE_H

#include "portability/instr_time.h"

#include "kafka.h"

/* ListOffsets takes these as times */
#define KAFKA_TIME_EARLIEST	(-2)
#define KAFKA_TIME_LATEST		(-1)

typedef enum ResolveStep
{
	RESOLVE_CONNECT,
	RESOLVE_METADATA,
	RESOLVE_LOW,
	RESOLVE_HIGH
} ResolveStep;

typedef struct KafkaSource
{
	PubsubSource base;
	rd_kafka_conf_t *conf;		/* until the handle is opened */
	KafkaHandle *handle;		/* NULL before resolve() */
	KafkaHandle *uncommitted;	/* to look past the last stable offset */
	char	   *topic;
	int			topic_len;
	uint32		wants;
	bool		read_committed;

	/* resolve() */
	ResolveStep step;
	int			npartitions;
	PubsubRange *ranges;
	int64	   *offsets;

	/* assign(): what is being read, by partition; NULL = not, or done */
	PubsubRange **reading;
	int			nreading;

	/* poll() */
	rd_kafka_message_t **held;	/* of the batch that is out */
	int			nheld;
	int			size;			/* of held and messages */
	PubsubMessage *messages;
	PubsubHeader *headers;
	int			headers_size;
	bool		failed;			/* failure is to be reported by the next poll */
	PubsubError failure;

	/* prefetching: limits of the library's queue, and what we know of it */
	int64		max_messages;
	int64		max_bytes;
	bool		was_full;		/* seen so since the last wake-up */
	int64		messages_since; /* taken out since it was last empty */
	int64		bytes_since;
	instr_time	woken_at;
} KafkaSource;

/* in kafka_offsets.c */
extern PubsubStatus kafka_source_resolve(PubsubSource *base, int slice_ms,
										 PubsubRanges *ranges,
										 PubsubError *error);
extern PubsubStatus kafka_source_lookup(PubsubSource *base, int slice_ms,
										PubsubLookup what, int64 time_ms,
										const PubsubRanges *ranges,
										int64 *offsets, PubsubError *error);

#endif							/* KAFKA_SOURCE_H */
