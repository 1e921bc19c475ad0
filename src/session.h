/*-------------------------------------------------------------------------
 *
 * session.h
 *		What session.c shows of itself to xact.c and admin_func.c
 *
 * IDENTIFICATION
 *		src/session.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_SESSION_H
#define PUBSUB_SESSION_H

#include "pubsub_fdw.h"

typedef struct PubsubSessionEntry
{
	dlist_node	node;
	MemoryContext cxt;			/* holds this struct and the options */
	Oid			serverid;
	Oid			umid;			/* InvalidOid: a superuser without a mapping */
	Oid			userid;			/* who made it */
	bool		attached;		/* the driver has to be detached */
	bool		retired;		/* not for new uses; goes with the transaction */
	bool		in_xact;		/* used by the current transaction */
	PubsubSession session;
} PubsubSessionEntry;

extern bool pubsub_session_disconnect(Oid serverid);

/* Of PubsubSessionEntry, for reading only. */
extern dlist_head *pubsub_session_list(void);

/*
 * The rest is called by xact.c only; none of it throws.  nest_level: sources
 * opened at this level or deeper; commit spares those with "keep".
 */
extern void pubsub_session_close_sources(int nest_level, bool commit);
extern void pubsub_session_reparent_sources(int nest_level);
extern void pubsub_session_close_sinks(void);
extern void pubsub_session_end_xact(void);

#endif							/* PUBSUB_SESSION_H */
