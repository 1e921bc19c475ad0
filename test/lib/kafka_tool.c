/*-------------------------------------------------------------------------
 *
 * kafka_tool.c
 *		What tests do to a Kafka past the extension, and kcat cannot do
 *
 * Usage, with the address in $KAFKA_BOOTSTRAP:
 *
 *		kafka_tool write TOPIC PARTITION WORD...
 *			Sends records one after the other, each confirmed before the next
 *			word.  begin, commit and abort are those of a transaction (a
 *			control record each at its end); any other word is the value of a
 *			record, "KEY=VALUE" one with a key, "@MS:..." one with a timestamp.
 *			A transaction that is not ended stays open, for ten minutes or
 *			until the next "kafka_tool end" of that topic and partition.
 *		kafka_tool end TOPIC PARTITION
 *			Aborts the transaction that "write" left open.
 *		kafka_tool fill TOPIC PARTITIONS COUNT BYTES
 *			Sends COUNT records of BYTES bytes, the same number to each
 *			partition; a record's value starts with its number.
 *		kafka_tool delete TOPIC PARTITION OFFSET
 *			Deletes the records before OFFSET, as retention would.
 *		kafka_tool partitions TOPIC COUNT
 *			Adds partitions, so that there are COUNT.
 *		kafka_tool offsets TOPIC PARTITION
 *			Prints the first offset and the end.
 *
 * IDENTIFICATION
 *		test/lib/kafka_tool.c
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#define TIMEOUT_MS 30000

static long nfailed = 0;

static void fail(const char *fmt,...)
			__attribute__((format(printf, 1, 2), noreturn));
static void check(rd_kafka_error_t *error, const char *what);

static void
fail(const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	fprintf(stderr, "kafka_tool: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);

	/* without destroying handles: that might end an open transaction */
	_exit(1);
}

static void
check(rd_kafka_error_t *error, const char *what)
{
	if (error != NULL)
		fail("%s: %s", what, rd_kafka_error_string(error));
}

static void
set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char		text[512];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) !=
		RD_KAFKA_CONF_OK)
		fail("%s", text);
}

static void
note_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	(void) rk;
	(void) opaque;
	if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		fprintf(stderr, "kafka_tool: %s\n", rd_kafka_err2str(m->err));
		nfailed++;
	}
}

/*
 * make_producer
 *		Makes a handle; transactional if there is an id
 */
static rd_kafka_t *
make_producer(const char *transactional_id)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const char *bootstrap = getenv("KAFKA_BOOTSTRAP");
	char		text[512];
	rd_kafka_t *rk;

	if (bootstrap == NULL)
		fail("KAFKA_BOOTSTRAP is not set");
	set(conf, "bootstrap.servers", bootstrap);
	set(conf, "log_level", "3");
	set(conf, "linger.ms", "5");
	set(conf, "batch.size", "1000000");
	set(conf, "queue.buffering.max.messages", "200000");
	if (transactional_id != NULL)
	{
		set(conf, "transactional.id", transactional_id);
		set(conf, "transaction.timeout.ms", "600000");
	}
	rd_kafka_conf_set_dr_msg_cb(conf, note_delivery);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (rk == NULL)
		fail("%s", text);
	return rk;
}

static void
flush(rd_kafka_t *rk)
{
	if (rd_kafka_flush(rk, TIMEOUT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("records are not confirmed");
	if (nfailed > 0)
		fail("%ld records were refused", nfailed);
}

static void
send_record(rd_kafka_t *rk, const char *topic, int partition, const char *word)
{
	int64_t		timestamp = 0;	/* the library's own: now */
	const char *equals;
	const char *value;
	const char *key;
	size_t		key_len;
	rd_kafka_resp_err_t err;

	if (word[0] == '@')
	{
		timestamp = strtoll(word + 1, (char **) &word, 10);
		word++;
	}
	equals = strchr(word, '=');
	value = equals != NULL ? equals + 1 : word;
	key = equals != NULL ? word : NULL;
	key_len = equals != NULL ? equals - word : 0;

	err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic),
							RD_KAFKA_V_PARTITION(partition),
							RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
							RD_KAFKA_V_KEY(key, key_len),
							RD_KAFKA_V_TIMESTAMP(timestamp),
							RD_KAFKA_V_VALUE((void *) value, strlen(value)),
							RD_KAFKA_V_END);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("%s", rd_kafka_err2str(err));
	flush(rk);
}

static const char *
transactional_id(const char *topic, int partition)
{
	static char id[300];

	snprintf(id, sizeof(id), "%s-%d", topic, partition);
	return id;
}

static void
do_write(const char *topic, int partition, char **words)
{
	rd_kafka_t *plain = make_producer(NULL);
	rd_kafka_t *transactional = NULL;
	int			in_transaction = 0;

	for (; *words != NULL; words++)
	{
		if (strcmp(*words, "begin") == 0)
		{
			if (transactional == NULL)
			{
				transactional = make_producer(transactional_id(topic,
															   partition));
				check(rd_kafka_init_transactions(transactional, TIMEOUT_MS),
					  *words);
			}
			check(rd_kafka_begin_transaction(transactional), *words);
			in_transaction = 1;
		}
		else if (strcmp(*words, "commit") == 0)
		{
			check(rd_kafka_commit_transaction(transactional, TIMEOUT_MS),
				  *words);
			in_transaction = 0;
		}
		else if (strcmp(*words, "abort") == 0)
		{
			check(rd_kafka_abort_transaction(transactional, TIMEOUT_MS),
				  *words);
			in_transaction = 0;
		}
		else
			send_record(in_transaction ? transactional : plain, topic,
						partition, *words);
	}
}

static void
do_end(const char *topic, int partition)
{
	rd_kafka_t *rk = make_producer(transactional_id(topic, partition));

	check(rd_kafka_init_transactions(rk, TIMEOUT_MS), "end");
}

static void
do_fill(const char *topic, int npartitions, long count, size_t size)
{
	rd_kafka_t *rk = make_producer(NULL);
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
	char	   *value = malloc(size + 32);
	long		i;

	memset(value, 'x', size + 32);
	for (i = 0; i < count; i++)
	{
		int			len = sprintf(value, "%ld", i);

		value[len] = ' ';
		while (rd_kafka_produce(rkt, i % npartitions, RD_KAFKA_MSG_F_COPY,
								value, size, NULL, 0, NULL) != 0)
		{
			if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
				fail("%s", rd_kafka_err2str(rd_kafka_last_error()));
			rd_kafka_poll(rk, 100);
		}
		if (i % 1000 == 0)
			rd_kafka_poll(rk, 0);
	}
	flush(rk);
}

/*
 * await
 *		Waits for the answer to an administrative request
 */
static rd_kafka_event_t *
await(rd_kafka_queue_t *queue)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);

	if (event == NULL)
		fail("no answer");
	if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("%s", rd_kafka_event_error_string(event));
	return event;
}

static void
do_delete(const char *topic, int partition, int64_t offset)
{
	rd_kafka_t *rk = make_producer(NULL);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_topic_partition_list_t *list;
	const rd_kafka_topic_partition_list_t *result;
	rd_kafka_DeleteRecords_t *request;

	list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
	request = rd_kafka_DeleteRecords_new(list);
	rd_kafka_DeleteRecords(rk, &request, 1, NULL, queue);
	result = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(await(queue)));
	if (result->elems[0].err != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("%s", rd_kafka_err2str(result->elems[0].err));
}

static void
do_partitions(const char *topic, int count)
{
	rd_kafka_t *rk = make_producer(NULL);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_NewPartitions_t *request;
	const rd_kafka_topic_result_t **result;
	char		text[512];
	size_t		n;

	request = rd_kafka_NewPartitions_new(topic, count, text, sizeof(text));
	if (request == NULL)
		fail("%s", text);
	rd_kafka_CreatePartitions(rk, &request, 1, NULL, queue);
	result = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(await(queue)),
													 &n);
	if (rd_kafka_topic_result_error(result[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("%s", rd_kafka_topic_result_error_string(result[0]));
}

static void
do_offsets(const char *topic, int partition)
{
	rd_kafka_t *rk = make_producer(NULL);
	rd_kafka_resp_err_t err;
	int64_t		low;
	int64_t		high;

	err = rd_kafka_query_watermark_offsets(rk, topic, partition, &low, &high,
										   TIMEOUT_MS);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		fail("%s", rd_kafka_err2str(err));
	printf("%lld %lld\n", (long long) low, (long long) high);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (strcmp(what, "write") == 0 && argc > 3)
		do_write(argv[2], atoi(argv[3]), argv + 4);
	else if (strcmp(what, "end") == 0 && argc == 4)
		do_end(argv[2], atoi(argv[3]));
	else if (strcmp(what, "fill") == 0 && argc == 6)
		do_fill(argv[2], atoi(argv[3]), atol(argv[4]), atol(argv[5]));
	else if (strcmp(what, "delete") == 0 && argc == 5)
		do_delete(argv[2], atoi(argv[3]), atoll(argv[4]));
	else if (strcmp(what, "partitions") == 0 && argc == 4)
		do_partitions(argv[2], atoi(argv[3]));
	else if (strcmp(what, "offsets") == 0 && argc == 4)
		do_offsets(argv[2], atoi(argv[3]));
	else
		fail("usage: see test/lib/kafka_tool.c");

	/* see fail() */
	_exit(0);
}
