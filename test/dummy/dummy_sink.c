/*-------------------------------------------------------------------------
 *
 * dummy_sink.c
 *		Publishing to the dummy brokers
 *
 * put() copies a message into a list, drain() delivers from it in order.
 *
 * IDENTIFICATION
 *		test/dummy/dummy_sink.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "dummy.h"

/* A message in flight; its memory is one piece */
typedef struct DummyPut
{
	dlist_node	node;
	int64		message_no;
	PubsubMessage message;
} DummyPut;

typedef struct DummySink
{
	PubsubSink	base;
	int			npartitions;
	int64		nput;
	int			nqueued;
	bool		lost;			/* a report that will never come */
	PubsubError failure;		/* what broke the sink for good */
	dlist_head	queue;			/* of DummyPut */
	char		topic[256];
	char		object[320];	/* for errors */
} DummySink;

/*
 * dummy_sink_open
 *	  Makes a sink.
 */
static PubsubSink *
dummy_sink_open(PubsubSession *session, const PubsubSinkSpec *spec,
				PubsubError *error)
{
	DummySink  *sink;

	if (dummy_obey(session, DUMMY_OPEN_SINK, 0, "", error) != PUBSUB_OK)
		return NULL;
	sink = calloc(1, sizeof(DummySink));
	if (sink == NULL)
	{
		(void) dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
		return NULL;
	}
	sink->base.ops = session->driver->sink;
	sink->base.session = session;
	dlist_init(&sink->queue);
	strlcpy(sink->topic, spec->topic, sizeof(sink->topic));
	snprintf(sink->object, sizeof(sink->object), "topic \"%s\"", spec->topic);
	dummy_live.sinks++;
	return &sink->base;
}

static int
dummy_sink_event_fd(PubsubSink *base)
{
	dummy_ncalls++;
	return -1;
}

/*
 * dummy_sink_ready
 *	  Logs in and looks for the topic.
 */
static PubsubStatus
dummy_sink_ready(PubsubSink *base, int slice_ms, PubsubError *error)
{
	DummySink  *sink = (DummySink *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;

	status = dummy_obey(base->session, DUMMY_READY, slice_ms,
						sink->object, error);
	if (status == PUBSUB_OK)
		status = dummy_log_in(base->session, error);
	if (status != PUBSUB_OK)
		return status;
	sink->npartitions = dummy_topic_partitions(state->dir, sink->topic);
	if (sink->npartitions < 0)
		return dummy_fail(error, PUBSUB_ERROR_NOT_FOUND, sink->object,
						  "the broker does not have it");
	return PUBSUB_OK;
}

/*
 * dummy_sink_check
 *	  Looks at one message as the broker would.
 */
static PubsubStatus
dummy_sink_check(PubsubSink *base, const PubsubMessage *message,
				 PubsubError *error)
{
	DummySink  *sink = (DummySink *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;

	status = dummy_obey(base->session, DUMMY_CHECK, 0, sink->object, error);
	if (status != PUBSUB_OK)
		return status;
	if (message->data.len > state->max_message)
		return dummy_fail(error, PUBSUB_ERROR_TOO_LARGE, sink->object,
						  "the message has %d bytes, the limit is %d",
						  message->data.len, state->max_message);
	if (message->partition >= sink->npartitions)
	{
		char		object[320];

		snprintf(object, sizeof(object), "partition %d of topic \"%s\"",
				 message->partition, sink->topic);
		return dummy_fail(error, PUBSUB_ERROR_NOT_FOUND, object,
						  "the topic has %d partitions", sink->npartitions);
	}
	if (dummy_is_queue(base->session) && message->nheaders == 0 &&
		message->data.len == 0)
		return dummy_fail(error, PUBSUB_ERROR_INVALID, sink->object,
						  "the message has neither data nor attributes");
	return PUBSUB_OK;
}

/*
 * dummy_copy
 *	  Copies bytes to where memory has room, and moves on there.
 */
static void
dummy_copy(PubsubBytes *bytes, char **memory)
{
	if (bytes->data == NULL)
		return;
	if (bytes->len > 0)
		memcpy(*memory, bytes->data, bytes->len);
	bytes->data = *memory;
	*memory += bytes->len;
}

/*
 * dummy_sink_put
 *	  Queues a copy of a message.
 */
static PubsubStatus
dummy_sink_put(PubsubSink *base, const PubsubMessage *message,
			   PubsubError *error)
{
	DummySink  *sink = (DummySink *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;
	DummyPut   *put;
	size_t		size = sizeof(DummyPut);
	char	   *memory;
	int			i;

	status = dummy_obey(base->session, DUMMY_PUT, 0, sink->object, error);
	if (status != PUBSUB_OK)
		return status;
	if (sink->failure.kind != PUBSUB_ERROR_NONE)
	{
		*error = sink->failure;
		return PUBSUB_FAILED;
	}
	if (sink->nqueued >= state->queue_size)
		return PUBSUB_AGAIN;

	size += message->nheaders * sizeof(PubsubHeader) + message->data.len +
		message->key.len;
	for (i = 0; i < message->nheaders; i++)
		size += message->headers[i].name.len + message->headers[i].value.len;
	put = malloc(size);
	if (put == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	put->message_no = sink->nput++;
	put->message = *message;
	put->message.headers = (PubsubHeader *) (put + 1);
	memory = (char *) (put->message.headers + message->nheaders);
	dummy_copy(&put->message.data, &memory);
	dummy_copy(&put->message.key, &memory);
	for (i = 0; i < message->nheaders; i++)
	{
		put->message.headers[i] = message->headers[i];
		dummy_copy(&put->message.headers[i].name, &memory);
		dummy_copy(&put->message.headers[i].value, &memory);
	}
	dlist_push_tail(&sink->queue, &put->node);
	sink->nqueued++;
	dummy_live.messages++;
	return PUBSUB_OK;
}

/*
 * dummy_deliver
 *	  Writes the first message in the queue to its partition.
 *
 * Without a partition of its own a message goes where the sum of its key's
 * bytes says, so that a test can foresee it.
 */
static PubsubStatus
dummy_deliver(DummySink *sink, PubsubError *error)
{
	DummySession *state = sink->base.session->state;
	DummyPut   *put = dlist_head_element(DummyPut, node, &sink->queue);
	PubsubMessage *message = &put->message;
	int			partition = message->partition;
	int			i;

	if (put->message_no + 1 == state->fail_delivery)
	{
		(void) dummy_fail(error, state->error_kind, sink->object,
						  "the broker refused a message");
		error->message_no = put->message_no;
		return PUBSUB_FAILED;
	}
	if (partition < 0)
	{
		partition = 0;
		for (i = 0; i < message->key.len; i++)
			partition += (unsigned char) message->key.data[i];
		partition %= sink->npartitions;
	}
	if (dummy_is_queue(sink->base.session))
		message->time_ms = PUBSUB_NO_TIME;
	if (dummy_record_append(state->dir, sink->topic, partition, message) != 0)
	{
		(void) dummy_fail(error, PUBSUB_ERROR_LOST, sink->object, "%s",
						  strerror(errno));
		error->message_no = put->message_no;
		return PUBSUB_FAILED;
	}
	if (put->message_no + 1 == state->lose_report)
		sink->lost = true;
	else
		sink->base.ndelivered++;
	dlist_delete(&put->node);
	free(put);
	sink->nqueued--;
	dummy_live.messages--;
	return PUBSUB_OK;
}

/*
 * dummy_sink_drain
 *	  Delivers what is queued, or as much as the orders allow.
 */
static PubsubStatus
dummy_sink_drain(PubsubSink *base, bool flush, PubsubError *error)
{
	DummySink  *sink = (DummySink *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;
	int			n;

	status = dummy_obey(base->session, DUMMY_DRAIN, 0, sink->object, error);
	if (status == PUBSUB_AGAIN)
		return status;
	if (status == PUBSUB_OK && sink->failure.kind != PUBSUB_ERROR_NONE)
	{
		*error = sink->failure;
		status = PUBSUB_FAILED;
	}
	for (n = 0; status == PUBSUB_OK && sink->nqueued > 0 && n < state->drain;
		 n++)
		status = dummy_deliver(sink, error);
	if (status != PUBSUB_OK)
	{
		sink->failure = *error;
		return status;
	}
	return sink->nqueued == 0 && (!sink->lost || state->lie) ?
		PUBSUB_DONE : PUBSUB_AGAIN;
}

static void
dummy_sink_abandon(PubsubSink *base)
{
	DummySink  *sink = (DummySink *) base;

	dummy_ncalls++;
	while (!dlist_is_empty(&sink->queue))
	{
		free(dlist_container(DummyPut, node,
							 dlist_pop_head_node(&sink->queue)));
		dummy_live.messages--;
	}
	sink->nqueued = 0;
}

static void
dummy_sink_close(PubsubSink *base)
{
	dummy_sink_abandon(base);
	free(base);
	dummy_live.sinks--;
}

const PubsubSinkRoutine dummy_sink = {
	.open = dummy_sink_open,
	.event_fd = dummy_sink_event_fd,
	.ready = dummy_sink_ready,
	.check = dummy_sink_check,
	.put = dummy_sink_put,
	.drain = dummy_sink_drain,
	.abandon = dummy_sink_abandon,
	.close = dummy_sink_close
};
