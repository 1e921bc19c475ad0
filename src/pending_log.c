/*-------------------------------------------------------------------------
 *
 * pending_log.c
 *		The log of a transaction's messages: in memory, then in a file
 *
 * The log grows in memory.  Over pubsub_fdw.publish_buffer_size everything is
 * moved to a temporary file, and memory is used for what comes next.  So the
 * head of the log is in the file and its tail in memory, records are never
 * split, and to cut the tail is arithmetic that cannot fail in an abort.
 *
 * fd.c's files are used directly, with positions of our own: BufFile would
 * keep a state that an error in the middle of a write leaves unusable.
 *
 * IDENTIFICATION
 *		src/pending_log.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

#include "pending.h"

/*
 * A message in the log.  Behind it follow the lengths of name and value of
 * each header, and then the bytes: data, key, headers.  Length -1 = absent.
 */
typedef struct LogRecord
{
	PubsubTarget *target;
	Size		size;			/* of it all, MAXALIGNed */
	int64		time_ms;
	int32		partition;
	int32		data_len;
	int32		key_len;
	int32		nheaders;
	int32		header_len[FLEXIBLE_ARRAY_MEMBER];
} LogRecord;

/* How much of the file is read or written at a time */
#define IO_SIZE ((Size) 1024 * 1024)

/* The current transaction's log */
typedef struct MessageLog
{
	File		file;			/* 0 = none */
	int64		file_size;		/* positions before this are in the file */
	char	   *buffer;			/* the rest */
	Size		used;
	Size		allocated;

	/* for reading: a copy of a part of the file, headers of a message */
	char	   *window;
	Size		window_allocated;
	int64		window_start;
	Size		window_len;
	PubsubHeader *headers;
	int			max_headers;
} MessageLog;

static MessageLog message_log;

static Size record_size(const PubsubMessage *message);
static LogRecord *reserve(MemoryContext cxt, Size size);
static void spill(void);
static const char *fetch(int64 position, Size size);

/*
 * pubsub_log_append
 *	  Appends a copy of a message.
 */
void
pubsub_log_append(MemoryContext cxt, PubsubTarget *target,
				  const PubsubMessage *message)
{
	Size		size = record_size(message);
	LogRecord  *record = reserve(cxt, size);
	char	   *bytes = (char *) &record->header_len[2 * message->nheaders];

	record->target = target;
	record->size = size;
	record->time_ms = message->time_ms;
	record->partition = message->partition;
	record->nheaders = message->nheaders;

#define APPEND_BYTES(field_len, field) \
	do { \
		(field_len) = (field).data ? (field).len : -1; \
		if ((field).data) \
		{ \
			memcpy(bytes, (field).data, (field).len); \
			bytes += (field).len; \
		} \
	} while (0)

	APPEND_BYTES(record->data_len, message->data);
	APPEND_BYTES(record->key_len, message->key);
	for (int i = 0; i < message->nheaders; i++)
	{
		APPEND_BYTES(record->header_len[2 * i], message->headers[i].name);
		APPEND_BYTES(record->header_len[2 * i + 1], message->headers[i].value);
	}
#undef APPEND_BYTES

	/* the padding, so that no old memory goes to the file */
	memset(bytes, 0, (char *) record + size - bytes);
	message_log.used += size;
}

static Size
record_size(const PubsubMessage *message)
{
	Size		size = offsetof(LogRecord, header_len) +
		sizeof(int32) * 2 * (Size) message->nheaders;

	if (message->data.data)
		size += message->data.len;
	if (message->key.data)
		size += message->key.len;
	for (int i = 0; i < message->nheaders; i++)
	{
		size += message->headers[i].name.len;
		if (message->headers[i].value.data)
			size += message->headers[i].value.len;
	}
	return MAXALIGN(size);
}

/*
 * reserve
 *	  Makes room for a record at the end of the log.
 */
static LogRecord *
reserve(MemoryContext cxt, Size size)
{
	MessageLog *log = &message_log;
	Size		limit = (Size) pubsub_publish_buffer_size * 1024;

	if (log->used > 0 && log->used + size > limit)
		spill();

	if (log->used + size > log->allocated)
	{
		Size		allocated = Max(log->allocated * 2, 8192);

		allocated = Max(Min(allocated, limit), log->used + size);
		if (log->buffer == NULL)
			log->buffer = MemoryContextAllocHuge(cxt, allocated);
		else
			log->buffer = repalloc_huge(log->buffer, allocated);
		log->allocated = allocated;
	}
	return (LogRecord *) (log->buffer + log->used);
}

/*
 * spill
 *	  Moves what is in memory to the end of the file.
 *
 * An error on the way changes nothing: the file's size is what we say it is.
 */
static void
spill(void)
{
	MessageLog *log = &message_log;
	Size		done = 0;

	if (log->file == 0)
	{
		ResourceOwner oldowner = CurrentResourceOwner;

		PrepareTempTablespaces();

		/* the file must outlive the statement and its subtransaction */
		CurrentResourceOwner = TopTransactionResourceOwner;
		log->file = OpenTemporaryFile(false);
		CurrentResourceOwner = oldowner;
	}

	while (done < log->used)
	{
		int			len = Min(log->used - done, IO_SIZE);

		CHECK_FOR_INTERRUPTS();
		if (FileWrite(log->file, log->buffer + done, len,
					  log->file_size + done, WAIT_EVENT_BUFFILE_WRITE) != len)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to file \"%s\": %m",
							FilePathName(log->file))));
		done += len;
	}
	log->file_size += log->used;
	log->used = 0;
}

int64
pubsub_log_end(void)
{
	return message_log.file_size + message_log.used;
}

/*
 * pubsub_log_truncate
 *	  Forgets the messages from a position on.
 */
void
pubsub_log_truncate(int64 position)
{
	MessageLog *log = &message_log;

	Assert(position <= pubsub_log_end());
	if (position >= log->file_size)
		log->used = position - log->file_size;
	else
	{
		log->file_size = position;
		log->used = 0;
	}
}

/*
 * pubsub_log_read
 *	  Reads the message at a position.
 */
PubsubTarget *
pubsub_log_read(int64 *position, PubsubMessage *message)
{
	MessageLog *log = &message_log;
	const LogRecord *record;
	const char *bytes;

	record = (const LogRecord *) fetch(*position,
									   offsetof(LogRecord, header_len));
	record = (const LogRecord *) fetch(*position, record->size);
	*position += record->size;

	if (record->nheaders > log->max_headers)
	{
		MemoryContext cxt = GetMemoryChunkContext(log->buffer);

		log->headers = MemoryContextAlloc(cxt, sizeof(PubsubHeader) *
										  record->nheaders);
		log->max_headers = record->nheaders;
	}

	memset(message, 0, sizeof(PubsubMessage));
	message->time_ms = record->time_ms;
	message->partition = record->partition;
	message->offset = -1;
	message->headers = log->headers;
	message->nheaders = record->nheaders;
	bytes = (const char *) &record->header_len[2 * record->nheaders];

#define TAKE_BYTES(field, field_len) \
	do { \
		(field).data = (field_len) < 0 ? NULL : bytes; \
		(field).len = Max((field_len), 0); \
		bytes += (field).len; \
	} while (0)

	TAKE_BYTES(message->data, record->data_len);
	TAKE_BYTES(message->key, record->key_len);
	for (int i = 0; i < record->nheaders; i++)
	{
		TAKE_BYTES(message->headers[i].name, record->header_len[2 * i]);
		TAKE_BYTES(message->headers[i].value, record->header_len[2 * i + 1]);
	}
#undef TAKE_BYTES

	return record->target;
}

/*
 * fetch
 *	  Gives access to size bytes at a position, until the next call.
 */
static const char *
fetch(int64 position, Size size)
{
	MessageLog *log = &message_log;

	if (position >= log->file_size)
		return log->buffer + (position - log->file_size);

	if (position < log->window_start ||
		position + size > log->window_start + log->window_len)
	{
		Size		len = Min(Max(size, IO_SIZE), log->file_size - position);
		Size		done = 0;

		if (len > log->window_allocated)
		{
			MemoryContext cxt = GetMemoryChunkContext(log->buffer);

			if (log->window)
				pfree(log->window);
			log->window = NULL;
			log->window_allocated = 0;
			log->window = MemoryContextAllocHuge(cxt, len);
			log->window_allocated = len;
		}
		while (done < len)
		{
			int			n = FileRead(log->file, log->window + done,
									 Min(len - done, IO_SIZE),
									 position + done, WAIT_EVENT_BUFFILE_READ);

			if (n < 0)
				ereport(ERROR,
						(errcode_for_file_access(),
						 errmsg("could not read from file \"%s\": %m",
								FilePathName(log->file))));
			if (n == 0)
				elog(ERROR, "unexpected end of file \"%s\"",
					 FilePathName(log->file));
			done += n;
		}
		log->window_start = position;
		log->window_len = len;
	}
	return log->window + (position - log->window_start);
}

/*
 * pubsub_log_close_file
 *	  Closes the file, if there is one.
 */
void
pubsub_log_close_file(void)
{
	if (message_log.file != 0)
		FileClose(message_log.file);
	message_log.file = 0;
}

/*
 * pubsub_log_forget
 *	  The transaction has ended, and takes the memory with it.
 *
 * An open file, which there is at abort only, is its resource owner's.
 */
void
pubsub_log_forget(void)
{
	memset(&message_log, 0, sizeof(message_log));
}
