/*-------------------------------------------------------------------------
 *
 * google_http.c
 *		HTTP/2 transfers over libcurl
 *
 * A GoogleHttp is a curl multi handle behind one descriptor: an epoll set with
 * curl's sockets in it and a timer for what curl, or our caller, wants to do
 * later.  Ring 1 sleeps on that descriptor; the steps and the lease thread
 * sleep in google_http_run().
 *
 * It belongs to one thread at a time, and may be handed over together with
 * what is under way in it.  That is what becomes of a pull whose reader has
 * gone: ending it here would hide the messages that it is about to bring.
 *
 * Callbacks append to malloc'd memory and set flags, nothing else.
 *
 * IDENTIFICATION
 *		src/google/google_http.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <curl/curl.h>

#include "google/google.h"

/* CURLOPT_QUICK_EXIT, without which a cancel would wait for the resolver */
StaticAssertDecl(LIBCURL_VERSION_NUM >= 0x075700,
				 "libcurl 7.87.0 or later is needed");

/* libcurl before 8.0.0 cannot use a prior-knowledge connection twice */
#define VERSION_H2C_REUSE		0x080000

/*
 * libcurl 7.88.1 loses trailers with several streams on a connection; 8.14.1
 * is the first one that was seen to be right.
 */
#define VERSION_MULTIPLEX		0x080e01

#define HINT_ENDPOINT	"Check the \"endpoint\" option of the server."

/* An answer bigger than this is refused */
#define MAX_ANSWER_BYTES		(512 * 1024 * 1024)
#define MAX_ANSWER_HEADERS		(1024 * 1024)

struct GoogleHttp
{
	const GoogleClient *client;
	CURLM	   *multi;
	int			epoll_fd;
	int			timer_fd;
	int64		curl_at;		/* when curl wants to be called; -1 = never */
	int64		wake_at;		/* when our caller does; -1 = never */
};

/* Asked once: curl_version_info() is not for two threads at a time. */
static unsigned int version_num = 0;

static int	socket_callback(CURL *easy, curl_socket_t fd, int what,
							void *arg, void *socket_arg);
static int	timer_callback(CURLM *multi, long timeout_ms, void *arg);
static void arm_timer(GoogleHttp *http);
static size_t header_callback(char *data, size_t size, size_t n, void *arg);
static size_t body_callback(char *data, size_t size, size_t n, void *arg);
static bool setup_easy(GoogleHttp *http, GoogleTransfer *transfer,
					   const char *path, const char *body, size_t body_len,
					   int timeout_ms);
static void finish_transfer(GoogleTransfer *transfer, CURLcode code);
static void fail_transfer(GoogleTransfer *transfer, PubsubErrorKind kind,
						  const char *words, bool retriable);

/*
 * google_http_init
 *	  Initialises libcurl, once per process.
 */
bool
google_http_init(PubsubError *error)
{
	if (version_num > 0)
		return true;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
	{
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "libcurl could not be initialised.");
		return false;
	}
	version_num = curl_version_info(CURLVERSION_NOW)->version_num;
	return true;
}

const char *
google_http_version(void)
{
	return curl_version_info(CURLVERSION_NOW)->version;
}

GoogleHttp *
google_http_create(const GoogleClient *client, PubsubError *error)
{
	GoogleHttp *http = calloc(1, sizeof(GoogleHttp));
	struct epoll_event event = {.events = EPOLLIN};
	bool		ok;

	if (http == NULL)
	{
		google_error_memory(error);
		return NULL;
	}
	http->client = client;
	http->curl_at = -1;
	http->wake_at = -1;
	http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	http->timer_fd = timerfd_create(CLOCK_MONOTONIC,
									TFD_CLOEXEC | TFD_NONBLOCK);
	http->multi = curl_multi_init();

	event.data.fd = http->timer_fd;
	ok = http->epoll_fd >= 0 && http->timer_fd >= 0 && http->multi != NULL &&
		epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, http->timer_fd, &event) == 0;
	if (ok)
	{
		ok = curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION,
							   socket_callback) == CURLM_OK &&
			curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA,
							  http) == CURLM_OK &&
			curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION,
							  timer_callback) == CURLM_OK &&
			curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA,
							  http) == CURLM_OK &&
			curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS,
							  8L) == CURLM_OK;
		if (version_num < VERSION_MULTIPLEX)
			ok = ok && curl_multi_setopt(http->multi,
										 CURLMOPT_MAX_CONCURRENT_STREAMS,
										 1L) == CURLM_OK;
	}
	if (!ok)
	{
		google_http_destroy(http);
		pubsub_error_set(error, PUBSUB_ERROR_OTHER,
						 "The HTTP client could not be set up (too many open files, or out of memory).");
		return NULL;
	}
	return http;
}

/*
 * google_http_destroy
 *	  Frees it.  No transfer is under way.
 */
void
google_http_destroy(GoogleHttp *http)
{
	if (http == NULL)
		return;
	if (http->multi)
		(void) curl_multi_cleanup(http->multi);
	if (http->timer_fd >= 0)
		close(http->timer_fd);
	if (http->epoll_fd >= 0)
		close(http->epoll_fd);
	free(http);
}

int
google_http_fd(const GoogleHttp *http)
{
	return http->epoll_fd;
}

/*
 * google_http_run
 *	  Waits for up to wait_ms until there is something to do, and does it.
 *
 * A signal ends the wait.  While libcurl runs all signals are blocked: it may
 * start a thread to resolve a name, and that thread must never run one of
 * PostgreSQL's handlers.
 */
void
google_http_run(GoogleHttp *http, int wait_ms)
{
	struct epoll_event events[16];
	int			nevents;
	int			running;
	CURLMsg    *message;
	sigset_t	all;
	sigset_t	old;

	nevents = epoll_wait(http->epoll_fd, events, lengthof(events), wait_ms);
	if (nevents <= 0)
		return;

	sigfillset(&all);
	(void) pthread_sigmask(SIG_SETMASK, &all, &old);

	for (int i = 0; i < nevents; i++)
	{
		int			mask = 0;

		if (events[i].data.fd == http->timer_fd)
		{
			uint64		expirations;
			int64		now = google_now_ms();

			(void) !read(http->timer_fd, &expirations, sizeof(expirations));
			if (http->wake_at >= 0 && http->wake_at <= now)
				http->wake_at = -1;
			if (http->curl_at >= 0 && http->curl_at <= now)
			{
				http->curl_at = -1;
				(void) curl_multi_socket_action(http->multi,
												CURL_SOCKET_TIMEOUT, 0,
												&running);
			}
			arm_timer(http);
			continue;
		}
		if (events[i].events & EPOLLIN)
			mask |= CURL_CSELECT_IN;
		if (events[i].events & EPOLLOUT)
			mask |= CURL_CSELECT_OUT;
		if (events[i].events & (EPOLLERR | EPOLLHUP))
			mask |= CURL_CSELECT_ERR | CURL_CSELECT_IN;
		(void) curl_multi_socket_action(http->multi, events[i].data.fd, mask,
										&running);
	}

	while ((message = curl_multi_info_read(http->multi, &running)) != NULL)
	{
		GoogleTransfer *transfer = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
								 (char **) &transfer);
		finish_transfer(transfer, message->data.result);
	}

	(void) pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void
google_http_wake_at(GoogleHttp *http, int64 at_ms)
{
	if (http->wake_at < 0 || at_ms < http->wake_at)
	{
		http->wake_at = at_ms;
		arm_timer(http);
	}
}

/*
 * socket_callback
 *	  curl wants to know about this socket, or does not want to any more.
 */
static int
socket_callback(CURL *easy pg_attribute_unused(), curl_socket_t fd, int what,
				void *arg,
				void *socket_arg pg_attribute_unused())
{
	GoogleHttp *http = arg;
	struct epoll_event event = {0};

	event.data.fd = fd;
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		event.events |= EPOLLIN;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		event.events |= EPOLLOUT;

	if (what == CURL_POLL_REMOVE)
		(void) epoll_ctl(http->epoll_fd, EPOLL_CTL_DEL, fd, &event);
	else if (epoll_ctl(http->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
	{
		if (errno != ENOENT ||
			epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
			return -1;
	}
	return 0;
}

static int
timer_callback(CURLM *multi pg_attribute_unused(), long timeout_ms, void *arg)
{
	GoogleHttp *http = arg;

	http->curl_at = timeout_ms < 0 ? -1 : google_now_ms() + timeout_ms;
	arm_timer(http);
	return 0;
}

/*
 * arm_timer
 *	  Sets the timer to the earlier of the two times, or stops it.
 */
static void
arm_timer(GoogleHttp *http)
{
	struct itimerspec when = {0};
	int64		at = http->curl_at;

	if (at < 0 || (http->wake_at >= 0 && http->wake_at < at))
		at = http->wake_at;
	if (at >= 0)
	{
		when.it_value.tv_sec = at / 1000;
		when.it_value.tv_nsec = (at % 1000) * 1000000 + 1;
	}
	(void) timerfd_settime(http->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/*
 * google_http_start
 *	  Starts a POST.  False = out of memory.
 */
bool
google_http_start(GoogleHttp *http, GoogleTransfer *transfer,
				  const char *path, const char *const *headers,
				  const char *body, size_t body_len, int timeout_ms)
{
	struct curl_slist *list = NULL;

	google_http_clean(transfer);
	for (int i = 0; headers[i] != NULL; i++)
	{
		struct curl_slist *longer = curl_slist_append(list, headers[i]);

		if (longer == NULL)
		{
			curl_slist_free_all(list);
			return false;
		}
		list = longer;
	}
	transfer->headers = list;

	transfer->easy = curl_easy_init();
	if (transfer->easy == NULL ||
		!setup_easy(http, transfer, path, body, body_len, timeout_ms) ||
		curl_multi_add_handle(http->multi, transfer->easy) != CURLM_OK)
	{
		google_http_clean(transfer);
		return false;
	}
	transfer->http = http;
	return true;
}

/*
 * setup_easy
 *	  Sets all options of a transfer.
 *
 * Nothing comes from the environment of the server process: no proxy, no
 * netrc.  No redirect is followed.
 */
static bool
setup_easy(GoogleHttp *http, GoogleTransfer *transfer, const char *path,
		   const char *body, size_t body_len, int timeout_ms)
{
	const GoogleClient *client = http->client;
	CURL	   *easy = transfer->easy;
	char	   *url;
	bool		ok = true;
	size_t		url_size = strlen(client->url) + strlen(path) + 1;

#define SETOPT(option, value) \
	(ok = ok && curl_easy_setopt(easy, (option), (value)) == CURLE_OK)

	url = malloc(url_size);
	if (url == NULL)
		return false;
	snprintf(url, url_size, "%s%s", client->url, path);
	SETOPT(CURLOPT_URL, url);	/* copies it */
	free(url);

	SETOPT(CURLOPT_PROTOCOLS_STR, client->tls ? "https" : "http");
	SETOPT(CURLOPT_HTTP_VERSION,
		   client->tls ? (long) CURL_HTTP_VERSION_2TLS :
		   (long) CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	SETOPT(CURLOPT_FOLLOWLOCATION, 0L);
	SETOPT(CURLOPT_PROXY, "");
	SETOPT(CURLOPT_NOSIGNAL, 1L);
	SETOPT(CURLOPT_QUICK_EXIT, 1L);
	SETOPT(CURLOPT_TCP_KEEPALIVE, 1L);
	SETOPT(CURLOPT_CONNECTTIMEOUT_MS, (long) client->connect_timeout);
	SETOPT(CURLOPT_TIMEOUT_MS, (long) timeout_ms);
	SETOPT(CURLOPT_BUFFERSIZE, 131072L);

	if (!client->tls && version_num < VERSION_H2C_REUSE)
	{
		SETOPT(CURLOPT_FRESH_CONNECT, 1L);
		SETOPT(CURLOPT_FORBID_REUSE, 1L);
	}

	SETOPT(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
	SETOPT(CURLOPT_SSL_VERIFYPEER, 1L);
	SETOPT(CURLOPT_SSL_VERIFYHOST, 2L);
	if (client->ca_pem)
	{
		struct curl_blob blob = {0};

		blob.data = client->ca_pem;
		blob.len = strlen(client->ca_pem);
		blob.flags = CURL_BLOB_NOCOPY;
		SETOPT(CURLOPT_CAINFO_BLOB, &blob);
		SETOPT(CURLOPT_CAPATH, NULL);
	}
	else if (client->ca_location)
	{
		SETOPT(CURLOPT_CAINFO, client->ca_location);
		SETOPT(CURLOPT_CAPATH, NULL);
	}

	SETOPT(CURLOPT_POST, 1L);
	SETOPT(CURLOPT_POSTFIELDS, body);
	SETOPT(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) body_len);
	SETOPT(CURLOPT_HTTPHEADER, transfer->headers);
	SETOPT(CURLOPT_HEADERFUNCTION, header_callback);
	SETOPT(CURLOPT_HEADERDATA, transfer);
	SETOPT(CURLOPT_WRITEFUNCTION, body_callback);
	SETOPT(CURLOPT_WRITEDATA, transfer);
	SETOPT(CURLOPT_ERRORBUFFER, transfer->words);
	SETOPT(CURLOPT_PRIVATE, transfer);
#undef SETOPT
	return ok;
}

/*
 * google_http_clean
 *	  Frees all of a transfer, wherever it stands.
 */
void
google_http_clean(GoogleTransfer *transfer)
{
	if (transfer->easy)
	{
		if (transfer->http)
		{
			sigset_t	all;
			sigset_t	old;

			sigfillset(&all);
			(void) pthread_sigmask(SIG_SETMASK, &all, &old);
			(void) curl_multi_remove_handle(transfer->http->multi,
											transfer->easy);
			(void) pthread_sigmask(SIG_SETMASK, &old, NULL);
		}
		curl_easy_cleanup(transfer->easy);
	}
	curl_slist_free_all(transfer->headers);
	google_buffer_free(&transfer->answer_headers);
	google_buffer_free(&transfer->body);
	memset(transfer, 0, sizeof(GoogleTransfer));
}

static size_t
header_callback(char *data, size_t size, size_t n, void *arg)
{
	GoogleTransfer *transfer = arg;
	size_t		len = size * n;

	if (transfer->answer_headers.len + len > MAX_ANSWER_HEADERS)
		return 0;
	google_buffer_append(&transfer->answer_headers, data, len);
	return transfer->answer_headers.failed ? 0 : len;
}

static size_t
body_callback(char *data, size_t size, size_t n, void *arg)
{
	GoogleTransfer *transfer = arg;
	size_t		len = size * n;

	if (transfer->body.len + len > MAX_ANSWER_BYTES)
		return 0;
	google_buffer_append(&transfer->body, data, len);
	return transfer->body.failed ? 0 : len;
}

/*
 * finish_transfer
 *	  The transfer is over: takes down the result.
 */
static void
finish_transfer(GoogleTransfer *transfer, CURLcode code)
{
	CURL	   *easy = transfer->easy;
	bool		tls = transfer->http->client->tls;
	long		value = 0;
	double		connected = 0;
	PubsubErrorKind kind = PUBSUB_ERROR_LOST;
	bool		retriable = true;

	transfer->hint = "";
	(void) curl_multi_remove_handle(transfer->http->multi, easy);
	transfer->http = NULL;
	transfer->done = true;

	if (code == CURLE_OK)
	{
		(void) curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &value);
		if (value != CURL_HTTP_VERSION_2_0)
		{
			fail_transfer(transfer, PUBSUB_ERROR_CONNECT,
						  "The server does not speak HTTP/2.", false);
			return;
		}
		(void) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &value);
		transfer->http_status = (int) value;
		return;
	}

	(void) curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME, &connected);
	switch (code)
	{
		case CURLE_COULDNT_CONNECT:
			kind = PUBSUB_ERROR_CONNECT;
			transfer->hint = HINT_ENDPOINT;
			break;
		case CURLE_OPERATION_TIMEDOUT:
			kind = connected > 0 ? PUBSUB_ERROR_LOST : PUBSUB_ERROR_CONNECT;
			retriable = false;
			break;
		case CURLE_COULDNT_RESOLVE_HOST:
		case CURLE_URL_MALFORMAT:
		case CURLE_UNSUPPORTED_PROTOCOL:
			kind = PUBSUB_ERROR_CONNECT;
			retriable = false;
			transfer->hint = HINT_ENDPOINT;
			break;
		case CURLE_SSL_CONNECT_ERROR:
		case CURLE_SSL_CIPHER:
			kind = PUBSUB_ERROR_CONNECT;
			retriable = false;
			transfer->hint = "Check the \"endpoint\" option of the server: does that port speak TLS?";
			break;
		case CURLE_PEER_FAILED_VERIFICATION:
		case CURLE_SSL_CERTPROBLEM:
		case CURLE_SSL_CACERT_BADFILE:
		case CURLE_SSL_ISSUER_ERROR:
			kind = PUBSUB_ERROR_CONNECT;
			retriable = false;
			transfer->hint = "Check the options \"ssl_ca_pem\" and \"ssl_ca_location\" of the server, and the host name in \"endpoint\".";
			break;
		case CURLE_OUT_OF_MEMORY:
			kind = PUBSUB_ERROR_MEMORY;
			retriable = false;
			break;
		case CURLE_WRITE_ERROR:
			if (transfer->body.failed || transfer->answer_headers.failed)
				fail_transfer(transfer, PUBSUB_ERROR_MEMORY,
							  "Out of memory for the answer of the server.",
							  false);
			else
				fail_transfer(transfer, PUBSUB_ERROR_TOO_LARGE,
							  "The answer of the server is too large.",
							  false);
			return;
		default:
			/* cut off without a word, as a TLS port does */
			if (!tls && transfer->answer_headers.len == 0)
				transfer->hint = "Check the \"endpoint\" option of the server: does that port expect https://?";
			break;
	}
	if (transfer->words[0] == '\0')
		strlcpy(transfer->words, curl_easy_strerror(code),
				sizeof(transfer->words));
	fail_transfer(transfer, kind, NULL, retriable);
}

/* words = NULL: those that libcurl has left there */
static void
fail_transfer(GoogleTransfer *transfer, PubsubErrorKind kind,
			  const char *words, bool retriable)
{
	transfer->failed = true;
	transfer->kind = kind;
	transfer->retriable = retriable;
	if (words)
		strlcpy(transfer->words, words, sizeof(transfer->words));
}

/*
 * google_http_header
 *	  Copies the value of the last header of that name (lower case).
 */
char *
google_http_header(const GoogleTransfer *transfer, const char *name)
{
	const char *line = transfer->answer_headers.data;
	const char *end = line + transfer->answer_headers.len;
	const char *value = NULL;
	size_t		value_len = 0;
	size_t		name_len = strlen(name);
	char	   *result;

	while (line && line < end)
	{
		const char *eol = memchr(line, '\n', end - line);

		if (eol == NULL)
			eol = end;
		if ((size_t) (eol - line) > name_len && line[name_len] == ':' &&
			pg_strncasecmp(line, name, name_len) == 0)
		{
			const char *stop = eol;

			value = line + name_len + 1;
			while (value < stop && (*value == ' ' || *value == '\t'))
				value++;
			while (stop > value && (stop[-1] == '\r' || stop[-1] == ' '))
				stop--;
			value_len = stop - value;
		}
		line = eol + 1;
	}
	if (value == NULL || (result = malloc(value_len + 1)) == NULL)
		return NULL;
	memcpy(result, value, value_len);
	result[value_len] = '\0';
	return result;
}
