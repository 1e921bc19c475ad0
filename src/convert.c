/*-------------------------------------------------------------------------
 *
 * convert.c
 *		One value between a message and a column
 *
 * Messages carry bytes, which are UTF-8 wherever they are text; columns have
 * types.  Look-ups of functions and types are done once, at init; what they
 * cache lives in the context that was current then.
 *
 * IDENTIFICATION
 *		src/convert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/jsonapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/jsonfuncs.h"
#include "utils/lsyscache.h"

#include "codec.h"
#include "compat.h"

/*
 * pubsub_conversion_init
 *		Prepares conversions to a type.
 */
void
pubsub_conversion_init(PubsubConversion *conv, Oid typid, int32 typmod)
{
	Oid			function;

	conv->typid = typid;
	conv->typmod = typmod;
	conv->basetype = getBaseTypeAndTypmod(typid, &conv->typmod);
	conv->is_domain = (conv->basetype != typid);
	conv->domain_extra = NULL;
	conv->cxt = CurrentMemoryContext;

	getTypeInputInfo(conv->basetype, &function, &conv->ioparam);
	fmgr_info(function, &conv->input);
}

/*
 * pubsub_convert_text
 *		Makes a value from its text, by the type's input function.
 *
 * text and json, the types of whole payloads, are copied only once.
 */
Datum
pubsub_convert_text(PubsubConversion *conv, const char *text, int len)
{
	Datum		value;

	switch (conv->basetype)
	{
		case TEXTOID:
			value = PointerGetDatum(cstring_to_text_with_len(text, len));
			break;

		case JSONOID:
			{
				struct varlena *json = cstring_to_text_with_len(text, len);

				pg_parse_json_or_ereport(makeJsonLexContext_compat(VARDATA(json),
																   len, false),
										 &nullSemAction);
				value = PointerGetDatum(json);
				break;
			}

		default:
			value = InputFunctionCall(&conv->input, pnstrdup(text, len),
									  conv->ioparam, conv->typmod);
			break;
	}

	return conv->is_domain ? pubsub_convert_datum(conv, value, false) : value;
}

/*
 * pubsub_convert_bytes
 *		Makes a value from bytes of a message.
 */
Datum
pubsub_convert_bytes(PubsubConversion *conv, PubsubBytes bytes)
{
	const char *text;
	int			len;

	if (conv->basetype == BYTEAOID)
	{
		bytea	   *copy = (bytea *) palloc(VARHDRSZ + bytes.len);

		SET_VARSIZE(copy, VARHDRSZ + bytes.len);
		memcpy(VARDATA(copy), bytes.data, bytes.len);
		return pubsub_convert_datum(conv, PointerGetDatum(copy), false);
	}

	text = pubsub_text_from_utf8(bytes, &len);
	return pubsub_convert_text(conv, text, len);
}

/*
 * pubsub_convert_datum
 *		Returns a value, or NULL, after the checks of the column's domain.
 */
Datum
pubsub_convert_datum(PubsubConversion *conv, Datum value, bool isnull)
{
	if (conv->is_domain)
		domain_check(value, isnull, conv->typid, &conv->domain_extra,
					 conv->cxt);
	return value;
}

/*
 * pubsub_text_from_utf8
 *		Checks that bytes of a message are text, and converts it.
 *
 * A zero byte is not text: it would end a string early.
 */
const char *
pubsub_text_from_utf8(PubsubBytes bytes, int *len)
{
	char	   *text = pg_any_to_server(bytes.data, bytes.len, PG_UTF8);

	*len = (text == bytes.data) ? bytes.len : (int) strlen(text);
	return text;
}

/*
 * pubsub_text_to_utf8
 *		Converts text for a message.
 */
PubsubBytes
pubsub_text_to_utf8(const char *text, int len)
{
	PubsubBytes bytes;

	bytes.data = pg_server_to_any(text, len, PG_UTF8);
	bytes.len = (bytes.data == text) ? len : (int) strlen(bytes.data);
	return bytes;
}

/*
 * pubsub_find_header
 *		Returns the last header of a name, or NULL.
 */
const PubsubHeader *
pubsub_find_header(const PubsubMessage *message, PubsubBytes name)
{
	int			i;

	for (i = message->nheaders - 1; i >= 0; i--)
	{
		const PubsubHeader *header = &message->headers[i];

		if (header->name.len == name.len &&
			memcmp(header->name.data, name.data, name.len) == 0)
			return header;
	}
	return NULL;
}

/*
 * pubsub_output_init
 *		Prepares conversions from a type.
 */
void
pubsub_output_init(PubsubOutput *out, Oid typid)
{
	Oid			function;
	bool		isvarlena;

	out->basetype = getBaseType(typid);
	getTypeOutputInfo(out->basetype, &function, &isvarlena);
	fmgr_info(function, &out->output);
}

/*
 * pubsub_output_text
 *		Makes text from a value, by the type's output function.
 *
 * Other programs read it, so dates and times do not follow the session's
 * DateStyle.
 */
char *
pubsub_output_text(PubsubOutput *out, Datum value)
{
	switch (out->basetype)
	{
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return JsonEncodeDateTime(palloc(MAXDATELEN + 1), value,
									  out->basetype, NULL);
		default:
			return OutputFunctionCall(&out->output, value);
	}
}

/*
 * pubsub_output_bytes
 *		Makes bytes for a message from a value.
 *
 * The result may point into the value.
 */
PubsubBytes
pubsub_output_bytes(PubsubOutput *out, Datum value)
{
	PubsubBytes bytes;
	struct varlena *varlena;
	char	   *text;

	switch (out->basetype)
	{
		case BYTEAOID:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			bytes.data = VARDATA_ANY(varlena);
			bytes.len = VARSIZE_ANY_EXHDR(varlena);
			return bytes;

		case TEXTOID:
		case JSONOID:
			varlena = PG_DETOAST_DATUM_PACKED(value);
			return pubsub_text_to_utf8(VARDATA_ANY(varlena),
									   VARSIZE_ANY_EXHDR(varlena));

		default:
			text = pubsub_output_text(out, value);
			return pubsub_text_to_utf8(text, strlen(text));
	}
}
