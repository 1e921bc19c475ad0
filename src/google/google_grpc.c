/*-------------------------------------------------------------------------
 *
 * google_grpc.c
 *		Unary gRPC calls: framing, trailers, retries; and the bytes they
 *		are made of
 *
 * A call is made, gets its request fields, is started, and is then looked at
 * until it is OK or FAILED.  In between it repeats itself by the service's
 * own retry table, with growing pauses; nobody waits inside.
 *
 * An answer without a status is a failure, whatever else came with it.
 *
 * IDENTIFICATION
 *		src/google/google_grpc.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "google/google.h"

#define FRAME_HEADER_SIZE	5

/* Pauses between attempts, in ms */
#define RETRY_FIRST		100
#define RETRY_LONGEST	10000

/*
 * So often a call is repeated if no answer comes at all; the pauses make up
 * less than a second.
 */
#define MAX_BROKEN		4

#define STATUS(code)	(UINT64CONST(1) << (code))

/* The service's retry table (pubsub_grpc_service_config.json) */
static const struct
{
	const char *path;
	const char *routing;		/* parameter of x-goog-request-params */
	double		growth;			/* of the pauses */
	uint64		retry;			/* STATUS() of what is worth another try */
}			methods[] =
{
	[GOOGLE_PULL] = {
		"/google.pubsub.v1.Subscriber/Pull", "subscription", 1.3,
	STATUS(2) | STATUS(10) | STATUS(13) | STATUS(14)},
	[GOOGLE_ACKNOWLEDGE] = {
		"/google.pubsub.v1.Subscriber/Acknowledge", "subscription", 1.3,
	STATUS(14)},
	[GOOGLE_MODIFY_ACK_DEADLINE] = {
		"/google.pubsub.v1.Subscriber/ModifyAckDeadline", "subscription", 1.3,
	STATUS(14)},
	[GOOGLE_PUBLISH] = {
		"/google.pubsub.v1.Publisher/Publish", "topic", 4,
		STATUS(1) | STATUS(2) | STATUS(4) | STATUS(8) | STATUS(10) |
	STATUS(13) | STATUS(14)},
	[GOOGLE_GET_TOPIC] = {
		"/google.pubsub.v1.Publisher/GetTopic", "topic", 1.3,
	STATUS(2) | STATUS(10) | STATUS(14)},
	[GOOGLE_CREATE_TOPIC] = {
		"/google.pubsub.v1.Publisher/CreateTopic", "name", 1.3,
	STATUS(14)},
	[GOOGLE_DELETE_TOPIC] = {
		"/google.pubsub.v1.Publisher/DeleteTopic", "topic", 1.3,
	STATUS(14)},
	[GOOGLE_GET_SUBSCRIPTION] = {
		"/google.pubsub.v1.Subscriber/GetSubscription", "subscription", 1.3,
	STATUS(2) | STATUS(10) | STATUS(14)},
	[GOOGLE_CREATE_SUBSCRIPTION] = {
		"/google.pubsub.v1.Subscriber/CreateSubscription", "name", 1.3,
	STATUS(2) | STATUS(10) | STATUS(14)},
	[GOOGLE_DELETE_SUBSCRIPTION] = {
		"/google.pubsub.v1.Subscriber/DeleteSubscription", "subscription", 1.3,
	STATUS(14)},
};

struct GoogleBlock
{
	struct GoogleBlock *next;
};

static bool set_up_call(GoogleCall *call, GoogleHttp *http, int timeout_ms);
static void start_attempt(GoogleCall *call);
static void finish_attempt(GoogleCall *call);
static int	status_from_text(const char *text);
static void fail_attempt(GoogleCall *call, int status, const char *words,
						 bool retriable);
static void schedule_attempt(GoogleCall *call);
static bool answer_is_whole(const GoogleCall *call);
static char *routing_header(const char *parameter, const char *resource);
static void percent_decode(char *text);
static uint8_t *base64_decode(const char *text, size_t *len);

/*
 * google_call_create
 *	  Makes a call, with room for the frame header in its request.
 */
GoogleCall *
google_call_create(GoogleClient *client, GoogleMethod method,
				   const char *resource)
{
	static const char frame_header[FRAME_HEADER_SIZE] = {0};
	GoogleCall *call = calloc(1, sizeof(GoogleCall));

	if (call == NULL)
		return NULL;
	call->client = client;
	call->method = method;
	pubsub_error_clear(&call->error);
	call->routing = routing_header(methods[method].routing, resource);
	google_buffer_append(&call->request, frame_header, FRAME_HEADER_SIZE);
	if (call->routing == NULL || call->request.failed)
	{
		google_call_free(call);
		return NULL;
	}
	return call;
}

/*
 * google_call_pack
 *	  Makes a message the request.  False = out of memory.
 */
bool
google_call_pack(GoogleCall *call, const ProtobufCMessage *message)
{
	size_t		len = protobuf_c_message_get_packed_size(message);
	uint8_t    *packed = malloc(len + 1);

	if (packed == NULL)
		return false;
	(void) protobuf_c_message_pack(message, packed);
	google_buffer_append(&call->request, packed, len);
	free(packed);
	return !call->request.failed;
}

/*
 * google_call_start
 *	  Starts the first attempt.
 *
 * The service is told to answer within timeout_ms.
 */
void
google_call_start(GoogleCall *call, GoogleHttp *http, int timeout_ms)
{
	if (set_up_call(call, http, timeout_ms))
		start_attempt(call);
}

/*
 * google_call_start_later
 *	  The same, but after a pause, as if an attempt had failed.
 */
void
google_call_start_later(GoogleCall *call, GoogleHttp *http, int timeout_ms)
{
	if (set_up_call(call, http, timeout_ms))
		schedule_attempt(call);
}

/*
 * set_up_call
 *	  Completes the frame around the request.
 */
static bool
set_up_call(GoogleCall *call, GoogleHttp *http, int timeout_ms)
{
	size_t		len = call->request.len - FRAME_HEADER_SIZE;
	unsigned char *header = (unsigned char *) call->request.data;

	call->http = http;
	call->timeout_ms = timeout_ms;
	if (call->request.failed)
	{
		google_error_memory(&call->error);
		call->state = GOOGLE_CALL_FAILED;
		return false;
	}
	header[0] = 0;				/* not compressed */
	header[1] = (len >> 24) & 0xff;
	header[2] = (len >> 16) & 0xff;
	header[3] = (len >> 8) & 0xff;
	header[4] = len & 0xff;
	return true;
}

static void
start_attempt(GoogleCall *call)
{
	char		timeout[40];
	char	   *authorization;
	const char *headers[10];
	int			n = 0;
	bool		started;

	if (!google_auth_header(&call->client->auth, &authorization,
							&call->error))
	{
		call->state = GOOGLE_CALL_FAILED;
		return;
	}
	snprintf(timeout, sizeof(timeout), "grpc-timeout: %dm",
			 Max(call->timeout_ms, 1));

	headers[n++] = "content-type: application/grpc";
	headers[n++] = "te: trailers";
	headers[n++] = "user-agent: pubsub_fdw/" PUBSUB_FDW_VERSION;
	headers[n++] = "grpc-accept-encoding: identity";
	headers[n++] = "accept:";	/* not curl's own */
	headers[n++] = "expect:";
	headers[n++] = timeout;
	headers[n++] = call->routing;
	if (authorization)
		headers[n++] = authorization;
	headers[n] = NULL;

	call->attempts++;
	call->started_at = google_now_ms();
	started = google_http_start(call->http, &call->transfer,
								methods[call->method].path, headers,
								call->request.data, call->request.len,
								call->timeout_ms + call->grace_ms);
	free(authorization);
	if (started)
		call->state = GOOGLE_CALL_RUNNING;
	else
	{
		google_error_memory(&call->error);
		call->state = GOOGLE_CALL_FAILED;
	}
}

GoogleCallState
google_call_check(GoogleCall *call)
{
	if (call->state == GOOGLE_CALL_RUNNING && call->transfer.done)
		finish_attempt(call);
	if (call->state == GOOGLE_CALL_WAITING &&
		google_now_ms() >= call->retry_at)
		start_attempt(call);
	return call->state;
}

/*
 * google_call_step
 *	  Runs the call until it is through, for up to slice_ms.
 *
 * A signal cuts the step short, as it should: it may be a cancel.
 */
GoogleCallState
google_call_step(GoogleCall *call, int slice_ms)
{
	int64		end = google_now_ms() + slice_ms;
	int64		now;

	while (google_call_check(call) == GOOGLE_CALL_RUNNING ||
		   call->state == GOOGLE_CALL_WAITING)
	{
		now = google_now_ms();
		if (now >= end)
			break;
		google_http_run(call->http, (int) (end - now));
	}
	return call->state;
}

/*
 * finish_attempt
 *	  Judges what an attempt has brought.
 */
static void
finish_attempt(GoogleCall *call)
{
	GoogleTransfer *transfer = &call->transfer;
	int			status;
	char	   *text;
	char	   *words = NULL;
	char		buffer[100];

	if (transfer->failed)
	{
		/* not a status of the service, so its retry table does not apply */
		bool		again = transfer->retriable &&
		(++call->broken < MAX_BROKEN || call->patient);

		fail_attempt(call, GOOGLE_STATUS_UNAVAILABLE, transfer->words, again);
		call->error.kind = transfer->kind;
		strlcpy(call->error.detail, transfer->words,
				sizeof(call->error.detail));
		strlcpy(call->error.hint, transfer->hint,
				sizeof(call->error.hint));
		return;
	}

	text = google_http_header(transfer, "grpc-status");
	if (text == NULL && transfer->http_status == 200)
	{
		fail_attempt(call, GOOGLE_STATUS_UNKNOWN,
					 "The answer of the server has no gRPC status.",
					 ++call->broken < MAX_BROKEN);
		return;
	}
	status = text ? status_from_text(text) :
		google_status_from_http(transfer->http_status);
	if (status == GOOGLE_STATUS_OK)
	{
		free(text);
		call->status = status;
		if (answer_is_whole(call))
			call->state = GOOGLE_CALL_OK;
		else
			fail_attempt(call, GOOGLE_STATUS_INTERNAL,
						 "The answer of the server is not one whole message.",
						 false);
		return;
	}

	if (status == GOOGLE_STATUS_UNAUTHENTICATED && !call->renewed &&
		google_auth_renew(&call->client->auth))
	{
		free(text);
		call->renewed = true;
		start_attempt(call);
		return;
	}

	if (text)
	{
		words = google_http_header(transfer, "grpc-message");
		if (words)
			percent_decode(words);
	}
	else
	{
		snprintf(buffer, sizeof(buffer), "The server answered with HTTP %d.",
				 transfer->http_status);
		words = strdup(buffer);
	}
	fail_attempt(call, status, words,
				 methods[call->method].retry & STATUS(status));
	free(words);
	free(text);
}

/* A status that nobody knows is UNKNOWN, as the specification says. */
static int
status_from_text(const char *text)
{
	char	   *end;
	long		status = strtol(text, &end, 10);

	if (end == text || *end != '\0' || status < 0 ||
		status > GOOGLE_STATUS_UNAUTHENTICATED)
		return GOOGLE_STATUS_UNKNOWN;
	return (int) status;
}

/*
 * fail_attempt
 *	  Ends the call, or puts it to sleep until the next attempt.
 */
static void
fail_attempt(GoogleCall *call, int status, const char *words, bool retriable)
{
	call->status = status;
	google_error_from_status(&call->error, status, words);
	if (retriable)
		schedule_attempt(call);
	else
		call->state = GOOGLE_CALL_FAILED;
}

/*
 * schedule_attempt
 *	  Sets the time for the next attempt, if there is time left for one.
 *
 * Pauses are drawn from the upper half of their range, so that sessions that
 * failed together do not come back together.
 */
static void
schedule_attempt(GoogleCall *call)
{
	double		pause = RETRY_FIRST;
	int64		now = google_now_ms();
	unsigned int seed;

	for (int i = 1; i < call->attempts && pause < RETRY_LONGEST; i++)
		pause *= methods[call->method].growth;
	pause = Min(pause, RETRY_LONGEST);
	seed = (unsigned int) now ^ (unsigned int) getpid() ^
		(unsigned int) (uintptr_t) call;
	pause = pause / 2 * (1 + (double) rand_r(&seed) / RAND_MAX);

	call->retry_at = now + (int64) pause;
	if (call->retry_until > 0 && call->retry_at > call->retry_until)
	{
		call->state = GOOGLE_CALL_FAILED;
		return;
	}
	google_http_wake_at(call->http, call->retry_at);
	call->state = GOOGLE_CALL_WAITING;
}

static bool
answer_is_whole(const GoogleCall *call)
{
	const GoogleBuffer *body = &call->transfer.body;
	const unsigned char *header = (const unsigned char *) body->data;
	size_t		len;

	if (body->len < FRAME_HEADER_SIZE || header[0] != 0)
		return false;
	len = ((size_t) header[1] << 24) | ((size_t) header[2] << 16) |
		((size_t) header[3] << 8) | header[4];
	return len == body->len - FRAME_HEADER_SIZE;
}

const uint8_t *
google_call_answer(const GoogleCall *call, size_t *len)
{
	*len = call->transfer.body.len - FRAME_HEADER_SIZE;
	return (const uint8_t *) call->transfer.body.data + FRAME_HEADER_SIZE;
}

/*
 * google_call_failed_ids
 *	  Unpacks what an exactly-once subscription says about single ids.
 */
GooglePb__ErrorInfo *
google_call_failed_ids(const GoogleCall *call)
{
	char	   *text = google_http_header(&call->transfer,
										  "grpc-status-details-bin");
	uint8_t    *packed;
	size_t		len;
	GooglePb__Status *status = NULL;
	GooglePb__ErrorInfo *info = NULL;

	if (text == NULL)
		return NULL;
	packed = base64_decode(text, &len);
	if (packed)
		status = google_pb__status__unpack(NULL, len, packed);
	for (size_t i = 0; status && i < status->n_details && !info; i++)
	{
		const GooglePb__Any *any = status->details[i];

		if (strcmp(any->type_url,
				   "type.googleapis.com/google.rpc.ErrorInfo") != 0)
			continue;
		info = google_pb__error_info__unpack(NULL, any->value.len,
											 any->value.data);
		if (info && strcmp(info->reason, "EXACTLY_ONCE_ACKID_FAILURE") != 0)
		{
			google_pb__error_info__free_unpacked(info, NULL);
			info = NULL;
		}
	}
	if (status)
		google_pb__status__free_unpacked(status, NULL);
	free(packed);
	free(text);
	return info;
}

void
google_call_free(GoogleCall *call)
{
	if (call == NULL)
		return;
	google_http_clean(&call->transfer);
	google_buffer_free(&call->request);
	free(call->routing);
	free(call);
}

/*
 * routing_header
 *	  Makes the header by which the service's front end finds the region.
 */
static char *
routing_header(const char *parameter, const char *resource)
{
	static const char prefix[] = "x-goog-request-params: ";
	size_t		size = sizeof(prefix) + strlen(parameter) + 1 +
	3 * strlen(resource);
	char	   *result = malloc(size);
	char	   *p;

	if (result == NULL)
		return NULL;
	p = result + snprintf(result, size, "%s%s=", prefix, parameter);
	for (const unsigned char *s = (const unsigned char *) resource; *s; s++)
	{
		if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			(*s >= '0' && *s <= '9') || strchr("-._~", *s))
			*p++ = *s;
		else
			p += snprintf(p, 4, "%%%02X", *s);
	}
	*p = '\0';
	return result;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/*
 * percent_decode
 *	  Decodes in place; what is no escape stays as it is.
 *
 * Control characters become blanks: this goes into one line of a message.
 */
static void
percent_decode(char *text)
{
	char	   *to = text;

	for (char *from = text; *from; from++)
	{
		char		c = *from;

		if (c == '%' && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0)
		{
			c = (char) (hex_digit(from[1]) * 16 + hex_digit(from[2]));
			from += 2;
		}
		*to++ = ((unsigned char) c < ' ' || c == 0x7f) ? ' ' : c;
	}
	*to = '\0';
}

/*
 * base64_decode
 *	  Decodes either alphabet, with or without padding.  NULL = it is none, or
 *	  out of memory.
 */
static uint8_t *
base64_decode(const char *text, size_t *len)
{
	uint8_t    *result = malloc(strlen(text) * 3 / 4 + 3);
	uint32		bits = 0;
	int			nbits = 0;

	*len = 0;
	if (result == NULL)
		return NULL;
	for (; *text && *text != '='; text++)
	{
		uint32		value;

		if (*text >= 'A' && *text <= 'Z')
			value = *text - 'A';
		else if (*text >= 'a' && *text <= 'z')
			value = *text - 'a' + 26;
		else if (*text >= '0' && *text <= '9')
			value = *text - '0' + 52;
		else if (*text == '+' || *text == '-')
			value = 62;
		else if (*text == '/' || *text == '_')
			value = 63;
		else
		{
			free(result);
			return NULL;
		}
		bits = (bits << 6) | value;
		nbits += 6;
		if (nbits >= 8)
		{
			nbits -= 8;
			result[(*len)++] = (bits >> nbits) & 0xff;
		}
	}
	return result;
}

/* ---------- bytes ---------- */

void
google_buffer_append(GoogleBuffer *buffer, const void *data, size_t len)
{
	if (buffer->failed)
		return;
	if (len > buffer->size - buffer->len)
	{
		size_t		size = Max(buffer->size * 2, 256);
		char	   *bigger;

		size = Max(size, buffer->len + len);
		bigger = realloc(buffer->data, size);
		if (bigger == NULL)
		{
			buffer->failed = true;
			return;
		}
		buffer->data = bigger;
		buffer->size = size;
	}
	if (len > 0)
		memcpy(buffer->data + buffer->len, data, len);
	buffer->len += len;
}

void
google_buffer_varint(GoogleBuffer *buffer, uint64 value)
{
	unsigned char bytes[10];
	int			n = 0;

	while (value >= 0x80)
	{
		bytes[n++] = (value & 0x7f) | 0x80;
		value >>= 7;
	}
	bytes[n++] = (unsigned char) value;
	google_buffer_append(buffer, bytes, n);
}

/*
 * google_buffer_field_bytes
 *	  Appends a protobuf field of type bytes or string, number 1 to 15.
 */
void
google_buffer_field_bytes(GoogleBuffer *buffer, int field, const char *data,
						  size_t len)
{
	google_buffer_varint(buffer, (field << 3) | 2);
	google_buffer_varint(buffer, len);
	google_buffer_append(buffer, data, len);
}

void
google_buffer_field_int(GoogleBuffer *buffer, int field, uint64 value)
{
	google_buffer_varint(buffer, field << 3);
	google_buffer_varint(buffer, value);
}

size_t
google_varint_size(uint64 value)
{
	size_t		n = 1;

	while (value >= 0x80)
	{
		n++;
		value >>= 7;
	}
	return n;
}

/*
 * google_field_bytes_size
 *	  Size of a field of bytes with its tag, number 1 to 15.
 */
size_t
google_field_bytes_size(size_t len)
{
	return 1 + google_varint_size(len) + len;
}

void
google_buffer_free(GoogleBuffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(GoogleBuffer));
}

#define ARENA_BLOCK		(64 * 1024)

/*
 * google_arena_alloc
 *	  Hands out memory that is freed with the arena.  NULL = out of memory.
 */
void *
google_arena_alloc(GoogleArena *arena, size_t size)
{
	void	   *result;

	size = MAXALIGN(size);
	if (size > arena->left)
	{
		size_t		header = MAXALIGN(sizeof(struct GoogleBlock));
		size_t		block_size = Max(size, ARENA_BLOCK);
		struct GoogleBlock *block = malloc(header + block_size);

		if (block == NULL)
			return NULL;
		block->next = arena->blocks;
		arena->blocks = block;

		/* a big piece gets a block of its own, the current one goes on */
		if (size > ARENA_BLOCK / 4)
			return (char *) block + header;
		arena->next = (char *) block + header;
		arena->left = block_size;
	}
	result = arena->next;
	arena->next += size;
	arena->left -= size;
	return result;
}

void
google_arena_free(GoogleArena *arena)
{
	while (arena->blocks)
	{
		struct GoogleBlock *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	arena->next = NULL;
	arena->left = 0;
}
