/*-------------------------------------------------------------------------
 *
 * google_lease.c
 *		The lease table: which messages the session holds, and what is to
 *		become of them
 *
 * A message that was pulled is ours until its lease ends.  The table knows all
 * leases of a session; the main thread adds to it and decides, the thread
 * (google_keeper.c) does what has to be done about it over the network.
 *
 * Everything in the table is malloc'd and protected by its lock.
 *
 * IDENTIFICATION
 *		src/google/google_lease.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "google/google_lease.h"

static GoogleGroup *make_group(GoogleLeases *leases, GoogleHold *hold,
							   GooglePb__ReceivedMessage *const *received,
							   int nreceived);
static void give_back_lease(GoogleLeases *leases, GoogleLease *lease);
static void give_back_group(GoogleLeases *leases, GoogleGroup *group);
static void wake_keeper(GoogleLeases *leases);
static void timespec_from_ms(struct timespec *ts, int64 ms);

/* ---------- life of the table and of the thread ---------- */

bool
google_leases_init(GoogleLeases *leases, GoogleClient *client,
				   PubsubError *error)
{
	pthread_condattr_t attr;

	leases->client = client;
	dlist_init(&leases->groups);
	dlist_init(&leases->due);
	dlist_init(&leases->giving);
	dlist_init(&leases->orphans);
	dlist_init(&leases->acks);

	leases->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (leases->wake_fd < 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "Too many files are open.");
		return false;
	}
	if (pthread_mutex_init(&leases->lock, NULL) != 0)
	{
		google_error_memory(error);
		return false;
	}

	/* neither of the next two can fail with glibc */
	(void) pthread_condattr_init(&attr);
	(void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (pthread_cond_init(&leases->changed, &attr) != 0)
	{
		pthread_condattr_destroy(&attr);
		pthread_mutex_destroy(&leases->lock);
		google_error_memory(error);
		return false;
	}
	pthread_condattr_destroy(&attr);
	leases->made = true;
	return true;
}

/*
 * google_leases_start_thread
 *	  Starts the thread if it is not there.
 */
bool
google_leases_start_thread(GoogleLeases *leases, PubsubError *error)
{
	void	   *keeper;
	sigset_t	all;
	sigset_t	old;
	int			rc;

	if (leases->running)
		return true;

	keeper = google_keeper_create(leases, error);
	if (keeper == NULL)
		return false;

	/* PostgreSQL's signal handlers are for the main thread only */
	sigfillset(&all);
	(void) pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&leases->thread, NULL, google_keeper_main, keeper);
	(void) pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
	{
		google_keeper_destroy(keeper);
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "A thread could not be started: %s.", strerror(rc));
		return false;
	}
	leases->running = true;
	return true;
}

/*
 * google_leases_stop
 *	  Gives back what is held, ends the thread, and frees the table.
 *
 * The thread gets bound_ms to do what is left to do.  False: it did not end
 * (which would be a bug), and what it uses must not be freed.
 */
bool
google_leases_stop(GoogleLeases *leases, int bound_ms)
{
	dlist_mutable_iter iter;
	int64		end = google_now_ms() + bound_ms;
	bool		ended = true;

	if (!leases->made)
	{
		if (leases->wake_fd >= 0)
			close(leases->wake_fd);
		leases->wake_fd = -1;
		return true;
	}

	pthread_mutex_lock(&leases->lock);
	dlist_foreach_modify(iter, &leases->groups)
		give_back_group(leases, dlist_container(GoogleGroup, node, iter.cur));
	leases->stop = true;
	leases->stop_at = end;
	if (leases->running)
	{
		struct timespec until;

		/* half a second more, for what may be under way in libcurl */
		end += 500;
		timespec_from_ms(&until, end);
		wake_keeper(leases);
		while (!leases->ended && google_now_ms() < end)
			(void) pthread_cond_timedwait(&leases->changed, &leases->lock,
										  &until);
		ended = leases->ended;
	}
	pthread_mutex_unlock(&leases->lock);
	if (!ended)
	{
		(void) pthread_detach(leases->thread);
		return false;
	}
	if (leases->running)
		(void) pthread_join(leases->thread, NULL);
	leases->running = false;

	/* no other thread any more */
	dlist_foreach_modify(iter, &leases->orphans)
		google_orphan_free(dlist_container(GoogleOrphan, node, iter.cur));
	dlist_foreach_modify(iter, &leases->acks)
		google_call_free(dlist_container(GoogleCall, node, iter.cur));
	dlist_foreach_modify(iter, &leases->groups)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, node, iter.cur);

		google_hold_unref_locked(group->hold);
		free(group);
	}
	pthread_cond_destroy(&leases->changed);
	pthread_mutex_destroy(&leases->lock);
	close(leases->wake_fd);
	leases->wake_fd = -1;
	leases->made = false;
	return true;
}

/* Lock held. */
static void
wake_keeper(GoogleLeases *leases)
{
	uint64		one = 1;

	leases->sleep_until = 0;
	(void) !write(leases->wake_fd, &one, sizeof(one));
}

static void
timespec_from_ms(struct timespec *ts, int64 ms)
{
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = (ms % 1000) * 1000000;
}

/* ---------- holds ---------- */

GoogleHold *
google_hold_create(GoogleLeases *leases, const char *subscription)
{
	GoogleHold *hold = calloc(1, sizeof(GoogleHold));

	if (hold == NULL)
		return NULL;
	hold->client = leases->client;
	hold->refs = 1;
	hold->max_ids = GOOGLE_MAX_IDS;
	pubsub_error_clear(&hold->error);
	hold->subscription = strdup(subscription);
	if (hold->subscription == NULL)
	{
		free(hold);
		return NULL;
	}
	return hold;
}

void
google_hold_unref(GoogleLeases *leases, GoogleHold *hold)
{
	if (hold == NULL)
		return;
	pthread_mutex_lock(&leases->lock);
	google_hold_unref_locked(hold);
	pthread_mutex_unlock(&leases->lock);
}

void
google_hold_unref_locked(GoogleHold *hold)
{
	if (--hold->refs > 0)
		return;
	free(hold->subscription);
	free(hold);
}

/* ---------- leases ---------- */

/*
 * google_leases_add
 *	  Registers what a pull has brought.  False = out of memory; the messages
 *	  come again when their lease ends.
 *
 * The lease of a consumer is set to what the table says at once, if the
 * subscription gives another; that of a peek, which is short, only when it has
 * to be extended.
 */
bool
google_leases_add(GoogleLeases *leases, GoogleHold *hold,
				  const GooglePb__PullResponse *response,
				  PubsubMessage *messages)
{
	int64		now = google_now_ms();
	int			n = (int) response->n_received_messages;
	bool		ok = true;

	pthread_mutex_lock(&leases->lock);
	for (int from = 0; from < n;)
	{
		GoogleGroup *group = make_group(leases, hold,
										response->received_messages + from,
										n - from);

		if (group == NULL)
		{
			ok = false;
			break;
		}
		group->received_at = now;
		group->expires_at = now + hold->initial_ms;
		if (hold->consume && hold->initial_ms != hold->deadline_ms)
			group->due_at = now;
		else
			group->due_at = now + (int64) hold->initial_ms * EXTEND_AT / 100;

		from += group->nleases;
		if (messages)
		{
			for (int i = 0; i < group->nleases; i++)
				messages[from - group->nleases + i].lease = &group->leases[i];
			google_lease_schedule(leases, group);
		}
		else
			give_back_group(leases, group);
	}
	pthread_mutex_unlock(&leases->lock);
	return ok;
}

/*
 * make_group
 *	  Makes a group of as many of these messages as one request can name.
 */
static GoogleGroup *
make_group(GoogleLeases *leases, GoogleHold *hold,
		   GooglePb__ReceivedMessage *const *received, int nreceived)
{
	GoogleGroup *group;
	int			n = 0;
	size_t		bytes = 0;
	size_t		text_bytes = 0;
	char	   *text;

	while (n < nreceived && n < hold->max_ids)
	{
		size_t		size = google_field_bytes_size(received[n]->ack_id.len);

		if (n > 0 && bytes + size > GOOGLE_MAX_IDS_BYTES)
			break;
		bytes += size;
		text_bytes += received[n]->ack_id.len;
		n++;
	}
	group = malloc(offsetof(GoogleGroup, leases) + n * sizeof(GoogleLease) +
				   text_bytes);
	if (group == NULL)
		return NULL;
	memset(group, 0, offsetof(GoogleGroup, leases));
	group->hold = hold;
	group->nleases = n;
	group->nlive = n;
	group->ids_bytes = bytes;
	text = (char *) &group->leases[n];
	for (int i = 0; i < n; i++)
	{
		const ProtobufCBinaryData *id = &received[i]->ack_id;

		if (id->len > 0)
			memcpy(text, id->data, id->len);
		group->leases[i].group = group;
		group->leases[i].id = text;
		group->leases[i].id_len = (int) id->len;
		group->leases[i].state = LEASE_HELD;
		text += id->len;
	}
	hold->refs++;
	dlist_push_tail(&leases->groups, &group->node);
	return group;
}

/*
 * google_lease_schedule
 *	  Puts a group where it belongs in the list of those to be extended, if it
 *	  is to be extended at all.
 */
void
google_lease_schedule(GoogleLeases *leases, GoogleGroup *group)
{
	dlist_node *cur;

	if (group->due_at > group->received_at + group->hold->max_lease_ms)
		return;

	/* nearly always it is the last one */
	for (cur = leases->due.head.prev; cur != &leases->due.head;
		 cur = cur->prev)
	{
		if (dlist_container(GoogleGroup, extend_node,
							cur)->due_at <= group->due_at)
			break;
	}
	dlist_insert_after(cur, &group->extend_node);
	group->extend_place = PLACE_LIST;
	if (group->due_at < leases->sleep_until)
		wake_keeper(leases);
}

void
google_leases_give_back(GoogleLeases *leases, PubsubMessage *messages,
						int nmessages)
{
	pthread_mutex_lock(&leases->lock);
	for (int i = 0; i < nmessages; i++)
	{
		if (messages[i].lease == NULL || messages[i].marked)
			continue;
		give_back_lease(leases, messages[i].lease);
		messages[i].lease = NULL;
	}
	pthread_mutex_unlock(&leases->lock);
}

void
google_leases_give_back_all(GoogleLeases *leases, GoogleHold *hold)
{
	dlist_mutable_iter iter;

	pthread_mutex_lock(&leases->lock);
	dlist_foreach_modify(iter, &leases->groups)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, node, iter.cur);

		if (group->hold == hold)
			give_back_group(leases, group);
	}
	pthread_mutex_unlock(&leases->lock);
}

void
google_leases_drop(GoogleLeases *leases, void **lease, int nleases)
{
	pthread_mutex_lock(&leases->lock);
	for (int i = 0; i < nleases; i++)
		give_back_lease(leases, lease[i]);
	pthread_mutex_unlock(&leases->lock);
}

void
google_leases_end(GoogleLeases *leases, GoogleLease **lease, int nleases)
{
	pthread_mutex_lock(&leases->lock);
	for (int i = 0; i < nleases; i++)
		google_lease_gone(leases, lease[i]);
	pthread_mutex_unlock(&leases->lock);
}

/*
 * google_leases_expired
 *	  Counts those of these leases that are known to have ended.
 */
int64
google_leases_expired(GoogleLeases *leases, void **lease, int nleases)
{
	int64		now = google_now_ms();
	int64		n = 0;

	pthread_mutex_lock(&leases->lock);
	for (int i = 0; i < nleases; i++)
	{
		const GoogleLease *l = lease[i];

		if (l->state == LEASE_LOST || l->group->expires_at < now)
			n++;
	}
	pthread_mutex_unlock(&leases->lock);
	return n;
}

/*
 * google_leases_wait
 *	  A step: waits until everything of the hold has been given back.
 */
PubsubStatus
google_leases_wait(GoogleLeases *leases, GoogleHold *hold, int slice_ms,
				   PubsubError *error)
{
	int64		end = google_now_ms() + slice_ms;
	struct timespec until;
	PubsubStatus status = PUBSUB_OK;

	timespec_from_ms(&until, end);
	pthread_mutex_lock(&leases->lock);
	while (hold->ngiving > 0 && google_now_ms() < end)
		(void) pthread_cond_timedwait(&leases->changed, &leases->lock, &until);
	if (hold->ngiving > 0)
		status = PUBSUB_AGAIN;
	else if (hold->failed)
	{
		*error = hold->error;
		status = PUBSUB_FAILED;
	}
	pthread_mutex_unlock(&leases->lock);
	return status;
}

void
google_leases_adopt(GoogleLeases *leases, GoogleOrphan *orphan)
{
	pthread_mutex_lock(&leases->lock);
	orphan->hold->refs++;
	dlist_push_tail(&leases->orphans, &orphan->node);
	wake_keeper(leases);
	pthread_mutex_unlock(&leases->lock);
}

void
google_leases_adopt_ack(GoogleLeases *leases, GoogleCall *call)
{
	pthread_mutex_lock(&leases->lock);
	dlist_push_tail(&leases->acks, &call->node);
	wake_keeper(leases);
	pthread_mutex_unlock(&leases->lock);
}

/* What these two look at never changes. */
const char *
google_lease_id(const GoogleLease *lease, int *len)
{
	*len = lease->id_len;
	return lease->id;
}

GoogleHold *
google_lease_hold(const GoogleLease *lease)
{
	return lease->group->hold;
}

/* ---------- state changes; lock held ---------- */

static void
give_back_lease(GoogleLeases *leases, GoogleLease *lease)
{
	GoogleGroup *group = lease->group;

	if (lease->state == LEASE_LOST)
	{
		google_lease_gone(leases, lease);
		return;
	}
	if (lease->state != LEASE_HELD)
		return;
	lease->state = LEASE_RETURN;
	group->hold->ngiving++;
	if (group->give_place == PLACE_NONE)
	{
		group->give_place = PLACE_LIST;
		dlist_push_tail(&leases->giving, &group->give_node);
		wake_keeper(leases);
	}
}

static void
give_back_group(GoogleLeases *leases, GoogleGroup *group)
{
	group->nlive++;				/* must not go in the middle of this */
	for (int i = 0; i < group->nleases; i++)
		give_back_lease(leases, &group->leases[i]);
	group->nlive--;
	google_group_free_if_done(group);
}

/*
 * google_lease_gone
 *	  Nothing is to be done about this lease any more.  May free the group.
 */
void
google_lease_gone(GoogleLeases *leases, GoogleLease *lease)
{
	GoogleGroup *group = lease->group;

	if (lease->state == LEASE_GONE)
		return;
	if (lease->state == LEASE_RETURN || lease->state == LEASE_RETURNING)
	{
		if (--group->hold->ngiving == 0)
			pthread_cond_broadcast(&leases->changed);
	}
	lease->state = LEASE_GONE;
	group->nlive--;
	google_group_free_if_done(group);
}

void
google_group_free_if_done(GoogleGroup *group)
{
	if (group->nlive > 0 || group->extend_place == PLACE_JOB ||
		group->give_place == PLACE_JOB)
		return;
	if (group->extend_place == PLACE_LIST)
		dlist_delete(&group->extend_node);
	if (group->give_place == PLACE_LIST)
		dlist_delete(&group->give_node);
	dlist_delete(&group->node);
	google_hold_unref_locked(group->hold);
	free(group);
}
