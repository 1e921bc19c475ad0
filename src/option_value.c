/*-------------------------------------------------------------------------
 *
 * option_value.c
 *		From the text of an option to its value in PubsubOptions
 *
 * Used twice: by the validator, so that a wrong text never gets into the
 * catalogs, and when the options are read from there.
 *
 * IDENTIFICATION
 *		src/option_value.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "option.h"

/* The most of a wrong value that an error message repeats, in bytes */
#define MAX_ECHO			100

static void set_property(PubsubOptions *options, const char *name,
						 const char *value);
static void set_enum(int *field, const PubsubOptionDef *def,
					 const char *name, const char *value);
static void set_number(int *field, const PubsubOptionDef *def,
					   const char *name, const char *value, int guc_flags);
static void out_of_range(const PubsubOptionDef *def, const char *name,
						 const char *value) pg_attribute_noreturn();
static char *format_number(const PubsubOptionDef *def, int64 number);

/*
 * pubsub_options_create
 *	  Makes a struct with all defaults.
 */
PubsubOptions *
pubsub_options_create(void)
{
	PubsubOptions *options = palloc0(sizeof(PubsubOptions));

	for (const PubsubOptionDef *def = pubsub_option_defs; def->name; def++)
	{
		if (def->defval)
			pubsub_option_set(options, def, def->name, def->defval);
	}
	return options;
}

/*
 * pubsub_option_set
 *	  Turns the text of an option into its value; 22023 if it cannot.
 *
 * name differs from the row's for properties only.
 */
void
pubsub_option_set(PubsubOptions *options, const PubsubOptionDef *def,
				  const char *name, const char *value)
{
	void	   *field = (char *) options + def->offset;

	switch (def->type)
	{
		case PUBSUB_TYPE_STRING:
			if (value[0] == '\0')
				pubsub_option_invalid(def, name, value,
									  "The value must not be empty.");
			if (def->max > 0 && (int64) strlen(value) > def->max)
				pubsub_option_invalid(def, name, value,
									  psprintf("The value must not be longer than " INT64_FORMAT " bytes.",
											   def->max));
			if (def->offset >= 0)
				*(char **) field = pstrdup(value);
			break;

		case PUBSUB_TYPE_ENUM:
			set_enum(field, def, name, value);
			break;

		case PUBSUB_TYPE_BOOL:
			if (!parse_bool(value, field))
				pubsub_option_invalid(def, name, value,
									  "The value must be true or false.");
			break;

		case PUBSUB_TYPE_INT:
			set_number(field, def, name, value, 0);
			break;

		case PUBSUB_TYPE_TIME:
			set_number(field, def, name, value, GUC_UNIT_MS);
			break;

		case PUBSUB_TYPE_BYTES:
			set_number(field, def, name, value, GUC_UNIT_BYTE);
			break;

		case PUBSUB_TYPE_INT64:
			{
				char	   *end;
				int64		number;

				errno = 0;
				number = strtoi64(value, &end, 10);
				if (end == value || *end != '\0')
					pubsub_option_invalid(def, name, value,
										  "The value must be an integer.");
				if (errno == ERANGE || number < def->min || number > def->max)
					out_of_range(def, name, value);
				*(int64 *) field = number;
				break;
			}

		case PUBSUB_TYPE_PROPERTY:
			set_property(options, name, value);
			break;
	}
}

/*
 * set_property
 *	  Adds a property, or replaces it; keeps the list sorted by name.
 */
static void
set_property(PubsubOptions *options, const char *name, const char *value)
{
	PubsubProperty *properties;
	int			n = options->nproperties;
	int			place;

	if (strncmp(name, PUBSUB_PROPERTY_PREFIX, strlen(PUBSUB_PROPERTY_PREFIX)) == 0)
		name += strlen(PUBSUB_PROPERTY_PREFIX);

	for (place = 0; place < n; place++)
	{
		int			order = strcmp(options->properties[place].name, name);

		if (order == 0)
		{
			options->properties[place].value = pstrdup(value);
			return;
		}
		if (order > 0)
			break;
	}

	/* a new array: the old one may be shared with a copy of the struct */
	properties = palloc(sizeof(PubsubProperty) * (n + 1));
	if (n > 0)
	{
		memcpy(properties, options->properties,
			   sizeof(PubsubProperty) * place);
		memcpy(properties + place + 1, options->properties + place,
			   sizeof(PubsubProperty) * (n - place));
	}
	properties[place].name = pstrdup(name);
	properties[place].value = pstrdup(value);
	options->properties = properties;
	options->nproperties = n + 1;
}

static void
set_enum(int *field, const PubsubOptionDef *def, const char *name,
		 const char *value)
{
	for (const struct config_enum_entry *entry = def->values; entry->name; entry++)
	{
		if (pg_strcasecmp(value, entry->name) == 0)
		{
			*field = entry->val;
			return;
		}
	}
	pubsub_option_invalid(def, name, value,
						  psprintf("Valid values are %s.",
								   pubsub_option_values(def)));
}

static void
set_number(int *field, const PubsubOptionDef *def, const char *name,
		   const char *value, int guc_flags)
{
	const char *hint = NULL;

	if (!parse_int(value, field, guc_flags, &hint))
		pubsub_option_invalid(def, name, value,
							  hint ? hint : "The value must be a number.");
	if (*field < def->min || *field > def->max)
		out_of_range(def, name, value);
}

/*
 * pubsub_option_check_max
 *	  Checks the lower limit that Pub/Sub has for some numbers.
 *
 * value: the option's text.
 */
void
pubsub_option_check_max(const PubsubOptionDef *def, const char *value,
						const PubsubOptions *options)
{
	if (def->pubsub_max > 0 &&
		*(const int *) ((const char *) options + def->offset) > def->pubsub_max)
		pubsub_option_invalid(def, def->name, value,
							  psprintf("The value must be between %s and %s for broker \"%s\".",
									   format_number(def, def->min),
									   format_number(def, def->pubsub_max),
									   pubsub_broker_name(PUBSUB_FOR_PUBSUB)));
}

static void
out_of_range(const PubsubOptionDef *def, const char *name, const char *value)
{
	if (def->max == INT_MAX)
		pubsub_option_invalid(def, name, value,
							  psprintf("The value must be at least %s.",
									   format_number(def, def->min)));
	pubsub_option_invalid(def, name, value,
						  psprintf("The value must be between %s and %s.",
								   format_number(def, def->min),
								   format_number(def, def->max)));
}

static char *
format_number(const PubsubOptionDef *def, int64 number)
{
	if (def->type == PUBSUB_TYPE_TIME)
	{
		if (number % 1000 == 0)
			return psprintf(INT64_FORMAT "s", number / 1000);
		return psprintf(INT64_FORMAT "ms", number);
	}
	return psprintf(INT64_FORMAT, number);
}

/*
 * pubsub_option_values
 *	  Returns the list of an enum's values.
 */
char *
pubsub_option_values(const PubsubOptionDef *def)
{
	StringInfoData text;

	initStringInfo(&text);
	for (const struct config_enum_entry *entry = def->values; entry->name; entry++)
		appendStringInfo(&text, "%s%s", entry == def->values ? "" : ", ",
						 entry->name);
	return text.data;
}

/*
 * pubsub_option_invalid
 *	  Raises 22023 for a value.
 *
 * The value is repeated, unless it may hold a secret: whatever stands in a
 * user mapping, be it by mistake, and what looks like user:password@host.
 */
void
pubsub_option_invalid(const PubsubOptionDef *def, const char *name,
					  const char *value, const char *hint)
{
	bool		hide = (def->contexts & PUBSUB_ON_MAPPING) != 0 ||
		strchr(value, '@') != NULL;
	int			len = pg_mbcliplen(value, strlen(value), MAX_ECHO);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 hide ? errmsg("invalid value for option \"%s\"", name) :
			 errmsg("invalid value for option \"%s\": \"%.*s%s\"", name,
					len, value, value[len] != '\0' ? "..." : ""),
			 errhint("%s", hint)));
}
