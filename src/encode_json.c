/*-------------------------------------------------------------------------
 *
 * encode_json.c
 *		JSON payloads from rows
 *
 * All payload columns become members of one object, in column order, at the
 * places that their field paths name; values look as to_json() shows them.
 * The common types are done here, since to_json() looks up the type anew for
 * each value.
 *
 * IDENTIFICATION
 *		src/encode_json.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "common/jsonapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/json.h"
#include "utils/lsyscache.h"

#include "codec.h"

typedef enum ValueKind
{
	VALUE_BOOL,
	VALUE_NUMBER,				/* as it is, but "NaN" */
	VALUE_TEXT,					/* a JSON string */
	VALUE_JSON,					/* as it is */
	VALUE_GENERIC				/* to_json() */
} ValueKind;

/* A member of an object: a column's value, or an object again */
typedef struct ObjectNode
{
	char	   *name;
	char	   *label;			/* '"name":' */
	int			i;				/* attnum - 1; -1 = object */
	ValueKind	kind;
	PubsubOutput out;
	FmgrInfo	to_json;
	int			nchildren;
	struct ObjectNode *children;
} ObjectNode;

struct PubsubObject
{
	ObjectNode	root;
};

/*
 * pubsub_object_create
 *		Makes an object without columns.
 */
PubsubObject *
pubsub_object_create(void)
{
	PubsubObject *object = palloc0(sizeof(PubsubObject));

	object->root.i = -1;
	return object;
}

/*
 * init_value
 *		Prepares the output of a column.
 */
static void
init_value(ObjectNode *node, const PubsubColumn *column)
{
	Oid			basetype;

	node->i = column->attnum - 1;
	pubsub_output_init(&node->out, column->typid);

	basetype = node->out.basetype;
	switch (basetype)
	{
		case BOOLOID:
			node->kind = VALUE_BOOL;
			break;
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			node->kind = VALUE_NUMBER;
			break;
		case JSONOID:
		case JSONBOID:
			node->kind = VALUE_JSON;
			break;
		default:
			/* other types may have a cast to json */
			if (basetype < FirstNormalObjectId &&
				!type_is_array(basetype) && !type_is_rowtype(basetype))
				node->kind = VALUE_TEXT;
			else
				node->kind = VALUE_GENERIC;
			break;
	}

	if (node->kind == VALUE_GENERIC)
	{
		fmgr_info(F_TO_JSON, &node->to_json);
		fmgr_info_set_expr((Node *)
						   makeFuncExpr(F_TO_JSON, JSONOID,
										list_make1(makeNullConst(column->typid,
																 column->typmod,
																 InvalidOid)),
										InvalidOid, InvalidOid,
										COERCE_EXPLICIT_CALL),
						   &node->to_json);
	}
}

/*
 * find_child
 *		Returns the member of a name, or NULL.
 */
static ObjectNode *
find_child(ObjectNode *node, const char *name)
{
	int			i;

	for (i = 0; i < node->nchildren; i++)
	{
		if (strcmp(node->children[i].name, name) == 0)
			return &node->children[i];
	}
	return NULL;
}

/*
 * add_child
 *		Adds a member to an object.
 */
static ObjectNode *
add_child(ObjectNode *node, char *name)
{
	Size		size = sizeof(ObjectNode) * (node->nchildren + 1);
	ObjectNode *child;
	StringInfoData label;

	node->children = node->children ?
		repalloc(node->children, size) : palloc(size);
	child = &node->children[node->nchildren++];
	memset(child, 0, sizeof(ObjectNode));
	child->i = -1;
	child->name = name;

	initStringInfo(&label);
	escape_json(&label, name);
	appendStringInfoChar(&label, ':');
	child->label = label.data;
	return child;
}

/*
 * pubsub_object_add
 *		Adds a column to the object.
 */
bool
pubsub_object_add(PubsubObject *object, const PubsubColumn *column)
{
	ObjectNode *node = &object->root;
	ObjectNode *child;
	int			step;

	/* nothing may be added before it is clear that all of it can be */
	for (step = 0; step < column->npath; step++)
	{
		if (column->path[step].name == NULL)
			return false;
	}
	for (step = 0; step < column->npath; step++)
	{
		child = find_child(node, column->path[step].name);
		if (child == NULL)
			break;
		if (child->i >= 0)
			return false;
		node = child;
	}
	if (step == column->npath)
		return false;

	for (; step < column->npath; step++)
		node = add_child(node, column->path[step].name);
	init_value(node, column);
	return true;
}

/*
 * node_isnull
 *		Is everything at and below a node NULL?
 */
static bool
node_isnull(const ObjectNode *node, const bool *isnull)
{
	int			i;

	if (node->i >= 0)
		return isnull[node->i];
	for (i = 0; i < node->nchildren; i++)
	{
		if (!node_isnull(&node->children[i], isnull))
			return false;
	}
	return true;
}

/*
 * pubsub_object_isnull
 *		Has the row no payload?
 */
bool
pubsub_object_isnull(const PubsubObject *object, const bool *isnull)
{
	return node_isnull(&object->root, isnull);
}

/*
 * write_value
 *		Appends a value.
 */
static void
write_value(StringInfo buf, ObjectNode *node, Datum value)
{
	char	   *string;

	switch (node->kind)
	{
		case VALUE_BOOL:
			appendStringInfoString(buf, DatumGetBool(value) ? "true" : "false");
			break;

		case VALUE_NUMBER:
			string = pubsub_output_text(&node->out, value);
			if (IsValidJsonNumber(string, strlen(string)))
				appendStringInfoString(buf, string);
			else
				escape_json(buf, string);
			break;

		case VALUE_TEXT:
			escape_json(buf, pubsub_output_text(&node->out, value));
			break;

		case VALUE_JSON:
			appendStringInfoString(buf, pubsub_output_text(&node->out, value));
			break;

		case VALUE_GENERIC:
			{
				text	   *json = DatumGetTextPP(FunctionCall1(&node->to_json,
																value));

				appendBinaryStringInfo(buf, VARDATA_ANY(json),
									   VARSIZE_ANY_EXHDR(json));
				break;
			}
	}
}

/*
 * write_object
 *		Appends an object.
 */
static void
write_object(StringInfo buf, ObjectNode *node, const Datum *values,
			 const bool *isnull)
{
	int			i;

	check_stack_depth();

	appendStringInfoChar(buf, '{');
	for (i = 0; i < node->nchildren; i++)
	{
		ObjectNode *child = &node->children[i];

		if (i > 0)
			appendStringInfoChar(buf, ',');
		appendStringInfoString(buf, child->label);
		if (child->i < 0)
			write_object(buf, child, values, isnull);
		else if (isnull[child->i])
			appendStringInfoString(buf, "null");
		else
			write_value(buf, child, values[child->i]);
	}
	appendStringInfoChar(buf, '}');
}

/*
 * pubsub_object_encode
 *		Makes the payload of a row.
 */
PubsubBytes
pubsub_object_encode(PubsubObject *object, const Datum *values,
					 const bool *isnull)
{
	StringInfoData buf;

	initStringInfo(&buf);
	write_object(&buf, &object->root, values, isnull);
	return pubsub_text_to_utf8(buf.data, buf.len);
}
