/*-------------------------------------------------------------------------
 *
 * column.c
 *		What the columns of a foreign table stand for
 *
 * A column is bound by one option: "metadata", "attribute" or "field".  A
 * column without any is bound by its name: to the metadata item of this name
 * if the format is raw, to a field of the payload otherwise.
 *
 * Binding happens at the first use, not in DDL: the validator sees neither
 * the column's name and type nor the table's format.
 *
 * IDENTIFICATION
 *		src/column.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "option.h"
#include "pubsub_fdw.h"

/* The types that most items have to choose from, by their base type */
#define PAYLOAD_TYPES	BYTEAOID, TEXTOID, VARCHAROID, JSONOID, JSONBOID
#define TEXT_TYPES		TEXTOID, VARCHAROID

typedef struct MetadataItem
{
	const char *name;
	PubsubRole	role;
	Oid			types[6];		/* ends with InvalidOid; the first is the
								 * natural one */
} MetadataItem;

/* In the order of the documentation. */
static const MetadataItem items[] = {
	{"data", PUBSUB_ROLE_DATA, {PAYLOAD_TYPES}},
	{"key", PUBSUB_ROLE_KEY, {PAYLOAD_TYPES}},
	{"attributes", PUBSUB_ROLE_ATTRIBUTES, {JSONBOID}},
	{"headers", PUBSUB_ROLE_HEADERS, {JSONBOID}},
	{"event_time", PUBSUB_ROLE_EVENT_TIME, {TIMESTAMPTZOID}},
	{"publish_time", PUBSUB_ROLE_PUBLISH_TIME, {TIMESTAMPTZOID}},
	{"timestamp_type", PUBSUB_ROLE_TIMESTAMP_TYPE, {TEXT_TYPES}},
	{"message_id", PUBSUB_ROLE_MESSAGE_ID, {TEXT_TYPES}},
	{"topic", PUBSUB_ROLE_TOPIC, {TEXT_TYPES}},
	{"partition", PUBSUB_ROLE_PARTITION, {INT4OID}},
	{"offset", PUBSUB_ROLE_OFFSET, {INT8OID}},
	{"subscription", PUBSUB_ROLE_SUBSCRIPTION, {TEXT_TYPES}},
	{"delivery_attempt", PUBSUB_ROLE_DELIVERY_ATTEMPT, {INT4OID}}
};

/* Pub/Sub's own word for the key */
#define KEY_ALIAS		"ordering_key"

static void bind_column(PubsubColumn *column, const PubsubTable *table);
static void bind_metadata(PubsubColumn *column, const MetadataItem *item,
						  const PubsubTable *table);
static const MetadataItem *find_item(const char *name);
static char *list_items(void);
static bool parse_path(const char *text, PubsubPathStep **path, int *npath);
static char *parse_member(const char **text);

/*
 * pubsub_columns_get
 *	  Binds the columns of a table.
 */
PubsubColumns *
pubsub_columns_get(Relation rel, const PubsubTable *table)
{
	PubsubColumns *columns = palloc0(sizeof(PubsubColumns));
	TupleDesc	tupdesc = CreateTupleDescCopyConstr(RelationGetDescr(rel));

	columns->tupdesc = tupdesc;
	columns->ncolumns = tupdesc->natts;
	columns->columns = palloc0(sizeof(PubsubColumn) * tupdesc->natts);

	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(tupdesc, i);
		PubsubColumn *column = &columns->columns[i];

		column->attnum = attr->attnum;
		column->name = NameStr(attr->attname);
		if (attr->attisdropped)
			continue;
		column->typid = attr->atttypid;
		column->typmod = attr->atttypmod;

		bind_column(column, table);
		if (column->role == PUBSUB_ROLE_FIELD)
			columns->has_field = true;
	}
	return columns;
}

/*
 * bind_column
 *	  Finds out what a column stands for, by its option or by its name.
 */
static void
bind_column(PubsubColumn *column, const PubsubTable *table)
{
	List	   *list = GetForeignColumnOptions(table->relid, column->attnum);
	bool		is_raw = table->options.format == PUBSUB_FORMAT_RAW;

	if (list != NIL)
	{
		DefElem    *elem = linitial_node(DefElem, list);
		char	   *value = defGetString(elem);

		/* ALTER could not bring in what the validator refuses */
		Assert(list_length(list) == 1);
		pubsub_column_check_option(elem->defname, value);

		if (strcmp(elem->defname, "metadata") == 0)
			bind_metadata(column, find_item(value), table);
		else if (strcmp(elem->defname, "attribute") == 0)
		{
			column->role = PUBSUB_ROLE_ATTRIBUTE;
			column->attribute = value;
		}
		else
		{
			if (is_raw)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
						 errmsg("column \"%s\" of foreign table \"%s\" cannot have option \"%s\"",
								column->name, table->name, elem->defname),
						 errdetail("With format 'raw' the payload has no fields.")));
			column->role = PUBSUB_ROLE_FIELD;
			(void) parse_path(value, &column->path, &column->npath);
		}
	}
	else if (is_raw)
	{
		const MetadataItem *item = find_item(column->name);

		if (item == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
					 errmsg("column \"%s\" of foreign table \"%s\" is not bound to anything",
							column->name, table->name),
					 errdetail("With format 'raw' a column without options must have the name of a metadata item: %s.",
							   list_items()),
					 errhint("Rename the column, or give it an option \"metadata\" or \"attribute\".")));
		bind_metadata(column, item, table);
	}
	else
	{
		column->role = PUBSUB_ROLE_FIELD;
		column->path = palloc0(sizeof(PubsubPathStep));
		column->path->name = column->name;
		column->npath = 1;
	}
}

/*
 * bind_metadata
 *	  Binds a column to a metadata item; checks that the broker has it and
 *	  that the type fits (a domain is as good as its base type).
 */
static void
bind_metadata(PubsubColumn *column, const MetadataItem *item,
			  const PubsubTable *table)
{
	Oid			base = getBaseType(column->typid);
	StringInfoData types;

	if (item->role == PUBSUB_ROLE_HEADERS &&
		pubsub_option_brokers(table->driver->name) == PUBSUB_FOR_PUBSUB)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_INDEX),
				 errmsg("column \"%s\" of foreign table \"%s\" cannot be bound to \"%s\"",
						column->name, table->name, item->name),
				 errdetail("Messages of broker \"%s\" have no headers.",
						   table->driver->name),
				 errhint("Use the metadata item \"attributes\".")));

	initStringInfo(&types);
	for (int i = 0; OidIsValid(item->types[i]); i++)
	{
		if (item->types[i] == base)
		{
			column->role = item->role;
			return;
		}
		/* varchar goes without saying */
		if (item->types[i] != VARCHAROID)
			appendStringInfo(&types, "%s%s", i > 0 ? ", " : "",
							 format_type_be(item->types[i]));
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column \"%s\" of foreign table \"%s\" cannot have type %s",
					column->name, table->name,
					format_type_be(column->typid)),
			 errdetail("Types allowed for metadata item \"%s\": %s.",
					   item->name, types.data)));
}

static const MetadataItem *
find_item(const char *name)
{
	if (strcmp(name, KEY_ALIAS) == 0)
		name = "key";

	for (int i = 0; i < (int) lengthof(items); i++)
	{
		if (strcmp(name, items[i].name) == 0)
			return &items[i];
	}
	return NULL;
}

static char *
list_items(void)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < (int) lengthof(items); i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", items[i].name);
	return list.data;
}

/*
 * pubsub_column_check_option
 *	  Raises 22023 if the value of a column option is malformed.
 */
void
pubsub_column_check_option(const char *option, const char *value)
{
	const PubsubOptionDef *def = pubsub_option_lookup(option, NULL);
	PubsubPathStep *path;
	int			npath;

	if (strcmp(option, "metadata") == 0 && find_item(value) == NULL)
		pubsub_option_invalid(def, option, value,
							  psprintf("Valid values are %s.", list_items()));
	if (strcmp(option, "field") == 0 && !parse_path(value, &path, &npath))
		pubsub_option_invalid(def, option, value,
							  "The value must be names separated by dots, where [n] takes an element of an array; a dot, bracket or backslash in a name needs a backslash before it.");
}

/*
 * parse_path
 *	  Takes a path to a field apart: a.b[0].c
 */
static bool
parse_path(const char *text, PubsubPathStep **path, int *npath)
{
	int			max = strlen(text);

	/* a step takes at least one character */
	*path = palloc0(sizeof(PubsubPathStep) * Max(max, 1));
	*npath = 0;

	/* the payload is an object, so it starts with a name */
	do
	{
		char	   *name = parse_member(&text);

		if (name == NULL)
			return false;
		(*path)[(*npath)++].name = name;

		while (*text == '[')
		{
			char	   *end;
			long		index;

			/* no sign, no blanks: strtol would take them */
			if (text[1] < '0' || text[1] > '9')
				return false;
			errno = 0;
			index = strtol(text + 1, &end, 10);
			if (*end != ']' || errno == ERANGE || index > PG_INT32_MAX)
				return false;
			(*path)[(*npath)++].index = index;
			text = end + 1;
		}
	} while (*text++ == '.');

	return text[-1] == '\0';
}

/*
 * parse_member
 *	  Reads a name up to the next dot or bracket; NULL if it is empty or ends
 *	  in the middle of an escape.
 */
static char *
parse_member(const char **text)
{
	StringInfoData name;
	const char *p = *text;

	initStringInfo(&name);
	while (*p != '\0' && *p != '.' && *p != '[' && *p != ']')
	{
		if (*p == '\\')
		{
			p++;
			if (*p == '\0' || strchr(".[]\\", *p) == NULL)
				return NULL;
		}
		appendStringInfoChar(&name, *p++);
	}
	*text = p;
	return name.len > 0 ? name.data : NULL;
}

/*
 * pubsub_columns_wants
 *	  Returns which parts of a message these columns need.
 */
uint32
pubsub_columns_wants(const PubsubColumns *columns, const PubsubTable *table,
					 const bool *needed)
{
	uint32		wants = 0;

	for (int i = 0; i < columns->ncolumns; i++)
	{
		if (needed != NULL && !needed[i])
			continue;

		switch (columns->columns[i].role)
		{
			case PUBSUB_ROLE_FIELD:
			case PUBSUB_ROLE_DATA:
				wants |= PUBSUB_WANT_DATA;
				break;
			case PUBSUB_ROLE_KEY:
				wants |= PUBSUB_WANT_KEY;
				break;
			case PUBSUB_ROLE_ATTRIBUTE:
			case PUBSUB_ROLE_ATTRIBUTES:
			case PUBSUB_ROLE_HEADERS:
				wants |= PUBSUB_WANT_HEADERS;
				break;
			case PUBSUB_ROLE_EVENT_TIME:
				wants |= PUBSUB_WANT_TIME;
				if (table->options.timestamp_attribute != NULL)
					wants |= PUBSUB_WANT_HEADERS;
				break;
			case PUBSUB_ROLE_PUBLISH_TIME:
			case PUBSUB_ROLE_TIMESTAMP_TYPE:
				wants |= PUBSUB_WANT_TIME;
				break;
			case PUBSUB_ROLE_NONE:
			case PUBSUB_ROLE_MESSAGE_ID:
			case PUBSUB_ROLE_TOPIC:
			case PUBSUB_ROLE_PARTITION:
			case PUBSUB_ROLE_OFFSET:
			case PUBSUB_ROLE_SUBSCRIPTION:
			case PUBSUB_ROLE_DELIVERY_ATTEMPT:
				break;
		}
	}
	return wants;
}
