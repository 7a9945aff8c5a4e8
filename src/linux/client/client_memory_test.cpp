// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory of other processes, which must be the intended ones, and memory of this one that may be
// unmapped.
#include "linux/client/client_memory.h"

#include "linux/client/client_host.h"
#include "linux/process/client_handle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

namespace ib::os {
namespace {

using platform::Nameplate;
using platform::OwnCopy;
using platform::ProcessName;

std::uint64_t number_of(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

// A forked process that reports its name, waits for permission, and exits with the result of
// `verdict`.
class Other {
 public:
  explicit Other(const std::function<int()>& verdict) {
    std::array<int, 2> go{};
    std::array<int, 2> told{};
    if (::pipe2(go.data(), O_CLOEXEC) != 0 || ::pipe2(told.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(go[1]);
      const Nameplate plate = client_host().nameplate();
      (void)!::write(told[1], &plate, sizeof plate);
      char byte = 0;
      (void)!::read(go[0], &byte, 1);
      ::_exit(verdict());
    }
    ::close(go[0]);
    ::close(told[1]);
    go_ = go[1];
    (void)!::read(told[0], &name_.plate, sizeof name_.plate);
    ::close(told[0]);
    name_.pid = static_cast<std::uint32_t>(pid_);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() { (void)end(); }

  const ProcessName& name() const { return name_; }
  int end() {
    if (pid_ <= 0) return -1;
    (void)!::write(go_, "", 1);  // closing it is not enough: later ones have inherited it
    ::close(go_);
    int status = -1;
    (void)::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int go_ = -1;
  ProcessName name_;
};

TEST(ProcessMemory, MovesBytesAndTellsFailuresApart) {
  auto& host = client_host();
  std::vector<char> block(3 << 20, 'a');
  Other other([&block] { return block[5] == 'z' ? 0 : 1; });
  const ProcessName& name = other.name();
  ASSERT_NE(name.plate.address, 0u);
  const std::uint64_t address = number_of(block.data());
  block.assign(block.size(), 'b');
  std::vector<char> copy(block.size());
  EXPECT_EQ(host.read_process(name, address, copy.data(), copy.size()), Status::Ok);
  EXPECT_EQ(copy, std::vector<char>(block.size(), 'a'));
  EXPECT_EQ(host.write_process(name, address + 5, "z", 1), Status::Ok);
  EXPECT_EQ(host.read_process(name, 4096, copy.data(), 8), Status::Malformed);
  EXPECT_EQ(host.write_process(name, 4096, copy.data(), 8), Status::Malformed);
  // Only its beginning is mapped.
  void* half = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(static_cast<char*>(half) + 4096, 4096);
  EXPECT_EQ(host.read_process({host.pid(), host.nameplate()}, number_of(half), copy.data(), 8192),
            Status::Malformed);
  ::munmap(half, 4096);
  EXPECT_EQ(other.end(), 0);
  EXPECT_EQ(host.read_process(name, address, copy.data(), 8), Status::NotFound);
}

// As after the end of a process whose id another one has got, or from another pid namespace.
TEST(ProcessMemory, OfAnotherProcessWithThatIdIsLeftAlone) {
  auto& host = client_host();
  std::vector<char> block(200'000, 'a');
  const auto intact = [&block] { return block == std::vector<char>(block.size(), 'a') ? 0 : 1; };
  Other meant(intact);
  Other decoy(intact);
  const ProcessName wrong{decoy.name().pid, meant.name().plate};
  std::vector<char> mine(block.size(), 'm');
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{9}, mine.size()}) {
    EXPECT_EQ(host.write_process(wrong, number_of(block.data()), mine.data(), bytes),
              Status::Disconnected);
    EXPECT_EQ(host.read_process(wrong, number_of(block.data()), mine.data(), bytes),
              Status::Disconnected);
  }
  const ProcessName nameless{decoy.name().pid, {}};
  EXPECT_EQ(host.write_process(nameless, number_of(block.data()), mine.data(), 8),
            Status::Disconnected);
  const ProcessName misread{decoy.name().pid,
                            {decoy.name().plate.address, decoy.name().plate.number + 1}};
  EXPECT_EQ(host.read_process(misread, number_of(block.data()), mine.data(), 8),
            Status::Disconnected);
  EXPECT_EQ(meant.end(), 0);
  EXPECT_EQ(decoy.end(), 0);
}

TEST(ProcessMemory, AProcessThatExecutesAnotherProgramIsNotThatProcessAnyMore) {
  std::array<int, 2> hold{};
  ASSERT_EQ(::pipe2(hold.data(), 0), 0);
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(hold[0], STDIN_FILENO);
    ::close(hold[0]);
    ::close(hold[1]);
    const Nameplate plate = client_host().nameplate();
    (void)!::write(told[1], &plate, sizeof plate);
    ::execl("/bin/cat", "cat", nullptr);
    ::_exit(1);
  }
  ::close(told[1]);
  ProcessName name{static_cast<std::uint32_t>(child), {}};
  ASSERT_EQ(::read(told[0], &name.plate, sizeof name.plate), ssize_t{sizeof name.plate});
  char end = 0;
  ASSERT_EQ(::read(told[0], &end, 1), 0);  // closed by exec
  std::uint64_t number = 0;
  EXPECT_EQ(client_host().read_process(name, name.plate.address, &number, sizeof number),
            Status::Disconnected);
  ::close(told[0]);
  ::close(hold[0]);
  ::close(hold[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

TEST(Nameplate, IsOfOneProcessOnly) {
  const Nameplate mine = client_host().nameplate();
  ASSERT_NE(mine.address, 0u);
  EXPECT_EQ(client_host().nameplate().address, mine.address);
  Other other([&mine] {  // a forked child's; the parent's page is not there
    std::uint64_t number = 0;
    const ProcessName parents{client_host().pid(), mine};
    return client_host().read_process(parents, mine.address, &number, sizeof number) ==
                   Status::Disconnected
               ? 0
               : 1;
  });
  EXPECT_NE(other.name().plate.address, mine.address);
  EXPECT_NE(other.name().plate.number, mine.number);
  EXPECT_EQ(other.end(), 0);
}

// Two pages: one with the given protection, and an ordinary one.
class OwnMemory : public ::testing::TestWithParam<OwnCopy (*)(void*, const void*, std::size_t)> {
 protected:
  static constexpr std::size_t kPage = 4096;
  void SetUp() override {
    void* three =
        ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(three, MAP_FAILED);
    good = static_cast<char*>(three);
    bad = good + kPage;
    std::memset(good, 'g', 3 * kPage);
  }
  void TearDown() override { ::munmap(good, 3 * kPage); }
  char* good = nullptr;
  char* bad = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Ways, OwnMemory,
                         ::testing::Values(&copy_own_memory, &copy_own_memory_by_pipe));

TEST_P(OwnMemory, IsCopied) {
  std::vector<char> source(300'001, 's');
  source[7] = 'x';
  source.back() = 'z';
  std::vector<char> target(source.size() + 1, 't');
  EXPECT_EQ(GetParam()(target.data(), source.data(), source.size()), OwnCopy::Done);
  EXPECT_EQ(target.back(), 't');
  target.pop_back();
  EXPECT_EQ(target, source);
  EXPECT_EQ(GetParam()(target.data(), source.data(), 0), OwnCopy::Done);
}

TEST_P(OwnMemory, ThatIsNotThereIsAnAnswer) {
  std::vector<char> other(2 * kPage, 'o');
  const auto expect = [&](OwnCopy from, OwnCopy to) {
    EXPECT_EQ(GetParam()(other.data(), good + 100, kPage), from);
    EXPECT_EQ(GetParam()(other.data(), bad, 1), from);
    EXPECT_EQ(GetParam()(good + 100, other.data(), kPage), to);
    EXPECT_EQ(GetParam()(bad, other.data(), 9), to);
    EXPECT_EQ(is_own_memory_accessible(good + 100, kPage, false), from == OwnCopy::Done);
    EXPECT_EQ(is_own_memory_accessible(good + 100, kPage, true), to == OwnCopy::Done);
    EXPECT_TRUE(is_own_memory_accessible(good, kPage, true));
  };
  expect(OwnCopy::Done, OwnCopy::Done);
  ASSERT_EQ(::mprotect(bad, kPage, PROT_READ), 0);
  expect(OwnCopy::Done, OwnCopy::NoTarget);
  ASSERT_EQ(::mprotect(bad, kPage, PROT_NONE), 0);
  expect(OwnCopy::NoSource, OwnCopy::NoTarget);
  ASSERT_EQ(::munmap(bad, kPage), 0);
  expect(OwnCopy::NoSource, OwnCopy::NoTarget);
}

// Real-time programs lock all memory that they get from then on, within a limit.
TEST(DeviceMemoryMapping, IsNotLockedByAProgramThatLocksItsMemory) {
  constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;
  const platform::NativeHandle file = own_descriptor(::memfd_create("device memory", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kFileBytes), 0);
  for (const bool privileged : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit limit{1 << 20, 1 << 20};
      if (!privileged &&
          (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (::getuid() == 0 && ::setuid(65534) != 0))) {
        ::_exit(1);
      }
      if (::mlockall(MCL_FUTURE) != 0) ::_exit(privileged && ::getuid() != 0 ? 0 : 2);
      std::string reason;
      auto mapped = client_host().map(file, kFileBytes * 16, reason);
      if (!mapped || (*mapped)->file_size() != kFileBytes) ::_exit(3);
      struct stat status {};
      if (::fstat(file.get(), &status) != 0 || status.st_blocks != 0) ::_exit(4);
      (*mapped)->base()[kFileBytes - 1] = std::byte{1};
      if (::fstat(file.get(), &status) != 0 || status.st_blocks == 0) ::_exit(5);
      if (::ftruncate(file.get(), 2 * kFileBytes) != 0) ::_exit(6);
      ::_exit((*mapped)->file_size() == 2 * kFileBytes ? 0 : 7);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "privileged: " << privileged;
    ASSERT_EQ(::ftruncate(file.get(), 0), 0);
    ASSERT_EQ(::ftruncate(file.get(), kFileBytes), 0);
  }
}

TEST(OwnMemoryLook, ChangesNothing) {
  std::vector<std::uint64_t> words(4096, 0x0123'4567'89ab'cdef);
  words[600] = 0;
  const auto before = words;
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  for (std::size_t skip = 0; skip < 9; ++skip) {
    EXPECT_TRUE(is_own_memory_accessible(bytes + skip, words.size() * 8 - skip, true));
    EXPECT_TRUE(is_own_memory_accessible(bytes + skip, words.size() * 8 - skip, false));
  }
  EXPECT_EQ(words, before);
}

}  // namespace
}  // namespace ib::os
