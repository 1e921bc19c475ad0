/*-------------------------------------------------------------------------
 *
 * google_admin.c
 *		Making and dropping topics and subscriptions
 *
 * IDENTIFICATION
 *		src/google/google_admin.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "google/google.h"

static bool pack_request(GoogleSession *session,
						 const PubsubAdminRequest *request);

/*
 * google_admin_begin
 *	  Makes the call.
 */
static PubsubStatus
google_admin_begin(PubsubSession *base, const PubsubAdminRequest *request,
				   PubsubError *error)
{
	static const GoogleMethod methods[] = {
		[PUBSUB_ADMIN_CREATE_TOPIC] = GOOGLE_CREATE_TOPIC,
		[PUBSUB_ADMIN_DROP_TOPIC] = GOOGLE_DELETE_TOPIC,
		[PUBSUB_ADMIN_CREATE_SUBSCRIPTION] = GOOGLE_CREATE_SUBSCRIPTION,
		[PUBSUB_ADMIN_DROP_SUBSCRIPTION] = GOOGLE_DELETE_SUBSCRIPTION,
	};
	GoogleSession *session = base->state;
	bool		is_topic = request->op == PUBSUB_ADMIN_CREATE_TOPIC ||
		request->op == PUBSUB_ADMIN_DROP_TOPIC;

	if (request->partitions > 0 || request->replication_factor > 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "A Pub/Sub topic has neither partitions nor replicas.");
		return PUBSUB_FAILED;
	}
	if (request->nconfig > 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "Setting \"%.200s\" is not known for Pub/Sub.",
						 request->config[0].name);
		return PUBSUB_FAILED;
	}
	if (google_session_http(session, error) == NULL)
		return PUBSUB_FAILED;

	session->admin_op = request->op;
	strlcpy(session->admin_name,
			is_topic ? request->topic : request->subscription,
			sizeof(session->admin_name));
	strlcpy(session->admin_topic, request->topic ? request->topic : "",
			sizeof(session->admin_topic));
	session->admin = google_call_create(&session->client,
										methods[request->op],
										session->admin_name);
	if (session->admin == NULL || !pack_request(session, request))
	{
		google_admin_end(base);
		google_error_memory(error);
		return PUBSUB_FAILED;
	}
	return PUBSUB_OK;
}

static bool
pack_request(GoogleSession *session, const PubsubAdminRequest *request)
{
	GooglePb__Topic topic = GOOGLE_PB__TOPIC__INIT;
	GooglePb__TopicRequest topic_request = GOOGLE_PB__TOPIC_REQUEST__INIT;
	GooglePb__Subscription subscription = GOOGLE_PB__SUBSCRIPTION__INIT;
	GooglePb__SubscriptionRequest subscription_request =
		GOOGLE_PB__SUBSCRIPTION_REQUEST__INIT;

	switch (request->op)
	{
		case PUBSUB_ADMIN_CREATE_TOPIC:
			topic.name = session->admin_name;
			return google_call_pack(session->admin, &topic.base);
		case PUBSUB_ADMIN_DROP_TOPIC:
			topic_request.topic = session->admin_name;
			return google_call_pack(session->admin, &topic_request.base);
		case PUBSUB_ADMIN_CREATE_SUBSCRIPTION:
			subscription.name = session->admin_name;
			subscription.topic = session->admin_topic;
			subscription.ack_deadline_seconds = request->ack_deadline;
			subscription.enable_message_ordering = request->ordering;
			return google_call_pack(session->admin, &subscription.base);
		case PUBSUB_ADMIN_DROP_SUBSCRIPTION:
			subscription_request.subscription = session->admin_name;
			return google_call_pack(session->admin,
									&subscription_request.base);
	}
	return false;
}

/*
 * google_admin_step
 *	  Runs the call.
 *
 * If it took several attempts, an earlier one may have done the work though
 * its answer was lost.
 */
static PubsubStatus
google_admin_step(PubsubSession *base, int slice_ms, PubsubError *error)
{
	GoogleSession *session = base->state;
	GoogleCall *call = session->admin;
	bool		is_create = session->admin_op == PUBSUB_ADMIN_CREATE_TOPIC ||
		session->admin_op == PUBSUB_ADMIN_CREATE_SUBSCRIPTION;
	bool		is_topic = session->admin_op == PUBSUB_ADMIN_CREATE_TOPIC ||
		session->admin_op == PUBSUB_ADMIN_DROP_TOPIC;

	if (call->state == GOOGLE_CALL_NEW)
		google_call_start(call, session->http,
						  session->client.request_timeout);

	switch (google_call_step(call, slice_ms))
	{
		case GOOGLE_CALL_OK:
			return PUBSUB_OK;
		case GOOGLE_CALL_FAILED:
			if (call->attempts > 1 &&
				call->status == (is_create ? GOOGLE_STATUS_ALREADY_EXISTS :
								 GOOGLE_STATUS_NOT_FOUND))
				return PUBSUB_OK;
			*error = call->error;

			/* what a new subscription does not find is its topic */
			if (is_topic || (is_create &&
							 call->status == GOOGLE_STATUS_NOT_FOUND))
				google_error_object(error, "topic", session->admin_topic);
			else
				google_error_object(error, "subscription",
									session->admin_name);
			return PUBSUB_FAILED;
		case GOOGLE_CALL_WAITING:
			*error = call->error;
			return PUBSUB_AGAIN;
		default:
			return PUBSUB_AGAIN;
	}
}

void
google_admin_end(PubsubSession *base)
{
	GoogleSession *session = base->state;

	if (session == NULL)
		return;
	google_call_free(session->admin);
	session->admin = NULL;
}

const PubsubAdminRoutine google_admin_routine = {
	.begin = google_admin_begin,
	.step = google_admin_step,
	.end = google_admin_end,
};
