/*-------------------------------------------------------------------------
 *
 * encode.c
 *		Rows to messages
 *
 * Whether the broker would take the message is not decided here but by the
 * driver's check(), see pending.c.
 *
 * A message's headers may come from several places: a headers column, an
 * attributes column, columns for single attributes, and the table's timestamp
 * attribute, in this order.  The same name twice is all right if the values
 * are equal, so that rows can be copied from topic to topic; only a headers
 * column may give a name several values.
 *
 * IDENTIFICATION
 *		src/encode.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/base64.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "codec.h"

typedef struct EncodeColumn
{
	const PubsubColumn *column;
	PubsubOutput out;
	PubsubBytes attribute;		/* its name in messages */
	bool		readonly;
} EncodeColumn;

struct PubsubEncoder
{
	const PubsubTable *table;
	bool		is_log;
	int			ncolumns;
	EncodeColumn *columns;		/* by attnum - 1 */
	PubsubObject *object;		/* NULL: format raw */
};

static void encode_column(PubsubEncoder *encoder, EncodeColumn *column,
						  Datum value, PubsubMessage *message);
static void encode_headers(Jsonb *headers, PubsubMessage *message);
static void add_attribute(PubsubMessage *message, PubsubBytes name,
						  PubsubBytes value);

/*
 * is_readonly
 *		Can the column not be written, because the broker decides or the table
 *		says?
 */
static bool
is_readonly(PubsubEncoder *encoder, const PubsubColumn *column)
{
	switch (column->role)
	{
		case PUBSUB_ROLE_FIELD:
			return !pubsub_object_add(encoder->object, column);
		case PUBSUB_ROLE_DATA:
			return encoder->object != NULL;
		case PUBSUB_ROLE_PARTITION:
			return !encoder->is_log;
		case PUBSUB_ROLE_PUBLISH_TIME:
		case PUBSUB_ROLE_TIMESTAMP_TYPE:
		case PUBSUB_ROLE_MESSAGE_ID:
		case PUBSUB_ROLE_TOPIC:
		case PUBSUB_ROLE_OFFSET:
		case PUBSUB_ROLE_SUBSCRIPTION:
		case PUBSUB_ROLE_DELIVERY_ATTEMPT:
			return true;
		default:
			return false;
	}
}

/*
 * pubsub_encoder_create
 *		Makes an encoder for rows of a table.
 */
PubsubEncoder *
pubsub_encoder_create(const PubsubTable *table, const PubsubColumns *columns)
{
	PubsubEncoder *encoder = palloc0(sizeof(PubsubEncoder));
	int			i;

	encoder->table = table;
	encoder->is_log = (table->driver->capabilities & PUBSUB_IS_LOG) != 0;
	if (table->options.format == PUBSUB_FORMAT_JSON)
		encoder->object = pubsub_object_create();

	encoder->ncolumns = columns->ncolumns;
	encoder->columns = palloc0(sizeof(EncodeColumn) * columns->ncolumns);
	for (i = 0; i < columns->ncolumns; i++)
	{
		EncodeColumn *column = &encoder->columns[i];

		column->column = &columns->columns[i];
		if (column->column->role == PUBSUB_ROLE_NONE)
			continue;
		column->readonly = is_readonly(encoder, column->column);
		if (column->column->attribute)
			column->attribute =
				pubsub_text_to_utf8(column->column->attribute,
									strlen(column->column->attribute));
		pubsub_output_init(&column->out, column->column->typid);
	}

	return encoder;
}

/*
 * readonly_error
 *		Raises the error for a value that cannot be written.
 */
static void pg_attribute_noreturn()
readonly_error(PubsubEncoder *encoder, const PubsubColumn *column)
{
	StringInfoData list;
	int			i;

	initStringInfo(&list);
	for (i = 0; i < encoder->ncolumns; i++)
	{
		if (encoder->columns[i].readonly)
			appendStringInfo(&list, "%s\"%s\"", list.len > 0 ? ", " : "",
							 encoder->columns[i].column->name);
	}

	ereport(ERROR,
			(errcode(ERRCODE_GENERATED_ALWAYS),
			 errmsg("column \"%s\" of foreign table \"%s\" cannot be written",
					column->name, encoder->table->name),
			 column->role == PUBSUB_ROLE_FIELD ?
			 errdetail("Its field is an element of an array, or overlaps with that of an earlier column.") :
			 column->role == PUBSUB_ROLE_DATA ?
			 errdetail("With format \"json\" the payload is made from the other columns.") :
			 0,
			 errhint("These columns of the table must be left out or NULL: %s.",
					 list.data)));
}

/*
 * given_twice
 *		Raises the error for two columns that mean the same thing.
 */
static void pg_attribute_noreturn()
given_twice(const PubsubColumn *column)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("column \"%s\" sets what another column has set already",
					column->name),
			 errhint("Leave one of the two columns out, or NULL.")));
}

/*
 * pubsub_encode
 *		Turns a row into a message.
 */
void
pubsub_encode(PubsubEncoder *encoder, const Datum *values, const bool *isnull,
			  PubsubMessage *message)
{
	static const PubsubRole header_roles[] = {
		PUBSUB_ROLE_HEADERS, PUBSUB_ROLE_ATTRIBUTES, PUBSUB_ROLE_ATTRIBUTE
	};
	bool		has_headers[lengthof(header_roles)] = {false};
	bool		has_time = false;
	TimestampTz event_time = 0;
	int			i;
	int			j;

	memset(message, 0, sizeof(PubsubMessage));
	message->time_ms = PUBSUB_NO_TIME;
	message->partition = -1;
	message->offset = -1;

	for (i = 0; i < encoder->ncolumns; i++)
	{
		EncodeColumn *column = &encoder->columns[i];

		if (isnull[i] || column->column->role == PUBSUB_ROLE_NONE)
			continue;
		if (column->readonly)
			readonly_error(encoder, column->column);

		switch (column->column->role)
		{
			case PUBSUB_ROLE_HEADERS:
				has_headers[0] = true;
				break;
			case PUBSUB_ROLE_ATTRIBUTES:
				has_headers[1] = true;
				break;
			case PUBSUB_ROLE_ATTRIBUTE:
				has_headers[2] = true;
				break;
			case PUBSUB_ROLE_EVENT_TIME:
				if (has_time)
					given_twice(column->column);
				has_time = true;
				event_time = DatumGetTimestampTz(values[i]);
				break;
			default:
				encode_column(encoder, column, values[i], message);
				break;
		}
	}

	for (j = 0; j < (int) lengthof(header_roles); j++)
	{
		for (i = 0; has_headers[j] && i < encoder->ncolumns; i++)
		{
			EncodeColumn *column = &encoder->columns[i];

			if (column->column->role == header_roles[j] && !isnull[i])
				encode_column(encoder, column, values[i], message);
		}
	}

	if (encoder->object &&
		!(encoder->table->options.tombstones &&
		  pubsub_object_isnull(encoder->object, isnull)))
		message->data = pubsub_object_encode(encoder->object, values, isnull);

	/* a queue knows no NULL */
	if (message->data.data == NULL && !encoder->is_log)
		message->data.data = "";

	pubsub_encode_time(encoder->table, has_time, event_time, message);
}

/*
 * encode_column
 *		Puts one value into a message.
 */
static void
encode_column(PubsubEncoder *encoder pg_attribute_unused(),
			  EncodeColumn *column, Datum value,
			  PubsubMessage *message)
{
	switch (column->column->role)
	{
		case PUBSUB_ROLE_DATA:
			if (message->data.data)
				given_twice(column->column);
			message->data = pubsub_output_bytes(&column->out, value);
			break;

		case PUBSUB_ROLE_KEY:
			if (message->key.data)
				given_twice(column->column);
			message->key = pubsub_output_bytes(&column->out, value);
			break;

		case PUBSUB_ROLE_PARTITION:
			if (message->partition >= 0)
				given_twice(column->column);
			message->partition = DatumGetInt32(value);
			if (message->partition < 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("partition %d in column \"%s\" must not be negative",
								message->partition, column->column->name)));
			break;

		case PUBSUB_ROLE_HEADERS:
			if (message->nheaders > 0)
				given_twice(column->column);
			encode_headers(DatumGetJsonbP(value), message);
			break;

		case PUBSUB_ROLE_ATTRIBUTES:
			pubsub_encode_attributes(DatumGetJsonbP(value), message);
			break;

		case PUBSUB_ROLE_ATTRIBUTE:
			add_attribute(message, column->attribute,
						  pubsub_output_bytes(&column->out, value));
			break;

		default:
			/* payload fields are written as one object */
			Assert(column->column->role == PUBSUB_ROLE_FIELD);
			break;
	}
}

/*
 * add_header
 *		Appends a header to a message.
 *
 * The array has room for a power of two, so it is full when its length is
 * one.
 */
static void
add_header(PubsubMessage *message, PubsubBytes name, PubsubBytes value)
{
	int			n = message->nheaders;

	if (n == 0)
		message->headers = palloc(sizeof(PubsubHeader));
	else if ((n & (n - 1)) == 0)
		message->headers = repalloc(message->headers,
									sizeof(PubsubHeader) * n * 2);
	message->headers[n].name = name;
	message->headers[n].value = value;
	message->nheaders++;
}

/*
 * server_text
 *		Returns UTF-8 as a string in the server encoding, for messages.
 */
static char *
server_text(PubsubBytes bytes)
{
	int			len;
	const char *text = pubsub_text_from_utf8(bytes, &len);

	return pnstrdup(text, len);
}

/*
 * add_attribute
 *		Appends an attribute to a message, unless it is there already with the
 *		same value.
 */
static void
add_attribute(PubsubMessage *message, PubsubBytes name, PubsubBytes value)
{
	const PubsubHeader *header = pubsub_find_header(message, name);

	if (header == NULL)
		add_header(message, name, value);
	else if (header->value.data == NULL ||
			 header->value.len != value.len ||
			 memcmp(header->value.data, value.data, value.len) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("attribute \"%s\" is given two different values",
						server_text(name))));
}

/*
 * string_bytes
 *		Returns a jsonb string as bytes of a message.
 */
static PubsubBytes
string_bytes(const JsonbValue *value)
{
	return pubsub_text_to_utf8(value->val.string.val, value->val.string.len);
}

/*
 * scalar_bytes
 *		Returns a jsonb string, number or boolean as bytes of a message; false
 *		= it is something else.
 */
static bool
scalar_bytes(const JsonbValue *value, PubsubBytes *bytes)
{
	switch (value->type)
	{
		case jbvString:
			*bytes = string_bytes(value);
			return true;
		case jbvNumeric:
			bytes->data = DatumGetCString(DirectFunctionCall1(numeric_out,
															  NumericGetDatum(value->val.numeric)));
			break;
		case jbvBool:
			bytes->data = value->val.boolean ? "true" : "false";
			break;
		default:
			return false;
	}
	bytes->len = strlen(bytes->data);
	return true;
}

/*
 * pubsub_encode_attributes
 *		Adds the attributes in a jsonb object to a message.
 */
void
pubsub_encode_attributes(Jsonb *attributes, PubsubMessage *message)
{
	JsonbIterator *iterator = JsonbIteratorInit(&attributes->root);
	JsonbIteratorToken token;
	JsonbValue	item;
	PubsubBytes name = {NULL, 0};

	if (!JB_ROOT_IS_OBJECT(attributes))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("attributes must be a JSON object, not %s",
						JB_ROOT_IS_SCALAR(attributes) ? "a scalar" : "an array")));

	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		PubsubBytes value;

		if (token == WJB_KEY)
			name = string_bytes(&item);
		else if (token == WJB_VALUE)
		{
			if (!scalar_bytes(&item, &value))
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("attribute \"%s\" must be a string, a number or a boolean, not %s",
								server_text(name), JsonbTypeName(&item))));
			add_attribute(message, name, value);
		}
	}
}

/*
 * member
 *		Looks up a member of a jsonb object; false = there is none.
 */
static bool
member(const JsonbValue *object, const char *name, JsonbValue *value)
{
	return getKeyJsonValueFromContainer(object->val.binary.data, name,
										strlen(name), value) != NULL;
}

/*
 * base64_bytes
 *		Returns the bytes meant by {"base64": "..."}; false = it is something
 *		else.
 */
static bool
base64_bytes(const JsonbValue *value, PubsubBytes *bytes)
{
	JsonbValue	string;
	char	   *buffer;
	int			size;

	if (value->type != jbvBinary ||
		!JsonContainerIsObject(value->val.binary.data) ||
		JsonContainerSize(value->val.binary.data) != 1 ||
		!member(value, "base64", &string) ||
		string.type != jbvString)
		return false;

	size = pg_b64_dec_len(string.val.string.len);
	buffer = palloc(size + 1);
	bytes->data = buffer;
	bytes->len = pg_b64_decode(string.val.string.val, string.val.string.len,
							   (void *) buffer, size);
	return bytes->len >= 0;
}

/*
 * encode_headers
 *		Adds the headers in a jsonb array to a message.
 */
static void
encode_headers(Jsonb *headers, PubsubMessage *message)
{
	uint32		nheaders = JB_ROOT_COUNT(headers);
	uint32		i;

	if (!JB_ROOT_IS_ARRAY(headers) || JB_ROOT_IS_SCALAR(headers))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("headers must be a JSON array")));

	for (i = 0; i < nheaders; i++)
	{
		JsonbValue *header = getIthJsonbValueFromContainer(&headers->root, i);
		JsonbValue	key;
		JsonbValue	value;
		PubsubBytes name;
		PubsubBytes content = {NULL, 0};

		if (header->type != jbvBinary ||
			!JsonContainerIsObject(header->val.binary.data) ||
			JsonContainerSize(header->val.binary.data) != 2 ||
			!member(header, "key", &key) ||
			!member(header, "value", &value))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("header %u must be a JSON object with the members \"key\" and \"value\"",
							i + 1)));

		if (key.type == jbvString)
			name = string_bytes(&key);
		else if (!base64_bytes(&key, &name))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("key of header %u must be a string, or {\"base64\": \"...\"}",
							i + 1)));

		if (value.type != jbvNull &&
			!scalar_bytes(&value, &content) &&
			!base64_bytes(&value, &content))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("value of header %u must be a string, a number, a boolean, null, or {\"base64\": \"...\"}",
							i + 1)));

		add_header(message, name, content);
	}
}

/*
 * pubsub_encode_time
 *		Gives a message its event time.
 *
 * A timestamp attribute that is there already stays, if it can be read and
 * means the same time.
 */
void
pubsub_encode_time(const PubsubTable *table, bool has_time,
				   TimestampTz event_time, PubsubMessage *message)
{
	const char *attribute = table->options.timestamp_attribute;
	int64		ms;

	if (!has_time && attribute == NULL)
		return;
	if (has_time && TIMESTAMP_NOT_FINITE(event_time))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("event time of a message cannot be infinite")));
	ms = pubsub_time_from_timestamp(has_time ? event_time :
									GetCurrentTimestamp());

	if (attribute)
	{
		PubsubBytes name = pubsub_text_to_utf8(attribute, strlen(attribute));
		const PubsubHeader *header = pubsub_find_header(message, name);
		PubsubBytes value;
		int64		other;

		if (header == NULL)
		{
			value.data = psprintf(INT64_FORMAT, ms);
			value.len = strlen(value.data);
			add_header(message, name, value);
		}
		else if (header->value.data == NULL ||
				 !pubsub_time_parse(header->value.data, header->value.len,
									&other))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_DATETIME_FORMAT),
					 errmsg("invalid value for timestamp attribute \"%s\"",
							attribute),
					 errdetail("The value must be milliseconds since 1970-01-01 or an RFC 3339 time.")));
		else if (has_time && other != ms)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("timestamp attribute \"%s\" differs from the event time",
							attribute),
					 errdetail("The attribute means %lld, the event time %lld ms since 1970-01-01.",
							   (long long) other, (long long) ms)));
	}

	if (has_time && (table->driver->capabilities & PUBSUB_IS_LOG))
	{
		/* what readers take for "no time", see decode.c */
		if (ms == -1)
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("event time of a message cannot be 1 ms before 1970-01-01")));
		message->time_ms = ms;
	}
}
