// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/device_kinds.h"

#include "host_abi/preload/fd_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <set>
#include <string>

namespace ib::host_abi::preload {
namespace {

const DeviceKind* kind_of(const char* path, unsigned& unit) {
  Path out;
  return normalise("/", path, out) ? devices::find(out, unit) : nullptr;
}

TEST(PreloadDevices, FilesAreFoundByNameAndNumber) {
  unsigned unit = 99;
  EXPECT_EQ(kind_of("/dev/infiniband/uverbs0", unit), &kUverbs);
  EXPECT_EQ(unit, 0u);
  EXPECT_EQ(kind_of("/dev/infiniband/uverbs65535", unit), &kUverbs);
  EXPECT_EQ(unit, 65535u);
}

TEST(PreloadDevices, OtherFilesAreOfNoKind) {
  unsigned unit = 0;
  for (const char* path :
       {"/dev/infiniband", "/dev/infiniband/uverbs", "/dev/infiniband/uverbs00",
        "/dev/infiniband/uverbs01", "/dev/infiniband/uverbs-1", "/dev/infiniband/uverbs1x",
        "/dev/infiniband/uverbs65536", "/dev/infiniband/uverbs4294967296", "/dev/uverbs0",
        "/dev/infiniband/uverbs0/x", "/dev/infinibandx/uverbs0", "/dev/infiniband/umad",
        "/dev/infiniband/issm00", "/dev/infiniband/rdma_cm0", "/dev/infiniband/rdma"}) {
    EXPECT_EQ(kind_of(path, unit), nullptr) << path;
  }
}

TEST(PreloadDevices, OpenUmadsAreDescribedByTheirUnit) {
  unsigned unit = 0;
  EXPECT_EQ(kind_of("/dev/infiniband/umad3", unit), &kUmad);
  EXPECT_EQ(unit, 3u);
  EXPECT_EQ(kind_of("/dev/infiniband/issm0", unit), &kIssm);
  const unsigned open = 3 | 77u << 6;  // the number in the table has the file, too
  EXPECT_EQ(devices::describe(kUmad, open).device_minor, 3u);
  EXPECT_EQ(devices::describe(kIssm, open).device_minor, 67u);
  EXPECT_EQ(devices::inode_of(kUmad, open), devices::inode_of(kUmad, 3));
  EXPECT_NE(devices::inode_of(kUmad, open), devices::inode_of(kIssm, open));
}

// The assumptions of view.cpp and fd_table.cpp about every entry of the table.
TEST(PreloadDevices, TheTableIsComplete) {
  std::set<std::string> names;
  std::size_t count = 0;
  for (; devices::at(count) != nullptr; ++count) {
    const DeviceKind& kind = *devices::at(count);
    EXPECT_EQ(devices::index_of(kind), count);
    if (kind.name == nullptr) continue;
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_LT(names.rbegin()->size(), 32u);
    EXPECT_NE(kind.mode, 0u) << kind.name;
    EXPECT_NE(kind.number, nullptr) << kind.name;
    EXPECT_NE(kind.open, nullptr) << kind.name;
    EXPECT_NE(kind.is_object, nullptr) << kind.name << ": close() behind our back must be seen";
    unsigned unit = 99;
    const std::string path = std::string("/dev/infiniband/") + kind.name;
    EXPECT_EQ(kind_of((path + (kind.numbered ? "7" : "")).c_str(), unit), &kind);
    EXPECT_EQ(unit, kind.numbered ? 7u : 0u);
    EXPECT_EQ(kind_of((path + (kind.numbered ? "" : "7")).c_str(), unit), nullptr);
  }
  EXPECT_LE(count, devices::kMost);
  EXPECT_EQ(devices::at(~std::size_t{0}), nullptr);
}

TEST(PreloadDevices, AFileOfUverbsLooksLikeThat) {
  const auto file = devices::describe(kUverbs, 12);
  EXPECT_EQ(file.kind, verbs::control::ViewKind::CharDevice);
  EXPECT_EQ(file.mode, 0666u);
  EXPECT_EQ(file.device_major, 1u);
  EXPECT_EQ(file.device_minor, 3u);
  EXPECT_EQ(devices::inode_of(kUverbs, 12), inode_of("/dev/infiniband", "uverbs12"));
}

// An open uverbs device, in the table as view.cpp enters it.
class PreloadUverbs : public testing::Test {
 protected:
  void SetUp() override {
    unsigned unit = 3;
    fd_ = kUverbs.open(unit, O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
    ASSERT_TRUE(fds::mark(fd_, {fds::Kind::Device, unit, &kUverbs}));
  }
  void TearDown() override {
    fds::forget(fd_);
    ::close(fd_);
  }
  int fd_ = -1;
};

TEST_F(PreloadUverbs, PollsAsTheKernelsDoes) {
  pollfd both{fd_, POLLIN | POLLOUT, 0};
  EXPECT_EQ(::poll(&both, 1, 0), 1);
  EXPECT_EQ(both.revents, POLLIN | POLLOUT);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {}};
  EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event), -1);
  EXPECT_EQ(errno, EPERM);
  ::close(epoll);
}

TEST_F(PreloadUverbs, AnswersItsCalls) {
  char data[8] = {};
  errno = 0;
  EXPECT_EQ(kUverbs.read(fd_, data, sizeof data), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(kUverbs.write(fd_, data, 3), -1);
  EXPECT_EQ(errno, EINVAL);
  int result = 0;
  EXPECT_TRUE(kUverbs.ioctl(fd_, RDMA_VERBS_IOCTL, nullptr, result));
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, ENOTTY);
  EXPECT_FALSE(kUverbs.ioctl(fd_, FIONBIO, nullptr, result));
}

TEST_F(PreloadUverbs, IsNotTakenForWhatCameInItsPlace) {
  EXPECT_EQ(fds::device(fd_), &kUverbs);
  EXPECT_EQ(softib_preload_is_uverbs(fd_), 1);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::dup2(ends[0], fd_), fd_);  // the test's own dup2(), without the library
  errno = 77;
  EXPECT_EQ(fds::device(fd_), nullptr);
  EXPECT_EQ(errno, 77);
  EXPECT_EQ(softib_preload_is_uverbs(fd_), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ib::host_abi::preload
