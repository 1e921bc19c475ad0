/*-------------------------------------------------------------------------
 *
 * google_source.c
 *		Reading a subscription: one unary Pull after the other
 *
 * Each pull asks for no more than is wanted, and the service is told to end it
 * soon.  We never end one ourselves: the messages that it may be about to
 * bring would be hidden from everybody until their leases end.  If the reader
 * goes first, the session's thread sees the pull through.
 *
 * A subscription tells nobody how much it holds, and an empty answer proves
 * nothing.  A reading is idle after two empty pulls in a row and poll_timeout
 * without a message.
 *
 * IDENTIFICATION
 *		src/google/google_source.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "google/google.h"

/* Lease that we reckon with if the subscription may not be looked at, in ms */
#define UNKNOWN_LEASE_MS	10000

/* Exactly-once delivery gives no shorter lease than this, in ms */
#define EXACTLY_ONCE_LEASE_MS	60000

/* A pull that came back empty in less than this was not waited for; pause */
#define EARLY_MS			50
#define PAUSE_MS			100

/* A pull should not bring more than this many bytes, if we can help it */
#define PULL_BYTES			(32 * 1024 * 1024)

/* A pull is given so long, in ms; the end of a session must wait for it */
#define PULL_MS				1500
StaticAssertDecl(PULL_MS < GOOGLE_DETACH_MS,
				 "the last pull of a session would be abandoned");

/* Our patience with a pull beyond the time it was given, in ms */
#define PULL_GRACE_MS		10000

/* What one pull has brought */
typedef struct Response
{
	GoogleArena arena;			/* holds all below */
	PubsubMessage *messages;
	int			nmessages;
	int			next;			/* first that was not handed out yet */
} Response;

typedef struct GoogleSource
{
	PubsubSource base;
	dlist_node	node;			/* in GoogleSession.sources */
	GoogleSession *session;
	GoogleHttp *http;
	GoogleHold *hold;
	GoogleOrphan *orphan;		/* allocated early: close must not fail */
	uint32		wants;
	int			fetch_size;
	int			poll_timeout;	/* ms */
	int64		limit;			/* 0 = none */
	int64		received;

	GoogleCall *look;			/* GetSubscription */
	PubsubRange range;
	char	   *topic;

	GoogleCall *pull;
	int			pull_timeout;	/* ms */
	int64		pull_at;		/* not before */
	int			nempty;			/* empty pulls in a row */
	int64		news_at;		/* the last message, or the start */
	int64		message_bytes;	/* average */
	Response   *response;
} GoogleSource;

static PubsubStatus use_subscription(GoogleSource *source,
									 PubsubRanges *ranges,
									 PubsubError *error);
static bool start_pull(GoogleSource *source, int max_messages,
					   PubsubError *error);
static PubsubStatus finish_pull(GoogleSource *source, PubsubBatch *batch,
								PubsubError *error);
static PubsubStatus take_response(GoogleSource *source, PubsubError *error);
static bool fill_message(GoogleSource *source, PubsubMessage *message,
						 const GooglePb__ReceivedMessage *received,
						 GoogleArena *arena);
static bool is_idle(const GoogleSource *source);
static void leave_pull(GoogleSource *source);
static void give_back_rest(GoogleSource *source);
static void free_response(GoogleSource *source);

static PubsubSource *
google_source_open(PubsubSession *base, const PubsubSourceSpec *spec,
				   PubsubError *error)
{
	GoogleSession *session = base->state;
	const PubsubOptions *options = spec->options;
	GoogleSource *source = calloc(1, sizeof(GoogleSource));

	if (source == NULL)
	{
		google_error_memory(error);
		return NULL;
	}
	source->base.session = base;
	source->session = session;
	source->wants = spec->wants;
	source->limit = spec->limit;
	source->fetch_size = options->fetch_size > 0 ?
		Min(options->fetch_size, GOOGLE_MAX_PULL) : GOOGLE_MAX_PULL;
	source->poll_timeout = options->poll_timeout;

	/* a pull must end before ring 1 takes the silence for a failure */
	source->pull_timeout = Max(Min(options->poll_timeout,
								   session->client.request_timeout / 2), 1);
	source->pull_timeout = Min(source->pull_timeout, PULL_MS);

	source->orphan = calloc(1, sizeof(GoogleOrphan));
	source->hold = google_hold_create(&session->leases,
									  options->subscription);
	if (source->orphan == NULL || source->hold == NULL)
		google_error_memory(error);
	else
	{
		source->hold->deadline_ms = options->ack_deadline;
		source->hold->max_lease_ms = options->max_lease;
		source->hold->consume = spec->consume;
		source->http = google_session_take_http(session, error);
	}
	dlist_push_tail(&session->sources, &source->node);
	if (source->http == NULL)
	{
		google_source_close(&source->base);
		return NULL;
	}
	return &source->base;
}

/* Of GoogleSession.sources */
PubsubSource *
google_source_base(dlist_node *node)
{
	return &dlist_container(GoogleSource, node, node)->base;
}

static int
google_source_event_fd(PubsubSource *base)
{
	GoogleSource *source = (GoogleSource *) base;

	return source->http ? google_http_fd(source->http) : -1;
}

/*
 * google_source_resolve
 *	  Looks the subscription up.
 */
static PubsubStatus
google_source_resolve(PubsubSource *base, int slice_ms, PubsubRanges *ranges,
					  PubsubError *error)
{
	GoogleSource *source = (GoogleSource *) base;
	PubsubStatus status;

	if (source->look == NULL)
	{
		GooglePb__SubscriptionRequest request =
		GOOGLE_PB__SUBSCRIPTION_REQUEST__INIT;

		request.subscription = source->hold->subscription;
		source->look = google_call_create(&source->session->client,
										  GOOGLE_GET_SUBSCRIPTION,
										  source->hold->subscription);
		if (source->look == NULL ||
			!google_call_pack(source->look, &request.base))
		{
			google_error_memory(error);
			return PUBSUB_FAILED;
		}
		google_call_start(source->look, source->http,
						  source->session->client.request_timeout);
	}

	switch (google_call_step(source->look, slice_ms))
	{
		case GOOGLE_CALL_OK:
			status = use_subscription(source, ranges, error);
			break;
		case GOOGLE_CALL_FAILED:
			if (source->look->status == GOOGLE_STATUS_PERMISSION_DENIED)
			{
				/* who may pull need not be allowed to look */
				status = use_subscription(source, ranges, error);
				break;
			}
			*error = source->look->error;
			google_error_object(error, "subscription",
									source->hold->subscription);
			status = PUBSUB_FAILED;
			break;
		case GOOGLE_CALL_WAITING:
			*error = source->look->error;
			return PUBSUB_AGAIN;
		default:
			return PUBSUB_AGAIN;
	}
	google_call_free(source->look);
	source->look = NULL;
	return status;
}

/*
 * use_subscription
 *	  Takes over what GetSubscription said, or what has to be assumed.
 */
static PubsubStatus
use_subscription(GoogleSource *source, PubsubRanges *ranges,
				 PubsubError *error)
{
	GoogleHold *hold = source->hold;
	GooglePb__Subscription *subscription = NULL;

	hold->initial_ms = UNKNOWN_LEASE_MS;
	if (source->look->state == GOOGLE_CALL_OK)
	{
		size_t		len;
		const uint8_t *answer = google_call_answer(source->look, &len);

		subscription = google_pb__subscription__unpack(NULL, len, answer);
		if (subscription == NULL)
		{
			pubsub_error_set(error, PUBSUB_ERROR_OTHER,
							 "The answer of the server could not be parsed.");
			return PUBSUB_FAILED;
		}
		if (subscription->detached)
		{
			google_pb__subscription__free_unpacked(subscription, NULL);
			pubsub_error_set(error, PUBSUB_ERROR_OTHER,
							 "The subscription is detached from its topic.");
			google_error_object(error, "subscription", hold->subscription);
			return PUBSUB_FAILED;
		}
		if (subscription->ack_deadline_seconds > 0)
			hold->initial_ms = subscription->ack_deadline_seconds * 1000;
		if (subscription->enable_exactly_once_delivery)
		{
			hold->max_ids = GOOGLE_MAX_IDS_CHECKED;
			hold->deadline_ms = Max(hold->deadline_ms,
									EXACTLY_ONCE_LEASE_MS);
		}
		free(source->topic);
		source->topic = NULL;

		/* the name stands for a topic that was deleted */
		if (subscription->topic[0] != '\0' &&
			strcmp(subscription->topic, "_deleted-topic_") != 0)
			source->topic = strdup(subscription->topic);
		google_pb__subscription__free_unpacked(subscription, NULL);
	}

	memset(&source->range, 0, sizeof(source->range));
	source->range.partition = -1;
	ranges->nranges = 1;
	ranges->ranges = &source->range;
	ranges->topic = source->topic;
	return PUBSUB_OK;
}

static PubsubStatus
google_source_assign(PubsubSource *base,
					 PubsubRanges *ranges pg_attribute_unused(),
					 PubsubError *error)
{
	GoogleSource *source = (GoogleSource *) base;

	/* before there is anything that only the thread could give back */
	if (!google_leases_start_thread(&source->session->leases, error))
		return PUBSUB_FAILED;
	source->news_at = google_now_ms();
	return PUBSUB_OK;
}

/*
 * google_source_poll
 *	  Hands out what is there; else looks after the pull, or starts one.
 */
static PubsubStatus
google_source_poll(PubsubSource *base, int max_messages, PubsubBatch *batch,
				   PubsubError *error)
{
	GoogleSource *source = (GoogleSource *) base;
	Response   *response;

	if (source->response == NULL)
	{
		google_http_run(source->http, 0);
		if (source->pull)
		{
			PubsubStatus status = finish_pull(source, batch, error);

			if (status == PUBSUB_FAILED)
				return status;
		}
	}

	response = source->response;
	if (response)
	{
		batch->messages = response->messages + response->next;
		batch->nmessages = Min(max_messages,
							   response->nmessages - response->next);
		response->next += batch->nmessages;
		return PUBSUB_OK;
	}

	if (source->pull == NULL)
	{
		if (is_idle(source))
		{
			batch->reason = PUBSUB_STOP_IDLE;
			return PUBSUB_DONE;
		}
		if (google_now_ms() < source->pull_at)
			google_http_wake_at(source->http, source->pull_at);
		else if (!start_pull(source, max_messages, error))
			return PUBSUB_FAILED;
		/* the descriptor is readable now, for the pull to be sent */
	}
	return PUBSUB_AGAIN;
}

/*
 * start_pull
 *	  Asks for as many messages as are wanted, within reason.
 */
static bool
start_pull(GoogleSource *source, int max_messages, PubsubError *error)
{
	GooglePb__PullRequest request = GOOGLE_PB__PULL_REQUEST__INIT;
	int64		want = Min(max_messages, source->fetch_size);

	if (source->limit > source->received)
		want = Min(want, source->limit - source->received);
	if (source->message_bytes > 0)
		want = Min(want, Max(PULL_BYTES / source->message_bytes, 1));

	request.subscription = source->hold->subscription;
	request.max_messages = (int32) want;
	source->pull = google_call_create(&source->session->client, GOOGLE_PULL,
									  source->hold->subscription);
	if (source->pull == NULL || !google_call_pack(source->pull, &request.base))
	{
		google_call_free(source->pull);
		source->pull = NULL;
		google_error_memory(error);
		return false;
	}
	source->pull->grace_ms = PULL_GRACE_MS;
	google_call_start(source->pull, source->http, source->pull_timeout);
	return true;
}

/*
 * finish_pull
 *	  Looks whether the pull is through.
 */
static PubsubStatus
finish_pull(GoogleSource *source, PubsubBatch *batch, PubsubError *error)
{
	PubsubStatus status = PUBSUB_AGAIN;
	int64		now = google_now_ms();

	switch (google_call_check(source->pull))
	{
		case GOOGLE_CALL_OK:
			status = take_response(source, error);
			break;
		case GOOGLE_CALL_FAILED:
			if (source->pull->status == GOOGLE_STATUS_DEADLINE_EXCEEDED)
				break;			/* how the service says "nothing" */
			*error = source->pull->error;
			google_error_object(error, "subscription",
									source->hold->subscription);
			status = PUBSUB_FAILED;
			break;
		case GOOGLE_CALL_WAITING:
			*error = source->pull->error;
			return PUBSUB_AGAIN;
		default:
			return PUBSUB_AGAIN;
	}

	if (status == PUBSUB_AGAIN)
	{
		batch->progressed = true;
		source->nempty++;
		if (now - source->pull->started_at < EARLY_MS)
			source->pull_at = now + Min(PAUSE_MS, source->poll_timeout / 2);
	}
	else
	{
		source->nempty = 0;
		source->news_at = now;
	}
	google_call_free(source->pull);
	source->pull = NULL;
	return status;
}

static void *
arena_alloc(void *arena, size_t size)
{
	return google_arena_alloc(arena, size);
}

static void
arena_free(void *arena pg_attribute_unused(),
		   void *pointer pg_attribute_unused())
{
}

/*
 * take_response
 *	  Unpacks the answer and registers its leases.  AGAIN = it is empty.
 */
static PubsubStatus
take_response(GoogleSource *source, PubsubError *error)
{
	size_t		len;
	const uint8_t *answer = google_call_answer(source->pull, &len);
	Response   *response;
	GooglePb__PullResponse *packed;
	ProtobufCAllocator allocator = {0};
	size_t		n;

	if (len == 0)
		return PUBSUB_AGAIN;
	response = calloc(1, sizeof(Response));
	if (response == NULL)
	{
		google_error_memory(error);
		return PUBSUB_FAILED;
	}
	source->response = response;

	allocator.alloc = arena_alloc;
	allocator.free = arena_free;
	allocator.allocator_data = &response->arena;
	packed = google_pb__pull_response__unpack(&allocator, len, answer);
	if (packed == NULL)
	{
		free_response(source);
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "The answer of the server could not be parsed.");
		return PUBSUB_FAILED;
	}
	n = packed->n_received_messages;
	if (n == 0)
	{
		free_response(source);
		return PUBSUB_AGAIN;
	}

	response->messages = google_arena_alloc(&response->arena,
											n * sizeof(PubsubMessage));
	for (size_t i = 0; i < n && response->messages; i++)
	{
		if (!fill_message(source, &response->messages[i],
						  packed->received_messages[i], &response->arena))
			response->messages = NULL;
	}

	/* from here on we answer for the messages, whatever comes */
	if (!google_leases_add(&source->session->leases, source->hold, packed,
						   response->messages) ||
		response->messages == NULL)
	{
		if (response->messages)
			google_leases_give_back(&source->session->leases,
									response->messages, (int) n);
		free_response(source);
		google_error_memory(error);
		return PUBSUB_FAILED;
	}
	response->nmessages = (int) n;
	source->received += n;
	source->message_bytes = len / n + 1;
	return PUBSUB_OK;
}

/*
 * fill_message
 *	  Fills in a message; the bytes stay where they are.
 *
 * Pub/Sub does not tell empty data from none, nor an empty ordering key.
 */
static bool
fill_message(GoogleSource *source, PubsubMessage *message,
			 const GooglePb__ReceivedMessage *received, GoogleArena *arena)
{
	const GooglePb__PubsubMessage *packed = received->message;

	memset(message, 0, sizeof(PubsubMessage));
	message->data.data = "";
	message->time_ms = PUBSUB_NO_TIME;
	message->partition = -1;
	message->offset = -1;
	message->delivery_attempt = received->delivery_attempt;
	if (packed == NULL)
		return true;

	if (packed->data.len > 0)
	{
		message->data.data = (const char *) packed->data.data;
		message->data.len = (int) packed->data.len;
	}
	if (packed->ordering_key.len > 0)
	{
		message->key.data = (const char *) packed->ordering_key.data;
		message->key.len = (int) packed->ordering_key.len;
	}
	message->message_id.data = packed->message_id.len > 0 ?
		(const char *) packed->message_id.data : "";
	message->message_id.len = (int) packed->message_id.len;
	if (packed->publish_time)
	{
		message->time_ms = packed->publish_time->seconds * 1000 +
			packed->publish_time->nanos / 1000000;
		message->time_us = packed->publish_time->nanos / 1000 % 1000;
		message->time_type = PUBSUB_TIMESTAMP_PUBLISH;
	}

	if (packed->n_attributes == 0 ||
		(source->wants & PUBSUB_WANT_HEADERS) == 0)
		return true;
	message->headers = google_arena_alloc(arena, packed->n_attributes *
										  sizeof(PubsubHeader));
	if (message->headers == NULL)
		return false;
	for (size_t i = 0; i < packed->n_attributes; i++)
	{
		const GooglePb__Entry *entry = packed->attributes[i];
		PubsubHeader *header = &message->headers[i];

		header->name.data = entry->key.len > 0 ?
			(const char *) entry->key.data : "";
		header->name.len = (int) entry->key.len;
		header->value.data = entry->value.len > 0 ?
			(const char *) entry->value.data : "";
		header->value.len = (int) entry->value.len;
	}
	message->nheaders = (int) packed->n_attributes;
	return true;
}

/*
 * is_idle
 *	  Is it time to give up?  The emulator ends a pull about a second early,
 *	  the service may end one at any time; hence both conditions.
 */
static bool
is_idle(const GoogleSource *source)
{
	return source->nempty >= 2 &&
		google_now_ms() - source->news_at >=
		(int64) source->poll_timeout * 9 / 10;
}

static void
google_source_release(PubsubSource *base, PubsubBatch *batch)
{
	GoogleSource *source = (GoogleSource *) base;

	if (source->hold->consume)
		google_leases_give_back(&source->session->leases, batch->messages,
								batch->nmessages);
	if (source->response->next == source->response->nmessages)
		free_response(source);
}

/*
 * google_source_finish
 *	  Gives back what was not handed out, or all of a peek, and waits until
 *	  that is done.
 */
static PubsubStatus
google_source_finish(PubsubSource *base, int slice_ms, PubsubError *error)
{
	GoogleSource *source = (GoogleSource *) base;
	PubsubStatus status;

	leave_pull(source);
	give_back_rest(source);
	status = google_leases_wait(&source->session->leases, source->hold,
								slice_ms, error);
	if (status == PUBSUB_FAILED)
		google_error_object(error, "subscription",
							source->hold->subscription);
	return status;
}

/*
 * google_source_close
 *	  Frees the source, also a half-made one.  The session's thread gives back
 *	  what is left.
 */
void
google_source_close(PubsubSource *base)
{
	GoogleSource *source = (GoogleSource *) base;
	GoogleSession *session = source->session;

	leave_pull(source);
	if (source->hold)
		give_back_rest(source);
	free_response(source);
	if (source->look)
	{
		/* a connection with a request cut off is not worth keeping */
		google_call_free(source->look);
		google_http_destroy(source->http);
		source->http = NULL;
	}
	google_session_return_http(session, source->http);
	google_hold_unref(&session->leases, source->hold);
	free(source->orphan);
	free(source->topic);
	dlist_delete(&source->node);
	free(source);
}

/*
 * leave_pull
 *	  Leaves a pull in flight to the thread, with the connection it is on.
 */
static void
leave_pull(GoogleSource *source)
{
	GoogleOrphan *orphan = source->orphan;

	if (source->pull == NULL)
		return;
	google_http_run(source->http, 0);
	if (source->pull->state != GOOGLE_CALL_RUNNING)
	{
		/* between two attempts: there is nothing to be lost */
		google_call_free(source->pull);
		source->pull = NULL;
		return;
	}
	source->orphan = NULL;
	orphan->http = source->http;
	orphan->pull = source->pull;
	orphan->hold = source->hold;
	source->http = NULL;
	source->pull = NULL;
	google_leases_adopt(&source->session->leases, orphan);
}

/*
 * give_back_rest
 *	  Gives back what the reader did not get.  What ring 1 has marked is its
 *	  own; of a batch that was never released, too.
 */
static void
give_back_rest(GoogleSource *source)
{
	GoogleLeases *leases = &source->session->leases;

	if (!source->hold->consume)
		google_leases_give_back_all(leases, source->hold);
	else if (source->response)
		google_leases_give_back(leases, source->response->messages,
								source->response->nmessages);
}

static void
free_response(GoogleSource *source)
{
	if (source->response)
	{
		google_arena_free(&source->response->arena);
		free(source->response);
		source->response = NULL;
	}
}

const PubsubSourceRoutine google_source_routine = {
	.open = google_source_open,
	.event_fd = google_source_event_fd,
	.resolve = google_source_resolve,
	.lookup = NULL,
	.assign = google_source_assign,
	.poll = google_source_poll,
	.release = google_source_release,
	.finish = google_source_finish,
	.close = google_source_close,
	.prepare_acks = google_prepare_acks,
	.send_acks = google_send_acks,
	.abandon_acks = google_abandon_acks,
	.drop_acks = google_drop_acks,
};
