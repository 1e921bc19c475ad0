/*-------------------------------------------------------------------------
 *
 * dummy_ack.c
 *		Leases of the dummy queue: acknowledged, or given back
 *
 * IDENTIFICATION
 *		test/dummy/dummy_ack.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "dummy.h"

void
dummy_lease_free(DummyLease *lease)
{
	dlist_delete(&lease->node);
	free(lease);
	dummy_live.leases--;
}

/*
 * dummy_give_back
 *	  Makes a message available to other readers.
 */
void
dummy_give_back(DummySession *state, DummyLease *lease)
{
	(void) dummy_subscription_settle(state->dir, lease->subscription,
									 lease->message, lease->id,
									 DUMMY_WAITING);
	dummy_lease_free(lease);
}

/*
 * dummy_prepare_acks
 *	  Remembers what send_acks will send.
 */
PubsubStatus
dummy_prepare_acks(PubsubSession *session, void **leases, int nleases,
				   int64 *nexpired, PubsubError *error)
{
	DummySession *state = session->state;
	PubsubStatus status;
	int			i;

	status = dummy_obey(session, DUMMY_PREPARE_ACKS, 0, "", error);
	if (status != PUBSUB_OK)
		return status;
	free(state->acks);
	state->acks = calloc(Max(nleases, 1), sizeof(DummyLease *));
	if (state->acks == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	memcpy(state->acks, leases, nleases * sizeof(DummyLease *));
	state->nacks = nleases;

	*nexpired = Min(state->expired, nleases);
	for (i = 0; i < *nexpired; i++)
		(void) dummy_subscription_settle(state->dir,
										 state->acks[i]->subscription,
										 state->acks[i]->message,
										 state->acks[i]->id, DUMMY_WAITING);
	return PUBSUB_OK;
}

/*
 * dummy_send_acks
 *	  Acknowledges; allocates nothing.
 */
PubsubStatus
dummy_send_acks(PubsubSession *session, int slice_ms, PubsubError *error)
{
	DummySession *state = session->state;
	PubsubStatus status;
	int			nfailed = 0;
	int			i;

	status = dummy_obey(session, DUMMY_SEND_ACKS, slice_ms,
						"", error);
	if (status == PUBSUB_AGAIN)
		return status;
	for (i = 0; i < state->nacks; i++)
	{
		DummyLease *lease = state->acks[i];

		if (status == PUBSUB_FAILED || i < state->fail_acks)
		{
			dummy_give_back(state, lease);
			nfailed++;
			continue;
		}
		if (dummy_subscription_settle(state->dir, lease->subscription,
									  lease->message, lease->id,
									  DUMMY_ACKED) != 1)
			nfailed++;
		dummy_lease_free(lease);
	}
	state->nacks = 0;
	if (nfailed == 0)
		return PUBSUB_OK;
	if (status == PUBSUB_OK)
		(void) dummy_fail(error, state->error_kind, "",
						  "the broker refused some acknowledgements");
	error->message_no = nfailed;
	return PUBSUB_FAILED;
}

void
dummy_abandon_acks(PubsubSession *session)
{
	DummySession *state = session->state;

	dummy_ncalls++;
	while (state->nacks > 0)
		dummy_give_back(state, state->acks[--state->nacks]);
}

void
dummy_drop_acks(PubsubSession *session, void **leases, int nleases)
{
	DummySession *state = session->state;
	int			i;

	dummy_ncalls++;
	state->nacks = 0;
	for (i = 0; i < nleases; i++)
		dummy_give_back(state, leases[i]);
}
