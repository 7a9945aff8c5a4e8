// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_host.h"

#include "base/sanitizer.h"
#include "linux/client/client_channel.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_wait.h"
#include "verbs/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

namespace ib::os {
namespace {

using namespace std::chrono_literals;
using platform::ControlReply;
using platform::NativeHandle;
namespace control = verbs::control;

struct Request {
  control::RequestHeader header;
  std::string body;
  std::vector<NativeHandle> handles;
};

// softibd in a few lines: answers each request with the result of `serve`.
class Server {
 public:
  using Serve = std::function<bool(Server&, Request&)>;  // false: die

  explicit Server(Serve serve) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = own_descriptor(ends[0]);
    channel_ = channel_over(own_descriptor(ends[1]));
    thread_ = std::thread([this, serve = std::move(serve)] {
      Request request;
      while (receive(request) && serve(*this, request)) {}
      socket_.reset();
    });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    channel_.reset();
    thread_.join();
  }

  platform::ControlChannel& channel() { return *channel_; }

  void answer(std::uint64_t tag, Status status, const std::string& body, int fd = -1) const {
    send(tag, status, body, fd >= 0 ? std::vector<int>{fd} : std::vector<int>{});
  }
  void answer_with(std::uint64_t tag, std::span<const int> fds) const {
    send(tag, Status::Ok, {}, fds);
  }

 private:
  void send(std::uint64_t tag, Status status, const std::string& body,
            std::span<const int> fds) const {
    control::ReplyHeader header;
    header.length = static_cast<std::uint32_t>(sizeof header + body.size());
    header.status = static_cast<std::uint32_t>(status);
    header.tag = tag;
    header.information = 42;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes += body;
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(8 * sizeof(int))> ancillary{};
    if (!fds.empty()) {
      message.msg_control = ancillary.data();
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
    }
    EXPECT_GT(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL), 0);
  }

  bool receive(Request& request) const {
    std::array<char, 65536> buffer;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * sizeof(int))> ancillary{};
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < static_cast<ssize_t>(sizeof request.header)) return false;
    std::memcpy(&request.header, buffer.data(), sizeof request.header);
    request.body.assign(buffer.data() + sizeof request.header,
                        static_cast<std::size_t>(got) - sizeof request.header);
    request.handles.clear();
    if (const cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr) {
      for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        request.handles.push_back(own_descriptor(fd));
      }
    }
    return true;
  }

  NativeHandle socket_;
  std::unique_ptr<platform::ControlChannel> channel_;
  std::thread thread_;
};

bool echo(Server& server, Request& request) {
  const int fd = request.handles.empty() ? -1 : request.handles[0].get();
  server.answer(request.header.tag, Status::Ok, request.body, fd);
  return true;
}

ControlReply call(platform::ControlChannel& channel, const std::string& in, std::string& out,
                  std::span<const int> handles = {}) {
  std::array<std::byte, 64> buffer{};
  ControlReply reply = channel.call(7, 3, std::as_bytes(std::span(in)), buffer, handles);
  out.assign(reinterpret_cast<const char*>(buffer.data()), reply.out_size);
  return reply;
}

TEST(ControlChannel, CarriesBytesAndDescriptorsBothWays) {
  Server server(echo);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  NativeHandle reader = own_descriptor(ends[0]);
  NativeHandle writer = own_descriptor(ends[1]);
  std::string out;
  const std::array fds{writer.get()};
  ControlReply reply = call(server.channel(), "hello", out, fds);
  EXPECT_EQ(reply.status, Status::Ok);
  EXPECT_EQ(reply.information, 42u);
  EXPECT_EQ(out, "hello");
  ASSERT_TRUE(reply.handles[0].valid());
  EXPECT_FALSE(reply.handles[1].valid());
  EXPECT_EQ(::fcntl(reply.handles[0].get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::write(reply.handles[0].get(), "x", 1), 1);
  char got = 0;
  EXPECT_EQ(::read(reader.get(), &got, 1), 1);
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(ControlChannel, SurplusDescriptorsAreClosed) {
  Server server([](Server& s, Request& request) {
    s.answer_with(request.header.tag, std::array{2, 2, 2, 2, 2, 2});
    return true;
  });
  std::string out;
  EXPECT_EQ(call(server.channel(), "x", out).status, Status::Ok);
  const int before = open_descriptors();
  {
    const ControlReply reply = call(server.channel(), "x", out);
    EXPECT_EQ(reply.status, Status::Ok);
    EXPECT_TRUE(reply.handles[0].valid());
    EXPECT_EQ(open_descriptors(), before + 2) << "as many as the protocol has";
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ControlChannel, LongAnswersAreCutAndLongRequestsRefused) {
  Server server(echo);
  std::string out;
  EXPECT_EQ(call(server.channel(), std::string(1000, 'a'), out).out_size, 64u);
  const std::string largest(control::kMaxMessage - sizeof(control::RequestHeader), 'b');
  EXPECT_EQ(call(server.channel(), largest, out).status, Status::Ok);
  EXPECT_EQ(call(server.channel(), largest + 'b', out).status, Status::InvalidParameter);
}

TEST(ControlChannel, AFailureCarriesItsReason) {
  Server server([](Server& s, Request& r) {
    s.answer(r.header.tag, Status::DeviceBusy, r.body.empty() ? "" : "2 QPs use this CQ");
    return true;
  });
  std::string out;
  ControlReply reply = call(server.channel(), "x", out);
  EXPECT_EQ(reply.status, Status::DeviceBusy);
  EXPECT_EQ(reply.reason, "2 QPs use this CQ");
  EXPECT_EQ(reply.out_size, 0u);
  EXPECT_EQ(call(server.channel(), "", out).reason, status_text(Status::DeviceBusy));
}

TEST(ControlChannel, AnswersToOtherTagsAreIgnored) {
  Server server([](Server& s, Request& r) {
    s.answer(r.header.tag + 1000, Status::Ok, "old");
    s.answer(r.header.tag, Status::Ok, "new");
    return true;
  });
  std::string out;
  (void)call(server.channel(), "x", out);
  EXPECT_EQ(out, "new");
}

TEST(ControlChannel, AnUnknownStatusIsMalformed) {
  Server server([](Server& s, Request& r) {
    s.answer(r.header.tag, static_cast<Status>(kStatusCount), "");
    return true;
  });
  std::string out;
  EXPECT_EQ(call(server.channel(), "x", out).status, Status::Malformed);
}

TEST(ControlChannel, AServerThatDiesDuringACallDisconnectsForEver) {
  Server server([](Server&, Request&) { return false; });
  std::string out;
  for (int i = 0; i < 3; ++i) {
    const ControlReply reply = call(server.channel(), "x", out);
    EXPECT_EQ(reply.status, Status::Disconnected);
    EXPECT_NE(reply.reason.find("softibd closed the connection"), std::string::npos);
  }
}

TEST(ControlChannel, ShutDownEndsACallThatWaits) {
  std::atomic<bool> asked{false};
  Server server([&](Server&, Request&) {
    asked = true;
    return true;  // no answer
  });
  std::thread ender([&] {
    while (!asked) std::this_thread::yield();
    server.channel().shut_down();
  });
  std::string out;
  EXPECT_EQ(call(server.channel(), "x", out).status, Status::Disconnected);
  EXPECT_EQ(call(server.channel(), "x", out).status, Status::Disconnected);
  ender.join();
}

TEST(ControlChannel, ManyThreadsMayCall) {
  Server server(echo);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string text = std::to_string(t * 1000 + i);
        std::string out;
        if (call(server.channel(), text, out).status != Status::Ok || out != text) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ControlChannel, AForkedChildIsDisconnectedAndDoesNotDisturbItsParent) {
  Server server(echo);
  std::string out;
  EXPECT_EQ(call(server.channel(), "before", out).status, Status::Ok);
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<std::byte, 8> buffer{};
    const bool refused = server.channel().call(1, 0, {}, buffer).status == Status::Disconnected;
    server.channel().shut_down();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(call(server.channel(), "after", out).status, Status::Ok);
  EXPECT_EQ(out, "after");
}

// softibd detects a death by the end of the connection; a surviving child must not delay that.
TEST(ControlChannel, AForkedChildDoesNotKeepTheConnectionOpen) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const NativeHandle server = own_descriptor(ends[0]);
  auto channel = channel_over(own_descriptor(ends[1]));
  int hold[2] = {-1, -1};
  ASSERT_EQ(::pipe2(hold, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(hold[1]);
    char byte = 0;
    (void)!::read(hold[0], &byte, 1);  // until the parent has seen the end
    ::_exit(0);
  }
  channel.reset();
  const timeval time_limit{10, 0};  // until the child's handler has run
  ::setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &time_limit, sizeof time_limit);
  char byte = 0;
  EXPECT_EQ(::recv(server.get(), &byte, 1, 0), 0);
  ::close(hold[0]);
  ::close(hold[1]);
  ::waitpid(child, nullptr, 0);
}

TEST(Connect, SaysWhyItFails) {
  std::string reason;
  ::unsetenv(kSocketVariable);
  EXPECT_EQ(client_host().connect(reason).error(), Status::NotFound);
  EXPECT_EQ(reason, "SOFTIB_SOCKET is not set: start the program with `softib run -- CMD`");

  std::string folder = "/tmp/softib-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/socket";
  ::setenv(kSocketVariable, path.c_str(), 1);
  EXPECT_EQ(client_host().connect(reason).error(), Status::NotFound);
  EXPECT_NE(reason.find(path), std::string::npos) << reason;

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  {
    const NativeHandle listener = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    ASSERT_EQ(::bind(listener.get(), generic, sizeof address), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_TRUE(client_host().connect(reason));
  }
  EXPECT_EQ(client_host().connect(reason).error(), Status::Disconnected);  // stale
  EXPECT_NE(reason.find("nobody listens"), std::string::npos) << reason;

  ::setenv(kSocketVariable, std::string(200, 'x').c_str(), 1);
  EXPECT_EQ(client_host().connect(reason).error(), Status::InvalidParameter);
  ::unsetenv(kSocketVariable);
  ::unlink(path.c_str());
  ::rmdir(folder.c_str());
}

TEST(MapFile, ReservesSpaceThatTheFileMayGrowInto) {
  const NativeHandle file = own_descriptor(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  std::string reason;
  auto mapped = client_host().map(file, 1ull << 35, reason);
  ASSERT_TRUE(mapped) << reason;
  EXPECT_EQ((*mapped)->size(), 1ull << 35);
  EXPECT_EQ((*mapped)->file_size(), 4096u);
  ASSERT_EQ(::ftruncate(file.get(), 8192), 0);
  EXPECT_EQ((*mapped)->file_size(), 8192u);
  (*mapped)->base()[8000] = std::byte{9};
  char got = 0;
  EXPECT_EQ(::pread(file.get(), &got, 1, 8000), 1);
  EXPECT_EQ(got, 9);
}

// "r", "rw", "-" of the page at `address`, as the kernel reports it.
std::string access_of(const std::byte* address) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<std::uint64_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::array<char, 5> access{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &first, &end, access.data()) != 3) continue;
    if (first <= at && at < end) return std::string(access.data(), 3);
  }
  return "none";
}

TEST(MapFile, MapsWhatExistsAndNoMore) {
  const NativeHandle file = own_descriptor(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 8192), 0);
  std::string reason;
  auto mapped = client_host().map(file, 1ull << 35, reason);
  ASSERT_TRUE(mapped) << reason;
  std::byte* const base = (*mapped)->base();
  EXPECT_EQ(access_of(base + 4096), "rw-");
  EXPECT_EQ(access_of(base + 8192), "---");
  EXPECT_EQ(access_of(base + (1ull << 35) - 1), "---");
  ASSERT_EQ(::ftruncate(file.get(), 64 << 20), 0);
  base[17] = std::byte{7};
  EXPECT_EQ((*mapped)->file_size(), 64u << 20);
  EXPECT_EQ(access_of(base + (64u << 20) - 1), "rw-");
  EXPECT_EQ(access_of(base + (64u << 20)), "---");
  EXPECT_EQ(base[17], std::byte{7});
}

TEST(MapFile, TakesLessAddressSpaceWhereThereIsLess) {
#if IB_ADDRESS_SANITIZER || IB_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers need more address space than the limit of this test";
#endif
  const NativeHandle file = own_descriptor(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 1 << 20), 0);
  rlimit old{};
  ::getrlimit(RLIMIT_AS, &old);
  rlimit low = old;
  low.rlim_cur = 4ull << 30;
  ::setrlimit(RLIMIT_AS, &low);
  std::string reason;
  auto mapped = client_host().map(file, 32ull << 30, reason);
  ::setrlimit(RLIMIT_AS, &old);
  ASSERT_TRUE(mapped) << reason;
  EXPECT_LE((*mapped)->size(), 4ull << 30);
  EXPECT_GE((*mapped)->size(), 1ull << 30);
  EXPECT_EQ((*mapped)->file_size(), 1u << 20);
  EXPECT_EQ((*mapped)->base()[12345], std::byte{0});
}

TEST(MapFile, NamesTheLimitThatIsInTheWay) {
#if IB_ADDRESS_SANITIZER || IB_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers need more address space than the limit of this test";
#endif
  const NativeHandle file = own_descriptor(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), off_t{3} << 30), 0);
  rlimit old{};
  ::getrlimit(RLIMIT_AS, &old);
  rlimit low = old;
  low.rlim_cur = 4ull << 30;
  ::setrlimit(RLIMIT_AS, &low);
  std::string reason;
  const Status status = client_host().map(file, 32ull << 30, reason).error();
  ::setrlimit(RLIMIT_AS, &old);
  EXPECT_EQ(status, Status::InsufficientResources);
  EXPECT_NE(reason.find("32768 MiB"), std::string::npos) << reason;
  EXPECT_NE(reason.find("limited to 4096 MiB (RLIMIT_AS)"), std::string::npos) << reason;
}

TEST(Futex, WakesASleeperAndKeepsTime) {
  auto& host = client_host();
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& word = *new (page) std::atomic<std::uint32_t>(0);
  host.wait(word, 1, 10s);  // not the expected value: returns at once
  const Instant start = host.now();
  host.wait(word, 0, 20ms);
  EXPECT_GE(host.now() - start, 19ms);
  const pid_t child = ::fork();  // over process borders
  if (child == 0) {
    while (word.load() == 0) client_host().wait(word, 0, Duration::max());
    ::_exit(0);
  }
  // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
  std::this_thread::sleep_for(20ms);
  word = 1;
  host.wake(word);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(page, 4096);
}

// With the means of the newest kernels, or without.
class Pipe : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { allow_writes_without_signal(GetParam()); }
  void TearDown() override { allow_writes_without_signal(true); }
};

INSTANTIATE_TEST_SUITE_P(Kernels, Pipe, testing::Bool());

TEST_P(Pipe, TakesAllOrNothing) {
  auto& host = client_host();
  NativeHandle reader;
  NativeHandle writer;
  ASSERT_EQ(host.make_pipe(reader, writer), Status::Ok);
  EXPECT_EQ(::fcntl(writer.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(reader.get(), F_GETFL) & O_NONBLOCK, 0);
  const std::array<std::byte, 24> record{};
  std::size_t written = 0;
  while (host.write_pipe(writer.get(), record) == Status::Ok) written += record.size();
  EXPECT_EQ(host.write_pipe(writer.get(), record), Status::InsufficientResources);
  EXPECT_GE(written, 60'000u);
  std::vector<std::byte> all(written + record.size());
  EXPECT_EQ(::read(reader.get(), all.data(), all.size()), static_cast<ssize_t>(written));
  EXPECT_EQ(host.write_pipe(writer.get(), std::vector<std::byte>(5000)), Status::InvalidParameter);
  reader.reset();
  EXPECT_EQ(host.write_pipe(writer.get(), record), Status::Disconnected);  // and no SIGPIPE
}

TEST(BackgroundThread, RunsWithItsNameAndNoSignals) {
  auto& host = client_host();
  std::array<char, 16> name{};
  int blocked = 0;
  {
    auto thread = host.start_thread("softib-service-long", [&] {
      (void)pthread_getname_np(pthread_self(), name.data(), name.size());
      sigset_t mask;
      (void)pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      blocked = sigismember(&mask, SIGTERM) + sigismember(&mask, SIGALRM);
    });
    ASSERT_TRUE(thread);
  }
  EXPECT_STREQ(name.data(), "softib-service-");
  EXPECT_EQ(blocked, 2);
  sigset_t mine;
  (void)pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

TEST(Relax, ReturnsInEveryRound) {
  for (const std::uint32_t round : {0u, 63u, 64u, 4095u, 4096u, ~0u}) client_host().relax(round);
}

}  // namespace
}  // namespace ib::os
