/*-------------------------------------------------------------------------
 *
 * google_auth.c
 *		The Authorization header
 *
 * A service account signs its own token (AIP-4111): no token server is asked.
 * The token is kept for nearly its hour, since a signature costs about a
 * millisecond.  Both threads take it from here.
 *
 * Nothing of a credential is ever put into an error.
 *
 * IDENTIFICATION
 *		src/google/google_auth.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <errno.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "google/google.h"

#define TOKEN_LIFETIME		3600	/* seconds; the longest allowed */
#define TOKEN_RENEW_BEFORE	225 /* seconds before it expires */

#define MAX_CREDENTIALS_FILE	(1024 * 1024)

static bool init_service_account(GoogleAuth *auth, const char *text,
								 const char *host, PubsubError *error);
static char *read_file(const char *path, PubsubError *error);
static EVP_PKEY *parse_key(const char *pem);
static int	no_password(char *buffer, int size, int writing, void *arg);
static char *sign_token(const GoogleAuth *auth, int64 now);
static char *base64url(const void *data, size_t len);

/*
 * google_auth_init
 *	  Decides how to authenticate, and checks that there is all it takes.
 */
bool
google_auth_init(GoogleAuth *auth, const PubsubOptions *options,
				 const char *host, bool tls, PubsubError *error)
{
	bool		has_key = options->credentials_json != NULL ||
	options->credentials_file != NULL;

	auth->kind = options->auth;
	if (auth->kind == PUBSUB_AUTH_DEFAULT)
	{
		if (has_key)
			auth->kind = PUBSUB_AUTH_SERVICE_ACCOUNT;
		else if (options->access_token)
			auth->kind = PUBSUB_AUTH_TOKEN;
		else if (!tls)
			auth->kind = PUBSUB_AUTH_NONE;
		else
		{
			pubsub_error_set(error, PUBSUB_ERROR_AUTH,
							 "The user mapping holds no credentials.");
			strlcpy(error->hint, "Set \"credentials_json\", \"credentials_file\" or \"access_token\" in the user mapping, or \"auth\" to \"none\".",
					sizeof(error->hint));
			return false;
		}
	}
	if (auth->kind != PUBSUB_AUTH_NONE && !tls)
	{
		pubsub_error_set(error, PUBSUB_ERROR_INVALID,
						 "Credentials are not sent over an unencrypted connection.");
		strlcpy(error->hint, "Use an \"endpoint\" that begins with https://, or set \"auth\" to \"none\" in the user mapping.",
				sizeof(error->hint));
		return false;
	}

	if (pthread_mutex_init(&auth->lock, NULL) != 0)
	{
		google_error_memory(error);
		return false;
	}
	auth->lock_made = true;

	if (auth->kind == PUBSUB_AUTH_TOKEN)
	{
		if (options->access_token == NULL)
		{
			pubsub_error_set(error, PUBSUB_ERROR_AUTH,
							 "The user mapping has no \"access_token\".");
			return false;
		}
		for (const char *p = options->access_token; *p; p++)
		{
			/* it becomes part of a header line */
			if (*p <= ' ' || *p >= 0x7f)
			{
				pubsub_error_set(error, PUBSUB_ERROR_AUTH,
								 "The \"access_token\" contains a character that no token has.");
				return false;
			}
		}
		auth->token = strdup(options->access_token);
		if (auth->token == NULL)
		{
			google_error_memory(error);
			return false;
		}
	}
	else if (auth->kind == PUBSUB_AUTH_SERVICE_ACCOUNT)
	{
		char	   *text = NULL;
		bool		ok;

		if (!has_key)
		{
			pubsub_error_set(error, PUBSUB_ERROR_AUTH,
							 "The user mapping has neither \"credentials_json\" nor \"credentials_file\".");
			return false;
		}
		if (options->credentials_json == NULL)
		{
			text = read_file(options->credentials_file, error);
			if (text == NULL)
				return false;
		}
		ok = init_service_account(auth,
								  text ? text : options->credentials_json,
								  host, error);
		if (text)
			explicit_bzero(text, strlen(text));
		free(text);
		return ok;
	}
	return true;
}

static bool
init_service_account(GoogleAuth *auth, const char *text, const char *host,
					 PubsubError *error)
{
	GoogleCredentials credentials;
	size_t		size = strlen(host) + sizeof("https:///");

	if (!google_json_credentials(text, &credentials, error))
		return false;

	if (credentials.type == NULL ||
		strcmp(credentials.type, "service_account") != 0)
	{
		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The credentials are not those of a service account (\"type\": \"service_account\").");
		google_json_credentials_free(&credentials);
		return false;
	}
	if (credentials.client_email == NULL || credentials.private_key == NULL ||
		credentials.private_key_id == NULL)
	{
		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The credentials lack \"%s\".",
						 credentials.client_email == NULL ? "client_email" :
						 credentials.private_key == NULL ? "private_key" :
						 "private_key_id");
		google_json_credentials_free(&credentials);
		return false;
	}

	auth->key = parse_key(credentials.private_key);
	auth->client_email = credentials.client_email;
	auth->key_id = credentials.private_key_id;
	credentials.client_email = NULL;
	credentials.private_key_id = NULL;
	google_json_credentials_free(&credentials);
	if (auth->key == NULL)
	{
		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The \"private_key\" of the credentials is not an RSA key in PEM format.");
		return false;
	}
	auth->audience = malloc(size);
	if (auth->audience == NULL)
	{
		google_error_memory(error);
		return false;
	}
	snprintf(auth->audience, size, "https://%s/", host);
	return true;
}

/*
 * read_file
 *	  Reads a file as a string.  Who may name one is the validator's business.
 */
static char *
read_file(const char *path, PubsubError *error)
{
	FILE	   *file = fopen(path, "r");
	char	   *text;
	size_t		len;

	if (file == NULL)
	{
		int			save_errno = errno;

		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The file \"%.300s\" could not be opened: %s.", path,
						 strerror(save_errno));
		return NULL;
	}
	text = malloc(MAX_CREDENTIALS_FILE + 1);
	if (text == NULL)
	{
		fclose(file);
		google_error_memory(error);
		return NULL;
	}
	len = fread(text, 1, MAX_CREDENTIALS_FILE, file);
	text[len] = '\0';
	if (ferror(file) || !feof(file))
	{
		explicit_bzero(text, len);
		free(text);
		text = NULL;
		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The file \"%.300s\" could not be read, or is no credentials file.",
						 path);
	}
	fclose(file);
	return text;
}

static EVP_PKEY *
parse_key(const char *pem)
{
	BIO		   *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY   *key = NULL;

	if (bio)
		key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	BIO_free(bio);
	if (key && EVP_PKEY_base_id(key) != EVP_PKEY_RSA)
	{
		EVP_PKEY_free(key);
		key = NULL;
	}

	/* the server's own TLS looks at this queue */
	ERR_clear_error();
	return key;
}

/* OpenSSL would ask at the terminal. */
static int
no_password(char *buffer pg_attribute_unused(),
			int size pg_attribute_unused(),
			int writing pg_attribute_unused(),
			void *arg pg_attribute_unused())
{
	return -1;
}

void
google_auth_free(GoogleAuth *auth)
{
	EVP_PKEY_free(auth->key);
	if (auth->token)
		explicit_bzero(auth->token, strlen(auth->token));
	free(auth->token);
	free(auth->client_email);
	free(auth->key_id);
	free(auth->audience);
	if (auth->lock_made)
		pthread_mutex_destroy(&auth->lock);
	memset(auth, 0, sizeof(GoogleAuth));
}

/*
 * google_auth_header
 *	  Makes the header line, signing a new token if the old one gets old.
 */
bool
google_auth_header(GoogleAuth *auth, char **header, PubsubError *error)
{
	static const char prefix[] = "authorization: Bearer ";
	int64		now = (int64) time(NULL);

	*header = NULL;
	if (auth->kind == PUBSUB_AUTH_NONE)
		return true;

	pthread_mutex_lock(&auth->lock);
	if (auth->kind == PUBSUB_AUTH_SERVICE_ACCOUNT &&
		(auth->token == NULL || now >= auth->token_renew_at))
	{
		char	   *token = sign_token(auth, now);

		if (token)
		{
			free(auth->token);
			auth->token = token;
			auth->token_renew_at = now + TOKEN_LIFETIME - TOKEN_RENEW_BEFORE;
		}
	}
	if (auth->token)
	{
		size_t		size = sizeof(prefix) + strlen(auth->token);

		*header = malloc(size);
		if (*header)
			snprintf(*header, size, "%s%s", prefix, auth->token);
	}
	pthread_mutex_unlock(&auth->lock);

	if (*header == NULL)
	{
		pubsub_error_set(error, PUBSUB_ERROR_AUTH,
						 "The token could not be signed.");
		return false;
	}
	return true;
}

bool
google_auth_renew(GoogleAuth *auth)
{
	if (auth->kind != PUBSUB_AUTH_SERVICE_ACCOUNT)
		return false;
	pthread_mutex_lock(&auth->lock);
	free(auth->token);
	auth->token = NULL;
	pthread_mutex_unlock(&auth->lock);
	return true;
}

/*
 * sign_token
 *	  Makes a JWT: header.claims.signature, each base64url.  NULL = failed.
 */
static char *
sign_token(const GoogleAuth *auth, int64 now)
{
	char	   *header = google_json_jwt_header(auth->key_id);
	char	   *claims = google_json_jwt_claims(auth->client_email,
												auth->audience, now,
												now + TOKEN_LIFETIME);
	char	   *header64 = header ? base64url(header, strlen(header)) : NULL;
	char	   *claims64 = claims ? base64url(claims, strlen(claims)) : NULL;
	char	   *signature64 = NULL;
	char	   *token = NULL;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (header64 && claims64 && ctx)
	{
		size_t		size = strlen(header64) + strlen(claims64) + 2;
		size_t		signature_len = EVP_PKEY_size(auth->key);
		unsigned char *signature = malloc(signature_len);

		token = malloc(size);
		if (token && signature)
		{
			snprintf(token, size, "%s.%s", header64, claims64);
			if (EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL,
								   auth->key) == 1 &&
				EVP_DigestSign(ctx, signature, &signature_len,
							   (const unsigned char *) token,
							   strlen(token)) == 1)
				signature64 = base64url(signature, signature_len);
		}
		free(signature);
		if (signature64)
		{
			char	   *longer = realloc(token,
										 size + strlen(signature64) + 1);

			if (longer)
			{
				token = longer;
				strcat(token, ".");
				strcat(token, signature64);
			}
			else
			{
				free(token);
				token = NULL;
			}
		}
		else
		{
			free(token);
			token = NULL;
		}
	}
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	free(header);
	free(claims);
	free(header64);
	free(claims64);
	free(signature64);
	return token;
}

/*
 * base64url
 *	  Encodes with the alphabet for URLs and without padding, malloc'd.
 */
static char *
base64url(const void *data, size_t len)
{
	char	   *text = malloc((len + 2) / 3 * 4 + 1);

	if (text == NULL)
		return NULL;
	(void) EVP_EncodeBlock((unsigned char *) text, data, (int) len);
	for (char *p = text; *p; p++)
	{
		if (*p == '+')
			*p = '-';
		else if (*p == '/')
			*p = '_';
		else if (*p == '=')
		{
			*p = '\0';
			break;
		}
	}
	return text;
}
