/*-------------------------------------------------------------------------
 *
 * reader.c
 *		One bounded read of a topic or a subscription
 *
 * Scans, pubsub_read(), pubsub_consume() and pubsub_ingest() all read through
 * here, and only here are the source routines of a driver called.
 *
 * A read of a log covers ranges whose ends are captured when it starts; it
 * returns everything below them or raises an error.  Only max_records and
 * max_read_time, which the user asked for, may cut it short.  A read of a
 * queue ends when nothing new came for a while, or at the same two limits.
 *
 * Consuming a log takes the partitions one by one: each is locked for the
 * group, its position is read after that, and the next one is taken when it
 * has been read to its end.  So several sessions can share a topic.
 *
 * A message counts as handed over when pubsub_reader_next() returned it.
 * Never before: what was only fetched is given back.
 *
 * IDENTIFICATION
 *		src/reader.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"

#include "bounds.h"

/* How many messages may pass between two looks at the clock */
#define CLOCK_INTERVAL 32

struct PubsubReader
{
	MemoryContext cxt;
	const PubsubTable *table;
	PubsubReadSpec spec;
	char	   *what;			/* 'topic "x"', for messages */
	bool		is_log;
	PubsubSession *session;
	PubsubSource *source;		/* NULL: not open yet, or closed */
	int			fetch_size;

	PubsubRanges ranges;		/* what this read covers */
	PubsubRanges assigned;		/* what the source reads: all of it, or one
								 * range when consuming a log */
	PubsubBatch batch;
	int			next;			/* in batch; batch.nmessages = none left */
	PubsubDeadline read_deadline;	/* max_read_time */
	PubsubDeadline idle_deadline;	/* no progress */
	PubsubStopReason stop;
	int64		nmessages;
	int64		nbytes;

	/* consuming a log */
	PubsubPosition *positions;	/* one per range */
	int		   *order;			/* of ranges, least recently consumed first */
	int			next_in_order;
	int			current;		/* the range being read, or -1 */
	int64		next_offset;	/* in it, after what was handed over */
	int			nbusy;			/* partitions that others have */
};

/* Ends that a statement captured, see share_ends() */
typedef struct SharedEnds
{
	dlist_node	node;
	EState	   *estate;
	Oid			serverid;
	Oid			umid;
	char	   *topic;
	int			isolation_level;
	int			nranges;
	PubsubRange *ranges;
} SharedEnds;

static dlist_head shared_ends = DLIST_STATIC_INIT(shared_ends);

static void start_reading(PubsubReader *reader);
static void resolve(PubsubReader *reader, PubsubRanges *all);
static void look_up(PubsubReader *reader, PubsubLookup what, int64 time_ms,
					int64 *offsets);
static void share_ends(PubsubReader *reader, PubsubRanges *all);
static void forget_shared_ends(void *arg);
static void choose_ranges(PubsubReader *reader, const PubsubRanges *all);
static void assign(PubsubReader *reader);
static bool fetch(PubsubReader *reader);
static void order_partitions(PubsubReader *reader);
static int	compare_positions(const void *a, const void *b, void *arg);
static bool take_partition(PubsubReader *reader);
static bool take_range(PubsubReader *reader, int i);
static int64 check_position(PubsubReader *reader, int i, int64 wanted);
static void leave_partition(PubsubReader *reader);
static void finish(PubsubReader *reader);

/*
 * pubsub_read_spec_init
 *	  Takes the read options of the table as defaults of a spec.
 *
 * max_records and max_read_time are left to the caller, whose defaults differ.
 */
void
pubsub_read_spec_init(PubsubReadSpec *spec, const PubsubTable *table)
{
	const PubsubOptions *options = &table->options;

	memset(spec, 0, sizeof(PubsubReadSpec));
	spec->group_id = options->group_id;
	spec->partitions = options->partitions;
	spec->start_offsets = options->start_offsets;
	spec->stop_offsets = options->stop_offsets;
	if (options->start_read_time)
	{
		spec->has_start_read_time = true;
		spec->start_read_time =
			pubsub_bounds_parse_time("start_read_time",
									 options->start_read_time);
	}
	if (options->stop_read_time)
	{
		spec->has_stop_read_time = true;
		spec->stop_read_time =
			pubsub_bounds_parse_time("stop_read_time",
									 options->stop_read_time);
	}
}

/*
 * pubsub_reader_open
 *	  Makes a reader.  The broker is first asked by pubsub_reader_next().
 */
PubsubReader *
pubsub_reader_open(const PubsubTable *table, const PubsubReadSpec *spec)
{
	PubsubReader *reader = palloc0(sizeof(PubsubReader));
	PubsubSourceSpec source_spec = {0};

	reader->cxt = CurrentMemoryContext;
	reader->table = table;
	reader->spec = *spec;
	reader->is_log = (table->driver->capabilities & PUBSUB_IS_LOG) != 0;
	reader->current = -1;
	if (reader->is_log)
	{
		if (table->options.topic == NULL)
			pubsub_option_missing(table, "topic", "read");
		if (spec->consume && spec->group_id == NULL)
			pubsub_option_missing(table, "group_id", "consume");
		reader->what = psprintf("topic \"%s\"", table->options.topic);
	}
	else
	{
		if (table->options.subscription == NULL)
			pubsub_option_missing(table, "subscription", "read");
		reader->what = psprintf("subscription \"%s\"",
								table->options.subscription);
	}
	if (spec->has_start_read_time && spec->has_stop_read_time &&
		spec->start_read_time > spec->stop_read_time)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"start_read_time\" must not be later than \"stop_read_time\"")));

	reader->fetch_size = table->options.fetch_size > 0 ?
		table->options.fetch_size : table->driver->default_fetch_size;

	source_spec.options = &table->options;
	source_spec.wants = spec->wants;
	source_spec.consume = spec->consume;
	source_spec.limit = spec->limit;
	if (spec->max_records > 0 &&
		(spec->limit == 0 || spec->max_records < spec->limit))
		source_spec.limit = spec->max_records;

	reader->session = pubsub_session_get(table->server, table->userid);
	reader->source = pubsub_session_open_source(reader->session, &source_spec,
												spec->keep);
	return reader;
}

/*
 * pubsub_reader_next
 *	  Returns the next message, or NULL at the end.
 */
PubsubMessage *
pubsub_reader_next(PubsubReader *reader)
{
	PubsubMessage *message;

	if (reader->stop != PUBSUB_STOP_NONE)
		return NULL;
	if (reader->spec.max_records > 0 &&
		reader->nmessages >= reader->spec.max_records)
	{
		reader->stop = PUBSUB_STOP_MAX_RECORDS;
		return NULL;
	}
	if (reader->next >= reader->batch.nmessages && !fetch(reader))
		return NULL;
	if (reader->read_deadline.set &&
		reader->next % CLOCK_INTERVAL == 0 &&
		pubsub_deadline_passed(&reader->read_deadline))
	{
		reader->stop = PUBSUB_STOP_MAX_READ_TIME;
		return NULL;
	}

	message = &reader->batch.messages[reader->next++];
	reader->nmessages++;
	reader->nbytes += message->data.len + message->key.len;
	if (reader->spec.consume)
	{
		if (reader->is_log)
			reader->next_offset = message->offset + 1;
		else
			pubsub_xact_mark(reader->session, message);
	}
	return message;
}

/*
 * fetch
 *	  Gets the next batch; false at the end.
 */
static bool
fetch(PubsubReader *reader)
{
	PubsubError error;

	if (reader->source->held)
	{
		pubsub_source_release(reader->source, &reader->batch);
		reader->next = reader->batch.nmessages = 0;
	}
	else if (reader->ranges.ranges == NULL)
		start_reading(reader);

	for (;;)
	{
		int			max = reader->fetch_size;

		if (reader->spec.consume && reader->is_log && reader->current < 0 &&
			!take_partition(reader))
		{
			reader->stop = PUBSUB_STOP_END;
			return false;
		}

		if (reader->spec.max_records > 0)
			max = Min(max, reader->spec.max_records - reader->nmessages);
		switch (pubsub_source_poll(reader->source, max, &reader->batch, &error))
		{
			case PUBSUB_OK:
				pubsub_deadline_set(&reader->idle_deadline,
									reader->table->options.request_timeout);
				reader->next = 0;
				CHECK_FOR_INTERRUPTS();
				return true;

			case PUBSUB_DONE:
				if (reader->current >= 0)
				{
					leave_partition(reader);
					break;
				}
				reader->stop = reader->batch.reason;
				return false;

			case PUBSUB_AGAIN:
				if (pubsub_deadline_passed(&reader->read_deadline))
				{
					reader->stop = PUBSUB_STOP_MAX_READ_TIME;
					return false;
				}
				if (reader->batch.progressed)
					pubsub_deadline_set(&reader->idle_deadline,
										reader->table->options.request_timeout);
				else if (pubsub_deadline_passed(&reader->idle_deadline))
					pubsub_throw_timeout(reader->session, &error,
										 PUBSUB_ERROR_LOST,
										 reader->idle_deadline.ms,
										 "read from %s", reader->what);
				pubsub_wait(pubsub_source_event_fd(reader->source),
							pubsub_deadline_left(&reader->read_deadline,
												 pubsub_deadline_left(&reader->idle_deadline,
																	  PUBSUB_SLICE_MS)));
				break;

			case PUBSUB_FAILED:
				pubsub_throw(reader->session, &error, "read from %s",
							 reader->what);
		}
	}
}

/*
 * start_reading
 *	  Connects, captures the ends, and starts the source.
 *
 * max_read_time does not run while connecting.
 */
static void
start_reading(PubsubReader *reader)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(reader->cxt);
	PubsubRanges all;

	resolve(reader, &all);
	if (reader->is_log)
	{
		if (reader->spec.estate)
			share_ends(reader, &all);
		choose_ranges(reader, &all);
	}
	else
	{
		reader->ranges.topic = all.topic ? pstrdup(all.topic) : NULL;
		reader->ranges.nranges = all.nranges;
		reader->ranges.ranges = palloc(all.nranges * sizeof(PubsubRange));
		memcpy(reader->ranges.ranges, all.ranges,
			   all.nranges * sizeof(PubsubRange));
	}

	pubsub_deadline_set(&reader->read_deadline, reader->spec.max_read_time);
	if (reader->is_log && reader->spec.consume)
		order_partitions(reader);
	else
	{
		reader->assigned = reader->ranges;
		assign(reader);
	}
	MemoryContextSwitchTo(oldcxt);
}

static void
resolve(PubsubReader *reader, PubsubRanges *all)
{
	PubsubDeadline deadline;
	PubsubStatus status;
	PubsubError error;

	memset(all, 0, sizeof(PubsubRanges));
	pubsub_deadline_set(&deadline, reader->table->options.connect_timeout);
	while ((status = pubsub_source_resolve(reader->source,
										   pubsub_deadline_left(&deadline, PUBSUB_SLICE_MS),
										   all, &error)) == PUBSUB_AGAIN)
	{
		CHECK_FOR_INTERRUPTS();
		if (pubsub_deadline_passed(&deadline))
			pubsub_throw_timeout(reader->session, &error,
								 PUBSUB_ERROR_CONNECT, deadline.ms,
								 "read from %s", reader->what);
	}
	if (status == PUBSUB_FAILED)
		pubsub_throw(reader->session, &error, "read from %s", reader->what);
}

/*
 * look_up
 *	  Asks for an offset of every range of this read.
 */
static void
look_up(PubsubReader *reader, PubsubLookup what, int64 time_ms,
		int64 *offsets)
{
	PubsubDeadline deadline;
	PubsubStatus status;
	PubsubError error;

	pubsub_deadline_set(&deadline, reader->table->options.request_timeout);
	while ((status = pubsub_source_lookup(reader->source,
										  pubsub_deadline_left(&deadline, PUBSUB_SLICE_MS),
										  what, time_ms, &reader->ranges,
										  offsets, &error)) == PUBSUB_AGAIN)
	{
		CHECK_FOR_INTERRUPTS();
		if (pubsub_deadline_passed(&deadline))
			pubsub_throw_timeout(reader->session, &error, PUBSUB_ERROR_LOST,
								 deadline.ms, "look up offsets of %s",
								 reader->what);
	}
	if (status == PUBSUB_FAILED)
		pubsub_throw(reader->session, &error, "look up offsets of %s",
					 reader->what);
}

/*
 * share_ends
 *	  Makes all scans of a topic in one statement see the same ends.
 *
 * The first one captures them for the others, for as long as the statement's
 * execution state lives.  Partitions that came later are left out.
 */
static void
share_ends(PubsubReader *reader, PubsubRanges *all)
{
	const PubsubTable *table = reader->table;
	MemoryContext oldcxt;
	MemoryContextCallback *callback;
	SharedEnds *ends;
	dlist_iter	iter;

	dlist_foreach(iter, &shared_ends)
	{
		ends = dlist_container(SharedEnds, node, iter.cur);
		if (ends->estate != reader->spec.estate ||
			ends->serverid != table->server->serverid ||
			ends->umid != table->umid ||
			ends->isolation_level != table->options.isolation_level ||
			strcmp(ends->topic, table->options.topic) != 0)
			continue;

		all->nranges = Min(all->nranges, ends->nranges);
		for (int i = 0; i < all->nranges; i++)
			all->ranges[i].high = ends->ranges[i].high;
		return;
	}

	oldcxt = MemoryContextSwitchTo(reader->spec.estate->es_query_cxt);
	ends = palloc(sizeof(SharedEnds));
	ends->estate = reader->spec.estate;
	ends->serverid = table->server->serverid;
	ends->umid = table->umid;
	ends->topic = pstrdup(table->options.topic);
	ends->isolation_level = table->options.isolation_level;
	ends->nranges = all->nranges;
	ends->ranges = palloc(all->nranges * sizeof(PubsubRange));
	memcpy(ends->ranges, all->ranges, all->nranges * sizeof(PubsubRange));
	callback = palloc(sizeof(MemoryContextCallback));
	callback->func = forget_shared_ends;
	callback->arg = ends;
	dlist_push_tail(&shared_ends, &ends->node);
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	MemoryContextSwitchTo(oldcxt);
}

static void
forget_shared_ends(void *arg)
{
	dlist_delete(&((SharedEnds *) arg)->node);
}

/*
 * choose_ranges
 *	  Decides which ranges this read covers, from where to where.
 */
static void
choose_ranges(PubsubReader *reader, const PubsubRanges *all)
{
	const PubsubTable *table = reader->table;
	const PubsubReadSpec *spec = &reader->spec;
	PubsubPartitionSet *set = NULL;
	int64	   *offsets;

	if (spec->partitions)
		set = pubsub_bounds_parse_partitions("partitions", spec->partitions);
	pubsub_bounds_select(table, set, all, &reader->ranges);
	offsets = palloc(Max(reader->ranges.nranges, 1) * sizeof(int64));

	for (int i = 0; i < reader->ranges.nranges; i++)
	{
		reader->ranges.ranges[i].start = reader->ranges.ranges[i].low;
		reader->ranges.ranges[i].end = reader->ranges.ranges[i].high;
	}
	if (spec->has_start_read_time)
	{
		look_up(reader, PUBSUB_LOOKUP_TIME,
				pubsub_bounds_time_ms(spec->start_read_time), offsets);
		pubsub_bounds_apply_times(table, true, spec->start_read_time, offsets,
								  &reader->ranges);
	}
	else if (spec->start_offsets && !spec->consume)
		pubsub_bounds_apply_start(table,
								  pubsub_bounds_parse_offsets("start_offsets",
															  spec->start_offsets,
															  table->options.topic,
															  PUBSUB_OFFSET_EARLIEST),
								  &reader->ranges);
	if (spec->has_stop_read_time)
	{
		look_up(reader, PUBSUB_LOOKUP_TIME,
				pubsub_bounds_time_ms(spec->stop_read_time), offsets);
		pubsub_bounds_apply_times(table, false, spec->stop_read_time, offsets,
								  &reader->ranges);
	}
	else if (spec->stop_offsets)
		pubsub_bounds_apply_stop(table,
								 pubsub_bounds_parse_offsets("stop_offsets",
															 spec->stop_offsets,
															 table->options.topic,
															 PUBSUB_OFFSET_LATEST),
								 &reader->ranges);
}

/*
 * assign
 *	  Lets the source read what is in reader->assigned.
 */
static void
assign(PubsubReader *reader)
{
	PubsubError error;

	for (int i = 0; i < reader->assigned.nranges; i++)
		reader->assigned.ranges[i].done = false;
	if (pubsub_source_assign(reader->source, &reader->assigned,
							 &error) != PUBSUB_OK)
		pubsub_throw(reader->session, &error, "read from %s", reader->what);
	pubsub_deadline_set(&reader->idle_deadline,
						reader->table->options.request_timeout);
}

/*
 * order_partitions
 *	  Consuming a log: reads the positions, and sorts the partitions so that
 *	  the one that waits longest comes first.
 */
static void
order_partitions(PubsubReader *reader)
{
	const PubsubTable *table = reader->table;
	int			nranges = reader->ranges.nranges;
	bool		is_new = true;

	reader->positions = palloc0(Max(nranges, 1) * sizeof(PubsubPosition));
	reader->order = palloc(Max(nranges, 1) * sizeof(int));
	for (int i = 0; i < nranges; i++)
	{
		reader->positions[i].partition = reader->ranges.ranges[i].partition;
		reader->order[i] = i;
	}
	pubsub_positions_read(table->server->servername, table->options.topic,
						  reader->spec.group_id, nranges, reader->positions);

	/*
	 * Start offsets are for a group that is new to the topic.  A partition
	 * that appears later is read from its start, or records would be missed.
	 */
	for (int i = 0; i < nranges && is_new; i++)
		is_new = !reader->positions[i].exists;
	if (is_new && reader->spec.start_offsets &&
		!reader->spec.has_start_read_time)
		pubsub_bounds_apply_start(table,
								  pubsub_bounds_parse_offsets("start_offsets",
															  reader->spec.start_offsets,
															  table->options.topic,
															  PUBSUB_OFFSET_EARLIEST),
								  &reader->ranges);

	qsort_arg(reader->order, nranges, sizeof(int), compare_positions,
			  reader->positions);
	reader->next_in_order = 0;
	reader->current = -1;
}

static int
compare_positions(const void *a, const void *b, void *arg)
{
	const PubsubPosition *pa = (const PubsubPosition *) arg + *(const int *) a;
	const PubsubPosition *pb = (const PubsubPosition *) arg + *(const int *) b;

	if (pa->updated_at != pb->updated_at)
		return pa->updated_at < pb->updated_at ? -1 : 1;
	return pa->partition < pb->partition ? -1 : 1;
}

/*
 * take_partition
 *	  Consuming a log: takes the next partition that has something to read and
 *	  that nobody else has.  False = there is none.
 */
static bool
take_partition(PubsubReader *reader)
{
	int			ntaken = 0;

	while (reader->next_in_order < reader->ranges.nranges)
	{
		int			i = reader->order[reader->next_in_order++];
		PubsubPosition *position = &reader->positions[i];
		PubsubRange *range = &reader->ranges.ranges[i];

		/* drained when we looked, and positions do not go back by themselves */
		if ((position->exists ? position->next_offset : range->start) == range->end)
			continue;

		if (!pubsub_position_try_lock(reader->table->server->servername,
									  reader->table->options.topic,
									  reader->spec.group_id,
									  range->partition))
		{
			reader->nbusy++;
			ereport(DEBUG1,
					(errmsg_internal("partition %d of topic \"%s\" is being consumed by another session",
									 range->partition,
									 reader->table->options.topic)));
			continue;
		}
		ntaken++;
		if (take_range(reader, i))
			return true;
	}

	if (ntaken == 0 && reader->nbusy > 0 && reader->nmessages == 0)
		ereport(NOTICE,
				(errmsg("other sessions are consuming topic \"%s\" for group \"%s\"",
						reader->table->options.topic,
						reader->spec.group_id)));
	return false;
}

/*
 * take_range
 *	  Starts to read a partition that is ours from its position.  False =
 *	  there is nothing to read.
 */
static bool
take_range(PubsubReader *reader, int i)
{
	const PubsubTable *table = reader->table;
	PubsubPosition *position = &reader->positions[i];
	PubsubRange *range = &reader->ranges.ranges[i];
	bool		changed = position->changed;
	int64		start = range->start;

	/* now that it cannot move any more */
	pubsub_positions_read(table->server->servername, table->options.topic,
						  reader->spec.group_id, 1, position);
	position->changed = changed;
	if (position->exists)
		start = check_position(reader, i, position->next_offset);
	if (start >= range->end)
		return false;

	range->start = start;
	reader->current = i;
	reader->next_offset = start;
	reader->assigned.nranges = 1;
	reader->assigned.ranges = range;
	assign(reader);
	return true;
}

/*
 * check_position
 *	  A stored position must be within what the partition holds.
 *
 * Under read_committed "high" is the last stable offset; a position above it
 * is no loss as long as it is not above the high watermark, too.
 */
static int64
check_position(PubsubReader *reader, int i, int64 wanted)
{
	PubsubRange *range = &reader->ranges.ranges[i];
	int64		high = range->high;

	if (wanted > high)
	{
		int64	   *offsets = palloc(reader->ranges.nranges * sizeof(int64));

		look_up(reader, PUBSUB_LOOKUP_HIGH_WATERMARK, 0, offsets);
		high = Max(high, offsets[i]);
		pfree(offsets);
	}
	return pubsub_bounds_check_loss(reader->table, "stored position",
									range->partition, wanted, range->low,
									high);
}

/*
 * leave_partition
 *	  The current partition was read to its end: that is its position, also if
 *	  no record shows it.
 */
static void
leave_partition(PubsubReader *reader)
{
	PubsubRange *range = &reader->ranges.ranges[reader->current];

	reader->next_offset = Max(reader->next_offset, range->end);
	reader->positions[reader->current].next_offset = reader->next_offset;
	reader->positions[reader->current].changed = true;
	reader->current = -1;
}

/*
 * pubsub_reader_store_positions
 *	  Consuming: makes the positions of what was handed over part of the
 *	  (sub)transaction.  The leases of a queue are marked already.
 */
void
pubsub_reader_store_positions(PubsubReader *reader)
{
	if (!reader->is_log || reader->positions == NULL)
		return;

	if (reader->current >= 0)
	{
		PubsubPosition *position = &reader->positions[reader->current];
		PubsubRange *range = &reader->ranges.ranges[reader->current];

		/* cut short exactly at the end of the partition? */
		if (range->done && reader->next >= reader->batch.nmessages)
			reader->next_offset = Max(reader->next_offset, range->end);
		if (reader->next_offset > range->start)
		{
			position->next_offset = reader->next_offset;
			position->changed = true;
		}
	}
	pubsub_positions_store(reader->table->server->servername,
						   reader->table->options.topic,
						   reader->spec.group_id, reader->ranges.nranges,
						   reader->positions);
	for (int i = 0; i < reader->ranges.nranges; i++)
		reader->positions[i].changed = false;
}

/*
 * pubsub_reader_resume
 *	  Goes on in a new transaction.
 *
 * The locks went with the old one.  The current partition is taken again; if
 * another session has it now it is left, if its position has moved the source
 * moves, too.  Otherwise the source goes on undisturbed.
 */
void
pubsub_reader_resume(PubsubReader *reader)
{
	PubsubPosition *position;
	PubsubRange *range;
	int			current = reader->current;

	pubsub_session_reuse(reader->session);
	if (!reader->is_log || current < 0)
		return;

	position = &reader->positions[current];
	range = &reader->ranges.ranges[current];
	if (pubsub_position_try_lock(reader->table->server->servername,
								 reader->table->options.topic,
								 reader->spec.group_id, range->partition))
	{
		pubsub_positions_read(reader->table->server->servername,
							  reader->table->options.topic,
							  reader->spec.group_id, 1, position);
		range->start = reader->next_offset;
		if (position->exists ? position->next_offset == reader->next_offset :
			reader->nmessages == 0)
			return;
	}
	else
		reader->nbusy++;

	if (reader->source->held)
	{
		pubsub_source_release(reader->source, &reader->batch);
		reader->next = reader->batch.nmessages = 0;
	}

	/* look at it again at the end, it may be free then */
	reader->current = -1;
	reader->next_in_order = 0;
}

/*
 * pubsub_reader_rewind
 *	  Reads from the start again, to the same ends.
 */
void
pubsub_reader_rewind(PubsubReader *reader)
{
	Assert(reader->table->driver->capabilities & PUBSUB_CAN_REWIND);
	Assert(!reader->spec.consume);

	if (reader->source->held)
		pubsub_source_release(reader->source, &reader->batch);
	reader->next = reader->batch.nmessages = 0;
	reader->stop = PUBSUB_STOP_NONE;
	reader->nmessages = 0;
	reader->nbytes = 0;
	if (reader->ranges.ranges != NULL)
	{
		pubsub_deadline_set(&reader->read_deadline,
							reader->spec.max_read_time);
		assign(reader);
	}
}

/*
 * pubsub_reader_close
 *	  Ends the read in good order.
 */
void
pubsub_reader_close(PubsubReader *reader)
{
	PubsubSource *source = reader->source;

	if (source == NULL)
		return;
	if (source->held)
		pubsub_source_release(source, &reader->batch);
	reader->next = reader->batch.nmessages = 0;
	if (reader->ranges.ranges != NULL)
		finish(reader);
	reader->source = NULL;
	pubsub_session_close_source(source);
}

/*
 * finish
 *	  Waits until the broker has back what was not handed over.
 *
 * A failure hides nothing and loses nothing, it only delays: the messages come
 * back when their lease ends.
 */
static void
finish(PubsubReader *reader)
{
	PubsubDeadline deadline;
	PubsubStatus status;
	PubsubError error;

	pubsub_deadline_set(&deadline, pubsub_ack_timeout);
	while ((status = pubsub_source_finish(reader->source, PUBSUB_SLICE_MS,
										  &error)) == PUBSUB_AGAIN)
	{
		CHECK_FOR_INTERRUPTS();
		if (pubsub_deadline_passed(&deadline))
			break;
	}
	if (status != PUBSUB_OK)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not give back unread messages of %s, others will see them when their lease ends",
						reader->what),
				 error.detail[0] ? errdetail_internal("%s", error.detail) : 0));
}

PubsubStopReason
pubsub_reader_stop_reason(const PubsubReader *reader)
{
	return reader->stop;
}

int64
pubsub_reader_nmessages(const PubsubReader *reader)
{
	return reader->nmessages;
}

int64
pubsub_reader_nbytes(const PubsubReader *reader)
{
	return reader->nbytes;
}

const PubsubRanges *
pubsub_reader_ranges(const PubsubReader *reader)
{
	return &reader->ranges;
}

const char *
pubsub_stop_reason_name(PubsubStopReason reason)
{
	switch (reason)
	{
		case PUBSUB_STOP_NONE:
			break;
		case PUBSUB_STOP_END:
			return "end";
		case PUBSUB_STOP_IDLE:
			return "idle";
		case PUBSUB_STOP_MAX_RECORDS:
			return "max_records";
		case PUBSUB_STOP_MAX_READ_TIME:
			return "max_read_time";
	}
	return "limit";
}
