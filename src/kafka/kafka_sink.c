/*-------------------------------------------------------------------------
 *
 * kafka_sink.c
 *		Publishing messages, and knowing that each one has arrived
 *
 * Sinks with equal settings share a producer, which the session keeps for the
 * next transaction.  Every message that the library takes brings exactly one
 * delivery report, whose opaque pointer tells the sink and the message number;
 * the report of a sink that is gone meets nobody.
 *
 * A message is not taken back once it may be on its way: what abandon() finds
 * in flight may still be stored by the broker.  A producer that was abandoned
 * with messages in it is not used again.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_sink.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "kafka.h"

/* Opaque pointer of a message: sink id in the upper 16 bits, number below */
StaticAssertDecl(sizeof(void *) == 8, "a message number needs 64-bit pointers");
#define NUMBER_BITS		48
#define ID_MASK			0xFFFF

/*
 * What the library adds to the size of key, value and headers for its check
 * against message.max.bytes: the longest form of each number in a record.
 */
#define RECORD_OVERHEAD 36

/* How long drain() may block to have lingering messages sent, in ms */
#define FLUSH_MS		2

struct KafkaSink
{
	PubsubSink	base;
	KafkaSink  *next;			/* of the same producer */
	KafkaProducer *producer;
	int			id;
	char	   *topic;
	rd_kafka_topic_t *handle;	/* the library's, NULL before ready() */
	int			npartitions;
	bool		failed;			/* a message failed, for good */
	PubsubError failure;

	/* for put(), which has to terminate the names of headers */
	rd_kafka_vu_t *arguments;
	int			arguments_size;
	char	   *names;
	size_t		names_size;
};

static KafkaProducer *get_producer(KafkaSession *state,
								   const PubsubOptions *options,
								   PubsubError *error);
static PubsubStatus open_producer(KafkaSink *sink, PubsubError *error);
static void leave_producer(KafkaSink *sink);
static void note_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m,
						  void *opaque);
static void note_failure(KafkaSink *sink, const rd_kafka_message_t *m,
						 int64 message_no, KafkaHandle *handle);
static bool prepare_arguments(KafkaSink *sink, const PubsubMessage *message);
static int64 varint_size(int64 value);
static int64 record_size(const PubsubMessage *message);

static PubsubSink *
sink_open(PubsubSession *session, const PubsubSinkSpec *spec,
		  PubsubError *error)
{
	KafkaSink  *sink;

	if (!kafka_topic_name_check(spec->topic, error))
		return NULL;
	sink = calloc(1, sizeof(KafkaSink));
	if (sink != NULL)
		sink->topic = strdup(spec->topic);
	if (sink == NULL || sink->topic == NULL)
	{
		free(sink);
		kafka_error_memory(error);
		return NULL;
	}
	sink->base.ops = &kafka_sink_routine;
	sink->base.session = session;
	sink->producer = get_producer(session->state, spec->options, error);
	if (sink->producer == NULL)
	{
		free(sink->topic);
		free(sink);
		return NULL;
	}
	sink->producer->last_id = (sink->producer->last_id + 1) & ID_MASK;
	sink->id = sink->producer->last_id;
	sink->next = sink->producer->sinks;
	sink->producer->sinks = sink;
	return &sink->base;
}

/*
 * get_producer
 *		Finds a producer with these settings, or prepares one
 */
static KafkaProducer *
get_producer(KafkaSession *state, const PubsubOptions *options,
			 PubsubError *error)
{
	KafkaProducer *producer;
	char	   *key = kafka_conf_producer_key(options);

	if (key == NULL)
	{
		kafka_error_memory(error);
		return NULL;
	}
	for (producer = state->producers; producer != NULL;
		 producer = producer->next)
	{
		if (!producer->broken && strcmp(producer->key, key) == 0)
		{
			free(key);
			return producer;
		}
	}

	producer = calloc(1, sizeof(KafkaProducer));
	if (producer == NULL)
	{
		free(key);
		kafka_error_memory(error);
		return NULL;
	}
	producer->key = key;
	producer->conf = kafka_conf_producer(options, error);
	if (producer->conf == NULL)
	{
		kafka_producer_close(producer);
		return NULL;
	}
	producer->next = state->producers;
	state->producers = producer;
	return producer;
}

static int
sink_event_fd(PubsubSink *base)
{
	KafkaSink  *sink = (KafkaSink *) base;
	KafkaHandle *handle = sink->producer->handle;

	return handle != NULL ? handle->wakeup[0] : -1;
}

/*
 * sink_ready
 *		A step: connects, and learns how many partitions the topic has
 *
 * Without this, the first message to a topic would wait for a timer of the
 * library, and one to a topic that does not exist for its message timeout.
 */
static PubsubStatus
sink_ready(PubsubSink *base, int slice_ms, PubsubError *error)
{
	KafkaSink  *sink = (KafkaSink *) base;
	const rd_kafka_metadata_t *metadata;
	PubsubStatus status;

	if (sink->handle == NULL)
	{
		status = open_producer(sink, error);
		if (status != PUBSUB_OK)
			return status;
	}
	status = kafka_topic_metadata(sink->producer->handle, sink->handle,
								  slice_ms, &metadata, error);
	if (status != PUBSUB_OK)
		return status;
	sink->npartitions = metadata->topics[0].partition_cnt;
	rd_kafka_metadata_destroy(metadata);
	return PUBSUB_OK;
}

/*
 * open_producer
 *		Starts the producer's handle, if need be, and gets the topic's
 */
static PubsubStatus
open_producer(KafkaSink *sink, PubsubError *error)
{
	KafkaProducer *producer = sink->producer;
	const rd_kafka_conf_t *conf;

	if (producer->handle == NULL)
	{
		rd_kafka_conf_set_dr_msg_cb(producer->conf, note_delivery);
		producer->handle = kafka_handle_open(RD_KAFKA_PRODUCER, producer->conf,
											 sink->base.session->options,
											 error);
		producer->conf = NULL;
		if (producer->handle == NULL)
		{
			producer->broken = true;
			return PUBSUB_FAILED;
		}
		producer->handle->owner = producer;

		/* a message that is larger than the queue would never be taken */
		conf = rd_kafka_conf(producer->handle->rk);
		producer->max_message_bytes =
			Min(kafka_conf_get_int(conf, "message.max.bytes"),
				kafka_conf_get_int(conf, "queue.buffering.max.kbytes") * 1024);
	}

	sink->handle = rd_kafka_topic_new(producer->handle->rk, sink->topic, NULL);
	if (sink->handle == NULL)
	{
		kafka_error_set(error, rd_kafka_last_error(), NULL);
		kafka_error_object(error, sink->topic, -1);
		return PUBSUB_FAILED;
	}
	return PUBSUB_OK;
}

/*
 * sink_check
 *		Would the library and, as far as it can be known, the broker take it?
 */
static PubsubStatus
sink_check(PubsubSink *base, const PubsubMessage *message, PubsubError *error)
{
	KafkaSink  *sink = (KafkaSink *) base;
	int64		limit = sink->producer->max_message_bytes;
	int64		size = record_size(message);

	if (size > limit)
	{
		pubsub_error_set(error, PUBSUB_ERROR_TOO_LARGE,
						 "The message has " INT64_FORMAT " bytes with key, headers and overhead, the limit is " INT64_FORMAT ".",
						 size, limit);
		snprintf(error->object, sizeof(error->object),
				 "message for topic \"%s\"", sink->topic);
		strlcpy(error->hint,
				"The limit is the option \"properties.message.max.bytes\"; the topic has one of its own, max.message.bytes.",
				sizeof(error->hint));
		return PUBSUB_FAILED;
	}
	if (message->partition >= sink->npartitions)
	{
		pubsub_error_set(error, PUBSUB_ERROR_NOT_FOUND,
						 "The partitions of the topic are 0 to %d.",
						 sink->npartitions - 1);
		kafka_error_object(error, sink->topic, message->partition);
		return PUBSUB_FAILED;
	}
	if (message->partition < -1)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "A partition number cannot be negative.");
		return PUBSUB_FAILED;
	}
	if (message->time_ms == 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "librdkafka cannot send a message with the timestamp 1970-01-01 00:00:00 UTC: it takes that for no timestamp.");
		return PUBSUB_FAILED;
	}
	for (int i = 0; i < message->nheaders; i++)
	{
		const PubsubBytes *name = &message->headers[i].name;

		if (name->len > 0 && memchr(name->data, '\0', name->len) != NULL)
		{
			pubsub_error_set(error, PUBSUB_ERROR_INVALID,
							 "The name of a header contains a zero byte.");
			return PUBSUB_FAILED;
		}
	}
	return PUBSUB_OK;
}

/*
 * record_size
 *		The size of a message as the library counts it
 */
static int64
record_size(const PubsubMessage *message)
{
	int64		size = RECORD_OVERHEAD;

	size += message->data.data != NULL ? message->data.len : 0;
	size += message->key.data != NULL ? message->key.len : 0;
	for (int i = 0; i < message->nheaders; i++)
	{
		const PubsubHeader *header = &message->headers[i];

		size += varint_size(header->name.len) + header->name.len;
		size += header->value.data != NULL ?
			varint_size(header->value.len) + header->value.len : 1;
	}
	return size;
}

/*
 * varint_size
 *		Bytes of a number >= 0 in Kafka's signed variable-length form
 */
static int64
varint_size(int64 value)
{
	int64		size = 1;

	for (value *= 2; value >= 128; value /= 128)
		size++;
	return size;
}

/*
 * sink_put
 *		Hands a message to the library, which copies it
 */
static PubsubStatus
sink_put(PubsubSink *base, const PubsubMessage *message, PubsubError *error)
{
	KafkaSink  *sink = (KafkaSink *) base;
	rd_kafka_vu_t *argument;
	rd_kafka_error_t *result;
	rd_kafka_resp_err_t code;
	char	   *name;

	if (sink->failed)
	{
		*error = sink->failure;
		return PUBSUB_FAILED;
	}
	if (!prepare_arguments(sink, message))
		return kafka_error_memory(error);

	argument = sink->arguments;
	argument->vtype = RD_KAFKA_VTYPE_RKT;
	argument->u.rkt = sink->handle;
	argument++;
	argument->vtype = RD_KAFKA_VTYPE_PARTITION;
	argument->u.i32 = message->partition >= 0 ? message->partition :
		RD_KAFKA_PARTITION_UA;
	argument++;
	argument->vtype = RD_KAFKA_VTYPE_MSGFLAGS;
	argument->u.i = RD_KAFKA_MSG_F_COPY;
	argument++;
	argument->vtype = RD_KAFKA_VTYPE_VALUE;
	argument->u.mem.ptr = (void *) message->data.data;
	argument->u.mem.size = message->data.data != NULL ? message->data.len : 0;
	argument++;
	argument->vtype = RD_KAFKA_VTYPE_KEY;
	argument->u.mem.ptr = (void *) message->key.data;
	argument->u.mem.size = message->key.data != NULL ? message->key.len : 0;
	argument++;
	argument->vtype = RD_KAFKA_VTYPE_OPAQUE;
	argument->u.ptr = (void *) (((uintptr_t) sink->id << NUMBER_BITS) |
								(uintptr_t) base->nput);
	argument++;
	if (message->time_ms != PUBSUB_NO_TIME)
	{
		argument->vtype = RD_KAFKA_VTYPE_TIMESTAMP;
		argument->u.i64 = message->time_ms;
		argument++;
	}
	name = sink->names;
	for (int i = 0; i < message->nheaders; i++)
	{
		const PubsubHeader *header = &message->headers[i];

		if (header->name.len > 0)
			memcpy(name, header->name.data, header->name.len);
		name[header->name.len] = '\0';
		argument->vtype = RD_KAFKA_VTYPE_HEADER;
		argument->u.header.name = name;
		argument->u.header.val = header->value.data;
		argument->u.header.size = header->value.data != NULL ?
			header->value.len : 0;
		argument++;
		name += header->name.len + 1;
	}

	result = rd_kafka_produceva(sink->producer->handle->rk, sink->arguments,
								argument - sink->arguments);
	if (result == NULL)
		return PUBSUB_OK;

	code = rd_kafka_error_code(result);
	if (code == RD_KAFKA_RESP_ERR__FATAL)
		code = rd_kafka_fatal_error(sink->producer->handle->rk, NULL, 0);
	if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
	{
		kafka_error_set(error, code, rd_kafka_error_string(result));
		kafka_error_object(error, sink->topic, message->partition);
		error->message_no = base->nput;
		sink->failed = true;
		sink->failure = *error;
	}
	rd_kafka_error_destroy(result);
	return sink->failed ? PUBSUB_FAILED : PUBSUB_AGAIN;
}

/*
 * prepare_arguments
 *		Makes room for the arguments of one call
 */
static bool
prepare_arguments(KafkaSink *sink, const PubsubMessage *message)
{
	int			nneeded = 7 + message->nheaders;
	size_t		nbytes = 0;

	for (int i = 0; i < message->nheaders; i++)
		nbytes += message->headers[i].name.len + 1;

	if (nneeded > sink->arguments_size)
	{
		free(sink->arguments);
		sink->arguments = malloc(nneeded * sizeof(rd_kafka_vu_t));
		sink->arguments_size = sink->arguments != NULL ? nneeded : 0;
	}
	if (nbytes > sink->names_size)
	{
		free(sink->names);
		sink->names = malloc(nbytes);
		sink->names_size = sink->names != NULL ? nbytes : 0;
	}
	return sink->arguments_size >= nneeded && sink->names_size >= nbytes;
}

/*
 * sink_drain
 *		Takes the delivery reports that are there
 */
static PubsubStatus
sink_drain(PubsubSink *base, bool flush, PubsubError *error)
{
	KafkaSink  *sink = (KafkaSink *) base;
	KafkaHandle *handle = sink->producer->handle;
	char		text[400];

	/* also if none is ours: the queue may be full of other sinks' messages */
	kafka_handle_serve(handle);

	/* messages do not linger while this runs */
	if (flush && base->ndelivered < base->nput)
		(void) rd_kafka_flush(handle->rk, FLUSH_MS);

	if (!sink->failed &&
		rd_kafka_fatal_error(handle->rk, text, sizeof(text)) !=
		RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		kafka_error_set(&sink->failure,
						rd_kafka_fatal_error(handle->rk, text, sizeof(text)),
						text);
		sink->failed = true;
		sink->producer->broken = true;
	}
	if (sink->failed)
	{
		*error = sink->failure;
		return PUBSUB_FAILED;
	}
	if (base->ndelivered == base->nput)
		return PUBSUB_DONE;
	if (handle->cause != RD_KAFKA_RESP_ERR_NO_ERROR)
		(void) kafka_cause_get(handle, error);
	return PUBSUB_AGAIN;
}

/*
 * note_delivery
 *		Counts a delivery report; runs inside rd_kafka_poll or rd_kafka_flush
 */
static void
note_delivery(rd_kafka_t *rk pg_attribute_unused(),
			  const rd_kafka_message_t *m, void *opaque)
{
	KafkaHandle *handle = opaque;
	KafkaProducer *producer = handle->owner;
	uintptr_t	code = (uintptr_t) m->_private;
	KafkaSink  *sink;

	for (sink = producer->sinks; sink != NULL; sink = sink->next)
	{
		if (sink->id == (int) (code >> NUMBER_BITS))
			break;
	}
	if (sink == NULL)
		return;
	if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		sink->base.ndelivered++;
		kafka_cause_clear(handle);
	}
	else if (!sink->failed)
		note_failure(sink, m, code & (((uintptr_t) 1 << NUMBER_BITS) - 1),
					 handle);
}

/*
 * note_failure
 *		The first message that was not delivered
 */
static void
note_failure(KafkaSink *sink, const rd_kafka_message_t *m, int64 message_no,
			 KafkaHandle *handle)
{
	PubsubError *failure = &sink->failure;
	const char *text = rd_kafka_err2str(m->err);
	const char *stored = "";
	rd_kafka_resp_err_t code = m->err;
	rd_kafka_resp_err_t fatal;
	char		fatal_text[400];

	sink->failed = true;

	/* a fatal error of the producer comes as its messages being purged */
	fatal = rd_kafka_fatal_error(handle->rk, fatal_text, sizeof(fatal_text));
	if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		code = fatal;
		text = fatal_text;
	}
	if (rd_kafka_message_status(m) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
		stored = "; the broker may have stored the message all the same";
	if (code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT &&
		handle->cause != RD_KAFKA_RESP_ERR_NO_ERROR)
		pubsub_error_set(failure, kafka_error_kind(code), "%s (%s)%s",
						 text, handle->cause_text, stored);
	else
		pubsub_error_set(failure, kafka_error_kind(code), "%s%s",
						 text, stored);
	kafka_error_object(failure, sink->topic, -1);
	failure->message_no = message_no;
}

/*
 * sink_abandon
 *		Drops what is queued, and gives up on what is in flight
 */
static void
sink_abandon(PubsubSink *base)
{
	KafkaSink  *sink = (KafkaSink *) base;
	KafkaHandle *handle = sink->producer->handle;

	if (handle == NULL || handle->pid != getpid() ||
		base->ndelivered == base->nput)
		return;
	sink->producer->broken = true;
	(void) rd_kafka_purge(handle->rk, RD_KAFKA_PURGE_F_QUEUE |
						  RD_KAFKA_PURGE_F_INFLIGHT |
						  RD_KAFKA_PURGE_F_NON_BLOCKING);
	rd_kafka_poll(handle->rk, 0);
}

static void
sink_close(PubsubSink *base)
{
	KafkaSink  *sink = (KafkaSink *) base;

	leave_producer(sink);
	free(sink->arguments);
	free(sink->names);
	free(sink->topic);
	free(sink);
}

/*
 * leave_producer
 *		Takes a sink off its producer, which goes with the last one if broken
 */
static void
leave_producer(KafkaSink *sink)
{
	KafkaSession *state = sink->base.session->state;
	KafkaProducer *producer = sink->producer;
	KafkaSink **link;
	KafkaProducer **producer_link;

	if (sink->handle != NULL)
		rd_kafka_topic_destroy(sink->handle);
	for (link = &producer->sinks; *link != sink; link = &(*link)->next)
		;
	*link = sink->next;

	if (producer->sinks != NULL || !producer->broken)
		return;
	for (producer_link = &state->producers; *producer_link != producer;
		 producer_link = &(*producer_link)->next)
		;
	*producer_link = producer->next;
	kafka_producer_close(producer);
}

/*
 * kafka_producer_close
 *		Frees a producer that no sink uses any more
 */
void
kafka_producer_close(KafkaProducer *producer)
{
	if (producer->handle != NULL)
		kafka_handle_close(producer->handle);
	if (producer->conf != NULL)
		rd_kafka_conf_destroy(producer->conf);
	free(producer->key);
	free(producer);
}

const PubsubSinkRoutine kafka_sink_routine = {
	.open = sink_open,
	.event_fd = sink_event_fd,
	.ready = sink_ready,
	.check = sink_check,
	.put = sink_put,
	.drain = sink_drain,
	.abandon = sink_abandon,
	.close = sink_close
};
