/*-------------------------------------------------------------------------
 *
 * read_func.h
 *		What pubsub_ingest() shares with pubsub_read() and pubsub_consume()
 *
 * IDENTIFICATION
 *		src/read_func.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_READ_FUNC_H
#define PUBSUB_READ_FUNC_H

#include "nodes/parsenodes.h"

#include "pubsub_fdw.h"

extern void pubsub_check_table_privilege(Oid relid, AclMode required);
extern void pubsub_check_consume_arguments(const PubsubTable *table,
										   bool has_group_id,
										   bool has_partitions);
extern int64 pubsub_check_max_records(int64 value);
extern char *pubsub_check_group_id(const text *value);
extern int	pubsub_interval_ms(const char *argument,
							   const Interval *interval);
extern void pubsub_report_stop(const PubsubReader *reader);

#endif							/* PUBSUB_READ_FUNC_H */
