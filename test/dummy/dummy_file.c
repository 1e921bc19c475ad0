/*-------------------------------------------------------------------------
 *
 * dummy_file.c
 *		Topics of the dummy brokers, as files
 *
 * Files are open for the length of a call only, and changed under flock(), so
 * that sessions can share them.  Plain C: no function here touches the
 * server's memory or raises an error.
 *
 * IDENTIFICATION
 *		test/dummy/dummy_file.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "dummy.h"

#define DUMMY_MAX_PARTITIONS 64

/* The whole of a .topic file */
typedef struct DummyTopic
{
	int64		npartitions;
	int64		low[DUMMY_MAX_PARTITIONS];
} DummyTopic;

/* The beginning of a record in a .log file; the bytes follow */
typedef struct DummyRecord
{
	int32		data_len;		/* -1 = absent, here and below */
	int32		key_len;
	int32		nheaders;		/* that many pairs of lengths follow */
} DummyRecord;

/*
 * dummy_path
 *	  Makes the path of a file of the broker.
 *
 * Of names in the manner of Pub/Sub only the last part counts.
 */
static void
dummy_path(char *path, const char *dir, const char *name, const char *suffix)
{
	const char *slash = strrchr(name, '/');

	snprintf(path, MAXPGPATH, "%s/%s%s", dir, slash ? slash + 1 : name,
			 suffix);
}

int
dummy_open(const char *dir, const char *name, const char *suffix, int flags)
{
	char		path[MAXPGPATH];
	int			fd;

	dummy_path(path, dir, name, suffix);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0 && (flags & O_ACCMODE) == O_RDWR)
	{
		while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
			;
	}
	return fd;
}

static int
dummy_open_partition(const char *dir, const char *topic, int partition,
					 const char *suffix, int flags)
{
	char		full[64];

	snprintf(full, sizeof(full), ".%d.%s", partition, suffix);
	return dummy_open(dir, topic, full, flags);
}

/*
 * dummy_close
 *	  Closes a file, keeps errno, returns rc.
 */
int
dummy_close(int fd, int rc)
{
	int			save_errno = errno;

	close(fd);
	errno = save_errno;
	return rc;
}

int
dummy_read_at(int fd, void *buffer, size_t length, off_t position)
{
	ssize_t		n = pread(fd, buffer, length, position);

	if (n == (ssize_t) length)
		return 0;
	if (n >= 0)
		errno = ERANGE;
	return -1;
}

int
dummy_write_at(int fd, const void *buffer, size_t length, off_t position)
{
	ssize_t		n = pwrite(fd, buffer, length, position);

	if (n == (ssize_t) length)
		return 0;
	if (n >= 0)
		errno = ENOSPC;
	return -1;
}

static off_t
dummy_size(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_size : 0;
}

static int
dummy_topic_read(const char *dir, const char *topic, DummyTopic *info)
{
	int			fd = dummy_open(dir, topic, ".topic", O_RDONLY);

	if (fd < 0)
		return -1;
	return dummy_close(fd, dummy_read_at(fd, info, sizeof(DummyTopic), 0));
}

/*
 * dummy_topic_create
 *	  Makes an empty topic, and the directory if need be.
 */
int
dummy_topic_create(const char *dir, const char *topic, int npartitions)
{
	DummyTopic	info = {0};
	int			fd;
	int			i;

	if (npartitions > DUMMY_MAX_PARTITIONS)
	{
		errno = EINVAL;
		return -1;
	}
	(void) mkdir(dir, 0700);
	fd = dummy_open(dir, topic, ".topic", O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return -1;
	info.npartitions = npartitions;
	if (dummy_write_at(fd, &info, sizeof(info), 0) != 0)
		return dummy_close(fd, -1);
	(void) dummy_close(fd, 0);

	for (i = 0; i < npartitions; i++)
	{
		fd = dummy_open_partition(dir, topic, i, "idx",
								  O_RDWR | O_CREAT | O_TRUNC);
		if (fd < 0)
			return -1;
		(void) dummy_close(fd, 0);
		fd = dummy_open_partition(dir, topic, i, "log",
								  O_RDWR | O_CREAT | O_TRUNC);
		if (fd < 0)
			return -1;
		(void) dummy_close(fd, 0);
	}
	return 0;
}

int
dummy_unlink(const char *dir, const char *name, const char *suffix)
{
	char		path[MAXPGPATH];

	dummy_path(path, dir, name, suffix);
	return unlink(path);
}

int
dummy_topic_drop(const char *dir, const char *topic)
{
	DummyTopic	info;
	int			i;

	if (dummy_topic_read(dir, topic, &info) != 0)
		return -1;
	for (i = 0; i < info.npartitions; i++)
	{
		char		suffix[64];

		snprintf(suffix, sizeof(suffix), ".%d.idx", i);
		(void) dummy_unlink(dir, topic, suffix);
		snprintf(suffix, sizeof(suffix), ".%d.log", i);
		(void) dummy_unlink(dir, topic, suffix);
	}
	return dummy_unlink(dir, topic, ".topic");
}

int
dummy_topic_partitions(const char *dir, const char *topic)
{
	DummyTopic	info;

	if (dummy_topic_read(dir, topic, &info) != 0)
		return -1;
	return (int) info.npartitions;
}

/*
 * dummy_topic_low
 *	  Returns the first offset that exists.
 */
int64
dummy_topic_low(const char *dir, const char *topic, int partition)
{
	DummyTopic	info;

	if (dummy_topic_read(dir, topic, &info) != 0)
		return -1;
	return info.low[partition];
}

/*
 * dummy_topic_high
 *	  Returns the offset that the next record will have.
 */
int64
dummy_topic_high(const char *dir, const char *topic, int partition)
{
	int			fd = dummy_open_partition(dir, topic, partition, "idx",
										  O_RDONLY);
	int64		high;

	if (fd < 0)
		return -1;
	high = dummy_size(fd) / sizeof(DummyIndex);
	(void) dummy_close(fd, 0);
	return high;
}

/*
 * dummy_topic_truncate
 *	  Raises the first offset that exists, as retention does.
 */
int
dummy_topic_truncate(const char *dir, const char *topic, int partition,
					 int64 low)
{
	DummyTopic	info;
	int			fd = dummy_open(dir, topic, ".topic", O_RDWR);
	int			rc;

	if (fd < 0)
		return -1;
	rc = dummy_read_at(fd, &info, sizeof(info), 0);
	if (rc == 0)
	{
		info.low[partition] = low;
		rc = dummy_write_at(fd, &info, sizeof(info), 0);
	}
	return dummy_close(fd, rc);
}

/*
 * dummy_append
 *	  Adds a record, given as its bytes, to a partition.
 */
static int
dummy_append(const char *dir, const char *topic, int partition,
			 const char *bytes, DummyIndex *index)
{
	int			idx = dummy_open_partition(dir, topic, partition, "idx",
										   O_RDWR);
	int			log;
	int			rc;

	if (idx < 0)
		return -1;
	log = dummy_open_partition(dir, topic, partition, "log", O_RDWR);
	if (log < 0)
		return dummy_close(idx, -1);

	index->position = dummy_size(log);
	rc = dummy_write_at(log, bytes, index->length, index->position);
	if (rc == 0)
		rc = dummy_write_at(idx, index, sizeof(DummyIndex), dummy_size(idx));
	rc = dummy_close(log, rc);
	return dummy_close(idx, rc);
}

static char *
dummy_put_bytes(char *p, const PubsubBytes *bytes)
{
	if (bytes->data == NULL || bytes->len == 0)
		return p;
	memcpy(p, bytes->data, bytes->len);
	return p + bytes->len;
}

static int32
dummy_length(const PubsubBytes *bytes)
{
	return bytes->data == NULL ? -1 : bytes->len;
}

/*
 * dummy_record_append
 *	  Adds a message to a partition.
 */
int
dummy_record_append(const char *dir, const char *topic, int partition,
					const PubsubMessage *message)
{
	DummyIndex	index = {0};
	DummyRecord record;
	size_t		length = sizeof(DummyRecord);
	char	   *bytes;
	char	   *p;
	int			i;
	int			rc;

	record.data_len = dummy_length(&message->data);
	record.key_len = dummy_length(&message->key);
	record.nheaders = message->nheaders;
	length += Max(record.data_len, 0) + Max(record.key_len, 0);
	for (i = 0; i < message->nheaders; i++)
		length += 2 * sizeof(int32) +
			Max(dummy_length(&message->headers[i].name), 0) +
			Max(dummy_length(&message->headers[i].value), 0);

	bytes = malloc(length);
	if (bytes == NULL)
	{
		errno = ENOMEM;
		return -1;
	}
	memcpy(bytes, &record, sizeof(record));
	p = bytes + sizeof(record);
	for (i = 0; i < message->nheaders; i++)
	{
		int32		lengths[2];

		lengths[0] = dummy_length(&message->headers[i].name);
		lengths[1] = dummy_length(&message->headers[i].value);
		memcpy(p, lengths, sizeof(lengths));
		p += sizeof(lengths);
	}
	p = dummy_put_bytes(p, &message->data);
	p = dummy_put_bytes(p, &message->key);
	for (i = 0; i < message->nheaders; i++)
	{
		p = dummy_put_bytes(p, &message->headers[i].name);
		p = dummy_put_bytes(p, &message->headers[i].value);
	}

	index.length = (int32) length;
	index.time_ms = message->time_ms;
	index.time_us = message->time_us;
	if (message->time_ms == PUBSUB_NO_TIME)
	{
		struct timeval now;

		gettimeofday(&now, NULL);
		index.time_ms = (int64) now.tv_sec * 1000 + now.tv_usec / 1000;
		index.time_us = now.tv_usec % 1000;
	}
	rc = dummy_append(dir, topic, partition, bytes, &index);
	free(bytes);
	return rc;
}

/*
 * dummy_record_append_control
 *	  Adds a record that takes an offset and is not a message.
 */
int
dummy_record_append_control(const char *dir, const char *topic, int partition)
{
	DummyIndex	index = {0};

	index.control = 1;
	return dummy_append(dir, topic, partition, "", &index);
}

/*
 * dummy_record_index
 *	  Looks up a record; ERANGE if there is none yet.
 */
int
dummy_record_index(const char *dir, const char *topic, int partition,
				   int64 offset, DummyIndex *index)
{
	int			fd = dummy_open_partition(dir, topic, partition, "idx",
										  O_RDONLY);

	if (fd < 0)
		return -1;
	return dummy_close(fd, dummy_read_at(fd, index, sizeof(DummyIndex),
										 offset * sizeof(DummyIndex)));
}

static char *
dummy_get_bytes(char *p, int32 length, bool wanted, PubsubBytes *bytes)
{
	if (length < 0)
		return p;
	if (wanted)
	{
		bytes->data = p;
		bytes->len = length;
	}
	return p + length;
}

/*
 * dummy_record_read
 *	  Reads a message.
 *
 * Returns the memory that it points to, to be freed, or NULL.  What is not
 * wanted is left out, so that a reader that forgot to ask sees it.
 */
void *
dummy_record_read(const char *dir, const char *topic, int partition,
				  int64 offset, uint32 wants, PubsubMessage *message)
{
	DummyIndex	index;
	DummyRecord record;
	PubsubHeader *headers;
	size_t		headers_size;
	char	   *memory;
	char	   *lengths;
	char	   *p;
	int			fd;
	int			i;

	if (dummy_record_index(dir, topic, partition, offset, &index) != 0)
		return NULL;
	fd = dummy_open_partition(dir, topic, partition, "log", O_RDONLY);
	if (fd < 0)
		return NULL;
	if (dummy_read_at(fd, &record, sizeof(record), index.position) != 0)
	{
		(void) dummy_close(fd, -1);
		return NULL;
	}
	headers_size = record.nheaders * sizeof(PubsubHeader);
	memory = calloc(1, headers_size + index.length + strlen(topic) + 32);
	if (memory == NULL ||
		dummy_read_at(fd, memory + headers_size, index.length,
					  index.position) != 0)
	{
		free(memory);
		(void) dummy_close(fd, -1);
		return NULL;
	}
	(void) dummy_close(fd, 0);

	memset(message, 0, sizeof(PubsubMessage));
	headers = (PubsubHeader *) memory;
	lengths = memory + headers_size + sizeof(DummyRecord);
	p = lengths + record.nheaders * 2 * sizeof(int32);
	p = dummy_get_bytes(p, record.data_len, (wants & PUBSUB_WANT_DATA) != 0,
						&message->data);
	p = dummy_get_bytes(p, record.key_len, (wants & PUBSUB_WANT_KEY) != 0,
						&message->key);
	for (i = 0; i < record.nheaders; i++)
	{
		int32		length[2];

		memcpy(length, lengths + i * sizeof(length), sizeof(length));
		p = dummy_get_bytes(p, length[0], true, &headers[i].name);
		p = dummy_get_bytes(p, length[1], true, &headers[i].value);
	}
	if ((wants & PUBSUB_WANT_HEADERS) != 0)
	{
		message->headers = headers;
		message->nheaders = record.nheaders;
	}
	message->time_ms = PUBSUB_NO_TIME;
	if ((wants & PUBSUB_WANT_TIME) != 0)
	{
		message->time_ms = index.time_ms;
		message->time_us = index.time_us;
	}
	message->topic.data = memcpy(p, topic, strlen(topic));
	message->topic.len = strlen(topic);
	p += strlen(topic);
	message->message_id.len = snprintf(p, 32, INT64_FORMAT, offset + 1);
	message->message_id.data = p;
	message->partition = partition;
	message->offset = offset;
	return memory;
}

/*
 * dummy_remove
 *	  Removes a broker with all that it holds.
 */
int
dummy_remove(const char *dir)
{
	DIR		   *d = opendir(dir);
	struct dirent *entry;

	if (d == NULL)
		return errno == ENOENT ? 0 : -1;
	while ((entry = readdir(d)) != NULL)
	{
		const char *dot = strrchr(entry->d_name, '.');

		if (dot != NULL &&
			(strcmp(dot, ".topic") == 0 || strcmp(dot, ".idx") == 0 ||
			 strcmp(dot, ".log") == 0 || strcmp(dot, ".sub") == 0))
			(void) dummy_unlink(dir, entry->d_name, "");
	}
	closedir(d);
	return rmdir(dir);
}
