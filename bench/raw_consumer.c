/*-------------------------------------------------------------------------
 *
 * raw_consumer.c
 *		Reads a topic once, as fast as librdkafka can
 *
 * The opponent of "SELECT count(*)": absolute start offsets, so that it waits
 * for no timer; a queue without limits, so that fetching never stalls; the end
 * known beforehand; no poll that waits longer than it must.
 *
 *		raw_consumer BOOTSTRAP TOPIC
 *
 * Prints the number of messages, milliseconds from making the handle to the
 * last message, and the processor time of the main thread in milliseconds.
 *
 * IDENTIFICATION
 *		bench/raw_consumer.c
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 2000
#define TIMEOUT_MS 10000

static double
now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000.0 + t.tv_nsec / 1000000.0;
}

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "raw_consumer: %s: %s\n", what, why);
	exit(1);
}

static void
set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char		error[256];

	if (rd_kafka_conf_set(conf, name, value, error,
						  sizeof(error)) != RD_KAFKA_CONF_OK)
		fail(name, error);
}

int
main(int argc, char **argv)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	rd_kafka_topic_t *topic;
	rd_kafka_queue_t *queue;
	rd_kafka_resp_err_t code;
	const rd_kafka_metadata_t *metadata;
	rd_kafka_topic_partition_list_t *low;
	rd_kafka_topic_partition_list_t *high;
	rd_kafka_message_t *messages[BATCH];
	char		error[256];
	int			fds[2];
	int			npartitions;
	int64_t		nmessages = 0;
	int64_t		nbytes = 0;
	int64_t		expected = 0;
	double		start;
	double		start_cpu;

	if (argc != 3)
		fail("usage", "raw_consumer BOOTSTRAP TOPIC");
	start = now_ms(CLOCK_MONOTONIC);
	start_cpu = now_ms(CLOCK_THREAD_CPUTIME_ID);

	set(conf, "bootstrap.servers", argv[1]);
	set(conf, "queued.min.messages", "10000000");
	set(conf, "queued.max.messages.kbytes", "2097151");
	set(conf, "fetch.wait.max.ms", "10");
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof(error));
	if (rk == NULL)
		fail("could not make a consumer", error);
	topic = rd_kafka_topic_new(rk, argv[2], NULL);
	queue = rd_kafka_queue_new(rk);
	if (pipe(fds) != 0)
		fail("pipe", "failed");
	rd_kafka_queue_io_event_enable(queue, fds[1], "", 1);

	code = rd_kafka_metadata(rk, 0, topic, &metadata, TIMEOUT_MS);
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("metadata", rd_kafka_err2str(code));
	npartitions = metadata->topics[0].partition_cnt;
	rd_kafka_metadata_destroy(metadata);
	low = rd_kafka_topic_partition_list_new(npartitions);
	high = rd_kafka_topic_partition_list_new(npartitions);
	for (int i = 0; i < npartitions; i++)
	{
		rd_kafka_topic_partition_list_add(low, argv[2], i)->offset = -2;
		rd_kafka_topic_partition_list_add(high, argv[2], i)->offset = -1;
	}
	code = rd_kafka_offsets_for_times(rk, low, TIMEOUT_MS);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
		code = rd_kafka_offsets_for_times(rk, high, TIMEOUT_MS);
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("offsets", rd_kafka_err2str(code));

	for (int i = 0; i < npartitions; i++)
	{
		expected += high->elems[i].offset - low->elems[i].offset;
		if (high->elems[i].offset > low->elems[i].offset)
			rd_kafka_consume_start_queue(topic, i, low->elems[i].offset, queue);
	}

	while (nmessages < expected)
	{
		ssize_t		n = rd_kafka_consume_batch_queue(queue, 0, messages, BATCH);

		for (ssize_t i = 0; i < n; i++)
		{
			if (messages[i]->err != RD_KAFKA_RESP_ERR_NO_ERROR)
				fail("read", rd_kafka_message_errstr(messages[i]));
			nmessages++;
			nbytes += messages[i]->len;
			rd_kafka_message_destroy(messages[i]);
		}
		if (n <= 0)
		{
			struct pollfd pfd = {.fd = fds[0],.events = POLLIN};
			char		bytes[256];

			if (poll(&pfd, 1, TIMEOUT_MS) <= 0)
				fail("read", "no message");
			if (read(fds[0], bytes, sizeof(bytes)) < 0)
				fail("read", "failed");
		}
	}
	printf("%" PRId64 " %.1f %.1f\n", nmessages,
		   now_ms(CLOCK_MONOTONIC) - start,
		   now_ms(CLOCK_THREAD_CPUTIME_ID) - start_cpu);

	/* what comes after the last message is not timed */
	fflush(stdout);
	_exit(nbytes >= 0 ? 0 : 1);
}
