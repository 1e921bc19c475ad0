/*-------------------------------------------------------------------------
 *
 * google_error.c
 *		The status codes of gRPC as errors
 *
 * IDENTIFICATION
 *		src/google/google_error.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "google/google.h"

static const struct
{
	const char *name;
	PubsubErrorKind kind;
	const char *hint;
}			statuses[] =
{
	{"OK", PUBSUB_ERROR_NONE, ""},
	{"CANCELLED", PUBSUB_ERROR_LOST, ""},
	{"UNKNOWN", PUBSUB_ERROR_OTHER, ""},
	{"INVALID_ARGUMENT", PUBSUB_ERROR_INVALID, ""},
	{"DEADLINE_EXCEEDED", PUBSUB_ERROR_LOST, ""},
	{"NOT_FOUND", PUBSUB_ERROR_NOT_FOUND, ""},
	{"ALREADY_EXISTS", PUBSUB_ERROR_EXISTS, ""},
	{"PERMISSION_DENIED", PUBSUB_ERROR_PERMISSION,
	"Check the roles of the service account in the project."},
	{"RESOURCE_EXHAUSTED", PUBSUB_ERROR_THROTTLED,
	"Check the Pub/Sub quotas of the project."},
	{"FAILED_PRECONDITION", PUBSUB_ERROR_OTHER, ""},
	{"ABORTED", PUBSUB_ERROR_OTHER, ""},
	{"OUT_OF_RANGE", PUBSUB_ERROR_INVALID, ""},
	{"UNIMPLEMENTED", PUBSUB_ERROR_OTHER,
	"Check the \"endpoint\" option of the server: it must name a Pub/Sub service that speaks gRPC."},
	{"INTERNAL", PUBSUB_ERROR_OTHER, ""},
	{"UNAVAILABLE", PUBSUB_ERROR_LOST, ""},
	{"DATA_LOSS", PUBSUB_ERROR_OTHER, ""},
	{"UNAUTHENTICATED", PUBSUB_ERROR_AUTH,
	"Check the credentials in the user mapping, and the clock of the database server."},
};

const char *
google_status_name(int status)
{
	if (status < 0 || status >= (int) lengthof(statuses))
		status = GOOGLE_STATUS_UNKNOWN;
	return statuses[status].name;
}

/*
 * google_status_from_http
 *	  Maps the HTTP code of an answer that did not come from a gRPC server, as
 *	  the gRPC specification says.
 */
int
google_status_from_http(int http_status)
{
	switch (http_status)
	{
		case 400:
			return GOOGLE_STATUS_INTERNAL;
		case 401:
			return GOOGLE_STATUS_UNAUTHENTICATED;
		case 403:
			return GOOGLE_STATUS_PERMISSION_DENIED;
		case 404:
			return 12;			/* UNIMPLEMENTED */
		case 429:
		case 502:
		case 503:
		case 504:
			return GOOGLE_STATUS_UNAVAILABLE;
		default:
			return GOOGLE_STATUS_UNKNOWN;
	}
}

/*
 * google_error_from_status
 *	  Fills in an error.  words are the server's, or NULL.
 */
void
google_error_from_status(PubsubError *error, int status, const char *words)
{
	if (status < 0 || status >= (int) lengthof(statuses))
		status = GOOGLE_STATUS_UNKNOWN;
	if (words && words[0])
		pubsub_error_set(error, statuses[status].kind, "%s: %s",
						 statuses[status].name, words);
	else
		pubsub_error_set(error, statuses[status].kind,
						 "The service answered %s.", statuses[status].name);
	strlcpy(error->hint, statuses[status].hint, sizeof(error->hint));
}

/*
 * google_error_object
 *	  Names the thing at fault, unless the fault is not in a thing.
 */
void
google_error_object(PubsubError *error, const char *kind, const char *name)
{
	if (error->kind == PUBSUB_ERROR_CONNECT ||
		error->kind == PUBSUB_ERROR_AUTH ||
		error->kind == PUBSUB_ERROR_MEMORY)
		return;
	snprintf(error->object, sizeof(error->object), "%s \"%s\"", kind, name);
}

void
google_error_memory(PubsubError *error)
{
	pubsub_error_set(error, PUBSUB_ERROR_MEMORY,
					 "The Pub/Sub client is out of memory.");
}
