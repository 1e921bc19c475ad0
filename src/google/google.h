/*-------------------------------------------------------------------------
 *
 * google.h
 *		The driver for Google Cloud Pub/Sub: what its files offer each other
 *
 * From the wire upwards:
 *
 *		google_http.c		transfers over libcurl, driven through one descriptor
 *		google_auth.c		the Authorization header
 *		google_json.c		JSON in and out of the former
 *		google_grpc.c		a unary call: framing, trailers, retries
 *		google_error.c		gRPC's status codes as errors
 *		google_lease.c		the lease table
 *		google_keeper.c		the thread that keeps leases alive
 *		google_ack.c		acknowledgement at commit
 *		google_source.c		pulling
 *		google_sink.c		publishing
 *		google_admin.c		making and dropping topics and subscriptions
 *		google_driver.c		the session that holds all of this together
 *
 * A "hold" is one reading of a subscription; a "group" is what one pull
 * brought, leased together; a "lease" is one message of it.
 *
 * Two threads at most: the backend's, and the session's lease thread, which
 * runs nothing of PostgreSQL.  What both use says so.
 *
 * IDENTIFICATION
 *		src/google/google.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef GOOGLE_H
#define GOOGLE_H

#include <pthread.h>
#include <sys/types.h>

#include "driver.h"
#include "google/pubsub.pb-c.h"

/* Limits of the service, in bytes unless said otherwise */
#define GOOGLE_MAX_REQUEST		10000000	/* Publish, as protobuf */
#define GOOGLE_MAX_BATCH		1000	/* messages in a Publish */
#define GOOGLE_MAX_ATTRIBUTES	100 /* of a message */
#define GOOGLE_MAX_NAME			256 /* of an attribute */
#define GOOGLE_MAX_VALUE		1024	/* of an attribute */
#define GOOGLE_MAX_KEY			1024	/* an ordering key */
#define GOOGLE_MAX_PULL			1000	/* messages in a Pull */

/* Acknowledge, ModifyAckDeadline: the service allows 524,288 bytes */
#define GOOGLE_MAX_IDS			1000
#define GOOGLE_MAX_IDS_BYTES	500000

/*
 * So long does the end of a session wait for what is under way, in ms: pulls
 * that nobody waits for any more, and what is to be given back.
 */
#define GOOGLE_DETACH_MS		2000

/*
 * Under exactly-once delivery a refusal lists ids in a trailer, for which
 * libcurl has room for 128 kB, as base64.
 */
#define GOOGLE_MAX_IDS_CHECKED	200

/* ---------- bytes ---------- */

/* A growing buffer.  Appending may fail; that is remembered, not returned. */
typedef struct GoogleBuffer
{
	char	   *data;
	size_t		len;
	size_t		size;
	bool		failed;			/* out of memory */
} GoogleBuffer;

/* Memory that is freed as a whole */
typedef struct GoogleArena
{
	struct GoogleBlock *blocks;
	char	   *next;
	size_t		left;
} GoogleArena;

/* in google_grpc.c */
extern void google_buffer_append(GoogleBuffer *buffer, const void *data,
								 size_t len);
extern void google_buffer_varint(GoogleBuffer *buffer, uint64 value);
extern void google_buffer_field_bytes(GoogleBuffer *buffer, int field,
									  const char *data, size_t len);
extern void google_buffer_field_int(GoogleBuffer *buffer, int field,
									uint64 value);
extern size_t google_varint_size(uint64 value);
extern size_t google_field_bytes_size(size_t len);
extern void google_buffer_free(GoogleBuffer *buffer);

extern void *google_arena_alloc(GoogleArena *arena, size_t size);
extern void google_arena_free(GoogleArena *arena);

/* in google_driver.c: monotonic clock.  Any thread. */
extern int64 google_now_ms(void);

/* ---------- who and where: fixed at attach, read by both threads ---------- */

/* in google_auth.c */
typedef struct GoogleAuth
{
	PubsubAuth	kind;
	pthread_mutex_t lock;		/* of the token */
	bool		lock_made;
	char	   *client_email;
	char	   *key_id;
	void	   *key;			/* EVP_PKEY */
	char	   *audience;
	char	   *token;
	int64		token_renew_at; /* seconds since the epoch; 0 = never */
} GoogleAuth;

typedef struct GoogleClient
{
	char	   *url;			/* scheme, host, port; no slash at the end */
	char	   *host;
	bool		tls;
	char	   *ca_pem;
	char	   *ca_location;
	int			connect_timeout;	/* ms */
	int			request_timeout;	/* ms */
	GoogleAuth	auth;
} GoogleClient;

extern bool google_auth_init(GoogleAuth *auth, const PubsubOptions *options,
							 const char *host, bool tls, PubsubError *error);
extern void google_auth_free(GoogleAuth *auth);

/*
 * Sets *header to a malloc'd header line, or to NULL if none is to be sent.
 * Any thread.
 */
extern bool google_auth_header(GoogleAuth *auth, char **header,
							   PubsubError *error);

/* The service refused the token: forget it.  False = there is no other. */
extern bool google_auth_renew(GoogleAuth *auth);

/* in google_json.c */
typedef struct GoogleCredentials
{
	char	   *type;
	char	   *client_email;
	char	   *private_key;
	char	   *private_key_id;
} GoogleCredentials;

extern bool google_json_credentials(const char *text,
									GoogleCredentials *credentials,
									PubsubError *error);
extern void google_json_credentials_free(GoogleCredentials *credentials);
extern char *google_json_jwt_header(const char *key_id);
extern char *google_json_jwt_claims(const char *issuer, const char *audience,
									int64 issued_at, int64 expires);
extern const char *google_json_version(void);

/* ---------- transfers ---------- */

/* in google_http.c */
typedef struct GoogleHttp GoogleHttp;

/* One HTTP/2 request and its answer */
typedef struct GoogleTransfer
{
	GoogleHttp *http;			/* while it runs, else NULL */
	void	   *easy;			/* CURL */
	void	   *headers;		/* curl_slist */
	bool		done;

	/* the answer, once done */
	bool		failed;			/* no complete answer; why: */
	PubsubErrorKind kind;
	char		words[300];
	const char *hint;
	bool		retriable;
	int			http_status;
	GoogleBuffer answer_headers;	/* lines "name: value", trailers too */
	GoogleBuffer body;
} GoogleTransfer;

extern bool google_http_init(PubsubError *error);
extern GoogleHttp *google_http_create(const GoogleClient *client,
									  PubsubError *error);
extern void google_http_destroy(GoogleHttp *http);
extern int	google_http_fd(const GoogleHttp *http);

/*
 * Does what can be done now, after waiting for up to wait_ms until something
 * can.  Whoever calls it owns the object for that time; one thread may take it
 * over from another.
 */
extern void google_http_run(GoogleHttp *http, int wait_ms);

/* Makes the descriptor readable at that time.  Lasts until then. */
extern void google_http_wake_at(GoogleHttp *http, int64 at_ms);

/*
 * Starts a POST.  path, body and headers (NULL-terminated) are not copied but
 * for the latter; the transfer must be zeroed or cleaned.
 */
extern bool google_http_start(GoogleHttp *http, GoogleTransfer *transfer,
							  const char *path, const char *const *headers,
							  const char *body, size_t body_len,
							  int timeout_ms);
extern void google_http_clean(GoogleTransfer *transfer);

/*
 * Copies the value of a header or trailer of the answer, malloc'd; NULL if
 * there is none.
 */
extern char *google_http_header(const GoogleTransfer *transfer,
								const char *name);
extern const char *google_http_version(void);

/* ---------- calls ---------- */

/* in google_grpc.c */
typedef enum GoogleMethod
{
	GOOGLE_PULL,
	GOOGLE_ACKNOWLEDGE,
	GOOGLE_MODIFY_ACK_DEADLINE,
	GOOGLE_PUBLISH,
	GOOGLE_GET_TOPIC,
	GOOGLE_CREATE_TOPIC,
	GOOGLE_DELETE_TOPIC,
	GOOGLE_GET_SUBSCRIPTION,
	GOOGLE_CREATE_SUBSCRIPTION,
	GOOGLE_DELETE_SUBSCRIPTION
} GoogleMethod;

typedef enum GoogleCallState
{
	GOOGLE_CALL_NEW,
	GOOGLE_CALL_RUNNING,
	GOOGLE_CALL_WAITING,		/* for the next attempt; error = soft cause */
	GOOGLE_CALL_OK,
	GOOGLE_CALL_FAILED			/* error is filled in */
} GoogleCallState;

/* gRPC status codes that matter to a caller */
#define GOOGLE_STATUS_OK				0
#define GOOGLE_STATUS_UNKNOWN			2
#define GOOGLE_STATUS_INVALID_ARGUMENT	3
#define GOOGLE_STATUS_DEADLINE_EXCEEDED 4
#define GOOGLE_STATUS_NOT_FOUND			5
#define GOOGLE_STATUS_ALREADY_EXISTS	6
#define GOOGLE_STATUS_PERMISSION_DENIED 7
#define GOOGLE_STATUS_INTERNAL			13
#define GOOGLE_STATUS_UNAVAILABLE		14
#define GOOGLE_STATUS_UNAUTHENTICATED	16

typedef struct GoogleCall
{
	dlist_node	node;			/* the owner's */
	GoogleClient *client;
	GoogleHttp *http;
	GoogleMethod method;
	char	   *routing;		/* header x-goog-request-params */
	GoogleBuffer request;		/* framed; fields are appended before start */
	int			timeout_ms;		/* told to the service */
	int			grace_ms;		/* how much longer we wait ourselves */
	int64		retry_until;	/* no attempt after this time; 0 = no limit */
	bool		patient;		/* tries until then also without any answer */

	GoogleCallState state;
	int			status;			/* of the last attempt */
	int			attempts;
	int			broken;			/* attempts that got no answer at all */
	bool		renewed;		/* has asked for a new token */
	int64		retry_at;
	int64		started_at;		/* the current attempt */
	GoogleTransfer transfer;
	PubsubError error;
} GoogleCall;

/* resource: the topic or subscription that the call is about.  NULL = OOM. */
extern GoogleCall *google_call_create(GoogleClient *client,
									  GoogleMethod method,
									  const char *resource);
extern bool google_call_pack(GoogleCall *call, const ProtobufCMessage *message);
extern void google_call_start(GoogleCall *call, GoogleHttp *http,
							  int timeout_ms);
extern void google_call_start_later(GoogleCall *call, GoogleHttp *http,
									int timeout_ms);

/* Looks what has become of it; also starts the next attempt when it is time. */
extern GoogleCallState google_call_check(GoogleCall *call);

/* A step: runs the call, for up to slice_ms. */
extern GoogleCallState google_call_step(GoogleCall *call, int slice_ms);

/* Body of the answer, after OK; lives as long as the call. */
extern const uint8_t *google_call_answer(const GoogleCall *call, size_t *len);

/*
 * After a failed Acknowledge or ModifyAckDeadline: the ids that the service
 * names, if it names any.  Free with google_pb__error_info__free_unpacked.
 */
extern GooglePb__ErrorInfo *google_call_failed_ids(const GoogleCall *call);

/* Also in the middle of it: the connection forgets the call. */
extern void google_call_free(GoogleCall *call);

/* in google_error.c */
extern const char *google_status_name(int status);
extern int	google_status_from_http(int http_status);
extern void google_error_from_status(PubsubError *error, int status,
									 const char *words);
extern void google_error_object(PubsubError *error, const char *kind,
								const char *name);
extern void google_error_memory(PubsubError *error);

/* ---------- leases ---------- */

typedef struct GoogleSession GoogleSession;
typedef struct GoogleLease GoogleLease;

/* What the messages that one source has read have in common. */
typedef struct GoogleHold
{
	GoogleClient *client;
	char	   *subscription;
	int			initial_ms;		/* lease that a pull gives */
	int			deadline_ms;	/* lease that we ask for */
	int			max_lease_ms;
	bool		consume;
	int			max_ids;		/* in one request */

	/* protected by the lease table's lock */
	int			refs;
	int			ngiving;		/* leases on their way back */
	bool		failed;			/* some could not be given back; why: */
	PubsubError error;
} GoogleHold;

/* A pull whose source is gone: the thread sees it through. */
typedef struct GoogleOrphan
{
	dlist_node	node;
	GoogleHttp *http;
	GoogleCall *pull;
	GoogleHold *hold;
} GoogleOrphan;

/* The lease table of a session, shared with its thread. */
typedef struct GoogleLeases
{
	GoogleClient *client;
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* something was given back, or the thread has
								 * ended */
	bool		made;			/* the two above exist */
	int			wake_fd;		/* eventfd */
	pthread_t	thread;
	bool		running;		/* there is a thread to be joined */

	/* all below: protected by the lock */
	bool		ended;			/* the thread has left its loop */
	bool		stop;
	int64		stop_at;
	int64		sleep_until;	/* when the thread wakes by itself */
	dlist_head	groups;			/* all of them */
	dlist_head	due;			/* groups to be extended, soonest first */
	dlist_head	giving;			/* groups with leases to give back */
	dlist_head	orphans;		/* GoogleOrphan, not yet with the thread */
	dlist_head	acks;			/* GoogleCall, left over from a commit */
} GoogleLeases;

/* in google_lease.c; the main thread calls them, unless said otherwise */
extern bool google_leases_init(GoogleLeases *leases, GoogleClient *client,
							   PubsubError *error);

/* Gives everything back and ends the thread, within bound_ms or so. */
extern bool google_leases_stop(GoogleLeases *leases, int bound_ms);
extern bool google_leases_start_thread(GoogleLeases *leases,
									   PubsubError *error);

extern GoogleHold *google_hold_create(GoogleLeases *leases,
									  const char *subscription);
extern void google_hold_unref(GoogleLeases *leases, GoogleHold *hold);

/*
 * Registers what a pull has brought.  Sets the leases of messages[], which
 * may be NULL: then all are given back at once.  Any thread.
 */
extern bool google_leases_add(GoogleLeases *leases, GoogleHold *hold,
							  const GooglePb__PullResponse *response,
							  PubsubMessage *messages);

/* Gives back those of these messages that are not marked. */
extern void google_leases_give_back(GoogleLeases *leases,
									PubsubMessage *messages, int nmessages);

/* Gives back all that is still held. */
extern void google_leases_give_back_all(GoogleLeases *leases,
										GoogleHold *hold);

/* Gives back these leases. */
extern void google_leases_drop(GoogleLeases *leases, void **lease,
							   int nleases);

/* Forgets these leases: the messages are acknowledged, or as good as. */
extern void google_leases_end(GoogleLeases *leases, GoogleLease **lease,
							  int nleases);

extern int64 google_leases_expired(GoogleLeases *leases, void **lease,
								   int nleases);

/* Waits up to slice_ms until nothing of the hold is on its way back. */
extern PubsubStatus google_leases_wait(GoogleLeases *leases, GoogleHold *hold,
									   int slice_ms, PubsubError *error);

/* Leaves a pull in flight to the thread; takes the orphan over. */
extern void google_leases_adopt(GoogleLeases *leases, GoogleOrphan *orphan);

/* Leaves a prepared Acknowledge call to the thread; takes it over. */
extern void google_leases_adopt_ack(GoogleLeases *leases, GoogleCall *call);

extern const char *google_lease_id(const GoogleLease *lease, int *len);
extern GoogleHold *google_lease_hold(const GoogleLease *lease);

/* ---------- the session ---------- */

struct GoogleSession
{
	pid_t		owner;			/* the process that attached */
	GoogleClient client;
	GoogleLeases leases;
	GoogleHttp *http;			/* acknowledgement and administration; made
								 * when needed */
	GoogleHttp *spare;			/* idle, with its connections */
	dlist_head	sources;
	dlist_head	sinks;
	dlist_head	acks;			/* GoogleAck: prepared, not yet answered */
	int64		nacks_failed;	/* messages whose acknowledgement failed, */
	PubsubError ack_error;		/* and why */
	GoogleCall *admin;			/* the administrative call */
	PubsubAdminOp admin_op;
	char		admin_name[600];	/* what it makes or drops */
	char		admin_topic[600];
};

/* in google_driver.c */
extern GoogleHttp *google_session_http(GoogleSession *session,
									   PubsubError *error);
extern GoogleHttp *google_session_take_http(GoogleSession *session,
											PubsubError *error);
extern void google_session_return_http(GoogleSession *session,
									   GoogleHttp *http);

/* in google_source.c */
extern const PubsubSourceRoutine google_source_routine;
extern PubsubSource *google_source_base(dlist_node *node);
extern void google_source_close(PubsubSource *source);

/* in google_ack.c */
extern PubsubStatus google_prepare_acks(PubsubSession *session, void **lease,
										int nleases, int64 *nexpired,
										PubsubError *error);
extern PubsubStatus google_send_acks(PubsubSession *session, int slice_ms,
									 PubsubError *error);
extern void google_abandon_acks(PubsubSession *session);
extern void google_free_acks(GoogleSession *session);
extern void google_drop_acks(PubsubSession *session, void **lease,
							 int nleases);

/* in google_sink.c */
extern const PubsubSinkRoutine google_sink_routine;
extern PubsubSink *google_sink_base(dlist_node *node);
extern void google_sink_close(PubsubSink *sink);

/* in google_admin.c */
extern const PubsubAdminRoutine google_admin_routine;
extern void google_admin_end(PubsubSession *session);

#endif							/* GOOGLE_H */
