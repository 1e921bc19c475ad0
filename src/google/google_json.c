/*-------------------------------------------------------------------------
 *
 * google_json.c
 *		JSON of the credentials: a key file in, the parts of a token out
 *
 * The only file that sees jansson.  The server has a function json_object()
 * of its own, to which a call from here would be bound; hence the poison, and
 * json_pack(), whose inner call stays inside libjansson.
 *
 * IDENTIFICATION
 *		src/google/google_json.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <jansson.h>

#include "google/google.h"

#pragma GCC poison json_object

static bool copy_string(json_t *root, const char *name, char **copy);

/*
 * google_json_credentials
 *	  Takes what we need from a credentials file.
 *
 * What the text says is never shown: it holds a private key.
 */
bool
google_json_credentials(const char *text, GoogleCredentials *credentials,
						PubsubError *error)
{
	json_error_t json_error;
	json_t	   *root = json_loads(text, JSON_REJECT_DUPLICATES, &json_error);
	bool		ok;

	memset(credentials, 0, sizeof(GoogleCredentials));
	if (root == NULL)
	{
		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The credentials are not valid JSON (line %d, column %d).",
						 json_error.line, json_error.column);
		return false;
	}
	ok = copy_string(root, "type", &credentials->type) &&
		copy_string(root, "client_email", &credentials->client_email) &&
		copy_string(root, "private_key", &credentials->private_key) &&
		copy_string(root, "private_key_id", &credentials->private_key_id);
	json_decref(root);
	if (!ok)
	{
		google_json_credentials_free(credentials);
		google_error_memory(error);
	}
	return ok;
}

/* A member that is missing, or no string, stays NULL.  False = no memory. */
static bool
copy_string(json_t *root, const char *name, char **copy)
{
	const char *value = json_string_value(json_object_get(root, name));

	if (value == NULL)
		return true;
	*copy = strdup(value);
	return *copy != NULL;
}

void
google_json_credentials_free(GoogleCredentials *credentials)
{
	if (credentials->private_key)
		explicit_bzero(credentials->private_key,
					   strlen(credentials->private_key));
	free(credentials->type);
	free(credentials->client_email);
	free(credentials->private_key);
	free(credentials->private_key_id);
	memset(credentials, 0, sizeof(GoogleCredentials));
}

/*
 * google_json_jwt_header, google_json_jwt_claims
 *	  The two JSON parts of a token, malloc'd; NULL = failed.
 */
char *
google_json_jwt_header(const char *key_id)
{
	json_t	   *root = json_pack("{s:s, s:s, s:s}", "alg", "RS256",
								 "typ", "JWT", "kid", key_id);
	char	   *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

char *
google_json_jwt_claims(const char *issuer, const char *audience,
					   int64 issued_at, int64 expires)
{
	json_t	   *root = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", issuer,
								 "sub", issuer, "aud", audience,
								 "iat", (json_int_t) issued_at,
								 "exp", (json_int_t) expires);
	char	   *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

const char *
google_json_version(void)
{
	return jansson_version_str();
}
