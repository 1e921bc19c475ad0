/*-------------------------------------------------------------------------
 *
 * options.h
 *		The options of a server, a user mapping and a foreign table, resolved
 *
 * option.c fills this struct from the catalogs by its option table; precedence
 * is table over server over wrapper.  Ring 2: drivers read it, and plain C
 * types are all it has.  Strings are NUL-terminated, in the server encoding;
 * NULL = not given.
 *
 * IDENTIFICATION
 *		src/options.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PUBSUB_OPTIONS_H
#define PUBSUB_OPTIONS_H

typedef enum PubsubSecurityProtocol
{
	PUBSUB_SECURITY_PLAINTEXT,
	PUBSUB_SECURITY_SSL,
	PUBSUB_SECURITY_SASL_PLAINTEXT,
	PUBSUB_SECURITY_SASL_SSL
} PubsubSecurityProtocol;

typedef enum PubsubSaslMechanism
{
	PUBSUB_SASL_NONE,
	PUBSUB_SASL_PLAIN,
	PUBSUB_SASL_SCRAM_SHA_256,
	PUBSUB_SASL_SCRAM_SHA_512
} PubsubSaslMechanism;

typedef enum PubsubAuth
{
	PUBSUB_AUTH_DEFAULT,		/* by what the user mapping holds */
	PUBSUB_AUTH_SERVICE_ACCOUNT,
	PUBSUB_AUTH_TOKEN,
	PUBSUB_AUTH_NONE
} PubsubAuth;

typedef enum PubsubFormat
{
	PUBSUB_FORMAT_RAW,
	PUBSUB_FORMAT_JSON
} PubsubFormat;

typedef enum PubsubIsolation
{
	PUBSUB_READ_COMMITTED,
	PUBSUB_READ_UNCOMMITTED
} PubsubIsolation;

typedef enum PubsubDataLoss
{
	PUBSUB_DATA_LOSS_ERROR,
	PUBSUB_DATA_LOSS_SKIP
} PubsubDataLoss;

typedef enum PubsubTimestampMiss
{
	PUBSUB_TIMESTAMP_MISS_ERROR,
	PUBSUB_TIMESTAMP_MISS_LATEST
} PubsubTimestampMiss;

typedef enum PubsubAcks
{
	PUBSUB_ACKS_ALL
} PubsubAcks;

typedef enum PubsubCompression
{
	PUBSUB_COMPRESSION_NONE,
	PUBSUB_COMPRESSION_GZIP,
	PUBSUB_COMPRESSION_SNAPPY,
	PUBSUB_COMPRESSION_LZ4,
	PUBSUB_COMPRESSION_ZSTD
} PubsubCompression;

typedef enum PubsubTransport
{
	PUBSUB_TRANSPORT_GRPC
} PubsubTransport;

/* One "properties.<name>" option: already on the allow-list and in range. */
typedef struct PubsubProperty
{
	char	   *name;			/* without "properties." */
	char	   *value;
} PubsubProperty;

typedef struct PubsubOptions
{
	/* wrapper or server */
	char	   *broker;			/* name of the driver */

	/* server */
	char	   *bootstrap_servers;
	int			security_protocol;	/* PubsubSecurityProtocol */
	int			sasl_mechanism; /* PubsubSaslMechanism */
	char	   *ssl_ca_pem;
	char	   *ssl_ca_location;
	char	   *client_id;
	char	   *project;
	char	   *endpoint;
	int			transport;		/* PubsubTransport */
	int			connect_timeout;	/* ms; the GUC's value if not given */
	int			request_timeout;	/* ms; the GUC's value if not given */

	/* server or table */
	int			fetch_size;		/* messages; 0 = the broker's default */
	int			batch_size;		/* messages; 0 = the broker's default */
	int			batch_bytes;	/* 0 = the broker's default */
	bool		updatable;
	PubsubProperty *properties; /* sorted by name; the table's override */
	int			nproperties;

	/* user mapping */
	char	   *sasl_username;
	char	   *sasl_password;
	char	   *ssl_certificate_pem;
	char	   *ssl_key_pem;
	char	   *ssl_key_password;
	int			auth;			/* PubsubAuth */
	char	   *credentials_json;
	char	   *credentials_file;
	char	   *access_token;
	bool		credentials_required;

	/* table */
	int			format;			/* PubsubFormat */
	bool		strict;
	char	   *topic;			/* Pub/Sub: always the full path */
	char	   *subscription;	/* always the full path */
	char	   *timestamp_attribute;
	int64		max_records;	/* 0 = no limit given */
	int			max_read_time;	/* ms; 0 = no limit given */
	int			poll_timeout;	/* ms */
	char	   *partitions;		/* "0,3-5" */
	char	   *start_offsets;
	char	   *stop_offsets;
	char	   *start_read_time;
	char	   *stop_read_time;
	int			timestamp_miss; /* PubsubTimestampMiss */
	int			on_data_loss;	/* PubsubDataLoss */
	int			isolation_level;	/* PubsubIsolation */
	char	   *group_id;
	int			acks;			/* PubsubAcks */
	int			compression;	/* PubsubCompression */
	bool		tombstones;
	int			ack_deadline;	/* ms, whole seconds */
	int			max_lease;		/* ms */
} PubsubOptions;

#endif							/* PUBSUB_OPTIONS_H */
