/*-------------------------------------------------------------------------
 *
 * message.h
 *		The currency of ring 2: a message, and a batch of them
 *
 * One struct for a Kafka record and a Pub/Sub message alike, in both
 * directions.  Plain C types only: neither the executor nor a client library
 * shows here.  Strings are pointer and length, never NUL-terminated; a NULL
 * pointer is an absent value and differs from an empty one.
 *
 * IDENTIFICATION
 *		src/message.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_MESSAGE_H
#define PUBSUB_MESSAGE_H

typedef struct PubsubBytes
{
	const char *data;			/* NULL = absent */
	int			len;			/* in bytes */
} PubsubBytes;

/* A Kafka header, or a Pub/Sub attribute (whose value is never absent). */
typedef struct PubsubHeader
{
	PubsubBytes name;
	PubsubBytes value;
} PubsubHeader;

typedef enum PubsubTimestampType
{
	PUBSUB_TIMESTAMP_NONE,
	PUBSUB_TIMESTAMP_CREATE,	/* Kafka CreateTime */
	PUBSUB_TIMESTAMP_LOG_APPEND,	/* Kafka LogAppendTime */
	PUBSUB_TIMESTAMP_PUBLISH	/* Pub/Sub publish time */
} PubsubTimestampType;

/* PubsubMessage.time_ms of a message without a time */
#define PUBSUB_NO_TIME		PG_INT64_MIN

typedef struct PubsubMessage
{
	PubsubBytes data;			/* absent = Kafka tombstone */
	PubsubBytes key;			/* Kafka key, or ordering key */
	PubsubHeader *headers;		/* in the broker's order, duplicates kept */
	int			nheaders;

	/*
	 * Reading: the record's timestamp or the publish time.  Writing: the
	 * record timestamp to send; PUBSUB_NO_TIME = let the broker choose.
	 * Milliseconds since the Unix epoch, any int64 (Kafka stores what it is
	 * given), plus the microseconds (0..999) that Pub/Sub adds.
	 */
	int64		time_ms;
	int32		time_us;
	PubsubTimestampType time_type;

	int32		partition;		/* -1 = none, or let the partitioner choose */
	int64		offset;			/* -1 = none */
	PubsubBytes topic;			/* reading: Kafka only */
	PubsubBytes message_id;		/* reading: Pub/Sub only */
	int32		delivery_attempt;	/* 0 = not known */

	/*
	 * Reading from a broker that acknowledges each message: the driver's
	 * lease on it, to be put into an ack set.  It stays valid until the set
	 * is sent or dropped, that is, longer than the message.  NULL: nothing to
	 * acknowledge.
	 */
	void	   *lease;

	/*
	 * Set by ring 1 when it put the lease into an ack set; release() gives
	 * back those that are not marked.
	 */
	bool		marked;
} PubsubMessage;

/* Why a read ended.  Shown by EXPLAIN ANALYZE and in NOTICEs. */
typedef enum PubsubStopReason
{
	PUBSUB_STOP_NONE,			/* it has not */
	PUBSUB_STOP_END,			/* every range was read to its end */
	PUBSUB_STOP_IDLE,			/* queue: nothing new for two poll timeouts */
	PUBSUB_STOP_MAX_RECORDS,
	PUBSUB_STOP_MAX_READ_TIME
} PubsubStopReason;

/*
 * What one poll brought.  The array and everything its messages point to
 * belong to the source and stay valid until release() of the batch.
 */
typedef struct PubsubBatch
{
	PubsubMessage *messages;
	int			nmessages;

	/*
	 * AGAIN only: the broker answered something since the last poll, if only
	 * "nothing new" or "end of partition".  Restarts the request timeout.
	 */
	bool		progressed;

	/* DONE only: PUBSUB_STOP_END or PUBSUB_STOP_IDLE */
	PubsubStopReason reason;
} PubsubBatch;

#endif							/* PUBSUB_MESSAGE_H */
