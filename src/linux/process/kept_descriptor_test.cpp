// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs that close descriptors which are not theirs, and have files of their own at the same
// numbers then.
#include "linux/process/kept_descriptor.h"

#include "linux/client/client_channel.h"
#include "linux/client/client_host.h"
#include "linux/descriptor_table.h"
#include "linux/process/client_handle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <memory>
#include <vector>

namespace ib::os {
namespace {

using platform::NativeHandle;

NativeHandle new_file(const char* name = "test") {
  return own_descriptor(::memfd_create(name, MFD_CLOEXEC));
}

// The program's file, at a number that was softib's.
class Stranger {
 public:
  explicit Stranger(int at) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_.data()), 0);
    EXPECT_EQ(::dup2(ends_[1], at), at);
    ::close(ends_[1]);
    ends_[1] = at;
  }
  ~Stranger() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // Open at both ends, and nothing was sent.
  bool is_untouched() {
    char byte = 0;
    for (const int end : ends_) {
      if (::recv(end, &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN) return false;
    }
    return true;
  }

 private:
  std::array<int, 2> ends_{};
};

// That the next descriptor which is kept will have.
int next_high_number() {
  const NativeHandle file = new_file();
  const int number = duplicate_high(file.get());
  ::close(number);
  return number;
}

// To a server that only listens.
struct Connection {
  Connection() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    server = own_descriptor(ends[0]);
    number = next_high_number();
    channel = channel_over(own_descriptor(ends[1]));
  }
  NativeHandle server;
  int number = -1;
  std::unique_ptr<platform::ControlChannel> channel;
};

TEST(DescriptorTable, KnowsWhichFileANumberMeans) {
  static DescriptorTable table;
  const NativeHandle file = new_file();
  EXPECT_FALSE(table.knows(file.get()));
  EXPECT_FALSE(table.has(file.get()));
  ASSERT_TRUE(table.add(file.get(), 7));
  EXPECT_TRUE(table.has(file.get(), 7));
  EXPECT_FALSE(table.has(file.get(), 8)) << "of another salt";
  EXPECT_EQ(table.highest(), file.get());
  const NativeHandle other = new_file();
  ASSERT_EQ(::dup2(other.get(), file.get()), file.get());
  EXPECT_TRUE(table.knows(file.get()));
  EXPECT_FALSE(table.has(file.get(), 7)) << "another file";
  table.remove(file.get());
  EXPECT_FALSE(table.knows(file.get()));
  EXPECT_FALSE(table.add(DescriptorTable::kLimit));
  EXPECT_FALSE(table.knows(-1));
}

TEST(DescriptorTable, AWordIsThatOfTheFileAndLeavesErrnoAlone) {
  const NativeHandle file = new_file();
  const NativeHandle copy = own_descriptor(::dup(file.get()));
  const NativeHandle other = new_file();
  errno = EPERM;
  EXPECT_NE(file_word(file.get()), 0u);
  EXPECT_EQ(file_word(file.get()), file_word(copy.get()));
  EXPECT_NE(file_word(file.get()), file_word(other.get()));
  EXPECT_EQ(file_word(-1), 0u);
  EXPECT_EQ(errno, EPERM);
}

TEST(KeptDescriptor, HasAHighNumberAndIsClosedInOrder) {
  NativeHandle handle = new_file();
  const int before = handle.get();
  NativeHandle kept = keep_descriptor(std::move(handle));
  const int fd = kept.get();
  EXPECT_GE(fd, 200);
  EXPECT_EQ(::fcntl(before, F_GETFD), -1) << "it has moved";
  EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(is_replaced(fd));
  kept.reset();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_FALSE(is_replaced(fd)) << "it is not kept any more";
}

TEST(KeptDescriptor, IsNotClosedWhereTheNumberIsAnotherFile) {
  NativeHandle kept = keep_descriptor(new_file());
  const int fd = kept.get();
  ASSERT_EQ(::close(fd), 0);
  EXPECT_TRUE(is_replaced(fd));
  Stranger stranger(fd);
  EXPECT_TRUE(is_replaced(fd));
  kept.reset();
  EXPECT_TRUE(stranger.is_untouched());
}

std::vector<int> protected_now;

TEST(KeptDescriptor, TheGuardIsToldOfEach) {
  set_descriptor_guard(
      {[](int fd) { protected_now.push_back(fd); }, [](int fd) { std::erase(protected_now, fd); }});
  {
    const NativeHandle kept = keep_descriptor(new_file());
    EXPECT_THAT(protected_now, testing::ElementsAre(kept.get()));
  }
  EXPECT_THAT(protected_now, testing::IsEmpty());
  set_descriptor_guard({});
}

TEST(KeptDescriptor, AConnectionDoesNotUseAStrangersNumber) {
  Connection connection;
  ASSERT_EQ(::close(connection.number), 0) << "the connection has the number that was free";
  Stranger stranger(connection.number);
  const platform::ControlReply reply = connection.channel->call(1, 0, {}, {});
  EXPECT_EQ(reply.status, Status::Disconnected);
  EXPECT_THAT(reply.reason, testing::HasSubstr("the program has closed the descriptor"));
  EXPECT_TRUE(stranger.is_untouched());
  connection.channel->shut_down();
  EXPECT_TRUE(stranger.is_untouched());
  connection.channel.reset();
  EXPECT_TRUE(stranger.is_untouched());
}

TEST(KeptDescriptor, DeviceMemoryDoesNotGrowByAStrangersFile) {
  const NativeHandle file = new_file();
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  const int free_number = next_high_number();
  std::string reason;
  auto mapped = client_host().map(file, 1 << 20, reason);
  ASSERT_TRUE(mapped) << reason;
  EXPECT_EQ((*mapped)->file_size(), 4096u);
  const NativeHandle strange = new_file("stranger");
  ASSERT_EQ(::ftruncate(strange.get(), 8192), 0);
  ASSERT_EQ(::dup2(strange.get(), free_number), free_number);
  EXPECT_EQ((*mapped)->file_size(), 0u);
  mapped->reset();
  EXPECT_NE(::fcntl(free_number, F_GETFD), -1);
  ::close(free_number);
}

TEST(KeptDescriptor, NoEventIsWrittenToAStrangersFile) {
  auto& host = client_host();
  NativeHandle reader;
  NativeHandle writer;
  ASSERT_EQ(host.make_pipe(reader, writer), Status::Ok);
  const NativeHandle kept = host.keep(std::move(writer));
  const std::array<std::byte, 8> event{};
  EXPECT_EQ(host.write_pipe(kept.get(), event), Status::Ok);
  Stranger stranger(kept.get());
  EXPECT_EQ(host.write_pipe(kept.get(), event), Status::NotFound);
  EXPECT_TRUE(stranger.is_untouched());
}

TEST(KeptDescriptor, AChildClosesNoStrangersFile) {
  const Connection connection;
  Stranger stranger(connection.number);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(connection.number, F_GETFD) != -1 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ib::os
