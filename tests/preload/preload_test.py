#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libsoftib_preload.so against fake_softibd: do unmodified programs see the HCAs of their virtual host?

The tests below InHost run inside a preloaded python (this file, called again with --in-host); those in FromOutside
run programs of the distribution.
"""
import ctypes
import errno
import fcntl
import glob
import mmap
import os
import select
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

BUILD = os.environ["SOFTIB_BUILD"]
LIBRARY = os.path.join(os.environ["SOFTIB_LIB"], "libsoftib_preload.so")
PYTHON = "/usr/bin/python3"
CA = "/sys/class/infiniband/softib0"
DEVICE = "/sys/devices/infiniband/softib0"  # where the PCI device of an adapter would be
UVERBS = "/dev/infiniband/uverbs0"
MAD_DEVICES = [f"{kind}{number}" for kind in ("issm", "umad") for number in range(4)]
LIBC = ctypes.CDLL(None, use_errno=True)  # resolves our functions first, as the program itself does
LOOK_UP = """
import ctypes, sys
class Found(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
libc, found = ctypes.CDLL(None), Found()
address = ctypes.cast(getattr(libc, sys.argv[1]), ctypes.c_void_p)
assert libc.dladdr(address, ctypes.byref(found))
print(found.file.decode())
"""
NODE_GUID_BETA = "0253:4600:0001:0000\n"


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def read_bytes(path):
    """Reads without codecs: python's import lock may be held when a thread of this process forks."""
    fd = os.open(path, os.O_RDONLY)
    data = os.read(fd, 4096)
    os.close(fd)
    return data


def close_without_the_library(fd):
    LIBC.syscall(3 if os.uname().machine == "x86_64" else 57, fd)  # close()


def error_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def real_path(path):
    """By libc's function: python's goes from link to link itself."""
    LIBC.realpath.restype = ctypes.c_void_p
    buffer = ctypes.create_string_buffer(4096)
    return buffer.value.decode() if LIBC.realpath(path.encode(), buffer) else None


class InHost(unittest.TestCase):
    """The view from inside a process of node `beta`."""

    def test_lists_directories(self):
        self.assertEqual(sorted(os.listdir("/sys/class/infiniband")), ["softib0", "softib1"])
        self.assertEqual(sorted(os.listdir("/dev/infiniband")), MAD_DEVICES[:4] + ["rdma_cm"] + MAD_DEVICES[4:] + ["uverbs0", "uverbs1"])
        self.assertEqual(sorted(os.listdir(CA + "/ports/")), ["1", "2"])

    def test_the_type_of_a_free_gid_is_a_file_that_cannot_be_read(self):
        free = CA + "/ports/1/gid_attrs/ndevs/0"
        self.assertTrue(stat.S_ISREG(os.stat(free).st_mode))
        self.assertTrue(os.access(free, os.R_OK))
        self.assertEqual(error_of(read, free), errno.EINVAL)
        self.assertEqual(error_of(read, CA + "/ports/1/gid_attrs/ndevs/77"), errno.ENOENT)

    def test_adds_to_real_directories(self):
        for path, ours, real in (("/sys/class", "infiniband_verbs", "net"), ("/dev", "infiniband", "null"),
                                 ("/sys/devices", "infiniband", "system"), ("/sys/devices/virtual/misc", "rdma_cm", "fuse")):
            names = os.listdir(path)
            self.assertIn(ours, names)
            self.assertIn(real, names)
            self.assertEqual(len(names), len(set(names)))
            fd = os.open(path, os.O_RDONLY)
            self.assertEqual(sorted(os.listdir(fd)), sorted(names))
            os.close(fd)

    def test_reads_files_of_its_own_node(self):
        self.assertEqual(read(CA + "/node_guid"), NODE_GUID_BETA)
        self.assertEqual(read("/sys/class/infiniband_verbs/uverbs0/device/infiniband_verbs/uverbs0/ibdev"), "softib0\n")

    def test_walks_and_globs(self):
        self.assertEqual([names for _, _, names in os.walk("/sys/class/infiniband")], [[]])  # it has links only
        files = [os.path.join(d, f) for d, _, names in os.walk("/sys/devices/infiniband") for f in names]
        self.assertGreater(len(files), 150)
        for path in files:
            if "/gid_attrs/ndevs/" not in path:  # InfiniBand GIDs have no interface
                self.assertEqual(os.stat(path).st_size, len(read(path)), path)
        self.assertEqual(sorted(glob.glob("/sys/class/infiniband/*/ports/1/lid")),
                         [f"/sys/class/infiniband/softib{i}/ports/1/lid" for i in (0, 1)])

    def test_odd_spellings(self):
        for path in ("/sys//class/./infiniband/softib0/node_guid", "/dev/../sys/class/infiniband/softib0/node_guid",
                     "/sys/class/infiniband_verbs/uverbs0/device/infiniband/softib0/node_guid"):
            self.assertEqual(read(path), NODE_GUID_BETA, path)
        os.chdir("/sys/class")
        self.assertEqual(read("infiniband/softib0/node_guid"), NODE_GUID_BETA)
        self.assertIn("infiniband", os.listdir("."))
        os.chdir("/")
        self.assertEqual(read("sys/class/infiniband/softib0/node_guid"), NODE_GUID_BETA)

    def test_directory_descriptors(self):
        top = os.open("/sys/class/infiniband", os.O_RDONLY | os.O_DIRECTORY)
        self.assertTrue(stat.S_ISDIR(os.fstat(top).st_mode))
        self.assertEqual(os.fstat(top).st_ino, os.stat("/sys/class/infiniband").st_ino)
        hca = os.open("softib0", os.O_RDONLY, dir_fd=top)
        copy = os.dup(hca)
        os.close(hca)
        self.assertEqual(os.stat("node_type", dir_fd=copy).st_size, len("1: CA\n"))
        self.assertTrue(os.access("ports/1/state", os.R_OK, dir_fd=copy))
        self.assertEqual(os.listdir(os.open("..", os.O_RDONLY, dir_fd=copy)), ["softib0"])
        # From our part of the tree into the real one.
        outside = os.open("../../../../../class", os.O_RDONLY, dir_fd=copy)
        self.assertEqual(os.fstat(outside).st_ino, os.stat("/sys/class").st_ino)
        self.assertEqual(os.stat("/etc/passwd", dir_fd=copy).st_ino, os.stat("/etc/passwd").st_ino)
        self.assertEqual(error_of(os.stat, "no/such"), errno.ENOENT)
        self.assertTrue(stat.S_ISDIR(os.stat("infiniband/softib0", dir_fd=outside).st_mode))

    def test_the_working_directory_may_be_one_of_ours(self):
        before = os.getcwd()
        try:
            os.chdir("/sys/class/infiniband")
            self.assertEqual(os.getcwd(), "/sys/class/infiniband")
            self.assertEqual(sorted(os.listdir(".")), ["softib0", "softib1"])
            self.assertEqual(sorted(glob.glob("*")), ["softib0", "softib1"])
            self.assertEqual(read("softib0/node_guid"), NODE_GUID_BETA)
            self.assertTrue(os.path.isdir("softib1/ports/1"))
            self.assertEqual(os.stat(".").st_ino, os.stat("/sys/class/infiniband").st_ino)
            os.chdir("softib0/ports")
            self.assertEqual(os.getcwd(), DEVICE + "/infiniband/softib0/ports")
            self.assertEqual(read("../node_guid"), NODE_GUID_BETA)
            top = os.open("/sys/class/infiniband/softib1", os.O_RDONLY)
            os.fchdir(top)
            os.close(top)
            self.assertEqual(os.getcwd(), "/sys/devices/infiniband/softib1/infiniband/softib1")
            # Out of our part, by relative names: the real directories.
            self.assertEqual(os.stat("../../../../../class").st_ino, os.stat("/sys/class").st_ino)
            self.assertEqual(os.lstat("../../../../../../etc/passwd").st_ino, os.stat("/etc/passwd").st_ino)
            self.assertIn("system", os.listdir("../../../.."))
            with open("../../../../../../etc/passwd", encoding="utf-8") as file:
                self.assertIn("root", file.read())
            os.chdir("device")
            self.assertEqual(os.getcwd(), "/sys/devices/infiniband/softib1")
            os.chdir("../../../class")
            self.assertEqual(os.getcwd(), "/sys/class")
            self.assertIn("infiniband", os.listdir("."))
        finally:
            os.chdir(before)
        self.assertEqual(os.getcwd(), before)

    def test_errors_of_chdir(self):
        before = os.getcwd()
        self.assertEqual(error_of(os.chdir, CA + "/node_guid"), errno.ENOTDIR)
        self.assertEqual(error_of(os.chdir, "/sys/class/infiniband/softib9"), errno.ENOENT)
        self.assertEqual(os.getcwd(), before)

    def test_a_child_that_goes_elsewhere_leaves_its_parent_where_it_is(self):
        before = os.getcwd()
        try:
            os.chdir("/sys/class/infiniband")
            for path in ("/", "/sys/class/infiniband/softib0"):
                subprocess.run(["/bin/true"], timeout=60, cwd=path, check=True)  # vfork() and chdir()
                self.assertEqual(os.getcwd(), "/sys/class/infiniband")
            pid = os.fork()
            if pid == 0:
                os.chdir("softib1")
                os._exit(0 if os.getcwd() == os.path.realpath("/sys/class/infiniband/softib1") else 1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual(os.getcwd(), "/sys/class/infiniband")
        finally:
            os.chdir(before)

    def test_links(self):
        link = "/sys/class/infiniband_verbs/uverbs1/device"
        self.assertEqual(os.readlink(link), "../../../softib1")
        self.assertEqual(os.readlink("/sys/class/infiniband/softib1/device"), "../../../softib1")
        self.assertTrue(stat.S_ISLNK(os.lstat(link).st_mode))
        self.assertTrue(stat.S_ISDIR(os.stat(link).st_mode))
        LIBC.realpath.restype = ctypes.c_void_p
        buffer = ctypes.create_string_buffer(4096)
        self.assertTrue(LIBC.realpath(link.encode() + b"/numa_node", buffer))
        self.assertEqual(buffer.value, b"/sys/devices/infiniband/softib1/numa_node")
        self.assertFalse(LIBC.realpath(link.encode() + b"/nothing", buffer))
        self.assertEqual(ctypes.get_errno(), errno.ENOENT)

    def test_entries_of_classes_are_links_into_the_tree_of_devices(self):
        for entry, target in ((CA, DEVICE + "/infiniband/softib0"),
                              ("/sys/class/infiniband_verbs/uverbs1",
                               "/sys/devices/infiniband/softib1/infiniband_verbs/uverbs1"),
                              ("/sys/class/misc/rdma_cm", "/sys/devices/virtual/misc/rdma_cm")):
            self.assertEqual(os.readlink(entry), "../../" + target.removeprefix("/sys/"))
            self.assertEqual(os.path.realpath(entry), target)
            self.assertEqual(os.path.realpath(entry + "/subsystem"), os.path.dirname(entry))
            self.assertEqual(os.stat(entry).st_ino, os.stat(target).st_ino)

    def test_parents_of_links_are_those_of_their_targets(self):
        """As programs find the PCI device of an adapter."""
        self.assertEqual(real_path(CA + "/../.."), DEVICE)
        self.assertEqual(real_path(CA + "/device/.."), "/sys/devices/infiniband")
        self.assertEqual(read(CA + "/../../numa_node"), "-1\n")
        self.assertEqual(os.stat(CA + "/../../../..").st_ino, os.stat("/sys/devices").st_ino)
        self.assertEqual(os.stat("/sys/class/infiniband/..").st_ino, os.stat("/sys/class").st_ino)
        self.assertEqual(error_of(os.stat, CA + "/nothing/../node_guid"), errno.ENOENT)

    def test_each_path_of_the_tree_is_the_one_that_its_links_lead_to(self):
        count = 0
        for folder, folders, files in os.walk("/sys/devices/infiniband"):
            for name in folders + files:
                path = os.path.join(folder, name)
                shape = os.lstat(path)
                if stat.S_ISLNK(shape.st_mode):
                    target = os.path.normpath(os.path.join(folder, os.readlink(path)))
                    self.assertEqual(os.path.realpath(path), os.path.realpath(target))
                    self.assertEqual(os.stat(path).st_ino, os.stat(os.path.realpath(path)).st_ino)
                else:
                    self.assertEqual(os.path.realpath(path), path)
                    self.assertEqual(os.stat(path).st_ino, shape.st_ino)
                count += 1
        self.assertGreater(count, 150)

    def test_a_directory_cannot_be_read(self):
        for path in ("/sys/class/infiniband", CA, "/dev/infiniband"):
            fd = os.open(path, os.O_RDONLY)
            self.assertEqual(error_of(os.read, fd, 100), errno.EISDIR)
            self.assertEqual(error_of(os.pread, fd, 100, 0), errno.EISDIR)
            self.assertEqual(error_of(os.readv, fd, [bytearray(100)]), errno.EISDIR)
            for offset in (0, -1):  # os.preadv() is preadv2()
                self.assertEqual(error_of(os.preadv, fd, [bytearray(100)], offset), errno.EISDIR)
            os.close(fd)

    def test_errors_are_those_of_the_kernel(self):
        self.assertEqual(error_of(os.stat, "/sys/class/infiniband/softib9"), errno.ENOENT)
        self.assertEqual(error_of(os.open, CA + "/node_guid", os.O_RDWR), errno.EACCES)
        self.assertEqual(error_of(os.open, CA + "/new", os.O_WRONLY | os.O_CREAT), errno.EACCES)
        self.assertEqual(error_of(os.open, CA + "/node_guid", os.O_RDONLY | os.O_DIRECTORY), errno.ENOTDIR)
        self.assertEqual(error_of(os.stat, CA + "/node_guid/"), errno.ENOTDIR)
        self.assertEqual(error_of(os.open, CA, os.O_WRONLY), errno.EISDIR)
        self.assertEqual(error_of(os.listdir, CA + "/node_guid"), errno.ENOTDIR)
        self.assertEqual(error_of(os.readlink, CA + "/node_guid"), errno.EINVAL)
        self.assertEqual(error_of(os.open, "/sys/class/infiniband_verbs/uverbs0/device", os.O_RDONLY | os.O_NOFOLLOW),
                         errno.ELOOP)
        self.assertFalse(os.access(CA + "/node_guid", os.W_OK))
        self.assertEqual(error_of(os.getxattr, CA, "system.posix_acl_access"), errno.EOPNOTSUPP)

    def test_what_is_not_emulated_is_absent(self):
        for path in ("/dev/infiniband/umad4", "/dev/infiniband/issm4",
                     "/sys/class/infiniband_mad/umad4", "/sys/class/infiniband_cm", "/sys/class/misc/rdma_cm/x",
                     "/sys/class/net/lo/device/infiniband",
                     "/sys/class/net/lo/device/infiniband_verbs/uverbs0", "/sys/class/infiniband/hfi1_0"):
            self.assertEqual(error_of(os.stat, path), errno.ENOENT, path)
            self.assertEqual(error_of(os.open, path, os.O_RDWR), errno.ENOENT, path)
            self.assertFalse(os.path.exists(path))

    def test_what_is_the_kernels_stays_as_it_is(self):
        """Beside the claimed paths: no entry is hidden or added."""
        for path in ("/sys/class/misc", "/sys/class/net", "/sys/class/net/lo", "/sys/class/mem"):
            real = set(subprocess.run(["ls", "-A", path], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
                                      check=True).stdout.split())
            wanted = real | {"rdma_cm"} if path == "/sys/class/misc" else real
            self.assertEqual(set(os.listdir(path)), wanted, path)
            self.assertEqual({os.path.basename(name) for name in glob.glob(path + "/*")}, wanted, path)
        self.assertEqual(read("/sys/class/net/lo/ifindex"), "1\n")
        self.assertEqual(error_of(os.stat, "/sys/class/net/lo/device"), errno.ENOENT)

    def test_open_gives_the_lowest_descriptor_and_obeys_cloexec(self):
        first = os.open("/dev/zero", os.O_RDONLY)
        os.close(first)
        for path in (CA + "/node_guid", CA, UVERBS):
            fd = os.open(path, os.O_RDONLY)
            self.assertEqual(fd, first, path)
            self.assertFalse(os.get_inheritable(fd))
            os.close(fd)
            fd = LIBC.open(path.encode(), os.O_RDONLY)
            self.assertTrue(os.get_inheritable(fd), path)
            os.close(fd)

    def test_a_file_looks_the_same_open_and_closed(self):
        for path in (CA + "/node_guid", CA, UVERBS):
            fd = os.open(path, os.O_RDONLY)
            opened, named = os.fstat(fd), os.stat(path)
            for field in ("st_mode", "st_ino", "st_dev", "st_rdev", "st_size", "st_uid", "st_nlink"):
                self.assertEqual(getattr(opened, field), getattr(named, field), (path, field))
            os.close(fd)

    def test_stale_descriptors_are_told_from_ours(self):
        fd = os.open(CA + "/node_guid", os.O_RDONLY)
        close_without_the_library(fd)
        left, right = socket.socketpair()
        self.assertEqual(left.fileno(), fd)
        self.assertTrue(stat.S_ISSOCK(os.fstat(fd).st_mode))
        left.close()
        right.close()

    def test_streams_keep_their_place(self):
        stream = LIBC_DIR.opendir(b"/dev")
        names, places = [], []
        while True:
            places.append(LIBC_DIR.telldir(stream))
            entry = LIBC_DIR.readdir(stream)
            if not entry:
                break
            names.append(ctypes.string_at(entry + 19))
        self.assertIn(b"infiniband", names)
        for i in (len(names) - 1, 3, 0):
            LIBC_DIR.seekdir(stream, places[i])
            self.assertEqual(ctypes.string_at(LIBC_DIR.readdir(stream) + 19), names[i])
        LIBC_DIR.rewinddir(stream)
        self.assertEqual(ctypes.string_at(LIBC_DIR.readdir(stream) + 19), names[0])
        self.assertEqual(os.fstat(LIBC_DIR.dirfd(stream)).st_ino, os.stat("/dev").st_ino)
        self.assertEqual(LIBC_DIR.closedir(stream), 0)

    def test_scandir_of_libc(self):
        for path, name in ((b"/sys/class/infiniband", b"softib1"), (b"/sys/class", b"infiniband_verbs")):
            out = ctypes.POINTER(ctypes.c_void_p)()
            compare = ctypes.cast(LIBC.alphasort, ctypes.c_void_p)
            count = LIBC.scandir(path, ctypes.byref(out), None, compare)
            names = [ctypes.string_at(out[i] + 19) for i in range(count)]
            self.assertEqual(names[0], b".")
            self.assertIn(name, names)

    def test_fopen_and_errno(self):
        LIBC.fopen.restype = ctypes.c_void_p
        self.assertTrue(LIBC.fopen((CA + "/node_guid").encode(), b"re"))
        ctypes.set_errno(0)
        self.assertFalse(LIBC.fopen((CA + "/node_guid").encode(), b"w"))
        self.assertEqual(ctypes.get_errno(), errno.EACCES)
        ctypes.set_errno(77)
        self.assertEqual(LIBC.access(CA.encode(), os.F_OK), 0)
        self.assertEqual(ctypes.get_errno(), 77)

    def test_netlink_is_refused_so_that_libibverbs_looks_here(self):
        self.assertEqual(error_of(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 20), errno.EPROTONOSUPPORT)
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()

    def test_many_threads_and_forks(self):
        wrong = []

        def work():
            for _ in range(100):
                if read_bytes(CA + "/node_guid") != NODE_GUID_BETA.encode() or len(os.listdir(CA + "/ports")) != 2:
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if read_bytes(CA + "/node_guid") == NODE_GUID_BETA.encode() else 1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Hooks(ctypes.Structure):
    CREATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    READ = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ssize_t)
    CLOSED = ctypes.CFUNCTYPE(None, ctypes.c_int)
    _fields_ = [("size", ctypes.c_size_t), ("create", CREATE), ("read", READ), ("closed", CLOSED)]


class InHostVerbs(unittest.TestCase):
    """The calls of a provider and of libibverbs on an open uverbs device."""

    def setUp(self):
        self.closed = []
        self.first_writer = None
        self.hooks = Hooks(ctypes.sizeof(Hooks), Hooks.CREATE(self.create), Hooks.READ(self.read),
                           Hooks.CLOSED(self.closed.append))
        self.cmd_fd = os.open(UVERBS, os.O_RDWR | os.O_CLOEXEC)
        self.assertEqual(LIBC.softib_preload_register(ctypes.byref(self.hooks)), 0)

    def tearDown(self):
        LIBC.softib_preload_register(None)
        os.close(self.cmd_fd)

    def create(self, cmd_fd):
        self.assertEqual(cmd_fd, self.cmd_fd)
        reader, self.writer = os.pipe()
        self.first_writer = self.first_writer or self.writer
        return reader

    @staticmethod
    def read(_fd, data, _size, result):
        if result == 8:
            ctypes.memmove(data, struct.pack("<Q", 0x1234), 8)
        return result

    def create_channel(self):
        self.response = ctypes.create_string_buffer(4)
        request = struct.pack("<IHHQ", 17, 4, 1, ctypes.addressof(self.response))
        self.assertEqual(os.write(self.cmd_fd, request), len(request))
        return struct.unpack("<i", self.response.raw)[0]

    def test_device_is_a_character_device_as_sysfs_says(self):
        status = os.fstat(self.cmd_fd)
        self.assertTrue(stat.S_ISCHR(status.st_mode))
        device = read("/sys/class/infiniband_verbs/uverbs0/dev").strip()
        self.assertEqual(f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}", device)
        self.assertEqual(LIBC.softib_preload_is_uverbs(self.cmd_fd), 1)
        with open("/dev/null", "wb") as null:
            self.assertEqual(LIBC.softib_preload_is_uverbs(null.fileno()), 0)
            self.assertEqual(os.write(null.fileno(), b"0123456789"), 10)

    def test_ioctl_fails_so_that_libibverbs_uses_write(self):
        self.assertEqual(LIBC.ioctl(self.cmd_fd, ctypes.c_ulong(0xC0181B01), 0), -1)
        self.assertEqual(ctypes.get_errno(), errno.ENOTTY)

    def test_polls_as_the_kernels_device_does(self):
        """A device without poll(): always ready, and refused by epoll."""
        for fd in (self.cmd_fd, os.dup(self.cmd_fd)):
            poll = select.poll()
            poll.register(fd, select.POLLIN | select.POLLOUT | select.POLLPRI)
            self.assertEqual(poll.poll(0), [(fd, select.POLLIN | select.POLLOUT)])
            self.assertEqual(select.select([fd], [fd], [fd], 0), ([fd], [fd], []))
            with select.epoll() as epoll:
                self.assertEqual(error_of(epoll.register, fd, select.EPOLLIN), errno.EPERM)
        os.close(fd)

    def test_calls_that_the_kernels_device_does_not_have(self):
        self.assertEqual(error_of(os.read, self.cmd_fd, 8), errno.EINVAL)
        self.assertEqual(error_of(os.readv, self.cmd_fd, [bytearray(8)]), errno.EINVAL)
        self.assertEqual(error_of(os.lseek, self.cmd_fd, 0, os.SEEK_CUR), errno.ESPIPE)
        self.assertEqual(error_of(os.pread, self.cmd_fd, 8, 0), errno.ESPIPE)
        self.assertEqual(error_of(os.preadv, self.cmd_fd, [bytearray(8)], 0), errno.ESPIPE)
        self.assertEqual(error_of(os.pwrite, self.cmd_fd, b"12345678", 0), errno.ESPIPE)
        self.assertEqual(error_of(os.pwritev, self.cmd_fd, [b"12345678"], 0), errno.ESPIPE)
        self.assertEqual(error_of(mmap.mmap, self.cmd_fd, mmap.PAGESIZE), errno.ENODEV)
        self.assertEqual(error_of(fcntl.ioctl, self.cmd_fd, termios.TCGETS, bytes(64)), errno.ENOTTY)

    def test_calls_that_the_kernel_answers_for_any_device(self):
        fcntl.ioctl(self.cmd_fd, termios.FIONBIO, struct.pack("i", 1))
        self.assertFalse(os.get_blocking(self.cmd_fd))
        os.set_inheritable(self.cmd_fd, True)
        self.assertTrue(os.get_inheritable(self.cmd_fd))

    def test_a_copy_is_the_same_device(self):
        for copy in (os.dup(self.cmd_fd), fcntl.fcntl(self.cmd_fd, fcntl.F_DUPFD, 100), os.dup2(self.cmd_fd, 200)):
            self.assertEqual(os.fstat(copy), os.fstat(self.cmd_fd))
            self.assertEqual(error_of(os.write, copy, b""), errno.EINVAL)
            self.assertEqual(LIBC.softib_preload_is_uverbs(copy), 1)
            os.close(copy)
        original, self.cmd_fd = self.cmd_fd, os.dup(self.cmd_fd)
        os.close(original)
        os.close(self.create_channel())

    def test_what_replaces_it_is_not_one(self):
        reader, writer = os.pipe()
        copy = os.dup(self.cmd_fd)
        os.dup2(reader, copy)
        self.assertEqual(LIBC.softib_preload_is_uverbs(copy), 0)
        self.assertTrue(stat.S_ISFIFO(os.fstat(copy).st_mode))
        self.assertEqual(select.select([copy], [], [], 0)[0], [])
        os.write(writer, b"8 bytes.")
        self.assertEqual(os.read(copy, 8), b"8 bytes.")
        os.close(copy)
        copy = os.dup(self.cmd_fd)
        close_without_the_library(copy)
        self.assertEqual(os.dup(writer), copy)
        self.assertEqual(LIBC.softib_preload_is_uverbs(copy), 0)
        self.assertEqual(os.write(copy, b"8 bytes."), 8)
        self.assertEqual(os.read(reader, 9), b"8 bytes.")
        for fd in (reader, writer, copy):
            os.close(fd)

    def test_children(self):
        pid = os.fork()
        if pid == 0:
            same = LIBC.softib_preload_is_uverbs(self.cmd_fd) == 1 and error_of(os.write, self.cmd_fd, b"") == errno.EINVAL
            os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        # The program inherits the bare object and has a table of its own.
        done = subprocess.run(["stat", "-Lc", "%F %t:%T", f"/proc/self/fd/{self.cmd_fd}"], pass_fds=[self.cmd_fd],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "character special file 1:3\n")
        self.assertEqual(LIBC.softib_preload_is_uverbs(self.cmd_fd), 1)

    def test_closing_ranges(self):
        first = fcntl.fcntl(self.cmd_fd, fcntl.F_DUPFD, 300)
        channel = os.dup2(self.create_channel(), 301)
        self.assertEqual(LIBC.close_range(first, channel, 4), 0)  # CLOSE_RANGE_CLOEXEC
        self.assertEqual((LIBC.softib_preload_is_uverbs(first), self.closed), (1, []))
        self.assertEqual(LIBC.close_range(first, channel, 0), 0)
        self.assertEqual(self.closed, [channel])
        null = os.open("/dev/null", os.O_WRONLY)
        self.assertEqual(os.write(os.dup2(null, first), b"0123"), 4)
        os.close(first)
        os.close(null)

    def test_a_protected_descriptor_is_not_there_for_calls_that_close(self):
        own = fcntl.fcntl(self.cmd_fd, fcntl.F_DUPFD, 310)
        others = [os.dup2(self.cmd_fd, own + distance) for distance in (-2, -1, 1)]
        LIBC.softib_preload_protect(own)
        self.assertEqual(error_of(os.close, own), errno.EBADF)
        self.assertEqual(error_of(os.dup2, self.cmd_fd, own), errno.EBUSY)
        self.assertEqual(LIBC.dup3(self.cmd_fd, own, os.O_CLOEXEC), -1)
        self.assertEqual(LIBC.close_range(own, own, 0), 0)
        self.assertEqual(LIBC.close_range(own - 2, own + 1, 0), 0)
        os.fstat(own)
        for other in others:
            self.assertEqual(error_of(os.fstat, other), errno.EBADF)
        pid = os.fork()
        if pid == 0:  # its copies are its own
            os.close(own)
            os._exit(0 if error_of(os.fstat, own) == errno.EBADF else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        LIBC.softib_preload_unprotect(own)
        os.close(own)

    def test_closefrom_passes_over_protected_descriptors(self):
        own = fcntl.fcntl(self.cmd_fd, fcntl.F_DUPFD, 310)
        pid = os.fork()
        if pid == 0:
            LIBC.softib_preload_protect(own)
            ctypes.set_errno(errno.EXDEV)
            LIBC.closefrom(own - 1)
            LIBC.closefrom(3)
            same_errno = ctypes.get_errno() == errno.EXDEV
            left = [int(name) for name in os.listdir("/proc/self/fd")]
            os._exit(0 if same_errno and [fd for fd in left if fd > 3] == [own] else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(own)

    def test_the_connection_of_softib_run_survives_a_daemon(self):
        """Which closes all descriptors after a fork, and is not to lose its fabric."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(os.environ["SOFTIB_SOCKET"])
        os.dup2(connection.fileno(), 1000)
        program = ("import ctypes, os\n"
                   "pid = os.fork()\n"
                   "if pid == 0:\n"
                   "    ctypes.CDLL(None).closefrom(3)\n"
                   "    os.fstat(1000)\n"
                   "    os._exit(0)\n"
                   "raise SystemExit(os.waitpid(pid, 0)[1])\n")
        try:
            done = subprocess.run([sys.executable, "-c", program], pass_fds=[1000], check=False)
        finally:
            os.close(1000)
            connection.close()
        self.assertEqual(done.returncode, 0)

    def test_the_number_of_a_protected_descriptor_may_be_another_file(self):
        memory = os.memfd_create("own")
        own = os.dup2(memory, 310)
        os.close(memory)
        LIBC.softib_preload_protect(own)
        close_without_the_library(own)
        null = os.open("/dev/null", os.O_WRONLY)
        self.assertEqual(os.dup2(null, own), own)
        os.close(own)
        self.assertEqual(error_of(os.fstat, own), errno.EBADF)
        os.close(null)

    def test_import_gets_a_descriptor_for_events(self):
        """UVERBS_METHOD_ASYNC_EVENT_ALLOC, the one ioctl() that is answered."""
        header = struct.pack("<HHHHQII", 40, 16, 0, 1, 0, 0, 0)
        request = ctypes.create_string_buffer(header + struct.pack("<HHHHq", 0, 0, 0, 0, -1), 40)
        self.assertEqual(LIBC.ioctl(self.cmd_fd, ctypes.c_ulong(0xC0181B01), request), 0)
        events = struct.unpack("<q", request.raw[32:])[0]
        self.assertEqual(select.select([events], [], [], 0)[0], [])
        os.close(events)

    def test_channel_is_created_read_and_closed_through_the_hooks(self):
        channel = self.create_channel()
        os.write(self.writer, b"8 bytes.")
        self.assertEqual(os.read(channel, 8), struct.pack("<Q", 0x1234))
        copy = os.dup(channel)
        os.close(channel)
        self.assertEqual(self.closed, [channel])
        os.write(self.writer, b"8 bytes.")
        self.assertEqual(os.read(copy, 8), struct.pack("<Q", 0x1234))
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, copy)
        self.assertEqual(self.closed, [channel, copy])
        self.assertEqual(os.read(copy, 8), b"")

    def test_several_buffers_are_several_calls(self):
        """A command is in one buffer, as for the kernel's device; so is an event."""
        channel = self.create_channel()
        request = struct.pack("<IHHQ", 17, 4, 1, ctypes.addressof(self.response))
        self.assertEqual(os.writev(self.cmd_fd, [b"", request]), len(request))
        os.close(struct.unpack("<i", self.response.raw)[0])
        self.assertEqual(error_of(os.writev, self.cmd_fd, [request[:8], request[8:]]), errno.EINVAL)
        self.assertEqual(os.writev(self.cmd_fd, [request, request[:8]]), len(request))
        os.close(struct.unpack("<i", self.response.raw)[0])
        self.assertEqual(os.writev(self.cmd_fd, [b""]), 0)
        self.assertEqual(error_of(os.pwritev, self.cmd_fd, [request[:8]], -1), errno.EINVAL)
        self.assertEqual(LIBC.writev(self.cmd_fd, 0, 1025), -1)
        self.assertEqual(ctypes.get_errno(), errno.EINVAL)

        one, two = bytearray(8), bytearray(8)
        os.write(self.first_writer, b"8 bytes.16 bytes")
        self.assertEqual(os.readv(channel, [one, two]), 16)
        self.assertEqual([one, two], [struct.pack("<Q", 0x1234)] * 2)
        os.write(self.first_writer, b"8 bytes.short")
        self.assertEqual(os.readv(channel, [one, two, bytearray(8)]), 13)
        self.assertEqual(two[:5], b"short")

    def test_a_vfork_child_closes_nothing_of_its_parent(self):
        channel = self.create_channel()
        # subprocess uses vfork() and, in the child, closes every descriptor.
        self.assertEqual(subprocess.run(["/bin/true"], timeout=60, close_fds=True, check=True).returncode, 0)
        self.assertEqual(self.closed, [])
        os.write(self.writer, b"8 bytes.")
        self.assertEqual(os.read(channel, 8), struct.pack("<Q", 0x1234))

    def test_other_commands_are_not_supported(self):
        for command in (0, 3, 18, 0x80000000 | 50):
            request = struct.pack("<IHHQ", command, 4, 1, 0)
            self.assertEqual(error_of(os.write, self.cmd_fd, request), errno.EOPNOTSUPP, command)

    def test_malformed_commands(self):
        for request in (b"", b"1234567", struct.pack("<IHH", 17, 2, 1), struct.pack("<IHHQ", 17, 9, 1, 0)):
            self.assertEqual(error_of(os.write, self.cmd_fd, request), errno.EINVAL, request)
        self.assertEqual(error_of(os.write, self.cmd_fd, struct.pack("<IHHQ", 17, 4, 1, 0)), errno.EFAULT)
        self.assertEqual(error_of(os.write, self.cmd_fd, struct.pack("<IHHQ", 17, 4, 0, 4096)), errno.ENOSPC)

    def test_without_a_provider_there_are_no_channels(self):
        LIBC.softib_preload_register(None)
        request = struct.pack("<IHHQ", 17, 4, 1, ctypes.addressof(ctypes.create_string_buffer(4)))
        self.assertEqual(error_of(os.write, self.cmd_fd, request), errno.EOPNOTSUPP)

    def test_registration_of_an_older_provider(self):
        self.hooks.size = 8
        self.assertEqual(LIBC.softib_preload_register(ctypes.byref(self.hooks)), -errno.EINVAL)
        self.hooks.size = 16
        self.assertEqual(LIBC.softib_preload_register(ctypes.byref(self.hooks)), 0)
        channel = self.create_channel()
        os.write(self.writer, b"8 bytes.")
        self.assertEqual(os.read(channel, 8), b"8 bytes.")
        os.close(channel)
        self.assertEqual(self.closed, [])


class FromOutside(unittest.TestCase):
    """Programs of the distribution, in a host, outside of every host, and with a softibd that does not answer."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.socket = os.path.join(cls.folder.name, "softibd.sock")
        cls.daemon = subprocess.Popen([os.path.join(BUILD, "test-bin", "fake_softibd"), cls.socket, "alpha", "beta"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not select.select([cls.daemon.stdout], [], [], 30)[0]:
            cls.daemon.kill()
            raise AssertionError("fake_softibd has not said in 30 s that it is ready; it was killed")
        assert cls.daemon.stdout.readline() == b"ready\n"

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stdin.close()
        cls.daemon.wait(10)
        cls.daemon.stdout.close()
        cls.folder.cleanup()

    def run_in(self, *command, **settings):
        """Runs a command with an otherwise empty environment."""
        env = {"SOFTIB_SOCKET": self.socket, "SOFTIB_NODE": "beta", "LD_PRELOAD": LIBRARY, "PATH": "/usr/bin:/bin"}
        env.update(settings)
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=40, check=False)

    def test_memory_calls_have_two_faces(self):
        """Calls of programs lead here, and dlsym(), whose result registration caches patch, to libc."""
        calls = ("mmap", "mmap64", "munmap", "mremap", "mprotect", "pkey_mprotect", "madvise")
        for name in calls:
            done = self.run_in(PYTHON, "-c", LOOK_UP, name)
            self.assertRegex(done.stdout, r"/libc\.so\.6$", name)
        done = self.run_in(PYTHON, "-c", "import mmap; mmap.mmap(-1, 4096).close()", LD_DEBUG="bindings", LD_BIND_NOW="1")
        for name in ("munmap", "mremap", "madvise"):
            self.assertRegex(done.stderr, rf"to \S*/libsoftib_preload\.so .*`{name}'", name)

    def test_inside(self):
        done = self.run_in(PYTHON, __file__, "--in-host", SOFTIB_BUILD=BUILD, SOFTIB_LIB=os.path.dirname(LIBRARY))
        print(done.stderr, file=sys.stderr)
        self.assertEqual(done.returncode, 0)

    def test_ls_find_cat_cp_grep_stat(self):
        listing = self.run_in("ls", "-laR", "/sys/class/infiniband", "/sys/devices/infiniband", "/dev/infiniband")
        self.assertEqual(listing.stderr, "")
        self.assertIn("softib1", listing.stdout)
        self.assertRegex(listing.stdout, r"crw-rw-rw-.* 1, +3 .*uverbs0")
        self.assertRegex(listing.stdout, r"softib0 -> \.\./\.\./devices/infiniband/softib0/infiniband/softib0")
        self.assertRegex(listing.stdout, r"device -> \.\./\.\./\.\./softib0")
        self.assertNotIn("?", listing.stdout)
        found = self.run_in("find", "/sys/devices/infiniband", "/dev/infiniband", "-name", "node_guid")
        self.assertEqual((found.stderr, len(found.stdout.split())), ("", 2))
        found = self.run_in("find", "-L", "/sys/class/infiniband", "-name", "node_guid")
        self.assertIn(CA + "/node_guid", found.stdout.split())
        for line in found.stderr.splitlines():  # links lead to the device and back again
            self.assertIn("File system loop detected", line)
        self.assertIn("Is a directory", self.run_in("cat", "/sys/class/infiniband").stderr)
        text = self.run_in("cat", CA + "/node_guid", CA + "/ports/1/state")
        self.assertEqual((text.stderr, text.stdout), ("", NODE_GUID_BETA + "4: ACTIVE\n"))
        target = os.path.join(self.folder.name, "copy")
        # As in Linux, all but the network interfaces that InfiniBand GIDs do not have.
        for line in self.run_in("cp", "-r", CA + "/", target).stderr.splitlines():
            self.assertRegex(line, "/gid_attrs/ndevs/0' for reading: Invalid argument")
        self.assertEqual(read(target + "/node_guid"), NODE_GUID_BETA)
        self.assertIn("lid:0x", self.run_in("grep", "-r", "0x", CA + "/ports/1").stdout)
        self.assertEqual(self.run_in("stat", "-c", "%t:%T %F", UVERBS).stdout, "1:3 character special file\n")

    def test_shell(self):
        script = f"""set -e; test -c {UVERBS}; test -r {CA}/node_guid; test ! -w {CA}/node_guid; test -d {CA}
            test -h {CA}; test -c /dev/infiniband/umad0; test ! -e /dev/infiniband/umad4; read guid < {CA}/node_guid; echo $guid /dev/infiniband/*"""
        done = self.run_in("bash", "-c", script)
        self.assertEqual((done.stderr, done.stdout.split()[0]), ("", NODE_GUID_BETA.strip()))
        names = [*MAD_DEVICES, "rdma_cm", "uverbs0", "uverbs1"]
        self.assertEqual(done.stdout.split()[1:], sorted(f"/dev/infiniband/{name}" for name in names))

    def test_shells_go_there(self):
        """As ibstatus does: cd, a pattern, and programs that inherit the directory."""
        for shell in ("bash", "dash"):
            script = "cd /sys/class/infiniband && pwd && echo * && cat softib0/node_guid && (cd softib1/ports; echo *) && ls"
            done = self.run_in(shell, "-c", script)
            self.assertEqual(done.stderr, "", shell)
            self.assertEqual(done.stdout, "/sys/class/infiniband\nsoftib0 softib1\n" + NODE_GUID_BETA +
                             "1 2\nsoftib0\nsoftib1\n", shell)

    def test_rdma_of_iproute2_is_told_where_to_look(self):
        if not shutil.which("rdma"):
            self.skipTest("rdma (package iproute2) is not installed")
        done = self.run_in("rdma", "link")
        self.assertIn("softib status", done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_without_standard_streams(self):
        done = self.run_in("bash", "-c", f"exec 3>&1 <&- >&- 2>&-; cat {CA}/node_guid >&3")
        self.assertEqual(done.stdout, NODE_GUID_BETA)

    def test_the_node_decides(self):
        self.assertEqual(self.run_in("cat", CA + "/node_guid", SOFTIB_NODE="alpha").stdout, "0253:4600:0000:0000\n")
        self.assertEqual(self.run_in("cat", CA + "/node_guid", SOFTIB_NODE="").stdout, "0253:4600:0000:0000\n")
        for stranger in ("gamma", "x" * 64):
            self.assertIn("No such file", self.run_in("cat", CA + "/node_guid", SOFTIB_NODE=stranger).stderr)

    def test_what_a_later_softibd_may_have(self):
        more = {"SOFTIB_NODE": "more"}
        self.assertEqual(self.run_in("cat", "/sys/class/misc/rdma_cm/abi_version", **more).stdout, "4\n")
        real = os.listdir("/sys/class/misc")
        self.assertEqual(set(self.run_in("ls", "/sys/class/misc", **more).stdout.split()), {*real, "rdma_cm"})
        # Only claimed paths are requested from softibd: these two are the kernel's, whatever softibd would answer.
        for path in ("/sys/class/net/lo", "/sys/class/misc/fuse"):
            self.assertNotIn("fake", self.run_in("ls", path, **more).stdout)
        below_lo = "/sys/class/net/lo/device/infiniband"
        self.assertEqual(self.run_in("ls", below_lo, **more).stdout, "softib0\n")
        self.assertIn("node_type", self.run_in("ls", below_lo + "/softib0/", **more).stdout)
        self.assertEqual(self.run_in("readlink", below_lo + "/softib0", **more).stdout,
                         "../../../../infiniband/softib0\n")
        shell = self.run_in("bash", "-c", f"cd {below_lo}; pwd; echo *; test -d softib0; cd ../..; echo ifi*", **more)
        self.assertEqual((shell.stderr, shell.stdout), ("", below_lo + "\nsoftib0\nifindex\n"))

    def test_a_device_of_an_unknown_kind_has_no_driver(self):
        done = self.run_in("cat", "/dev/infiniband/strange0", SOFTIB_NODE="more")
        self.assertIn("No such device or address", done.stderr)

    def test_with_adapters_of_the_machine(self):
        """A kernel with RDMA drivers, simulated by a mount namespace. Claimed files are hidden, or come first."""
        below_lo = "/sys/class/net/lo/device/infiniband"
        setup = f"""set -e; mount -t tmpfs none /sys/class; cd /sys/class
            mkdir -p net/lo/device/infiniband/mlx5_0 net/eth9 misc/rdma_cm misc/fuse infiniband/mlx5_0 infiniband_cm
            touch net/file; exec "$@" """
        unshare = ("unshare", "--map-root-user", "--mount", "sh", "-c", setup, "sh")
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces for this user")

        def output(*command, node="beta"):
            preload = ("env", f"LD_PRELOAD={LIBRARY}", *command)
            return self.run_in(*unshare, *preload, LD_PRELOAD="", SOFTIB_NODE=node).stdout.split()

        self.assertEqual(output("ls", "/sys/class"), ["infiniband", "infiniband_mad", "infiniband_verbs", "misc", "net"])
        self.assertEqual(output("ls", "/sys/class/infiniband"), ["softib0", "softib1"])
        self.assertEqual(output("ls", "/sys/class/misc"), ["fuse", "rdma_cm"])
        self.assertEqual(output("ls", "-d", "/sys/class/misc/rdma_cm", "/sys/class/infiniband_cm"),
                         ["/sys/class/misc/rdma_cm"])
        self.assertEqual(output("ls", "/sys/class/net"), ["eth9", "file", "lo"])
        missing = "ls /sys/class/net/file/device/infiniband 2>&1; ls /sys/class/net/eth9/device/infiniband 2>&1; true"
        self.assertRegex(" ".join(output("sh", "-c", missing)), "Not a directory.*No such file")
        self.assertEqual(output("ls", "/sys/class/misc", node="more"), ["fuse", "rdma_cm"])
        self.assertEqual(output("ls", "/sys/class/misc/rdma_cm", node="more"), ["abi_version"])
        for node in ("beta", "more"):
            self.assertEqual(output("ls", below_lo, node=node), ["mlx5_0"])
            self.assertEqual(output("find", "/sys/class/net/lo/device", node=node), [
                "/sys/class/net/lo/device", below_lo, below_lo + "/mlx5_0"])

    def test_without_softibd_it_is_as_if_not_preloaded(self):
        plain = subprocess.run(["ls", "/dev", "/sys/class"], timeout=60, capture_output=True, text=True, check=True).stdout
        for path in ("", "/no/such/socket", "/" + "x" * 200):
            self.assertEqual(self.run_in("ls", "/dev", "/sys/class", SOFTIB_SOCKET=path).stdout, plain)
            done = self.run_in("ls", "/sys/class/infiniband/softib0", SOFTIB_SOCKET=path)
            self.assertIn("No such file", done.stderr)

    def test_a_softibd_that_does_not_answer_delays_but_does_not_hang(self):
        path = os.path.join(self.folder.name, "silent.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.bind(path)
            silent.listen(8)
            done = self.run_in("test", "-e", CA, SOFTIB_SOCKET=path)
        self.assertEqual(done.returncode, 1)


class LIBC_DIR:  # the same functions with pointer types
    opendir, readdir, closedir = (LIBC[name] for name in ("opendir", "readdir", "closedir"))
    telldir, seekdir, rewinddir, dirfd = (LIBC[name] for name in ("telldir", "seekdir", "rewinddir", "dirfd"))
    opendir.restype = readdir.restype = ctypes.c_void_p
    telldir.restype = ctypes.c_long
    readdir.argtypes = closedir.argtypes = telldir.argtypes = rewinddir.argtypes = dirfd.argtypes = [ctypes.c_void_p]
    seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]


if __name__ == "__main__":
    inside = "--in-host" in sys.argv
    loader = unittest.defaultTestLoader
    cases = [InHost, InHostVerbs] if inside else [FromOutside]
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
