#include "tools/common/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/common/message.h"

enum { FEWEST_FILES = 64 };

/* open() gives the lowest number that is free: that of the stream, since those before it are open by now. The wrong way round:
 * what is read or written there fails, as it does where nothing is open. */
void streams_keep(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

int streams_allow_many(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return 0;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < FEWEST_FILES)
        return run_error("%llu files may be open, and drivers need up to %d: see ulimit -n", (unsigned long long)limit.rlim_max,
                         FEWEST_FILES);
    setrlimit(RLIMIT_NOFILE, &limit);
    return 0;
}
