/*-------------------------------------------------------------------------
 *
 * kafka.h
 *		What the files of the Kafka driver share
 *
 * A source, a producer and an administrative call each own one handle of
 * librdkafka, with its threads.  Everything of the library that could block
 * without a bound happens in a thread of its own (kafka_handle_close).
 *
 * Callbacks of the library run inside rd_kafka_poll and its like, in the
 * backend's thread, but for the check of certificates, which runs in a thread
 * of the library.  None of them does more than note something in the
 * KafkaHandle.
 *
 * IDENTIFICATION
 *		src/kafka/kafka.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef KAFKA_H
#define KAFKA_H

#include <librdkafka/rdkafka.h>

#include "driver.h"

/* Debian 12's; nothing older was ever tried. */
StaticAssertDecl(RD_KAFKA_VERSION >= 0x020000ff,
				 "pubsub_fdw needs librdkafka 2.0 or later");

typedef struct KafkaHandle
{
	rd_kafka_t *rk;
	pid_t		pid;			/* a handle does not survive fork */
	void	   *owner;			/* for delivery reports: the KafkaProducer */

	/* what happens in these queues makes wakeup[0] readable */
	int			wakeup[2];
	rd_kafka_queue_t *main_queue;
	rd_kafka_queue_t *queue;	/* consumer or admin; may be NULL */
	rd_kafka_topic_t *topic;	/* consumer or admin; may be NULL */

	/* why there is no progress: the latest error event that says something */
	bool		connected;		/* a broker has answered once */
	int			nhosts;			/* in bootstrap_servers */
	char		hosts[128];		/* the beginning of it, for messages */
	bool		scram;			/* login by SCRAM */
	rd_kafka_resp_err_t cause;
	char		cause_text[400];
	int			nrefused;		/* logins or TLS handshakes refused so far */
	volatile int x509_error;	/* OpenSSL's verdict, set by another thread */

	/* how the blocking calls went so far */
	int			ntimeouts;		/* calls that ended too early for an answer */
	int			nunknown;		/* "no such topic" in a row */
} KafkaHandle;

/* One idempotent producer, shared by the sinks with equal settings. */
typedef struct KafkaSink KafkaSink;
typedef struct KafkaProducer
{
	struct KafkaProducer *next;
	char	   *key;			/* the settings, as text */
	rd_kafka_conf_t *conf;		/* until the handle is opened */
	KafkaHandle *handle;		/* NULL before the first use */
	size_t		max_message_bytes;
	KafkaSink  *sinks;			/* open ones */
	int			last_id;		/* of a sink */
	bool		broken;			/* to be closed with its last sink */
} KafkaProducer;

/* PubsubSession.state */
typedef struct KafkaSession
{
	KafkaProducer *producers;	/* also idle ones: a new one costs 5 ms */
	struct KafkaAdmin *admin;	/* the call under way, if any */
} KafkaSession;

/* in kafka_driver.c */
extern KafkaHandle *kafka_handle_open(rd_kafka_type_t type,
									  rd_kafka_conf_t *conf,
									  const PubsubOptions *options,
									  PubsubError *error);
extern void kafka_handle_add_queue(KafkaHandle *handle);
extern void kafka_handle_serve(KafkaHandle *handle);
extern void kafka_handle_close(KafkaHandle *handle);
extern int	kafka_handle_timeout(const KafkaHandle *handle, int slice_ms);
extern PubsubStatus kafka_topic_metadata(KafkaHandle *handle,
										 rd_kafka_topic_t *topic,
										 int slice_ms,
										 const rd_kafka_metadata_t **metadata,
										 PubsubError *error);

/* in kafka_conf.c; NULL = failed */
extern rd_kafka_conf_t *kafka_conf_consumer(const PubsubOptions *options,
											int64 limit, PubsubError *error);
extern rd_kafka_conf_t *kafka_conf_producer(const PubsubOptions *options,
											PubsubError *error);
extern rd_kafka_conf_t *kafka_conf_admin(const PubsubOptions *options,
										 PubsubError *error);
extern char *kafka_conf_producer_key(const PubsubOptions *options);
extern int64 kafka_conf_get_int(const rd_kafka_conf_t *conf, const char *name);

/* in kafka_source.c, kafka_sink.c, kafka_admin.c */
extern const PubsubSourceRoutine kafka_source_routine;
extern const PubsubSinkRoutine kafka_sink_routine;
extern const PubsubAdminRoutine kafka_admin_routine;
extern void kafka_producer_close(KafkaProducer *producer);

/* in kafka_error.c */
extern PubsubErrorKind kafka_error_kind(rd_kafka_resp_err_t code);
extern bool kafka_error_is_transient(rd_kafka_resp_err_t code);
extern void kafka_error_set(PubsubError *error, rd_kafka_resp_err_t code,
							const char *text);
extern void kafka_error_object(PubsubError *error, const char *topic,
							   int32 partition);
extern PubsubStatus kafka_error_memory(PubsubError *error);
extern void kafka_cause_note(KafkaHandle *handle, rd_kafka_resp_err_t code,
							 const char *text);
extern void kafka_cause_clear(KafkaHandle *handle);
extern PubsubStatus kafka_cause_get(KafkaHandle *handle, PubsubError *error);
extern bool kafka_topic_name_check(const char *topic, PubsubError *error);

#endif							/* KAFKA_H */
