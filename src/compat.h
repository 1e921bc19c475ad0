/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Every test of the PostgreSQL version in the project
 *
 * IDENTIFICATION
 *		src/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_COMPAT_H
#define PUBSUB_COMPAT_H

#if PG_VERSION_NUM < 150000
#error pubsub_fdw needs PostgreSQL 15 or later
#endif

#endif							/* PUBSUB_COMPAT_H */
