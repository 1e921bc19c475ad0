/*-------------------------------------------------------------------------
 *
 * driver.h
 *		The contract between ring 1 (PostgreSQL) and a driver (a broker)
 *
 * A driver is a table of functions for one kind of broker: "kafka", "pubsub",
 * and "dummy" in the tests.  Ring 1 knows nothing else about it.
 *
 * Rules that hold for every function here:
 *	- It is called by the backend's main thread only.
 *	- It never throws: no ereport, no palloc.  Driver memory comes from malloc
 *	  and is reachable from the session from the moment it exists, so that an
 *	  error anywhere in the backend leaves nothing behind.
 *	- It does not wait.  The functions that take slice_ms are "steps": they may
 *	  block in the library for at most that long and return PUBSUB_AGAIN until
 *	  they are through.  All other waiting is ring 1's: on its latch and on
 *	  event_fd().
 *	- Argument pointers are not NULL unless said so.  Results belong to the
 *	  source or sink they come from.
 *	- PUBSUB_FAILED fills in *error.  PUBSUB_AGAIN may: that is the "soft
 *	  cause", the latest word of the library on why there is no progress, and
 *	  ring 1 raises it when its deadline passes.  A cause that will not go away
 *	  by waiting (wrong password, TLS mismatch) the driver fails with by itself.
 *	- Options and specs are valid during the call only, session->options as
 *	  long as the session.
 *
 * Retries of the transport belong to the driver, ring 1 never retries.
 *
 * IDENTIFICATION
 *		src/driver.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_DRIVER_H
#define PUBSUB_DRIVER_H

#include "lib/ilist.h"
#include "message.h"
#include "options.h"

typedef enum PubsubStatus
{
	PUBSUB_OK,					/* did what was asked */
	PUBSUB_AGAIN,				/* not yet: wait or drain, then call again */
	PUBSUB_DONE,				/* source: there will be no more.  sink:
								 * nothing is in flight */
	PUBSUB_FAILED				/* *error says why */
} PubsubStatus;

typedef enum PubsubErrorKind
{
	PUBSUB_ERROR_NONE,
	PUBSUB_ERROR_CONNECT,		/* could not reach the broker */
	PUBSUB_ERROR_LOST,			/* connection lost, or no progress */
	PUBSUB_ERROR_AUTH,			/* who we are was refused */
	PUBSUB_ERROR_PERMISSION,	/* what we want was refused */
	PUBSUB_ERROR_NOT_FOUND,		/* topic, partition, subscription */
	PUBSUB_ERROR_EXISTS,		/* topic, subscription */
	PUBSUB_ERROR_INVALID,		/* the broker or we refuse a value */
	PUBSUB_ERROR_TOO_LARGE,		/* message or attribute over a limit */
	PUBSUB_ERROR_THROTTLED,
	PUBSUB_ERROR_DATA_LOSS,		/* offsets that should exist do not */
	PUBSUB_ERROR_MEMORY,
	PUBSUB_ERROR_OTHER
} PubsubErrorKind;

/* Fixed size: usable where nothing may be allocated. */
typedef struct PubsubError
{
	PubsubErrorKind kind;

	/*
	 * Sink: which message failed, counted from 0 at the first put; else -1.
	 */
	int64		message_no;

	/* The thing at fault ('topic "x"', 'partition 7 of topic "x"'), or "" */
	char		object[320];

	/* The library's or the broker's words, for errdetail; never a secret */
	char		detail[512];

	/* What to do about it, a sentence, or "" */
	char		hint[320];
} PubsubError;

typedef struct PubsubDriver PubsubDriver;
typedef struct PubsubSourceRoutine PubsubSourceRoutine;
typedef struct PubsubSinkRoutine PubsubSinkRoutine;
typedef struct PubsubAdminRoutine PubsubAdminRoutine;

/*
 * One set of credentials at one server.  Made by session.c, which also keeps
 * the lists; state is the driver's.
 */
typedef struct PubsubSession
{
	const PubsubDriver *driver;
	const PubsubOptions *options;	/* of the server and the user mapping */
	const char *server_name;	/* for messages */
	dlist_head	sources;		/* open PubsubSources */
	dlist_head	sinks;			/* open PubsubSinks */
	void	   *state;			/* from attach() to detach() */
} PubsubSession;

/* Drivers embed this as the first member of their own struct. */
typedef struct PubsubSource
{
	const PubsubSourceRoutine *ops;
	PubsubSession *session;

	/* ring 1's */
	dlist_node	node;			/* in session->sources */
	int			nest_level;		/* transaction nesting level that opened it */
	bool		keep;			/* survives COMMIT (CALL pubsub_ingest) */
	PubsubBatch *held;			/* batch not released yet, for the asserts */
} PubsubSource;

typedef struct PubsubSink
{
	const PubsubSinkRoutine *ops;
	PubsubSession *session;

	/* kept by the driver.h wrappers and by the driver, respectively */
	int64		nput;			/* messages accepted by put */
	int64		ndelivered;		/* of those, confirmed by the broker */

	/* ring 1's */
	dlist_node	node;			/* in session->sinks */
} PubsubSink;

/* What of a message the reader will look at; the rest may stay empty. */
#define PUBSUB_WANT_DATA		0x01
#define PUBSUB_WANT_KEY			0x02
#define PUBSUB_WANT_HEADERS		0x04
#define PUBSUB_WANT_TIME		0x08
/* partition, offset, topic, message id and lease are always filled in */

typedef struct PubsubSourceSpec
{
	const PubsubOptions *options;	/* of the table, merged */
	uint32		wants;			/* PUBSUB_WANT_* */

	/*
	 * The reader consumes: leases are held and renewed until acked.  False =
	 * peek: everything is given back at finish() or close().
	 */
	bool		consume;

	/* No more than this many messages will be taken; 0 = not known. */
	int64		limit;
} PubsubSourceSpec;

/*
 * A stretch of a partition.  A queue has a single one, without offsets, whose
 * partition is -1.
 */
typedef struct PubsubRange
{
	int32		partition;
	int64		low;			/* first offset that exists */
	int64		high;			/* one past the last that may be read: the
								 * last stable offset under read_committed */
	int64		start;			/* set by ring 1: first offset to read */
	int64		end;			/* set by ring 1: one past the last */

	/*
	 * Set by poll: every message below end has been handed over, in this
	 * batch or an earlier one.  Tells a reached end from trailing control
	 * records or compaction holes, which no message shows.
	 */
	bool		done;
} PubsubRange;

typedef struct PubsubRanges
{
	int			nranges;
	PubsubRange *ranges;		/* ascending by partition */
	char	   *topic;			/* of a queue: its topic if known; ring 1
								 * frees neither */
} PubsubRanges;

/* An offset look-up for all ranges at once; the answer goes to offsets[]. */
typedef enum PubsubLookup
{
	PUBSUB_LOOKUP_TIME,			/* first offset with a timestamp >= time_ms;
								 * -1 = there is none */
	PUBSUB_LOOKUP_HIGH_WATERMARK	/* the end, open transactions included */
} PubsubLookup;

struct PubsubSourceRoutine
{
	/*
	 * Allocates a source.  No I/O.  NULL = failed.
	 */
	PubsubSource *(*open) (PubsubSession *session, const PubsubSourceSpec *spec,
						   PubsubError *error);

	/*
	 * Readable when poll() may have something to do, or the library wants to
	 * be called.  -1 = none: ring 1 then polls every 10 ms.
	 */
	int			(*event_fd) (PubsubSource *source);

	/*
	 * A step: connects, and learns what there is.  OK: *ranges is set to an
	 * array of the source's with partition, low and high of every partition
	 * of the topic (start = low, end = high, done = false).  It stays valid
	 * until the next resolve or close.  A topic, partition or subscription
	 * that does not exist is PUBSUB_ERROR_NOT_FOUND.
	 */
	PubsubStatus (*resolve) (PubsubSource *source, int slice_ms,
							 PubsubRanges *ranges, PubsubError *error);

	/*
	 * A step: one look-up for every range.  NULL for a queue.
	 */
	PubsubStatus (*lookup) (PubsubSource *source, int slice_ms,
							PubsubLookup what, int64 time_ms,
							const PubsubRanges *ranges, int64 *offsets,
							PubsubError *error);

	/*
	 * Starts to read these ranges, each from start to before end.  The caller
	 * keeps *ranges and its array alive and unmoved until the next assign or
	 * close.  A range with start >= end is done at once.  Called again: the
	 * former reading stops, what it had fetched is dropped (only with
	 * PUBSUB_CAN_REWIND; a queue is assigned once).  No batch is held.
	 */
	PubsubStatus (*assign) (PubsubSource *source, PubsubRanges *ranges,
							PubsubError *error);

	/*
	 * Fills the batch with 1 to max_messages messages.  OK: some.  AGAIN:
	 * none now, wait on event_fd.  DONE: none, and there will be none; why is
	 * in the batch.  The order inside a partition is kept; no message outside
	 * its range is returned.  A start that does not exist any more is
	 * PUBSUB_ERROR_DATA_LOSS.
	 */
	PubsubStatus (*poll) (PubsubSource *source, int max_messages,
						  PubsubBatch *batch, PubsubError *error);

	/*
	 * Gives the batch back.  Its messages that are not marked become
	 * available to other readers as soon as the broker allows (in a peek only
	 * at finish or close, else the next pull would bring them again).
	 */
	void		(*release) (PubsubSource *source, PubsubBatch *batch);

	/*
	 * A step: the orderly end of reading.  OK when everything that was
	 * fetched and not marked has been given back and the broker has confirmed
	 * it.  NULL = nothing to do.
	 */
	PubsubStatus (*finish) (PubsubSource *source, int slice_ms,
							PubsubError *error);

	/*
	 * Frees the source, with or without finish(), also in abort and at exit.
	 * Does not block; what must still be given back is left to the session.
	 */
	void		(*close) (PubsubSource *source);

	/*
	 * Acknowledgement of leases; all NULL where the broker keeps no track of
	 * readers.  The arrays belong to ring 1.
	 *
	 * prepare_acks, at PRE_COMMIT: builds the requests, in malloc memory.
	 * May fail.  nexpired is set to the number of leases already known as
	 * lost.
	 *
	 * send_acks, a step at COMMIT: must neither fail for lack of memory of
	 * its own nor touch PostgreSQL.  Called until it is not AGAIN.  FAILED:
	 * some are not acknowledged, *error says why and message_no how many;
	 * they come again.  The leases are invalid after OK, DONE or FAILED.
	 *
	 * abandon_acks, when COMMIT can wait no longer: the session goes on
	 * sending in the background if it can.
	 *
	 * drop_acks, at abort, interrupts held: gives the messages back, in the
	 * background.  Legal at any time instead of prepare or send.
	 */
	PubsubStatus (*prepare_acks) (PubsubSession *session, void **leases,
								  int nleases, int64 *nexpired,
								  PubsubError *error);
	PubsubStatus (*send_acks) (PubsubSession *session, int slice_ms,
							   PubsubError *error);
	void		(*abandon_acks) (PubsubSession *session);
	void		(*drop_acks) (PubsubSession *session, void **leases,
							  int nleases);
};

typedef struct PubsubSinkSpec
{
	const PubsubOptions *options;	/* of the table, merged */
	const char *topic;			/* Pub/Sub: full path */
} PubsubSinkSpec;

struct PubsubSinkRoutine
{
	/* Allocates a sink.  No I/O.  NULL = failed. */
	PubsubSink *(*open) (PubsubSession *session, const PubsubSinkSpec *spec,
						 PubsubError *error);

	/* As for sources. */
	int			(*event_fd) (PubsubSink *sink);

	/*
	 * A step: connects, and makes sure that the topic exists.  Called before
	 * the first check().
	 */
	PubsubStatus (*ready) (PubsubSink *sink, int slice_ms, PubsubError *error);

	/*
	 * Would the broker take this message?  Sizes and counts in bytes, names,
	 * the partition's existence.  No I/O.  OK or FAILED (INVALID, TOO_LARGE,
	 * NOT_FOUND).
	 */
	PubsubStatus (*check) (PubsubSink *sink, const PubsubMessage *message,
						   PubsubError *error);

	/*
	 * Queues a message, a copy of it.  AGAIN = queue full: drain first.  The
	 * order per key is kept.  FAILED = this message or an earlier one cannot
	 * be sent.
	 */
	PubsubStatus (*put) (PubsubSink *sink, const PubsubMessage *message,
						 PubsubError *error);

	/*
	 * Makes progress; "flush": no more put follows soon, do not linger.  DONE
	 * iff ndelivered == nput.  AGAIN: wait on event_fd.  One failed delivery
	 * fails the sink, for good.
	 */
	PubsubStatus (*drain) (PubsubSink *sink, bool flush, PubsubError *error);

	/*
	 * Abort: forget what is queued, do not wait for what is in flight.
	 */
	void		(*abandon) (PubsubSink *sink);

	/* Frees the sink.  After DONE or abandon.  Does not block. */
	void		(*close) (PubsubSink *sink);
};

typedef enum PubsubAdminOp
{
	PUBSUB_ADMIN_CREATE_TOPIC,
	PUBSUB_ADMIN_DROP_TOPIC,
	PUBSUB_ADMIN_CREATE_SUBSCRIPTION,
	PUBSUB_ADMIN_DROP_SUBSCRIPTION
} PubsubAdminOp;

typedef struct PubsubAdminRequest
{
	PubsubAdminOp op;
	const char *topic;			/* Pub/Sub: full path */
	const char *subscription;	/* full path */
	int			partitions;		/* -1 = the broker's default */
	int			replication_factor; /* -1 = the broker's default */
	int			ack_deadline;	/* seconds */
	bool		ordering;		/* subscription with message ordering */
	const PubsubProperty *config;	/* topic configuration */
	int			nconfig;
} PubsubAdminRequest;

/* One administrative call at a time per session. */
struct PubsubAdminRoutine
{
	/* Remembers the request.  None is under way.  OK or FAILED. */
	PubsubStatus (*begin) (PubsubSession *session,
						   const PubsubAdminRequest *request,
						   PubsubError *error);

	/* A step.  FAILED with EXISTS or NOT_FOUND is the caller's to judge. */
	PubsubStatus (*step) (PubsubSession *session, int slice_ms,
						  PubsubError *error);

	/* After OK, FAILED, or in the middle (abort).  Idempotent. */
	void		(*end) (PubsubSession *session);
};

/* PubsubDriver.capabilities */
#define PUBSUB_CAN_REWIND		0x01	/* assign() may be called again */
#define PUBSUB_IS_LOG			0x02	/* partitions and offsets; positions
										 * are kept in pubsub_offsets */
#define PUBSUB_ACKS_EACH		0x04	/* leases and ack sets */

struct PubsubDriver
{
	const char *name;			/* value of the server option "broker" */
	uint32		capabilities;
	int			default_fetch_size;
	int64		default_scan_records;	/* max_records of a SELECT; 0 = none */
	int			default_scan_time;	/* max_read_time of a SELECT, ms; 0 = none */
	int			session_fds;	/* descriptors that a session may hold */
	int			source_fds;		/* and each source more */

	/*
	 * Makes session->state.  No I/O, no thread.  Checks what of the options
	 * can only be checked together (a missing credential).
	 */
	PubsubStatus (*attach) (PubsubSession *session, PubsubError *error);

	/*
	 * Closes everything that is left and frees the state.  Bounded (about a
	 * second), legal in abort and at exit; must leave no thread behind that
	 * could crash the exit of the process.  Idempotent.
	 */
	void		(*detach) (PubsubSession *session);

	const PubsubSourceRoutine *source;
	const PubsubSinkRoutine *sink;
	const PubsubAdminRoutine *admin;	/* NULL = none */

	/*
	 * Names and versions of the libraries, one pair per call from i = 0 on;
	 * false = no more.
	 */
	bool		(*version) (int i, const char **component, const char **version);
};

/* the drivers there are */
extern const PubsubDriver kafka_driver;
extern const PubsubDriver google_driver;

/* in driver.c: find and register; the registry holds a handful */
extern const PubsubDriver *pubsub_driver_find(const char *name);
extern const PubsubDriver *pubsub_driver_get(int i);	/* NULL = no more */
extern PGDLLEXPORT void pubsub_driver_register(const PubsubDriver *driver);

/*
 * in driver.c: the routines as ring 1 calls them, with the contract asserted.
 * Arguments and results are those of the routine of the same name.
 */
extern int	pubsub_source_event_fd(PubsubSource *source);
extern PubsubStatus pubsub_source_resolve(PubsubSource *source, int slice_ms,
										  PubsubRanges *ranges,
										  PubsubError *error);
extern PubsubStatus pubsub_source_lookup(PubsubSource *source, int slice_ms,
										 PubsubLookup what, int64 time_ms,
										 const PubsubRanges *ranges,
										 int64 *offsets, PubsubError *error);
extern PubsubStatus pubsub_source_assign(PubsubSource *source,
										 PubsubRanges *ranges,
										 PubsubError *error);
extern PubsubStatus pubsub_source_poll(PubsubSource *source, int max_messages,
									   PubsubBatch *batch,
									   PubsubError *error);
extern void pubsub_source_release(PubsubSource *source, PubsubBatch *batch);
extern PubsubStatus pubsub_source_finish(PubsubSource *source, int slice_ms,
										 PubsubError *error);
extern int	pubsub_sink_event_fd(PubsubSink *sink);
extern PubsubStatus pubsub_sink_ready(PubsubSink *sink, int slice_ms,
									  PubsubError *error);
extern PubsubStatus pubsub_sink_check(PubsubSink *sink,
									  const PubsubMessage *message,
									  PubsubError *error);
extern PubsubStatus pubsub_sink_put(PubsubSink *sink,
									const PubsubMessage *message,
									PubsubError *error);
extern PubsubStatus pubsub_sink_drain(PubsubSink *sink, bool flush,
									  PubsubError *error);
extern void pubsub_sink_abandon(PubsubSink *sink);

/* in driver.c: helpers that drivers use to fill in an error */
extern void pubsub_error_set(PubsubError *error, PubsubErrorKind kind,
							 const char *fmt,...) pg_attribute_printf(3, 4);
extern void pubsub_error_clear(PubsubError *error);

#endif							/* PUBSUB_DRIVER_H */
