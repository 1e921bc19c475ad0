/*-------------------------------------------------------------------------
 *
 * dummy_source.c
 *		Reading from the dummy brokers
 *
 * A log source reads its ranges in turn, one per poll, so that partitions mix
 * as they do with a real broker.  A queue source takes leases; those that are
 * not marked go back at release(), or in a peek at the end.
 *
 * IDENTIFICATION
 *		test/dummy/dummy_source.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dummy.h"

typedef struct DummySource
{
	PubsubSource base;
	uint32		wants;
	bool		consume;
	int64		limit;			/* 0 = none */
	int64		ntaken;			/* messages handed out so far */
	int			poll_timeout;	/* ms */
	int			event_fd;		/* readable as long as nothing hangs */
	char		name[256];		/* of the topic or subscription */
	char		topic[256];
	char		object[320];	/* for errors */

	PubsubRange *found;			/* answer to resolve */
	int			nfound;

	PubsubRanges *assigned;		/* ring 1's */
	int64	   *next;			/* by assigned range: next offset to read */
	int			turn;			/* range that is polled next */

	PubsubMessage *messages;	/* the batch that is out */
	void	  **memory;			/* and what its messages point to */
	int			nmessages;

	DummyLease **peeked;		/* to be given back at the end */
	int			npeeked;

	struct timespec idle_since;
	bool		idle;
} DummySource;

static int64 dummy_last_lease;

/*
 * dummy_source_open
 *	  Makes a source.
 */
static PubsubSource *
dummy_source_open(PubsubSession *session, const PubsubSourceSpec *spec,
				  PubsubError *error)
{
	bool		queue = dummy_is_queue(session);
	const char *name = queue ? spec->options->subscription :
		spec->options->topic;
	DummySource *source;

	if (name == NULL)
	{
		(void) dummy_fail(error, PUBSUB_ERROR_INVALID, "",
						  "no topic or subscription");
		return NULL;
	}
	if (dummy_obey(session, DUMMY_OPEN_SOURCE, 0, "", error) != PUBSUB_OK)
		return NULL;
	source = calloc(1, sizeof(DummySource));
	if (source == NULL)
	{
		(void) dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
		return NULL;
	}
	source->base.ops = session->driver->source;
	source->base.session = session;
	source->wants = spec->wants;
	source->consume = spec->consume;
	source->limit = spec->limit;
	source->poll_timeout = spec->options->poll_timeout;
	strlcpy(source->name, name, sizeof(source->name));
	if (!queue)
		strlcpy(source->topic, name, sizeof(source->topic));
	snprintf(source->object, sizeof(source->object), "%s \"%s\"",
			 queue ? "subscription" : "topic", name);
	source->event_fd = queue ? -1 : eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	dummy_live.sources++;
	return &source->base;
}

static int
dummy_source_event_fd(PubsubSource *base)
{
	DummySource *source = (DummySource *) base;
	DummySession *state = base->session->state;
	int			i;

	dummy_ncalls++;
	for (i = 0; i < DUMMY_NCALLS; i++)
	{
		if (state->hang[i])
			return -1;
	}
	return state->no_eof ? -1 : source->event_fd;
}

/*
 * dummy_source_resolve
 *	  Logs in and learns what there is.
 */
static PubsubStatus
dummy_source_resolve(PubsubSource *base, int slice_ms, PubsubRanges *ranges,
					 PubsubError *error)
{
	DummySource *source = (DummySource *) base;
	PubsubSession *session = base->session;
	DummySession *state = session->state;
	bool		queue = dummy_is_queue(session);
	PubsubStatus status;
	int			i;

	status = dummy_obey(session, DUMMY_RESOLVE, slice_ms,
						source->object, error);
	if (status == PUBSUB_OK)
		status = dummy_log_in(session, error);
	if (status != PUBSUB_OK)
		return status;

	if (queue)
	{
		if (dummy_subscription_topic(state->dir, source->name, source->topic,
									 sizeof(source->topic)) != 0)
			return dummy_fail(error, PUBSUB_ERROR_NOT_FOUND, source->object,
							  "the broker does not have it");
		source->nfound = 1;
	}
	else
	{
		source->nfound = dummy_topic_partitions(state->dir, source->name);
		if (source->nfound < 0)
			return dummy_fail(error, PUBSUB_ERROR_NOT_FOUND, source->object,
							  "the broker does not have it");
	}

	free(source->found);
	source->found = calloc(Max(source->nfound, 1), sizeof(PubsubRange));
	if (source->found == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	for (i = 0; i < source->nfound; i++)
	{
		PubsubRange *range = &source->found[i];

		range->partition = queue ? -1 : i;
		if (queue)
			continue;
		range->low = dummy_topic_low(state->dir, source->name, i);
		range->high = dummy_topic_high(state->dir, source->name, i);
		range->high = Max(range->low, range->high - state->unstable);
		range->start = range->low;
		range->end = range->high;
	}
	ranges->nranges = source->nfound;
	ranges->ranges = source->found;
	ranges->topic = queue ? source->topic : NULL;
	return PUBSUB_OK;
}

/*
 * dummy_source_lookup
 *	  Finds offsets by time, or the true ends.
 */
static PubsubStatus
dummy_source_lookup(PubsubSource *base, int slice_ms, PubsubLookup what,
					int64 time_ms, const PubsubRanges *ranges, int64 *offsets,
					PubsubError *error)
{
	DummySource *source = (DummySource *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;
	int			i;

	status = dummy_obey(base->session, DUMMY_LOOKUP, slice_ms,
						source->object, error);
	if (status != PUBSUB_OK)
		return status;
	for (i = 0; i < ranges->nranges; i++)
	{
		int			partition = ranges->ranges[i].partition;
		int64		high = dummy_topic_high(state->dir, source->name,
											partition);
		int64		offset;

		offsets[i] = high;
		if (what == PUBSUB_LOOKUP_HIGH_WATERMARK)
			continue;
		offsets[i] = -1;
		for (offset = dummy_topic_low(state->dir, source->name, partition);
			 offset < high; offset++)
		{
			DummyIndex	index;

			if (dummy_record_index(state->dir, source->name, partition,
								   offset, &index) == 0 &&
				index.control == 0 && index.time_ms >= time_ms)
			{
				offsets[i] = offset;
				break;
			}
		}
	}
	return PUBSUB_OK;
}

/*
 * dummy_source_assign
 *	  Starts to read.
 */
static PubsubStatus
dummy_source_assign(PubsubSource *base, PubsubRanges *ranges,
					PubsubError *error)
{
	DummySource *source = (DummySource *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;
	int			i;

	status = dummy_obey(base->session, DUMMY_ASSIGN, 0, source->object, error);
	if (status != PUBSUB_OK)
		return status;
	free(source->next);
	source->next = calloc(Max(ranges->nranges, 1), sizeof(int64));
	if (source->next == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	source->assigned = ranges;
	source->turn = 0;
	source->idle = false;
	if (dummy_is_queue(base->session))
		return PUBSUB_OK;

	if (state->truncate >= 0)
		(void) dummy_topic_truncate(state->dir, source->name, 0,
									state->truncate);
	for (i = 0; i < ranges->nranges; i++)
	{
		source->next[i] = ranges->ranges[i].start;
		ranges->ranges[i].done =
			ranges->ranges[i].start >= ranges->ranges[i].end;
	}
	return PUBSUB_OK;
}

/*
 * dummy_poll_range
 *	  Reads on in a range; fills the batch with what there is.
 */
static PubsubStatus
dummy_poll_range(DummySource *source, int i, int max_messages,
				 PubsubError *error)
{
	DummySession *state = source->base.session->state;
	PubsubRange *range = &source->assigned->ranges[i];
	char		object[320];

	snprintf(object, sizeof(object), "partition %d of topic \"%s\"",
			 range->partition, source->name);
	if (source->next[i] < dummy_topic_low(state->dir, source->name,
										  range->partition))
		return dummy_fail(error, PUBSUB_ERROR_DATA_LOSS, object,
						  "offset " INT64_FORMAT " does not exist any more",
						  source->next[i]);

	while (source->next[i] < range->end && source->nmessages < max_messages)
	{
		PubsubMessage *message = &source->messages[source->nmessages];
		DummyIndex	index;

		if (dummy_record_index(state->dir, source->name, range->partition,
							   source->next[i], &index) != 0)
			break;
		if (index.control)
		{
			source->next[i]++;
			continue;
		}
		source->memory[source->nmessages] =
			dummy_record_read(state->dir, source->name, range->partition,
							  source->next[i], source->wants, message);
		if (source->memory[source->nmessages] == NULL)
			return dummy_fail(error, PUBSUB_ERROR_OTHER, object, "%s",
							  strerror(errno));
		if (message->time_ms != PUBSUB_NO_TIME)
			message->time_type = PUBSUB_TIMESTAMP_CREATE;
		message->message_id.data = NULL;
		message->message_id.len = 0;
		source->nmessages++;
		source->next[i]++;
	}
	if (source->next[i] >= range->end && !state->no_eof)
		range->done = true;
	return PUBSUB_OK;
}

/*
 * dummy_batch_make
 *	  Gets room for a batch.
 */
static PubsubStatus
dummy_batch_make(DummySource *source, int max_messages, PubsubError *error)
{
	Assert(source->messages == NULL);
	source->nmessages = 0;
	source->messages = calloc(max_messages, sizeof(PubsubMessage));
	source->memory = calloc(max_messages, sizeof(void *));
	if (source->messages == NULL || source->memory == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	dummy_live.batches++;
	return PUBSUB_OK;
}

/*
 * dummy_batch_free
 *	  Gives up the batch and every lease in it that is not marked.
 */
static void
dummy_batch_free(DummySource *source)
{
	DummySession *state = source->base.session->state;
	int			i;

	if (source->messages != NULL && source->memory != NULL)
		dummy_live.batches--;
	for (i = 0; i < source->nmessages; i++)
	{
		DummyLease *lease = source->messages[i].lease;

		free(source->memory[i]);
		if (lease == NULL || source->messages[i].marked)
			continue;
		if (source->consume)
			dummy_give_back(state, lease);
		else
			source->peeked[source->npeeked++] = lease;
	}
	free(source->messages);
	free(source->memory);
	source->messages = NULL;
	source->memory = NULL;
	source->nmessages = 0;
}

/*
 * dummy_log_poll
 *	  The next messages of the range whose turn it is.
 */
static PubsubStatus
dummy_log_poll(PubsubSource *base, int max_messages, PubsubBatch *batch,
			   PubsubError *error)
{
	DummySource *source = (DummySource *) base;
	DummySession *state = base->session->state;
	PubsubRanges *ranges = source->assigned;
	PubsubStatus status;
	bool		done = true;
	int			i;

	memset(batch, 0, sizeof(PubsubBatch));
	status = dummy_obey(base->session, DUMMY_POLL, 0, source->object, error);
	if (status != PUBSUB_OK)
		return status;
	max_messages = Min(max_messages, state->batch);
	status = dummy_batch_make(source, max_messages, error);

	for (i = 0; status == PUBSUB_OK && i < ranges->nranges; i++)
	{
		int			turn = (source->turn + i) % ranges->nranges;

		if (ranges->ranges[turn].done)
			continue;
		status = dummy_poll_range(source, turn, max_messages, error);
		if (!ranges->ranges[turn].done)
			done = false;
		if (source->nmessages > 0)
		{
			source->turn = (turn + 1) % ranges->nranges;
			break;
		}
	}
	if (status == PUBSUB_OK && source->nmessages > 0)
	{
		batch->messages = source->messages;
		batch->nmessages = source->nmessages;
		return PUBSUB_OK;
	}
	dummy_batch_free(source);
	if (status != PUBSUB_OK)
		return status;
	if (!done)
		return PUBSUB_AGAIN;
	batch->reason = PUBSUB_STOP_END;
	return PUBSUB_DONE;
}

/*
 * dummy_take
 *	  Leases the next message of the subscription, if there is one.
 */
static PubsubStatus
dummy_take(DummySource *source, bool *found, PubsubError *error)
{
	DummySession *state = source->base.session->state;
	PubsubMessage *message = &source->messages[source->nmessages];
	DummyLease *lease;
	int64		offset;
	int			attempts;
	int			rc;

	*found = false;
	lease = calloc(1, sizeof(DummyLease));
	if (lease == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	if (!source->consume)
	{
		DummyLease **peeked = realloc(source->peeked,
									  (source->ntaken + 1) * sizeof(void *));

		if (peeked == NULL)
		{
			free(lease);
			return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
		}
		source->peeked = peeked;
	}
	strlcpy(lease->subscription, source->name, sizeof(lease->subscription));
	lease->id = ++dummy_last_lease;
	rc = dummy_subscription_take(state->dir, source->name, lease->id,
								 &lease->message, &offset, &attempts);
	if (rc <= 0)
	{
		free(lease);
		if (rc == 0)
			return PUBSUB_OK;
		return dummy_fail(error,
						  errno == ENOENT ? PUBSUB_ERROR_NOT_FOUND :
						  PUBSUB_ERROR_OTHER,
						  source->object, "%s", strerror(errno));
	}
	dlist_push_tail(&state->leases, &lease->node);
	dummy_live.leases++;

	source->memory[source->nmessages] =
		dummy_record_read(state->dir, source->topic, 0, offset, source->wants,
						  message);
	if (source->memory[source->nmessages] == NULL)
	{
		dummy_give_back(state, lease);
		return dummy_fail(error, PUBSUB_ERROR_OTHER, source->object, "%s",
						  strerror(errno));
	}
	if (message->time_ms != PUBSUB_NO_TIME)
		message->time_type = PUBSUB_TIMESTAMP_PUBLISH;
	message->topic.data = NULL;
	message->topic.len = 0;
	message->partition = -1;
	message->offset = -1;
	message->delivery_attempt = attempts;
	message->lease = lease;
	source->nmessages++;
	source->ntaken++;
	*found = true;
	return PUBSUB_OK;
}

/*
 * dummy_queue_poll
 *	  Takes what waits; the read is over when nothing came for two poll
 *	  timeouts.
 */
static PubsubStatus
dummy_queue_poll(PubsubSource *base, int max_messages, PubsubBatch *batch,
				 PubsubError *error)
{
	DummySource *source = (DummySource *) base;
	DummySession *state = base->session->state;
	PubsubStatus status;
	struct timespec now;
	bool		found = true;

	memset(batch, 0, sizeof(PubsubBatch));
	status = dummy_obey(base->session, DUMMY_POLL, 0, source->object, error);
	if (status != PUBSUB_OK)
		return status;
	max_messages = Min(max_messages, state->batch);
	status = dummy_batch_make(source, max_messages, error);

	while (status == PUBSUB_OK && found &&
		   source->nmessages < max_messages &&
		   (source->limit == 0 || source->ntaken < source->limit))
		status = dummy_take(source, &found, error);
	if (status == PUBSUB_OK && source->nmessages > 0)
	{
		source->idle = false;
		batch->messages = source->messages;
		batch->nmessages = source->nmessages;
		return PUBSUB_OK;
	}
	dummy_batch_free(source);
	if (status != PUBSUB_OK)
		return status;

	clock_gettime(CLOCK_MONOTONIC, &now);
	batch->progressed = true;
	if (!source->idle)
	{
		source->idle = true;
		source->idle_since = now;
	}
	if ((now.tv_sec - source->idle_since.tv_sec) * 1000 +
		(now.tv_nsec - source->idle_since.tv_nsec) / 1000000 <
		2 * source->poll_timeout)
		return PUBSUB_AGAIN;
	batch->reason = PUBSUB_STOP_IDLE;
	return PUBSUB_DONE;
}

static void
dummy_source_release(PubsubSource *base, PubsubBatch *batch)
{
	dummy_ncalls++;
	dummy_batch_free((DummySource *) base);
	memset(batch, 0, sizeof(PubsubBatch));
}

/*
 * dummy_give_back_peeked
 *	  Ends a peek.
 */
static void
dummy_give_back_peeked(DummySource *source)
{
	DummySession *state = source->base.session->state;

	while (source->npeeked > 0)
		dummy_give_back(state, source->peeked[--source->npeeked]);
}

static PubsubStatus
dummy_source_finish(PubsubSource *base, int slice_ms, PubsubError *error)
{
	DummySource *source = (DummySource *) base;
	PubsubStatus status;

	status = dummy_obey(base->session, DUMMY_FINISH, slice_ms,
						source->object, error);
	if (status == PUBSUB_OK)
		dummy_give_back_peeked(source);
	return status;
}

static void
dummy_source_close(PubsubSource *base)
{
	DummySource *source = (DummySource *) base;

	dummy_ncalls++;
	dummy_batch_free(source);
	dummy_give_back_peeked(source);
	if (source->event_fd >= 0)
		close(source->event_fd);
	free(source->peeked);
	free(source->found);
	free(source->next);
	free(source);
	dummy_live.sources--;
}

const PubsubSourceRoutine dummy_log_source = {
	.open = dummy_source_open,
	.event_fd = dummy_source_event_fd,
	.resolve = dummy_source_resolve,
	.lookup = dummy_source_lookup,
	.assign = dummy_source_assign,
	.poll = dummy_log_poll,
	.release = dummy_source_release,
	.close = dummy_source_close
};

const PubsubSourceRoutine dummy_queue_source = {
	.open = dummy_source_open,
	.event_fd = dummy_source_event_fd,
	.resolve = dummy_source_resolve,
	.assign = dummy_source_assign,
	.poll = dummy_queue_poll,
	.release = dummy_source_release,
	.finish = dummy_source_finish,
	.close = dummy_source_close,
	.prepare_acks = dummy_prepare_acks,
	.send_acks = dummy_send_acks,
	.abandon_acks = dummy_abandon_acks,
	.drop_acks = dummy_drop_acks
};
