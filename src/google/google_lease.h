/*-------------------------------------------------------------------------
 *
 * google_lease.h
 *		What the lease table (google_lease.c) and its thread (google_keeper.c)
 *		have in common
 *
 * A group lives as long as one of its leases does, or a request about it is
 * under way.  Each of its two places is in at most one list: one of the
 * table's, or that of the job which is at it.
 *
 * IDENTIFICATION
 *		src/google/google_lease.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef GOOGLE_LEASE_H
#define GOOGLE_LEASE_H

#include "google/google.h"

/* Leases are extended when this much of them is over, in percent */
#define EXTEND_AT			70

typedef enum LeaseState
{
	LEASE_HELD,
	LEASE_LOST,					/* held, but known to be of no use */
	LEASE_RETURN,				/* to be given back */
	LEASE_RETURNING,			/* in a request */
	LEASE_GONE
} LeaseState;

struct GoogleLease
{
	struct GoogleGroup *group;
	const char *id;
	int			id_len;
	LeaseState	state;
};

typedef enum GroupPlace
{
	PLACE_NONE,
	PLACE_LIST,
	PLACE_JOB
} GroupPlace;

typedef struct GoogleGroup
{
	dlist_node	node;			/* in groups */
	GoogleHold *hold;
	int64		received_at;
	int64		expires_at;
	int64		due_at;			/* when to extend */
	GroupPlace	extend_place;
	dlist_node	extend_node;	/* in due, or in a job */
	GroupPlace	give_place;
	dlist_node	give_node;		/* in giving, or in a job */
	int			nlive;			/* leases that are not gone */
	int			nleases;
	size_t		ids_bytes;		/* encoded */
	GoogleLease leases[FLEXIBLE_ARRAY_MEMBER];
} GoogleGroup;

/* in google_lease.c; lock held */
extern void google_lease_schedule(GoogleLeases *leases, GoogleGroup *group);
extern void google_lease_gone(GoogleLeases *leases, GoogleLease *lease);
extern void google_group_free_if_done(GoogleGroup *group);
extern void google_hold_unref_locked(GoogleHold *hold);

/* in google_keeper.c */
extern void *google_keeper_create(GoogleLeases *leases, PubsubError *error);
extern void google_keeper_destroy(void *keeper);
extern void *google_keeper_main(void *keeper);
extern void google_orphan_free(GoogleOrphan *orphan);

#endif							/* GOOGLE_LEASE_H */
