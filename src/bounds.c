/*-------------------------------------------------------------------------
 *
 * bounds.c
 *		Which offsets of which partitions a read covers
 *
 * Parses what the user says about that (partitions, start_offsets,
 * stop_offsets, start_read_time, stop_read_time), and applies it to the ranges
 * that the broker has.  A start that has been deleted, or was never there, is
 * data loss; an end is only clamped.
 *
 * IDENTIFICATION
 *		src/bounds.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "bounds.h"

static void bad_value(const char *option, const char *value,
					  const char *hint) pg_attribute_noreturn();
static Datum parse_value(PGFunction input, const char *option,
						 const char *value);
static bool parse_digits(const char **p, int64 max, int64 *result);
static bool parse_word(const char *word, PubsubOffset *offset);
static void parse_member(const char *option, const char *value,
						 JsonbValue *key, JsonbValue *val,
						 PubsubOffset *offset);
static int64 resolve_offset(const PubsubOffset *offset, int64 low, int64 high);
static const PubsubOffset *find_offset(const PubsubOffsetSpec *spec,
									   int32 partition);
static void check_known(const PubsubTable *table,
						const PubsubOffsetSpec *spec,
						const PubsubRanges *ranges);
static void unknown_partition(const PubsubTable *table, int32 partition)
			pg_attribute_noreturn();

#define PARTITIONS_HINT "Give numbers and intervals, as in \"0,3-5\"."
#define OFFSETS_HINT "Give \"earliest\", \"latest\", \"latest-<n>\", or JSON such as {\"0\": 23, \"1\": \"earliest\"}."

void
pubsub_bounds_check_partitions(const char *option, const char *value)
{
	(void) pubsub_bounds_parse_partitions(option, value);
}

void
pubsub_bounds_check_offsets(const char *option, const char *value)
{
	(void) pubsub_bounds_parse_offsets(option, value, NULL,
									   PUBSUB_OFFSET_EARLIEST);
}

void
pubsub_bounds_check_time(const char *option, const char *value)
{
	(void) pubsub_bounds_parse_time(option, value);
}

static void
bad_value(const char *option, const char *value, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option, value),
			 errhint("%s", hint)));
}

/*
 * parse_value
 *	  Calls an input function; what it does not like is a bad option value.
 */
static Datum
parse_value(PGFunction input, const char *option, const char *value)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	Datum		result = (Datum) 0;

	PG_TRY();
	{
		result = DirectFunctionCall3(input, CStringGetDatum(value),
									 ObjectIdGetDatum(InvalidOid),
									 Int32GetDatum(-1));
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(oldcxt);
		edata = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", option,
						value),
				 errdetail_internal("%s", edata->message)));
	}
	PG_END_TRY();
	return result;
}

/*
 * parse_digits
 *	  Reads a decimal number without sign, and moves behind it.
 */
static bool
parse_digits(const char **p, int64 max, int64 *result)
{
	int64		number = 0;

	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9'; (*p)++)
	{
		int			digit = **p - '0';

		if (number > (max - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*result = number;
	return true;
}

/*
 * pubsub_bounds_parse_partitions
 *	  Reads a list such as "0,3-5".
 */
PubsubPartitionSet *
pubsub_bounds_parse_partitions(const char *option, const char *value)
{
	PubsubPartitionSet *set = palloc0(sizeof(PubsubPartitionSet));
	int			size = strlen(value) / 2 + 1;
	const char *p = value;

	set->first = palloc(size * sizeof(int32));
	set->last = palloc(size * sizeof(int32));
	for (;;)
	{
		int64		first;
		int64		last;

		while (*p == ' ')
			p++;
		if (!parse_digits(&p, PG_INT32_MAX, &first))
			bad_value(option, value, PARTITIONS_HINT);
		last = first;
		if (*p == '-')
		{
			p++;
			if (!parse_digits(&p, PG_INT32_MAX, &last) || last < first)
				bad_value(option, value, PARTITIONS_HINT);
		}
		set->first[set->nintervals] = first;
		set->last[set->nintervals] = last;
		set->nintervals++;
		while (*p == ' ')
			p++;
		if (*p == '\0')
			break;
		if (*p++ != ',')
			bad_value(option, value, PARTITIONS_HINT);
	}
	return set;
}

/*
 * parse_word
 *	  Reads "earliest", "latest", "latest-<n>", or one of Spark's -2 and -1.
 */
static bool
parse_word(const char *word, PubsubOffset *offset)
{
	offset->value = 0;
	if (strcmp(word, "earliest") == 0 || strcmp(word, "-2") == 0)
		offset->kind = PUBSUB_OFFSET_EARLIEST;
	else if (strcmp(word, "latest") == 0 || strcmp(word, "-1") == 0)
		offset->kind = PUBSUB_OFFSET_LATEST;
	else if (strncmp(word, "latest-", 7) == 0)
	{
		const char *p = word + 7;

		offset->kind = PUBSUB_OFFSET_LATEST;
		return parse_digits(&p, PG_INT64_MAX, &offset->value) && *p == '\0';
	}
	else
		return false;
	return true;
}

/*
 * pubsub_bounds_parse_offsets
 *	  Reads a start_offsets or stop_offsets value.
 *
 * JSON may have the topic around the partitions, as Spark writes it; the name
 * is compared if topic is not NULL.  "fallback" is for partitions that JSON
 * does not name.
 */
PubsubOffsetSpec *
pubsub_bounds_parse_offsets(const char *option, const char *value,
							const char *topic, PubsubOffsetKind fallback)
{
	PubsubOffsetSpec *spec = palloc0(sizeof(PubsubOffsetSpec));
	const char *p = value;
	Jsonb	   *json;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key = {0};
	JsonbValue	val;
	int			depth = 0;

	spec->fallback.partition = -1;
	spec->fallback.kind = fallback;

	while (*p == ' ')
		p++;
	if (*p != '{')
	{
		if (!parse_word(value, &spec->fallback))
			bad_value(option, value, OFFSETS_HINT);
		return spec;
	}

	json = DatumGetJsonbP(parse_value(jsonb_in, option, value));
	spec->offsets = palloc(VARSIZE(json) * sizeof(PubsubOffset));
	it = JsonbIteratorInit(&json->root);
	while ((token = JsonbIteratorNext(&it, &val, false)) != WJB_DONE)
	{
		switch (token)
		{
			case WJB_BEGIN_OBJECT:
				if (++depth > 2)
					bad_value(option, value, OFFSETS_HINT);
				break;
			case WJB_END_OBJECT:
				depth--;
				break;
			case WJB_KEY:
				key = val;
				break;
			case WJB_VALUE:
				parse_member(option, value, &key, &val,
							 &spec->offsets[spec->noffsets++]);
				break;
			default:
				bad_value(option, value, OFFSETS_HINT);
		}
		if (token == WJB_BEGIN_OBJECT && depth == 2 && topic != NULL &&
			(key.val.string.len != (int) strlen(topic) ||
			 memcmp(key.val.string.val, topic, key.val.string.len) != 0))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("\"%s\" names topic \"%.*s\", but the foreign table reads topic \"%s\"",
							option, key.val.string.len, key.val.string.val,
							topic)));
	}
	return spec;
}

/*
 * parse_member
 *	  Reads one "partition": offset.
 */
static void
parse_member(const char *option, const char *value, JsonbValue *key,
			 JsonbValue *val, PubsubOffset *offset)
{
	char	   *name = pnstrdup(key->val.string.val, key->val.string.len);
	const char *p = name;
	int64		number;
	char	   *word;

	if (!parse_digits(&p, PG_INT32_MAX, &number) || *p != '\0')
		bad_value(option, value, OFFSETS_HINT);
	offset->partition = number;

	if (val->type == jbvString)
		word = pnstrdup(val->val.string.val, val->val.string.len);
	else if (val->type == jbvNumeric)
		word = DatumGetCString(DirectFunctionCall1(numeric_out,
												   NumericGetDatum(val->val.numeric)));
	else
		bad_value(option, value, OFFSETS_HINT);

	p = word;
	if (parse_digits(&p, PG_INT64_MAX, &offset->value) && *p == '\0')
		offset->kind = PUBSUB_OFFSET_NUMBER;
	else if (!parse_word(word, offset))
		bad_value(option, value, OFFSETS_HINT);
}

TimestampTz
pubsub_bounds_parse_time(const char *option, const char *value)
{
	TimestampTz result;

	result = DatumGetTimestampTz(parse_value(timestamptz_in, option, value));
	if (TIMESTAMP_NOT_FINITE(result))
		bad_value(option, value, "Give a point in time, such as 2026-01-31 12:00:00+00.");
	return result;
}

/*
 * pubsub_bounds_select
 *	  Copies the wanted ranges.
 */
void
pubsub_bounds_select(const PubsubTable *table, const PubsubPartitionSet *set,
					 const PubsubRanges *all, PubsubRanges *chosen)
{
	chosen->topic = all->topic;
	chosen->nranges = 0;
	chosen->ranges = palloc(Max(all->nranges, 1) * sizeof(PubsubRange));
	for (int i = 0; i < all->nranges; i++)
	{
		bool		wanted = (set == NULL);

		for (int j = 0; set != NULL && j < set->nintervals && !wanted; j++)
			wanted = all->ranges[i].partition >= set->first[j] &&
				all->ranges[i].partition <= set->last[j];
		if (wanted)
			chosen->ranges[chosen->nranges++] = all->ranges[i];
	}

	/* partitions are numbered from 0 without holes */
	for (int j = 0; set != NULL && j < set->nintervals; j++)
	{
		if (set->last[j] >= all->nranges)
			unknown_partition(table, Max(set->first[j], all->nranges));
	}
}

static void
unknown_partition(const PubsubTable *table, int32 partition)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_TABLE_NOT_FOUND),
			 errmsg("partition %d of topic \"%s\" does not exist on server \"%s\"",
					partition, table->options.topic,
					table->server->servername)));
}

static const PubsubOffset *
find_offset(const PubsubOffsetSpec *spec, int32 partition)
{
	/* jsonb keeps the last of equal keys only */
	for (int i = 0; i < spec->noffsets; i++)
	{
		if (spec->offsets[i].partition == partition)
			return &spec->offsets[i];
	}
	return &spec->fallback;
}

static int64
resolve_offset(const PubsubOffset *offset, int64 low, int64 high)
{
	switch (offset->kind)
	{
		case PUBSUB_OFFSET_EARLIEST:
			return low;
		case PUBSUB_OFFSET_LATEST:
			return high - low < offset->value ? low : high - offset->value;
		case PUBSUB_OFFSET_NUMBER:
			break;
	}
	return offset->value;
}

/*
 * check_known
 *	  Raises an error for a partition that is named, but does not exist.
 */
static void
check_known(const PubsubTable *table, const PubsubOffsetSpec *spec,
			const PubsubRanges *ranges)
{
	for (int i = 0; i < spec->noffsets; i++)
	{
		bool		found = false;

		for (int j = 0; j < ranges->nranges && !found; j++)
			found = (ranges->ranges[j].partition == spec->offsets[i].partition);
		if (!found)
			unknown_partition(table, spec->offsets[i].partition);
	}
}

void
pubsub_bounds_apply_start(const PubsubTable *table,
						  const PubsubOffsetSpec *spec, PubsubRanges *ranges)
{
	check_known(table, spec, ranges);
	for (int i = 0; i < ranges->nranges; i++)
	{
		PubsubRange *range = &ranges->ranges[i];

		range->start = resolve_offset(find_offset(spec, range->partition),
									  range->low, range->high);
	}
}

void
pubsub_bounds_apply_stop(const PubsubTable *table,
						 const PubsubOffsetSpec *spec, PubsubRanges *ranges)
{
	check_known(table, spec, ranges);
	for (int i = 0; i < ranges->nranges; i++)
	{
		PubsubRange *range = &ranges->ranges[i];

		range->end = Min(resolve_offset(find_offset(spec, range->partition),
										range->low, range->high),
						 range->high);
	}
}

/*
 * pubsub_bounds_check_loss
 *	  Decides on a start that is not within [low, high].
 *
 * "beyond" is where to continue if it is above that.
 */
int64
pubsub_bounds_check_loss(const PubsubTable *table, const char *what,
						 int32 partition, int64 wanted, int64 low, int64 high,
						 int64 beyond)
{
	int64		result = wanted < low ? low : beyond;

	if (wanted >= low && wanted <= high)
		return wanted;

	if (table->options.on_data_loss == PUBSUB_DATA_LOSS_ERROR)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("data loss detected in partition %d of topic \"%s\"",
						partition, table->options.topic),
				 low < high ?
				 errdetail("The %s is " INT64_FORMAT ", but the partition holds offsets " INT64_FORMAT " to " INT64_FORMAT " only.",
						   what, wanted, low, high - 1) :
				 errdetail("The %s is " INT64_FORMAT ", but the partition is empty, and its next offset is " INT64_FORMAT ".",
						   what, wanted, high),
				 errhint("The records were deleted, or the topic was created anew.  Set \"on_data_loss\" to \"skip\" to continue with what exists.")));

	ereport(NOTICE,
			(errmsg("data loss in partition %d of topic \"%s\": continuing at offset " INT64_FORMAT " instead of " INT64_FORMAT,
					partition, table->options.topic, result, wanted)));
	return result;
}

/*
 * pubsub_bounds_time_ms
 *	  The first millisecond since 1970 that is not before this time.
 */
int64
pubsub_bounds_time_ms(TimestampTz time)
{
	int64		ms;

	if (TIMESTAMP_IS_NOBEGIN(time))
		return 0;
	if (TIMESTAMP_IS_NOEND(time))
		return PG_INT64_MAX;

	/* in microseconds the last years would not fit */
	ms = time / 1000 + (time % 1000 > 0 ? 1 : 0) +
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * (USECS_PER_DAY / 1000);
	return Max(ms, 0);
}

/*
 * pubsub_bounds_apply_times
 *	  Sets the start (or end) of each range to the first record at a time.
 *
 * -1 = all records of the partition are older.
 */
void
pubsub_bounds_apply_times(const PubsubTable *table, bool start,
						  TimestampTz time, const int64 *offsets,
						  PubsubRanges *ranges)
{
	StringInfoData missing;

	initStringInfo(&missing);
	for (int i = 0; i < ranges->nranges; i++)
	{
		PubsubRange *range = &ranges->ranges[i];
		int64		offset = offsets[i];

		if (offset < 0)
		{
			appendStringInfo(&missing, "%s%d", missing.len ? ", " : "",
							 range->partition);
			offset = range->high;
		}
		offset = Min(Max(offset, range->low), range->high);
		if (start)
			range->start = offset;
		else
			range->end = offset;
	}

	if (missing.len > 0 &&
		table->options.timestamp_miss == PUBSUB_TIMESTAMP_MISS_ERROR)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("topic \"%s\" has partitions without a record at or after %s",
						table->options.topic, timestamptz_to_str(time)),
				 errdetail("Partitions: %s.", missing.data),
				 errhint("Set \"timestamp_miss\" to \"latest\" to read these partitions from, or to, their end.")));
}
