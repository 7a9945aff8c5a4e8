// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/barriers.h"
#include "setup/fd.h"
#include "softib/doctor/doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace ib::softib {

std::optional<int> in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  if (!WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

namespace {

// Of /proc/self/status: 0 none, 1 strict, 2 filter.
std::string seccomp_note() {
  const std::string text = read_file("/proc/self/status");
  const std::size_t at = text.find("\nSeccomp:");
  if (at == std::string::npos) return {};
  const std::size_t digit = text.find_first_of("0123456789", at);
  return digit != std::string::npos && text[digit] == '2' ? " (a seccomp filter is active)" : "";
}

constexpr unsigned long long kUffdMove = 1ull << 16;  // UFFD_FEATURE_MOVE, Linux 6.8

bool has_userfaultfd(int flags, unsigned long long features) {
  const std::optional<int> result = in_child([&] {
    const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags));
    if (fd < 0) return 1;
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    return ::ioctl(fd, UFFDIO_API, &api) == 0 ? 0 : 1;
  });
  return result == 0;
}

// docs/memory.md has the rules behind these words.
void check_userfaultfd(Findings& findings) {
  const bool full = has_userfaultfd(0, 0);
  const bool some = full || has_userfaultfd(UFFD_USER_MODE_ONLY, 0);
  if (full) {
    findings.push_back({"userfaultfd", Level::Ok, "full", {}, {}});
  } else if (some) {
    findings.push_back(
        {"userfaultfd", Level::Warn, "user faults only (vm.unprivileged_userfaultfd is 0)",
         "memory of programs with several threads is not adopted: a system call a message "
         "(process_vm) instead of plain loads and stores",
         "sysctl vm.unprivileged_userfaultfd=1"});
  } else {
    findings.push_back(
        {"userfaultfd", Level::Warn, "none" + seccomp_note(),
         "memory that programs have touched before they register it, or that have several "
         "threads, is not adopted: a system call a message (process_vm) instead of plain loads "
         "and stores",
         "containers: allow userfaultfd in the seccomp profile; else sysctl "
         "vm.unprivileged_userfaultfd=1"});
  }
  if (!some) return;
  if (has_userfaultfd(full ? 0 : UFFD_USER_MODE_ONLY, kUffdMove)) {
    findings.push_back({"UFFDIO_MOVE", Level::Ok, "works", {}, {}});
    return;
  }
  findings.push_back(
      {"UFFDIO_MOVE", Level::Warn, "none (Linux before 6.8)",
       "nothing proves that memory is not held for I/O: what a program with threads has touched "
       "before it registers it is not adopted",
       "Linux 6.8 or later"});
}

// Tests access to a process that is not a descendant, as between two programs of a fabric.
// `willing`: the target allows it with PR_SET_PTRACER, which Yama honours. 0 works, else errno or
// 100.
int read_sibling(bool willing) {
  static volatile int word = 4711;
  std::array<int, 2> ready{};
  if (::pipe(ready.data()) != 0) return 100;
  const pid_t target = ::fork();
  if (target < 0) return 100;
  if (target == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (willing) ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    word = 4712;
    ::_exit(::write(ready[1], "r", 1) == 1 ? (::pause(), 0) : 1);
  }
  char byte = 0;
  const bool up = ::read(ready[0], &byte, 1) == 1;
  const std::optional<int> result = in_child([&] {
    int copy = 0;
    iovec to{&copy, sizeof copy};
    iovec from{const_cast<int*>(&word), sizeof copy};
    if (::process_vm_readv(target, &to, 1, &from, 1, 0) == sizeof copy && copy == 4712) return 0;
    return errno > 0 && errno < 100 ? errno : 100;
  });
  ::kill(target, SIGKILL);
  ::waitpid(target, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return up ? result.value_or(100) : 100;
}

std::string yama_note() {
  const std::string scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  return scope.empty() ? "" : ", Yama ptrace_scope " + scope.substr(0, 1);
}

void check_process_vm(Findings& findings) {
  const int plain = read_sibling(false);
  if (plain == 0) {
    findings.push_back(
        {"process_vm_readv", Level::Ok, "works between programs" + yama_note(), {}, {}});
    return;
  }
  if (read_sibling(true) == 0) {
    findings.push_back({"process_vm_readv",
                        Level::Ok,
                        "works where the target agrees" + yama_note() + "; programs of softib do",
                        {},
                        {}});
    return;
  }
  const std::string why = plain < 100 ? std::strerror(plain) : "the call was not answered";
  findings.push_back(
      {"process_vm_readv", Level::Warn,
       fmt::format("not possible: {}{}{}", why, yama_note(), seccomp_note()),
       "memory that is not adopted goes through bounce buffers, with a thread of the owner: "
       "slower, "
       "and some 10 us more latency",
       "sysctl kernel.yama.ptrace_scope=0 or 1; containers: allow process_vm_readv and _writev"});
}

// 0 works; 1 no memfd; 2 no seals; 3 no memory; 4 the limit of file sizes.
int try_memfd() {
  ::signal(SIGXFSZ, SIG_IGN);  // an error of the call instead
  const int fd = ::memfd_create("softib-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return 1;
  constexpr std::size_t kSize = 1u << 20;
  if (::ftruncate(fd, kSize) != 0) return errno == EFBIG ? 4 : 3;
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) return 2;
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 3;
  std::memset(memory, 1, kSize);
  return 0;
}

void check_memfd(Findings& findings) {
  const std::optional<int> result = in_child(try_memfd);
  if (result == 0) {
    findings.push_back({"memfd with seals", Level::Ok, "works", {}, {}});
    return;
  }
  struct Reason {
    std::string what;
    const char* fix;
  };
  const char* const kProfile = "allow memfd_create and fcntl(F_ADD_SEALS) in the seccomp profile";
  const char* const kMemory = "give this machine or container more memory";
  const std::array<Reason, 5> reasons = {
      Reason{"the process is killed when it uses shared memory", kMemory},
      Reason{"memfd_create fails" + seccomp_note(), kProfile},
      Reason{"files cannot be sealed" + seccomp_note(), kProfile},
      Reason{"no shared memory to be had", kMemory},
      Reason{"the limit of file sizes (RLIMIT_FSIZE) is below 1 MiB", "ulimit -f unlimited"}};
  const Reason& reason = reasons[static_cast<std::size_t>(result.value_or(0))];
  findings.push_back(
      {"memfd with seals", Level::Fail, reason.what, "no device memory, so no fabric", reason.fix});
}

// In a child, since a registration lasts for the life of a process.
void check_membarrier(Findings& findings) {
  const std::optional<int> result = in_child([] {
    return os::LinuxBarriers().join() ? 0 : errno > 0 && errno < 100 ? errno : 100;
  });
  if (result == 0) {
    findings.push_back({"membarrier", Level::Ok, "works", {}, {}});
    return;
  }
  const int why = result.value_or(100);
  findings.push_back(
      {"membarrier", Level::Warn,
       fmt::format("not possible: {}{}",
                   why < 100 ? std::strerror(why) : "the call was not answered", seccomp_note()),
       "every message costs a few exchanges more, some 10 %",
       "containers: allow membarrier in the seccomp profile"});
}

}  // namespace

void check_kernel(Findings& findings) {
  check_memfd(findings);
  check_membarrier(findings);
  check_userfaultfd(findings);
  check_process_vm(findings);
}

}  // namespace ib::softib
