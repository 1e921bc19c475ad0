/*-------------------------------------------------------------------------
 *
 * pending.c
 *		Messages published by the current transaction, until it commits
 *
 * A row that is sent to a topic is checked at once, but only written to a log,
 * one for the transaction (pending_log.c).  At PRE_COMMIT the log is read from
 * its start and everything in it goes to the sinks; the transaction commits
 * when the broker has confirmed each message.  ROLLBACK forgets the log.
 *
 * What a subtransaction publishes is always the tail of the log, so that a
 * mark at its start is all that ROLLBACK TO needs: the log is cut there.  A
 * mark is set when the subtransaction publishes its first message; the many
 * that publish nothing cost nothing.
 *
 * IDENTIFICATION
 *		src/pending.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "pending.h"

/* A table that this transaction publishes to, in a context of its own */
struct PubsubTarget
{
	PubsubTable *table;
	PubsubSession *session;
	PubsubSink *sink;
	bool		owns_sink;		/* else it is that of an earlier target */
	int64		nmessages;		/* in the log */
	bool		stale;			/* definition changed: takes no new message */
};

/* Where a subtransaction's messages start */
typedef struct PendingMark
{
	slist_node	node;
	int			nest_level;
	int64		position;		/* in the log */
	int			ntargets;
	int64		nmessages[FLEXIBLE_ARRAY_MEMBER];	/* of each target then */
} PendingMark;

/* For the context lines of an error at PRE_COMMIT */
typedef struct PublishContext
{
	PubsubTarget *target;
	int64		message_no;		/* -1 = none in particular */
} PublishContext;

/* The current transaction's; all in pending_cxt */
static MemoryContext pending_cxt = NULL;
static List *targets = NIL;
static slist_head marks = SLIST_STATIC_INIT(marks); /* innermost first */

static PubsubTarget *target_create(Oid relid, Oid userid);
static PubsubSink *find_sink(const PubsubTarget *target);
static bool same_settings(const PubsubOptions *a, const PubsubOptions *b);
static void target_connect(PubsubTarget *target);
static int64 messages_of_sink(const PubsubSink *sink);
static void register_invalidation(void);
static void invalidate_rel(Datum arg, Oid relid);
static void invalidate_all(Datum arg, int cacheid, uint32 hashvalue);
static void notice_serializable(void);
static void add_error_context(void *arg);
static PendingMark *innermost_mark(void);
static void mark_subxact(void);
static void truncate_to_mark(const PendingMark *mark);
static void publish_message(PublishContext *context,
							const PubsubMessage *message,
							const PubsubDeadline *statement);
static void publish_flush(PublishContext *context,
						  const PubsubDeadline *statement);
static bool publish_wait(PublishContext *context, bool flush,
						 PubsubDeadline *progress,
						 const PubsubDeadline *statement);
static int64 count_confirmed(void);
static void publish_error_context(void *arg);

/*
 * pubsub_pending_target
 *	  Makes the table a target of this transaction, or finds that it is one.
 *
 * May be called for each row: it is cheap once the target is there.
 */
PubsubTarget *
pubsub_pending_target(Oid relid, Oid userid)
{
	ListCell   *lc;

	pubsub_check_enabled();
	pubsub_check_writable("publish");

	foreach(lc, targets)
	{
		PubsubTarget *target = lfirst(lc);

		if (target->table->relid == relid && target->table->userid == userid &&
			!target->stale)
			return target;
	}
	return target_create(relid, userid);
}

const PubsubTable *
pubsub_target_table(const PubsubTarget *target)
{
	return target->table;
}

/*
 * target_create
 *	  Finds a sink for the table, or opens one and waits until it is ready.
 *
 * Only a target that is complete is put into the list, so that an error on
 * the way leaves none that a later statement could find.
 */
static PubsubTarget *
target_create(Oid relid, Oid userid)
{
	MemoryContext cxt;
	MemoryContext oldcxt;
	PubsubTarget *target;
	PubsubTable *table;
	PubsubSinkSpec spec = {0};

	register_invalidation();
	cxt = AllocSetContextCreate(CurrentMemoryContext, "pubsub_fdw target",
								ALLOCSET_SMALL_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	target = palloc0(sizeof(PubsubTarget));
	target->table = table = pubsub_table_get(relid, userid);

	if (!table->options.updatable)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" does not allow inserts",
						get_rel_name(relid))));
	if (table->options.topic == NULL)
		pubsub_option_missing(table, "topic", "publish");
	notice_serializable();

	target->session = pubsub_session_get(table->server, table->userid);
	target->sink = find_sink(target);
	if (target->sink == NULL)
	{
		spec.options = &table->options;
		spec.topic = table->options.topic;
		target->sink = pubsub_session_open_sink(target->session, &spec);
		target->owns_sink = true;
	}
	PG_TRY();
	{
		if (target->owns_sink)
			target_connect(target);
		if (pending_cxt == NULL)
			pending_cxt = AllocSetContextCreate(TopTransactionContext,
												"pubsub_fdw pending messages",
												ALLOCSET_DEFAULT_SIZES);
		MemoryContextSwitchTo(pending_cxt);
		targets = lappend(targets, target);
		MemoryContextSetParent(cxt, pending_cxt);
	}
	PG_CATCH();
	{
		if (target->owns_sink)
		{
			pubsub_sink_abandon(target->sink);
			pubsub_session_close_sink(target->sink);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcxt);

	return target;
}

/*
 * find_sink
 *	  Finds a sink that is open for the same topic.
 *
 * Several tables may be of one topic, and so may a table before and after a
 * change of its definition.  The order of their messages is kept only within
 * one sink.
 */
static PubsubSink *
find_sink(const PubsubTarget *target)
{
	const PubsubOptions *options = &target->table->options;
	ListCell   *lc;

	foreach(lc, targets)
	{
		const PubsubTarget *other = lfirst(lc);

		if (other->session == target->session &&
			strcmp(other->table->options.topic, options->topic) == 0 &&
			same_settings(&other->table->options, options))
			return other->sink;
	}
	return NULL;
}

/*
 * same_settings
 *	  Would a sink with these options do what one with those does?
 */
static bool
same_settings(const PubsubOptions *a, const PubsubOptions *b)
{
	if (a->batch_size != b->batch_size || a->batch_bytes != b->batch_bytes ||
		a->acks != b->acks || a->compression != b->compression ||
		a->nproperties != b->nproperties)
		return false;
	for (int i = 0; i < a->nproperties; i++)
	{
		if (strcmp(a->properties[i].name, b->properties[i].name) != 0 ||
			strcmp(a->properties[i].value, b->properties[i].value) != 0)
			return false;
	}
	return true;
}

static void
target_connect(PubsubTarget *target)
{
	const PubsubOptions *options = &target->table->options;
	PubsubDeadline deadline;
	PubsubStatus status;
	PubsubError error;

	pubsub_deadline_set(&deadline, options->connect_timeout);
	for (;;)
	{
		status = pubsub_sink_ready(target->sink,
								   pubsub_deadline_left(&deadline,
														PUBSUB_SLICE_MS),
								   &error);
		if (status != PUBSUB_AGAIN)
			break;
		CHECK_FOR_INTERRUPTS();
		if (pubsub_deadline_passed(&deadline))
			pubsub_throw_timeout(target->session, &error, PUBSUB_ERROR_CONNECT,
								 options->connect_timeout,
								 "publish to topic \"%s\"", options->topic);
	}
	if (status == PUBSUB_FAILED)
		pubsub_throw(target->session, &error, "publish to topic \"%s\"",
					 options->topic);
}

/*
 * register_invalidation
 *	  Sees to it that a target is not used beyond a change of its definition.
 *
 * The messages it already has stay with it: they were meant for the topic that
 * the table had then.
 */
static void
register_invalidation(void)
{
	static bool registered = false;

	if (registered)
		return;
	CacheRegisterRelcacheCallback(invalidate_rel, (Datum) 0);
	CacheRegisterSyscacheCallback(FOREIGNDATAWRAPPEROID, invalidate_all,
								  (Datum) 0);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, invalidate_all, (Datum) 0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, invalidate_all, (Datum) 0);
	registered = true;
}

static void
invalidate_rel(Datum arg pg_attribute_unused(), Oid relid)
{
	ListCell   *lc;

	foreach(lc, targets)
	{
		PubsubTarget *target = lfirst(lc);

		if (!OidIsValid(relid) || target->table->relid == relid)
			target->stale = true;
	}
}

static void
invalidate_all(Datum arg, int cacheid pg_attribute_unused(),
			   uint32 hashvalue pg_attribute_unused())
{
	invalidate_rel(arg, InvalidOid);
}

/*
 * notice_serializable
 *	  Tells once per session what SERIALIZABLE means here: the check for
 *	  serialization failures comes after PRE_COMMIT.
 */
static void
notice_serializable(void)
{
	static bool told = false;

	if (told || !IsolationIsSerializable())
		return;
	told = true;
	ereport(NOTICE,
			(errmsg("messages of a serializable transaction may be published although it fails to commit"),
			 errdetail("Messages are sent before the last check for serialization failures."),
			 errhint("Readers must be able to tell a message that is sent again when the transaction is retried.")));
}

/*
 * pubsub_pending_add
 *	  Checks a message and appends a copy of it to the log.
 */
void
pubsub_pending_add(PubsubTarget *target, const PubsubMessage *message)
{
	PubsubError error;

	if (pubsub_sink_check(target->sink, message, &error) != PUBSUB_OK)
	{
		ErrorContextCallback callback;

		callback.callback = add_error_context;
		callback.arg = target;
		callback.previous = error_context_stack;
		error_context_stack = &callback;
		pubsub_throw(target->session, &error, "publish to topic \"%s\"",
					 target->table->options.topic);
	}

	mark_subxact();
	pubsub_log_append(pending_cxt, target, message);
	target->nmessages++;
}

static void
add_error_context(void *arg)
{
	const PubsubTarget *target = arg;

	errcontext("message " INT64_FORMAT " of this transaction for topic \"%s\"",
			   messages_of_sink(target->sink) + 1,
			   target->table->options.topic);
}

/*
 * messages_of_sink
 *	  Counts what is in the log for a sink, of all its targets.
 */
static int64
messages_of_sink(const PubsubSink *sink)
{
	int64		n = 0;
	ListCell   *lc;

	foreach(lc, targets)
	{
		const PubsubTarget *target = lfirst(lc);

		if (target->sink == sink)
			n += target->nmessages;
	}
	return n;
}

static PendingMark *
innermost_mark(void)
{
	if (slist_is_empty(&marks))
		return NULL;
	return slist_head_element(PendingMark, node, &marks);
}

/*
 * mark_subxact
 *	  Sets the mark of the current subtransaction, unless it is there.
 */
static void
mark_subxact(void)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	int			ntargets = list_length(targets);
	PendingMark *mark = innermost_mark();

	if (nest_level == 1 || (mark != NULL && mark->nest_level == nest_level))
		return;

	mark = MemoryContextAlloc(pending_cxt,
							  offsetof(PendingMark, nmessages) +
							  sizeof(int64) * ntargets);
	mark->nest_level = nest_level;
	mark->position = pubsub_log_end();
	mark->ntargets = ntargets;
	for (int i = 0; i < ntargets; i++)
		mark->nmessages[i] = ((PubsubTarget *) list_nth(targets, i))->nmessages;
	slist_push_head(&marks, &mark->node);
}

/*
 * pubsub_pending_subxact_commit
 *	  Makes the messages of a subtransaction its parent's.
 */
void
pubsub_pending_subxact_commit(int nest_level)
{
	PendingMark *mark = innermost_mark();
	PendingMark *outer;

	if (mark == NULL || mark->nest_level < nest_level)
		return;

	slist_pop_head_node(&marks);
	outer = innermost_mark();
	if ((outer != NULL ? outer->nest_level : 1) == nest_level - 1)
		pfree(mark);			/* the parent has one before it, or needs none */
	else
	{
		mark->nest_level = nest_level - 1;
		slist_push_head(&marks, &mark->node);
	}
}

/*
 * pubsub_pending_subxact_abort
 *	  Forgets the messages of a subtransaction.  Never throws.
 */
void
pubsub_pending_subxact_abort(int nest_level)
{
	PendingMark *mark;

	while ((mark = innermost_mark()) != NULL && mark->nest_level >= nest_level)
	{
		truncate_to_mark(mark);
		slist_pop_head_node(&marks);
		pfree(mark);
	}
}

static void
truncate_to_mark(const PendingMark *mark)
{
	int			i = 0;
	ListCell   *lc;

	pubsub_log_truncate(mark->position);
	foreach(lc, targets)
	{
		PubsubTarget *target = lfirst(lc);

		target->nmessages = i < mark->ntargets ? mark->nmessages[i] : 0;
		i++;
	}
}

/*
 * pubsub_pending_pre_commit
 *	  Publishes what is in the log and waits until all of it is confirmed.
 *
 * statement_timeout is not armed here any more.  So that it bounds a COMMIT
 * behind a broker that does not answer, it is applied to the time spent here.
 */
void
pubsub_pending_pre_commit(void)
{
	PublishContext context = {0};
	ErrorContextCallback callback;
	PubsubDeadline statement;
	ListCell   *lc;
	int64		position = 0;

	if (pubsub_log_end() == 0)
	{
		pubsub_log_close_file();
		return;
	}

	pubsub_check_enabled();
	pubsub_deadline_set(&statement, StatementTimeout);
	context.message_no = -1;
	callback.callback = publish_error_context;
	callback.arg = &context;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	while (position < pubsub_log_end())
	{
		PubsubMessage message;

		CHECK_FOR_INTERRUPTS();
		context.target = pubsub_log_read(&position, &message);
		publish_message(&context, &message, &statement);
	}

	foreach(lc, targets)
	{
		context.target = lfirst(lc);
		if (context.target->nmessages > 0)
			publish_flush(&context, &statement);
	}

	error_context_stack = callback.previous;
	pubsub_log_close_file();
}

/*
 * publish_message
 *	  Puts one message into its sink.
 */
static void
publish_message(PublishContext *context, const PubsubMessage *message,
				const PubsubDeadline *statement)
{
	PubsubTarget *target = context->target;
	PubsubDeadline progress = {0};
	PubsubStatus status;
	PubsubError error;

	while ((status = pubsub_sink_put(target->sink, message,
									 &error)) == PUBSUB_AGAIN)
		(void) publish_wait(context, false, &progress, statement);

	if (status == PUBSUB_FAILED)
	{
		context->message_no = error.message_no;
		pubsub_throw(target->session, &error, "publish to topic \"%s\"",
					 target->table->options.topic);
	}
}

/*
 * publish_flush
 *	  Waits until a sink's messages are confirmed.
 */
static void
publish_flush(PublishContext *context, const PubsubDeadline *statement)
{
	PubsubDeadline progress = {0};

	while (!publish_wait(context, true, &progress, statement))
		;
}

/*
 * publish_wait
 *	  Lets a sink work and waits, if there is nothing to do, for at most a
 *	  slice.  True = all that was put into it is confirmed.
 *
 * A loop of calls starts with an empty progress: that is when it must end
 * unless something more is confirmed.
 */
static bool
publish_wait(PublishContext *context, bool flush, PubsubDeadline *progress,
			 const PubsubDeadline *statement)
{
	PubsubTarget *target = context->target;
	const PubsubOptions *options = &target->table->options;
	int64		nconfirmed = count_confirmed();
	int			slice = PUBSUB_SLICE_MS;
	PubsubStatus status;
	PubsubError error;

	CHECK_FOR_INTERRUPTS();
	status = pubsub_sink_drain(target->sink, flush, &error);
	if (status == PUBSUB_FAILED)
	{
		context->message_no = error.message_no;
		pubsub_throw(target->session, &error, "publish to topic \"%s\"",
					 options->topic);
	}
	if (status == PUBSUB_DONE && flush)
		return true;

	if (pubsub_deadline_passed(statement))
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling statement due to statement timeout")));
	if (nconfirmed != count_confirmed())
	{
		pubsub_deadline_set(progress, options->request_timeout);
		return false;
	}
	if (!progress->set)
		pubsub_deadline_set(progress, options->request_timeout);
	else if (pubsub_deadline_passed(progress))
		pubsub_throw_timeout(target->session, &error, PUBSUB_ERROR_LOST,
							 options->request_timeout,
							 "publish to topic \"%s\"", options->topic);

	slice = pubsub_deadline_left(progress, slice);
	slice = pubsub_deadline_left(statement, slice);
	pubsub_wait(pubsub_sink_event_fd(target->sink), slice);
	return false;
}

/*
 * count_confirmed
 *	  Counts over all sinks: they may share a connection and its queue.
 */
static int64
count_confirmed(void)
{
	int64		n = 0;
	ListCell   *lc;

	foreach(lc, targets)
		n += ((PubsubTarget *) lfirst(lc))->sink->ndelivered;
	return n;
}

/*
 * publish_error_context
 *	  Tells which message failed, and how far we got.
 */
static void
publish_error_context(void *arg)
{
	const PublishContext *context = arg;
	const PubsubTarget *target = context->target;

	if (target == NULL)
		return;
	if (context->message_no >= 0)
		errcontext("message " INT64_FORMAT " of this transaction for topic \"%s\"",
				   context->message_no + 1, target->table->options.topic);
	errcontext("publishing to topic \"%s\" at commit: " INT64_FORMAT " of " INT64_FORMAT " messages confirmed",
			   target->table->options.topic, target->sink->ndelivered,
			   messages_of_sink(target->sink));
}

/*
 * pubsub_pending_end
 *	  Forgets everything at the end of the transaction.  Never throws.
 *
 * The memory goes with the transaction's.
 */
void
pubsub_pending_end(bool commit)
{
	ListCell   *lc;

	foreach(lc, targets)
	{
		PubsubTarget *target = lfirst(lc);

		if (!target->owns_sink)
			continue;
		if (!commit)
			pubsub_sink_abandon(target->sink);
		pubsub_session_close_sink(target->sink);
	}
	targets = NIL;
	slist_init(&marks);
	pubsub_log_forget();
	pending_cxt = NULL;
}
