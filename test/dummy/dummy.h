/*-------------------------------------------------------------------------
 *
 * dummy.h
 *		Two brokers made of files, for the tests that need no real one
 *
 * Broker "dummy_log" has partitions and offsets like Kafka, broker
 * "dummy_queue" subscriptions and leases like Pub/Sub.  They live in a
 * directory (server option "dummy_dir", relative to the data directory), so
 * that several sessions share them:
 *
 *	TOPIC.topic		number of partitions and their low watermarks
 *	TOPIC.N.idx		one DummyIndex per record of partition N
 *	TOPIC.N.log		what the records hold
 *	NAME.sub		a subscription: which topic, and a DummyEntry per message
 *
 * Both keep the contract in driver.h to the letter, unless ordered to break
 * it.  Orders are server options; CALL is one of dummy_call_names, and calls
 * are counted from 1, per session:
 *
 *	dummy_fail_CALL n	the n-th such call fails
 *	dummy_error kind	as what failures and soft causes are reported
 *	dummy_hang CALL,...	these answer AGAIN for ever
 *	dummy_again n		every call that may answers AGAIN n times first
 *	dummy_soft_cause s	what AGAIN says is the cause
 *	dummy_block_ms n	a step blocks so long, whatever its slice
 *	dummy_batch n		a poll brings at most n messages
 *	dummy_no_eof on		the end of a range is shown by its messages alone
 *	dummy_truncate n	assign finds that the records below n are gone
 *	dummy_unstable n	the last n records belong to open transactions
 *	dummy_fail_acks n	n acknowledgements fail
 *	dummy_expired n		n leases have been lost by the time of prepare_acks
 *	dummy_user s		the broker knows this user only
 *	dummy_max_message n	a message may have so many bytes of data
 *	dummy_queue_size n	so many messages may be in flight
 *	dummy_drain n		a drain delivers at most n messages
 *	dummy_fail_delivery n	the delivery of the n-th message of a sink fails
 *	dummy_lose_report n		that of the n-th message is never confirmed
 *	dummy_lie on		drain says that it is done, whatever is not confirmed
 *
 * IDENTIFICATION
 *		test/dummy/dummy.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_DUMMY_H
#define PUBSUB_DUMMY_H

#include "driver.h"

/* Functions of the contract that can be given orders */
typedef enum DummyCall
{
	DUMMY_ATTACH,
	DUMMY_OPEN_SOURCE,
	DUMMY_RESOLVE,
	DUMMY_LOOKUP,
	DUMMY_ASSIGN,
	DUMMY_POLL,
	DUMMY_FINISH,
	DUMMY_PREPARE_ACKS,
	DUMMY_SEND_ACKS,
	DUMMY_OPEN_SINK,
	DUMMY_READY,
	DUMMY_CHECK,
	DUMMY_PUT,
	DUMMY_DRAIN,
	DUMMY_ADMIN,
	DUMMY_NCALLS
} DummyCall;

typedef struct DummySession
{
	const char *dir;
	const char *user;

	/* orders, and how far they are carried out */
	int			fail_at[DUMMY_NCALLS];	/* 0 = never */
	int			ncalls[DUMMY_NCALLS];
	bool		hang[DUMMY_NCALLS];
	int			nagain[DUMMY_NCALLS];
	int			again;
	PubsubErrorKind error_kind;
	const char *soft_cause;
	int			block_ms;
	int			batch;
	bool		no_eof;
	int			truncate;
	int			unstable;
	int			fail_acks;
	int			expired;
	int			max_message;
	int			queue_size;
	int			drain;
	int			fail_delivery;
	int			lose_report;
	bool		lie;

	dlist_head	leases;			/* DummyLeases that are out */
	struct DummyLease **acks;	/* from prepare_acks to send_acks */
	int			nacks;

	/* the administrative call in progress */
	PubsubAdminOp admin_op;
	char		admin_topic[256];
	char		admin_subscription[256];
	int			admin_partitions;
} DummySession;

/* A message that was handed out and is neither acknowledged nor given back */
typedef struct DummyLease
{
	dlist_node	node;
	char		subscription[256];
	int64		message;		/* number within the subscription */
	int64		id;				/* tells a lease from a later one */
} DummyLease;

/* The parts of a record that readers look for */
typedef struct DummyIndex
{
	int64		position;		/* in the .log file */
	int64		time_ms;
	int32		time_us;
	int32		length;
	int32		control;		/* takes an offset, is not a message */
	int32		unused;
} DummyIndex;

/* A subscription's view of one message of its topic */
typedef struct DummyEntry
{
	int64		lease_id;
	int32		state;			/* DummyState */
	int32		owner;			/* process id of the lease's holder */
	int32		attempts;
	int32		unused;
} DummyEntry;

typedef enum DummyState
{
	DUMMY_WAITING,
	DUMMY_LEASED,
	DUMMY_ACKED
} DummyState;

/* How much of everything this process holds */
typedef struct DummyLive
{
	int			sources;
	int			sinks;
	int			batches;
	int			leases;
	int			messages;		/* put and not delivered */
} DummyLive;

/* in dummy_driver.c */
extern DummyLive dummy_live;
extern int64 dummy_ncalls;		/* of the driver, however small */
extern PubsubStatus dummy_obey(PubsubSession *session, DummyCall call,
							   int slice_ms, const char *object,
							   PubsubError *error);
extern PubsubStatus dummy_fail(PubsubError *error, PubsubErrorKind kind,
							   const char *object, const char *fmt,...)
			pg_attribute_printf(4, 5);
extern bool dummy_is_queue(const PubsubSession *session);
extern PubsubStatus dummy_log_in(PubsubSession *session, PubsubError *error);

/*
 * in dummy_file.c: all return -1 or NULL with errno set if something fails,
 * ENOENT for a topic or subscription that does not exist.
 */
extern int	dummy_topic_create(const char *dir, const char *topic,
							   int npartitions);
extern int	dummy_topic_drop(const char *dir, const char *topic);
extern int	dummy_topic_partitions(const char *dir, const char *topic);
extern int64 dummy_topic_low(const char *dir, const char *topic,
							 int partition);
extern int64 dummy_topic_high(const char *dir, const char *topic,
							  int partition);
extern int	dummy_topic_truncate(const char *dir, const char *topic,
								 int partition, int64 low);
extern int	dummy_record_append(const char *dir, const char *topic,
								int partition, const PubsubMessage *message);
extern int	dummy_record_append_control(const char *dir, const char *topic,
										int partition);
extern int	dummy_record_index(const char *dir, const char *topic,
							   int partition, int64 offset, DummyIndex *index);
extern void *dummy_record_read(const char *dir, const char *topic,
							   int partition, int64 offset, uint32 wants,
							   PubsubMessage *message);
extern int	dummy_remove(const char *dir);
extern int	dummy_open(const char *dir, const char *name, const char *suffix,
					   int flags);
extern int	dummy_unlink(const char *dir, const char *name, const char *suffix);
extern int	dummy_read_at(int fd, void *buffer, size_t length, off_t position);
extern int	dummy_write_at(int fd, const void *buffer, size_t length,
						   off_t position);
extern int	dummy_close(int fd, int rc);

/* in dummy_subscription.c, likewise */
extern int	dummy_subscription_create(const char *dir, const char *name,
									  const char *topic);
extern int	dummy_subscription_drop(const char *dir, const char *name);
extern int	dummy_subscription_topic(const char *dir, const char *name,
									 char *topic, size_t size);
extern int	dummy_subscription_take(const char *dir, const char *name,
									int64 lease_id, int64 *message,
									int64 *offset, int *attempts);
extern int	dummy_subscription_settle(const char *dir, const char *name,
									  int64 message, int64 lease_id,
									  DummyState state);
extern int	dummy_subscription_count(const char *dir, const char *name,
									 int64 *counts);

/* in dummy_source.c and dummy_sink.c */
extern const PubsubSourceRoutine dummy_log_source;
extern const PubsubSourceRoutine dummy_queue_source;
extern const PubsubSinkRoutine dummy_sink;

/* in dummy_ack.c */
extern void dummy_lease_free(DummyLease *lease);
extern void dummy_give_back(DummySession *state, DummyLease *lease);
extern PubsubStatus dummy_prepare_acks(PubsubSession *session, void **leases,
									   int nleases, int64 *nexpired,
									   PubsubError *error);
extern PubsubStatus dummy_send_acks(PubsubSession *session, int slice_ms,
									PubsubError *error);
extern void dummy_abandon_acks(PubsubSession *session);
extern void dummy_drop_acks(PubsubSession *session, void **leases,
							int nleases);

#endif							/* PUBSUB_DUMMY_H */
