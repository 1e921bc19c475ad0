/*-------------------------------------------------------------------------
 *
 * dummy_subscription.c
 *		Subscriptions of the dummy queue, as files
 *
 * A message without an entry was never looked at.  As dummy_file.c.
 *
 * IDENTIFICATION
 *		test/dummy/dummy_subscription.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "dummy.h"

/* The beginning of a .sub file */
typedef struct DummySubscription
{
	char		topic[256];
	int64		start;			/* offset of its first message */
} DummySubscription;

/*
 * dummy_subscription_create
 *	  Makes a subscription to what will be published to the topic.
 */
int
dummy_subscription_create(const char *dir, const char *name, const char *topic)
{
	DummySubscription info = {0};
	int			fd;

	strlcpy(info.topic, topic, sizeof(info.topic));
	info.start = dummy_topic_high(dir, topic, 0);
	if (info.start < 0)
		return -1;
	fd = dummy_open(dir, name, ".sub", O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return -1;
	return dummy_close(fd, dummy_write_at(fd, &info, sizeof(info), 0));
}

int
dummy_subscription_drop(const char *dir, const char *name)
{
	return dummy_unlink(dir, name, ".sub");
}

int
dummy_subscription_topic(const char *dir, const char *name, char *topic,
						 size_t size)
{
	DummySubscription info;
	int			fd = dummy_open(dir, name, ".sub", O_RDONLY);

	if (fd < 0)
		return -1;
	if (dummy_read_at(fd, &info, sizeof(info), 0) != 0)
		return dummy_close(fd, -1);
	strlcpy(topic, info.topic, size);
	return dummy_close(fd, 0);
}

/*
 * dummy_entry_read
 *	  Reads what the subscription knows about a message.
 *
 * A message that was never looked at has no entry yet; one whose holder died
 * is available again.
 */
static void
dummy_entry_read(int fd, int64 message, DummyEntry *entry)
{
	if (dummy_read_at(fd, entry, sizeof(DummyEntry),
					  sizeof(DummySubscription) +
					  message * sizeof(DummyEntry)) != 0)
		memset(entry, 0, sizeof(DummyEntry));
	if (entry->state == DUMMY_LEASED &&
		kill(entry->owner, 0) != 0 && errno == ESRCH)
		entry->state = DUMMY_WAITING;
}

static int
dummy_entry_write(int fd, int64 message, const DummyEntry *entry)
{
	return dummy_write_at(fd, entry, sizeof(DummyEntry),
						  sizeof(DummySubscription) +
						  message * sizeof(DummyEntry));
}

/*
 * dummy_subscription_take
 *	  Leases the first message that is available; 0 = there is none.
 */
int
dummy_subscription_take(const char *dir, const char *name, int64 lease_id,
						int64 *message, int64 *offset, int *attempts)
{
	DummySubscription info;
	DummyEntry	entry;
	int64		nmessages;
	int64		i;
	int			fd = dummy_open(dir, name, ".sub", O_RDWR);

	if (fd < 0)
		return -1;
	if (dummy_read_at(fd, &info, sizeof(info), 0) != 0)
		return dummy_close(fd, -1);
	nmessages = dummy_topic_high(dir, info.topic, 0) - info.start;
	for (i = 0; i < nmessages; i++)
	{
		dummy_entry_read(fd, i, &entry);
		if (entry.state != DUMMY_WAITING)
			continue;
		entry.state = DUMMY_LEASED;
		entry.owner = (int32) getpid();
		entry.lease_id = lease_id;
		entry.attempts++;
		if (dummy_entry_write(fd, i, &entry) != 0)
			return dummy_close(fd, -1);
		*message = i;
		*offset = info.start + i;
		*attempts = entry.attempts;
		return dummy_close(fd, 1);
	}
	return dummy_close(fd, 0);
}

/*
 * dummy_subscription_settle
 *	  Ends a lease; 0 = it was not valid any more.
 */
int
dummy_subscription_settle(const char *dir, const char *name, int64 message,
						  int64 lease_id, DummyState state)
{
	DummyEntry	entry;
	int			fd = dummy_open(dir, name, ".sub", O_RDWR);

	if (fd < 0)
		return -1;
	dummy_entry_read(fd, message, &entry);
	if (entry.state != DUMMY_LEASED || entry.owner != (int32) getpid() ||
		entry.lease_id != lease_id)
		return dummy_close(fd, 0);
	entry.state = state;
	if (dummy_entry_write(fd, message, &entry) != 0)
		return dummy_close(fd, -1);
	return dummy_close(fd, 1);
}

/*
 * dummy_subscription_count
 *	  Counts the messages in each DummyState.
 */
int
dummy_subscription_count(const char *dir, const char *name, int64 *counts)
{
	DummySubscription info;
	DummyEntry	entry;
	int64		nmessages;
	int64		i;
	int			fd = dummy_open(dir, name, ".sub", O_RDWR);

	if (fd < 0)
		return -1;
	if (dummy_read_at(fd, &info, sizeof(info), 0) != 0)
		return dummy_close(fd, -1);
	nmessages = dummy_topic_high(dir, info.topic, 0) - info.start;
	for (i = 0; i < nmessages; i++)
	{
		dummy_entry_read(fd, i, &entry);
		counts[entry.state]++;
	}
	return dummy_close(fd, 0);
}
