/*-------------------------------------------------------------------------
 *
 * consume.c
 *		Consuming a log: partitions, locks and positions of a reader
 *
 * The partitions are taken one by one: each is locked for the group, its
 * position is read after that, and the next one is taken when it has been read
 * to its end.  So several sessions can share a topic, and none waits.
 *
 * The locks go with the (sub)transaction; what was read and the positions that
 * say so are in the same one.
 *
 * IDENTIFICATION
 *		src/consume.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bounds.h"
#include "reader.h"

static void store_start(PubsubReader *reader);
static int	compare_positions(const void *a, const void *b, void *arg);
static bool take_range(PubsubReader *reader, int i);

/*
 * pubsub_consume_start
 *	  Consuming a log: reads the positions, and sorts the partitions so that
 *	  the one that waits longest comes first.
 */
void
pubsub_consume_start(PubsubReader *reader)
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
	 * The start options are for a group that is new to the topic.  A
	 * partition that appears later is read from its start, or records would
	 * be missed.
	 */
	for (int i = 0; i < nranges && is_new; i++)
		is_new = !reader->positions[i].exists;
	if (is_new &&
		(reader->spec.has_start_read_time || reader->spec.start_offsets))
		store_start(reader);

	qsort_arg(reader->order, nranges, sizeof(int), compare_positions,
			  reader->positions);
	reader->next_in_order = 0;
	reader->current = -1;
}

/*
 * store_start
 *	  A new group that does not start at the beginning: decides where, for all
 *	  partitions at once, and remembers it.
 *
 * "latest" is now; by the time that some later call gets to a partition it
 * would be something else, and what came in between would never be read.  The
 * partitions stay locked, so the first transaction of such a group is alone.
 */
static void
store_start(PubsubReader *reader)
{
	const char *server = reader->table->server->servername;
	const char *topic = reader->table->options.topic;
	const char *group_id = reader->spec.group_id;
	PubsubPosition *positions = reader->positions;
	int			nranges = reader->ranges.nranges;
	bool	   *locked = palloc(Max(nranges, 1) * sizeof(bool));

	pubsub_reader_apply_start(reader);
	for (int i = 0; i < nranges; i++)
		locked[i] = pubsub_position_try_lock(server, topic, group_id,
											 positions[i].partition);

	/* another session may have been here before we had the locks */
	pubsub_positions_read(server, topic, group_id, nranges, positions);
	for (int i = 0; i < nranges; i++)
	{
		positions[i].changed = locked[i] && !positions[i].exists;
		if (positions[i].changed)
			positions[i].next_offset = reader->ranges.ranges[i].start;
	}
	pubsub_positions_store(server, topic, group_id, nranges, positions);
	for (int i = 0; i < nranges; i++)
	{
		positions[i].exists |= positions[i].changed;
		positions[i].changed = false;
	}
	pfree(locked);
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
 * pubsub_consume_next
 *	  Consuming a log: takes the next partition that has something to read and
 *	  that nobody else has.  False = there is none.
 */
bool
pubsub_consume_next(PubsubReader *reader)
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
	{
		start = pubsub_reader_check_start(reader, i, true,
										  position->next_offset);
		if (start != position->next_offset)
		{
			position->next_offset = start;
			position->changed = true;
		}
	}
	if (start >= range->end)
		return false;

	range->start = start;
	reader->current = i;
	reader->next_offset = start;
	reader->assigned.nranges = 1;
	reader->assigned.ranges = range;
	pubsub_reader_assign(reader);
	return true;
}

/*
 * pubsub_consume_leave
 *	  The current partition was read to its end: that is its position, also if
 *	  no record shows it.
 */
void
pubsub_consume_leave(PubsubReader *reader)
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
 *	  Goes on after others had a chance to consume.
 *
 * In a new transaction the locks are gone.  The current partition is taken
 * again; if another session has it now it is left, if its position has moved
 * the source moves, too.  Otherwise the source goes on undisturbed.
 */
void
pubsub_reader_resume(PubsubReader *reader)
{
	PubsubPosition *position;
	PubsubRange *range;
	int			current = reader->current;

	pubsub_session_reuse(reader->session);
	if (!reader->is_log || current < 0 || reader->stop != PUBSUB_STOP_NONE)
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
