/*-------------------------------------------------------------------------
 *
 * driver.c
 *		The registry of drivers, and ring 1's way to call them
 *
 * Ring 1 calls a driver's routines through the functions below only.  They
 * assert what driver.h promises, so that a driver that breaks a promise is
 * found by its first test and not by a lost row, and they clear the error
 * before each call, so that a soft cause is never an old one.
 *
 * IDENTIFICATION
 *		src/driver.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "driver.h"

#define MAX_DRIVERS 8

static const PubsubDriver *drivers[MAX_DRIVERS] = {
	&kafka_driver,
	&google_driver
};

/*
 * pubsub_driver_find
 *	  Finds the driver for a value of the server option "broker", or NULL.
 */
const PubsubDriver *
pubsub_driver_find(const char *name)
{
	for (int i = 0; i < MAX_DRIVERS && drivers[i] != NULL; i++)
	{
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	}
	return NULL;
}

const PubsubDriver *
pubsub_driver_get(int i)
{
	return i < MAX_DRIVERS ? drivers[i] : NULL;
}

/*
 * pubsub_driver_register
 *	  Adds a driver that is not part of this library: the tests' own.
 *
 * It must stay for the life of the process.
 */
void
pubsub_driver_register(const PubsubDriver *driver)
{
	if (pubsub_driver_find(driver->name) != NULL)
		return;

	for (int i = 0; i < MAX_DRIVERS; i++)
	{
		if (drivers[i] == NULL)
		{
			drivers[i] = driver;
			return;
		}
	}
	elog(ERROR, "too many pubsub_fdw drivers");
}

/*
 * pubsub_error_set
 *	  Fills in an error: kind, and the words for errdetail.
 *
 * The object and the hint are left to the caller, empty.
 */
void
pubsub_error_set(PubsubError *error, PubsubErrorKind kind, const char *fmt,...)
{
	va_list		args;

	pubsub_error_clear(error);
	error->kind = kind;
	va_start(args, fmt);
	vsnprintf(error->detail, sizeof(error->detail), fmt, args);
	va_end(args);
}

void
pubsub_error_clear(PubsubError *error)
{
	error->kind = PUBSUB_ERROR_NONE;
	error->message_no = -1;
	error->object[0] = '\0';
	error->detail[0] = '\0';
	error->hint[0] = '\0';
}

/* What holds for every status: a failure has a kind. */
#define ASSERT_STATUS(status, error) \
	Assert((status) != PUBSUB_FAILED || \
		   (error)->kind != PUBSUB_ERROR_NONE)

int
pubsub_source_event_fd(PubsubSource *source)
{
	return source->ops->event_fd ? source->ops->event_fd(source) : -1;
}

PubsubStatus
pubsub_source_resolve(PubsubSource *source, int slice_ms,
					  PubsubRanges *ranges, PubsubError *error)
{
	PubsubStatus status;

	pubsub_error_clear(error);
	status = source->ops->resolve(source, slice_ms, ranges, error);
	ASSERT_STATUS(status, error);
	Assert(status != PUBSUB_DONE);
	return status;
}

PubsubStatus
pubsub_source_lookup(PubsubSource *source, int slice_ms, PubsubLookup what,
					 int64 time_ms, const PubsubRanges *ranges,
					 int64 *offsets, PubsubError *error)
{
	PubsubStatus status;

	Assert(source->session->driver->capabilities & PUBSUB_IS_LOG);
	pubsub_error_clear(error);
	status = source->ops->lookup(source, slice_ms, what, time_ms, ranges,
								 offsets, error);
	ASSERT_STATUS(status, error);
	Assert(status != PUBSUB_DONE);
	return status;
}

PubsubStatus
pubsub_source_assign(PubsubSource *source, PubsubRanges *ranges,
					 PubsubError *error)
{
	PubsubStatus status;

	Assert(source->held == NULL);
	pubsub_error_clear(error);
	status = source->ops->assign(source, ranges, error);
	ASSERT_STATUS(status, error);
	Assert(status == PUBSUB_OK || status == PUBSUB_FAILED);
	return status;
}

PubsubStatus
pubsub_source_poll(PubsubSource *source, int max_messages,
				   PubsubBatch *batch, PubsubError *error)
{
	PubsubStatus status;

	Assert(source->held == NULL);
	Assert(max_messages > 0);
	pubsub_error_clear(error);
	memset(batch, 0, sizeof(PubsubBatch));
	status = source->ops->poll(source, max_messages, batch, error);
	ASSERT_STATUS(status, error);
	if (status == PUBSUB_OK)
	{
		Assert(batch->nmessages > 0 && batch->nmessages <= max_messages);
		source->held = batch;
	}
	else
		Assert(batch->nmessages == 0);
	Assert(status != PUBSUB_DONE || batch->reason != PUBSUB_STOP_NONE);
	return status;
}

void
pubsub_source_release(PubsubSource *source, PubsubBatch *batch)
{
	Assert(source->held == batch);
	source->held = NULL;
	source->ops->release(source, batch);
}

PubsubStatus
pubsub_source_finish(PubsubSource *source, int slice_ms, PubsubError *error)
{
	PubsubStatus status;

	Assert(source->held == NULL);
	if (source->ops->finish == NULL)
		return PUBSUB_OK;
	pubsub_error_clear(error);
	status = source->ops->finish(source, slice_ms, error);
	ASSERT_STATUS(status, error);
	Assert(status != PUBSUB_DONE);
	return status;
}

int
pubsub_sink_event_fd(PubsubSink *sink)
{
	return sink->ops->event_fd ? sink->ops->event_fd(sink) : -1;
}

PubsubStatus
pubsub_sink_ready(PubsubSink *sink, int slice_ms, PubsubError *error)
{
	PubsubStatus status;

	pubsub_error_clear(error);
	status = sink->ops->ready(sink, slice_ms, error);
	ASSERT_STATUS(status, error);
	Assert(status != PUBSUB_DONE);
	return status;
}

PubsubStatus
pubsub_sink_check(PubsubSink *sink, const PubsubMessage *message,
				  PubsubError *error)
{
	PubsubStatus status;

	pubsub_error_clear(error);
	status = sink->ops->check(sink, message, error);
	ASSERT_STATUS(status, error);
	Assert(status == PUBSUB_OK || status == PUBSUB_FAILED);
	return status;
}

PubsubStatus
pubsub_sink_put(PubsubSink *sink, const PubsubMessage *message,
				PubsubError *error)
{
	PubsubStatus status;

	pubsub_error_clear(error);
	status = sink->ops->put(sink, message, error);
	ASSERT_STATUS(status, error);
	Assert(status != PUBSUB_DONE);
	if (status == PUBSUB_OK)
		sink->nput++;
	return status;
}

PubsubStatus
pubsub_sink_drain(PubsubSink *sink, bool flush, PubsubError *error)
{
	PubsubStatus status;

	pubsub_error_clear(error);
	status = sink->ops->drain(sink, flush, error);
	ASSERT_STATUS(status, error);
	Assert(status != PUBSUB_OK);

	/*
	 * "Everything was delivered" is the one claim that no user could check:
	 * believe it only if the count agrees, in production builds too.
	 */
	if (status == PUBSUB_DONE && sink->ndelivered != sink->nput)
	{
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "The client library confirmed " INT64_FORMAT " of " INT64_FORMAT " messages.",
						 sink->ndelivered, sink->nput);
		return PUBSUB_FAILED;
	}
	return status;
}

void
pubsub_sink_abandon(PubsubSink *sink)
{
	sink->ops->abandon(sink);
}
