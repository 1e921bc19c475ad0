/*-------------------------------------------------------------------------
 *
 * kafka_properties.h
 *		Which properties of librdkafka an option "properties.<name>" may set
 *
 * For option.c, which checks them when the option is given.  Nothing of the
 * library shows here.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_properties.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef KAFKA_PROPERTIES_H
#define KAFKA_PROPERTIES_H

/*
 * May this property (without "properties.") be set to this value?  NULL = yes,
 * else a sentence that says why not, for errdetail; it stays valid until the
 * next call.  Never repeats the value.
 *
 * value may be NULL: only the name is looked at.  So a caller that wants one
 * SQLSTATE each asks (name, NULL, true): unknown or never allowed; (name,
 * value, true): bad value; (name, value, false): superusers only.
 */
extern const char *kafka_property_check(const char *name, const char *value,
										bool superuser);

#endif							/* KAFKA_PROPERTIES_H */
