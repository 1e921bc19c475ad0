/*-------------------------------------------------------------------------
 *
 * kafka_error.c
 *		What went wrong, in the words of librdkafka and in ours
 *
 * No call of the library that waits for a broker ever says why it waits in
 * vain: the reason comes as an error event, once, and the library tries again
 * for ever.  So the latest event that means something is kept with the handle
 * (the cause), and given out as long as there is no progress.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_error.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <openssl/x509_vfy.h>

#include "kafka.h"

static void cause_hint(const KafkaHandle *handle, PubsubError *error);

/*
 * kafka_error_kind
 *		Maps an error code of librdkafka or of the broker
 */
PubsubErrorKind
kafka_error_kind(rd_kafka_resp_err_t code)
{
	switch (code)
	{
		case RD_KAFKA_RESP_ERR__RESOLVE:
		case RD_KAFKA_RESP_ERR__SSL:
			return PUBSUB_ERROR_CONNECT;
		case RD_KAFKA_RESP_ERR__TRANSPORT:
		case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
		case RD_KAFKA_RESP_ERR__TIMED_OUT:
		case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
		case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
		case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
		case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
		case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
		case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
		case RD_KAFKA_RESP_ERR_NOT_CONTROLLER:
			return PUBSUB_ERROR_LOST;
		case RD_KAFKA_RESP_ERR__AUTHENTICATION:
		case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
		case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
		case RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE:
			return PUBSUB_ERROR_AUTH;
		case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
			return PUBSUB_ERROR_PERMISSION;
		case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
		case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
		case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
			return PUBSUB_ERROR_NOT_FOUND;
		case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
			return PUBSUB_ERROR_EXISTS;
		case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
		case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
		case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
		case RD_KAFKA_RESP_ERR_INVALID_REPLICA_ASSIGNMENT:
		case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
		case RD_KAFKA_RESP_ERR_INVALID_REQUEST:
		case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
		case RD_KAFKA_RESP_ERR_INVALID_RECORD:
		case RD_KAFKA_RESP_ERR_INVALID_MSG:
		case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
		case RD_KAFKA_RESP_ERR_TOPIC_DELETION_DISABLED:
		case RD_KAFKA_RESP_ERR__INVALID_ARG:
			return PUBSUB_ERROR_INVALID;
		case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
			return PUBSUB_ERROR_TOO_LARGE;
		case RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
			return PUBSUB_ERROR_THROTTLED;
		case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
		case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
		case RD_KAFKA_RESP_ERR__PARTITION_EOF:
			return PUBSUB_ERROR_DATA_LOSS;
		default:
			return PUBSUB_ERROR_OTHER;
	}
}

/*
 * kafka_error_is_transient
 *		Does the library get over this by itself?
 */
bool
kafka_error_is_transient(rd_kafka_resp_err_t code)
{
	switch (code)
	{
		case RD_KAFKA_RESP_ERR__RESOLVE:
		case RD_KAFKA_RESP_ERR__SSL:
		case RD_KAFKA_RESP_ERR__AUTHENTICATION:
		case RD_KAFKA_RESP_ERR__WAIT_CACHE:
		case RD_KAFKA_RESP_ERR__WAIT_COORD:
		case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
		case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
		case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
		case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
		case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
			return true;
		default:
			return kafka_error_kind(code) == PUBSUB_ERROR_LOST;
	}
}

/*
 * kafka_error_set
 *		Fills in an error by its code; text may be NULL
 */
void
kafka_error_set(PubsubError *error, rd_kafka_resp_err_t code, const char *text)
{
	pubsub_error_set(error, kafka_error_kind(code), "%s",
					 text != NULL && text[0] != '\0' ? text :
					 rd_kafka_err2str(code));
}

/*
 * kafka_error_object
 *		Names the topic at fault, or (partition >= 0) one partition of it
 */
void
kafka_error_object(PubsubError *error, const char *topic, int32 partition)
{
	if (partition >= 0)
		snprintf(error->object, sizeof(error->object),
				 "partition %d of topic \"%s\"", partition, topic);
	else
		snprintf(error->object, sizeof(error->object), "topic \"%s\"", topic);
}

PubsubStatus
kafka_error_memory(PubsubError *error)
{
	pubsub_error_set(error, PUBSUB_ERROR_MEMORY, "out of memory");
	return PUBSUB_FAILED;
}

/*
 * kafka_cause_note
 *		Takes down an error event
 *
 * "All brokers are down" follows every failure and says nothing.  A refused
 * login or handshake is not overwritten by the disconnect that comes with it.
 */
void
kafka_cause_note(KafkaHandle *handle, rd_kafka_resp_err_t code,
				 const char *text)
{
	bool		refused = (code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
						   code == RD_KAFKA_RESP_ERR__SSL);
	char	   *suffix;

	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
		return;
	if (refused)
		handle->nrefused++;
	else if (handle->nrefused > 0)
		return;

	handle->cause = code;
	strlcpy(handle->cause_text, text, sizeof(handle->cause_text));

	/* "after 2ms in state SSL_HANDSHAKE" is not for users */
	suffix = strstr(handle->cause_text, " (after ");
	if (suffix != NULL)
		*suffix = '\0';
}

/*
 * kafka_cause_clear
 *		There is progress: what was noted before is history
 */
void
kafka_cause_clear(KafkaHandle *handle)
{
	handle->connected = true;
	handle->cause = RD_KAFKA_RESP_ERR_NO_ERROR;
	handle->nrefused = 0;
	handle->x509_error = X509_V_OK;
}

/*
 * kafka_cause_get
 *		Fills in the soft cause and returns AGAIN, or FAILED if waiting cannot
 *		help
 *
 * It cannot when every host has refused us twice: a single refusal may also
 * mean that a broker went away in the middle of the login.  (The library
 * reports just the first two of a row of equal errors of a host.)
 */
PubsubStatus
kafka_cause_get(KafkaHandle *handle, PubsubError *error)
{
	if (handle->cause == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		pubsub_error_set(error, handle->connected ? PUBSUB_ERROR_LOST :
						 PUBSUB_ERROR_CONNECT, "no answer from %s",
						 handle->hosts);
		return PUBSUB_AGAIN;
	}

	if (handle->x509_error != X509_V_OK)
		pubsub_error_set(error, PUBSUB_ERROR_CONNECT, "%s (%s)",
						 handle->cause_text,
						 X509_verify_cert_error_string(handle->x509_error));
	else
		kafka_error_set(error, handle->cause, handle->cause_text);
	if (error->kind == PUBSUB_ERROR_LOST && !handle->connected)
		error->kind = PUBSUB_ERROR_CONNECT;
	cause_hint(handle, error);

	if (!handle->connected && handle->nrefused >= 2 * handle->nhosts)
		return PUBSUB_FAILED;
	return PUBSUB_AGAIN;
}

/*
 * cause_hint
 *		What can be done about the cause
 */
static void
cause_hint(const KafkaHandle *handle, PubsubError *error)
{
	const char *hint = "";

	if (error->kind == PUBSUB_ERROR_AUTH && handle->scram &&
		rd_kafka_version() < 0x020601ff)
	{
		/* it sends a nonce that is wrong, but that Kafka 3 accepts */
		snprintf(error->hint, sizeof(error->hint),
				 "librdkafka %s cannot log in with SCRAM to Kafka 4, versions before 2.6.1 cannot. "
				 "Use \"sasl_mechanism\" PLAIN over TLS, or a newer librdkafka.",
				 rd_kafka_version_str());
		return;
	}

	if (error->kind == PUBSUB_ERROR_AUTH)
		hint = "Check \"sasl_mechanism\" and \"security_protocol\" of the server, and \"sasl_username\" and \"sasl_password\" of the user mapping.";
	else if (handle->x509_error != X509_V_OK)
		hint = "Check \"ssl_ca_pem\" and \"bootstrap_servers\" of the server against the certificate of the broker.";
	else if (handle->cause == RD_KAFKA_RESP_ERR__SSL ||
			 (!handle->connected &&
			  (strstr(error->detail, "Disconnected") != NULL ||
			   strstr(error->detail, "SSL transport error") != NULL)))
		hint = "Check that \"security_protocol\" of the server is the one of the broker's port.";
	strlcpy(error->hint, hint, sizeof(error->hint));
}

/*
 * kafka_topic_name_check
 *		Is this a name that Kafka allows?  The library does not check it.
 */
bool
kafka_topic_name_check(const char *topic, PubsubError *error)
{
	size_t		len = strspn(topic, "abcdefghijklmnopqrstuvwxyz"
							 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	if (len > 0 && len <= 249 && topic[len] == '\0' &&
		strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0)
		return true;
	pubsub_error_set(error, PUBSUB_ERROR_INVALID,
					 "A topic name has 1 to 249 letters, digits, dots, dashes or underscores.");
	kafka_error_object(error, topic, -1);
	return false;
}
