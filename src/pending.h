/*-------------------------------------------------------------------------
 *
 * pending.h
 *		The log of a transaction's messages, between pending.c and pending_log.c
 *
 * IDENTIFICATION
 *		src/pending.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_PENDING_H
#define PUBSUB_PENDING_H

#include "pubsub_fdw.h"

/*
 * Appends a copy of a message.  cxt: where the log's memory is; it must live
 * until the end of the transaction, at which pubsub_log_forget() is called.
 */
extern void pubsub_log_append(MemoryContext cxt, PubsubTarget *target,
							  const PubsubMessage *message);

/* The position after the last message; 0 = the log is empty. */
extern int64 pubsub_log_end(void);

/* Forgets the messages from a position on.  Never throws. */
extern void pubsub_log_truncate(int64 position);

/*
 * Reads the message at a position, which moves on to the next one.  The
 * message is valid until the next call.  Nothing may be appended between the
 * first call and the last.
 */
extern PubsubTarget *pubsub_log_read(int64 *position, PubsubMessage *message);

/* The log was read: no file may stay open beyond a commit. */
extern void pubsub_log_close_file(void);

/* At the end of the transaction.  Never throws. */
extern void pubsub_log_forget(void);

#endif							/* PUBSUB_PENDING_H */
