/*-------------------------------------------------------------------------
 *
 * event_time.c
 *		Event times in messages, and as timestamps
 *
 * The timestamp attribute holds milliseconds since the Unix epoch as a
 * decimal number, or an RFC 3339 time; digits beyond the third of a fraction
 * are cut off, so that nothing moves into the next day.  PostgreSQL's own
 * input functions are not used: they round, depend on DateStyle and TimeZone,
 * and take numbers for dates.
 *
 * IDENTIFICATION
 *		src/event_time.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "utils/datetime.h"

#include "codec.h"

/* From the Unix epoch to that of timestamptz, in ms */
#define EPOCH_DIFF_MS \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000)

/* The text being parsed */
typedef struct TimeText
{
	const char *next;
	const char *end;
} TimeText;

/*
 * take_digits
 *		Reads exactly n digits.
 */
static bool
take_digits(TimeText *text, int n, int *result)
{
	*result = 0;
	for (; n > 0; n--)
	{
		if (text->next == text->end ||
			*text->next < '0' || *text->next > '9')
			return false;
		*result = *result * 10 + (*text->next++ - '0');
	}
	return true;
}

/*
 * take_char
 *		Reads one of these characters; 0 = there is another one, or none.
 */
static char
take_char(TimeText *text, const char *set)
{
	if (text->next == text->end || *text->next == '\0' ||
		strchr(set, *text->next) == NULL)
		return 0;
	return *text->next++;
}

/*
 * parse_number
 *		Reads a decimal number, to the end.
 */
static bool
parse_number(TimeText text, int64 *ms)
{
	bool		negative = (take_char(&text, "-") != 0);

	if (text.next == text.end)
		return false;

	*ms = 0;
	for (; text.next < text.end; text.next++)
	{
		if (*text.next < '0' || *text.next > '9')
			return false;
		/* counting downwards, since there is one more negative number */
		if (pg_mul_s64_overflow(*ms, 10, ms) ||
			pg_sub_s64_overflow(*ms, *text.next - '0', ms))
			*ms = PG_INT64_MIN;
	}
	if (!negative)
		*ms = (*ms == PG_INT64_MIN) ? PG_INT64_MAX : -*ms;
	return true;
}

/*
 * parse_rfc3339
 *		Reads a time such as 2015-10-29T23:41:41.123Z, to the end.
 *
 * Second 60 is the first of the next minute.
 */
static bool
parse_rfc3339(TimeText text, int64 *ms)
{
	int			year;
	int			month;
	int			day;
	int			hour;
	int			minute;
	int			second;
	int			fraction = 0;
	int			offset = 0;		/* of the zone, in minutes */
	char		sign;

	if (!take_digits(&text, 4, &year) ||
		!take_char(&text, "-") ||
		!take_digits(&text, 2, &month) ||
		!take_char(&text, "-") ||
		!take_digits(&text, 2, &day) ||
		!take_char(&text, "Tt ") ||
		!take_digits(&text, 2, &hour) ||
		!take_char(&text, ":") ||
		!take_digits(&text, 2, &minute) ||
		!take_char(&text, ":") ||
		!take_digits(&text, 2, &second))
		return false;

	if (month < 1 || month > MONTHS_PER_YEAR ||
		day < 1 || day > day_tab[isleap(year)][month - 1] ||
		hour > 23 || minute > 59 || second > 60)
		return false;

	if (take_char(&text, "."))
	{
		int			digit;
		int			ndigits;

		for (ndigits = 0; take_digits(&text, 1, &digit); ndigits++)
		{
			if (ndigits < 3)
				fraction = fraction * 10 + digit;
			if (text.next == text.end)
				return false;	/* the zone must follow */
		}
		if (ndigits == 0)
			return false;
		for (; ndigits < 3; ndigits++)
			fraction *= 10;
	}

	sign = take_char(&text, "Zz+-");
	if (sign == 0)
		return false;
	if (sign == '+' || sign == '-')
	{
		int			zone_hour;
		int			zone_minute;

		if (!take_digits(&text, 2, &zone_hour) ||
			!take_char(&text, ":") ||
			!take_digits(&text, 2, &zone_minute) ||
			zone_hour > 23 || zone_minute > 59)
			return false;
		offset = zone_hour * 60 + zone_minute;
		if (sign == '-')
			offset = -offset;
	}
	if (text.next != text.end)
		return false;

	*ms = (int64) (date2j(year, month, day) - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
	*ms += (hour * 60 + minute - offset) * 60 + second;
	*ms = *ms * 1000 + fraction;
	return true;
}

/*
 * pubsub_time_parse
 *		Reads the value of a timestamp attribute: first as a number, then as
 *		a time.
 */
bool
pubsub_time_parse(const char *text, int len, int64 *ms)
{
	TimeText	input;

	input.next = text;
	input.end = text + len;
	return parse_number(input, ms) || parse_rfc3339(input, ms);
}

/*
 * pubsub_time_to_timestamp
 *		Makes a timestamp from milliseconds and the microseconds below them.
 */
bool
pubsub_time_to_timestamp(int64 ms, int32 us, TimestampTz *result)
{
	if (pg_sub_s64_overflow(ms, EPOCH_DIFF_MS, &ms) ||
		pg_mul_s64_overflow(ms, 1000, result) ||
		pg_add_s64_overflow(*result, us, result))
		return false;
	return IS_VALID_TIMESTAMP(*result);
}

/*
 * pubsub_time_from_timestamp
 *		Makes milliseconds from a timestamp.
 */
int64
pubsub_time_from_timestamp(TimestampTz timestamp)
{
	int64		ms = timestamp / 1000;

	Assert(!TIMESTAMP_NOT_FINITE(timestamp));
	if (timestamp % 1000 < 0)
		ms--;
	return ms + EPOCH_DIFF_MS;
}
