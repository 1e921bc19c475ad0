/*-------------------------------------------------------------------------
 *
 * decode_json.c
 *		Payload fields of JSON messages
 *
 * Each payload is walked once, with the server's own lexer, along a tree of
 * the wanted fields; what is wanted is remembered as a piece of the payload's
 * text and converted when the whole is known to be valid.  So numbers keep
 * their digits, of duplicate names the last one counts wherever they are, and
 * fields that nobody asked for cost next to nothing and may hold what the
 * server's types could not (\u0000).
 *
 * Values are converted as json_populate_record() does it: scalars by the
 * type's input function, arrays and composites by that very function.
 *
 * IDENTIFICATION
 *		src/decode_json.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/jsonapi.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/json.h"
#include "utils/jsonfuncs.h"
#include "utils/lsyscache.h"

#include "codec.h"
#include "compat.h"

typedef enum FieldKind
{
	FIELD_SCALAR,				/* input function of the string or token */
	FIELD_INTEGER,				/* likewise, but 1e3 is a number, too */
	FIELD_JSON,					/* json and jsonb: the JSON text */
	FIELD_POPULATE				/* array, composite: json_populate_record() */
} FieldKind;

typedef struct Field
{
	const PubsubColumn *column;
	int			i;				/* attnum - 1 */
	FieldKind	kind;
	PubsubConversion conv;

	/* FIELD_POPULATE: a record type with the column alone */
	TupleDesc	record_desc;
	Datum		record;			/* one of NULL */
	char	   *prefix;			/* '{"name":' */
	FmgrInfo	populate;

	/* what the current payload has: JSON_TOKEN_INVALID = nothing */
	JsonTokenType type;			/* first token */
	const char *start;
	int			len;
} Field;

/* A node of the tree: what is wanted of a value, and below it */
typedef struct FieldNode
{
	char	   *name;			/* member name, or NULL: index */
	int			namelen;
	int			index;
	int			nfields;
	Field	  **fields;			/* fields that want this very value */
	int			nchildren;
	struct FieldNode *children;
} FieldNode;

struct PubsubFields
{
	int			nfields;
	Field	   *fields;
	FieldNode	root;
	bool		strict;			/* a field that is missing is an error */
};

static void walk_value(JsonLexContext *lex, FieldNode *node);

/*
 * init_populate
 *		Prepares json_populate_record() for a record of one column.
 *
 * It is the only exported function that turns JSON into an array, and a
 * record is the only place where it takes a type modifier.
 */
static void
init_populate(Field *field)
{
	const PubsubColumn *column = field->column;
	StringInfoData prefix;
	HeapTuple	tuple;
	Datum		value = (Datum) 0;
	bool		isnull = true;

	field->record_desc = CreateTemplateTupleDesc(1);
	TupleDescInitEntry(field->record_desc, 1, column->name, column->typid,
					   column->typmod, 0);
	BlessTupleDesc(field->record_desc);
	tuple = heap_form_tuple(field->record_desc, &value, &isnull);
	field->record = heap_copy_tuple_as_datum(tuple, field->record_desc);

	initStringInfo(&prefix);
	appendStringInfoChar(&prefix, '{');
	escape_json(&prefix, column->name);
	appendStringInfoChar(&prefix, ':');
	field->prefix = prefix.data;

	fmgr_info(F_JSON_POPULATE_RECORD, &field->populate);
	fmgr_info_set_expr((Node *)
					   makeFuncExpr(F_JSON_POPULATE_RECORD, RECORDOID,
									list_make1(makeNullConst(RECORDOID, -1,
															 InvalidOid)),
									InvalidOid, InvalidOid,
									COERCE_EXPLICIT_CALL),
					   &field->populate);
}

/*
 * init_field
 *		Prepares the conversion of a payload column.
 */
static void
init_field(Field *field, const PubsubColumn *column)
{
	Oid			basetype;

	field->column = column;
	field->i = column->attnum - 1;
	pubsub_conversion_init(&field->conv, column->typid, column->typmod);

	basetype = field->conv.basetype;
	switch (basetype)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			field->kind = FIELD_INTEGER;
			break;
		case JSONOID:
		case JSONBOID:
			field->kind = FIELD_JSON;
			break;
		default:
			if (type_is_array(basetype) || type_is_rowtype(basetype))
			{
				field->kind = FIELD_POPULATE;
				init_populate(field);
			}
			else
				field->kind = FIELD_SCALAR;
			break;
	}
}

/*
 * add_path
 *		Puts a field into the tree.
 */
static void
add_path(FieldNode *node, Field *field)
{
	int			step;

	for (step = 0; step < field->column->npath; step++)
	{
		PubsubPathStep *path = &field->column->path[step];
		FieldNode  *child = NULL;
		int			i;

		for (i = 0; i < node->nchildren && child == NULL; i++)
		{
			FieldNode  *other = &node->children[i];

			if (path->name && other->name ?
				strcmp(path->name, other->name) == 0 :
				!path->name && !other->name && path->index == other->index)
				child = other;
		}

		if (child == NULL)
		{
			Size		size = sizeof(FieldNode) * (node->nchildren + 1);

			node->children = node->children ?
				repalloc(node->children, size) : palloc(size);
			child = &node->children[node->nchildren++];
			memset(child, 0, sizeof(FieldNode));
			child->name = path->name;
			child->namelen = path->name ? strlen(path->name) : 0;
			child->index = path->index;
		}
		node = child;
	}

	node->fields = node->fields ?
		repalloc(node->fields, sizeof(Field *) * (node->nfields + 1)) :
		palloc(sizeof(Field *));
	node->fields[node->nfields++] = field;
}

/*
 * pubsub_fields_create
 *		Prepares the decoding of payloads.
 */
PubsubFields *
pubsub_fields_create(const PubsubColumns *columns, const bool *needed,
					 bool strict)
{
	PubsubFields *fields = palloc0(sizeof(PubsubFields));
	int			i;

	fields->strict = strict;
	fields->fields = palloc0(sizeof(Field) * columns->ncolumns);
	for (i = 0; i < columns->ncolumns; i++)
	{
		const PubsubColumn *column = &columns->columns[i];

		if (column->role == PUBSUB_ROLE_FIELD && (needed == NULL || needed[i]))
		{
			Field	   *field = &fields->fields[fields->nfields++];

			init_field(field, column);
			add_path(&fields->root, field);
		}
	}

	return fields->nfields > 0 ? fields : NULL;
}

/*
 * syntax_error
 *		Raises the server's own error for JSON that is not.
 */
static void pg_attribute_noreturn()
syntax_error(JsonLexContext *lex, JsonParseErrorType error)
{
	if (lex->token_type == JSON_TOKEN_END && error != JSON_EXPECTED_END)
		error = JSON_EXPECTED_MORE;
	json_ereport_error(error, lex);
	pg_unreachable();
}

/*
 * next_token
 *		Goes to the next token.
 */
static void
next_token(JsonLexContext *lex)
{
	JsonParseErrorType error = json_lex(lex);

	if (error != JSON_SUCCESS)
	{
		json_ereport_error(error, lex);
		pg_unreachable();
	}
}

/*
 * unescape
 *		Returns the string that a token means, or NULL if it has escapes that
 *		mean no character; these are an error if must_work.
 */
static const char *
unescape(const char *token, int len, bool must_work)
{
	JsonLexContext *lex = makeJsonLexContext_compat(unconstify(char *, token),
													len, true);
	JsonParseErrorType error = json_lex(lex);

	if (error == JSON_SUCCESS)
		return lex->strval->data;
	if (must_work)
	{
		json_ereport_error(error, lex);
		pg_unreachable();
	}
	return NULL;
}

/*
 * find_member
 *		Returns the child that wants the member whose name is the current
 *		token, or NULL.
 */
static FieldNode *
find_member(JsonLexContext *lex, FieldNode *node)
{
	const char *name = lex->token_start + 1;
	int			len = lex->token_terminator - lex->token_start - 2;
	int			i;

	if (memchr(name, '\\', len))
	{
		name = unescape(lex->token_start, len + 2, false);
		if (name == NULL)
			return NULL;
		len = strlen(name);
	}

	for (i = 0; i < node->nchildren; i++)
	{
		FieldNode  *child = &node->children[i];

		if (child->name && child->namelen == len &&
			memcmp(child->name, name, len) == 0)
			return child;
	}
	return NULL;
}

/*
 * find_element
 *		Returns the child that wants the element of an index, or NULL.
 */
static FieldNode *
find_element(FieldNode *node, int index)
{
	int			i;

	for (i = 0; i < node->nchildren; i++)
	{
		if (node->children[i].name == NULL && node->children[i].index == index)
			return &node->children[i];
	}
	return NULL;
}

/*
 * forget
 *		Takes everything at and below a node for missing.
 */
static void
forget(FieldNode *node)
{
	int			i;

	for (i = 0; i < node->nfields; i++)
		node->fields[i]->type = JSON_TOKEN_INVALID;
	for (i = 0; i < node->nchildren; i++)
		forget(&node->children[i]);
}

/*
 * walk_object
 *		Passes over an object; the current token is its opening brace.
 */
static void
walk_object(JsonLexContext *lex, FieldNode *node)
{
	FieldNode  *child = NULL;

	next_token(lex);
	if (lex->token_type == JSON_TOKEN_OBJECT_END)
	{
		next_token(lex);
		return;
	}
	if (lex->token_type != JSON_TOKEN_STRING)
		syntax_error(lex, JSON_EXPECTED_OBJECT_FIRST);

	for (;;)
	{
		if (node)
			child = find_member(lex, node);
		next_token(lex);
		if (lex->token_type != JSON_TOKEN_COLON)
			syntax_error(lex, JSON_EXPECTED_COLON);
		next_token(lex);
		walk_value(lex, child);

		if (lex->token_type == JSON_TOKEN_OBJECT_END)
			break;
		if (lex->token_type != JSON_TOKEN_COMMA)
			syntax_error(lex, JSON_EXPECTED_OBJECT_NEXT);
		next_token(lex);
		if (lex->token_type != JSON_TOKEN_STRING)
			syntax_error(lex, JSON_EXPECTED_STRING);
	}
	next_token(lex);
}

/*
 * walk_array
 *		Passes over an array; the current token is its opening bracket.
 */
static void
walk_array(JsonLexContext *lex, FieldNode *node)
{
	int			index = 0;

	next_token(lex);
	if (lex->token_type != JSON_TOKEN_ARRAY_END)
	{
		for (;;)
		{
			walk_value(lex, node ? find_element(node, index) : NULL);
			index++;

			if (lex->token_type == JSON_TOKEN_ARRAY_END)
				break;
			if (lex->token_type != JSON_TOKEN_COMMA)
				syntax_error(lex, JSON_EXPECTED_ARRAY_NEXT);
			next_token(lex);
		}
	}
	next_token(lex);
}

/*
 * walk_value
 *		Passes over a value, and remembers what is wanted of it.
 *
 * The current token is the value's first one, and then the one behind it.
 * node is NULL if nothing is wanted.
 */
static void
walk_value(JsonLexContext *lex, FieldNode *node)
{
	JsonTokenType type = lex->token_type;
	const char *start = lex->token_start;
	FieldNode  *below = (node && node->nchildren > 0) ? node : NULL;
	int			i;

	/* a duplicate replaces the earlier value as a whole */
	if (below)
		forget(node);

	switch (type)
	{
		case JSON_TOKEN_OBJECT_START:
			check_stack_depth();
			walk_object(lex, below);
			break;
		case JSON_TOKEN_ARRAY_START:
			check_stack_depth();
			walk_array(lex, below);
			break;
		case JSON_TOKEN_STRING:
		case JSON_TOKEN_NUMBER:
		case JSON_TOKEN_TRUE:
		case JSON_TOKEN_FALSE:
		case JSON_TOKEN_NULL:
			next_token(lex);
			break;
		default:
			syntax_error(lex, JSON_EXPECTED_JSON);
	}

	for (i = 0; node && i < node->nfields; i++)
	{
		Field	   *field = node->fields[i];

		field->type = type;
		field->start = start;
		field->len = lex->prev_token_terminator - start;
	}
}

/*
 * populate
 *		Converts an array or an object to the column's array or composite
 *		type.
 */
static Datum
populate(Field *field, bool *isnull)
{
	StringInfoData json;
	HeapTupleHeader record;
	HeapTupleData tuple;

	initStringInfo(&json);
	appendStringInfoSpaces(&json, VARHDRSZ);
	appendStringInfoString(&json, field->prefix);
	appendBinaryStringInfo(&json, field->start, field->len);
	appendStringInfoChar(&json, '}');
	SET_VARSIZE(json.data, json.len);

	record = DatumGetHeapTupleHeader(FunctionCall3(&field->populate,
												   field->record,
												   PointerGetDatum(json.data),
												   BoolGetDatum(false)));
	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	return heap_getattr(&tuple, 1, field->record_desc, isnull);
}

/*
 * convert_field
 *		Returns what was found for a field as the column's value.
 */
static Datum
convert_field(Field *field, bool *isnull)
{
	PubsubConversion *conv = &field->conv;
	const char *text = field->start;
	int			len = field->len;

	*isnull = false;
	if (field->kind == FIELD_POPULATE)
		return populate(field, isnull);

	if (field->kind != FIELD_JSON && field->type == JSON_TOKEN_STRING)
	{
		if (memchr(text, '\\', len))
		{
			text = unescape(text, len, true);
			len = strlen(text);
		}
		else
		{
			text++;
			len -= 2;
		}
	}
	else if (field->kind == FIELD_INTEGER &&
			 field->type == JSON_TOKEN_NUMBER &&
			 (memchr(text, 'e', len) || memchr(text, 'E', len)))
	{
		Datum		number;

		number = DirectFunctionCall3(numeric_in,
									 CStringGetDatum(pnstrdup(text, len)),
									 ObjectIdGetDatum(InvalidOid),
									 Int32GetDatum(-1));
		text = DatumGetCString(DirectFunctionCall1(numeric_out, number));
		len = strlen(text);
	}

	return pubsub_convert_text(conv, text, len);
}

/*
 * missing_field
 *		Raises the error for a field that a strict table does not find.
 */
static void pg_attribute_noreturn()
missing_field(const PubsubColumn *column)
{
	StringInfoData path;
	int			i;

	initStringInfo(&path);
	for (i = 0; i < column->npath; i++)
	{
		const PubsubPathStep *step = &column->path[i];

		if (step->name)
			appendStringInfo(&path, "%s%s", i > 0 ? "." : "", step->name);
		else
			appendStringInfo(&path, "[%d]", step->index);
	}
	ereport(ERROR,
			(errcode(ERRCODE_SQL_JSON_MEMBER_NOT_FOUND),
			 errmsg("payload has no field \"%s\"", path.data),
			 errhint("Foreign table option \"strict\" makes missing fields an error.")));
}

/*
 * pubsub_fields_decode
 *		Sets the payload columns of a row.
 */
void
pubsub_fields_decode(PubsubFields *fields, PubsubBytes payload,
					 Datum *values, bool *isnull, const char **column)
{
	int			i;

	*column = NULL;
	for (i = 0; i < fields->nfields; i++)
		fields->fields[i].type = JSON_TOKEN_INVALID;

	if (payload.data)
	{
		int			len;
		const char *text = pubsub_text_from_utf8(payload, &len);
		JsonLexContext *lex;

		lex = makeJsonLexContext_compat(unconstify(char *, text), len, false);
		next_token(lex);
		if (lex->token_type == JSON_TOKEN_END)
			syntax_error(lex, JSON_EXPECTED_MORE);
		if (lex->token_type != JSON_TOKEN_OBJECT_START)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("payload is not a JSON object")));
		walk_value(lex, &fields->root);
		if (lex->token_type != JSON_TOKEN_END)
			syntax_error(lex, JSON_EXPECTED_END);
	}

	for (i = 0; i < fields->nfields; i++)
	{
		Field	   *field = &fields->fields[i];

		*column = field->column->name;
		if (field->type == JSON_TOKEN_INVALID && fields->strict &&
			payload.data)
			missing_field(field->column);

		if (field->type == JSON_TOKEN_INVALID ||
			field->type == JSON_TOKEN_NULL)
		{
			isnull[field->i] = true;
			pubsub_convert_datum(&field->conv, (Datum) 0, true);
		}
		else
			values[field->i] = convert_field(field, &isnull[field->i]);
	}
}
