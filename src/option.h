/*-------------------------------------------------------------------------
 *
 * option.h
 *		The option table, as the files about options share it
 *
 * option.c holds the table, option_check.c knows the syntax of the texts,
 * option_value.c turns them into values; option_validate.c is the validator
 * of what DDL says, option_resolve.c merges what the catalogs say, for use.
 *
 * IDENTIFICATION
 *		src/option.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_OPTION_H
#define PUBSUB_OPTION_H

#include "nodes/pg_list.h"
#include "utils/guc.h"

#include "options.h"

/* Where an option may stand: one bit per kind of object */
#define PUBSUB_ON_WRAPPER	0x01
#define PUBSUB_ON_SERVER	0x02
#define PUBSUB_ON_MAPPING	0x04
#define PUBSUB_ON_TABLE		0x08
#define PUBSUB_ON_COLUMN	0x10

/* The brokers that an option is for */
#define PUBSUB_FOR_KAFKA	0x01
#define PUBSUB_FOR_PUBSUB	0x02
#define PUBSUB_FOR_BOTH		(PUBSUB_FOR_KAFKA | PUBSUB_FOR_PUBSUB)

typedef enum PubsubOptionType
{
	PUBSUB_TYPE_STRING,
	PUBSUB_TYPE_ENUM,			/* to an int */
	PUBSUB_TYPE_BOOL,
	PUBSUB_TYPE_INT,
	PUBSUB_TYPE_INT64,
	PUBSUB_TYPE_TIME,			/* with a unit; to an int, in ms */
	PUBSUB_TYPE_BYTES,			/* with a unit; to an int */
	PUBSUB_TYPE_PROPERTY		/* to the list of properties */
} PubsubOptionType;

/* PubsubOptionDef.flags */
#define PUBSUB_SECRET			0x01	/* never shown to anyone */
#define PUBSUB_READS_FILE		0x02	/* needs pg_read_server_files */
#define PUBSUB_SUPERUSER_FALSE	0x04	/* false only by a superuser */
#define PUBSUB_REQUIRED			0x08	/* the broker needs it */

typedef struct PubsubOptionDef
{
	const char *name;
	int			contexts;		/* PUBSUB_ON_* */
	int			brokers;		/* PUBSUB_FOR_* */
	PubsubOptionType type;
	int			offset;			/* in PubsubOptions; -1 = not kept there */
	const char *doc;			/* one sentence */
	int			flags;
	int64		min;			/* strings: none */
	int64		max;			/* strings: bytes, 0 = any */
	int64		pubsub_max;		/* Pub/Sub allows less than that; 0 = it does
								 * not */
	const char *defval;			/* NULL = zero */
	const char *defdoc;			/* the default in words, if defval cannot say
								 * it */
	const struct config_enum_entry *values;

	/*
	 * For DDL: check returns NULL if the text is well-formed, else a sentence
	 * that says what it should be; verify raises an error itself.
	 */
	const char *(*check) (const char *value);
	void		(*verify) (const char *name, const char *value);
} PubsubOptionDef;

#define PUBSUB_PROPERTY_PREFIX "properties."

/* in option.c */
extern const PubsubOptionDef pubsub_option_defs[];	/* ends with a NULL name */
extern const PubsubOptionDef *pubsub_option_lookup(const char *name,
												   const char *broker);
extern const PubsubOptionDef *pubsub_option_find(const char *name,
												 int context, int brokers,
												 const char *broker);
extern int	pubsub_option_brokers(const char *broker);
extern const char *pubsub_broker_name(int brokers);
extern const char *pubsub_context_name(int context, bool article);

/* in option_value.c */
extern PubsubOptions *pubsub_options_create(void);
extern void pubsub_option_set(PubsubOptions *options,
							  const PubsubOptionDef *def, const char *name,
							  const char *value);
extern void pubsub_option_check_max(const PubsubOptionDef *def,
									const char *value,
									const PubsubOptions *options);
extern char *pubsub_option_values(const PubsubOptionDef *def);
extern void pubsub_option_invalid(const PubsubOptionDef *def,
								  const char *name, const char *value,
								  const char *hint) pg_attribute_noreturn();

/* in option_check.c: NULL, or a sentence on what the text should be */
extern const char *pubsub_check_broker(const char *value);
extern const char *pubsub_check_bootstrap_servers(const char *value);
extern const char *pubsub_check_project(const char *value);
extern const char *pubsub_check_endpoint(const char *value);
extern const char *pubsub_check_pem(const char *value);
extern const char *pubsub_check_credentials(const char *value);
extern const char *pubsub_check_file(const char *value);
extern const char *pubsub_check_seconds(const char *value);
extern const char *pubsub_check_topic(const char *value);
extern const char *pubsub_check_subscription(const char *value);
extern const char *pubsub_check_kafka_topic(const char *value);
extern bool pubsub_parse_path(const char *name, const char *kind,
							  const char **project, int *project_len,
							  const char **id, bool *legacy);
extern const char *pubsub_path_rule(const char *kind);

#endif							/* PUBSUB_OPTION_H */
