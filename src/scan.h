/*-------------------------------------------------------------------------
 *
 * scan.h
 *		What plan.c hands to scan.c
 *
 * IDENTIFICATION
 *		src/scan.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_SCAN_H
#define PUBSUB_SCAN_H

#include "pubsub_fdw.h"

/* Members of ForeignScan.fdw_private, to be fetched with list_nth() */
enum PubsubScanPrivateIndex
{
	/* List of the attribute numbers that must be decoded (integer list) */
	PubsubScanPrivateNeeded,
	/* No more rows than this are taken; 0 = not known (Integer) */
	PubsubScanPrivateLimit
};

#endif							/* PUBSUB_SCAN_H */
