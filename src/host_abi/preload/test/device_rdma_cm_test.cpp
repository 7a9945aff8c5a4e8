// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptor of /dev/infiniband/rdma_cm against a stand-in for softibd: what a call of it does
// while other threads close it, use its number again, fork, or cancel the caller.
#include "base/sanitizer.h"
#include "host_abi/preload/device_files/own_stack.h"
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/rdma_cm/event_wait.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/test/stand_in_test.h"
#include "platform/brief_polling.h"
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
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

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

// One, without a look at the descriptor.
bool ask_ahead(int fd) {
  std::uint32_t answer = 0;
  struct {
    std::uint32_t code = 3;
    std::uint16_t in = 16;
    std::uint16_t out = 4;
    std::uint32_t* response;
    std::uint32_t value = 9;
    std::uint32_t padding = 0;
  } command{.response = &answer};
  ssize_t result = 0;
  return kRdmaCm.write_ahead(fd, &command, sizeof command, result) && result == sizeof command &&
         answer == 9;
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

// Waits longer than a command polls for its answer, which then has looked in vain.
RdmaCmOut repeat_late(const RdmaCmIn& in) {
  const auto end = std::chrono::steady_clock::now() + 5 * platform::BriefPolling::kBudget;
  while (std::chrono::steady_clock::now() < end) ::sched_yield();
  return repeat(in);
}

TEST_F(PreloadRdmaCm, CommandsThatSucceedLeaveErrnoAlone) {
  softibd_.answer_with(repeat_late);
  for (int i = 0; i < 20; ++i) {
    errno = ENODEV;
    ASSERT_TRUE(ask(fd_, 1));
    EXPECT_EQ(errno, ENODEV);
  }
  close_device();
  EXPECT_TRUE(softibd_.device_has_ended());
}

TEST_F(PreloadRdmaCm, CommandsWithoutALookAtTheDescriptorLeaveItAloneToo) {
  if (IB_ADDRESS_SANITIZER != 0) {
    close_device();
    GTEST_SKIP() << "its locals may lie on no stack";
  }
  softibd_.answer_with(repeat_late);
  for (int i = 0; i < 20; ++i) {
    errno = ENODEV;
    ASSERT_TRUE(ask_ahead(fd_));
    EXPECT_EQ(errno, ENODEV);
  }
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

// softibd may hold back the answer to a program whose last wait was short.
class PreloadGetEvent : public PreloadRdmaCm {
 public:
  ~PreloadGetEvent() override {
    longest_short_wait = platform::BriefPolling::kShortSleep;
    if (is_open_) close_device();
    EXPECT_TRUE(softibd_.device_has_ended());
  }

 protected:
  PreloadGetEvent() {
    longest_short_wait = std::chrono::hours(1);
    softibd_.answer_with(repeat);
    softibd_.stay_awake();
    EXPECT_TRUE(ask(fd_, 30));  // from now on by mailbox
    softibd_.answer_with([this](const RdmaCmIn& in) {
      if (in.bytes[0] != 12) return repeat(in);
      may_wait_ = (in.head.flags & rdma_cm_in_flag::kMayWait) != 0;
      if (may_wait_) return the_event();
      return told_.exchange(false) ? the_event(rdma_cm_flag::kDrained) : nothing_there();
    });
  }
  // GET_EVENT with an event that comes while it waits for one, until it has found none at first.
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

  bool is_open_ = true;
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

// On Linux it would wait without end, since the events have ended with the descriptor.
TEST_F(PreloadGetEvent, FailsIfTheDescriptorIsClosedBeforeItWaits) {
  ASSERT_TRUE(waits_are_short_at_last());
  softibd_.answer_with([&](const RdmaCmIn&) {
    close_device();
    return nothing_there();
  });
  is_open_ = false;
  EXPECT_EQ(get_event(), -1);
  EXPECT_EQ(errno, EBADF);
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
