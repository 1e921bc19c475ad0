/*-------------------------------------------------------------------------
 *
 * codec.h
 *		What the files that decode and encode messages share
 *
 * decode.c and encode.c turn messages into rows and back; convert.c does one
 * value, decode_json.c and encode_json.c a JSON payload, event_time.c the
 * text form of an event time.
 *
 * IDENTIFICATION
 *		src/codec.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_CODEC_H
#define PUBSUB_CODEC_H

#include "lib/stringinfo.h"

#include "pubsub_fdw.h"

/* in convert.c */

/* From text or bytes to a column's type */
typedef struct PubsubConversion
{
	Oid			typid;			/* of the column */
	Oid			basetype;		/* below any domain */
	int32		typmod;			/* of the base type */
	bool		is_domain;
	Oid			ioparam;
	FmgrInfo	input;
	void	   *domain_extra;
	MemoryContext cxt;			/* of the things cached here */
} PubsubConversion;

extern void pubsub_conversion_init(PubsubConversion *conv, Oid typid,
								   int32 typmod);

/* From text in the server encoding, not NUL-terminated */
extern Datum pubsub_convert_text(PubsubConversion *conv, const char *text,
								 int len);

/* From bytes of a message: bytea as they are, other types by UTF-8 text */
extern Datum pubsub_convert_bytes(PubsubConversion *conv, PubsubBytes bytes);

/* From a value of the base type, or NULL: checks a domain's constraints */
extern Datum pubsub_convert_datum(PubsubConversion *conv, Datum value,
								  bool isnull);

/*
 * UTF-8 to the server encoding.  The result may be the argument itself, and
 * need not be NUL-terminated; *len is set.
 */
extern const char *pubsub_text_from_utf8(PubsubBytes bytes, int *len);

/* The server encoding to UTF-8; the result may point into the argument. */
extern PubsubBytes pubsub_text_to_utf8(const char *text, int len);

/* The last header of that name, or NULL */
extern const PubsubHeader *pubsub_find_header(const PubsubMessage *message,
											  PubsubBytes name);

/* From a column's type to text or bytes */
typedef struct PubsubOutput
{
	Oid			basetype;
	FmgrInfo	output;
} PubsubOutput;

extern void pubsub_output_init(PubsubOutput *out, Oid typid);

/* To text in the server encoding; dates and times as ISO 8601 */
extern char *pubsub_output_text(PubsubOutput *out, Datum value);

/* To bytes of a message, the inverse of pubsub_convert_bytes */
extern PubsubBytes pubsub_output_bytes(PubsubOutput *out, Datum value);

/* in event_time.c: milliseconds since the Unix epoch */

/*
 * A number of milliseconds, or an RFC 3339 time; false = neither.  A number
 * beyond int64 becomes the nearest int64.
 */
extern bool pubsub_time_parse(const char *text, int len, int64 *ms);

/* false = timestamptz cannot hold it */
extern bool pubsub_time_to_timestamp(int64 ms, int32 us, TimestampTz *result);

/* Rounds down; the argument must be finite. */
extern int64 pubsub_time_from_timestamp(TimestampTz timestamp);

/* in decode_json.c */
typedef struct PubsubFields PubsubFields;

/* For the needed payload columns; NULL if there are none. */
extern PubsubFields *pubsub_fields_create(const PubsubColumns *columns,
										  const bool *needed, bool strict);

/*
 * Sets the payload columns.  *column is kept at the name of the column in
 * work, for error messages.
 */
extern void pubsub_fields_decode(PubsubFields *fields, PubsubBytes payload,
								 Datum *values, bool *isnull,
								 const char **column);

/* in encode_json.c */
typedef struct PubsubObject PubsubObject;

extern PubsubObject *pubsub_object_create(void);

/*
 * Adds a payload column; false if it cannot be written: an element of an
 * array, or a field within, around or equal to that of an earlier column.
 */
extern bool pubsub_object_add(PubsubObject *object,
							  const PubsubColumn *column);

/* Are all its columns NULL? */
extern bool pubsub_object_isnull(const PubsubObject *object,
								 const bool *isnull);

/* The payload, in the current context */
extern PubsubBytes pubsub_object_encode(PubsubObject *object,
										const Datum *values,
										const bool *isnull);

#endif							/* PUBSUB_CODEC_H */
