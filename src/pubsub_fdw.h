/*-------------------------------------------------------------------------
 *
 * pubsub_fdw.h
 *		What the files of ring 1 offer each other, in flow order
 *
 * See src/README for the map.
 *
 * IDENTIFICATION
 *		src/pubsub_fdw.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_FDW_H
#define PUBSUB_FDW_H

#include "access/attnum.h"
#include "access/tupdesc.h"
#include "commands/explain.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "nodes/bitmapset.h"
#include "portability/instr_time.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "driver.h"

/* in pubsub_fdw.c: GUCs */
extern bool pubsub_enabled;
extern int	pubsub_connect_timeout; /* ms */
extern int	pubsub_request_timeout; /* ms */
extern int	pubsub_ack_timeout; /* ms */
extern int	pubsub_publish_buffer_size; /* kB */

/* ---------- definition: what the user declared ---------- */

/* in option.c */

/*
 * A foreign table as the statement sees it: who asks, through which mapping,
 * with which options.  Everything is in the context that was current.
 */
typedef struct PubsubTable
{
	Oid			relid;
	char	   *name;			/* schema-qualified and quoted, for messages */
	Oid			userid;			/* whose user mapping applies */
	ForeignServer *server;
	Oid			umid;			/* InvalidOid: no user mapping */
	const PubsubDriver *driver;
	PubsubOptions options;		/* table over server over wrapper, + mapping */
} PubsubTable;

/*
 * Looks the table up and checks its options against the server's broker
 * (HV00C) and for completeness (HV002).  userid: see GetUserMapping.  No
 * network.
 */
extern PubsubTable *pubsub_table_get(Oid relid, Oid userid);

/*
 * Options of a server and the mapping of userid alone, for sessions and the
 * administrative functions; *umid as in PubsubTable.
 */
extern PubsubOptions *pubsub_server_options(ForeignServer *server, Oid userid,
											Oid *umid);

/* Is this foreign table one of ours? */
extern bool pubsub_is_our_table(Oid relid);

/* An option that is needed to <purpose> is missing: HV002. */
extern void pubsub_option_missing(const PubsubTable *table, const char *option,
								  const char *purpose) pg_attribute_noreturn();

/*
 * A Pub/Sub topic or subscription name, given bare, as a full path, or in
 * Beam's legacy form, as its full path (palloc'd).  kind is "topics" or
 * "subscriptions"; 22023 if malformed or if a bare name has no project.
 */
extern char *pubsub_resource_path(const char *name, const char *kind,
								  const char *project);

/* in column.c */
typedef enum PubsubRole
{
	PUBSUB_ROLE_NONE,			/* dropped column */
	PUBSUB_ROLE_FIELD,			/* field of the payload */
	PUBSUB_ROLE_ATTRIBUTE,		/* one attribute or header */
	/* metadata, from here on */
	PUBSUB_ROLE_DATA,
	PUBSUB_ROLE_KEY,
	PUBSUB_ROLE_ATTRIBUTES,
	PUBSUB_ROLE_HEADERS,
	PUBSUB_ROLE_EVENT_TIME,
	PUBSUB_ROLE_PUBLISH_TIME,
	PUBSUB_ROLE_TIMESTAMP_TYPE,
	PUBSUB_ROLE_MESSAGE_ID,
	PUBSUB_ROLE_TOPIC,
	PUBSUB_ROLE_PARTITION,
	PUBSUB_ROLE_OFFSET,
	PUBSUB_ROLE_SUBSCRIPTION,
	PUBSUB_ROLE_DELIVERY_ATTEMPT
} PubsubRole;

/* One step of a field path: a member name, or an array index */
typedef struct PubsubPathStep
{
	char	   *name;			/* NULL: index */
	int			index;
} PubsubPathStep;

typedef struct PubsubColumn
{
	AttrNumber	attnum;
	char	   *name;
	PubsubRole	role;
	Oid			typid;
	int32		typmod;
	char	   *attribute;		/* ROLE_ATTRIBUTE: its name */
	PubsubPathStep *path;		/* ROLE_FIELD */
	int			npath;
} PubsubColumn;

typedef struct PubsubColumns
{
	TupleDesc	tupdesc;
	int			ncolumns;		/* = tupdesc->natts */
	PubsubColumn *columns;		/* by attnum - 1 */
	bool		has_field;		/* any ROLE_FIELD column */
} PubsubColumns;

/*
 * Binds the columns of a table.  A column that cannot be bound, or not with
 * its type, is an error that names it.
 */
extern PubsubColumns *pubsub_columns_get(Relation rel,
										 const PubsubTable *table);

/* PUBSUB_WANT_* bits for these columns; needed is indexed by attnum - 1. */
extern uint32 pubsub_columns_wants(const PubsubColumns *columns,
								   const PubsubTable *table,
								   const bool *needed);

/* Validator's half: is this value of a column option well-formed? (22023) */
extern void pubsub_column_check_option(const char *option, const char *value);

/* ---------- read path, in order of execution ---------- */

/* in plan.c */
extern void pubsubGetForeignRelSize(PlannerInfo *root, RelOptInfo *baserel,
									Oid foreigntableid);
extern void pubsubGetForeignPaths(PlannerInfo *root, RelOptInfo *baserel,
								  Oid foreigntableid);
extern ForeignScan *pubsubGetForeignPlan(PlannerInfo *root,
										 RelOptInfo *baserel,
										 Oid foreigntableid,
										 ForeignPath *best_path, List *tlist,
										 List *scan_clauses,
										 Plan *outer_plan);

/* in bounds.c: which offsets of which partitions */

/*
 * Do these option values make sense?  Raise 22023 naming the option if not.
 */
extern void pubsub_bounds_check_partitions(const char *option,
										   const char *value);
extern void pubsub_bounds_check_offsets(const char *option,
										const char *value);
extern void pubsub_bounds_check_time(const char *option, const char *value);

/* A timestamp option to its value; 22023 naming the option. */
extern TimestampTz pubsub_bounds_parse_time(const char *option,
											const char *value);

/* in reader.c: one bounded read, whoever asks for it */
typedef struct PubsubReader PubsubReader;

typedef struct PubsubReadSpec
{
	uint32		wants;			/* PUBSUB_WANT_* */
	bool		consume;		/* acknowledge or move positions at commit */
	bool		keep;			/* survives COMMIT (CALL pubsub_ingest) */
	int64		max_records;	/* 0 = none */
	int			max_read_time;	/* ms; 0 = none */
	int64		limit;			/* no more will be taken, for prefetch; 0 = ? */
	const char *group_id;		/* consume from a log */
	const char *partitions;		/* "0,3-5"; NULL = all */
	const char *start_offsets;	/* NULL = earliest */
	const char *stop_offsets;	/* NULL = latest */
	bool		has_start_read_time;	/* wins over start_offsets */
	TimestampTz start_read_time;
	bool		has_stop_read_time; /* wins over stop_offsets */
	TimestampTz stop_read_time;
	EState	   *estate;			/* shares captured ends with the statement's
								 * other scans; may be NULL */
	int			nest_level;		/* whose end ends the read; 0 = the current */
} PubsubReadSpec;

/* Takes the read options of the table as defaults of a spec. */
extern void pubsub_read_spec_init(PubsubReadSpec *spec,
								  const PubsubTable *table);

/*
 * Opens a reader; everything of it that is not the driver's is in the current
 * context, which must live as long.  No network.
 */
extern PubsubReader *pubsub_reader_open(const PubsubTable *table,
										const PubsubReadSpec *spec);

/*
 * The next message, or NULL at the end of the read.  With spec.consume the
 * message counts as handed over and is marked.  The message is valid until
 * the next call.  Waits, and can be cancelled.
 */
extern PubsubMessage *pubsub_reader_next(PubsubReader *reader);

/* Reads from the start again (logs only); the ends stay. */
extern void pubsub_reader_rewind(PubsubReader *reader);

/*
 * consume: writes the positions of what was handed over (logs), within the
 * current subtransaction.
 */
extern void pubsub_reader_store_positions(PubsubReader *reader);

/*
 * consume with spec.keep: goes on after the positions were stored and others
 * had a chance to consume: another session, in a new transaction, or a trigger
 * of our own.  Positions are taken again.
 */
extern void pubsub_reader_resume(PubsubReader *reader);

/* Gives back what was not handed over, waits for that, closes. */
extern void pubsub_reader_close(PubsubReader *reader);

extern PubsubStopReason pubsub_reader_stop_reason(const PubsubReader *reader);
extern int64 pubsub_reader_nmessages(const PubsubReader *reader);

/* How many messages pubsub_reader_next() can return without waiting */
extern int	pubsub_reader_nbuffered(const PubsubReader *reader);
extern int64 pubsub_reader_nbytes(const PubsubReader *reader);
extern const PubsubRanges *pubsub_reader_ranges(const PubsubReader *reader);
extern const char *pubsub_stop_reason_name(PubsubStopReason reason);

/* in decode.c */
typedef struct PubsubDecoder PubsubDecoder;

/*
 * Makes a decoder for the needed columns (by attnum - 1; NULL = all), in the
 * current context.
 */
extern PubsubDecoder *pubsub_decoder_create(const PubsubTable *table,
											const PubsubColumns *columns,
											const bool *needed);

/*
 * A queue's topic is not in its messages; NULL = not known.  The string must
 * live as long as the decoder.
 */
extern void pubsub_decoder_set_topic(PubsubDecoder *decoder,
									 const char *topic);

/*
 * Message to values, in the current context (make it a short-lived one).
 * Columns that are not needed become NULL.  An undecodable message raises the
 * input function's own error, with the message's place in CONTEXT.
 */
extern void pubsub_decode(PubsubDecoder *decoder, const PubsubMessage *message,
						  Datum *values, bool *isnull);

/* in scan.c */
extern void pubsubBeginForeignScan(ForeignScanState *node, int eflags);
extern TupleTableSlot *pubsubIterateForeignScan(ForeignScanState *node);
extern void pubsubReScanForeignScan(ForeignScanState *node);
extern void pubsubEndForeignScan(ForeignScanState *node);
extern void pubsubExplainForeignScan(ForeignScanState *node, ExplainState *es);

/* ---------- write path, in order of execution ---------- */

/* in modify.c */
extern int	pubsubIsForeignRelUpdatable(Relation rel);
extern List *pubsubPlanForeignModify(PlannerInfo *root, ModifyTable *plan,
									 Index resultRelation, int subplan_index);
extern void pubsubBeginForeignModify(ModifyTableState *mtstate,
									 ResultRelInfo *rinfo, List *fdw_private,
									 int subplan_index, int eflags);
extern TupleTableSlot *pubsubExecForeignInsert(EState *estate,
											   ResultRelInfo *rinfo,
											   TupleTableSlot *slot,
											   TupleTableSlot *planSlot);
extern void pubsubEndForeignModify(EState *estate, ResultRelInfo *rinfo);
extern void pubsubBeginForeignInsert(ModifyTableState *mtstate,
									 ResultRelInfo *rinfo);
extern void pubsubEndForeignInsert(EState *estate, ResultRelInfo *rinfo);
extern void pubsubExplainForeignModify(ModifyTableState *mtstate,
									   ResultRelInfo *rinfo, List *fdw_private,
									   int subplan_index, ExplainState *es);

/* in encode.c */
typedef struct PubsubEncoder PubsubEncoder;

/* Makes an encoder in the current context. */
extern PubsubEncoder *pubsub_encoder_create(const PubsubTable *table,
											const PubsubColumns *columns);

/*
 * A row to a message, whose memory is in the current context or is that of
 * the values; includes pubsub_encode_time().  A value for a column that cannot
 * be written is 428C9.
 */
extern void pubsub_encode(PubsubEncoder *encoder, const Datum *values,
						  const bool *isnull, PubsubMessage *message);

/*
 * Attributes given as one jsonb object to message->headers: scalars become
 * text, null, arrays and objects are errors that name the key (22023).
 */
extern void pubsub_encode_attributes(Jsonb *attributes,
									 PubsubMessage *message);

/*
 * What every message of the table gets: the timestamp attribute (appended to
 * the headers), and the record timestamp.  has_time = false: now.
 */
extern void pubsub_encode_time(const PubsubTable *table, bool has_time,
							   TimestampTz event_time,
							   PubsubMessage *message);

/* in pending.c: messages of the current transaction, held until it commits */
typedef struct PubsubTarget PubsubTarget;

/*
 * The table as a target of this transaction.  Checks that it may be written
 * (read-only transaction: 25006; updatable 'false'; no topic: HV002), connects,
 * and makes sure that the topic exists.  Valid until the transaction ends.
 * Does not check privileges.
 */
extern PubsubTarget *pubsub_pending_target(Oid relid, Oid userid);
extern const PubsubTable *pubsub_target_table(const PubsubTarget *target);

/*
 * Checks the message against the broker's limits and keeps a copy of it in
 * the current subtransaction.
 */
extern void pubsub_pending_add(PubsubTarget *target,
							   const PubsubMessage *message);

/* called by xact.c only */
extern void pubsub_pending_pre_commit(void);
extern void pubsub_pending_subxact_commit(int nest_level);
extern void pubsub_pending_subxact_abort(int nest_level);	/* never throws */
extern void pubsub_pending_end(bool commit);	/* never throws */

/* ---------- the spine both paths share ---------- */

/* in session.c; more of it in session.h */

/*
 * The session for a server and the user whose mapping applies; made if need
 * be, and used by the current transaction from here on.
 */
extern PubsubSession *pubsub_session_get(ForeignServer *server, Oid userid);

/* A session kept from an earlier transaction is used by this one. */
extern void pubsub_session_reuse(PubsubSession *session);

/*
 * Opens a source or a sink and hangs it on the session; closes it.  The
 * former raise an error on failure.
 */
extern PubsubSource *pubsub_session_open_source(PubsubSession *session,
												const PubsubSourceSpec *spec,
												bool keep);
extern void pubsub_session_close_source(PubsubSource *source);
extern PubsubSink *pubsub_session_open_sink(PubsubSession *session,
											const PubsubSinkSpec *spec);
extern void pubsub_session_close_sink(PubsubSink *sink);

/* in xact.c */

/*
 * Makes sure that the transaction callbacks are there, and remembers that a
 * broker was used (PREPARE TRANSACTION is refused then).
 */
extern void pubsub_xact_enlist(void);

/* Puts the lease of a message into the ack set of this subtransaction. */
extern void pubsub_xact_mark(PubsubSession *session, PubsubMessage *message);

/*
 * Consuming and publishing are writes: 25006 in a read-only transaction or on
 * a standby, 55000 if pubsub_fdw.enabled is off.
 */
extern void pubsub_check_enabled(void);
extern void pubsub_check_writable(const char *what);

/* in wait.c */

/* A point in time, or none; monotonic clock. */
typedef struct PubsubDeadline
{
	bool		set;
	instr_time	start;
	int			ms;
} PubsubDeadline;

extern void pubsub_deadline_set(PubsubDeadline *deadline, int ms);
extern bool pubsub_deadline_passed(const PubsubDeadline *deadline);

/* ms until then, at least 0, at most max */
extern int	pubsub_deadline_left(const PubsubDeadline *deadline, int max);

/* How long one blocking step or wait may take, in ms */
#define PUBSUB_SLICE_MS 100

/*
 * Sleeps until fd (-1 = none) is readable, the latch is set, or timeout_ms
 * have passed; handles interrupts.
 */
extern void pubsub_wait(int fd, int timeout_ms);

/* in error.c */

/*
 * Raises a driver's error.  "action" completes "could not %s", for instance
 * read from topic "x"; the kind decides on the SQLSTATE and may replace the
 * primary message (could not connect to server "s").
 */
extern void pubsub_throw(const PubsubSession *session,
						 const PubsubError *error, const char *action_fmt,...)
			pg_attribute_printf(3, 4) pg_attribute_noreturn();

/* No answer in time: as above with kind CONNECT or LOST and the soft cause. */
extern void pubsub_throw_timeout(const PubsubSession *session,
								 const PubsubError *soft_cause,
								 PubsubErrorKind kind, int timeout_ms,
								 const char *action_fmt,...)
			pg_attribute_printf(5, 6) pg_attribute_noreturn();

/* ---------- SQL surface that is not the FDW ---------- */

/* in position.c: pubsub_offsets, the positions of log consumers */

/* The longest name of a group, in bytes: it is part of an index */
#define PUBSUB_MAX_GROUP_ID 255

typedef struct PubsubPosition
{
	int32		partition;
	bool		exists;			/* has a row */
	int64		next_offset;
	TimestampTz updated_at;
	bool		changed;		/* to be written by pubsub_positions_store */
} PubsubPosition;

/*
 * Fills in the positions of the given partitions as of now.  Takes no lock.
 */
extern void pubsub_positions_read(const char *server, const char *topic,
								  const char *group_id, int npositions,
								  PubsubPosition *positions);

/*
 * Takes a partition for this group until the (sub)transaction ends, without
 * waiting; false = another session has it.
 */
extern bool pubsub_position_try_lock(const char *server, const char *topic,
									 const char *group_id, int32 partition);

/* Writes the changed ones. */
extern void pubsub_positions_store(const char *server, const char *topic,
								   const char *group_id, int npositions,
								   const PubsubPosition *positions);

/* in read_func.c: pubsub_read(), pubsub_consume() */
/* in publish.c: pubsub_publish(), pubsub_send() */
/* in ingest.c: pubsub_ingest() */
/* in admin_func.c: topics, subscriptions, connections, version, options */

#endif							/* PUBSUB_FDW_H */
