/*-------------------------------------------------------------------------
 *
 * dummy_driver.c
 *		Sessions, orders and administration of the dummy brokers
 *
 * See dummy.h for what they are.
 *
 * IDENTIFICATION
 *		test/dummy/dummy_driver.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <time.h>

#include "fmgr.h"

#include "dummy.h"

PG_MODULE_MAGIC;

DummyLive	dummy_live;
int64		dummy_ncalls;

static const char *const dummy_call_names[DUMMY_NCALLS] = {
	"attach", "open_source", "resolve", "lookup", "assign", "poll", "finish",
	"prepare_acks", "send_acks", "open_sink", "ready", "check", "put", "drain",
	"admin"
};

/* in the order of PubsubErrorKind */
static const char *const dummy_error_names[] = {
	"none", "connect", "lost", "auth", "permission", "not_found", "exists",
	"invalid", "too_large", "throttled", "data_loss", "memory", "other"
};

static PubsubStatus dummy_attach(PubsubSession *session, PubsubError *error);
static void dummy_detach(PubsubSession *session);
static PubsubStatus dummy_admin_begin(PubsubSession *session,
									  const PubsubAdminRequest *request,
									  PubsubError *error);
static PubsubStatus dummy_admin_step(PubsubSession *session, int slice_ms,
									 PubsubError *error);
static void dummy_admin_end(PubsubSession *session);
static bool dummy_version(int i, const char **component, const char **version);

static const PubsubAdminRoutine dummy_admin = {
	.begin = dummy_admin_begin,
	.step = dummy_admin_step,
	.end = dummy_admin_end
};

static const PubsubDriver dummy_log_driver = {
	.name = "dummy_log",
	.capabilities = PUBSUB_CAN_REWIND | PUBSUB_IS_LOG,
	.default_fetch_size = 1000,
	.source_fds = 1,
	.attach = dummy_attach,
	.detach = dummy_detach,
	.source = &dummy_log_source,
	.sink = &dummy_sink,
	.admin = &dummy_admin,
	.version = dummy_version
};

static const PubsubDriver dummy_queue_driver = {
	.name = "dummy_queue",
	.capabilities = PUBSUB_ACKS_EACH,
	.default_fetch_size = 100,
	.default_scan_records = 100,
	.default_scan_time = 5000,
	.attach = dummy_attach,
	.detach = dummy_detach,
	.source = &dummy_queue_source,
	.sink = &dummy_sink,
	.admin = &dummy_admin,
	.version = dummy_version
};

void		_PG_init(void);

/*
 * _PG_init
 *	  Registers both brokers; loads pubsub_fdw if it is not there.
 */
void
_PG_init(void)
{
	void		(*driver_register) (const PubsubDriver *driver);

	driver_register = (void (*) (const PubsubDriver *))
		load_external_function("$libdir/pubsub_fdw", "pubsub_driver_register",
							   true, NULL);
	driver_register(&dummy_log_driver);
	driver_register(&dummy_queue_driver);
}

/*
 * dummy_option
 *	  Returns the value of the server option "dummy_<name>", or NULL.
 */
static const char *
dummy_option(const PubsubSession *session, const char *name)
{
	int			i;

	for (i = 0; i < session->options->nproperties; i++)
	{
		const PubsubProperty *property = &session->options->properties[i];

		if (strncmp(property->name, "dummy_", 6) == 0 &&
			strcmp(property->name + 6, name) == 0)
			return property->value;
	}
	return NULL;
}

static int
dummy_option_int(const PubsubSession *session, const char *name, int defval)
{
	const char *value = dummy_option(session, name);

	return value == NULL ? defval : atoi(value);
}

/*
 * dummy_attach
 *	  Makes the state of a session and takes its orders.
 */
static PubsubStatus
dummy_attach(PubsubSession *session, PubsubError *error)
{
	DummySession *state = calloc(1, sizeof(DummySession));
	const char *value;
	int			i;

	dummy_ncalls++;
	if (state == NULL)
		return dummy_fail(error, PUBSUB_ERROR_MEMORY, "", "out of memory");
	session->state = state;
	dlist_init(&state->leases);

	state->user = dummy_option(session, "user");
	state->soft_cause = dummy_option(session, "soft_cause");
	state->again = dummy_option_int(session, "again", 0);
	state->block_ms = dummy_option_int(session, "block_ms", 0);
	state->batch = dummy_option_int(session, "batch", INT_MAX);
	state->no_eof = dummy_option(session, "no_eof") != NULL;
	state->truncate = dummy_option_int(session, "truncate", -1);
	state->unstable = dummy_option_int(session, "unstable", 0);
	state->fail_acks = dummy_option_int(session, "fail_acks", 0);
	state->expired = dummy_option_int(session, "expired", 0);
	state->max_message = dummy_option_int(session, "max_message", 1000000);
	state->queue_size = dummy_option_int(session, "queue_size", INT_MAX);
	state->drain = dummy_option_int(session, "drain", INT_MAX);
	state->fail_delivery = dummy_option_int(session, "fail_delivery", 0);
	state->lose_report = dummy_option_int(session, "lose_report", 0);
	state->lie = dummy_option(session, "lie") != NULL;

	state->error_kind = PUBSUB_ERROR_OTHER;
	value = dummy_option(session, "error");
	for (i = 0; value != NULL && i < lengthof(dummy_error_names); i++)
	{
		if (strcmp(value, dummy_error_names[i]) == 0)
			state->error_kind = (PubsubErrorKind) i;
	}

	value = dummy_option(session, "hang");
	for (i = 0; i < DUMMY_NCALLS; i++)
	{
		char		name[64];

		snprintf(name, sizeof(name), "fail_%s", dummy_call_names[i]);
		state->fail_at[i] = dummy_option_int(session, name, 0);
		state->hang[i] = value != NULL &&
			strstr(value, dummy_call_names[i]) != NULL;
	}

	state->dir = dummy_option(session, "dir");
	if (state->dir == NULL)
		return dummy_fail(error, PUBSUB_ERROR_INVALID, "",
						  "server option \"dummy_dir\" is missing");
	return dummy_obey(session, DUMMY_ATTACH, 0, "", error);
}

/*
 * dummy_detach
 *	  Closes what is left and frees the state.
 */
static void
dummy_detach(PubsubSession *session)
{
	DummySession *state = session->state;
	dlist_mutable_iter iter;

	dummy_ncalls++;
	if (state == NULL)
		return;
	while (!dlist_is_empty(&session->sources))
	{
		PubsubSource *source = dlist_container(PubsubSource, node,
											   dlist_pop_head_node(&session->sources));

		source->ops->close(source);
	}
	while (!dlist_is_empty(&session->sinks))
	{
		PubsubSink *sink = dlist_container(PubsubSink, node,
										   dlist_pop_head_node(&session->sinks));

		sink->ops->abandon(sink);
		sink->ops->close(sink);
	}
	dlist_foreach_modify(iter, &state->leases)
	{
		DummyLease *lease = dlist_container(DummyLease, node, iter.cur);

		(void) dummy_subscription_settle(state->dir, lease->subscription,
										 lease->message, lease->id,
										 DUMMY_WAITING);
		dummy_lease_free(lease);
	}
	free(state->acks);
	free(state);
	session->state = NULL;
}

bool
dummy_is_queue(const PubsubSession *session)
{
	return (session->driver->capabilities & PUBSUB_ACKS_EACH) != 0;
}

/*
 * dummy_fail
 *	  Fills in an error, returns PUBSUB_FAILED.
 */
PubsubStatus
dummy_fail(PubsubError *error, PubsubErrorKind kind, const char *object,
		   const char *fmt,...)
{
	va_list		args;

	memset(error, 0, sizeof(PubsubError));
	error->kind = kind;
	error->message_no = -1;
	strlcpy(error->object, object, sizeof(error->object));
	va_start(args, fmt);
	vsnprintf(error->detail, sizeof(error->detail), fmt, args);
	va_end(args);
	return PUBSUB_FAILED;
}

static void
dummy_sleep(int ms)
{
	struct timespec left;

	left.tv_sec = ms / 1000;
	left.tv_nsec = (long) (ms % 1000) * 1000000;
	while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/*
 * dummy_obey
 *	  Counts a call and carries out the orders for it.
 *
 * slice_ms is 0 for calls that are not steps.  OK: go on with the call.
 * Otherwise this is its answer.
 */
PubsubStatus
dummy_obey(PubsubSession *session, DummyCall call, int slice_ms,
		   const char *object, PubsubError *error)
{
	DummySession *state = session->state;
	bool		is_step = slice_ms > 0;
	bool		may_wait = is_step || call == DUMMY_POLL ||
		call == DUMMY_PUT || call == DUMMY_DRAIN;

	dummy_ncalls++;
	if (state->error_kind == PUBSUB_ERROR_CONNECT ||
		state->error_kind == PUBSUB_ERROR_AUTH)
		object = "";			/* these are about the broker as a whole */

	if (is_step)
		dummy_sleep(state->block_ms);

	if (state->hang[call] ||
		(may_wait && state->nagain[call] < state->again))
	{
		state->nagain[call]++;
		if (is_step)
			dummy_sleep(Min(slice_ms, 1));
		if (state->soft_cause != NULL)
			(void) dummy_fail(error, state->error_kind, object, "%s",
							  state->soft_cause);
		return PUBSUB_AGAIN;
	}
	state->nagain[call] = 0;

	if (++state->ncalls[call] == state->fail_at[call])
		return dummy_fail(error, state->error_kind, object,
						  "call %d of %s fails by order",
						  state->fail_at[call], dummy_call_names[call]);
	return PUBSUB_OK;
}

/*
 * dummy_log_in
 *	  Refuses users other than the one that the broker knows.
 */
PubsubStatus
dummy_log_in(PubsubSession *session, PubsubError *error)
{
	DummySession *state = session->state;
	const char *user = session->options->sasl_username;

	if (state->user == NULL ||
		(user != NULL && strcmp(user, state->user) == 0))
		return PUBSUB_OK;
	return dummy_fail(error, PUBSUB_ERROR_AUTH, "",
					  "the broker does not know user \"%s\"",
					  user == NULL ? "" : user);
}

static PubsubStatus
dummy_admin_begin(PubsubSession *session, const PubsubAdminRequest *request,
				  PubsubError *error)
{
	DummySession *state = session->state;

	dummy_ncalls++;
	state->admin_op = request->op;
	state->admin_partitions = request->partitions;
	strlcpy(state->admin_topic, request->topic ? request->topic : "",
			sizeof(state->admin_topic));
	strlcpy(state->admin_subscription,
			request->subscription ? request->subscription : "",
			sizeof(state->admin_subscription));
	return PUBSUB_OK;
}

static PubsubStatus
dummy_admin_step(PubsubSession *session, int slice_ms, PubsubError *error)
{
	DummySession *state = session->state;
	bool		is_topic = state->admin_op == PUBSUB_ADMIN_CREATE_TOPIC ||
		state->admin_op == PUBSUB_ADMIN_DROP_TOPIC;
	char		object[320];
	PubsubStatus status;
	int			rc = -1;

	snprintf(object, sizeof(object), "%s \"%s\"",
			 is_topic ? "topic" : "subscription",
			 is_topic ? state->admin_topic : state->admin_subscription);
	status = dummy_obey(session, DUMMY_ADMIN, slice_ms,
						object, error);
	if (status == PUBSUB_OK)
		status = dummy_log_in(session, error);
	if (status != PUBSUB_OK)
		return status;

	switch (state->admin_op)
	{
		case PUBSUB_ADMIN_CREATE_TOPIC:
			rc = dummy_topic_create(state->dir, state->admin_topic,
									dummy_is_queue(session) ||
									state->admin_partitions < 1 ?
									1 : state->admin_partitions);
			break;
		case PUBSUB_ADMIN_DROP_TOPIC:
			rc = dummy_topic_drop(state->dir, state->admin_topic);
			break;
		case PUBSUB_ADMIN_CREATE_SUBSCRIPTION:
			rc = dummy_subscription_create(state->dir,
										   state->admin_subscription,
										   state->admin_topic);
			break;
		case PUBSUB_ADMIN_DROP_SUBSCRIPTION:
			rc = dummy_subscription_drop(state->dir,
										 state->admin_subscription);
			break;
	}
	if (rc == 0)
		return PUBSUB_OK;
	return dummy_fail(error,
					  errno == ENOENT ? PUBSUB_ERROR_NOT_FOUND :
					  errno == EEXIST ? PUBSUB_ERROR_EXISTS :
					  PUBSUB_ERROR_OTHER,
					  object, "%s", strerror(errno));
}

static void
dummy_admin_end(PubsubSession *session)
{
	dummy_ncalls++;
}

static bool
dummy_version(int i, const char **component, const char **version)
{
	if (i > 0)
		return false;
	*component = "dummy";
	*version = "1.0";
	return true;
}
