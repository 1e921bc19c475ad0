/*-------------------------------------------------------------------------
 *
 * wait.c
 *		Waiting for a broker: deadlines, and sleeps that can be interrupted
 *
 * All waiting of the extension goes through pubsub_wait(), but for the steps
 * that block in a client library for at most PUBSUB_SLICE_MS, and for the
 * acknowledgement at COMMIT, where interrupts are held (xact.c).
 *
 * IDENTIFICATION
 *		src/wait.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"

#include "pubsub_fdw.h"

/* How often to look at a source that offers no descriptor to wait for, in ms */
#define PUBSUB_BLIND_POLL_MS 10

/*
 * pubsub_deadline_set
 *	  Sets a deadline ms from now; 0 = none.
 */
void
pubsub_deadline_set(PubsubDeadline *deadline, int ms)
{
	deadline->set = (ms > 0);
	deadline->ms = ms;
	INSTR_TIME_SET_CURRENT(deadline->start);
}

bool
pubsub_deadline_passed(const PubsubDeadline *deadline)
{
	return deadline->set && pubsub_deadline_left(deadline, 1) == 0;
}

/*
 * pubsub_deadline_left
 *	  Tells how many ms are left, rounded up, but no more than max.
 */
int
pubsub_deadline_left(const PubsubDeadline *deadline, int max)
{
	instr_time	now;
	double		left;

	if (!deadline->set)
		return max;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, deadline->start);
	left = deadline->ms - INSTR_TIME_GET_MILLISEC(now);
	if (left <= 0)
		return 0;
	if (left >= max)
		return max;
	return (int) left + 1;
}

/*
 * pubsub_wait
 *	  Sleeps until fd is readable, the latch is set, or the time is over.
 *
 * May raise an error: an interrupt.
 */
void
pubsub_wait(int fd, int timeout_ms)
{
	int			events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;
	int			rc;

	if (fd >= 0)
		events |= WL_SOCKET_READABLE;
	else
		timeout_ms = Min(timeout_ms, PUBSUB_BLIND_POLL_MS);

	rc = WaitLatchOrSocket(MyLatch, events, fd, Max(timeout_ms, 0),
						   PG_WAIT_EXTENSION);
	if (rc & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}
