/*-------------------------------------------------------------------------
 *
 * kafka_admin.c
 *		Creating and dropping topics
 *
 * A call has a handle of its own for its short life.  It is not over when the
 * controller has answered, but when the broker we talk to shows the result, so
 * that the statement that follows finds it too.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_admin.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "kafka.h"

/* How often to look for the result, some 50 ms apart, before leaving it be */
#define MAX_LOOKS	40

typedef enum AdminStep
{
	ADMIN_CONNECT,
	ADMIN_SEND,
	ADMIN_WAIT,
	ADMIN_LOOK
} AdminStep;

typedef struct KafkaAdmin
{
	bool		create;			/* else drop */
	char	   *topic;
	rd_kafka_NewTopic_t *new_topic; /* create only */
	KafkaHandle *handle;
	AdminStep	step;
	int			nlooks;
} KafkaAdmin;

static bool prepare(KafkaAdmin *admin, PubsubSession *session,
					const PubsubAdminRequest *request, PubsubError *error);
static PubsubStatus await_connection(KafkaAdmin *admin, int slice_ms,
									 PubsubError *error);
static void send_request(KafkaAdmin *admin, const PubsubOptions *options);
static PubsubStatus take_result(KafkaAdmin *admin, int slice_ms,
								PubsubError *error);
static PubsubStatus look_at_topic(KafkaAdmin *admin, int slice_ms);

/*
 * admin_end
 *		Frees the call, done or not
 */
static void
admin_end(PubsubSession *session)
{
	KafkaSession *state = session->state;
	KafkaAdmin *admin;

	if (state == NULL || state->admin == NULL)
		return;
	admin = state->admin;
	state->admin = NULL;
	if (admin->new_topic != NULL)
		rd_kafka_NewTopic_destroy(admin->new_topic);
	if (admin->handle != NULL)
		kafka_handle_close(admin->handle);
	free(admin->topic);
	free(admin);
}

/*
 * admin_begin
 *		Takes a request down
 */
static PubsubStatus
admin_begin(PubsubSession *session, const PubsubAdminRequest *request,
			PubsubError *error)
{
	KafkaSession *state = session->state;

	if (request->op != PUBSUB_ADMIN_CREATE_TOPIC &&
		request->op != PUBSUB_ADMIN_DROP_TOPIC)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "Kafka has no subscriptions.");
		return PUBSUB_FAILED;
	}
	if (!kafka_topic_name_check(request->topic, error))
		return PUBSUB_FAILED;

	state->admin = calloc(1, sizeof(KafkaAdmin));
	if (state->admin == NULL)
		return kafka_error_memory(error);
	if (!prepare(state->admin, session, request, error))
	{
		admin_end(session);
		return PUBSUB_FAILED;
	}
	return PUBSUB_OK;
}

static bool
prepare(KafkaAdmin *admin, PubsubSession *session,
		const PubsubAdminRequest *request, PubsubError *error)
{
	rd_kafka_conf_t *conf;
	char		text[256];

	admin->create = request->op == PUBSUB_ADMIN_CREATE_TOPIC;
	admin->topic = strdup(request->topic);
	if (admin->topic == NULL)
	{
		kafka_error_memory(error);
		return false;
	}

	if (admin->create)
	{
		admin->new_topic = rd_kafka_NewTopic_new(request->topic,
												 request->partitions,
												 request->replication_factor,
												 text, sizeof(text));
		if (admin->new_topic == NULL)
		{
			pubsub_error_set(error, PUBSUB_ERROR_INVALID, "%s", text);
			kafka_error_object(error, admin->topic, -1);
			return false;
		}
		for (int i = 0; i < request->nconfig; i++)
			(void) rd_kafka_NewTopic_set_config(admin->new_topic,
												request->config[i].name,
												request->config[i].value);
	}

	conf = kafka_conf_admin(session->options, error);
	if (conf == NULL)
		return false;
	admin->handle = kafka_handle_open(RD_KAFKA_PRODUCER, conf,
									  session->options, error);
	if (admin->handle == NULL)
		return false;
	kafka_handle_add_queue(admin->handle);
	admin->handle->topic = rd_kafka_topic_new(admin->handle->rk, admin->topic,
											  NULL);
	if (admin->handle->topic == NULL)
	{
		kafka_error_set(error, rd_kafka_last_error(), NULL);
		return false;
	}
	return true;
}

/*
 * admin_step
 *		A step: connects, sends the request, waits for the answer, and looks
 */
static PubsubStatus
admin_step(PubsubSession *session, int slice_ms, PubsubError *error)
{
	KafkaAdmin *admin = ((KafkaSession *) session->state)->admin;
	PubsubStatus status;

	switch (admin->step)
	{
		case ADMIN_CONNECT:
			status = await_connection(admin, slice_ms, error);
			if (status != PUBSUB_OK)
				return status;
			admin->step = ADMIN_SEND;
			/* FALLTHROUGH */

		case ADMIN_SEND:
			send_request(admin, session->options);
			admin->step = ADMIN_WAIT;
			/* FALLTHROUGH */

		case ADMIN_WAIT:
			status = take_result(admin, slice_ms, error);
			if (status != PUBSUB_OK)
				return status;
			admin->step = ADMIN_LOOK;
			return PUBSUB_AGAIN;

		case ADMIN_LOOK:
			return look_at_topic(admin, slice_ms);
	}
	return PUBSUB_OK;
}

/*
 * await_connection
 *		Has any broker answered?  The request itself may take its time.
 */
static PubsubStatus
await_connection(KafkaAdmin *admin, int slice_ms, PubsubError *error)
{
	KafkaHandle *handle = admin->handle;
	const rd_kafka_metadata_t *metadata;
	rd_kafka_resp_err_t code;

	code = rd_kafka_metadata(handle->rk, 0, NULL, &metadata,
							 kafka_handle_timeout(handle, slice_ms));
	kafka_handle_serve(handle);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		rd_kafka_metadata_destroy(metadata);
		kafka_cause_clear(handle);
		return PUBSUB_OK;
	}
	if (code == RD_KAFKA_RESP_ERR__TIMED_OUT)
		handle->ntimeouts++;
	else if (!kafka_error_is_transient(code))
	{
		kafka_error_set(error, code, NULL);
		return PUBSUB_FAILED;
	}
	return kafka_cause_get(handle, error);
}

static void
send_request(KafkaAdmin *admin, const PubsubOptions *options)
{
	rd_kafka_t *rk = admin->handle->rk;
	rd_kafka_AdminOptions_t *how;
	int			timeout = Max(options->request_timeout, 1000);
	char		text[128];

	how = rd_kafka_AdminOptions_new(rk, admin->create ?
									RD_KAFKA_ADMIN_OP_CREATETOPICS :
									RD_KAFKA_ADMIN_OP_DELETETOPICS);
	(void) rd_kafka_AdminOptions_set_request_timeout(how, timeout, text,
													 sizeof(text));
	(void) rd_kafka_AdminOptions_set_operation_timeout(how, timeout, text,
													   sizeof(text));
	if (admin->create)
		rd_kafka_CreateTopics(rk, &admin->new_topic, 1, how,
							  admin->handle->queue);
	else
	{
		rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(admin->topic);

		rd_kafka_DeleteTopics(rk, &topic, 1, how, admin->handle->queue);
		rd_kafka_DeleteTopic_destroy(topic);
	}
	rd_kafka_AdminOptions_destroy(how);
}

/*
 * take_result
 *		Waits a slice for the answer
 */
static PubsubStatus
take_result(KafkaAdmin *admin, int slice_ms, PubsubError *error)
{
	rd_kafka_event_t *event;
	const rd_kafka_topic_result_t **results = NULL;
	rd_kafka_resp_err_t code;
	const char *text;
	size_t		n = 0;

	event = rd_kafka_queue_poll(admin->handle->queue, Max(slice_ms, 1));
	kafka_handle_serve(admin->handle);
	if (event == NULL)
		return kafka_cause_get(admin->handle, error);

	code = rd_kafka_event_error(event);
	text = rd_kafka_event_error_string(event);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		if (admin->create)
			results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event),
														  &n);
		else
			results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event),
														  &n);
		if (n == 1)
		{
			code = rd_kafka_topic_result_error(results[0]);
			text = rd_kafka_topic_result_error_string(results[0]);
		}
	}

	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		/* a time-out has a cause */
		if (kafka_error_is_transient(code) &&
			admin->handle->cause != RD_KAFKA_RESP_ERR_NO_ERROR)
			(void) kafka_cause_get(admin->handle, error);
		else
			kafka_error_set(error, code, text);
		kafka_error_object(error, admin->topic, -1);
	}
	else
		kafka_cause_clear(admin->handle);
	rd_kafka_event_destroy(event);
	return code == RD_KAFKA_RESP_ERR_NO_ERROR ? PUBSUB_OK : PUBSUB_FAILED;
}

/*
 * look_at_topic
 *		Has what was done come through to the broker we talk to?
 *
 * It is done in any case: not seeing it is no error.
 */
static PubsubStatus
look_at_topic(KafkaAdmin *admin, int slice_ms)
{
	const rd_kafka_metadata_t *metadata;
	PubsubError error;
	PubsubStatus status;

	if (admin->nlooks++ >= MAX_LOOKS)
		return PUBSUB_OK;
	status = kafka_topic_metadata(admin->handle, admin->handle->topic,
								  slice_ms, &metadata, &error);
	if (status == PUBSUB_OK)
	{
		rd_kafka_metadata_destroy(metadata);
		if (admin->create)
			return PUBSUB_OK;
		rd_kafka_poll(admin->handle->rk, Min(slice_ms, 50));
		return PUBSUB_AGAIN;
	}
	if (!admin->create && error.kind == PUBSUB_ERROR_NOT_FOUND)
		return PUBSUB_OK;
	if (error.kind == PUBSUB_ERROR_PERMISSION)
		return PUBSUB_OK;
	return PUBSUB_AGAIN;
}

const PubsubAdminRoutine kafka_admin_routine = {
	.begin = admin_begin,
	.step = admin_step,
	.end = admin_end
};
