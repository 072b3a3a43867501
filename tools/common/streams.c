#include "tools/common/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* open() gives the lowest number that is free: that of the stream, since those before it are open by now. The wrong way round:
 * what is read or written there fails, as it does where nothing is open. */
void streams_keep(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}
