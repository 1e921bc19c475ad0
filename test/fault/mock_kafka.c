/*-------------------------------------------------------------------------
 *
 * mock_kafka.c
 *		librdkafka's mock cluster as a program: a Kafka without Java
 *
 * The demo plays on it, and tests have it produce faults that a real broker
 * will not produce on demand.  Usage: mock_kafka [number of brokers].
 *
 * The first line of output is the address.  Then one command per line of
 * input, each answered by "ok" or "error: ..." once it is in effect:
 *
 *		topic NAME PARTITIONS			make a topic
 *		topic-error NAME CODE			metadata requests for it fail (0 = no more)
 *		leader NAME PARTITION BROKER	move a partition (-1 = no leader)
 *		rtt MS							delay of every answer
 *		down, up						refuse and accept connections
 *		error APIKEY CODE [COUNT]		the next COUNT requests fail
 *		clear APIKEY					undo that
 *
 * CODE is a number of rd_kafka_resp_err_t; -195 as an error drops the
 * connection.  APIKEY: 0 produce, 1 fetch, 2 list offsets, 3 metadata, 22
 * init producer id.  The program ends with its input, so it never outlives the
 * one who started it.
 *
 * IDENTIFICATION
 *		test/fault/mock_kafka.c
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#define MAX_WORDS 4
#define MAX_ERRORS 1000

static int	nbrokers = 1;

static rd_kafka_resp_err_t set_brokers(rd_kafka_mock_cluster_t *cluster,
									   const char *what, int value);
static rd_kafka_resp_err_t push_errors(rd_kafka_mock_cluster_t *cluster,
									   int apikey, int code, int count);
static void execute(rd_kafka_mock_cluster_t *cluster, char **word, int nwords);

int
main(int argc, char **argv)
{
	char		text[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *handle;
	rd_kafka_mock_cluster_t *cluster;

	if (argc > 1)
		nbrokers = atoi(argv[1]);

	/*
	 * The cluster needs a handle to live in; nothing is sent through it, and
	 * that it knows no broker is not worth a warning.
	 */
	rd_kafka_conf_set(conf, "log_level", "3", NULL, 0);
	handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (handle == NULL)
	{
		fprintf(stderr, "mock_kafka: %s\n", text);
		return 1;
	}
	cluster = rd_kafka_mock_cluster_new(handle, nbrokers);
	if (cluster == NULL)
	{
		fprintf(stderr, "mock_kafka: could not make a cluster of %d\n",
				nbrokers);
		return 1;
	}

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));

	while (fgets(text, sizeof(text), stdin) != NULL)
	{
		char	   *word[MAX_WORDS];
		char	   *save;
		char	   *next = strtok_r(text, " \n", &save);
		int			nwords = 0;

		while (next != NULL && nwords < MAX_WORDS)
		{
			word[nwords++] = next;
			next = strtok_r(NULL, " \n", &save);
		}
		if (nwords > 0)
			execute(cluster, word, nwords);
	}

	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(handle);
	return 0;
}

/*
 * execute
 *		Carries out one command and answers it.
 */
static void
execute(rd_kafka_mock_cluster_t *cluster, char **word, int nwords)
{
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
	const char *name = word[0];

	if (strcmp(name, "topic") == 0 && nwords == 3)
		err = rd_kafka_mock_topic_create(cluster, word[1], atoi(word[2]), 1);
	else if (strcmp(name, "topic-error") == 0 && nwords == 3)
		rd_kafka_mock_topic_set_error(cluster, word[1], atoi(word[2]));
	else if (strcmp(name, "leader") == 0 && nwords == 4)
		err = rd_kafka_mock_partition_set_leader(cluster, word[1],
												 atoi(word[2]), atoi(word[3]));
	else if (strcmp(name, "rtt") == 0 && nwords == 2)
		err = set_brokers(cluster, name, atoi(word[1]));
	else if ((strcmp(name, "down") == 0 || strcmp(name, "up") == 0) &&
			 nwords == 1)
		err = set_brokers(cluster, name, 0);
	else if (strcmp(name, "error") == 0 && nwords >= 3)
		err = push_errors(cluster, atoi(word[1]), atoi(word[2]),
						  nwords > 3 ? atoi(word[3]) : 1);
	else if (strcmp(name, "clear") == 0 && nwords == 2)
		rd_kafka_mock_clear_request_errors(cluster, atoi(word[1]));
	else
	{
		printf("error: unknown command \"%s\"\n", name);
		return;
	}

	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		printf("ok\n");
	else
		printf("error: %s\n", rd_kafka_err2str(err));
}

/*
 * set_brokers
 *		Applies "rtt", "down" or "up" to every broker.
 */
static rd_kafka_resp_err_t
set_brokers(rd_kafka_mock_cluster_t *cluster, const char *what, int value)
{
	int			id;

	for (id = 1; id <= nbrokers; id++)
	{
		rd_kafka_resp_err_t err;

		if (strcmp(what, "rtt") == 0)
			err = rd_kafka_mock_broker_set_rtt(cluster, id, value);
		else if (strcmp(what, "down") == 0)
			err = rd_kafka_mock_broker_set_down(cluster, id);
		else
			err = rd_kafka_mock_broker_set_up(cluster, id);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			return err;
	}
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/*
 * push_errors
 *		Makes the next requests of a kind fail.
 */
static rd_kafka_resp_err_t
push_errors(rd_kafka_mock_cluster_t *cluster, int apikey, int code, int count)
{
	rd_kafka_resp_err_t errors[MAX_ERRORS];
	int			i;

	if (count < 1 || count > MAX_ERRORS)
		return RD_KAFKA_RESP_ERR__INVALID_ARG;
	for (i = 0; i < count; i++)
		errors[i] = code;
	rd_kafka_mock_push_request_errors_array(cluster, apikey, count, errors);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}
