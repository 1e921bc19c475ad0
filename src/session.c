/*-------------------------------------------------------------------------
 *
 * session.c
 *		Sessions: what a backend keeps open at a broker
 *
 * A session stands for one set of credentials at one server, so its key is
 * the server and the user mapping.  It outlives statements and transactions;
 * its sources do not, with the one exception of those opened with "keep".
 *
 * Everything a driver allocates is reachable from here from the moment that it
 * exists, because an error may come between any two lines and the executor
 * does not call EndForeignScan then: the transaction callbacks in xact.c close
 * what is left.
 *
 * After ALTER SERVER or ALTER USER MAPPING a session is retired: nobody gets
 * it any more, and it goes with the end of a transaction.
 *
 * IDENTIFICATION
 *		src/session.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "session.h"

/* all sessions of this backend, retired ones included */
static dlist_head sessions = DLIST_STATIC_INIT(sessions);
static bool callbacks_registered = false;

static PubsubSessionEntry *find_entry(Oid serverid, Oid umid);
static PubsubSessionEntry *make_entry(ForeignServer *server, Oid userid);
static void destroy_entry(PubsubSessionEntry *entry);
static void acquire_fds(int n);
static void release_fds(int n);
static void invalidate_sessions(Datum arg, int cacheid, uint32 hashvalue);
static void close_all_at_exit(int code, Datum arg);

/*
 * pubsub_session_get
 *	  Finds or makes the session for a server and a user.
 */
PubsubSession *
pubsub_session_get(ForeignServer *server, Oid userid)
{
	PubsubSessionEntry *entry;
	Oid			umid;

	pubsub_check_enabled();

	/* before anything that could need the callbacks */
	pubsub_xact_enlist();
	if (!callbacks_registered)
	{
		CacheRegisterSyscacheCallback(FOREIGNSERVEROID,
									  invalidate_sessions, (Datum) 0);
		CacheRegisterSyscacheCallback(USERMAPPINGOID,
									  invalidate_sessions, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNDATAWRAPPEROID,
									  invalidate_sessions, (Datum) 0);
		on_proc_exit(close_all_at_exit, (Datum) 0);
		callbacks_registered = true;
	}

	/* also checks again that this user may use this mapping */
	(void) pubsub_server_options(server, userid, &umid);

	entry = find_entry(server->serverid, umid);
	if (entry == NULL)
		entry = make_entry(server, userid);

	entry->in_xact = true;
	return &entry->session;
}

/*
 * pubsub_session_reuse
 *	  A session of an earlier transaction is used by this one: "keep".
 */
void
pubsub_session_reuse(PubsubSession *session)
{
	pubsub_xact_enlist();
	((PubsubSessionEntry *) ((char *) session -
							 offsetof(PubsubSessionEntry, session)))->in_xact = true;
}

static PubsubSessionEntry *
find_entry(Oid serverid, Oid umid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &sessions)
	{
		PubsubSessionEntry *entry = dlist_container(PubsubSessionEntry, node,
													iter.cur);

		if (entry->serverid == serverid && entry->umid == umid &&
			!entry->retired)
			return entry;
	}
	return NULL;
}

/*
 * make_entry
 *	  Makes a session and attaches the driver.
 *
 * It is on the list, as a retired one, before the driver is called: whatever
 * happens then, the end of the transaction cleans up.
 */
static PubsubSessionEntry *
make_entry(ForeignServer *server, Oid userid)
{
	MemoryContext cxt;
	MemoryContext oldcxt;
	PubsubSessionEntry *entry;
	PubsubOptions *options;
	PubsubError error;

	cxt = AllocSetContextCreate(CacheMemoryContext, "pubsub_fdw session",
								ALLOCSET_SMALL_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);
	entry = palloc0(sizeof(PubsubSessionEntry));
	entry->cxt = cxt;
	entry->retired = true;
	dlist_init(&entry->session.sources);
	dlist_init(&entry->session.sinks);
	dlist_push_tail(&sessions, &entry->node);

	options = pubsub_server_options(server, userid, &entry->umid);
	entry->serverid = server->serverid;
	entry->userid = userid;
	entry->session.driver = pubsub_driver_find(options->broker);
	entry->session.options = options;
	entry->session.server_name = pstrdup(server->servername);
	MemoryContextSwitchTo(oldcxt);

	acquire_fds(entry->session.driver->session_fds);
	entry->attached = true;
	pubsub_error_clear(&error);
	if (entry->session.driver->attach(&entry->session, &error) != PUBSUB_OK)
		pubsub_throw(&entry->session, &error, "use server \"%s\"",
					 entry->session.server_name);

	entry->retired = false;
	return entry;
}

static void
destroy_entry(PubsubSessionEntry *entry)
{
	dlist_delete(&entry->node);
	if (entry->attached)
	{
		entry->session.driver->detach(&entry->session);
		release_fds(entry->session.driver->session_fds);
	}
	MemoryContextDelete(entry->cxt);
}

/*
 * acquire_fds
 *	  Tells fd.c about descriptors that a library will open.
 */
static void
acquire_fds(int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!AcquireExternalFD())
		{
			release_fds(i);
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("could not use a broker: too many files are open in this session"),
					 errhint("Raise \"max_files_per_process\", or read fewer foreign tables at a time.")));
		}
	}
}

static void
release_fds(int n)
{
	for (int i = 0; i < n; i++)
		ReleaseExternalFD();
}

/*
 * pubsub_session_open_source
 *	  Opens a source and hangs it on its session.
 */
PubsubSource *
pubsub_session_open_source(PubsubSession *session,
						   const PubsubSourceSpec *spec, bool keep)
{
	PubsubSource *source;
	PubsubError error;

	acquire_fds(session->driver->source_fds);
	pubsub_error_clear(&error);
	source = session->driver->source->open(session, spec, &error);
	if (source == NULL)
	{
		release_fds(session->driver->source_fds);
		pubsub_throw(session, &error, "open a reader at server \"%s\"",
					 session->server_name);
	}
	source->ops = session->driver->source;
	source->session = session;
	source->nest_level = GetCurrentTransactionNestLevel();
	source->keep = keep;
	source->held = NULL;
	dlist_push_tail(&session->sources, &source->node);
	return source;
}

void
pubsub_session_close_source(PubsubSource *source)
{
	PubsubSession *session = source->session;

	dlist_delete(&source->node);
	source->ops->close(source);
	release_fds(session->driver->source_fds);
}

/*
 * pubsub_session_open_sink
 *	  Opens a sink and hangs it on its session.
 */
PubsubSink *
pubsub_session_open_sink(PubsubSession *session, const PubsubSinkSpec *spec)
{
	PubsubSink *sink;
	PubsubError error;

	pubsub_error_clear(&error);
	sink = session->driver->sink->open(session, spec, &error);
	if (sink == NULL)
		pubsub_throw(session, &error, "open topic \"%s\" for publishing",
					 spec->topic);
	sink->ops = session->driver->sink;
	sink->session = session;
	sink->nput = 0;
	sink->ndelivered = 0;
	dlist_push_tail(&session->sinks, &sink->node);
	return sink;
}

void
pubsub_session_close_sink(PubsubSink *sink)
{
	dlist_delete(&sink->node);
	sink->ops->close(sink);
}

/*
 * pubsub_session_close_sources
 *	  Closes the sources that were opened at this nesting level or deeper.
 */
void
pubsub_session_close_sources(int nest_level, bool commit)
{
	dlist_iter	iter;

	dlist_foreach(iter, &sessions)
	{
		PubsubSession *session = &dlist_container(PubsubSessionEntry, node,
												  iter.cur)->session;
		dlist_mutable_iter source_iter;

		dlist_foreach_modify(source_iter, &session->sources)
		{
			PubsubSource *source = dlist_container(PubsubSource, node,
												   source_iter.cur);

			if (source->nest_level >= nest_level &&
				!(commit && source->keep))
				pubsub_session_close_source(source);
		}
	}
}

/*
 * pubsub_session_reparent_sources
 *	  Sources of a committed subtransaction become its parent's.
 */
void
pubsub_session_reparent_sources(int nest_level)
{
	dlist_iter	iter;

	dlist_foreach(iter, &sessions)
	{
		PubsubSession *session = &dlist_container(PubsubSessionEntry, node,
												  iter.cur)->session;
		dlist_iter	source_iter;

		dlist_foreach(source_iter, &session->sources)
		{
			PubsubSource *source = dlist_container(PubsubSource, node,
												   source_iter.cur);

			if (source->nest_level >= nest_level)
				source->nest_level = nest_level - 1;
		}
	}
}

/*
 * pubsub_session_close_sinks
 *	  Closes what sinks are left, which are those of a failed transaction.
 */
void
pubsub_session_close_sinks(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &sessions)
	{
		PubsubSession *session = &dlist_container(PubsubSessionEntry, node,
												  iter.cur)->session;
		dlist_mutable_iter sink_iter;

		dlist_foreach_modify(sink_iter, &session->sinks)
		{
			PubsubSink *sink = dlist_container(PubsubSink, node,
											   sink_iter.cur);

			pubsub_sink_abandon(sink);
			pubsub_session_close_sink(sink);
		}
	}
}

/*
 * pubsub_session_end_xact
 *	  The transaction has ended: no session is in use, retired ones go.
 */
void
pubsub_session_end_xact(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &sessions)
	{
		PubsubSessionEntry *entry = dlist_container(PubsubSessionEntry, node,
													iter.cur);

		/* a call for administration that failed */
		if (entry->in_xact && entry->session.driver->admin)
			entry->session.driver->admin->end(&entry->session);
		entry->in_xact = false;
		if (entry->retired && dlist_is_empty(&entry->session.sources))
			destroy_entry(entry);
	}
}

/*
 * pubsub_session_disconnect
 *	  Closes the idle sessions of a server; InvalidOid = of all servers.
 *
 * Those that the current transaction has used are retired and go when it
 * ends.  Returns whether there were any.
 */
bool
pubsub_session_disconnect(Oid serverid)
{
	dlist_mutable_iter iter;
	bool		found = false;

	dlist_foreach_modify(iter, &sessions)
	{
		PubsubSessionEntry *entry = dlist_container(PubsubSessionEntry, node,
													iter.cur);

		if (entry->retired ||
			(OidIsValid(serverid) && entry->serverid != serverid))
			continue;
		found = true;
		if (entry->in_xact || !dlist_is_empty(&entry->session.sources))
			entry->retired = true;
		else
			destroy_entry(entry);
	}
	return found;
}

dlist_head *
pubsub_session_list(void)
{
	return &sessions;
}

/*
 * invalidate_sessions
 *	  A server, a user mapping or a wrapper has changed.
 *
 * Which one is not worth finding out: a new session costs milliseconds.  Those
 * in use by this transaction go on for what is open, and are destroyed when it
 * ends; so are the others, since closing one here, in the middle of anything,
 * would be no good.
 */
static void
invalidate_sessions(Datum arg pg_attribute_unused(),
					int cacheid pg_attribute_unused(),
					uint32 hashvalue pg_attribute_unused())
{
	dlist_iter	iter;

	dlist_foreach(iter, &sessions)
		dlist_container(PubsubSessionEntry, node, iter.cur)->retired = true;
}

/*
 * close_all_at_exit
 *	  The backend exits: no thread of a library may see that.
 *
 * Runs after the transaction was aborted (shmem_exit comes first) and before
 * the exit handlers of libc, in which OpenSSL takes itself apart.
 */
static void
close_all_at_exit(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	dlist_mutable_iter iter;

	pubsub_session_close_sources(0, false);
	pubsub_session_close_sinks();
	dlist_foreach_modify(iter, &sessions)
		destroy_entry(dlist_container(PubsubSessionEntry, node, iter.cur));
}
