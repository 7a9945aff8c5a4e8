// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptor of /dev/infiniband/rdma_cm against a stand-in for softibd: what a call of it does
// while other threads close it, use its number again, fork, or cancel the caller.
#include "base/sanitizer.h"
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/rdma_cm/answers_ahead.h"
#include "host_abi/preload/rdma_cm/own_stack.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "linux/mailbox.h"
#include "verbs/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

constexpr std::uint32_t kFile = 7;
constexpr char kEvent[] = "an event";

struct GetEvent {
  std::uint32_t code = 12;
  std::uint16_t in = 8;
  std::uint16_t out = sizeof kEvent;
  char* response = nullptr;
};

// Serves one open device, from its own thread, until the last descriptor of it is closed.
class StandIn {
 public:
  StandIn() {
    char folder[] = "/tmp/softib-stand-in-XXXXXX";
    folder_ = ::mkdtemp(folder);
    const std::string socket = folder_ + "/socket";
    listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, socket.c_str());
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    std::string variable = "SOFTIB_SOCKET=" + socket;
    char* entries[] = {variable.data(), nullptr};
    remote::read_environment(entries);
    thread_ = std::thread([this] { serve(); });
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn() {
    if (thread_.joinable()) thread_.join();
    for (const int each : connections_) ::close(each);
    for (const auto& [connection, page] : mailboxes_) ::munmap(page, os::MailboxPage::kBytes);
    ::close(listener_);
    std::filesystem::remove_all(folder_);
  }

  // Returns false if the device was still open after a time that is long enough for anything.
  bool device_has_ended() {
    thread_.join();
    return ended_;
  }
  // As a softibd that was started again.
  void drop_command_connections() {
    const std::lock_guard lock(mutex_);
    for (const auto& [connection, page] : mailboxes_) ::shutdown(connection, SHUT_RDWR);
  }
  // The number of connections that were ever made, with that of the device.
  int connections() const { return made_; }
  // The number of commands that came through mailboxes.
  int in_mailbox() const { return in_mailbox_; }
  // This follows the next answer in a mailbox.
  void send_ahead(std::vector<std::uint8_t> bytes) {
    const std::lock_guard lock(mutex_);
    ahead_ = std::move(bytes);
  }
  void tell_of_events() { reply(device_, 0, 0, nullptr, 0); }
  // From now on each command is answered with what this returns, called in the stand-in's thread.
  void answer_with(std::function<RdmaCmOut(const RdmaCmIn&)> on_command) {
    const std::lock_guard lock(mutex_);
    on_command_ = std::move(on_command);
  }

 private:
  static constexpr int kLongMs = 20'000;

  static void reply(int to, std::uint64_t tag, std::uint64_t information, const void* data,
                    std::size_t size) {
    std::vector<char> message(sizeof(ReplyHeader) + size);
    ReplyHeader header;
    header.length = static_cast<std::uint32_t>(message.size());
    header.tag = tag;
    header.information = information;
    std::memcpy(message.data(), &header, sizeof header);
    if (size > 0) std::memcpy(message.data() + sizeof header, data, size);
    EXPECT_EQ(::send(to, message.data(), message.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(message.size()));
  }

  void serve() {
    while (!ended_) {
      std::vector<pollfd> all{{listener_, POLLIN, 0}};
      for (const int each : connections_) all.push_back({each, POLLIN, 0});
      if (::poll(all.data(), all.size(), kLongMs) <= 0) return;
      if (all[0].revents != 0) {
        connections_.push_back(::accept(listener_, nullptr, nullptr));
        ++made_;
      }
      for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i].revents != 0) read_from(all[i].fd);
      }
    }
  }

  void read_from(int connection) {
    struct {
      RequestHeader header;
      RdmaCmIn in;
    } message{};
    const ssize_t got = ::recv(connection, &message, sizeof message, 0);
    if (got <= 0) {
      if (connection == device_) ended_ = true;
      std::erase(connections_, connection);
      ::close(connection);
      const std::lock_guard lock(mutex_);
      if (const auto mailbox = mailboxes_.extract(connection)) {
        ::munmap(mailbox.mapped(), os::MailboxPage::kBytes);
      }
    } else if (message.header.code == static_cast<std::uint32_t>(Code::OpenRdmaCm)) {
      device_ = connection;
      reply(connection, message.header.tag, kFile, nullptr, 0);
    } else if (message.header.code == static_cast<std::uint32_t>(Code::OpenMailbox)) {
      open_mailbox(connection);
    } else if (got == os::kBellBytes) {
      answer_in_mailbox(connection);
    } else {
      const RdmaCmOut out = answer_to(message.in);
      reply(connection, message.header.tag, 0, &out, sizeof out);
    }
  }

  void open_mailbox(int connection) {
    const int file = ::memfd_create("mailbox", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(file, os::MailboxPage::kBytes), 0);
    void* at =
        ::mmap(nullptr, os::MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    {
      const std::lock_guard lock(mutex_);
      mailboxes_[connection] = static_cast<os::MailboxPage*>(at);
    }
    ReplyHeader header;
    header.length = sizeof header;
    header.tag = 1;
    iovec part{&header, sizeof header};
    alignas(cmsghdr) char rights[CMSG_SPACE(sizeof file)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = rights;
    message.msg_controllen = sizeof rights;
    *CMSG_FIRSTHDR(&message) = {CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &file, sizeof file);
    EXPECT_GT(::sendmsg(connection, &message, MSG_NOSIGNAL), 0);
    ::close(file);
  }

  void answer_in_mailbox(int connection) {
    os::MailboxPage& page = *mailboxes_.at(connection);
    RdmaCmIn in;
    std::memcpy(&in, page.request + sizeof(RequestHeader), sizeof in);
    RdmaCmOut out = answer_to(in);
    ++in_mailbox_;
    const std::lock_guard lock(mutex_);
    out.ahead_size = static_cast<std::uint32_t>(ahead_.size());
    const auto length =
        static_cast<std::uint32_t>(sizeof(ReplyHeader) + sizeof out + ahead_.size());
    const ReplyHeader header{length, 0, 1, 0};
    std::memcpy(page.answer, &header, sizeof header);
    std::memcpy(page.answer + sizeof header, &out, sizeof out);
    if (!ahead_.empty()) {
      std::memcpy(page.answer + sizeof header + sizeof out, ahead_.data(), ahead_.size());
    }
    page.answer_length = header.length;
    page.answered = page.asked.load();
    const char bell = 0;
    if (page.client_sleeps.exchange(0) != 0) ::send(connection, &bell, 1, MSG_NOSIGNAL);
  }

  RdmaCmOut answer_to(const RdmaCmIn& in) {
    const std::lock_guard lock(mutex_);
    return on_command_(in);
  }

  // The messages between the threads order these, too, but the calls that send and receive them
  // are not libc's, which ThreadSanitizer does not see.
  std::mutex mutex_;
  std::function<RdmaCmOut(const RdmaCmIn&)> on_command_;
  std::vector<std::uint8_t> ahead_;
  std::atomic<int> device_ = -1;
  std::atomic<int> in_mailbox_ = 0;
  std::atomic<int> made_ = 0;
  std::map<int, os::MailboxPage*> mailboxes_;  // by connection

  std::string folder_;
  int listener_ = -1;
  std::vector<int> connections_;
  bool ended_ = false;
  std::thread thread_;
};

class PreloadRdmaCm : public ::testing::Test {
 protected:
  PreloadRdmaCm() {
    unsigned number = 0;
    fd_ = kRdmaCm.open(number, 0);
    EXPECT_GE(fd_, 0);
    EXPECT_EQ(number, kFile);
    fds::mark(fd_, {fds::Kind::Device, number, &kRdmaCm});
  }

  // As close() does.
  void close_device() {
    fds::forget(fd_);
    ::close(fd_);
  }
  ssize_t get_event() {
    GetEvent command;
    command.response = event_;
    return kRdmaCm.write(fd_, &command, sizeof command);
  }
  static RdmaCmOut nothing_there() {
    RdmaCmOut out;
    out.result = -EAGAIN;
    return out;
  }
  RdmaCmOut the_event(std::uint32_t flags = 0) const {
    RdmaCmOut out;
    out.flags = flags;
    out.address = reinterpret_cast<std::uintptr_t>(event_);
    out.size = sizeof kEvent;
    std::memcpy(out.bytes.data(), kEvent, sizeof kEvent);
    return out;
  }
  // The stand-in's may come after its event was taken; GET_EVENT would never wait again.
  void forget_notices() const {
    char byte;
    while (::recv(fd_, &byte, 1, MSG_DONTWAIT) > 0) continue;
  }
  static std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  StandIn softibd_;
  int fd_ = -1;
  char event_[sizeof kEvent] = {};
};

// --- mailboxes ---

// Sends `times` commands with a number each, which the answer repeats.
bool ask(int fd, std::uint32_t times) {
  struct {
    std::uint32_t code = 3;
    std::uint16_t in = 8;
    std::uint16_t out = 4;
    std::uint32_t* response;
    std::uint32_t value;
  } command;
  for (std::uint32_t i = 0; i < times; ++i) {
    std::uint32_t answer = 0;
    command.response = &answer;
    command.value = i + 1;
    if (kRdmaCm.write(fd, &command, sizeof command) != sizeof command || answer != i + 1) {
      return false;
    }
  }
  return true;
}

// Where the preload library keeps its own.
std::vector<int> high_sockets() {
  std::vector<int> found;
  for (int fd = 200; fd < 1100; ++fd) {
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) found.push_back(fd);
  }
  return found;
}

RdmaCmOut repeat(const RdmaCmIn& in) {
  RdmaCmOut out;
  std::memcpy(&out.address, in.bytes.data() + 8, sizeof out.address);
  out.size = 4;
  std::memcpy(out.bytes.data(), in.bytes.data() + 16, 4);
  return out;
}

TEST_F(PreloadRdmaCm, ManyCommandsGoThroughAMailbox) {
  softibd_.answer_with(repeat);
  EXPECT_TRUE(ask(fd_, 100));
  EXPECT_GT(softibd_.in_mailbox(), 80);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, AChildLeavesTheMailboxOfItsParentAlone) {
  softibd_.answer_with(repeat);
  EXPECT_TRUE(ask(fd_, 30));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ask(fd_, 30) ? 0 : 1);
  const bool parent = ask(fd_, 200);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(parent);
  EXPECT_EQ(status, 0);
  const int before = softibd_.in_mailbox();
  EXPECT_TRUE(ask(fd_, 10));
  EXPECT_EQ(softibd_.in_mailbox(), before + 10);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

// Runs `body` in a child that is process 1 of a namespace of its own. Returns its exit code; 77 if
// that is not permitted, 99 if it was killed.
template <class Body>
int run_as_process_one(Body body) {
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(body());
    int status = -1;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(outer, &status, 0), outer);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

// As a container's first process that makes a container.
TEST_F(PreloadRdmaCm, AChildWithTheNumberOfItsParentLeavesTheMailboxAlone) {
  softibd_.answer_with(repeat);
  const int code = run_as_process_one([this] {
    if (::getpid() != 1 || !ask(fd_, 30)) return 2;
    if (::unshare(CLONE_NEWPID) != 0) return 77;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::getpid() == 1 && ask(fd_, 30) ? 0 : 3);
    const bool parent = ask(fd_, 200);
    int status = -1;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status)) return 4;
    return WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : parent ? 0 : 5;
  });
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
  if (code == 77) GTEST_SKIP() << "no permission to make a pid namespace";
  EXPECT_EQ(code, 0);
}

TEST_F(PreloadRdmaCm, ThreadsShareNoAnswer) {
  softibd_.answer_with(repeat);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { good += ask(fd_, 300) ? 1 : 0; });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(good, 4);
  EXPECT_LE(softibd_.connections(), 1 + 4) << "each thread finds one that is kept";
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, AWrongPointerIsAnErrorThroughAMailboxToo) {
  softibd_.answer_with(repeat);
  EXPECT_TRUE(ask(fd_, 30));
  char* const none = static_cast<char*>(
      ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::mprotect(none + 4096, 4096, PROT_NONE), 0);
  std::memset(none, 0, 4096);
  EXPECT_EQ(kRdmaCm.write(fd_, none + 4096 - 8, 24), -1);  // the command itself ends there
  EXPECT_EQ(errno, EFAULT);
  struct {
    std::uint32_t code = 3;
    std::uint16_t in = 8;
    std::uint16_t out = 4;
    char* response;
    std::uint32_t value = 1;
  } command{.response = none + 4096};
  EXPECT_EQ(kRdmaCm.write(fd_, &command, sizeof command), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_TRUE(ask(fd_, 30));
  ::munmap(none, 8192);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

// A stack may be the last thing that its process has mapped.
TEST(PreloadOwnStack, EndsWithThePageOfTheFrame) {
  alignas(4096) char page[8192];
  const OwnStack stack(page + 4000, 0);
  EXPECT_TRUE(stack.has(page + 4000, 96));
  EXPECT_TRUE(stack.has(page + 4095, 1));
  EXPECT_FALSE(stack.has(page + 4000, 97));
  EXPECT_FALSE(stack.has(page + 4096, 1));
  EXPECT_FALSE(stack.has(page + 3999, 1)) << "below it";
  EXPECT_FALSE(stack.has(page + 4000, SIZE_MAX)) << "the sum overflows";
  EXPECT_FALSE(stack.has(nullptr, 1));
}

TEST(PreloadOwnStack, OfTheFirstThreadEndsWhereTheKernelEndedIt) {
  alignas(4096) char pages[OwnStack::kMappedAtExec + 4096];
  const auto end = reinterpret_cast<std::uintptr_t>(pages) + OwnStack::kMappedAtExec + 16;
  const OwnStack near(pages + 16, end);
  EXPECT_TRUE(near.has(pages + 16, OwnStack::kMappedAtExec));
  EXPECT_FALSE(near.has(pages + 16, OwnStack::kMappedAtExec + 1));
  const OwnStack far(pages + 15, end);
  EXPECT_FALSE(far.has(pages + 15, 4096)) << "another stack, perhaps";
  const OwnStack above(pages + OwnStack::kMappedAtExec + 17, end);
  EXPECT_FALSE(above.has(pages + 16, 1));
}

TEST(PreloadOwnStack, IsThatOfTheThread) {
  char here = 0;
  std::thread([&here] {
    char there = 0;
    const OwnStack stack(__builtin_frame_address(0));
    EXPECT_FALSE(stack.has(&here, 1)) << "the first thread's";
    EXPECT_FALSE(stack.has(&there - 65536, 1));
  }).join();
}

// The kernel copies these.
TEST_F(PreloadRdmaCm, CommandsMayLieAnywhere) {
  softibd_.answer_with(repeat);
  struct Parts {
    std::uint32_t code = 3;
    std::uint16_t in = 8;
    std::uint16_t out = 4;
    std::uint32_t* response = nullptr;
    std::uint32_t value = 0;
    std::uint32_t answer = 0;
  };
  const auto parts = std::make_unique<Parts>();
  parts->response = &parts->answer;
  for (parts->value = 1; parts->value < 30; ++parts->value) {
    ASSERT_EQ(kRdmaCm.write(fd_, parts.get(), 24), 24);
    ASSERT_EQ(parts->answer, parts->value);
  }
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

// --- answers ahead ---

struct Question {
  std::uint32_t code = 19;
  std::uint16_t in = 16;
  std::uint16_t out = 8;
  char* response = nullptr;
  std::uint32_t id = 5;
  std::uint32_t option = 1;
};

class PreloadAnswersAhead : public PreloadRdmaCm {
 public:
  ~PreloadAnswersAhead() override {
    close_device();
    EXPECT_TRUE(softibd_.device_has_ended());
  }

 protected:
  // A mailbox carries the commands from here on.
  PreloadAnswersAhead() {
    softibd_.answer_with([this](const RdmaCmIn& in) {
      ++commands;
      Question question;
      std::memcpy(&question, in.bytes.data(), sizeof question);
      if (question.code == 12) return the_event();
      RdmaCmOut out;
      out.address = reinterpret_cast<std::uintptr_t>(question.response);
      out.size = 8;
      std::memcpy(out.bytes.data(), "asked..", 8);
      return out;
    });
    for (int i = 0; i < 30; ++i) (void)ask({});
  }
  std::string ask(Question question) {
    char answer[8] = "none";
    question.response = answer;
    EXPECT_EQ(kRdmaCm.write(fd_, &question, sizeof question), ssize_t{sizeof question});
    return answer;
  }
  static RdmaCmOut no_device() {
    RdmaCmOut out;
    out.result = -ENODEV;
    return out;
  }
  // A command that softibd answers with no_device(). Returns what write_ahead() does.
  bool fails_ahead() const {
    char answer[8] = {};
    Question command;
    command.response = answer;
    ssize_t result = 0;
    const bool is_done = kRdmaCm.write_ahead(fd_, &command, sizeof command, result);
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, ENODEV);
    return is_done;
  }
  // Gets an event that brings an answer with it: to the default question, or a damaged one.
  void get(std::uint32_t size = 8) {
    const RdmaCmAhead head{19, 5, 1, size};
    std::vector<std::uint8_t> bytes(sizeof head + 8);
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, "ahead..", 8);
    softibd_.send_ahead(bytes);
    softibd_.tell_of_events();
    EXPECT_EQ(get_event(), ssize_t{sizeof(GetEvent)});
    softibd_.send_ahead({});
    forget_notices();
    commands = 0;
  }
  // Like get(), until a question that follows at once finds the answer: it is good for a moment
  // only, in which this thread may be off its core.
  void get_in_time() {
    for (int tries = 0; tries < 1000; ++tries) {
      get();
      if (ask({}) == "ahead..") break;
    }
    EXPECT_EQ(commands, 0);
  }

  std::atomic<int> commands = 0;
};

TEST_F(PreloadAnswersAhead, NeedNoCommand) {
  get_in_time();
}

// As the first look of write(), which does not look at the object.
TEST_F(PreloadAnswersAhead, NeedNoDescriptorEither) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  ssize_t result = 0;
  EXPECT_FALSE(kRdmaCm.write_ahead(fd_, &result, sizeof result, result));
  Question question;
  char answer[8] = {};
  question.response = answer;
  for (int tries = 0; tries < 1000 && std::strcmp(answer, "ahead..") != 0; ++tries) {
    get();
    EXPECT_TRUE(kRdmaCm.write_ahead(fd_, &question, sizeof question, result));
    EXPECT_EQ(result, ssize_t{sizeof question});
  }
  EXPECT_STREQ(answer, "ahead..");
  EXPECT_EQ(commands, 0);
  question.id = 6;
  EXPECT_TRUE(kRdmaCm.write_ahead(fd_, &question, sizeof question, result)) << "a command";
  EXPECT_STREQ(answer, "asked..");
  EXPECT_EQ(commands, 1);
}

// By its form, which other data have as good as never.
TEST_F(PreloadAnswersAhead, ACommandNeedsNoLookAtTheDescriptor) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  commands = 0;
  ssize_t result = 0;
  char answer[8] = {};
  Question command;
  command.response = answer;
  EXPECT_TRUE(kRdmaCm.write_ahead(fd_, &command, sizeof command, result));
  EXPECT_EQ(result, ssize_t{sizeof command});
  EXPECT_STREQ(answer, "asked..");
  EXPECT_EQ(commands, 1);
  EXPECT_FALSE(kRdmaCm.write_ahead(fd_, &command, sizeof command - 1, result))
      << "it says 24 bytes";
  EXPECT_FALSE(kRdmaCm.write_ahead(fd_, &command, 8, result));
  command.code = 0;
  EXPECT_FALSE(kRdmaCm.write_ahead(fd_, &command, sizeof command, result)) << "zeros are common";
  const auto elsewhere = std::make_unique<Question>(command);
  EXPECT_FALSE(kRdmaCm.write_ahead(fd_, elsewhere.get(), sizeof *elsewhere, result));
  GetEvent get_event;
  get_event.response = reinterpret_cast<char*>(elsewhere.get());
  EXPECT_FALSE(kRdmaCm.write_ahead(fd_, &get_event, sizeof get_event, result)) << "it would wait";
  EXPECT_EQ(commands, 1);
}

// On Linux the call has its file until it returns.
TEST_F(PreloadAnswersAhead, ACommandThatFailsIsNotForTheNextFileOfItsNumber) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  const int kept = ::dup(fd_);
  const int next = ::memfd_create("next", MFD_CLOEXEC);
  std::atomic<bool> is_replaced = false;  // also tells ThreadSanitizer of the order
  softibd_.answer_with([&](const RdmaCmIn&) {
    fds::forget(fd_);
    EXPECT_EQ(::dup2(next, fd_), fd_);
    is_replaced = true;
    return no_device();
  });
  EXPECT_TRUE(fails_ahead());
  EXPECT_TRUE(is_replaced);
  ASSERT_EQ(::dup2(kept, fd_), fd_);
  ::close(kept);
  ::close(next);
}

// The descriptor was closed without this library, and its number is another file's.
TEST_F(PreloadAnswersAhead, ACommandThatFailsMayBeAnotherFilesData) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  softibd_.answer_with([](const RdmaCmIn&) { return no_device(); });
  EXPECT_TRUE(fails_ahead());
  const int kept = ::dup(fd_);
  const int other = ::memfd_create("other", MFD_CLOEXEC);
  ASSERT_GE(::syscall(SYS_dup3, other, fd_, O_CLOEXEC), 0);
  EXPECT_FALSE(fails_ahead());
  ASSERT_GE(::syscall(SYS_dup3, kept, fd_, O_CLOEXEC), 0);
  ::close(kept);
  ::close(other);
}

TEST_F(PreloadAnswersAhead, AreForThatQuestionOnly) {
  get_in_time();
  EXPECT_EQ(ask({.id = 6}), "asked..");
  get_in_time();
  EXPECT_EQ(ask({.option = 2}), "asked..");
  get_in_time();
  EXPECT_EQ(ask({.code = 11}), "asked..");
  get_in_time();
  EXPECT_EQ(ask({.out = 4}), "asked..") << "softibd knows what to do with little room";
}

TEST_F(PreloadAnswersAhead, EndWithTheNextCommand) {
  get_in_time();
  EXPECT_EQ(ask({.code = 14}), "asked..");
  EXPECT_EQ(ask({}), "asked..");
}

TEST_F(PreloadAnswersAhead, EndAfterAMoment) {
  get();
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start <= AnswersAhead::kGoodFor)
    std::this_thread::yield();
  EXPECT_EQ(ask({}), "asked..");
}

TEST_F(PreloadAnswersAhead, AreNotAChilds) {
  get_in_time();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ask({}) == "asked.." ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(PreloadAnswersAhead, ThatAreDamagedAreNone) {
  get(9);
  EXPECT_EQ(ask({}), "asked..");
  get(~0u);
  EXPECT_EQ(ask({}), "asked..");
}

// Leaves ones where the arguments of the next call go.
[[gnu::noinline]] void fill_stack() {
  volatile unsigned char bytes[4096];
  for (volatile unsigned char& each : bytes) each = 0xff;
}

TEST(PreloadSystemCalls, NumbersAreWholeWords) {
  const int value = 5;
  int copy = 0;
  fill_stack();
  EXPECT_EQ(sys::read_own_memory(sys::process_id(), {&copy, sizeof copy},
                                 {const_cast<int*>(&value), sizeof value}),
            static_cast<ssize_t>(sizeof copy))
      << std::strerror(errno);
  EXPECT_EQ(copy, value);
}

// As a program that closes all high descriptors, and opens files of its own.
TEST_F(PreloadRdmaCm, ANumberThatIsUsedAgainIsNotTakenForTheConnection) {
  softibd_.answer_with(repeat);
  EXPECT_TRUE(ask(fd_, 30));
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  std::vector<int> taken;
  for (const int fd : high_sockets()) {
    ASSERT_EQ(::dup2(ends[0], fd), fd);
    taken.push_back(fd);
  }
  ASSERT_FALSE(taken.empty());
  EXPECT_TRUE(ask(fd_, 30));
  for (const int fd : taken) EXPECT_EQ(::close(fd), 0);
  ::close(ends[0]);
  char byte;
  EXPECT_EQ(::recv(ends[1], &byte, 1, 0), 0) << "nobody wrote into it";
  ::close(ends[1]);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, AConnectionThatHasEndedIsMadeAgain) {
  softibd_.answer_with(repeat);
  EXPECT_TRUE(ask(fd_, 30));
  softibd_.drop_command_connections();
  EXPECT_TRUE(ask(fd_, 30));
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

// As rdma_destroy_event_channel() while another thread is in rdma_get_cm_event(): on Linux the call
// has the file until it returns.
TEST_F(PreloadRdmaCm, GetEventGoesOnWhenAnotherThreadClosesTheDescriptor) {
  std::atomic<int> asked = 0;
  softibd_.answer_with([&](const RdmaCmIn&) {
    if (++asked == 3) return the_event();
    if (asked == 1) return nothing_there();  // it waits by its descriptor from here on
    close_device();
    softibd_.tell_of_events();
    return nothing_there();  // the event has ended with its id
  });
  softibd_.tell_of_events();
  EXPECT_EQ(get_event(), static_cast<ssize_t>(sizeof(GetEvent))) << std::strerror(errno);
  EXPECT_STREQ(event_, kEvent);
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(softibd_.device_has_ended());
}

// On Linux it would wait without end, since the events have ended with the descriptor.
TEST_F(PreloadRdmaCm, GetEventFailsIfTheDescriptorIsClosedBeforeItWaits) {
  softibd_.answer_with([&](const RdmaCmIn&) {
    close_device();
    return nothing_there();
  });
  EXPECT_EQ(get_event(), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(softibd_.device_has_ended());
}

// softibd may hold back the answer to a program whose last wait was short.
class PreloadGetEvent : public PreloadRdmaCm {
 public:
  ~PreloadGetEvent() override {
    close_device();
    EXPECT_TRUE(softibd_.device_has_ended());
  }

 protected:
  PreloadGetEvent() {
    softibd_.answer_with(repeat);
    EXPECT_TRUE(ask(fd_, 30));  // from now on by mailbox
    softibd_.answer_with([this](const RdmaCmIn& in) {
      if (in.bytes[0] != 12) return repeat(in);
      may_wait_ = (in.flags & rdma_cm_in_flag::kMayWait) != 0;
      if (may_wait_) return the_event();
      return told_.exchange(false) ? the_event(rdma_cm_flag::kDrained) : nothing_there();
    });
  }
  // GET_EVENT with an event that comes while it waits for one, until such a wait was short.
  bool waits_are_short_at_last() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
      std::atomic<bool> begins = false;
      std::thread teller([&] {
        while (!begins) std::this_thread::yield();
        told_ = true;
        softibd_.tell_of_events();
      });
      begins = true;
      const ssize_t got = get_event();
      teller.join();
      forget_notices();
      if (may_wait_) return got == sizeof(GetEvent);
      if (got != sizeof(GetEvent)) return false;
    } while (std::chrono::steady_clock::now() < limit);
    return false;
  }

  std::atomic<bool> may_wait_ = false;
  std::atomic<bool> told_ = false;  // of an event that nobody has got yet
};

TEST_F(PreloadGetEvent, NeedsNoNoticeAfterAShortWait) {
  ASSERT_TRUE(waits_are_short_at_last());
  std::memset(event_, 0, sizeof event_);
  EXPECT_EQ(get_event(), static_cast<ssize_t>(sizeof(GetEvent)));
  EXPECT_STREQ(event_, kEvent);
}

TEST_F(PreloadGetEvent, OfADescriptorThatDoesNotBlockWaitsNowhere) {
  ASSERT_TRUE(waits_are_short_at_last());
  ASSERT_EQ(::fcntl(fd_, F_SETFL, O_RDWR | O_NONBLOCK), 0);
  told_ = false;
  may_wait_ = false;
  EXPECT_EQ(get_event(), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(may_wait_);
}

TEST_F(PreloadRdmaCm, GetEventLeavesAloneWhatGetsTheNumberOfItsDescriptor) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  char byte = 'n';
  ASSERT_EQ(::send(pair[1], &byte, 1, 0), 1);
  std::atomic<int> asked = 0;
  softibd_.answer_with([&](const RdmaCmIn&) {
    if (++asked == 3) return the_event(rdma_cm_flag::kDrained);
    if (asked == 1) return nothing_there();
    fds::forget(fd_);
    EXPECT_EQ(::dup2(pair[0], fd_), fd_);
    fds::mark(fd_, {fds::Kind::Device, kFile + 1, &kRdmaCm});
    return nothing_there();
  });
  softibd_.tell_of_events();
  EXPECT_EQ(get_event(), static_cast<ssize_t>(sizeof(GetEvent))) << std::strerror(errno);
  EXPECT_EQ(::recv(pair[0], &byte, 1, MSG_DONTWAIT), 1) << "the other device has lost its message";
  close_device();
  ::close(pair[0]);
  ::close(pair[1]);
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, OtherCommandsTakeNoMessageOfWhatGetsTheNumber) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  char byte = 'n';
  ASSERT_EQ(::send(pair[1], &byte, 1, 0), 1);
  softibd_.answer_with([&](const RdmaCmIn&) {
    fds::forget(fd_);
    EXPECT_EQ(::dup2(pair[0], fd_), fd_);
    fds::mark(fd_, {fds::Kind::Device, kFile + 1, &kRdmaCm});
    RdmaCmOut out;
    out.flags = rdma_cm_flag::kDrained;
    return out;
  });
  const std::uint32_t destroy_id[2] = {1, 0};
  EXPECT_EQ(kRdmaCm.write(fd_, destroy_id, sizeof destroy_id),
            static_cast<ssize_t>(sizeof destroy_id));
  EXPECT_EQ(::recv(pair[0], &byte, 1, MSG_DONTWAIT), 1) << "the other device has lost its message";
  close_device();
  ::close(pair[0]);
  ::close(pair[1]);
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, AThreadThatIsCancelledInGetEventKeepsNothing) {
  softibd_.answer_with([](const RdmaCmIn& in) {
    return in.bytes[0] == GetEvent{}.code ? nothing_there() : RdmaCmOut{};
  });
  const std::uint32_t destroy_id[2] = {1, 0};  // the process keeps its connection
  EXPECT_EQ(kRdmaCm.write(fd_, destroy_id, sizeof destroy_id), ssize_t{sizeof destroy_id});
  const std::size_t before = open_descriptors();
  std::thread waiting([this] {
    ::pthread_cancel(::pthread_self());  // acts where the call waits
    get_event();
    ADD_FAILURE() << "it was not cancelled";
  });
  waiting.join();
  EXPECT_EQ(open_descriptors(), before);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, AChildThatIsForkedDuringGetEventKeepsNoMoreThanItsParentHad) {
  int alive[2];
  ASSERT_EQ(::pipe2(alive, O_CLOEXEC), 0);
  pid_t child = -1;
  softibd_.answer_with([&](const RdmaCmIn&) {
    child = ::fork();
    if (child == 0) {
      ::close(fd_);
      ::close(alive[1]);
      char byte;
      ::_exit(::read(alive[0], &byte, 1) == 0 ? 0 : 1);  // until the parent lets it go
    }
    return the_event();
  });
  softibd_.tell_of_events();
  EXPECT_EQ(get_event(), static_cast<ssize_t>(sizeof(GetEvent))) << std::strerror(errno);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
  ::close(alive[1]);
  ::close(alive[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The kernel's result, not a signal.
TEST_F(PreloadRdmaCm, AnAnswerToWhereThereIsNoMemoryIsEfault) {
  softibd_.answer_with([&](const RdmaCmIn&) {
    RdmaCmOut out = the_event();
    out.address = 8;
    return out;
  });
  softibd_.tell_of_events();
  EXPECT_EQ(get_event(), -1);
  EXPECT_EQ(errno, EFAULT);
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

}  // namespace
}  // namespace ib::host_abi::preload
