// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// namespace_peer DECOY ADDRESS LENGTH FILE PROGRAM ARGUMENT...: runs a program in a pid namespace
// of its own, where the process with the id DECOY has FILE mapped, shared, at ADDRESS. Needs root.
// The program starts once the decoy has its mapping; everything ends with this process or the
// program.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  ::_exit(3);
}

pid_t fork_as(pid_t id) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.set_tid = reinterpret_cast<std::uint64_t>(&id);
  args.set_tid_size = 1;
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

void stand_there(char** argv, int ready) {
  const auto address = std::strtoull(argv[2], nullptr, 0);
  const auto length = std::strtoull(argv[3], nullptr, 0);
  const int file = ::open(argv[4], O_RDWR | O_CLOEXEC);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const at = ::mmap(reinterpret_cast<void*>(address), length, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  if (at == MAP_FAILED) give_up("decoy: mmap");
  if (::write(ready, "", 1) != 1) give_up("decoy: write");
  for (;;) ::pause();
}

// Process 1 of the namespace: all others die with it.
int run_inside(char** argv) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) give_up("mount /proc");
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) give_up("pipe");
  const pid_t decoy = fork_as(static_cast<pid_t>(std::strtol(argv[1], nullptr, 0)));
  if (decoy == 0) stand_there(argv, ready[1]);
  if (decoy < 0) give_up("clone3 of the decoy");
  (void)::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) != 1) give_up("the decoy");
  const pid_t program = ::fork();
  if (program == 0) {
    (void)::execv(argv[5], argv + 5);
    give_up(argv[5]);
  }
  (void)::close(STDIN_FILENO);  // open in the program alone, so that its end is end of file
  int status = -1;
  while (::waitpid(program, &status, 0) != program) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: namespace_peer DECOY ADDRESS LENGTH FILE PROGRAM ARGUMENT...\n");
    return 2;
  }
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) give_up("unshare");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) give_up("mount");
  const pid_t first = ::fork();
  if (first < 0) give_up("fork");
  if (first == 0) return run_inside(argv);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::close(STDIN_FILENO);
  int status = -1;
  while (::waitpid(first, &status, 0) != first) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
