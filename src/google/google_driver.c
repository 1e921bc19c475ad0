/*-------------------------------------------------------------------------
 *
 * google_driver.c
 *		The driver for Google Cloud Pub/Sub, and its session
 *
 * See google.h for the map of this directory.
 *
 * IDENTIFICATION
 *		src/google/google_driver.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "google/google.h"

#define DEFAULT_ENDPOINT	"https://pubsub.googleapis.com"

static PubsubStatus google_attach(PubsubSession *base, PubsubError *error);
static void google_detach(PubsubSession *base);
static bool init_client(GoogleClient *client, const PubsubOptions *options,
						PubsubError *error);
static bool init_endpoint(GoogleClient *client, const char *endpoint,
						  bool encrypt, PubsubError *error);
static bool google_version(int i, const char **component,
						   const char **version);

const PubsubDriver google_driver = {
	.name = "pubsub",
	.capabilities = PUBSUB_ACKS_EACH,
	.default_fetch_size = GOOGLE_MAX_PULL,
	.default_scan_records = 100,
	.default_scan_time = 5000,
	.session_fds = 24,
	.source_fds = 4,
	.attach = google_attach,
	.detach = google_detach,
	.source = &google_source_routine,
	.sink = &google_sink_routine,
	.admin = &google_admin_routine,
	.version = google_version,
};

static PubsubStatus
google_attach(PubsubSession *base, PubsubError *error)
{
	GoogleSession *session;

	if (!google_http_init(error))
		return PUBSUB_FAILED;
	session = calloc(1, sizeof(GoogleSession));
	if (session == NULL)
	{
		google_error_memory(error);
		return PUBSUB_FAILED;
	}
	session->owner = getpid();
	session->leases.wake_fd = -1;
	dlist_init(&session->sources);
	dlist_init(&session->sinks);
	dlist_init(&session->acks);
	base->state = session;

	if (!init_client(&session->client, base->options, error) ||
		!google_leases_init(&session->leases, &session->client, error))
	{
		google_detach(base);
		return PUBSUB_FAILED;
	}
	return PUBSUB_OK;
}

/*
 * google_detach
 *	  Closes and frees everything; waits for the thread, within a bound.
 */
static void
google_detach(PubsubSession *base)
{
	GoogleSession *session = base->state;
	dlist_mutable_iter iter;

	if (session == NULL)
		return;
	base->state = NULL;
	if (session->owner != getpid())
		return;					/* in a child there is no thread to end */

	google_call_free(session->admin);
	dlist_foreach_modify(iter, &session->sources)
		google_source_close(google_source_base(iter.cur));
	dlist_foreach_modify(iter, &session->sinks)
		google_sink_close(google_sink_base(iter.cur));
	google_free_acks(session);
	google_http_destroy(session->http);
	google_http_destroy(session->spare);
	if (!google_leases_stop(&session->leases, GOOGLE_DETACH_MS))
		return;					/* its thread still uses the rest */
	google_auth_free(&session->client.auth);
	free(session->client.url);
	free(session->client.host);
	free(session->client.ca_pem);
	free(session->client.ca_location);
	free(session);
}

/*
 * init_client
 *	  Copies what the thread needs too: it must not look at the options, which
 *	  are in PostgreSQL's memory.
 */
static bool
init_client(GoogleClient *client, const PubsubOptions *options,
			PubsubError *error)
{
	client->connect_timeout = options->connect_timeout;
	client->request_timeout = options->request_timeout;

	if (!init_endpoint(client,
					   options->endpoint ? options->endpoint :
					   DEFAULT_ENDPOINT,
					   options->auth != PUBSUB_AUTH_NONE, error))
		return false;
	if (options->ssl_ca_pem)
		client->ca_pem = strdup(options->ssl_ca_pem);
	if (options->ssl_ca_location)
		client->ca_location = strdup(options->ssl_ca_location);
	if ((options->ssl_ca_pem && client->ca_pem == NULL) ||
		(options->ssl_ca_location && client->ca_location == NULL))
	{
		google_error_memory(error);
		return false;
	}
	return google_auth_init(&client->auth, options, client->host, client->tls,
							error);
}

/*
 * init_endpoint
 *	  Takes an endpoint apart: [http[s]://]host[:port][/].
 *
 * Without a scheme it is encrypted if there is something to hide.
 */
static bool
init_endpoint(GoogleClient *client, const char *endpoint, bool encrypt,
			  PubsubError *error)
{
	const char *authority = endpoint;
	size_t		len;
	size_t		host_len;
	const char *bracket;

	client->tls = encrypt;
	if (pg_strncasecmp(endpoint, "https://", 8) == 0)
	{
		client->tls = true;
		authority += 8;
	}
	else if (pg_strncasecmp(endpoint, "http://", 7) == 0)
	{
		client->tls = false;
		authority += 7;
	}
	len = strlen(authority);
	if (len > 0 && authority[len - 1] == '/')
		len--;

	/* [v6 address]:port, or host:port */
	bracket = memchr(authority, ']', len);
	if (bracket)
		host_len = bracket - authority + 1;
	else
		host_len = strcspn(authority, ":/");
	host_len = Min(host_len, len);

	if (host_len == 0 || strcspn(authority, "/?#@ \\") < len)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "The endpoint is not of the form https://host:port.");
		return false;
	}

	client->url = malloc(len + sizeof("https://"));
	client->host = malloc(host_len + 1);
	if (client->url == NULL || client->host == NULL)
	{
		google_error_memory(error);
		return false;
	}
	snprintf(client->url, len + sizeof("https://"), "%s%.*s",
			 client->tls ? "https://" : "http://", (int) len, authority);
	memcpy(client->host, authority, host_len);
	client->host[host_len] = '\0';
	return true;
}

/*
 * google_session_http
 *	  The transfers of the session itself: acknowledgement, administration.
 */
GoogleHttp *
google_session_http(GoogleSession *session, PubsubError *error)
{
	if (session->http == NULL)
		session->http = google_http_create(&session->client, error);
	return session->http;
}

/*
 * google_session_take_http
 *	  Transfers for one source or sink alone; with the connections of an
 *	  earlier one if possible.
 */
GoogleHttp *
google_session_take_http(GoogleSession *session, PubsubError *error)
{
	GoogleHttp *http = session->spare;

	if (http == NULL)
		return google_http_create(&session->client, error);
	session->spare = NULL;
	return http;
}

/* http may be NULL.  No transfer is under way. */
void
google_session_return_http(GoogleSession *session, GoogleHttp *http)
{
	if (session->spare == NULL)
		session->spare = http;
	else
		google_http_destroy(http);
}

static bool
google_version(int i, const char **component, const char **version)
{
	switch (i)
	{
		case 0:
			*component = "libcurl";
			*version = google_http_version();
			return true;
		case 1:
			*component = "protobuf-c";
			*version = protobuf_c_version();
			return true;
		case 2:
			*component = "jansson";
			*version = google_json_version();
			return true;
		case 3:
			*component = "OpenSSL";
			*version = OpenSSL_version(OPENSSL_VERSION_STRING);
			return true;
		default:
			return false;
	}
}

int64
google_now_ms(void)
{
	struct timespec now;

	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
