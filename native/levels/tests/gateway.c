/* Tests of the level that the gateway signs: which fields are valid, and which are not. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KEY "0707070707070707070707070707070707070707070707070707070707070707"
#define OTHER_KEY "0808080808080808080808080808080808080808080808080808080808080808"

/* Makes a file of keys that only its owner may read. It is removed at the end of the test. */
static const char *key_file(const char *keys) {
    static char path[] = "/tmp/levels-keys-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, keys, strlen(keys)) == (ssize_t)strlen(keys) && close(file) == 0);
    return path;
}

/* Writes the field that the gateway sends, signed `seconds_ago` seconds ago, to `text`. It uses
 * another implementation of RFC 2104. */
static size_t field(char text[200], const char *key, int seconds_ago) {
    char command[800];
    snprintf(command, sizeof command,
             "python3 -c '\nimport base64, hashlib, hmac, time\n"
             "mac = lambda key, text: hmac.new(key, text, hashlib.sha256).digest()\n"
             "said = b\"high;%%d\" %% (time.time() - %d)\n"
             "tag = mac(mac(bytes.fromhex(\"%s\"), b\"bywash level: sign\"), said)\n"
             "print((said + b\";\" + base64.urlsafe_b64encode(tag).rstrip(b\"=\")).decode(), end=\"\")'",
             seconds_ago, key);
    FILE *signer = popen(command, "r");
    CHECK(signer != NULL);
    size_t length = fread(text, 1, 199, signer);
    CHECK(pclose(signer) == 0 && length > 50);
    text[length] = 0;
    return length;
}

static void believed(void) {
    const char *path = key_file(KEY "\n");
    struct bywash_levels_gateway *gateway = bywash_levels_gateway_new(path);
    CHECK(gateway != NULL);
    char level[BYWASH_LEVELS_NAME], text[200];
    memset(level, 'x', sizeof level);
    size_t length = field(text, KEY, 0);
    /* The byte after the field is not read. */
    text[length] = 'x';
    CHECK(bywash_levels_gateway_level(gateway, text, length, level) == 0);
    CHECK(strcmp(level, "high") == 0 && level[5] == 'x');
    REFUSED(EBADMSG, "not a level", bywash_levels_gateway_level(gateway, text, length - 1, level));
    REFUSED(EBADMSG, "not a level", bywash_levels_gateway_level(gateway, "", 0, level));
    REFUSED(EBADMSG, "too long", bywash_levels_gateway_level(gateway, text, SIZE_MAX, level));
    text[0] = 'l';
    REFUSED(EKEYREJECTED, "none of the keys", bywash_levels_gateway_level(gateway, text, length, level));
    length = field(text, KEY, 100);
    REFUSED(EKEYEXPIRED, "too old", bywash_levels_gateway_level(gateway, text, length, level));
    length = field(text, KEY, -100);
    REFUSED(EKEYEXPIRED, "future", bywash_levels_gateway_level(gateway, text, length, level));
    REFUSED(EINVAL, "the gateway is NULL", bywash_levels_gateway_level(NULL, text, length, level));
    REFUSED(EINVAL, "the field is NULL", bywash_levels_gateway_level(gateway, NULL, 0, level));
    REFUSED(EINVAL, "the level is NULL", bywash_levels_gateway_level(gateway, text, length, NULL));
    CHECK(strcmp(level, "high") == 0);
    pid_t child = fork();
    if (child == 0) {
        REFUSED(ESRCH, "parent", bywash_levels_gateway_level(gateway, text, length, level));
        _exit(0);
    }
    child_passes(child);
    CHECK(bywash_levels_gateway_free(gateway) == 0 && bywash_levels_gateway_free(NULL) == 0);
    CHECK(unlink(path) == 0);
}

static void not_keys(void) {
    const char *path = key_file("no key\n");
    NOT_MADE(EINVAL, "line 1 is not a key", bywash_levels_gateway_new(path));
    CHECK(chmod(path, 0644) == 0);
    NOT_MADE(EPERM, "every user may read", bywash_levels_gateway_new(path));
    CHECK(unlink(path) == 0);
    NOT_MADE(ENOENT, "No such file", bywash_levels_gateway_new(path));
    NOT_MADE(EINVAL, "NULL", bywash_levels_gateway_new(NULL));
}

static void exchanged(void) {
    const char *path = key_file(KEY "\n");
    struct bywash_levels_gateway *gateway = bywash_levels_gateway_new(path);
    CHECK(gateway != NULL);
    int file = open(path, O_WRONLY | O_TRUNC);
    CHECK(file >= 0 && write(file, OTHER_KEY "\n", 65) == 65 && close(file) == 0);
    char level[BYWASH_LEVELS_NAME], text[200];
    size_t length = field(text, OTHER_KEY, 0);
    UNTIL(bywash_levels_gateway_level(gateway, text, length, level) == 0);
    CHECK(strcmp(level, "high") == 0);
    CHECK(bywash_levels_gateway_free(gateway) == 0 && unlink(path) == 0);
}

const struct test gateway_tests[] = {
    {"believed", "what the gateway has signed names a level, and nothing else does", believed},
    {"keys", "a file without keys, or that every user may read, is refused", not_keys},
    {"exchanged", "keys that were exchanged are found", exchanged},
    {0},
};
