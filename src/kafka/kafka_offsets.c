/*-------------------------------------------------------------------------
 *
 * kafka_offsets.c
 *		The first half of a source: which partitions and offsets there are
 *
 * The order of calls at the start of a read matters: topic metadata, first
 * offsets, end offsets.  Only metadata tells at once that a topic does not
 * exist, and with the leaders known by it a start at an absolute offset waits
 * for no timer of the library.  Offsets are asked for all partitions at once.
 *
 * IDENTIFICATION
 *		src/kafka/kafka_offsets.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "kafka_source.h"

static KafkaHandle *open_handle(KafkaSource *source, rd_kafka_conf_t *conf,
								PubsubError *error);
static PubsubStatus take_metadata(KafkaSource *source, int slice_ms,
								  PubsubError *error);
static PubsubStatus open_uncommitted(KafkaSource *source, int slice_ms,
									 PubsubError *error);
static PubsubStatus query_offsets(KafkaSource *source, KafkaHandle *handle,
								  int64 time_ms, int slice_ms,
								  const PubsubRange *ranges, int nranges,
								  int64 *offsets, PubsubError *error);

/*
 * kafka_source_resolve
 *		A step: connects, and learns the partitions and their offsets
 *
 * The first offsets are asked for before the ends, since the ends only grow:
 * so low <= high, whatever retention deletes in the meantime.
 */
PubsubStatus
kafka_source_resolve(PubsubSource *base, int slice_ms, PubsubRanges *ranges,
					 PubsubError *error)
{
	KafkaSource *source = (KafkaSource *) base;
	const rd_kafka_conf_t *conf;
	PubsubStatus status = PUBSUB_OK;

	switch (source->step)
	{
		case RESOLVE_CONNECT:
			source->handle = open_handle(source, source->conf, error);
			source->conf = NULL;
			if (source->handle == NULL)
				return PUBSUB_FAILED;
			conf = rd_kafka_conf(source->handle->rk);
			source->max_messages =
				kafka_conf_get_int(conf, "queued.min.messages");
			source->max_bytes =
				kafka_conf_get_int(conf, "queued.max.messages.kbytes") * 1024;
			source->step = RESOLVE_METADATA;
			/* FALLTHROUGH */

		case RESOLVE_METADATA:
			status = take_metadata(source, slice_ms, error);
			if (status != PUBSUB_OK)
				return status;
			source->step = RESOLVE_LOW;
			/* FALLTHROUGH */

		case RESOLVE_LOW:
			status = query_offsets(source, source->handle, KAFKA_TIME_EARLIEST,
								   slice_ms, source->ranges,
								   source->npartitions, source->offsets,
								   error);
			if (status != PUBSUB_OK)
				break;
			for (int i = 0; i < source->npartitions; i++)
				source->ranges[i].low = source->offsets[i];
			source->step = RESOLVE_HIGH;
			/* FALLTHROUGH */

		case RESOLVE_HIGH:
			status = query_offsets(source, source->handle, KAFKA_TIME_LATEST,
								   slice_ms, source->ranges,
								   source->npartitions, source->offsets,
								   error);
			if (status != PUBSUB_OK)
				break;
			for (int i = 0; i < source->npartitions; i++)
			{
				PubsubRange *range = &source->ranges[i];

				range->high = Max(source->offsets[i], range->low);
				range->start = range->low;
				range->end = range->high;
				range->done = false;
			}
			break;
	}

	/* after a failed look-up the leaders may be others */
	source->step = RESOLVE_METADATA;
	if (status == PUBSUB_OK)
	{
		ranges->nranges = source->npartitions;
		ranges->ranges = source->ranges;
		ranges->topic = NULL;
	}
	return status;
}

/*
 * open_handle
 *		Starts a handle with a queue and the topic; takes conf over
 */
static KafkaHandle *
open_handle(KafkaSource *source, rd_kafka_conf_t *conf, PubsubError *error)
{
	KafkaHandle *handle;

	handle = kafka_handle_open(RD_KAFKA_CONSUMER, conf,
							   source->base.session->options, error);
	if (handle == NULL)
		return NULL;
	kafka_handle_add_queue(handle);
	handle->topic = rd_kafka_topic_new(handle->rk, source->topic, NULL);
	if (handle->topic != NULL)
		return handle;
	kafka_error_set(error, rd_kafka_last_error(), NULL);
	kafka_error_object(error, source->topic, -1);
	kafka_handle_close(handle);
	return NULL;
}

/*
 * take_metadata
 *		Makes the array of ranges, one for each partition there is
 */
static PubsubStatus
take_metadata(KafkaSource *source, int slice_ms, PubsubError *error)
{
	const rd_kafka_metadata_t *metadata;
	PubsubStatus status;
	int			n;

	status = kafka_topic_metadata(source->handle, source->handle->topic,
								  slice_ms, &metadata, error);
	if (status != PUBSUB_OK)
		return status;
	n = metadata->topics[0].partition_cnt;
	rd_kafka_metadata_destroy(metadata);

	/* partitions are numbered from 0 without a gap */
	free(source->ranges);
	free(source->offsets);
	source->npartitions = 0;
	source->ranges = calloc(n, sizeof(PubsubRange));
	source->offsets = calloc(n, sizeof(int64));
	if (source->ranges == NULL || source->offsets == NULL)
		return kafka_error_memory(error);
	source->npartitions = n;
	for (int i = 0; i < n; i++)
		source->ranges[i].partition = i;
	return PUBSUB_OK;
}

/*
 * kafka_source_lookup
 *		A step: looks up one offset in every range's partition
 */
PubsubStatus
kafka_source_lookup(PubsubSource *base, int slice_ms, PubsubLookup what,
					int64 time_ms, const PubsubRanges *ranges, int64 *offsets,
					PubsubError *error)
{
	KafkaSource *source = (KafkaSource *) base;
	KafkaHandle *handle = source->handle;

	if (what == PUBSUB_LOOKUP_TIME)
		time_ms = Max(time_ms, 0);	/* negative times have other meanings */
	else
	{
		time_ms = KAFKA_TIME_LATEST;
		if (source->read_committed)
		{
			PubsubStatus status = open_uncommitted(source, slice_ms,
												   error);

			if (status != PUBSUB_OK)
				return status;
			handle = source->uncommitted;
		}
	}
	return query_offsets(source, handle, time_ms, slice_ms, ranges->ranges,
						 ranges->nranges, offsets, error);
}

/*
 * open_uncommitted
 *		A step: makes sure of a handle that sees open transactions
 */
static PubsubStatus
open_uncommitted(KafkaSource *source, int slice_ms, PubsubError *error)
{
	const rd_kafka_metadata_t *metadata;
	rd_kafka_conf_t *conf;
	PubsubStatus status;

	if (source->uncommitted == NULL)
	{
		conf = rd_kafka_conf_dup(rd_kafka_conf(source->handle->rk));
		(void) rd_kafka_conf_set(conf, "isolation.level", "read_uncommitted",
								 NULL, 0);
		source->uncommitted = open_handle(source, conf, error);
		if (source->uncommitted == NULL)
			return PUBSUB_FAILED;
	}
	if (source->uncommitted->connected)
		return PUBSUB_OK;
	status = kafka_topic_metadata(source->uncommitted,
								  source->uncommitted->topic, slice_ms,
								  &metadata, error);
	if (status == PUBSUB_OK)
		rd_kafka_metadata_destroy(metadata);
	return status;
}

/*
 * query_offsets
 *		A step: one request to each leader, for all its partitions
 */
static PubsubStatus
query_offsets(KafkaSource *source, KafkaHandle *handle, int64 time_ms,
			  int slice_ms, const PubsubRange *ranges, int nranges,
			  int64 *offsets, PubsubError *error)
{
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t code;
	int32		partition = -1;

	if (nranges == 0)
		return PUBSUB_OK;

	list = rd_kafka_topic_partition_list_new(nranges);
	for (int i = 0; i < nranges; i++)
		rd_kafka_topic_partition_list_add(list, source->topic,
										  ranges[i].partition)->offset = time_ms;
	code = rd_kafka_offsets_for_times(handle->rk, list,
									  kafka_handle_timeout(handle, slice_ms));
	kafka_handle_serve(handle);

	/* if the call failed the offsets are still what went in */
	for (int i = 0; i < nranges; i++)
	{
		const rd_kafka_topic_partition_t *element = &list->elems[i];

		if (element->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		{
			code = element->err;
			partition = element->partition;
			break;
		}
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
			offsets[i] = element->offset;
	}
	rd_kafka_topic_partition_list_destroy(list);

	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		kafka_cause_clear(handle);
		return PUBSUB_OK;
	}
	if (partition < 0 && kafka_error_is_transient(code))
	{
		if (code == RD_KAFKA_RESP_ERR__TIMED_OUT)
			handle->ntimeouts++;
		return kafka_cause_get(handle, error);
	}

	kafka_error_set(error, code, NULL);
	kafka_error_object(error, source->topic, partition);

	/* metadata just had the topic, so what is unknown is not yet known */
	if (!kafka_error_is_transient(code) && error->kind != PUBSUB_ERROR_NOT_FOUND)
		return PUBSUB_FAILED;
	rd_kafka_poll(handle->rk, Min(slice_ms, 50));
	return PUBSUB_AGAIN;
}
