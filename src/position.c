/*-------------------------------------------------------------------------
 *
 * position.c
 *		pubsub_offsets: how far each group has consumed each partition
 *
 * A position is a row, written by the (sub)transaction that handed the records
 * out.  So ROLLBACK, savepoints, crashes and standbys need no code here.
 *
 * Who reads from a position must first take its partition, by a try lock on a
 * heavyweight lock of our own class.  The row itself would not do: one that
 * does not exist yet locks nothing, and the second session to insert it would
 * wait for the first one's transaction.  Nobody ever waits for the lock, so it
 * cannot deadlock.
 *
 * Users cannot write the table.  The statements here run as its owner, with
 * the user's search_path: every name and operator in them must be qualified.
 *
 * IDENTIFICATION
 *		src/position.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "pubsub_fdw.h"

/*
 * locktag_field4 of our advisory locks.  The server uses 1 and 2 for the
 * advisory lock functions; other extensions are known to use small numbers.
 */
#define PUBSUB_ADVISORY_CLASS 0x5053

/* Who we were before we became the owner of the table */
typedef struct OwnerSwitch
{
	Oid			save_userid;
	int			save_sec_context;
	char	   *table;			/* qualified name */
} OwnerSwitch;

static void become_owner(OwnerSwitch *owner);
static void become_self(const OwnerSwitch *owner);
static Oid	extension_namespace(void);

/*
 * pubsub_positions_read
 *	  Fills in the positions of some partitions as of now.
 *
 * "Now" is a new snapshot, unless the isolation level forbids: then a position
 * that has moved is found when it is written, as a serialization failure.
 */
void
pubsub_positions_read(const char *server, const char *topic,
					  const char *group_id, int npositions,
					  PubsubPosition *positions)
{
	OwnerSwitch owner;
	Oid			argtypes[3] = {TEXTOID, TEXTOID, TEXTOID};
	Datum		args[3];
	char	   *query;

	for (int i = 0; i < npositions; i++)
	{
		positions[i].exists = false;
		positions[i].changed = false;
		positions[i].next_offset = 0;
		positions[i].updated_at = DT_NOBEGIN;
	}

	SPI_connect();
	become_owner(&owner);
	query = psprintf("SELECT \"partition\", next_offset, updated_at FROM %s "
					 "WHERE server_name OPERATOR(pg_catalog.=) $1::pg_catalog.name "
					 "AND topic OPERATOR(pg_catalog.=) $2 "
					 "AND group_id OPERATOR(pg_catalog.=) $3",
					 owner.table);
	args[0] = CStringGetTextDatum(server);
	args[1] = CStringGetTextDatum(topic);
	args[2] = CStringGetTextDatum(group_id);

	/* not read-only: that would use the snapshot of the calling query */
	if (SPI_execute_with_args(query, 3, argtypes, args, NULL, false,
							  0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the positions of topic \"%s\"", topic);

	for (uint64 row = 0; row < SPI_processed; row++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[row];
		TupleDesc	tupdesc = SPI_tuptable->tupdesc;
		bool		isnull;
		int32		partition;

		partition = DatumGetInt32(SPI_getbinval(tuple, tupdesc, 1, &isnull));
		for (int i = 0; i < npositions; i++)
		{
			if (positions[i].partition != partition)
				continue;
			positions[i].exists = true;
			positions[i].next_offset =
				DatumGetInt64(SPI_getbinval(tuple, tupdesc, 2, &isnull));
			positions[i].updated_at =
				DatumGetTimestampTz(SPI_getbinval(tuple, tupdesc, 3, &isnull));
			break;
		}
	}
	become_self(&owner);
	SPI_finish();
}

/*
 * pubsub_position_try_lock
 *	  Takes a partition for a group until the (sub)transaction ends.
 */
bool
pubsub_position_try_lock(const char *server, const char *topic,
						 const char *group_id, int32 partition)
{
	LOCKTAG		tag;
	uint64		hash;

	/* a collision makes two partitions exclude each other, nothing worse */
	hash = hash_bytes_extended((const unsigned char *) server,
							   strlen(server), 0);
	hash = hash_bytes_extended((const unsigned char *) topic,
							   strlen(topic), hash);
	hash = hash_bytes_extended((const unsigned char *) group_id,
							   strlen(group_id), hash);
	hash = hash_bytes_extended((const unsigned char *) &partition,
							   sizeof(partition), hash);

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (hash >> 32),
						 (uint32) hash, PUBSUB_ADVISORY_CLASS);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * pubsub_positions_store
 *	  Writes the changed positions.  Their partitions are locked by us.
 */
void
pubsub_positions_store(const char *server, const char *topic,
					   const char *group_id, int npositions,
					   const PubsubPosition *positions)
{
	OwnerSwitch owner;
	Oid			argtypes[5] = {TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID, INT8ARRAYOID};
	Datum		args[5];
	Datum	   *partitions;
	Datum	   *offsets;
	int			nchanged = 0;
	char	   *query;

	SPI_connect();
	partitions = palloc(npositions * sizeof(Datum));
	offsets = palloc(npositions * sizeof(Datum));
	for (int i = 0; i < npositions; i++)
	{
		if (!positions[i].changed)
			continue;
		partitions[nchanged] = Int32GetDatum(positions[i].partition);
		offsets[nchanged] = Int64GetDatum(positions[i].next_offset);
		nchanged++;
	}
	if (nchanged == 0)
	{
		SPI_finish();
		return;
	}

	become_owner(&owner);
	query = psprintf("INSERT INTO %s (server_name, topic, \"partition\", group_id, next_offset, updated_at) "
					 "SELECT $1, $2, p, $3, o, pg_catalog.clock_timestamp() "
					 "FROM ROWS FROM (pg_catalog.unnest($4), pg_catalog.unnest($5)) AS u (p, o) "
					 "ON CONFLICT (server_name, topic, \"partition\", group_id) "
					 "DO UPDATE SET next_offset = excluded.next_offset, updated_at = excluded.updated_at",
					 owner.table);
	args[0] = CStringGetTextDatum(server);
	args[1] = CStringGetTextDatum(topic);
	args[2] = CStringGetTextDatum(group_id);
	args[3] = PointerGetDatum(construct_array(partitions, nchanged, INT4OID,
											  sizeof(int32), true,
											  TYPALIGN_INT));
	args[4] = PointerGetDatum(construct_array(offsets, nchanged, INT8OID,
											  sizeof(int64), FLOAT8PASSBYVAL,
											  TYPALIGN_DOUBLE));
	if (SPI_execute_with_args(query, 5, argtypes, args, NULL, false,
							  0) != SPI_OK_INSERT)
		elog(ERROR, "could not store the positions of topic \"%s\"", topic);
	if (SPI_processed != (uint64) nchanged)
		elog(ERROR, "stored " UINT64_FORMAT " of %d positions of topic \"%s\"",
			 SPI_processed, nchanged, topic);
	become_self(&owner);
	SPI_finish();
}

/*
 * become_owner
 *	  Switches to the owner of pubsub_offsets, and names the table.
 *
 * An error puts the user back: the (sub)transaction remembers it.
 */
static void
become_owner(OwnerSwitch *owner)
{
	Oid			nspid = extension_namespace();
	Oid			relid = get_relname_relid("pubsub_offsets", nspid);
	HeapTuple	tuple;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"pubsub_offsets\" does not exist"),
				 errhint("Create the extension \"pubsub_fdw\" again.")));

	GetUserIdAndSecContext(&owner->save_userid, &owner->save_sec_context);
	SetUserIdAndSecContext(((Form_pg_class) GETSTRUCT(tuple))->relowner,
						   owner->save_sec_context |
						   SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	ReleaseSysCache(tuple);
	owner->table = quote_qualified_identifier(get_namespace_name(nspid),
											  "pubsub_offsets");
}

static void
become_self(const OwnerSwitch *owner)
{
	SetUserIdAndSecContext(owner->save_userid, owner->save_sec_context);
}

/*
 * extension_namespace
 *	  Finds the schema that the extension was created in.
 */
static Oid
extension_namespace(void)
{
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			result = InvalidOid;

	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("pubsub_fdw"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		result = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}
