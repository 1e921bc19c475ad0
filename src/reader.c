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
 * Consuming a log is consume.c's part, the ends that a statement's scans share
 * are ends.c's.
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
#include "utils/memutils.h"

#include "bounds.h"
#include "reader.h"

/* How many messages may pass between two looks at the clock */
#define CLOCK_INTERVAL 32

static void start_reading(PubsubReader *reader);
static void resolve(PubsubReader *reader, PubsubRanges *all);
static void choose_ranges(PubsubReader *reader, const PubsubRanges *all);
static bool fetch(PubsubReader *reader);
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
	if (spec->nest_level > 0)
		reader->source->nest_level = spec->nest_level;
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

	/* what the caller did since the last batch is not the broker's fault */
	pubsub_deadline_set(&reader->idle_deadline,
						reader->table->options.request_timeout);

	for (;;)
	{
		int			max = reader->fetch_size;

		if (reader->spec.consume && reader->is_log && reader->current < 0 &&
			!pubsub_consume_next(reader))
		{
			reader->stop = PUBSUB_STOP_END;
			return false;
		}

		if (reader->spec.max_records > 0)
			max = Min(max, reader->spec.max_records - reader->nmessages);
		switch (pubsub_source_poll(reader->source, max, &reader->batch, &error))
		{
			case PUBSUB_OK:
				reader->next = 0;
				CHECK_FOR_INTERRUPTS();
				return true;

			case PUBSUB_DONE:
				if (reader->current >= 0)
				{
					pubsub_consume_leave(reader);
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
			pubsub_ends_share(reader, &all);
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
		pubsub_consume_start(reader);
	else
	{
		reader->assigned = reader->ranges;
		pubsub_reader_assign(reader);
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
 * pubsub_reader_look_up
 *	  Asks for an offset of every range of this read.
 */
void
pubsub_reader_look_up(PubsubReader *reader, PubsubLookup what,
					  int64 time_ms, int64 *offsets)
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
 * choose_ranges
 *	  Decides which ranges this read covers, from where to where.
 */
static void
choose_ranges(PubsubReader *reader, const PubsubRanges *all)
{
	const PubsubTable *table = reader->table;
	const PubsubReadSpec *spec = &reader->spec;
	PubsubPartitionSet *set = NULL;

	if (spec->partitions)
		set = pubsub_bounds_parse_partitions("partitions", spec->partitions);
	pubsub_bounds_select(table, set, all, &reader->ranges);

	for (int i = 0; i < reader->ranges.nranges; i++)
	{
		reader->ranges.ranges[i].start = reader->ranges.ranges[i].low;
		reader->ranges.ranges[i].end = reader->ranges.ranges[i].high;
	}
	if (!spec->consume)
		pubsub_reader_apply_start(reader);
	if (spec->has_stop_read_time)
	{
		int64	   *offsets;

		offsets = palloc(Max(reader->ranges.nranges, 1) * sizeof(int64));
		pubsub_reader_look_up(reader, PUBSUB_LOOKUP_TIME,
							  pubsub_bounds_time_ms(spec->stop_read_time),
							  offsets);
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
 * pubsub_reader_apply_start
 *	  Sets the start of every range as asked for.
 */
void
pubsub_reader_apply_start(PubsubReader *reader)
{
	const PubsubTable *table = reader->table;
	const PubsubReadSpec *spec = &reader->spec;

	if (spec->has_start_read_time)
	{
		int64	   *offsets;

		offsets = palloc(Max(reader->ranges.nranges, 1) * sizeof(int64));
		pubsub_reader_look_up(reader, PUBSUB_LOOKUP_TIME,
							  pubsub_bounds_time_ms(spec->start_read_time),
							  offsets);
		pubsub_bounds_apply_times(table, true, spec->start_read_time, offsets,
								  &reader->ranges);
	}
	else if (spec->start_offsets)
	{
		pubsub_bounds_apply_start(table,
								  pubsub_bounds_parse_offsets("start_offsets",
															  spec->start_offsets,
															  table->options.topic,
															  PUBSUB_OFFSET_EARLIEST),
								  &reader->ranges);
		for (int i = 0; i < reader->ranges.nranges; i++)
			reader->ranges.ranges[i].start =
				pubsub_reader_check_start(reader, i, false,
										  reader->ranges.ranges[i].start);
	}
}

/*
 * pubsub_reader_check_start
 *	  A start that the user or a position gives must be within what the
 *	  partition holds.  Returns where to start.
 *
 * Under read_committed "high" is the last stable offset; a start above it is
 * no loss as long as it is not above the high watermark, too.  A position
 * above that is of another topic that had this name: of this one nothing was
 * consumed.
 */
int64
pubsub_reader_check_start(PubsubReader *reader, int i, bool is_position,
						  int64 wanted)
{
	PubsubRange *range = &reader->ranges.ranges[i];
	int64		high = range->high;

	if (wanted > high)
	{
		int64	   *offsets = palloc(reader->ranges.nranges * sizeof(int64));

		pubsub_reader_look_up(reader, PUBSUB_LOOKUP_HIGH_WATERMARK, 0,
							  offsets);
		high = Max(high, offsets[i]);
		pfree(offsets);
	}
	return pubsub_bounds_check_loss(reader->table,
									is_position ? "stored position" : "start offset",
									range->partition, wanted, range->low, high,
									is_position ? range->low : high);
}

/*
 * pubsub_reader_assign
 *	  Lets the source read what is in reader->assigned.
 */
void
pubsub_reader_assign(PubsubReader *reader)
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
		pubsub_reader_assign(reader);
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

int
pubsub_reader_nbuffered(const PubsubReader *reader)
{
	return reader->batch.nmessages - reader->next;
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
