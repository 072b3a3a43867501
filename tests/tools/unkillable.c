/* Preloaded: SIGKILL ends nobody, as where a driver hangs in the kernel. */
#define _GNU_SOURCE /* syscall */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int kill(pid_t pid, int number) {
    return number == SIGKILL ? 0 : (int)syscall(SYS_kill, pid, number);
}
