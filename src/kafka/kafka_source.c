/*-------------------------------------------------------------------------
 *
 * kafka_source.c
 *		Reading stretches of the partitions of a topic
 *
 * A source is one handle of librdkafka with its simple consumer: no group, so
 * nothing to join, to commit or to authorise.  kafka_offsets.c learns what
 * there is; this file starts at absolute offsets and reads.
 *
 * A partition ends at the first message at or past its end, at the message
 * just before it, or when the broker reports an end of partition there: what
 * precedes the end may be control records of transactions, or gone by
 * compaction, so that no message shows.  That no data comes never ends it.
 *
 * Prefetching.  The library stops fetching while enough messages are queued,
 * and (before 2.2) looks again after up to a second, even if the queue is
 * empty by then.  Anything that makes its thread for the broker run makes it
 * look, such as a request; see wake_fetcher().  Later versions are set to look
 * each millisecond, but a wake-up does no harm there.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_source.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "kafka_source.h"

/* A batch is no larger than this: more only makes the processor's caches cold */
#define MAX_BATCH		2000

/* While nothing arrives, wake the fetcher at most once in so many ms */
#define IDLE_WAKE_MS	100

static void stop_reading(KafkaSource *source);
static void stop_partition(KafkaSource *source, int32 partition);
static void finish_range(KafkaSource *source, PubsubRange *range);
static bool make_room(KafkaSource *source, int nmessages);
static int	take_messages(KafkaSource *source, int max_messages,
						  bool *progressed);
static void take_end(KafkaSource *source, PubsubRange *range, int64 offset);
static void take_error(KafkaSource *source, const rd_kafka_message_t *m);
static void fill_message(KafkaSource *source, PubsubMessage *message,
						 const rd_kafka_message_t *m);
static bool fill_headers(KafkaSource *source);
static void watch_queue(KafkaSource *source, int ntaken, int64 nbytes);
static void wake_fetcher(KafkaSource *source);

/*
 * source_close
 *		Frees a source, in whatever state it is
 */
static void
source_close(PubsubSource *base)
{
	KafkaSource *source = (KafkaSource *) base;

	/* a message that is still out would keep the handle alive for ever */
	for (int i = 0; i < source->nheld; i++)
		rd_kafka_message_destroy(source->held[i]);
	if (source->uncommitted != NULL)
		kafka_handle_close(source->uncommitted);
	if (source->handle != NULL)
		kafka_handle_close(source->handle);
	if (source->conf != NULL)
		rd_kafka_conf_destroy(source->conf);
	free(source->topic);
	free(source->ranges);
	free(source->offsets);
	free(source->reading);
	free(source->held);
	free(source->messages);
	free(source->headers);
	free(source);
}

static PubsubSource *
source_open(PubsubSession *session, const PubsubSourceSpec *spec,
			PubsubError *error)
{
	KafkaSource *source;

	if (!kafka_topic_name_check(spec->options->topic, error))
		return NULL;
	source = calloc(1, sizeof(KafkaSource));
	if (source == NULL)
	{
		kafka_error_memory(error);
		return NULL;
	}
	source->base.ops = &kafka_source_routine;
	source->base.session = session;
	source->wants = spec->wants;
	source->read_committed =
		spec->options->isolation_level == PUBSUB_READ_COMMITTED;
	source->topic_len = strlen(spec->options->topic);
	source->topic = strdup(spec->options->topic);
	if (source->topic == NULL)
		kafka_error_memory(error);
	else
		source->conf = kafka_conf_consumer(spec->options, spec->limit, error);
	if (source->conf == NULL)
	{
		source_close(&source->base);
		return NULL;
	}
	return &source->base;
}

static int
source_event_fd(PubsubSource *base)
{
	KafkaSource *source = (KafkaSource *) base;

	return source->handle != NULL ? source->handle->wakeup[0] : -1;
}

/*
 * source_assign
 *		Starts to read, after having stopped what was read before
 */
static PubsubStatus
source_assign(PubsubSource *base, PubsubRanges *ranges, PubsubError *error)
{
	KafkaSource *source = (KafkaSource *) base;
	PubsubRange **reading;

	stop_reading(source);
	source->failed = false;
	source->was_full = false;
	source->messages_since = 0;
	source->bytes_since = 0;

	reading = realloc(source->reading,
					  Max(source->npartitions, 1) * sizeof(PubsubRange *));
	if (reading == NULL)
		return kafka_error_memory(error);
	memset(reading, 0, source->npartitions * sizeof(PubsubRange *));
	source->reading = reading;

	for (int i = 0; i < ranges->nranges; i++)
	{
		PubsubRange *range = &ranges->ranges[i];

		range->done = range->start >= range->end;
		if (range->done)
			continue;
		if (range->partition < 0 || range->partition >= source->npartitions)
		{
			kafka_error_set(error, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, NULL);
			kafka_error_object(error, source->topic, range->partition);
			return PUBSUB_FAILED;
		}
		if (rd_kafka_consume_start_queue(source->handle->topic,
										 range->partition, range->start,
										 source->handle->queue) != 0)
		{
			kafka_error_set(error, rd_kafka_last_error(), NULL);
			kafka_error_object(error, source->topic, range->partition);
			return PUBSUB_FAILED;
		}
		reading[range->partition] = range;
		source->nreading++;
	}
	INSTR_TIME_SET_CURRENT(source->woken_at);
	return PUBSUB_OK;
}

/*
 * stop_reading
 *		Stops all partitions and drops what they had fetched
 */
static void
stop_reading(KafkaSource *source)
{
	rd_kafka_message_t *m[64];
	ssize_t		n;

	for (int i = 0; i < source->npartitions && source->nreading > 0; i++)
	{
		if (source->reading[i] == NULL)
			continue;
		stop_partition(source, i);
		source->reading[i] = NULL;
		source->nreading--;
	}
	if (source->reading == NULL)
		return;
	while ((n = rd_kafka_consume_batch_queue(source->handle->queue, 0, m,
											 lengthof(m))) > 0)
	{
		for (ssize_t i = 0; i < n; i++)
			rd_kafka_message_destroy(m[i]);
	}
}

/*
 * stop_partition
 *		Ends the fetching of a partition; what it has queued is void
 *
 * Waits for a thread of the library (about 50 us), not for the network.
 */
static void
stop_partition(KafkaSource *source, int32 partition)
{
	(void) rd_kafka_consume_stop(source->handle->topic, partition);
}

/*
 * finish_range
 *		Everything of a range has been handed over
 */
static void
finish_range(KafkaSource *source, PubsubRange *range)
{
	range->done = true;
	source->reading[range->partition] = NULL;
	source->nreading--;
	stop_partition(source, range->partition);
}

/*
 * source_poll
 *		Fills the batch with what is queued
 */
static PubsubStatus
source_poll(PubsubSource *base, int max_messages, PubsubBatch *batch,
			PubsubError *error)
{
	KafkaSource *source = (KafkaSource *) base;
	bool		progressed = false;

	batch->nmessages = 0;
	batch->progressed = false;
	batch->reason = PUBSUB_STOP_NONE;

	max_messages = Min(max_messages, MAX_BATCH);
	if (!make_room(source, max_messages))
		return kafka_error_memory(error);
	kafka_handle_serve(source->handle);

	while (!source->failed && source->nheld == 0 && source->nreading > 0)
	{
		if (take_messages(source, max_messages, &progressed) == 0)
			break;
	}

	if (source->nheld > 0)
	{
		if ((source->wants & PUBSUB_WANT_HEADERS) && !fill_headers(source))
			return kafka_error_memory(error);
		kafka_cause_clear(source->handle);
		batch->messages = source->messages;
		batch->nmessages = source->nheld;
		return PUBSUB_OK;
	}
	if (source->failed)
	{
		*error = source->failure;
		return PUBSUB_FAILED;
	}
	if (source->nreading == 0)
	{
		batch->reason = PUBSUB_STOP_END;
		return PUBSUB_DONE;
	}

	batch->progressed = progressed;
	if (source->handle->cause != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		(void) kafka_cause_get(source->handle, error);
		if (error->kind == PUBSUB_ERROR_NOT_FOUND ||
			error->kind == PUBSUB_ERROR_DATA_LOSS)
			kafka_error_object(error, source->topic, -1);
	}
	return PUBSUB_AGAIN;
}

/*
 * make_room
 *		Makes the arrays of a batch large enough
 */
static bool
make_room(KafkaSource *source, int nmessages)
{
	rd_kafka_message_t **held;
	PubsubMessage *messages;

	if (nmessages <= source->size)
		return true;
	held = realloc(source->held, nmessages * sizeof(rd_kafka_message_t *));
	if (held == NULL)
		return false;
	source->held = held;
	messages = realloc(source->messages, nmessages * sizeof(PubsubMessage));
	if (messages == NULL)
		return false;
	source->messages = messages;
	source->size = nmessages;
	return true;
}

/*
 * take_messages
 *		Takes from the queue, and keeps what belongs to the ranges
 *
 * Returns how many were taken, pseudo messages included.
 */
static int
take_messages(KafkaSource *source, int max_messages, bool *progressed)
{
	int64		nbytes = 0;
	ssize_t		n;

	n = rd_kafka_consume_batch_queue(source->handle->queue, 0, source->held,
									 max_messages);
	n = Max(n, 0);
	for (ssize_t i = 0; i < n; i++)
	{
		rd_kafka_message_t *m = source->held[i];
		PubsubRange *range;

		/* a partition that was stopped in the meantime, or a general error */
		range = m->rkt != NULL && m->partition >= 0 &&
			m->partition < source->npartitions ?
			source->reading[m->partition] : NULL;

		if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
		{
			nbytes += m->len;
			if (range != NULL && m->offset >= range->start &&
				m->offset < range->end)
			{
				fill_message(source, &source->messages[source->nheld], m);
				source->held[source->nheld++] = m;
				if (m->offset == range->end - 1)
					finish_range(source, range);
				continue;
			}
			if (range != NULL && m->offset >= range->end)
				finish_range(source, range);
		}
		else if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
		{
			*progressed = true;
			if (range != NULL)
				take_end(source, range, m->offset);
		}
		else if (range != NULL || m->rkt == NULL)
			take_error(source, m);
		rd_kafka_message_destroy(m);
	}

	if (source->nreading > 0)
		watch_queue(source, n, nbytes);
	return n;
}

/*
 * take_end
 *		The partition ends here, for now
 *
 * Before the range's end only if the log was cut off after that was captured.
 * What comes after a new leader took over may fill it up again, so this is
 * but a reason for waiting in vain.
 */
static void
take_end(KafkaSource *source, PubsubRange *range, int64 offset)
{
	char		text[160];

	if (offset >= range->end)
	{
		finish_range(source, range);
		return;
	}
	snprintf(text, sizeof(text),
			 "partition %d ends at offset " INT64_FORMAT ", it ended at " INT64_FORMAT " before",
			 range->partition, offset, range->end);
	kafka_cause_note(source->handle, RD_KAFKA_RESP_ERR__PARTITION_EOF, text);
}

/*
 * take_error
 *		Decides, by its code, whether an error ends the read
 *
 * Anything that is not known to be temporary does: the library might have
 * skipped what it could not read.
 */
static void
take_error(KafkaSource *source, const rd_kafka_message_t *m)
{
	PubsubError *failure = &source->failure;
	const char *text = rd_kafka_message_errstr(m);

	if (kafka_error_is_transient(m->err) ||
		m->err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
	{
		kafka_cause_note(source->handle, m->err, text);
		return;
	}
	if (source->failed)
		return;
	source->failed = true;
	kafka_error_set(failure, m->err, text);
	if (failure->kind == PUBSUB_ERROR_DATA_LOSS && m->offset >= 0)
		pubsub_error_set(failure, PUBSUB_ERROR_DATA_LOSS,
						 "offset " INT64_FORMAT ": %s", m->offset, text);
	kafka_error_object(failure, source->topic,
					   m->rkt != NULL ? m->partition : -1);
}

static void
fill_message(KafkaSource *source, PubsubMessage *message,
			 const rd_kafka_message_t *m)
{
	rd_kafka_timestamp_type_t type;

	message->data.data = m->payload;
	message->data.len = m->len;
	message->key.data = m->key;
	message->key.len = m->key_len;
	message->headers = NULL;
	message->nheaders = 0;
	message->time_ms = PUBSUB_NO_TIME;
	message->time_us = 0;
	message->time_type = PUBSUB_TIMESTAMP_NONE;
	if (source->wants & PUBSUB_WANT_TIME)
	{
		int64		time_ms = rd_kafka_message_timestamp(m, &type);

		if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE)
		{
			message->time_ms = time_ms;
			message->time_type = type == RD_KAFKA_TIMESTAMP_CREATE_TIME ?
				PUBSUB_TIMESTAMP_CREATE : PUBSUB_TIMESTAMP_LOG_APPEND;
		}
	}
	message->partition = m->partition;
	message->offset = m->offset;
	message->topic.data = source->topic;
	message->topic.len = source->topic_len;
	message->message_id.data = NULL;
	message->message_id.len = 0;
	message->delivery_attempt = 0;
	message->lease = NULL;
	message->marked = false;
}

/*
 * fill_headers
 *		Gives the messages of the batch their headers
 */
static bool
fill_headers(KafkaSource *source)
{
	int			total = 0;
	PubsubHeader *next;

	for (int i = 0; i < source->nheld; i++)
	{
		rd_kafka_headers_t *headers;

		if (rd_kafka_message_headers(source->held[i], &headers) ==
			RD_KAFKA_RESP_ERR_NO_ERROR)
			source->messages[i].nheaders = rd_kafka_header_cnt(headers);
		total += source->messages[i].nheaders;
	}
	if (total > source->headers_size)
	{
		free(source->headers);
		source->headers = malloc(total * sizeof(PubsubHeader));
		source->headers_size = source->headers != NULL ? total : 0;
		if (source->headers == NULL)
			return false;
	}

	next = source->headers;
	for (int i = 0; i < source->nheld; i++)
	{
		PubsubMessage *message = &source->messages[i];
		rd_kafka_headers_t *headers;

		if (message->nheaders == 0)
			continue;
		message->headers = next;
		(void) rd_kafka_message_headers(source->held[i], &headers);
		for (int j = 0; j < message->nheaders; j++, next++)
		{
			const char *name = "";
			const void *value = NULL;
			size_t		size = 0;

			(void) rd_kafka_header_get_all(headers, j, &name, &value, &size);
			next->name.data = name;
			next->name.len = strlen(name);
			next->value.data = value;
			next->value.len = size;
		}
	}
	return true;
}

/*
 * watch_queue
 *		Decides, after some messages were taken, whether fetching has stopped
 *
 * The library does not tell.  A queue seen nearly full is one hint: wake the
 * fetcher when half of it is used up, so that fetching and reading overlap.
 * The bytes in the queue can only be guessed from the messages just taken, so
 * there is a second one: a queue that is empty after a quarter of a full one
 * was taken out of it may have been full.  And in case both fail, it is woken
 * now and then while nothing comes.
 */
static void
watch_queue(KafkaSource *source, int ntaken, int64 nbytes)
{
	int64		queued = rd_kafka_queue_length(source->handle->queue);
	int64		average = ntaken > 0 ? nbytes / ntaken : 0;
	instr_time	idle;

	if (queued == 0 && ntaken == 0)
	{
		INSTR_TIME_SET_CURRENT(idle);
		INSTR_TIME_SUBTRACT(idle, source->woken_at);
		if (source->messages_since >= source->max_messages / 4 ||
			source->bytes_since >= source->max_bytes / 4 ||
			INSTR_TIME_GET_MILLISEC(idle) >= IDLE_WAKE_MS)
			wake_fetcher(source);
		source->messages_since = 0;
		source->bytes_since = 0;
		return;
	}

	source->messages_since += ntaken;
	source->bytes_since += nbytes;
	if (queued + ntaken >= source->max_messages * 3 / 4 ||
		(queued + ntaken) * average >= source->max_bytes * 3 / 4)
		source->was_full = true;
	if (source->was_full && queued < source->max_messages / 2 &&
		queued * average < source->max_bytes / 2)
		wake_fetcher(source);
}

/*
 * wake_fetcher
 *		Makes the library look whether it should fetch
 *
 * By a request to each leader of what is being read, without waiting for an
 * answer: with timeout 0 the call sends and returns, and answers that come
 * later are dropped.
 */
static void
wake_fetcher(KafkaSource *source)
{
	rd_kafka_topic_partition_list_t *list;

	list = rd_kafka_topic_partition_list_new(source->nreading);
	for (int i = 0; i < source->npartitions; i++)
	{
		if (source->reading[i] != NULL)
			rd_kafka_topic_partition_list_add(list, source->topic,
											  i)->offset = KAFKA_TIME_LATEST;
	}
	(void) rd_kafka_offsets_for_times(source->handle->rk, list, 0);
	rd_kafka_topic_partition_list_destroy(list);
	source->was_full = false;
	INSTR_TIME_SET_CURRENT(source->woken_at);
}

static void
source_release(PubsubSource *base, PubsubBatch *batch pg_attribute_unused())
{
	KafkaSource *source = (KafkaSource *) base;

	for (int i = 0; i < source->nheld; i++)
		rd_kafka_message_destroy(source->held[i]);
	source->nheld = 0;
}

const PubsubSourceRoutine kafka_source_routine = {
	.open = source_open,
	.event_fd = source_event_fd,
	.resolve = kafka_source_resolve,
	.lookup = kafka_source_lookup,
	.assign = source_assign,
	.poll = source_poll,
	.release = source_release,
	.close = source_close
};
