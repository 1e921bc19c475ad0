/*-------------------------------------------------------------------------
 *
 * raw_producer.c
 *		Sends messages to a topic, as fast as librdkafka can
 *
 * The opponent of "INSERT INTO topic SELECT": idempotent, every delivery
 * confirmed, the messages ready in memory, a queue that holds all of them.
 *
 *		raw_producer BOOTSTRAP TOPIC MESSAGES BYTES
 *
 * Prints the number of messages delivered, milliseconds from making the handle
 * to the last report, and the processor time of the main thread in
 * milliseconds.
 *
 * IDENTIFICATION
 *		bench/raw_producer.c
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t ndelivered = 0;

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
	fprintf(stderr, "raw_producer: %s: %s\n", what, why);
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

static void
delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	(void) rk;
	(void) opaque;
	if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("delivery", rd_kafka_err2str(message->err));
	ndelivered++;
}

int
main(int argc, char **argv)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;
	rd_kafka_topic_t *topic;
	char		error[256];
	int64_t		nmessages;
	int			size;
	char	   *data;
	double		start;
	double		start_cpu;

	if (argc != 5)
		fail("usage", "raw_producer BOOTSTRAP TOPIC MESSAGES BYTES");
	nmessages = atoll(argv[3]);
	size = atoi(argv[4]);
	if (nmessages <= 0 || size < 20)
		fail("usage", "MESSAGES and BYTES must be larger");
	data = malloc(nmessages * size + 1);
	if (data == NULL)
		fail("memory", "out of it");
	for (int64_t i = 0; i < nmessages; i++)
	{
		char		number[32];
		int			len = snprintf(number, sizeof(number), "%" PRId64, i);

		memset(data + i * size, 'x', size - len);
		memcpy(data + i * size + size - len, number, len);
	}

	start = now_ms(CLOCK_MONOTONIC);
	start_cpu = now_ms(CLOCK_THREAD_CPUTIME_ID);
	set(conf, "bootstrap.servers", argv[1]);
	set(conf, "enable.idempotence", "true");
	set(conf, "partitioner", "murmur2_random");
	set(conf, "linger.ms", "5");
	set(conf, "queue.buffering.max.messages", "10000000");
	set(conf, "queue.buffering.max.kbytes", "2097151");
	rd_kafka_conf_set_dr_msg_cb(conf, delivered);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
	if (rk == NULL)
		fail("could not make a producer", error);
	topic = rd_kafka_topic_new(rk, argv[2], NULL);

	for (int64_t i = 0; i < nmessages; i++)
	{
		if (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
							 data + i * size, size, NULL, 0, NULL) != 0)
			fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
		if (i % 1000 == 0)
			rd_kafka_poll(rk, 0);
	}
	if (rd_kafka_flush(rk, 60000) != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("flush", "not all were delivered");
	printf("%" PRId64 " %.1f %.1f\n", ndelivered,
		   now_ms(CLOCK_MONOTONIC) - start,
		   now_ms(CLOCK_THREAD_CPUTIME_ID) - start_cpu);
	fflush(stdout);
	_exit(ndelivered == nmessages ? 0 : 1);
}
