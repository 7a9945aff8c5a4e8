// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers, and events, that came before the program wanted them; and the form of its commands.
#include "host_abi/preload/rdma_cm/answers_ahead.h"

#include "base/sanitizer.h"
#include "host_abi/preload/test/stand_in_test.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

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

// --- events ahead ---

// A command whose answer brings an event.
class PreloadEventAhead : public PreloadAnswersAhead {
 protected:
  static constexpr std::uint32_t kOffer = 0x51;
  static constexpr char kOffered[] = "taken";

  static std::vector<std::uint8_t> event_ahead(std::uint32_t size = 8, std::uint32_t flags = 0) {
    const RdmaCmAhead head{12, kOffer, flags, size};
    std::vector<std::uint8_t> bytes(sizeof head + 8);
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, kOffered, sizeof kOffered);
    return bytes;
  }
  void cause(const std::vector<std::uint8_t>& ahead) {
    softibd_.send_ahead(ahead, kOffer);
    (void)ask({.code = 23});
    softibd_.send_ahead({});
    commands = 0;
  }
  // Returns what GET_EVENT gets with room for so many bytes.
  std::string get(std::uint16_t room = sizeof kEvent) {
    softibd_.tell_of_events();
    GetEvent command;
    command.out = room;
    char response[sizeof kEvent + 1] = {};
    command.response = response;
    if (kRdmaCm.write(fd_, &command, sizeof command) != sizeof command) return "failed";
    forget_notices();
    return response[0] != '\0' ? response : event_;
  }
  // GET_EVENT, with no notice but those that there are.
  std::string wait() {
    GetEvent command;
    char response[sizeof kEvent] = {};
    command.response = response;
    if (kRdmaCm.write(fd_, &command, sizeof command) != sizeof command) return "failed";
    return response[0] != '\0' ? response : event_;
  }
  static std::vector<std::uint8_t> answer_ahead() {
    const RdmaCmAhead head{19, 5, 1, 8};
    std::vector<std::uint8_t> bytes(sizeof head + 8);
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, "ahead..", 8);
    return bytes;
  }
  // Until the event that was caused is taken: it is good for a moment only.
  bool takes_event_in_time() {
    for (int tries = 0; tries < 1000; ++tries) {
      cause(event_ahead());
      if (get() == kOffered) return commands == 0;
      softibd_.withdraw();
    }
    return false;
  }
};

// --- with the notice ---

TEST_F(PreloadEventAhead, ComesWithItsNotice) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  softibd_.tell_of_event(event_ahead(8, rdma_cm_flag::kDrained), kOffer);
  commands = 0;
  EXPECT_EQ(wait(), kOffered);
  EXPECT_EQ(commands, 0);
  EXPECT_EQ(softibd_.withdraw(), 0u);
  pollfd has_notice{fd_, POLLIN, 0};
  EXPECT_EQ(::poll(&has_notice, 1, 0), 0) << "it was the last one";
}

TEST_F(PreloadEventAhead, ComesWithANoticeThatStays) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  softibd_.tell_of_event(event_ahead(), kOffer);
  commands = 0;
  EXPECT_EQ(wait(), kOffered);
  EXPECT_EQ(commands, 0);
  EXPECT_EQ(wait(), kEvent) << "there is another one";
  EXPECT_EQ(commands, 1);
}

// Of a poller, too.
TEST_F(PreloadEventAhead, ComesWithItsNoticeToADescriptorThatDoesNotBlock) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  ASSERT_EQ(::fcntl(fd_, F_SETFL, O_RDWR | O_NONBLOCK), 0);
  softibd_.tell_of_event(event_ahead(8, rdma_cm_flag::kDrained), kOffer);
  commands = 0;
  EXPECT_EQ(wait(), kOffered);
  EXPECT_EQ(commands, 0);
  EXPECT_EQ(wait(), kEvent) << "of that one there is no notice yet";
}

TEST_F(PreloadEventAhead, OfANoticeIsAskedForOnceWithdrawn) {
  softibd_.tell_of_event(event_ahead(), kOffer);
  EXPECT_EQ(softibd_.withdraw(), kOffer);
  commands = 0;
  EXPECT_EQ(wait(), kEvent);
  EXPECT_EQ(commands, 1);
}

TEST_F(PreloadEventAhead, OfANoticeThatIsDamagedIsNone) {
  for (const std::uint32_t size : {9u, ~0u}) {
    forget_notices();
    softibd_.tell_of_event(event_ahead(size), kOffer);
    EXPECT_EQ(wait(), kEvent);
    EXPECT_EQ(softibd_.withdraw(), kOffer);
  }
}

// The answers that come with an old notice may be wrong by now.
TEST_F(PreloadEventAhead, BringsNoAnswersWithAnOldNotice) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  std::vector<std::uint8_t> bytes = event_ahead(8, rdma_cm_flag::kDrained);
  const std::vector<std::uint8_t> answer = answer_ahead();
  bytes.insert(bytes.end(), answer.begin(), answer.end());
  softibd_.tell_of_event(bytes, kOffer);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start <= AnswersAhead::kGoodFor)
    std::this_thread::yield();
  EXPECT_EQ(wait(), kOffered);
  EXPECT_EQ(ask({}), "asked..");
}

TEST_F(PreloadEventAhead, BringsAnswersWithANewNotice) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  std::vector<std::uint8_t> bytes = event_ahead(8, rdma_cm_flag::kDrained);
  const std::vector<std::uint8_t> answer = answer_ahead();
  bytes.insert(bytes.end(), answer.begin(), answer.end());
  std::string got;
  for (int tries = 0; tries < 1000 && got != "ahead.."; ++tries) {
    (void)ask({.code = 14});
    softibd_.tell_of_event(bytes, kOffer);
    EXPECT_EQ(wait(), kOffered);
    got = ask({});
  }
  EXPECT_EQ(got, "ahead..");
}

// --- with the answer to another command ---

TEST_F(PreloadEventAhead, NeedsNoCommand) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  EXPECT_TRUE(takes_event_in_time());
  EXPECT_EQ(softibd_.withdraw(), 0u);
}

TEST_F(PreloadEventAhead, IsTakenOnce) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  EXPECT_TRUE(takes_event_in_time());
  EXPECT_EQ(get(), kEvent);
  EXPECT_EQ(commands, 1);
}

TEST_F(PreloadEventAhead, TakesItsNoticeAlong) {
  if (IB_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "its locals may lie on no stack";
  char response[sizeof kEvent] = {};
  for (int tries = 0; tries < 1000 && std::strcmp(response, kOffered) != 0; ++tries) {
    softibd_.withdraw();
    forget_notices();
    softibd_.tell_of_events();
    pollfd has_notice{fd_, POLLIN, 0};
    EXPECT_EQ(::poll(&has_notice, 1, 20'000), 1);
    cause(event_ahead(8, rdma_cm_flag::kDrained));
    GetEvent command;
    command.response = response;
    EXPECT_EQ(kRdmaCm.write(fd_, &command, sizeof command), ssize_t{sizeof command});
  }
  EXPECT_STREQ(response, kOffered);
  pollfd has_notice{fd_, POLLIN, 0};
  EXPECT_EQ(::poll(&has_notice, 1, 0), 0);
}

TEST_F(PreloadEventAhead, ThatIsWithdrawnIsAskedFor) {
  cause(event_ahead());
  EXPECT_EQ(softibd_.withdraw(), kOffer);
  EXPECT_EQ(get(), kEvent);
  EXPECT_EQ(commands, 1);
}

TEST_F(PreloadEventAhead, IsSoftibdsAgainAfterAnotherCommand) {
  cause(event_ahead());
  EXPECT_EQ(ask({.code = 14}), "asked..");
  EXPECT_EQ(get(), kEvent);
  EXPECT_EQ(softibd_.withdraw(), kOffer);
}

TEST_F(PreloadEventAhead, IsNotForLittleRoom) {
  cause(event_ahead());
  EXPECT_EQ(get(4), kEvent) << "softibd knows what to do with it";
  EXPECT_EQ(softibd_.withdraw(), kOffer);
}

TEST_F(PreloadEventAhead, IsNotForMemoryThatMayNotBeThere) {
  cause(event_ahead());
  const auto elsewhere = std::make_unique<std::array<char, 4096>>();
  softibd_.tell_of_events();
  GetEvent command;
  command.response = elsewhere->data();
  EXPECT_EQ(kRdmaCm.write(fd_, &command, sizeof command), ssize_t{sizeof command});
  forget_notices();
  EXPECT_EQ(softibd_.withdraw(), kOffer);
}

TEST_F(PreloadEventAhead, ThatIsDamagedIsNone) {
  for (const std::uint32_t size : {9u, ~0u}) {
    cause(event_ahead(size));
    EXPECT_EQ(get(), kEvent);
    EXPECT_EQ(softibd_.withdraw(), kOffer);
  }
}

TEST_F(PreloadEventAhead, IsNotAChilds) {
  cause(event_ahead());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(get() == kEvent ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(softibd_.withdraw(), kOffer);
}

}  // namespace
}  // namespace ib::host_abi::preload
