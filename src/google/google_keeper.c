/*-------------------------------------------------------------------------
 *
 * google_keeper.c
 *		The thread that keeps leases alive
 *
 * The backend may be busy for longer than a lease lasts with anything, so a
 * thread of the session extends the leases in time, until the transaction
 * acknowledges the messages, gives them back, or max_lease has passed.
 *
 * All that must happen when nobody waits for it is the thread's work, too:
 * giving messages back, pulls in flight whose reader has gone (what they bring
 * is given back at once), acknowledgements that COMMIT could not wait for.
 *
 * It runs nothing of PostgreSQL: no palloc, no elog, no latch.  It has all
 * signals blocked, connections of its own, and ends before the session does.
 * The lock of the table is released for the sleep only.
 *
 * IDENTIFICATION
 *		src/google/google_keeper.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <poll.h>
#include <unistd.h>

#include "google/google_lease.h"

/* A request takes along what is due within this part of a lease, in percent */
#define EXTEND_AHEAD		10

/* Requests in flight at a time */
#define MAX_JOBS			4

/* For so long we try to give something back, in ms */
#define GIVE_BACK_FOR		10000

/* ... or to send an acknowledgement that was left to us */
#define ACKNOWLEDGE_FOR		60000

/* Orphaned pulls that we sleep on; more of them we look at now and then */
#define MAX_WATCHED			14
#define BLIND_POLL_MS		20

typedef enum JobKind
{
	JOB_EXTEND,
	JOB_GIVE_BACK,
	JOB_ACKNOWLEDGE
} JobKind;

/* A request under way */
typedef struct Job
{
	dlist_node	node;
	JobKind		kind;
	GoogleCall *call;
	GoogleHold *hold;			/* NULL: JOB_ACKNOWLEDGE */
	dlist_head	groups;
} Job;

typedef struct Keeper
{
	GoogleLeases *leases;
	GoogleHttp *http;
	dlist_head	jobs;
	int			njobs;
	dlist_head	orphans;		/* those taken over */
} Keeper;

static bool work_left(Keeper *keeper);
static int	sleep_time(Keeper *keeper, int64 now);
static void sleep_until_work(Keeper *keeper, int timeout_ms);
static void start_jobs(Keeper *keeper, int64 now);
static bool start_extending(Keeper *keeper, int64 now);
static bool start_giving_back(Keeper *keeper, int64 now);
static bool start_acknowledging(Keeper *keeper, int64 now);
static int	count_leases(const GoogleGroup *group, LeaseState state);
static void finish_jobs(Keeper *keeper);
static void finish_job(Keeper *keeper, Job *job, bool ok);
static void finish_extending(GoogleLeases *leases, Job *job, bool ok);
static void mark_lost(Job *job, const GooglePb__ErrorInfo *info);
static void finish_giving_back(GoogleLeases *leases, Job *job, bool ok);
static void check_orphans(Keeper *keeper);

/*
 * google_keeper_create
 *	  Makes what the thread will need; the main thread does that.
 */
void *
google_keeper_create(GoogleLeases *leases, PubsubError *error)
{
	Keeper	   *keeper = calloc(1, sizeof(Keeper));

	if (keeper == NULL)
	{
		google_error_memory(error);
		return NULL;
	}
	keeper->leases = leases;
	dlist_init(&keeper->jobs);
	dlist_init(&keeper->orphans);
	keeper->http = google_http_create(leases->client, error);
	if (keeper->http == NULL)
	{
		free(keeper);
		return NULL;
	}
	return keeper;
}

void
google_keeper_destroy(void *arg)
{
	Keeper	   *keeper = arg;

	google_http_destroy(keeper->http);
	free(keeper);
}

/*
 * google_keeper_main
 *	  The thread.
 */
void *
google_keeper_main(void *arg)
{
	Keeper	   *keeper = arg;
	GoogleLeases *leases = keeper->leases;
	dlist_mutable_iter iter;

	pthread_mutex_lock(&leases->lock);
	for (;;)
	{
		int64		now = google_now_ms();
		int			timeout;

		while (!dlist_is_empty(&leases->orphans))
			dlist_push_tail(&keeper->orphans,
							dlist_pop_head_node(&leases->orphans));
		if (leases->stop && (now >= leases->stop_at || !work_left(keeper)))
			break;

		start_jobs(keeper, now);
		timeout = sleep_time(keeper, now);
		leases->sleep_until = now + timeout;
		pthread_mutex_unlock(&leases->lock);

		sleep_until_work(keeper, timeout);

		pthread_mutex_lock(&leases->lock);
		finish_jobs(keeper);
		check_orphans(keeper);
	}

	/* what could not be done comes again when its lease ends */
	dlist_foreach_modify(iter, &keeper->jobs)
		finish_job(keeper, dlist_container(Job, node, iter.cur), false);
	dlist_foreach_modify(iter, &keeper->orphans)
		google_orphan_free(dlist_container(GoogleOrphan, node, iter.cur));
	google_keeper_destroy(keeper);

	leases->ended = true;
	pthread_cond_broadcast(&leases->changed);
	pthread_mutex_unlock(&leases->lock);
	return NULL;
}

/* Is there anything that is worth a wait at the end of the session? */
static bool
work_left(Keeper *keeper)
{
	return keeper->njobs > 0 || !dlist_is_empty(&keeper->orphans) ||
		!dlist_is_empty(&keeper->leases->giving) ||
		!dlist_is_empty(&keeper->leases->acks);
}

/*
 * sleep_time
 *	  How long the thread may sleep, in ms, if nobody wakes it.
 */
static int
sleep_time(Keeper *keeper, int64 now)
{
	GoogleLeases *leases = keeper->leases;
	int64		until = now + 60000;
	dlist_iter	iter;

	dlist_foreach(iter, &keeper->jobs)
	{
		/* could not even be started */
		if (dlist_container(Job, node,
							iter.cur)->call->state == GOOGLE_CALL_FAILED)
			return 0;
	}
	if (leases->stop)
		until = leases->stop_at;
	else if (keeper->njobs < MAX_JOBS && !dlist_is_empty(&leases->due))
		until = Min(until, dlist_container(GoogleGroup, extend_node,
										   leases->due.head.next)->due_at);
	return (int) Max(until - now, 1);
}

static void
sleep_until_work(Keeper *keeper, int timeout_ms)
{
	struct pollfd fds[2 + MAX_WATCHED];
	int			n = 2;
	uint64		count;
	dlist_iter	iter;

	fds[0].fd = keeper->leases->wake_fd;
	fds[1].fd = google_http_fd(keeper->http);
	dlist_foreach(iter, &keeper->orphans)
	{
		if (n == lengthof(fds))
		{
			timeout_ms = Min(timeout_ms, BLIND_POLL_MS);
			break;
		}
		fds[n++].fd = google_http_fd(dlist_container(GoogleOrphan, node,
													 iter.cur)->http);
	}
	for (int i = 0; i < n; i++)
		fds[i].events = POLLIN;
	(void) poll(fds, n, timeout_ms);

	(void) !read(keeper->leases->wake_fd, &count, sizeof(count));
	google_http_run(keeper->http, 0);
	dlist_foreach(iter, &keeper->orphans)
		google_http_run(dlist_container(GoogleOrphan, node, iter.cur)->http, 0);
}

/*
 * start_jobs
 *	  Starts as many requests as may be in flight: what is about to be lost
 *	  first, then what others wait for.
 */
static void
start_jobs(Keeper *keeper, int64 now)
{
	while (keeper->njobs < MAX_JOBS)
	{
		if (!start_extending(keeper, now) &&
			!start_giving_back(keeper, now) &&
			!start_acknowledging(keeper, now))
			break;
	}
}

/*
 * make_job
 *	  Makes a ModifyAckDeadline request without ids.  NULL = out of memory.
 */
static Job *
make_job(JobKind kind, GoogleHold *hold, int deadline_ms)
{
	Job		   *job = calloc(1, sizeof(Job));

	if (job == NULL)
		return NULL;
	job->call = google_call_create(hold->client, GOOGLE_MODIFY_ACK_DEADLINE,
								   hold->subscription);
	if (job->call == NULL)
	{
		free(job);
		return NULL;
	}
	job->kind = kind;
	job->hold = hold;
	hold->refs++;
	dlist_init(&job->groups);
	google_buffer_field_bytes(&job->call->request, 1, hold->subscription,
							  strlen(hold->subscription));
	google_buffer_field_int(&job->call->request, 3, deadline_ms / 1000);
	return job;
}

static void
start_job(Keeper *keeper, Job *job, int64 retry_until)
{
	dlist_push_tail(&keeper->jobs, &job->node);
	keeper->njobs++;
	job->call->retry_until = retry_until;
	google_call_start(job->call, keeper->http,
					  job->call->client->request_timeout);
}

/* Would this many more ids fit into the request? */
static bool
job_has_room(const Job *job, int nids, int nmore, size_t bytes)
{
	return nids + nmore <= job->hold->max_ids &&
		job->call->request.len + bytes <= GOOGLE_MAX_IDS_BYTES;
}

/*
 * add_ids
 *	  Appends the ids of those leases of a group that are in this state.
 */
static void
add_ids(Job *job, const GoogleGroup *group, LeaseState state)
{
	for (int i = 0; i < group->nleases; i++)
	{
		const GoogleLease *lease = &group->leases[i];

		if (lease->state == state)
			google_buffer_field_bytes(&job->call->request, 4, lease->id,
									  lease->id_len);
	}
}

static int
count_leases(const GoogleGroup *group, LeaseState state)
{
	int			n = 0;

	for (int i = 0; i < group->nleases; i++)
	{
		if (group->leases[i].state == state)
			n++;
	}
	return n;
}

/*
 * start_extending
 *	  Extends the leases that are due, those of one hold.  False = none are.
 */
static bool
start_extending(Keeper *keeper, int64 now)
{
	GoogleLeases *leases = keeper->leases;
	Job		   *job = NULL;
	int			nids = 0;
	int64		expires = 0;
	dlist_mutable_iter iter;

	if (leases->stop)
		return false;
	dlist_foreach_modify(iter, &leases->due)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, extend_node,
											 iter.cur);
		GoogleHold *hold = group->hold;
		int			n = count_leases(group, LEASE_HELD);

		if (job == NULL && group->due_at > now)
			break;
		if (job != NULL &&
			group->due_at > now + (int64) job->hold->deadline_ms *
			EXTEND_AHEAD / 100)
			break;
		if (n == 0)
		{
			/* all of it is on its way back */
			dlist_delete(&group->extend_node);
			group->extend_place = PLACE_NONE;
			continue;
		}
		if (job == NULL)
		{
			job = make_job(JOB_EXTEND, hold, hold->deadline_ms);
			if (job == NULL)
				return false;
			expires = group->expires_at;
		}
		if (hold != job->hold)
			continue;
		if (nids > 0 && !job_has_room(job, nids, n, group->ids_bytes))
			break;

		add_ids(job, group, LEASE_HELD);
		nids += n;
		dlist_delete(&group->extend_node);
		dlist_push_tail(&job->groups, &group->extend_node);
		group->extend_place = PLACE_JOB;
	}
	if (job == NULL)
		return false;
	start_job(keeper, job, Max(expires, now + 1000));
	return true;
}

/*
 * start_giving_back
 *	  Gives back what is to be given back, of one hold.  False = nothing is.
 */
static bool
start_giving_back(Keeper *keeper, int64 now)
{
	GoogleLeases *leases = keeper->leases;
	Job		   *job = NULL;
	int			nids = 0;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &leases->giving)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, give_node, iter.cur);
		int			n = count_leases(group, LEASE_RETURN);

		if (job == NULL)
		{
			job = make_job(JOB_GIVE_BACK, group->hold, 0);
			if (job == NULL)
				return false;
		}
		if (group->hold != job->hold)
			continue;
		if (nids > 0 && !job_has_room(job, nids, n, group->ids_bytes))
			break;

		add_ids(job, group, LEASE_RETURN);
		nids += n;
		for (int i = 0; i < group->nleases; i++)
		{
			if (group->leases[i].state == LEASE_RETURN)
				group->leases[i].state = LEASE_RETURNING;
		}
		dlist_delete(&group->give_node);
		dlist_push_tail(&job->groups, &group->give_node);
		group->give_place = PLACE_JOB;
	}
	if (job == NULL)
		return false;
	start_job(keeper, job, now + GIVE_BACK_FOR);
	return true;
}

static bool
start_acknowledging(Keeper *keeper, int64 now)
{
	GoogleLeases *leases = keeper->leases;
	Job		   *job;

	if (dlist_is_empty(&leases->acks))
		return false;
	job = calloc(1, sizeof(Job));
	if (job == NULL)
		return false;
	job->kind = JOB_ACKNOWLEDGE;
	job->call = dlist_container(GoogleCall, node,
								dlist_pop_head_node(&leases->acks));
	job->call->patient = true;
	dlist_init(&job->groups);
	start_job(keeper, job, now + ACKNOWLEDGE_FOR);
	return true;
}

static void
finish_jobs(Keeper *keeper)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &keeper->jobs)
	{
		Job		   *job = dlist_container(Job, node, iter.cur);
		GoogleCallState state = google_call_check(job->call);

		if (state == GOOGLE_CALL_OK || state == GOOGLE_CALL_FAILED)
			finish_job(keeper, job, state == GOOGLE_CALL_OK);
	}
}

static void
finish_job(Keeper *keeper, Job *job, bool ok)
{
	dlist_delete(&job->node);
	keeper->njobs--;
	if (job->kind == JOB_EXTEND)
		finish_extending(keeper->leases, job, ok);
	else if (job->kind == JOB_GIVE_BACK)
		finish_giving_back(keeper->leases, job, ok);
	google_call_free(job->call);
	if (job->hold)
		google_hold_unref_locked(job->hold);
	free(job);
}

/*
 * finish_extending
 *	  The answer is there: the leases run anew, or are tried again soon.
 */
static void
finish_extending(GoogleLeases *leases, Job *job, bool ok)
{
	GoogleHold *hold = job->hold;
	int64		now = google_now_ms();
	dlist_mutable_iter iter;

	if (!ok)
	{
		GooglePb__ErrorInfo *info = google_call_failed_ids(job->call);

		if (info)
		{
			/* refused for single ids only, the others are extended */
			mark_lost(job, info);
			google_pb__error_info__free_unpacked(info, NULL);
			ok = true;
		}
	}

	dlist_foreach_modify(iter, &job->groups)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, extend_node,
											 iter.cur);

		dlist_delete(&group->extend_node);
		group->extend_place = PLACE_NONE;
		if (ok)
		{
			/* the new lease began after the request was sent */
			group->expires_at = job->call->started_at + hold->deadline_ms;
			group->due_at = job->call->started_at +
				(int64) hold->deadline_ms * EXTEND_AT / 100;
		}
		else
			group->due_at = now + 1000;

		if (group->nlive == 0)
			google_group_free_if_done(group);
		else if (now < group->expires_at)
			google_lease_schedule(leases, group);
	}
}

/*
 * mark_lost
 *	  Remembers which leases an exactly-once subscription does not know.
 */
static void
mark_lost(Job *job, const GooglePb__ErrorInfo *info)
{
	static const char permanent[] = "PERMANENT_";
	dlist_iter	iter;

	dlist_foreach(iter, &job->groups)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, extend_node,
											 iter.cur);

		for (int i = 0; i < group->nleases; i++)
		{
			GoogleLease *lease = &group->leases[i];

			for (size_t k = 0; k < info->n_metadata; k++)
			{
				const ProtobufCBinaryData *id = &info->metadata[k]->key;
				const ProtobufCBinaryData *why = &info->metadata[k]->value;

				if (lease->state == LEASE_HELD &&
					(int) id->len == lease->id_len &&
					memcmp(id->data, lease->id, id->len) == 0 &&
					why->len > strlen(permanent) &&
					memcmp(why->data, permanent, strlen(permanent)) == 0)
					lease->state = LEASE_LOST;
			}
		}
	}
}

/*
 * finish_giving_back
 *	  The answer is there.  If it is a failure, the leases end by themselves.
 */
static void
finish_giving_back(GoogleLeases *leases, Job *job, bool ok)
{
	GoogleHold *hold = job->hold;
	dlist_mutable_iter iter;

	if (!ok)
	{
		GooglePb__ErrorInfo *info = google_call_failed_ids(job->call);

		/* an id that is not ours any more needs no giving back */
		if (info)
			google_pb__error_info__free_unpacked(info, NULL);
		else if (!hold->failed)
		{
			hold->failed = true;
			hold->error = job->call->error;
		}
	}

	dlist_foreach_modify(iter, &job->groups)
	{
		GoogleGroup *group = dlist_container(GoogleGroup, give_node, iter.cur);

		for (int i = 0; i < group->nleases; i++)
		{
			if (group->leases[i].state == LEASE_RETURNING)
				google_lease_gone(leases, &group->leases[i]);
		}
		dlist_delete(&group->give_node);
		group->give_place = PLACE_NONE;
		if (count_leases(group, LEASE_RETURN) > 0)
		{
			/* more of it was given back meanwhile */
			group->give_place = PLACE_LIST;
			dlist_push_tail(&leases->giving, &group->give_node);
		}
		else
			google_group_free_if_done(group);
	}
}

/*
 * check_orphans
 *	  Gives back what pulls without a reader have brought.
 */
static void
check_orphans(Keeper *keeper)
{
	GoogleLeases *leases = keeper->leases;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &keeper->orphans)
	{
		GoogleOrphan *orphan = dlist_container(GoogleOrphan, node, iter.cur);
		GoogleCallState state = google_call_check(orphan->pull);

		if (state == GOOGLE_CALL_RUNNING)
			continue;

		/* a second attempt would serve nobody */
		if (state == GOOGLE_CALL_OK)
		{
			size_t		len;
			const uint8_t *answer = google_call_answer(orphan->pull, &len);
			GooglePb__PullResponse *response;

			response = google_pb__pull_response__unpack(NULL, len, answer);
			if (response)
			{
				pthread_mutex_unlock(&leases->lock);
				(void) google_leases_add(leases, orphan->hold, response, NULL);
				pthread_mutex_lock(&leases->lock);
				google_pb__pull_response__free_unpacked(response, NULL);
			}
		}
		dlist_delete(&orphan->node);
		google_orphan_free(orphan);
	}
}

/* Lock held, or no other thread any more. */
void
google_orphan_free(GoogleOrphan *orphan)
{
	google_call_free(orphan->pull);
	google_http_destroy(orphan->http);
	google_hold_unref_locked(orphan->hold);
	free(orphan);
}
