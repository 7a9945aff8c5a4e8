#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A command in a root file system of its own, as an unprivileged user, the way a container engine would run it:
namespaces of its own, no capabilities, no new privileges, /dev/shm of 64 MiB, and the system calls refused that
Docker's default profile refuses to a container without capabilities.

    container.command("/tmp/root", ["softib", "doctor"], uid=65534)      -> the words to run (as root)
    container.command(..., old=True)    on a kernel before 4.8, where the profile refuses process_vm_* as well
"""
import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys

# System calls of today's programs that the default profile refuses.
REFUSED = """
    acct add_key bpf chroot clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen fspick
    get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load
    kexec_load keyctl lookup_dcookie mbind migrate_pages mount mount_setattr move_mount move_pages nfsservctl
    open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root process_madvise quotactl quotactl_fd reboot
    request_key set_mempolicy set_mempolicy_home_node setdomainname sethostname setns settimeofday swapoff swapon
    syslog umount2 unshare userfaultfd uselib ustat vhangup
""".split()
REFUSED_BEFORE_4_8 = ["process_vm_readv", "process_vm_writev", "ptrace"]

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
I386 = 0x40000003  # the profile is one for 32-bit programs too
CLONE_NAMESPACES = 0x7E020000
COMPARE_MASKED_EQUAL, COMPARE_EQUAL = 7, 4
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


class Compare(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operation", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def load_filter(old):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ALLOW))
    if os.uname().machine == "x86_64" and library.seccomp_arch_add(rules, I386):
        sys.exit("container: no rules for 32-bit programs")

    def refuse(name, error, *compares):
        number = library.seccomp_syscall_resolve_name(name.encode())
        array = (Compare * len(compares))(*compares)
        if number >= 0 and library.seccomp_rule_add_array(rules, ERRNO | error, number, len(compares), array):
            sys.exit(f"container: no rule for {name}")

    for name in REFUSED + (REFUSED_BEFORE_4_8 if old else []):
        refuse(name, errno.EPERM)
    refuse("clone3", errno.ENOSYS)  # its flags are in memory, which a seccomp filter cannot read
    for bit in range(64):
        if CLONE_NAMESPACES >> bit & 1:
            refuse("clone", errno.EPERM, Compare(0, COMPARE_MASKED_EQUAL, 1 << bit, 1 << bit))
    refuse("socket", errno.EPERM, Compare(0, COMPARE_EQUAL, socket.AF_VSOCK, 0))
    if library.seccomp_load(rules):
        sys.exit("container: the kernel does not take the seccomp filter")


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def enter(root, uid, old, words):
    """Runs inside the new namespaces."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(kind, target, flags, options):
        os.makedirs(target, exist_ok=True)
        if libc.mount(kind.encode(), target.encode(), kind.encode(), flags, options.encode()):
            sys.exit(f"container: cannot mount {kind} at {target}: {os.strerror(ctypes.get_errno())}")

    raise_loopback()
    mount("proc", root + "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "")
    mount("tmpfs", root + "/dev/shm", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=64m")
    mount("tmpfs", root + "/tmp", MS_NOSUID | MS_NODEV, "mode=1777")
    os.chroot(root or "/")
    os.chdir("/tmp")
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    load_filter(old)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
    os.execvpe(words[0], words, environment)


def command(root, words, uid=65534, old=False):
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "--net", "--propagation", "private",
            "/usr/bin/python3", os.path.abspath(__file__), str(root), str(uid), "old" if old else "new", *words]


def why_not():
    """Returns the reason why no container is possible here, or None."""
    if os.getuid() != 0:
        return "only root can make the namespaces with a root of their own"
    done = subprocess.run(command("/", ["true"]), timeout=60, check=False, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip() or "unshare failed"


if __name__ == "__main__":
    enter(sys.argv[1].rstrip("/"), int(sys.argv[2]), sys.argv[3] == "old", sys.argv[4:])
