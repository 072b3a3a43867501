#include "comm/secure/parts.h"

#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <string.h>

/* TLS 1.3 allows 2^24.5 records of AES-GCM under a key, some 400 GB. */
#define REKEY_BYTES (UINT64_C(1) << 36)

enum { LEAST_TOKEN = 16, REFUSALS_A_SECOND = 5 };

static const char psk_identity[] = "cltrain job token";
static const unsigned char session_context[] = "cltrain";

const char *clt_tls_reason(const char *otherwise) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : otherwise;
}

/* The token is a secret of any length; what TLS uses is derived from it (RFC 5869). */
static clt_status derive_psk(clt_security *security, const char *token) {
    static char digest[] = "SHA256", salt[] = "cltrain job token",
                info[] = "TLS 1.3 external PSK, version 1";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)token, strlen(token)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt, sizeof salt - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, sizeof info - 1),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    bool right = context && EVP_KDF_derive(context, security->psk, CLT_PSK_BYTES, parameters) > 0;
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    if (right) return CLT_OK;
    return clt_fail(CLT_E_SYSTEM, "no key could be derived from the token: %s",
                    clt_tls_reason("HKDF is missing"));
}

/* A session of the job's key; a new one each time, for a connection writes into its own. */
static SSL_SESSION *make_session(SSL *ssl) {
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    const clt_security *security = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session && cipher && SSL_SESSION_set1_master_key(session, security->psk, CLT_PSK_BYTES) &&
        SSL_SESSION_set_cipher(session, cipher) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
        SSL_SESSION_set1_id_context(session, session_context, sizeof session_context - 1))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int find_session(SSL *ssl, const unsigned char *identity, size_t bytes, SSL_SESSION **session) {
    *session = NULL;
    if (bytes != sizeof psk_identity - 1 || memcmp(identity, psk_identity, bytes) != 0) return 1;
    *session = make_session(ssl);
    return *session != NULL;
}

static int use_session(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *bytes,
                       SSL_SESSION **session) {
    *session = NULL;
    if (digest && !EVP_MD_is_a(digest, "SHA256")) return 1;
    *identity = (const unsigned char *)psk_identity;
    *bytes = sizeof psk_identity - 1;
    *session = make_session(ssl);
    return *session != NULL;
}

static clt_status use_certificates(SSL_CTX *context, const char *certificate, const char *key,
                                   const char *authority) {
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return clt_fail(CLT_E_INVALID, "%s: no certificate can be read: %s", certificate,
                        clt_tls_reason("unknown"));
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return clt_fail(CLT_E_INVALID, "%s: no private key of %s can be read: %s", key, certificate,
                        clt_tls_reason("unknown"));
    if (SSL_CTX_load_verify_file(context, authority) != 1)
        return clt_fail(CLT_E_INVALID, "%s: no authority's certificate can be read: %s", authority,
                        clt_tls_reason("unknown"));
    return CLT_OK;
}

static clt_status set_up(SSL_CTX *context) {
    /* Of SHA-256 both, as the key is. */
    bool right =
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") &&
        SSL_CTX_set_num_tickets(context, 0) &&
        SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context,
                        SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* With level auth the plain bytes that follow the handshake are not OpenSSL's to read. */
    SSL_CTX_set_read_ahead(context, 0);
    SSL_CTX_set_verify_depth(context, 4);
    return right ? CLT_OK
                 : clt_fail(CLT_E_SYSTEM, "TLS 1.3 cannot be set up: %s", clt_tls_reason("unknown"));
}

static clt_status make_context(clt_security *security, const char *token, const char *certificate,
                               const char *key, const char *authority) {
    /* A program that ends while a thread of ours still talks must not find OpenSSL taken down under it. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ERR_clear_error();
    SSL_CTX *context = security->context = SSL_CTX_new(TLS_method());
    security->method = clt_bio_method();
    if (!context || !security->method) return clt_fail(CLT_E_NO_MEMORY, "TLS could not be started");
    SSL_CTX_set_app_data(context, security);
    CLT_TRY(set_up(context));
    if (certificate) return use_certificates(context, certificate, key, authority);
    security->with_psk = true;
    SSL_CTX_set_psk_find_session_callback(context, find_session);
    SSL_CTX_set_psk_use_session_callback(context, use_session);
    return derive_psk(security, token);
}

static clt_status check_wish(clt_comm_security level, const char *token, const char *certificate,
                             const char *key, const char *authority) {
    if (level != CLT_SECURITY_TLS && level != CLT_SECURITY_AUTH && level != CLT_SECURITY_NONE)
        return clt_fail(CLT_E_INVALID, "security level %d: there is none such", (int)level);
    if (level == CLT_SECURITY_NONE) return CLT_OK;
    if (certificate || key || authority) {
        const char *missing = !certificate ? "certificate"
                              : !key       ? "key"
                              : !authority ? "authority"
                                           : NULL;
        if (missing)
            return clt_fail(CLT_E_INVALID, "certificate, key and authority go together: no %s is given",
                            missing);
        return CLT_OK;
    }
    if (!token || !*token)
        return clt_fail(CLT_E_INVALID,
                        "the job has no token: set CLTRAIN_COMM_TOKEN or CLTRAIN_COMM_TOKEN_FILE to a "
                        "secret that all its ranks know, or CLTRAIN_COMM_SECURITY=none");
    if (strlen(token) < LEAST_TOKEN)
        return clt_fail(CLT_E_INVALID, "the job's token has %zu characters: %d at least", strlen(token),
                        LEAST_TOKEN);
    return CLT_OK;
}

clt_status clt_security_create(clt_security **out, clt_comm_security level, const char *token,
                               const char *certificate, const char *key, const char *authority) {
    *out = NULL;
    CLT_TRY(check_wish(level, token, certificate, key, authority));
    clt_security *security = clt_calloc(1, sizeof *security);
    if (!security) return clt_fail_memory(sizeof *security);
    security->level = level;
    security->rekey_bytes = REKEY_BYTES;
    clt_status status = clt_mutex_init(&security->refused_lock);
    if (status < 0) {
        clt_free(security);
        return status;
    }
    if (level != CLT_SECURITY_NONE) status = make_context(security, token, certificate, key, authority);
    if (status < 0) {
        clt_security_destroy(security);
        return status;
    }
    if (level == CLT_SECURITY_NONE)
        clt_log_message(CLT_LOG_WARNING,
                        "connections are NOT PROTECTED (security is none): whoever can reach a port of "
                        "this job can take part in it and change its results");
    *out = security;
    return CLT_OK;
}

void clt_security_destroy(clt_security *security) {
    if (!security) return;
    if (security->refused_silent)
        clt_log_message(CLT_LOG_WARNING, "%llu more connections were refused, the last from %s",
                        (unsigned long long)security->refused_silent, security->refused_last);
    SSL_CTX_free(security->context);
    BIO_meth_free(security->method);
    OPENSSL_cleanse(security->psk, sizeof security->psk);
    clt_mutex_destroy(&security->refused_lock);
    clt_free(security);
    /* What it keeps for this thread; the program's end would not free that (see above). */
    OPENSSL_thread_stop();
}

clt_comm_security clt_security_level(const clt_security *security) {
    return security->level;
}

/* Whether this one is written, and how many before it were not. */
static bool count_refusal(clt_security *security, const char *peer, uint64_t *silent) {
    double now = clt_seconds();
    clt_mutex_lock(&security->refused_lock);
    if (now >= security->refused_since + 1) {
        security->refused_since = now;
        security->refused_logged = 0;
    }
    bool written = security->refused_logged < REFUSALS_A_SECOND;
    *silent = security->refused_silent;
    security->refused_logged += written;
    security->refused_silent = written ? 0 : *silent + 1;
    size_t length = strnlen(peer, sizeof security->refused_last - 1);
    memcpy(security->refused_last, peer, length);
    security->refused_last[length] = '\0';
    clt_mutex_unlock(&security->refused_lock);
    return written;
}

void clt_log_refusal(const clt_security *security, const char *peer, const char *why) {
    /* Immutable but for these counts, which have a lock of their own. */
    uint64_t silent;
    if (!count_refusal((clt_security *)(uintptr_t)security, peer, &silent)) return;
    if (silent)
        clt_log_message(CLT_LOG_WARNING, "refused a connection from %s: %s (and %llu others before it)",
                        peer, why, (unsigned long long)silent);
    else clt_log_message(CLT_LOG_WARNING, "refused a connection from %s: %s", peer, why);
}
