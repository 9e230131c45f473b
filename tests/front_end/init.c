/* The first process of a guest that runs one shell script with the host's userland: the host's root
   read-only, and one folder of the host to write to, at the same path. Its command line names the
   repository, which /tmp would hide where it lies there, and that folder; the folder has `script`, and
   gets `log` and `status`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int result, const char *what) {
    if (result >= 0)
        return;
    fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
    reboot(RB_POWER_OFF);
}

static void load_modules(void) {
    FILE *order = fopen("/modules/order", "r");
    char name[100], path[200];
    while (order && fscanf(order, "%99s", name) == 1) {
        snprintf(path, sizeof path, "/modules/%s.ko", name);
        int module = open(path, O_RDONLY);
        if (syscall(SYS_finit_module, module, "", 0) < 0 && errno != EEXIST)
            fprintf(stderr, "init: module %s: %s\n", name, strerror(errno));
        close(module);
    }
}

static void make_folders(char *path) {
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(path, 0755);
            *at = '/';
        }
    mkdir(path, 0755);
}

static void mount_share(const char *tag, const char *at, unsigned long flags, const char *options) {
    char path[4096];
    snprintf(path, sizeof path, "/host%s", at);
    make_folders(path);
    check(mount(tag, path, "9p", flags, options), path);
}

static void mount_all(const char *repository, const char *out) {
    const char *share = "trans=virtio,version=9p2000.L,cache=loose,msize=512000";
    mkdir("/host", 0755);
    check(mount("root", "/host", "9p", MS_RDONLY, share), "mount the host's root");
    const char *own[] = {"/host/tmp", "/host/run", "/host/media"};
    for (int each = 0; each < 3; each++)
        check(mount("tmpfs", own[each], "tmpfs", 0, "mode=1777"), own[each]);
    const char *bound[] = {"/dev", "/sys", "/proc"};
    char path[4096];
    for (int each = 0; each < 3; each++) {
        snprintf(path, sizeof path, "/host%s", bound[each]);
        check(mount(bound[each], path, 0, MS_BIND | MS_REC, 0), path);
    }
    mount_share("repository", repository, MS_RDONLY, share);
    mount_share("out", out, 0, "trans=virtio,version=9p2000.L,msize=512000");
}

int main(int count, char **arguments) {
    mount("proc", "/proc", "proc", 0, 0);
    mount("sys", "/sys", "sysfs", 0, 0);
    mount("dev", "/dev", "devtmpfs", 0, 0);
    load_modules();
    const char *out = arguments[count - 1];
    mount_all(arguments[count - 2], out);
    mkdir("/dev/shm", 01777);
    mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
    check(chroot("/host"), "chroot");
    check(chdir(out), "chdir");
    pid_t script = fork();
    if (script == 0) {
        int log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(log, 1);
        dup2(log, 2);
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        execl("/bin/sh", "sh", "script", (char *)0);
        _exit(127);
    }
    /* Orphans of the script are the first process's children, too, and end before it. */
    int status = 0;
    pid_t ended;
    do
        ended = wait(&status);
    while (ended != script && (ended >= 0 || errno == EINTR));
    FILE *file = fopen("status", "w");
    if (file) {
        fprintf(file, "%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        fclose(file);
    }
    sync();
    reboot(RB_POWER_OFF);
}
