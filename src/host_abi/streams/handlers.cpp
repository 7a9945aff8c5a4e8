// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one handler that is installed at the kernel, and a word for each signal with the program's.
#include "host_abi/streams/handlers.h"

#include "host_abi/preload/real.h"
#include "host_abi/sockets/common/own_process.h"
#include "host_abi/streams/inside.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

namespace ib::host_abi::stream_switch {
namespace {

constinit preload::Real<int(int, const struct sigaction*, struct sigaction*)> real_sigaction{
    "sigaction"};

enum class Mode : std::uint8_t { Blocks, Replaces, Waits };
constinit std::atomic<Mode> mode{Mode::Blocks};

// Of a signal: the address of the program's handler, and those of its flags that the kernel does
// not get. One word, so that a signal finds no half of it.
constinit std::array<std::atomic<std::uint64_t>, NSIG> words{};
constexpr std::uint64_t kOnce = std::uint64_t{1} << 63;      // SA_RESETHAND
constexpr std::uint64_t kWithInfo = std::uint64_t{1} << 62;  // SA_SIGINFO
constexpr std::uint64_t kAddress = kWithInfo - 1;

constinit thread_local bool has_waiting = false;
constinit thread_local std::uint64_t mask_outside = 0;
constinit thread_local std::uint32_t calls_until_look = 0;
constinit thread_local std::uint32_t run = 0;

using Function = void(int, siginfo_t*, void*);

bool is_function(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

// Of faults the handler runs inside, too, as it should. Those that libc keeps for itself do not
// call here, and its functions do not name them.
bool may_wait(int signal) {
  return signal > 0 && signal < NSIG && (kWaitingSignals >> (signal - 1) & 1) != 0;
}
// Real-time signals would change places with those that wait behind them.
bool is_queued(int signal) {
  return signal >= SIGRTMIN;
}

// The kernel has no more signals than the first word has bits.
unsigned long& mask_of(void* context) {
  return static_cast<ucontext_t*>(context)->uc_sigmask.__val[0];
}

// Of signals that come one over the other before the first of them gets here, the outermost has the
// mask of the program, and is the last to set it.
void let_wait(int signal, const siginfo_t* info, void* context) {
  const int error = errno;
  set_signal_mask(kWaitingSignals, nullptr);
  unsigned long& mask = mask_of(context);
  mask_outside = mask;
  has_waiting = true;
  mask |= static_cast<unsigned long>(kWaitingSignals);
  const auto process = static_cast<long>(::getpid());
  const long thread = ::syscall(SYS_gettid);
  if (::syscall(SYS_rt_tgsigqueueinfo, process, thread, static_cast<long>(signal), info) != 0) {
    // Too many signals wait in this user's processes: without what it came with.
    ::syscall(SYS_tgkill, process, thread, static_cast<long>(signal));
  }
  errno = error;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (Inside::is()) {
    let_wait(signal, info, context);
    return;
  }
  run = run + 1;
  const std::uint64_t word = words[static_cast<std::size_t>(signal)].load();
  if ((word & kOnce) != 0) {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    real_sigaction(signal, &none, nullptr);
  }
  if ((word & kWithInfo) != 0) {
    reinterpret_cast<Function*>(word & kAddress)(signal, info, context);
  } else {
    reinterpret_cast<void (*)(int)>(word & kAddress)(signal);
  }
}

bool is_each_handler_ours() {
  const int error = errno;
  bool ours = true;
  for (int signal = 1; signal < NSIG && ours; ++signal) {
    struct sigaction action {};
    if (!may_wait(signal) || real_sigaction(signal, nullptr, &action) != 0) continue;
    ours = !is_function(action) || action.sa_sigaction == on_signal;
  }
  errno = error;
  return ours;
}

bool look_at_handlers() {
  calls_until_look = kCallsBetweenLooks;
  Mode before = mode.load();
  const Mode next = is_each_handler_ours() ? Mode::Waits : Mode::Blocks;
  if (before != Mode::Blocks) mode.compare_exchange_strong(before, next);
  return next == Mode::Waits && before != Mode::Blocks;
}

}  // namespace

void set_signal_mask(std::uint64_t mask, std::uint64_t* before) {
  ::syscall(SYS_rt_sigprocmask, long{SIG_SETMASK}, &mask, before, sizeof mask);
}

// A kernel of 32-bit words has other frames for handlers without SA_SIGINFO.
void begin_to_replace_handlers() {
  if (sizeof(void*) == sizeof(std::uint64_t)) mode.store(Mode::Replaces);
}

bool do_handlers_wait() {
  switch (mode.load(std::memory_order_relaxed)) {
    case Mode::Blocks: return false;
    case Mode::Replaces: return look_at_handlers();
    case Mode::Waits: break;
  }
  if (calls_until_look == 0) calls_until_look = kCallsBetweenLooks;
  return --calls_until_look != 0 || look_at_handlers();
}

void take_waiting_signals() {
  if (std::exchange(has_waiting, false)) set_signal_mask(mask_outside, nullptr);
}

std::uint32_t handlers_run() {
  return run;
}

int replace_action(int signal, const struct sigaction* wanted, struct sigaction* before) {
  const bool is_handler = wanted != nullptr && is_function(*wanted);
  if (!may_wait(signal) || is_queued(signal)) {
    if (is_handler && may_wait(signal)) mode.store(Mode::Blocks);
    return real_sigaction(signal, wanted, before);
  }
  std::atomic<std::uint64_t>& word = words[static_cast<std::size_t>(signal)];
  const std::uint64_t word_before = word.load();
  struct sigaction ours {};
  const struct sigaction* given = wanted;
  // A child of vfork() has handlers of its own, but its parent's words.
  const bool replaces = is_handler && mode.load() != Mode::Blocks && !sockets::in_vfork_child();
  if (replaces) {
    ours = *wanted;
    ours.sa_sigaction = on_signal;
    ours.sa_flags = (wanted->sa_flags | SA_SIGINFO) & ~static_cast<int>(SA_RESETHAND);
    given = &ours;
    word.store(reinterpret_cast<std::uint64_t>(wanted->sa_sigaction) |
               ((wanted->sa_flags & SA_SIGINFO) != 0 ? kWithInfo : 0) |
               ((wanted->sa_flags & static_cast<int>(SA_RESETHAND)) != 0 ? kOnce : 0));
  }
  struct sigaction was {};
  const int result = real_sigaction(signal, given, &was);
  if (result != 0) {
    if (replaces) word.store(word_before);
    return result;
  }
  if (before == nullptr) return 0;
  *before = was;
  if (was.sa_sigaction != on_signal) return 0;
  before->sa_sigaction = reinterpret_cast<Function*>(word_before & kAddress);
  if ((word_before & kWithInfo) == 0) before->sa_flags &= ~SA_SIGINFO;
  if ((word_before & kOnce) != 0) before->sa_flags |= static_cast<int>(SA_RESETHAND);
  return 0;
}

}  // namespace ib::host_abi::stream_switch
