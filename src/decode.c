/*-------------------------------------------------------------------------
 *
 * decode.c
 *		Messages to rows
 *
 * A decoder does only what its needed columns ask for: count(*) looks at
 * nothing of a message.  All catalog look-ups happen when it is made.
 *
 * Payload fields are decode_json.c's, all other columns are made here, one by
 * one.  Header names and values are bytes to the broker; where SQL wants text
 * and they are none, they are shown as base64 rather than fail the scan (see
 * push_string).
 *
 * IDENTIFICATION
 *		src/decode.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "common/base64.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

#include "codec.h"

/* A needed column that is not a payload field */
typedef struct DecodeColumn
{
	const PubsubColumn *column;
	int			i;				/* attnum - 1 */
	PubsubBytes attribute;		/* its name in messages */
	PubsubConversion conv;
} DecodeColumn;

struct PubsubDecoder
{
	int			natts;
	int			ncolumns;
	DecodeColumn *columns;
	PubsubFields *fields;		/* NULL: no payload field is needed */

	bool		is_log;			/* messages have offsets, not ids */
	const char *subscription;	/* of a queue */
	const char *topic;			/* of a queue, if known */
	const char *timestamp_attribute;	/* NULL: use the message's time */
	PubsubBytes timestamp_header;	/* its name in messages */

	/* a conversion that does not throw, if the server encoding needs one */
	Oid			from_utf8;

	Jsonb	   *empty_object;
	Jsonb	   *empty_array;
};

/* What the error context callback needs to know */
typedef struct DecodeContext
{
	const PubsubDecoder *decoder;
	const PubsubMessage *message;
	const char *column;			/* NULL = none */
} DecodeContext;

static Datum decode_column(PubsubDecoder *decoder, DecodeColumn *column,
						   const PubsubMessage *message, bool *isnull);
static void decode_error_callback(void *arg);

/*
 * empty_jsonb
 *		Makes '{}' or '[]'.
 */
static Jsonb *
empty_jsonb(JsonbIteratorToken begin, JsonbIteratorToken end)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, begin, NULL);
	return JsonbValueToJsonb(pushJsonbValue(&state, end, NULL));
}

/*
 * pubsub_decoder_create
 *		Makes a decoder for some columns.
 */
PubsubDecoder *
pubsub_decoder_create(const PubsubTable *table, const PubsubColumns *columns,
					  const bool *needed)
{
	PubsubDecoder *decoder = palloc0(sizeof(PubsubDecoder));
	const char *attribute = table->options.timestamp_attribute;
	int			i;

	decoder->natts = columns->ncolumns;
	decoder->is_log = (table->driver->capabilities & PUBSUB_IS_LOG) != 0;
	decoder->subscription = table->options.subscription;
	decoder->timestamp_attribute = attribute;
	if (attribute)
		decoder->timestamp_header = pubsub_text_to_utf8(attribute,
														strlen(attribute));
	if (GetDatabaseEncoding() != PG_UTF8 &&
		GetDatabaseEncoding() != PG_SQL_ASCII)
		decoder->from_utf8 = FindDefaultConversionProc(PG_UTF8,
													   GetDatabaseEncoding());
	decoder->empty_object = empty_jsonb(WJB_BEGIN_OBJECT, WJB_END_OBJECT);
	decoder->empty_array = empty_jsonb(WJB_BEGIN_ARRAY, WJB_END_ARRAY);

	decoder->fields = pubsub_fields_create(columns, needed,
										   table->options.strict);
	decoder->columns = palloc0(sizeof(DecodeColumn) * columns->ncolumns);
	for (i = 0; i < columns->ncolumns; i++)
	{
		const PubsubColumn *column = &columns->columns[i];
		DecodeColumn *decode;

		if (column->role == PUBSUB_ROLE_NONE ||
			column->role == PUBSUB_ROLE_FIELD ||
			(needed && !needed[i]))
			continue;

		decode = &decoder->columns[decoder->ncolumns++];
		decode->column = column;
		decode->i = i;
		if (column->attribute)
			decode->attribute = pubsub_text_to_utf8(column->attribute,
													strlen(column->attribute));
		pubsub_conversion_init(&decode->conv, column->typid, column->typmod);
	}

	return decoder;
}

/*
 * pubsub_decoder_set_topic
 *		Tells the decoder of a queue its topic.
 */
void
pubsub_decoder_set_topic(PubsubDecoder *decoder, const char *topic)
{
	decoder->topic = topic;
}

/*
 * pubsub_decode
 *		Turns a message into a row.
 */
void
pubsub_decode(PubsubDecoder *decoder, const PubsubMessage *message,
			  Datum *values, bool *isnull)
{
	DecodeContext context;
	ErrorContextCallback callback;
	int			i;

	memset(isnull, true, sizeof(bool) * decoder->natts);
	if (decoder->ncolumns == 0 && decoder->fields == NULL)
		return;

	context.decoder = decoder;
	context.message = message;
	context.column = NULL;
	callback.callback = decode_error_callback;
	callback.arg = &context;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	for (i = 0; i < decoder->ncolumns; i++)
	{
		DecodeColumn *column = &decoder->columns[i];

		context.column = column->column->name;
		values[column->i] = decode_column(decoder, column, message,
										  &isnull[column->i]);
	}

	if (decoder->fields)
		pubsub_fields_decode(decoder->fields, message->data, values, isnull,
							 &context.column);

	error_context_stack = callback.previous;
}

/*
 * decode_error_callback
 *		Says in which message and column an error occurred.
 */
static void
decode_error_callback(void *arg)
{
	DecodeContext *context = (DecodeContext *) arg;
	const PubsubMessage *message = context->message;

	if (context->column)
		errcontext("column \"%s\"", context->column);
	if (context->decoder->is_log)
		errcontext("message at partition %d, offset %lld of topic \"%.*s\"",
				   message->partition, (long long) message->offset,
				   message->topic.len, message->topic.data);
	else
		errcontext("message \"%.*s\" of subscription \"%s\"",
				   message->message_id.len, message->message_id.data,
				   context->decoder->subscription);
}

/*
 * message_time
 *		Returns the time that the broker or the producer gave a message.
 *
 * Kafka says -1 for a record without a timestamp.
 */
static Datum
message_time(const PubsubMessage *message, bool *isnull)
{
	TimestampTz result;

	if (message->time_ms == PUBSUB_NO_TIME || message->time_ms == -1)
	{
		*isnull = true;
		return (Datum) 0;
	}

	if (!pubsub_time_to_timestamp(message->time_ms, message->time_us, &result))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time of message out of range: %lld ms since 1970-01-01",
						(long long) message->time_ms)));
	return TimestampTzGetDatum(result);
}

/*
 * try_text
 *		Converts text of a message; NULL = it is none, or none that the server
 *		encoding can hold.
 */
static const char *
try_text(PubsubDecoder *decoder, PubsubBytes bytes, int *len)
{
	char	   *text;
	int			size;

	if (!pg_verify_mbstr(PG_UTF8, bytes.data, bytes.len, true))
		return NULL;
	*len = bytes.len;
	if (!OidIsValid(decoder->from_utf8) || bytes.len == 0)
		return bytes.data;

	size = bytes.len * MAX_CONVERSION_GROWTH + 1;
	text = palloc(size);
	if (pg_do_encoding_conversion_buf(decoder->from_utf8, PG_UTF8,
									  GetDatabaseEncoding(),
									  (unsigned char *) unconstify(char *, bytes.data),
									  bytes.len, (unsigned char *) text, size,
									  true) < bytes.len)
		return NULL;
	*len = strlen(text);
	return text;
}

/*
 * header_string
 *		Returns the value of a header for a message, shortened if need be.
 */
static const char *
header_string(PubsubDecoder *decoder, const PubsubHeader *header)
{
	int			len;
	const char *value = try_text(decoder, header->value, &len);

	if (value == NULL)
		return "(not text)";
	return pnstrdup(value, pg_mbcliplen(value, len, MAXDATELEN));
}

/*
 * event_time_from_attribute
 *		Returns the event time by the table's timestamp attribute.
 */
static Datum
event_time_from_attribute(PubsubDecoder *decoder, const PubsubMessage *message)
{
	const char *name = decoder->timestamp_attribute;
	const PubsubHeader *header;
	int64		ms;
	TimestampTz result;

	header = pubsub_find_header(message, decoder->timestamp_header);
	if (header == NULL || header->value.len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DATETIME_FORMAT),
				 errmsg("message has no timestamp attribute \"%s\"", name)));

	if (!pubsub_time_parse(header->value.data, header->value.len, &ms))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DATETIME_FORMAT),
				 errmsg("invalid value for timestamp attribute \"%s\": \"%s\"",
						name, header_string(decoder, header)),
				 errdetail("The value must be milliseconds since 1970-01-01 or an RFC 3339 time.")));

	if (!pubsub_time_to_timestamp(ms, 0, &result))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("value for timestamp attribute \"%s\" out of range: \"%s\"",
						name, header_string(decoder, header))));

	return TimestampTzGetDatum(result);
}

/*
 * push_string
 *		Adds bytes to a jsonb value that is being built: as a string if they
 *		are text, else as {"base64": "..."}.
 *
 * The keys of an object (WJB_KEY) can only be strings; bytes that are no text
 * become "base64:..." there.
 */
static void
push_string(PubsubDecoder *decoder, JsonbParseState **state,
			JsonbIteratorToken token, PubsubBytes bytes)
{
	static const char prefix[] = "base64:";
	JsonbValue	string;
	int			len;
	const char *text = try_text(decoder, bytes, &len);
	char	   *base64;
	int			size;

	string.type = jbvString;
	if (text)
	{
		string.val.string.val = unconstify(char *, text);
		string.val.string.len = len;
		pushJsonbValue(state, token, &string);
		return;
	}

	size = pg_b64_enc_len(bytes.len);
	base64 = palloc(sizeof(prefix) + size);
	memcpy(base64, prefix, sizeof(prefix) - 1);
	size = pg_b64_encode((const void *) bytes.data, bytes.len,
						 base64 + sizeof(prefix) - 1, size);

	if (token == WJB_KEY)
	{
		string.val.string.val = base64;
		string.val.string.len = sizeof(prefix) - 1 + size;
		pushJsonbValue(state, WJB_KEY, &string);
		return;
	}

	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	string.val.string.val = "base64";
	string.val.string.len = strlen("base64");
	pushJsonbValue(state, WJB_KEY, &string);
	string.val.string.val = base64 + sizeof(prefix) - 1;
	string.val.string.len = size;
	pushJsonbValue(state, WJB_VALUE, &string);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/*
 * push_header_value
 *		Adds the value of a header to a jsonb object that is being built.
 */
static void
push_header_value(PubsubDecoder *decoder, JsonbParseState **state,
				  PubsubBytes value)
{
	JsonbValue	null;

	if (value.data)
		push_string(decoder, state, WJB_VALUE, value);
	else
	{
		null.type = jbvNull;
		pushJsonbValue(state, WJB_VALUE, &null);
	}
}

/*
 * attributes_jsonb
 *		Returns the headers as an object; of duplicates the last one counts.
 */
static Jsonb *
attributes_jsonb(PubsubDecoder *decoder, const PubsubMessage *message)
{
	JsonbParseState *state = NULL;
	int			i;

	if (message->nheaders == 0)
		return decoder->empty_object;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (i = 0; i < message->nheaders; i++)
	{
		push_string(decoder, &state, WJB_KEY, message->headers[i].name);
		push_header_value(decoder, &state, message->headers[i].value);
	}
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/*
 * headers_jsonb
 *		Returns the headers as an array of {"key": ..., "value": ...}.
 */
static Jsonb *
headers_jsonb(PubsubDecoder *decoder, const PubsubMessage *message)
{
	JsonbParseState *state = NULL;
	JsonbValue	key;
	JsonbValue	value;
	int			i;

	if (message->nheaders == 0)
		return decoder->empty_array;

	key.type = jbvString;
	key.val.string.val = "key";
	key.val.string.len = strlen("key");
	value.type = jbvString;
	value.val.string.val = "value";
	value.val.string.len = strlen("value");

	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (i = 0; i < message->nheaders; i++)
	{
		pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
		pushJsonbValue(&state, WJB_KEY, &key);
		push_string(decoder, &state, WJB_VALUE, message->headers[i].name);
		pushJsonbValue(&state, WJB_KEY, &value);
		push_header_value(decoder, &state, message->headers[i].value);
		pushJsonbValue(&state, WJB_END_OBJECT, NULL);
	}
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_ARRAY, NULL));
}

/*
 * decode_bytes
 *		Returns bytes of a message as a column's value.
 */
static Datum
decode_bytes(PubsubConversion *conv, PubsubBytes bytes, bool *isnull)
{
	if (bytes.data)
		return pubsub_convert_bytes(conv, bytes);

	*isnull = true;
	return pubsub_convert_datum(conv, (Datum) 0, true);
}

/*
 * decode_text
 *		Returns a string, or NULL, as a column's value.
 */
static Datum
decode_text(PubsubConversion *conv, const char *text, bool *isnull)
{
	if (text)
		return pubsub_convert_text(conv, text, strlen(text));

	*isnull = true;
	return pubsub_convert_datum(conv, (Datum) 0, true);
}

/*
 * timestamp_type_name
 *		Returns what the column timestamp_type shows.
 */
static const char *
timestamp_type_name(PubsubTimestampType type)
{
	switch (type)
	{
		case PUBSUB_TIMESTAMP_NONE:
			return "none";
		case PUBSUB_TIMESTAMP_CREATE:
			return "create_time";
		case PUBSUB_TIMESTAMP_LOG_APPEND:
			return "log_append_time";
		case PUBSUB_TIMESTAMP_PUBLISH:
			break;
	}
	return NULL;
}

/*
 * decode_column
 *		Returns the value of one column that is not a payload field.
 */
static Datum
decode_column(PubsubDecoder *decoder, DecodeColumn *column,
			  const PubsubMessage *message, bool *isnull)
{
	PubsubConversion *conv = &column->conv;
	Datum		value = (Datum) 0;

	*isnull = false;
	switch (column->column->role)
	{
		case PUBSUB_ROLE_DATA:
			{
				PubsubBytes data = message->data;

				/*
				 * A queue's message without data has empty data.  That is no
				 * JSON, but the row may have come from a NULL.
				 */
				if (!decoder->is_log && data.len == 0 &&
					(conv->basetype == JSONOID || conv->basetype == JSONBOID))
					data.data = NULL;
				return decode_bytes(conv, data, isnull);
			}

		case PUBSUB_ROLE_KEY:
			return decode_bytes(conv, message->key, isnull);

		case PUBSUB_ROLE_ATTRIBUTE:
			{
				const PubsubHeader *header;
				PubsubBytes absent = {NULL, 0};

				header = pubsub_find_header(message, column->attribute);
				return decode_bytes(conv, header ? header->value : absent,
									isnull);
			}

		case PUBSUB_ROLE_ATTRIBUTES:
			value = JsonbPGetDatum(attributes_jsonb(decoder, message));
			break;

		case PUBSUB_ROLE_HEADERS:
			value = JsonbPGetDatum(headers_jsonb(decoder, message));
			break;

		case PUBSUB_ROLE_EVENT_TIME:
			if (decoder->timestamp_attribute)
				value = event_time_from_attribute(decoder, message);
			else
				value = message_time(message, isnull);
			break;

		case PUBSUB_ROLE_PUBLISH_TIME:
			value = message_time(message, isnull);
			break;

		case PUBSUB_ROLE_TIMESTAMP_TYPE:
			return decode_text(conv, timestamp_type_name(message->time_type),
							   isnull);

		case PUBSUB_ROLE_MESSAGE_ID:
			if (decoder->is_log)
				return decode_text(conv,
								   psprintf("%.*s:%d:%lld",
											message->topic.len,
											message->topic.data,
											message->partition,
											(long long) message->offset),
								   isnull);
			return decode_bytes(conv, message->message_id, isnull);

		case PUBSUB_ROLE_TOPIC:
			{
				PubsubBytes topic = message->topic;

				/* that of a queue is what the broker says, too */
				if (!decoder->is_log)
				{
					topic.data = decoder->topic;
					topic.len = topic.data ? strlen(topic.data) : 0;
				}
				return decode_bytes(conv, topic, isnull);
			}

		case PUBSUB_ROLE_SUBSCRIPTION:
			return decode_text(conv,
							   decoder->is_log ? NULL : decoder->subscription,
							   isnull);

		case PUBSUB_ROLE_PARTITION:
			*isnull = (message->partition < 0);
			value = Int32GetDatum(message->partition);
			break;

		case PUBSUB_ROLE_OFFSET:
			*isnull = (message->offset < 0);
			value = Int64GetDatum(message->offset);
			break;

		case PUBSUB_ROLE_DELIVERY_ATTEMPT:
			*isnull = (message->delivery_attempt == 0);
			value = Int32GetDatum(message->delivery_attempt);
			break;

		case PUBSUB_ROLE_NONE:
		case PUBSUB_ROLE_FIELD:
			Assert(false);
			*isnull = true;
			break;
	}

	return pubsub_convert_datum(conv, value, *isnull);
}
