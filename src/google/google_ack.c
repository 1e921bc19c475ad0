/*-------------------------------------------------------------------------
 *
 * google_ack.c
 *		Acknowledgement at commit
 *
 * PRE_COMMIT builds the requests, COMMIT sends them.  Until then, and while
 * they are on their way, the leases stay in the table and are extended.
 *
 * IDENTIFICATION
 *		src/google/google_ack.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "google/google.h"

/* Requests in flight at a time */
#define MAX_IN_FLIGHT		4

/* One Acknowledge request */
typedef struct GoogleAck
{
	dlist_node	node;
	GoogleCall *call;
	GoogleHold *hold;
	int			nleases;
	GoogleLease *leases[FLEXIBLE_ARRAY_MEMBER]; /* room for hold->max_ids */
} GoogleAck;

static GoogleAck *make_ack(GoogleSession *session, GoogleHold *hold);
static bool start_call(GoogleAck *ack);
static void finish_ack(GoogleSession *session, GoogleAck *ack);
static bool judge_ids(GoogleSession *session, GoogleAck *ack,
					  const GooglePb__ErrorInfo *info);
static void leave_ack(GoogleSession *session, GoogleAck *ack);
static void free_ack(GoogleAck *ack);

/*
 * google_prepare_acks
 *	  Builds the requests: by subscription, within the limits of one request.
 */
PubsubStatus
google_prepare_acks(PubsubSession *base, void **lease, int nleases,
					int64 *nexpired, PubsubError *error)
{
	GoogleSession *session = base->state;

	google_free_acks(session);
	*nexpired = 0;
	if (nleases == 0)
		return PUBSUB_OK;
	if (google_session_http(session, error) == NULL)
		return PUBSUB_FAILED;

	for (int i = 0; i < nleases; i++)
	{
		GoogleHold *hold = google_lease_hold(lease[i]);
		GoogleAck  *ack = NULL;
		const char *id;
		int			id_len;
		dlist_iter	iter;

		id = google_lease_id(lease[i], &id_len);

		/* the latest request for this subscription, if there is room in it */
		dlist_reverse_foreach(iter, &session->acks)
		{
			GoogleAck  *last = dlist_container(GoogleAck, node, iter.cur);

			if (strcmp(last->hold->subscription, hold->subscription) != 0)
				continue;
			if (last->nleases < last->hold->max_ids &&
				last->call->request.len + google_field_bytes_size(id_len) <=
				GOOGLE_MAX_IDS_BYTES)
				ack = last;
			break;
		}
		if (ack == NULL)
		{
			ack = make_ack(session, hold);
			if (ack == NULL)
			{
				google_free_acks(session);
				google_error_memory(error);
				return PUBSUB_FAILED;
			}
		}
		google_buffer_field_bytes(&ack->call->request, 2, id, id_len);
		ack->leases[ack->nleases++] = lease[i];
		if (ack->call->request.failed)
		{
			google_free_acks(session);
			google_error_memory(error);
			return PUBSUB_FAILED;
		}
	}
	*nexpired = google_leases_expired(&session->leases, lease, nleases);
	return PUBSUB_OK;
}

static GoogleAck *
make_ack(GoogleSession *session, GoogleHold *hold)
{
	GoogleAck  *ack = malloc(offsetof(GoogleAck, leases) +
							 hold->max_ids * sizeof(GoogleLease *));

	if (ack == NULL)
		return NULL;
	ack->hold = hold;
	ack->nleases = 0;
	if (!start_call(ack))
	{
		free(ack);
		return NULL;
	}
	dlist_push_tail(&session->acks, &ack->node);
	return ack;
}

/* Makes a request without ids.  False = out of memory. */
static bool
start_call(GoogleAck *ack)
{
	const char *subscription = ack->hold->subscription;

	ack->call = google_call_create(ack->hold->client, GOOGLE_ACKNOWLEDGE,
								   subscription);
	if (ack->call == NULL)
		return false;
	google_buffer_field_bytes(&ack->call->request, 1, subscription,
							  strlen(subscription));
	return true;
}

/*
 * google_send_acks
 *	  A step at COMMIT.  Touches nothing of PostgreSQL.
 */
PubsubStatus
google_send_acks(PubsubSession *base, int slice_ms, PubsubError *error)
{
	GoogleSession *session = base->state;
	int64		end = google_now_ms() + slice_ms;

	for (;;)
	{
		dlist_mutable_iter iter;
		int			nrunning = 0;
		int64		now;

		dlist_foreach_modify(iter, &session->acks)
		{
			GoogleAck  *ack = dlist_container(GoogleAck, node, iter.cur);

			if (nrunning == MAX_IN_FLIGHT)
				break;
			if (ack->call->state == GOOGLE_CALL_NEW)
				google_call_start(ack->call, session->http,
								  session->client.request_timeout);
			switch (google_call_check(ack->call))
			{
				case GOOGLE_CALL_OK:
				case GOOGLE_CALL_FAILED:
					finish_ack(session, ack);
					break;
				case GOOGLE_CALL_WAITING:
					*error = ack->call->error;
					nrunning++;
					break;
				default:
					nrunning++;
					break;
			}
		}
		if (dlist_is_empty(&session->acks))
			break;
		if (nrunning == 0)
			continue;
		now = google_now_ms();
		if (now >= end)
			return PUBSUB_AGAIN;
		google_http_run(session->http, (int) (end - now));
	}

	if (session->nacks_failed > 0)
	{
		*error = session->ack_error;
		error->message_no = session->nacks_failed;
		session->nacks_failed = 0;
		return PUBSUB_FAILED;
	}
	return PUBSUB_OK;
}

/*
 * finish_ack
 *	  The answer is there.  Frees the request, unless a part of it is to be
 *	  sent again.
 */
static void
finish_ack(GoogleSession *session, GoogleAck *ack)
{
	if (ack->call->state == GOOGLE_CALL_FAILED)
	{
		GooglePb__ErrorInfo *info = google_call_failed_ids(ack->call);

		if (info)
		{
			bool		again = judge_ids(session, ack, info);

			google_pb__error_info__free_unpacked(info, NULL);
			if (again)
				return;
		}
		else
		{
			if (session->nacks_failed == 0)
			{
				session->ack_error = ack->call->error;
				google_error_object(&session->ack_error, "subscription",
									ack->hold->subscription);
			}
			session->nacks_failed += ack->nleases;
			if (ack->call->transfer.failed && ack->call->transfer.retriable)
			{
				/* the network may be back before the leases end */
				leave_ack(session, ack);
				return;
			}
		}
	}
	google_leases_end(&session->leases, ack->leases, ack->nleases);
	dlist_delete(&ack->node);
	free_ack(ack);
}

/*
 * judge_ids
 *	  An exactly-once subscription has refused single ids: counts those that
 *	  are lost, and makes a new request of those that may be tried again.
 *
 * The ids that the answer does not name are acknowledged.  True = there is a
 * new request.
 */
static bool
judge_ids(GoogleSession *session, GoogleAck *ack,
		  const GooglePb__ErrorInfo *info)
{
	static const char transient[] = "TRANSIENT_";
	GoogleCall *old = ack->call;
	int			nagain = 0;
	int			nfailed = 0;

	if (!start_call(ack))
	{
		ack->call = old;
		google_error_memory(&session->ack_error);
		session->nacks_failed += ack->nleases;
		return false;
	}
	for (int i = 0; i < ack->nleases; i++)
	{
		GoogleLease *lease = ack->leases[i];
		const ProtobufCBinaryData *why = NULL;
		int			id_len;
		const char *id = google_lease_id(lease, &id_len);

		for (size_t k = 0; k < info->n_metadata && why == NULL; k++)
		{
			if ((int) info->metadata[k]->key.len == id_len &&
				memcmp(info->metadata[k]->key.data, id, id_len) == 0)
				why = &info->metadata[k]->value;
		}
		if (why && why->len > strlen(transient) &&
			memcmp(why->data, transient, strlen(transient)) == 0)
		{
			google_buffer_field_bytes(&ack->call->request, 2, id, id_len);
			ack->leases[nagain++] = lease;
			continue;
		}
		if (why)
		{
			if (session->nacks_failed + nfailed == 0)
			{
				pubsub_error_set(&session->ack_error, PUBSUB_ERROR_OTHER,
								 "The service answered %.*s.",
								 (int) Min(why->len, 200),
								 (const char *) why->data);
				google_error_object(&session->ack_error, "subscription",
									ack->hold->subscription);
			}
			nfailed++;
		}
		google_leases_end(&session->leases, &lease, 1);
	}
	session->nacks_failed += nfailed;
	ack->nleases = nagain;

	/* the pauses go on growing */
	ack->call->attempts = old->attempts;
	google_call_free(old);
	if (nagain == 0)
		return false;
	google_call_start_later(ack->call, session->http,
							session->client.request_timeout);
	return true;
}

/*
 * google_abandon_acks
 *	  COMMIT can wait no longer: the thread sends what is left.
 */
void
google_abandon_acks(PubsubSession *base)
{
	GoogleSession *session = base->state;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &session->acks)
		leave_ack(session, dlist_container(GoogleAck, node, iter.cur));
	session->nacks_failed = 0;
}

/*
 * leave_ack
 *	  Leaves a request to the thread.
 */
static void
leave_ack(GoogleSession *session, GoogleAck *ack)
{
	google_http_clean(&ack->call->transfer);
	google_leases_end(&session->leases, ack->leases, ack->nleases);
	google_leases_adopt_ack(&session->leases, ack->call);
	ack->call = NULL;
	dlist_delete(&ack->node);
	free_ack(ack);
}

/*
 * google_drop_acks
 *	  Gives the messages back instead.
 */
void
google_drop_acks(PubsubSession *base, void **lease, int nleases)
{
	GoogleSession *session = base->state;

	google_free_acks(session);
	google_leases_drop(&session->leases, lease, nleases);
}

static void
free_ack(GoogleAck *ack)
{
	google_call_free(ack->call);
	free(ack);
}

/*
 * google_free_acks
 *	  Forgets what was prepared.
 */
void
google_free_acks(GoogleSession *session)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &session->acks)
	{
		GoogleAck  *ack = dlist_container(GoogleAck, node, iter.cur);

		dlist_delete(&ack->node);
		free_ack(ack);
	}
	session->nacks_failed = 0;
}
