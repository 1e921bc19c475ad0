/*-------------------------------------------------------------------------
 *
 * google_sink.c
 *		Publishing
 *
 * Messages are put into Publish requests as they come, in wire format, so that
 * the size of a request is known to the byte.  A request carries one ordering
 * key only, and of a key only one request is under way at a time: that keeps
 * the order.  A "lane" is what is waiting under one key; the lane of messages
 * without a key has no such restriction.
 *
 * A request is accepted or refused as a whole.
 *
 * IDENTIFICATION
 *		src/google/google_sink.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "google/google.h"

#define DEFAULT_BATCH_SIZE		100
#define DEFAULT_BATCH_BYTES		7500000

/* Requests in flight at a time */
#define MAX_IN_FLIGHT			8

/* put() says AGAIN beyond these */
#define MAX_QUEUED				10000	/* messages */
#define MAX_QUEUED_BYTES		(32 * 1024 * 1024)

#define LANE_BUCKETS			1024

/* Field numbers of PublishRequest, PubsubMessage, and of a map's entry */
#define FIELD_TOPIC				1
#define FIELD_MESSAGES			2
#define FIELD_DATA				1
#define FIELD_ATTRIBUTES		2
#define FIELD_ORDERING_KEY		5
#define FIELD_NAME				1
#define FIELD_VALUE				2

/* One Publish request */
typedef struct Batch
{
	dlist_node	node;			/* in its lane, or in flight */
	struct Lane *lane;
	GoogleCall *call;
	int			nmessages;
	int64		first_no;		/* number of its first message */
	int64		bytes;			/* of its messages */
} Batch;

typedef struct Lane
{
	struct Lane *next;			/* in its bucket */
	uint32		hash;
	dlist_node	node;			/* in full or partial */
	bool		listed;
	bool		busy;			/* has a key and a request in flight */
	dlist_head	batches;		/* all but the last are full */
	int			key_len;
	char		key[FLEXIBLE_ARRAY_MEMBER];
} Lane;

typedef struct GoogleSink
{
	PubsubSink	base;
	dlist_node	node;			/* in GoogleSession.sinks */
	GoogleSession *session;
	GoogleHttp *http;
	char	   *topic;
	int			batch_size;
	int			batch_bytes;

	GoogleCall *look;			/* GetTopic */
	Lane	   *buckets[LANE_BUCKETS];
	dlist_head	full;			/* lanes that may send, with a full batch */
	dlist_head	partial;		/* lanes that may send, but could wait */
	dlist_head	in_flight;		/* batches */
	int			nin_flight;
	int64		nput;
	int			nqueued;		/* messages not confirmed */
	int64		queued_bytes;
	bool		failed;
	PubsubError error;
} GoogleSink;

static size_t message_size(const PubsubMessage *message);
static void append_message(GoogleBuffer *buffer, const PubsubMessage *message,
						   size_t size);
static bool check_attribute(const PubsubMessage *message, int i,
							PubsubError *error);
static bool is_utf8(const PubsubBytes *text);
static Lane *get_lane(GoogleSink *sink, const PubsubBytes *key);
static void list_lane(GoogleSink *sink, Lane *lane);
static void unlist_lane(Lane *lane);
static void free_lane(GoogleSink *sink, Lane *lane);
static Batch *get_batch(GoogleSink *sink, Lane *lane, size_t size);
static bool batch_is_full(const GoogleSink *sink, const Batch *batch,
						  size_t more);
static void free_batch(Batch *batch);
static bool start_batches(GoogleSink *sink, bool flush);
static bool finish_batches(GoogleSink *sink, PubsubError *error);
static void finish_batch(GoogleSink *sink, Batch *batch);

static PubsubSink *
google_sink_open(PubsubSession *base, const PubsubSinkSpec *spec,
				 PubsubError *error)
{
	GoogleSession *session = base->state;
	GoogleSink *sink = calloc(1, sizeof(GoogleSink));

	if (sink == NULL)
	{
		google_error_memory(error);
		return NULL;
	}
	sink->base.session = base;
	sink->session = session;
	sink->batch_size = spec->options->batch_size > 0 ?
		Min(spec->options->batch_size, GOOGLE_MAX_BATCH) : DEFAULT_BATCH_SIZE;
	sink->batch_bytes = spec->options->batch_bytes > 0 ?
		Min(spec->options->batch_bytes, GOOGLE_MAX_REQUEST) :
		DEFAULT_BATCH_BYTES;
	dlist_init(&sink->full);
	dlist_init(&sink->partial);
	dlist_init(&sink->in_flight);
	dlist_push_tail(&session->sinks, &sink->node);

	sink->topic = strdup(spec->topic);
	if (sink->topic == NULL)
		google_error_memory(error);
	else
		sink->http = google_session_take_http(session, error);
	if (sink->http == NULL)
	{
		google_sink_close(&sink->base);
		return NULL;
	}
	return &sink->base;
}

/* Of GoogleSession.sinks */
PubsubSink *
google_sink_base(dlist_node *node)
{
	return &dlist_container(GoogleSink, node, node)->base;
}

static int
google_sink_event_fd(PubsubSink *base)
{
	return google_http_fd(((GoogleSink *) base)->http);
}

/*
 * google_sink_ready
 *	  Makes sure that the topic exists.
 */
static PubsubStatus
google_sink_ready(PubsubSink *base, int slice_ms, PubsubError *error)
{
	GoogleSink *sink = (GoogleSink *) base;
	PubsubStatus status = PUBSUB_OK;

	if (sink->look == NULL)
	{
		GooglePb__TopicRequest request = GOOGLE_PB__TOPIC_REQUEST__INIT;

		request.topic = sink->topic;
		sink->look = google_call_create(&sink->session->client,
										GOOGLE_GET_TOPIC, sink->topic);
		if (sink->look == NULL || !google_call_pack(sink->look, &request.base))
		{
			google_error_memory(error);
			return PUBSUB_FAILED;
		}
		google_call_start(sink->look, sink->http,
						  sink->session->client.request_timeout);
	}

	switch (google_call_step(sink->look, slice_ms))
	{
		case GOOGLE_CALL_OK:
			break;
		case GOOGLE_CALL_FAILED:
			/* who may publish need not be allowed to look */
			if (sink->look->status == GOOGLE_STATUS_PERMISSION_DENIED)
				break;
			*error = sink->look->error;
			google_error_object(error, "topic", sink->topic);
			status = PUBSUB_FAILED;
			break;
		case GOOGLE_CALL_WAITING:
			*error = sink->look->error;
			return PUBSUB_AGAIN;
		default:
			return PUBSUB_AGAIN;
	}
	google_call_free(sink->look);
	sink->look = NULL;
	return status;
}

/* ---------- messages ---------- */

/*
 * google_sink_check
 *	  Checks a message against the limits of the service.
 *
 * The service refuses a request as a whole, and does not say which message it
 * was; the emulator accepts nearly everything.  So this is the place.
 */
static PubsubStatus
google_sink_check(PubsubSink *base, const PubsubMessage *message,
				  PubsubError *error)
{
	GoogleSink *sink = (GoogleSink *) base;
	size_t		size;

	if (message->partition >= 0 || message->offset >= 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "Pub/Sub has neither partitions nor offsets.");
		return PUBSUB_FAILED;
	}
	if (message->data.len == 0 && message->nheaders == 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "A Pub/Sub message needs data or at least one attribute.");
		return PUBSUB_FAILED;
	}
	if (message->key.len > GOOGLE_MAX_KEY)
	{
		pubsub_error_set(error, PUBSUB_ERROR_TOO_LARGE,
						 "The ordering key has %d bytes, Pub/Sub allows %d.",
						 message->key.len, GOOGLE_MAX_KEY);
		return PUBSUB_FAILED;
	}
	if (!is_utf8(&message->key))
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "The ordering key is not valid UTF-8.");
		return PUBSUB_FAILED;
	}
	if (message->nheaders > GOOGLE_MAX_ATTRIBUTES)
	{
		pubsub_error_set(error, PUBSUB_ERROR_TOO_LARGE,
						 "The message has %d attributes, Pub/Sub allows %d.",
						 message->nheaders, GOOGLE_MAX_ATTRIBUTES);
		return PUBSUB_FAILED;
	}
	for (int i = 0; i < message->nheaders; i++)
	{
		if (!check_attribute(message, i, error))
			return PUBSUB_FAILED;
	}

	size = google_field_bytes_size(strlen(sink->topic)) +
		google_field_bytes_size(message_size(message));
	if (size > GOOGLE_MAX_REQUEST)
	{
		pubsub_error_set(error, PUBSUB_ERROR_TOO_LARGE,
						 "The message has %zu bytes, Pub/Sub allows %d.",
						 size, GOOGLE_MAX_REQUEST);
		return PUBSUB_FAILED;
	}
	return PUBSUB_OK;
}

static bool
check_attribute(const PubsubMessage *message, int i, PubsubError *error)
{
	const PubsubBytes *name = &message->headers[i].name;
	const PubsubBytes *value = &message->headers[i].value;
	PubsubErrorKind kind = PUBSUB_ERROR_INVALID;
	char		why[200];
	char		shown[100];

	why[0] = '\0';
	if (name->len == 0)
		strlcpy(why, "The name of an attribute is empty.", sizeof(why));
	else if (name->len > GOOGLE_MAX_NAME)
	{
		kind = PUBSUB_ERROR_TOO_LARGE;
		snprintf(why, sizeof(why),
				 "The name of the attribute has %d bytes, Pub/Sub allows %d.",
				 name->len, GOOGLE_MAX_NAME);
	}
	else if (!is_utf8(name))
		strlcpy(why, "The name of the attribute is not valid UTF-8.",
				sizeof(why));
	else if (name->len >= 4 && memcmp(name->data, "goog", 4) == 0)
		strlcpy(why, "Names that begin with \"goog\" are reserved.",
				sizeof(why));
	else if (value->data == NULL)
		strlcpy(why, "The attribute has no value; Pub/Sub knows no null.",
				sizeof(why));
	else if (value->len > GOOGLE_MAX_VALUE)
	{
		kind = PUBSUB_ERROR_TOO_LARGE;
		snprintf(why, sizeof(why),
				 "The value of the attribute has %d bytes, Pub/Sub allows %d.",
				 value->len, GOOGLE_MAX_VALUE);
	}
	else if (!is_utf8(value))
		strlcpy(why, "The value of the attribute is not valid UTF-8.",
				sizeof(why));
	else
	{
		for (int k = 0; k < i; k++)
		{
			if (message->headers[k].name.len == name->len &&
				memcmp(message->headers[k].name.data, name->data,
					   name->len) == 0)
				strlcpy(why, "The attribute is given twice.", sizeof(why));
		}
	}
	if (why[0] == '\0')
		return true;

	pubsub_error_set(error, kind, "%s", why);
	if (name->len > 0)
	{
		int			len = Min(name->len, (int) sizeof(shown) - 4);

		/* do not cut a character in two */
		if (len < name->len)
		{
			while (len > 0 && (name->data[len] & 0xC0) == 0x80)
				len--;
		}
		snprintf(shown, sizeof(shown), "%.*s%s", len, name->data,
				 len < name->len ? "..." : "");
		google_error_object(error, "attribute", shown);
	}
	return false;
}

static bool
is_utf8(const PubsubBytes *text)
{
	return text->len == 0 ||
		pg_encoding_verifymbstr(PG_UTF8, text->data, text->len) == text->len;
}

static size_t
attribute_size(const PubsubHeader *header)
{
	return google_field_bytes_size(header->name.len) +
		google_field_bytes_size(header->value.len);
}

/*
 * message_size
 *	  Size of a PubsubMessage in wire format.
 */
static size_t
message_size(const PubsubMessage *message)
{
	size_t		size = 0;

	if (message->data.len > 0)
		size += google_field_bytes_size(message->data.len);
	for (int i = 0; i < message->nheaders; i++)
		size += google_field_bytes_size(attribute_size(&message->headers[i]));
	if (message->key.len > 0)
		size += google_field_bytes_size(message->key.len);
	return size;
}

/*
 * append_message
 *	  Appends a message to a Publish request.
 */
static void
append_message(GoogleBuffer *buffer, const PubsubMessage *message, size_t size)
{
	google_buffer_varint(buffer, (FIELD_MESSAGES << 3) | 2);
	google_buffer_varint(buffer, size);
	if (message->data.len > 0)
		google_buffer_field_bytes(buffer, FIELD_DATA, message->data.data,
								  message->data.len);
	for (int i = 0; i < message->nheaders; i++)
	{
		const PubsubHeader *header = &message->headers[i];

		google_buffer_varint(buffer, (FIELD_ATTRIBUTES << 3) | 2);
		google_buffer_varint(buffer, attribute_size(header));
		google_buffer_field_bytes(buffer, FIELD_NAME, header->name.data,
								  header->name.len);
		google_buffer_field_bytes(buffer, FIELD_VALUE, header->value.data,
								  header->value.len);
	}
	if (message->key.len > 0)
		google_buffer_field_bytes(buffer, FIELD_ORDERING_KEY,
								  message->key.data, message->key.len);
}

/* ---------- the queue ---------- */

static PubsubStatus
google_sink_put(PubsubSink *base, const PubsubMessage *message,
				PubsubError *error)
{
	GoogleSink *sink = (GoogleSink *) base;
	size_t		size = message_size(message);
	Lane	   *lane;
	Batch	   *batch;

	if (sink->failed)
	{
		*error = sink->error;
		return PUBSUB_FAILED;
	}
	if (sink->nqueued >= MAX_QUEUED ||
		(sink->nqueued > 0 && sink->queued_bytes + size > MAX_QUEUED_BYTES))
		return PUBSUB_AGAIN;

	lane = get_lane(sink, &message->key);
	batch = lane ? get_batch(sink, lane, size) : NULL;
	if (batch)
		append_message(&batch->call->request, message, size);
	if (batch == NULL || batch->call->request.failed)
	{
		google_error_memory(error);
		sink->error = *error;
		sink->failed = true;
		return PUBSUB_FAILED;
	}
	batch->nmessages++;
	batch->bytes += size;
	sink->nput++;
	sink->nqueued++;
	sink->queued_bytes += size;
	list_lane(sink, lane);
	return PUBSUB_OK;
}

/*
 * get_lane
 *	  Finds or makes the lane of a key.  NULL = out of memory.
 */
static Lane *
get_lane(GoogleSink *sink, const PubsubBytes *key)
{
	uint32		hash = 2166136261u; /* FNV-1a */
	Lane	   *lane;

	for (int i = 0; i < key->len; i++)
		hash = (hash ^ (unsigned char) key->data[i]) * 16777619u;

	for (lane = sink->buckets[hash % LANE_BUCKETS]; lane; lane = lane->next)
	{
		if (lane->hash == hash && lane->key_len == key->len &&
			(key->len == 0 || memcmp(lane->key, key->data, key->len) == 0))
			return lane;
	}

	lane = calloc(1, offsetof(Lane, key) + key->len);
	if (lane == NULL)
		return NULL;
	lane->hash = hash;
	dlist_init(&lane->batches);
	lane->key_len = key->len;
	if (key->len > 0)
		memcpy(lane->key, key->data, key->len);
	lane->next = sink->buckets[hash % LANE_BUCKETS];
	sink->buckets[hash % LANE_BUCKETS] = lane;
	return lane;
}

/*
 * list_lane
 *	  Puts a lane where it belongs after something has changed in it.
 */
static void
list_lane(GoogleSink *sink, Lane *lane)
{
	Batch	   *batch;

	unlist_lane(lane);
	if (lane->busy)
		return;
	if (dlist_is_empty(&lane->batches))
	{
		free_lane(sink, lane);
		return;
	}
	batch = dlist_head_element(Batch, node, &lane->batches);
	dlist_push_tail(dlist_has_next(&lane->batches, &batch->node) ||
					batch_is_full(sink, batch, 0) ?
					&sink->full : &sink->partial, &lane->node);
	lane->listed = true;
}

static void
unlist_lane(Lane *lane)
{
	if (lane->listed)
		dlist_delete(&lane->node);
	lane->listed = false;
}

static void
free_lane(GoogleSink *sink, Lane *lane)
{
	Lane	  **link = &sink->buckets[lane->hash % LANE_BUCKETS];

	while (*link != lane)
		link = &(*link)->next;
	*link = lane->next;
	free(lane);
}

/*
 * get_batch
 *	  Finds the batch of a lane that has room, or makes one.
 */
static Batch *
get_batch(GoogleSink *sink, Lane *lane, size_t size)
{
	Batch	   *batch;

	if (!dlist_is_empty(&lane->batches))
	{
		batch = dlist_tail_element(Batch, node, &lane->batches);
		if (!batch_is_full(sink, batch, google_field_bytes_size(size)))
			return batch;
	}

	batch = calloc(1, sizeof(Batch));
	if (batch == NULL)
		return NULL;
	batch->lane = lane;
	batch->first_no = sink->nput;
	batch->call = google_call_create(&sink->session->client, GOOGLE_PUBLISH,
									 sink->topic);
	if (batch->call == NULL)
	{
		free(batch);
		return NULL;
	}
	google_buffer_field_bytes(&batch->call->request, FIELD_TOPIC, sink->topic,
							  strlen(sink->topic));
	dlist_push_tail(&lane->batches, &batch->node);
	return batch;
}

/*
 * batch_is_full
 *	  Is there no room for this many bytes more?  An empty batch takes any
 *	  message.
 */
static bool
batch_is_full(const GoogleSink *sink, const Batch *batch, size_t more)
{
	return batch->nmessages > 0 &&
		(batch->nmessages >= sink->batch_size ||
		 batch->call->request.len + more > (size_t) sink->batch_bytes);
}

static void
free_batch(Batch *batch)
{
	google_call_free(batch->call);
	free(batch);
}

/* ---------- sending ---------- */

/*
 * google_sink_drain
 *	  Takes in answers and starts requests, until there is nothing of either.
 *
 * Stopping short of that would be a mistake: an answer that has come in does
 * not make the descriptor readable again.
 */
static PubsubStatus
google_sink_drain(PubsubSink *base, bool flush, PubsubError *error)
{
	GoogleSink *sink = (GoogleSink *) base;
	bool		busy = true;

	while (busy)
	{
		google_http_run(sink->http, 0);
		busy = finish_batches(sink, error);
		if (sink->failed)
		{
			*error = sink->error;
			return PUBSUB_FAILED;
		}

		/* with a full queue there is nothing to linger for */
		if (start_batches(sink, flush || sink->nqueued >= MAX_QUEUED ||
						  sink->queued_bytes > MAX_QUEUED_BYTES / 2))
			busy = true;
	}
	return sink->nqueued == 0 ? PUBSUB_DONE : PUBSUB_AGAIN;
}

/*
 * start_batches
 *	  Starts requests, as many as may be in flight.  False = none.
 */
static bool
start_batches(GoogleSink *sink, bool flush)
{
	bool		started = false;

	while (sink->nin_flight < MAX_IN_FLIGHT)
	{
		Lane	   *lane;
		Batch	   *batch;

		if (!dlist_is_empty(&sink->full))
			lane = dlist_head_element(Lane, node, &sink->full);
		else if (flush && !dlist_is_empty(&sink->partial))
			lane = dlist_head_element(Lane, node, &sink->partial);
		else
			break;

		batch = dlist_container(Batch, node,
								dlist_pop_head_node(&lane->batches));
		dlist_push_tail(&sink->in_flight, &batch->node);
		sink->nin_flight++;
		if (lane->key_len > 0)
			lane->busy = true;
		else
			batch->lane = NULL; /* nothing waits for it */
		list_lane(sink, lane);
		google_call_start(batch->call, sink->http,
						  sink->session->client.request_timeout);
		started = true;
	}
	return started;
}

/*
 * finish_batches
 *	  Takes in the answers that are there.  False = none.
 */
static bool
finish_batches(GoogleSink *sink, PubsubError *error)
{
	dlist_mutable_iter iter;
	bool		finished = false;

	dlist_foreach_modify(iter, &sink->in_flight)
	{
		Batch	   *batch = dlist_container(Batch, node, iter.cur);

		switch (google_call_check(batch->call))
		{
			case GOOGLE_CALL_OK:
			case GOOGLE_CALL_FAILED:
				finish_batch(sink, batch);
				finished = true;
				break;
			case GOOGLE_CALL_WAITING:
				*error = batch->call->error;
				break;
			default:
				break;
		}
		if (sink->failed)
			break;
	}
	return finished;
}

/*
 * finish_batch
 *	  The answer is there.  A failure is the whole sink's.
 */
static void
finish_batch(GoogleSink *sink, Batch *batch)
{
	GoogleCall *call = batch->call;
	size_t		nids = 0;

	if (call->state == GOOGLE_CALL_OK)
	{
		size_t		len;
		const uint8_t *answer = google_call_answer(call, &len);
		GooglePb__PublishResponse *response;

		response = google_pb__publish_response__unpack(NULL, len, answer);
		if (response)
		{
			nids = response->n_message_ids;
			google_pb__publish_response__free_unpacked(response, NULL);
		}
		if (nids != (size_t) batch->nmessages)
			pubsub_error_set(&call->error, PUBSUB_ERROR_OTHER,
							 "The service confirmed %zu of %d messages.",
							 nids, batch->nmessages);
	}
	if (call->state != GOOGLE_CALL_OK || nids != (size_t) batch->nmessages)
	{
		sink->failed = true;
		sink->error = call->error;
		google_error_object(&sink->error, "topic", sink->topic);
		if (batch->nmessages == 1)
			sink->error.message_no = batch->first_no;
		return;
	}

	sink->base.ndelivered += batch->nmessages;
	sink->nqueued -= batch->nmessages;
	sink->queued_bytes -= batch->bytes;
	dlist_delete(&batch->node);
	sink->nin_flight--;
	if (batch->lane)
	{
		batch->lane->busy = false;
		list_lane(sink, batch->lane);
	}
	free_batch(batch);
}

/*
 * google_sink_abandon
 *	  Forgets everything.  What is in flight may still be published.
 */
static void
google_sink_abandon(PubsubSink *base)
{
	GoogleSink *sink = (GoogleSink *) base;
	dlist_mutable_iter iter;

	/* a connection with a request cut off is not worth keeping */
	if (sink->nin_flight > 0 || sink->look)
	{
		dlist_foreach_modify(iter, &sink->in_flight)
			free_batch(dlist_container(Batch, node, iter.cur));
		google_call_free(sink->look);
		google_http_destroy(sink->http);
		dlist_init(&sink->in_flight);
		sink->nin_flight = 0;
		sink->look = NULL;
		sink->http = NULL;
	}
	for (int i = 0; i < LANE_BUCKETS; i++)
	{
		while (sink->buckets[i])
		{
			Lane	   *lane = sink->buckets[i];

			dlist_foreach_modify(iter, &lane->batches)
				free_batch(dlist_container(Batch, node, iter.cur));
			free_lane(sink, lane);
		}
	}
	dlist_init(&sink->full);
	dlist_init(&sink->partial);
}

/*
 * google_sink_close
 *	  Frees the sink, also a half-made one.
 */
void
google_sink_close(PubsubSink *base)
{
	GoogleSink *sink = (GoogleSink *) base;

	google_sink_abandon(base);
	google_session_return_http(sink->session, sink->http);
	dlist_delete(&sink->node);
	free(sink->topic);
	free(sink);
}

const PubsubSinkRoutine google_sink_routine = {
	.open = google_sink_open,
	.event_fd = google_sink_event_fd,
	.ready = google_sink_ready,
	.check = google_sink_check,
	.put = google_sink_put,
	.drain = google_sink_drain,
	.abandon = google_sink_abandon,
	.close = google_sink_close,
};
