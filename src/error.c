/*-------------------------------------------------------------------------
 *
 * error.c
 *		Errors of drivers as errors of PostgreSQL
 *
 * The only place that knows which SQLSTATE a kind of error has.
 *
 * IDENTIFICATION
 *		src/error.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#include "pubsub_fdw.h"

static int	kind_sqlstate(PubsubErrorKind kind);
static char *library_text(const char *text);
static void throw_error(const PubsubSession *session, PubsubErrorKind kind,
						const char *object, const char *detail,
						const char *hint, const char *action)
			pg_attribute_noreturn();

/*
 * pubsub_throw
 *	  Raises a driver's error.
 */
void
pubsub_throw(const PubsubSession *session, const PubsubError *error,
			 const char *action_fmt,...)
{
	char	   *action;
	va_list		args;

	va_start(args, action_fmt);
	action = palloc(1024);
	vsnprintf(action, 1024, action_fmt, args);
	va_end(args);

	throw_error(session, error->kind, library_text(error->object),
				library_text(error->detail), library_text(error->hint),
				action);
}

/*
 * pubsub_throw_timeout
 *	  Raises the error for a broker that did not answer in time.
 *
 * What the library said last is the probable cause.  A cause of a kind of its
 * own (authentication, say) is raised as that.
 */
void
pubsub_throw_timeout(const PubsubSession *session,
					 const PubsubError *soft_cause, PubsubErrorKind kind,
					 int timeout_ms, const char *action_fmt,...)
{
	char	   *action;
	va_list		args;
	StringInfoData detail;

	va_start(args, action_fmt);
	action = palloc(1024);
	vsnprintf(action, 1024, action_fmt, args);
	va_end(args);

	initStringInfo(&detail);
	if (kind == PUBSUB_ERROR_CONNECT)
		appendStringInfo(&detail, "The broker could not be reached within %d ms", timeout_ms);
	else
		appendStringInfo(&detail, "There was no progress for %d ms", timeout_ms);
	if (soft_cause->kind == PUBSUB_ERROR_NONE ||
		soft_cause->detail[0] == '\0')
		appendStringInfoString(&detail, "; the client library gave no reason.");
	else
		appendStringInfo(&detail, ": %s", library_text(soft_cause->detail));

	switch (soft_cause->kind)
	{
		case PUBSUB_ERROR_NONE:
		case PUBSUB_ERROR_CONNECT:
		case PUBSUB_ERROR_LOST:
		case PUBSUB_ERROR_OTHER:
			break;
		default:
			kind = soft_cause->kind;
			break;
	}
	throw_error(session, kind, library_text(soft_cause->object), detail.data,
				library_text(soft_cause->hint), action);
}

/*
 * throw_error
 *	  Chooses the primary message by the kind, and raises it.
 */
static void
throw_error(const PubsubSession *session, PubsubErrorKind kind,
			const char *object, const char *detail, const char *hint,
			const char *action)
{
	char	   *message;

	switch (kind)
	{
		case PUBSUB_ERROR_CONNECT:
			message = psprintf("could not connect to server \"%s\"",
							   session->server_name);
			break;
		case PUBSUB_ERROR_AUTH:
			message = psprintf("could not log in to server \"%s\"",
							   session->server_name);
			break;
		case PUBSUB_ERROR_NOT_FOUND:
			message = psprintf("%s does not exist on server \"%s\"",
							   object[0] ? object : "object",
							   session->server_name);
			break;
		case PUBSUB_ERROR_EXISTS:
			message = psprintf("%s already exists on server \"%s\"",
							   object[0] ? object : "object",
							   session->server_name);
			break;
		case PUBSUB_ERROR_PERMISSION:
			message = psprintf("permission denied by server \"%s\": could not %s",
							   session->server_name, action);
			break;
		case PUBSUB_ERROR_DATA_LOSS:
			message = psprintf("data loss detected: could not %s", action);
			break;
		default:
			message = psprintf("could not %s", action);
			break;
	}

	/* name what is at fault, where the primary message does not */
	if (object[0] && strstr(message, object) == NULL)
		message = psprintf("%s: %s", message, object);

	ereport(ERROR,
			(errcode(kind_sqlstate(kind)),
			 errmsg_internal("%s", message),
			 detail[0] ? errdetail_internal("%s", detail) : 0,
			 hint[0] ? errhint("%s", hint) : 0));
	pg_unreachable();
}

/*
 * library_text
 *	  Makes text of a library or a broker fit for a message: valid in the
 *	  server encoding, whatever it says.
 */
static char *
library_text(const char *text)
{
	int			len = strlen(text);
	char	   *result;

	if (pg_verifymbstr(text, len, true))
		return pstrdup(text);

	result = palloc(len + 1);
	for (int i = 0; i <= len; i++)
		result[i] = IS_HIGHBIT_SET(text[i]) ? '?' : text[i];
	return result;
}

static int
kind_sqlstate(PubsubErrorKind kind)
{
	switch (kind)
	{
		case PUBSUB_ERROR_CONNECT:
			return ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION;
		case PUBSUB_ERROR_LOST:
			return ERRCODE_CONNECTION_FAILURE;
		case PUBSUB_ERROR_AUTH:
			return ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
		case PUBSUB_ERROR_PERMISSION:
			return ERRCODE_INSUFFICIENT_PRIVILEGE;
		case PUBSUB_ERROR_NOT_FOUND:
			return ERRCODE_FDW_TABLE_NOT_FOUND;
		case PUBSUB_ERROR_EXISTS:
			return ERRCODE_DUPLICATE_OBJECT;
		case PUBSUB_ERROR_INVALID:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		case PUBSUB_ERROR_TOO_LARGE:
			return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
		case PUBSUB_ERROR_THROTTLED:
			return ERRCODE_INSUFFICIENT_RESOURCES;
		case PUBSUB_ERROR_MEMORY:
			return ERRCODE_OUT_OF_MEMORY;
		case PUBSUB_ERROR_NONE:
		case PUBSUB_ERROR_DATA_LOSS:
		case PUBSUB_ERROR_OTHER:
			break;
	}
	return ERRCODE_FDW_ERROR;
}
