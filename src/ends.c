/*-------------------------------------------------------------------------
 *
 * ends.c
 *		The ends that all scans of a topic in one statement share
 *
 * IDENTIFICATION
 *		src/ends.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"

#include "reader.h"

/* Ends that a statement captured, see pubsub_ends_share() */
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

static void forget_shared_ends(void *arg);

/*
 * pubsub_ends_share
 *	  Makes all scans of a topic in one statement see the same ends.
 *
 * The first one captures them for the others, for as long as the statement's
 * execution state lives.  Partitions that came later are left out.
 */
void
pubsub_ends_share(PubsubReader *reader, PubsubRanges *all)
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
