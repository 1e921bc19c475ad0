/*-------------------------------------------------------------------------
 *
 * ingest_target.c
 *		The target of pubsub_ingest(), and the INSERT that fills it
 *
 * Columns of source and target are matched by name when the CALL starts.  The
 * statement is written for each batch anew, with the names of that moment.
 *
 * IDENTIFICATION
 *		src/ingest_target.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "ingest.h"

static void match_columns(PubsubIngestTarget *target, Relation rel,
						  TupleDesc source_desc, bool *needed);
static TupleDesc batch_desc(TupleDesc source_desc, bool numbered);
static char *source_column(const PubsubIngestTarget *target, int i);
static const char *target_column(const PubsubIngestTarget *target,
								 Relation rel, int i);
static Bitmapset *primary_key(const PubsubIngestTarget *target, Relation rel);
static bool is_key(const PubsubIngestTarget *target, const Bitmapset *key,
				   int i);
static void append_key_values(const PubsubIngestTarget *target, Relation rel,
							  const Bitmapset *key, StringInfo sql);
static void append_conflict_update(const PubsubIngestTarget *target,
								   Relation rel, const Bitmapset *key,
								   StringInfo sql);

/*
 * pubsub_ingest_target_create
 *	  Looks at the target, and says which columns of the source it needs.
 */
PubsubIngestTarget *
pubsub_ingest_target_create(Oid relid, const PubsubTable *source,
							TupleDesc source_desc, PubsubConflict conflict,
							bool *needed)
{
	PubsubIngestTarget *target = palloc0(sizeof(PubsubIngestTarget));
	Relation	rel;

	target->relid = relid;
	target->source_name = source->name;
	target->conflict = conflict;
	rel = pubsub_ingest_target_open(target);
	match_columns(target, rel, source_desc, needed);
	target->desc = batch_desc(source_desc,
							  conflict == PUBSUB_CONFLICT_UPDATE);
	table_close(rel, NoLock);
	return target;
}

/*
 * pubsub_ingest_target_open
 *	  Opens the target with the lock that INSERT takes.
 *
 * Whoever may not insert anything must not get that lock, which may be held
 * for as long as messages are waited for.  The INSERT checks the columns.
 */
Relation
pubsub_ingest_target_open(const PubsubIngestTarget *target)
{
	Relation	rel;
	Oid			userid = GetUserId();

	if (pg_class_aclcheck(target->relid, userid, ACL_INSERT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(target->relid, userid, ACL_INSERT,
								  ACLMASK_ANY) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_relkind_objtype(get_rel_relkind(target->relid)),
					   get_rel_name(target->relid));

	rel = try_table_open(target->relid, RowExclusiveLock);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", target->relid)));
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_VIEW:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot ingest into relation \"%s\"",
							RelationGetRelationName(rel)),
					 errdetail_relkind_not_supported(rel->rd_rel->relkind)));
	}
	return rel;
}

/*
 * match_columns
 *	  Pairs the columns of source and target by their names.
 *
 * Columns that only the target can compute are left out.
 */
static void
match_columns(PubsubIngestTarget *target, Relation rel, TupleDesc source_desc,
			  bool *needed)
{
	TupleDesc	target_desc = RelationGetDescr(rel);

	memset(needed, false, source_desc->natts * sizeof(bool));
	target->source_attnums = palloc(target_desc->natts * sizeof(AttrNumber));
	target->target_attnums = palloc(target_desc->natts * sizeof(AttrNumber));
	for (int i = 0; i < target_desc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(target_desc, i);

		if (attr->attisdropped || attr->attgenerated != '\0' ||
			attr->attidentity == ATTRIBUTE_IDENTITY_ALWAYS)
			continue;
		for (int j = 0; j < source_desc->natts; j++)
		{
			Form_pg_attribute source_attr = TupleDescAttr(source_desc, j);

			if (source_attr->attisdropped ||
				strcmp(NameStr(attr->attname),
					   NameStr(source_attr->attname)) != 0)
				continue;
			target->source_attnums[target->ncolumns] = j + 1;
			target->target_attnums[target->ncolumns] = i + 1;
			target->ncolumns++;
			needed[j] = true;
			break;
		}
	}
	if (target->ncolumns == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" and foreign table \"%s\" have no column in common",
						RelationGetRelationName(rel), target->source_name),
				 errdetail("Columns are matched by name, except for generated columns and those that are GENERATED ALWAYS AS IDENTITY.")));
}

/*
 * batch_desc
 *	  Makes the row type of a batch.
 */
static TupleDesc
batch_desc(TupleDesc source_desc, bool numbered)
{
	int			natts = source_desc->natts;
	TupleDesc	desc = CreateTemplateTupleDesc(natts + (numbered ? 1 : 0));
	char	   *name = "number";

	for (int i = 1; i <= natts; i++)
		TupleDescCopyEntry(desc, i, source_desc, i);
	if (!numbered)
		return desc;

	for (int i = 0; i < natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
		{
			/* not that one then; look through all of them again */
			name = psprintf("%s_", name);
			i = -1;
		}
	}
	TupleDescInitEntry(desc, natts + 1, name, INT8OID, -1, 0);
	return desc;
}

/*
 * pubsub_ingest_target_statement
 *	  Writes the INSERT of a batch.
 *
 * The names are those of the moment; the columns stay those that were matched.
 */
char *
pubsub_ingest_target_statement(const PubsubIngestTarget *target, Relation rel)
{
	Bitmapset  *key = NULL;
	StringInfoData sql;
	StringInfoData columns;

	initStringInfo(&sql);
	initStringInfo(&columns);
	appendStringInfo(&sql, "INSERT INTO %s (",
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												RelationGetRelationName(rel)));
	for (int i = 0; i < target->ncolumns; i++)
	{
		const char *separator = i > 0 ? ", " : "";

		appendStringInfo(&sql, "%s%s", separator,
						 target_column(target, rel, i));
		appendStringInfo(&columns, "%s%s", separator,
						 source_column(target, i));
	}
	appendStringInfo(&sql, ") SELECT %s FROM ", columns.data);

	if (target->conflict != PUBSUB_CONFLICT_UPDATE)
	{
		appendStringInfoString(&sql, PUBSUB_INGEST_BATCH " b");
		if (target->conflict == PUBSUB_CONFLICT_NOTHING)
			appendStringInfoString(&sql, " ON CONFLICT DO NOTHING");
		return sql.data;
	}

	/* of rows with the same key the last one counts */
	key = primary_key(target, rel);
	appendStringInfoString(&sql, "(SELECT DISTINCT ON (");
	append_key_values(target, rel, key, &sql);
	appendStringInfoString(&sql, ") * FROM " PUBSUB_INGEST_BATCH " b ORDER BY ");
	append_key_values(target, rel, key, &sql);
	appendStringInfo(&sql, ", b.%s DESC) b",
					 quote_identifier(NameStr(TupleDescAttr(target->desc,
															target->desc->natts - 1)->attname)));
	append_conflict_update(target, rel, key, &sql);
	return sql.data;
}

/*
 * source_column, target_column
 *	  Names the columns of a pair.
 */
static char *
source_column(const PubsubIngestTarget *target, int i)
{
	Form_pg_attribute attr = TupleDescAttr(target->desc,
										   target->source_attnums[i] - 1);

	return psprintf("b.%s", quote_identifier(NameStr(attr->attname)));
}

static const char *
target_column(const PubsubIngestTarget *target, Relation rel, int i)
{
	Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel),
										   target->target_attnums[i] - 1);

	if (attr->attisdropped)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("a column of table \"%s\" was dropped during pubsub_ingest()",
						RelationGetRelationName(rel))));
	return quote_identifier(NameStr(attr->attname));
}

/*
 * primary_key
 *	  Finds the columns of the target's primary key; all must have a match.
 */
static Bitmapset *
primary_key(const PubsubIngestTarget *target, Relation rel)
{
	Bitmapset  *key = RelationGetIndexAttrBitmap(rel,
												 INDEX_ATTR_BITMAP_PRIMARY_KEY);
	Bitmapset  *unmatched = bms_copy(key);

	if (bms_is_empty(key))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("table \"%s\" has no primary key",
						RelationGetRelationName(rel)),
				 errdetail("\"on_conflict\" is 'update'.")));
	for (int i = 0; i < target->ncolumns; i++)
		unmatched = bms_del_member(unmatched,
								   target->target_attnums[i] - FirstLowInvalidHeapAttributeNumber);
	if (!bms_is_empty(unmatched))
	{
		AttrNumber	attnum = bms_next_member(unmatched, -1) +
			FirstLowInvalidHeapAttributeNumber;

		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("column \"%s\" of the primary key of table \"%s\" has no match in foreign table \"%s\"",
						get_attname(RelationGetRelid(rel), attnum, false),
						RelationGetRelationName(rel), target->source_name),
				 errdetail("\"on_conflict\" is 'update'.")));
	}
	return key;
}

static bool
is_key(const PubsubIngestTarget *target, const Bitmapset *key, int i)
{
	return bms_is_member(target->target_attnums[i] - FirstLowInvalidHeapAttributeNumber,
						 key);
}

/*
 * append_key_values
 *	  Appends the key of a row of the batch, as the target will compare it.
 *
 * Text is not cut: a value that is too long must stay an error.
 */
static void
append_key_values(const PubsubIngestTarget *target, Relation rel,
				  const Bitmapset *key, StringInfo sql)
{
	const char *separator = "";

	for (int i = 0; i < target->ncolumns; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel),
											   target->target_attnums[i] - 1);
		int32		typmod = attr->atttypmod;
		char		category;
		bool		preferred;

		if (!is_key(target, key, i))
			continue;
		get_type_category_preferred(attr->atttypid, &category, &preferred);
		if (category == TYPCATEGORY_STRING || category == TYPCATEGORY_BITSTRING)
			typmod = -1;
		appendStringInfo(sql, "%sCAST(%s AS %s)", separator,
						 source_column(target, i),
						 format_type_extended(attr->atttypid, typmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
											  FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(attr->attcollation))
			appendStringInfo(sql, " COLLATE %s",
							 generate_collation_name(attr->attcollation));
		separator = ", ";
	}
}

static void
append_conflict_update(const PubsubIngestTarget *target, Relation rel,
					   const Bitmapset *key, StringInfo sql)
{
	const char *separator = " ON CONFLICT (";

	for (int i = 0; i < target->ncolumns; i++)
	{
		if (!is_key(target, key, i))
			continue;
		appendStringInfo(sql, "%s%s", separator,
						 target_column(target, rel, i));
		separator = ", ";
	}

	separator = ") DO UPDATE SET ";
	for (int i = 0; i < target->ncolumns; i++)
	{
		const char *name = target_column(target, rel, i);

		if (is_key(target, key, i))
			continue;
		appendStringInfo(sql, "%s%s = excluded.%s", separator, name, name);
		separator = ", ";
	}
	if (separator[0] == ')')
		appendStringInfoString(sql, ") DO NOTHING");
}
