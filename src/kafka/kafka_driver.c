/*-------------------------------------------------------------------------
 *
 * kafka_driver.c
 *		The Kafka driver, and the life of librdkafka's handles in a backend
 *
 * A handle has threads of its own, and destroying it waits for them: a few
 * milliseconds as a rule, much longer if one of them is in the name resolver
 * or a message is still out.  So it is done in one more thread, for which the
 * backend waits a moment only; what is not finished then is looked after
 * later.  All threads run with every signal blocked, the library's too.
 *
 * The process must not exit while a handle is in a TLS handshake: OpenSSL's
 * own exit handler frees what that thread uses.  detach() therefore waits up
 * to a second, and if that was not enough the process ends by _exit().
 *
 * IDENTIFICATION
 *		src/kafka/kafka_driver.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "kafka.h"

/* how long to wait for a handle's end, in ms: in close(), and in detach() */
#define CLOSE_WAIT_MS	20
#define DETACH_WAIT_MS	1000

/* A handle on its way out; the thread owns everything but the list. */
typedef struct KafkaEnd
{
	struct KafkaEnd *next;
	KafkaHandle *handle;
	pthread_t	thread;
	bool		done;			/* under end_mutex */
} KafkaEnd;

static pthread_mutex_t end_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end_cond;
static KafkaEnd *ends;			/* of this process, main thread only */
static int	nlive;				/* handles that are not destroyed yet */
static pid_t owner_pid;			/* of what is above */
static bool exit_registered;

static void prepare_process(void);
static void exit_with_handles(void);
static void *end_main(void *arg);
static void destroy_handle(KafkaHandle *handle);
static bool wait_for_ends(int timeout_ms);

static void note_log(const rd_kafka_t *rk, int level, const char *facility,
					 const char *text);
static void note_error(rd_kafka_t *rk, int code, const char *text,
					   void *opaque);
static int	note_certificate(rd_kafka_t *rk, const char *broker_name,
							 int32_t broker_id, int *x509_error, int depth,
							 const char *certificate, size_t size,
							 char *text, size_t text_size, void *opaque);

/*
 * kafka_attach
 *		Makes the state of a session
 */
static PubsubStatus
kafka_attach(PubsubSession *session, PubsubError *error)
{
	const PubsubOptions *options = session->options;

	if (options->security_protocol == PUBSUB_SECURITY_SASL_PLAINTEXT ||
		options->security_protocol == PUBSUB_SECURITY_SASL_SSL)
	{
		if (options->sasl_mechanism == PUBSUB_SASL_NONE)
		{
			pubsub_error_set(error, PUBSUB_ERROR_INVALID,
							 "Option \"security_protocol\" asks for a login, but there is no option \"sasl_mechanism\".");
			return PUBSUB_FAILED;
		}
		if (options->sasl_username == NULL || options->sasl_password == NULL)
		{
			pubsub_error_set(error, PUBSUB_ERROR_AUTH,
							 "Option \"security_protocol\" asks for a login, but there is no user name or no password.");
			strlcpy(error->hint,
					"Set \"sasl_username\" and \"sasl_password\" in the user mapping.",
					sizeof(error->hint));
			return PUBSUB_FAILED;
		}
	}

	session->state = calloc(1, sizeof(KafkaSession));
	if (session->state == NULL)
		return kafka_error_memory(error);
	return PUBSUB_OK;
}

/*
 * kafka_detach
 *		Closes what is left of a session
 */
static void
kafka_detach(PubsubSession *session)
{
	KafkaSession *state = session->state;

	if (state == NULL)
		return;

	while (!dlist_is_empty(&session->sources))
		kafka_source_routine.close(dlist_container(PubsubSource, node,
												   dlist_pop_head_node(&session->sources)));
	while (!dlist_is_empty(&session->sinks))
	{
		PubsubSink *sink = dlist_container(PubsubSink, node,
										   dlist_pop_head_node(&session->sinks));

		kafka_sink_routine.abandon(sink);
		kafka_sink_routine.close(sink);
	}
	kafka_admin_routine.end(session);
	while (state->producers != NULL)
	{
		KafkaProducer *producer = state->producers;

		state->producers = producer->next;
		kafka_producer_close(producer);
	}
	free(state);
	session->state = NULL;

	if (owner_pid == getpid())
		(void) wait_for_ends(DETACH_WAIT_MS);
}

static bool
kafka_version(int i, const char **component, const char **version)
{
	if (i != 0)
		return false;
	*component = "librdkafka";
	*version = rd_kafka_version_str();
	return true;
}

const PubsubDriver kafka_driver = {
	.name = "kafka",
	.capabilities = PUBSUB_CAN_REWIND | PUBSUB_IS_LOG,
	.default_fetch_size = 10000,
	.session_fds = 8,
	.source_fds = 8,
	.attach = kafka_attach,
	.detach = kafka_detach,
	.source = &kafka_source_routine,
	.sink = &kafka_sink_routine,
	.admin = &kafka_admin_routine,
	.version = kafka_version
};

/*
 * kafka_handle_open
 *		Starts a handle of librdkafka; takes conf over in any case
 *
 * This connects to nobody yet, but checks the settings as a whole.
 */
KafkaHandle *
kafka_handle_open(rd_kafka_type_t type, rd_kafka_conf_t *conf,
				  const PubsubOptions *options, PubsubError *error)
{
	KafkaHandle *handle = calloc(1, sizeof(KafkaHandle));
	char		text[400];

	if (handle == NULL)
	{
		rd_kafka_conf_destroy(conf);
		kafka_error_memory(error);
		return NULL;
	}
	handle->pid = getpid();
	handle->nhosts = 1;
	for (const char *p = options->bootstrap_servers; *p != '\0'; p++)
		handle->nhosts += (*p == ',');
	strlcpy(handle->hosts, options->bootstrap_servers, sizeof(handle->hosts));
	handle->scram = options->sasl_mechanism == PUBSUB_SASL_SCRAM_SHA_256 ||
		options->sasl_mechanism == PUBSUB_SASL_SCRAM_SHA_512;

	if (pipe2(handle->wakeup, O_NONBLOCK | O_CLOEXEC) != 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "could not create a pipe: %s", strerror(errno));
		rd_kafka_conf_destroy(conf);
		free(handle);
		return NULL;
	}

	rd_kafka_conf_set_opaque(conf, handle);
	rd_kafka_conf_set_log_cb(conf, note_log);
	rd_kafka_conf_set_error_cb(conf, note_error);
	(void) rd_kafka_conf_set_ssl_cert_verify_cb(conf, note_certificate);
	prepare_process();
	handle->rk = rd_kafka_new(type, conf, text, sizeof(text));
	if (handle->rk == NULL)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID, "%s", text);
		rd_kafka_conf_destroy(conf);
		close(handle->wakeup[0]);
		close(handle->wakeup[1]);
		free(handle);
		return NULL;
	}
	nlive++;

	/* after OpenSSL's, so that it runs before that one */
	if (!exit_registered)
		exit_registered = atexit(exit_with_handles) == 0;

	handle->main_queue = rd_kafka_queue_get_main(handle->rk);
	rd_kafka_set_log_queue(handle->rk, NULL);
	rd_kafka_queue_io_event_enable(handle->main_queue, handle->wakeup[1],
								   "", 1);
	return handle;
}

/*
 * kafka_handle_add_queue
 *		Makes the handle's second queue, for messages or results
 */
void
kafka_handle_add_queue(KafkaHandle *handle)
{
	handle->queue = rd_kafka_queue_new(handle->rk);
	rd_kafka_queue_io_event_enable(handle->queue, handle->wakeup[1], "", 1);
}

/*
 * kafka_handle_serve
 *		Runs the callbacks that are due
 *
 * To be called before the queues are looked at, not after: the library writes
 * to the pipe once, until somebody looks.
 */
void
kafka_handle_serve(KafkaHandle *handle)
{
	char		bytes[256];

	while (read(handle->wakeup[0], bytes, sizeof(bytes)) == sizeof(bytes))
		;
	rd_kafka_poll(handle->rk, 0);
}

/*
 * kafka_handle_timeout
 *		How long a blocking call may take
 *
 * A call that ends before the broker's answer arrives is in vain, and so is
 * each repetition; so the slice grows with each that fails, and the handle
 * remembers how slow its brokers are.
 */
int
kafka_handle_timeout(const KafkaHandle *handle, int slice_ms)
{
	int			factor = handle->ntimeouts < 2 ? 1 :
	handle->ntimeouts < 5 ? 2 :
	handle->ntimeouts < 10 ? 4 : 8;

	return Max(slice_ms, 1) * factor;
}

/*
 * kafka_topic_metadata
 *		A step: asks for the partitions of a topic
 *
 * OK: the caller destroys *metadata, in which every partition has a leader.
 */
PubsubStatus
kafka_topic_metadata(KafkaHandle *handle, rd_kafka_topic_t *topic,
					 int slice_ms, const rd_kafka_metadata_t **metadata,
					 PubsubError *error)
{
	const rd_kafka_metadata_topic_t *found;
	rd_kafka_resp_err_t code;
	int32		partition = -1;

	code = rd_kafka_metadata(handle->rk, 0, topic, metadata,
							 kafka_handle_timeout(handle, slice_ms));
	kafka_handle_serve(handle);
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		if (code == RD_KAFKA_RESP_ERR__TIMED_OUT)
			handle->ntimeouts++;
		else if (!kafka_error_is_transient(code))
		{
			kafka_error_set(error, code, NULL);
			return PUBSUB_FAILED;
		}
		return kafka_cause_get(handle, error);
	}
	kafka_cause_clear(handle);

	if ((*metadata)->topic_cnt != 1)
		code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	else
	{
		found = &(*metadata)->topics[0];
		code = found->err;
		for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR &&
			 i < found->partition_cnt; i++)
		{
			if (found->partitions[i].leader < 0)
			{
				code = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
				partition = found->partitions[i].id;
			}
		}
	}
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		handle->nunknown = 0;
		return PUBSUB_OK;
	}

	rd_kafka_metadata_destroy(*metadata);
	kafka_error_set(error, code, NULL);
	kafka_error_object(error, rd_kafka_topic_name(topic), partition);

	/* a topic just created may not have got around to this broker yet */
	if (kafka_error_is_transient(code) ||
		(error->kind == PUBSUB_ERROR_NOT_FOUND && ++handle->nunknown < 3))
	{
		rd_kafka_poll(handle->rk, Min(slice_ms, 50));
		return PUBSUB_AGAIN;
	}
	handle->nunknown = 0;
	return PUBSUB_FAILED;
}

/*
 * kafka_handle_close
 *		Lets a handle go, with its queues and topic
 *
 * The caller has destroyed all messages and events of it.
 */
void
kafka_handle_close(KafkaHandle *handle)
{
	KafkaEnd   *end;
	sigset_t	all;
	sigset_t	before;
	bool		started;

	/* after fork the threads are not there, and destroy would wait for them */
	if (handle->pid != getpid())
		return;

	/* from here on no thread writes to the pipe */
	rd_kafka_queue_io_event_enable(handle->main_queue, -1, NULL, 0);
	if (handle->queue != NULL)
		rd_kafka_queue_io_event_enable(handle->queue, -1, NULL, 0);
	close(handle->wakeup[0]);
	close(handle->wakeup[1]);

	end = calloc(1, sizeof(KafkaEnd));
	if (end == NULL)
	{
		destroy_handle(handle);
		nlive--;
		return;
	}
	end->handle = handle;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&end->thread, NULL, end_main, end) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!started)
	{
		free(end);
		destroy_handle(handle);
		nlive--;
		return;
	}
	end->next = ends;
	ends = end;
	(void) wait_for_ends(CLOSE_WAIT_MS);
}

static void *
end_main(void *arg)
{
	KafkaEnd   *end = arg;

	destroy_handle(end->handle);
	pthread_mutex_lock(&end_mutex);
	end->done = true;
	pthread_cond_signal(&end_cond);
	pthread_mutex_unlock(&end_mutex);
	return NULL;
}

/*
 * destroy_handle
 *		Waits for the end of the handle's threads
 */
static void
destroy_handle(KafkaHandle *handle)
{
	if (handle->topic != NULL)
		rd_kafka_topic_destroy(handle->topic);
	if (handle->queue != NULL)
		rd_kafka_queue_destroy(handle->queue);
	rd_kafka_queue_destroy(handle->main_queue);
	rd_kafka_destroy_flags(handle->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	free(handle);
}

/*
 * wait_for_ends
 *		Waits until all closed handles are destroyed, and tells if they are
 */
static bool
wait_for_ends(int timeout_ms)
{
	struct timespec until;
	KafkaEnd  **link = &ends;
	bool		in_time = true;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}

	while (*link != NULL)
	{
		KafkaEnd   *end = *link;
		bool		done;

		pthread_mutex_lock(&end_mutex);
		while (!end->done && in_time)
			in_time = pthread_cond_timedwait(&end_cond, &end_mutex,
											 &until) == 0;
		done = end->done;
		pthread_mutex_unlock(&end_mutex);

		if (!done)
		{
			link = &end->next;
			continue;
		}
		pthread_join(end->thread, NULL);
		*link = end->next;
		free(end);
		nlive--;
	}
	return ends == NULL;
}

/*
 * prepare_process
 *		Sets up what is needed once per process, for the first handle
 */
static void
prepare_process(void)
{
	pthread_condattr_t attributes;

	if (owner_pid == getpid())
		return;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&end_cond, &attributes);
	pthread_condattr_destroy(&attributes);
	ends = NULL;
	nlive = 0;
	owner_pid = getpid();
}

/*
 * exit_with_handles
 *		atexit handler: with threads of the library about, skips the others
 *
 * All of PostgreSQL's own exit work is done by then.
 */
static void
exit_with_handles(void)
{
	if (owner_pid != getpid())
		return;
	(void) wait_for_ends(0);
	if (nlive > 0)
		_exit(0);
}

/*
 * note_log
 *		Takes the library's log, in the main thread, and drops nearly all of it
 *
 * Later versions report a connection that the other side closes, as a TLS
 * port does when spoken to in plain text, in the log only.
 */
static void
note_log(const rd_kafka_t *rk, int level pg_attribute_unused(),
		 const char *facility,
		 const char *text)
{
	KafkaHandle *handle = rd_kafka_opaque(rk);
	const char *message = strstr(text, "]: ");

	if (strcmp(facility, "FAIL") == 0 && message != NULL &&
		!handle->connected && handle->cause == RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_cause_note(handle, RD_KAFKA_RESP_ERR__TRANSPORT, message + 3);
}

/*
 * note_error
 *		Keeps an error event
 */
static void
note_error(rd_kafka_t *rk pg_attribute_unused(), int code, const char *text,
		   void *opaque)
{
	kafka_cause_note(opaque, code, text);
}

/*
 * note_certificate
 *		Keeps OpenSSL's verdict on a broker's certificate, and goes by it
 *
 * Runs in a thread of the library.  Without this, all certificates that fail
 * have the same error text.
 */
static int
note_certificate(rd_kafka_t *rk pg_attribute_unused(),
				 const char *broker_name pg_attribute_unused(),
				 int32_t broker_id pg_attribute_unused(),
				 int *x509_error, int depth pg_attribute_unused(),
				 const char *certificate pg_attribute_unused(),
				 size_t size pg_attribute_unused(), char *text,
				 size_t text_size, void *opaque)
{
	if (*x509_error == 0)
		return 1;
	((KafkaHandle *) opaque)->x509_error = *x509_error;
	strlcpy(text, "certificate verify failed", text_size);
	return 0;
}
