/*-------------------------------------------------------------------------
 *
 * xact.c
 *		What happens at brokers when a transaction commits or aborts
 *
 * The whole policy:
 *
 *	PRE_COMMIT	the requests for acknowledgements are built, messages to publish
 *				are sent and confirmed; any failure aborts the transaction
 *	COMMIT		the acknowledgements are sent; the commit is done, so nothing
 *				here may raise an error: with an xid that would be a PANIC
 *	ABORT		messages to publish are forgotten, messages read are given back
 *	PREPARE		refused: what a broker was told cannot wait for COMMIT PREPARED
 *
 * and the same for subtransactions, where commit hands everything to the
 * parent.  The callbacks are registered when a backend first uses a broker.
 *
 * IDENTIFICATION
 *		src/xact.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/memutils.h"

#include "session.h"

/*
 * Leases of messages that one subtransaction has handed to the executor.
 * Lives in ack_cxt.
 */
typedef struct AckSet
{
	dlist_node	node;			/* in ack_sets, newest last */
	PubsubSession *session;
	int			nest_level;
	void	  **leases;
	int			nleases;
	int			size;
} AckSet;

static bool callbacks_registered = false;

/* a broker was used by this transaction */
static bool enlisted = false;

/* PRE_COMMIT is behind us: what is published or consumed now would be lost */
static bool committing = false;

/* child of TopTransactionContext, or NULL */
static MemoryContext ack_cxt = NULL;
static dlist_head ack_sets = DLIST_STATIC_INIT(ack_sets);

static void xact_callback(XactEvent event, void *arg);
static void subxact_callback(SubXactEvent event, SubTransactionId mySubid,
							 SubTransactionId parentSubid, void *arg);
static void prepare_acks(void);
static void merge_ack_sets(void);
static void send_acks(void);
static void drop_acks(int nest_level);
static void warn_safely(PubsubSession *session, int64 nfailed,
						const PubsubError *error);
static void end_xact(bool commit);

/*
 * pubsub_xact_enlist
 *	  This transaction uses a broker.
 */
void
pubsub_xact_enlist(void)
{
	if (!callbacks_registered)
	{
		RegisterXactCallback(xact_callback, NULL);
		RegisterSubXactCallback(subxact_callback, NULL);
		callbacks_registered = true;
	}
	enlisted = true;
}

/*
 * pubsub_check_enabled
 *	  Raises an error if this database must not talk to brokers.
 */
void
pubsub_check_enabled(void)
{
	if (!pubsub_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("access to brokers is disabled"),
				 errhint("A superuser can set \"pubsub_fdw.enabled\".")));
}

/*
 * pubsub_check_writable
 *	  Raises an error if the transaction is read-only, on a standby, or being
 *	  committed (which only the callback of another extension can see).
 */
void
pubsub_check_writable(const char *what)
{
	PreventCommandIfReadOnly(what);
	PreventCommandDuringRecovery(what);
	if (committing)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot execute %s while the transaction is committing",
						what)));
}

/*
 * pubsub_xact_mark
 *	  Puts the lease of a message into the ack set of this subtransaction.
 */
void
pubsub_xact_mark(PubsubSession *session, PubsubMessage *message)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	AckSet	   *set = NULL;

	Assert(enlisted);
	if (message->lease == NULL)
		return;

	if (ack_cxt == NULL)
		ack_cxt = AllocSetContextCreate(TopTransactionContext,
										"pubsub_fdw ack sets",
										ALLOCSET_DEFAULT_SIZES);
	if (!dlist_is_empty(&ack_sets))
		set = dlist_tail_element(AckSet, node, &ack_sets);
	if (set == NULL || set->session != session ||
		set->nest_level != nest_level)
	{
		set = MemoryContextAllocZero(ack_cxt, sizeof(AckSet));
		set->session = session;
		set->nest_level = nest_level;
		set->size = 64;
		set->leases = MemoryContextAlloc(ack_cxt, set->size * sizeof(void *));
		dlist_push_tail(&ack_sets, &set->node);
	}
	if (set->nleases == set->size)
	{
		set->leases = repalloc_huge(set->leases,
									(Size) set->size * 2 * sizeof(void *));
		set->size *= 2;
	}
	set->leases[set->nleases++] = message->lease;
	message->marked = true;
}

/*
 * xact_callback
 *	  What the head of the file says.
 *
 * Also for transactions that have used no broker: there may be a source that
 * was kept for the next batch of an ingestion, or a session that was retired
 * since the last time.
 */
static void
xact_callback(XactEvent event, void *arg pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			prepare_acks();
			pubsub_pending_pre_commit();
			committing = true;
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			send_acks();
			end_xact(true);
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			drop_acks(0);
			end_xact(false);
			break;
		case XACT_EVENT_PRE_PREPARE:
			if (enlisted)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("cannot PREPARE a transaction that has used a pubsub_fdw foreign table")));
			break;
		case XACT_EVENT_PREPARE:
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid pg_attribute_unused(),
				 SubTransactionId parentSubid pg_attribute_unused(),
				 void *arg pg_attribute_unused())
{
	int			nest_level = GetCurrentTransactionNestLevel();
	dlist_iter	iter;

	if (!enlisted)
		return;

	switch (event)
	{
		case SUBXACT_EVENT_START_SUB:
		case SUBXACT_EVENT_PRE_COMMIT_SUB:
			break;
		case SUBXACT_EVENT_COMMIT_SUB:
			pubsub_pending_subxact_commit(nest_level);
			pubsub_session_reparent_sources(nest_level);
			dlist_foreach(iter, &ack_sets)
			{
				AckSet	   *set = dlist_container(AckSet, node, iter.cur);

				if (set->nest_level >= nest_level)
					set->nest_level = nest_level - 1;
			}
			break;
		case SUBXACT_EVENT_ABORT_SUB:
			pubsub_pending_subxact_abort(nest_level);
			drop_acks(nest_level);
			pubsub_session_close_sources(nest_level, false);
			break;
	}
}

/*
 * prepare_acks
 *	  At PRE_COMMIT: builds the requests, one set per session.
 */
static void
prepare_acks(void)
{
	dlist_iter	iter;

	merge_ack_sets();

	/* a commit that a crash can undo must not acknowledge anything */
	if (!dlist_is_empty(&ack_sets))
		ForceSyncCommit();

	dlist_foreach(iter, &ack_sets)
	{
		AckSet	   *set = dlist_container(AckSet, node, iter.cur);
		int64		nexpired = 0;
		PubsubError error;

		pubsub_error_clear(&error);
		if (set->session->driver->source->prepare_acks(set->session,
													   set->leases,
													   set->nleases,
													   &nexpired,
													   &error) != PUBSUB_OK)
			pubsub_throw(set->session, &error,
						 "prepare to acknowledge %d messages at server \"%s\"",
						 set->nleases, set->session->server_name);
		if (nexpired > 0)
			ereport(WARNING,
					(errcode(ERRCODE_WARNING),
					 errmsg("the lease of " INT64_FORMAT " of %d consumed messages has expired, they may come again",
							nexpired, set->nleases),
					 errhint("Consume fewer messages per transaction, or raise \"ack_deadline\" or \"max_lease\".")));
	}
}

/*
 * merge_ack_sets
 *	  Makes the sets of a session one, since a driver prepares only once.
 *
 * At the end of a transaction everything belongs to the top level.
 */
static void
merge_ack_sets(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &ack_sets)
	{
		AckSet	   *set = dlist_container(AckSet, node, iter.cur);
		dlist_iter	earlier;

		dlist_foreach(earlier, &ack_sets)
		{
			AckSet	   *first = dlist_container(AckSet, node, earlier.cur);

			if (first == set)
				break;
			if (first->session == set->session)
			{
				Size		size = (Size) first->nleases + set->nleases;

				first->leases = repalloc_huge(first->leases,
											  size * sizeof(void *));
				memcpy(first->leases + first->nleases, set->leases,
					   set->nleases * sizeof(void *));
				first->nleases = first->size = size;
				dlist_delete(&set->node);
				break;
			}
		}
	}
}

/*
 * send_acks
 *	  At COMMIT: sends the acknowledgements, and waits for ack_timeout at most.
 *
 * Interrupts are held.  Nothing here throws.
 */
static void
send_acks(void)
{
	PubsubDeadline deadline;
	dlist_iter	iter;

	pubsub_deadline_set(&deadline, pubsub_ack_timeout);
	dlist_foreach(iter, &ack_sets)
	{
		AckSet	   *set = dlist_container(AckSet, node, iter.cur);
		const PubsubSourceRoutine *ops = set->session->driver->source;
		PubsubStatus status;
		PubsubError error;

		do
		{
			pubsub_error_clear(&error);
			status = ops->send_acks(set->session, PUBSUB_SLICE_MS, &error);
		} while (status == PUBSUB_AGAIN && !pubsub_deadline_passed(&deadline));

		if (status == PUBSUB_AGAIN)
		{
			ops->abandon_acks(set->session);
			warn_safely(set->session, -1, &error);
		}
		else if (status == PUBSUB_FAILED)
			warn_safely(set->session,
						error.message_no > 0 ? error.message_no : set->nleases,
						&error);
	}
	dlist_init(&ack_sets);
}

/*
 * warn_safely
 *	  Reports that messages of a committed transaction were not acknowledged.
 *
 * nfailed < 0: it is not known how many.
 */
static void
warn_safely(PubsubSession *session, int64 nfailed, const PubsubError *error)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;

	/*
	 * Even a warning can fail: for want of memory, or because the client's
	 * encoding cannot show it.
	 */
	PG_TRY();
	{
		if (nfailed < 0)
			ereport(WARNING,
					(errcode(ERRCODE_WARNING),
					 errmsg("server \"%s\" did not confirm the acknowledgement of consumed messages within %d ms, they may come again",
							session->server_name, pubsub_ack_timeout),
					 error->detail[0] ? errdetail_internal("%s", error->detail) : 0));
		else
			ereport(WARNING,
					(errcode(ERRCODE_WARNING),
					 errmsg(INT64_FORMAT " consumed messages could not be acknowledged at server \"%s\", they may come again",
							nfailed, session->server_name),
					 error->detail[0] ? errdetail_internal("%s", error->detail) : 0));
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcxt);
		FlushErrorState();

		/* the error has reset it, but the commit goes on */
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
}

/*
 * drop_acks
 *	  At abort: gives back what this nesting level, or a deeper one, has read.
 */
static void
drop_acks(int nest_level)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &ack_sets)
	{
		AckSet	   *set = dlist_container(AckSet, node, iter.cur);

		if (set->nest_level < nest_level)
			continue;
		dlist_delete(&set->node);
		set->session->driver->source->drop_acks(set->session, set->leases,
												set->nleases);
	}
}

static void
end_xact(bool commit)
{
	pubsub_pending_end(commit);
	pubsub_session_close_sources(0, commit);
	pubsub_session_close_sinks();
	pubsub_session_end_xact();

	/* the sets' memory goes with TopTransactionContext */
	ack_cxt = NULL;
	enlisted = false;
	committing = false;
}
