// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/handlers.h"

#include "base/sanitizer.h"
#include "host_abi/streams/inside.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <compare>
#include <csetjmp>
#include <cstdlib>
#include <vector>

namespace ib::host_abi::stream_switch {
namespace {

struct Came {
  int signal = 0;
  int value = 0;
  bool inside = false;
  auto operator<=>(const Came&) const = default;
};
constinit std::array<Came, 8> came{};
constinit int came_count = 0;

void note(int signal, siginfo_t* info, void*) {
  came[static_cast<std::size_t>(came_count++)] = {signal, info->si_value.sival_int, Inside::is()};
}
void note_plainly(int signal) {
  came[static_cast<std::size_t>(came_count++)] = {signal, 0, Inside::is()};
}

// Sorted: of several signals that are unblocked together the kernel decides which is first.
std::vector<Came> all_that_came() {
  std::vector<Came> all(came.begin(), came.begin() + came_count);
  std::sort(all.begin(), all.end());
  came_count = 0;
  return all;
}

void install(int signal, int flags = 0) {
  struct sigaction action {};
  action.sa_sigaction = note;
  action.sa_flags = SA_SIGINFO | flags;
  ASSERT_EQ(replace_action(signal, &action, nullptr), 0);
}

void send(int signal, int value) {
  ASSERT_EQ(::pthread_sigqueue(::pthread_self(), signal, {.sival_int = value}), 0);
}

std::uint64_t mask_now() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::uint64_t word = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&mask, signal) == 1) word |= std::uint64_t{1} << (signal - 1);
  }
  return word;
}

// Each test has a process of its own: handlers are the process's, and the mode stays.
template <class Body>
void in_own_process(Body body) {
  if (IB_THREAD_SANITIZER != 0) {
    GTEST_SKIP() << "ThreadSanitizer runs handlers when it likes";
  }
  EXPECT_EXIT(
      {
        begin_to_replace_handlers();
        body();
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Handlers, WaitUntilTheThreadHasLeft) {
  in_own_process([] {
    install(SIGUSR1);
    const std::uint64_t before = mask_now();
    {
      const Inside inside;
      EXPECT_EQ(mask_now(), before);
      send(SIGUSR1, 42);
      EXPECT_EQ(came_count, 0);
    }
    EXPECT_EQ(all_that_came(), (std::vector<Came>{{SIGUSR1, 42, false}}));
    EXPECT_EQ(mask_now(), before);
    send(SIGUSR1, 43);
    EXPECT_EQ(all_that_came(), (std::vector<Came>{{SIGUSR1, 43, false}}));
  });
}

TEST(Handlers, AllThatCameRun) {
  in_own_process([] {
    install(SIGUSR1);
    install(SIGUSR2, SA_NODEFER);
    const std::uint64_t before = mask_now();
    {
      const Inside inside;
      const Inside nested;
      send(SIGUSR2, 4);
      send(SIGUSR1, 5);
    }
    EXPECT_EQ(all_that_came(), (std::vector<Came>{{SIGUSR1, 5, false}, {SIGUSR2, 4, false}}));
    EXPECT_EQ(mask_now(), before);
  });
}

// Their frames lie one over the other before the first handler begins.
TEST(Handlers, OfSignalsThatComeAtOnceWaitToo) {
  in_own_process([] {
    const std::array signals{SIGUSR1, SIGUSR2, SIGTERM, SIGHUP};
    for (const int signal : signals) install(signal);
    const std::uint64_t before = mask_now();
    {
      const Inside inside;
      std::uint64_t mask = 0;
      set_signal_mask(kWaitingSignals, &mask);
      for (const int signal : signals) send(signal, signal);
      set_signal_mask(mask, nullptr);
      EXPECT_EQ(came_count, 0);
      EXPECT_EQ(mask_now() & kWaitingSignals & ~(std::uint64_t{3} << 31),
                kWaitingSignals & ~(std::uint64_t{3} << 31) & ~(std::uint64_t{1} << (SIGKILL - 1)) &
                    ~(std::uint64_t{1} << (SIGSTOP - 1)));
    }
    EXPECT_EQ(all_that_came().size(), signals.size());
    EXPECT_EQ(mask_now(), before);
  });
}

TEST(Handlers, AreTheProgramsForTheProgram) {
  in_own_process([] {
    struct sigaction action {};
    action.sa_handler = note_plainly;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigaddset(&action.sa_mask, SIGHUP);
    struct sigaction before {};
    ASSERT_EQ(replace_action(SIGTERM, &action, &before), 0);
    EXPECT_EQ(before.sa_handler, SIG_DFL);
    ASSERT_EQ(replace_action(SIGTERM, nullptr, &before), 0);
    EXPECT_EQ(before.sa_handler, note_plainly);
    constexpr int kRestorer = 0x04000000;  // libc's own
    EXPECT_EQ(before.sa_flags & ~kRestorer, action.sa_flags);
    EXPECT_EQ(::sigismember(&before.sa_mask, SIGHUP), 1);
    EXPECT_EQ(::sigismember(&before.sa_mask, SIGINT), 0);
    {
      const Inside inside;
      send(SIGTERM, 0);
    }
    EXPECT_EQ(all_that_came(), (std::vector<Came>{{SIGTERM, 0, false}}));
    ASSERT_EQ(replace_action(SIGTERM, nullptr, &before), 0);
    EXPECT_EQ(before.sa_handler, SIG_DFL) << "SA_RESETHAND";
  });
}

sigjmp_buf back;
TEST(Handlers, MayJumpAway) {
  in_own_process([] {
    struct sigaction action {};
    action.sa_handler = [](int) { siglongjmp(back, 1); };
    ASSERT_EQ(replace_action(SIGUSR1, &action, nullptr), 0);
    const std::uint64_t before = mask_now();
    volatile bool has_left = false;
    if (sigsetjmp(back, 1) == 0) {
      {
        const Inside inside;
        send(SIGUSR1, 0);
        has_left = true;
      }
      ADD_FAILURE() << "the handler has not run";
    }
    EXPECT_TRUE(has_left);
    EXPECT_FALSE(Inside::is());
    EXPECT_EQ(mask_now(), before);
  });
}

TEST(Handlers, OfRealTimeSignalsKeepTheirOrder) {
  in_own_process([] {
    EXPECT_TRUE(do_handlers_wait());
    install(SIGRTMIN);
    EXPECT_FALSE(do_handlers_wait());
    {
      const Inside inside;
      for (int value : {1, 2, 3}) send(SIGRTMIN, value);
      EXPECT_EQ(came_count, 0);
    }
    ASSERT_EQ(came_count, 3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(came[static_cast<std::size_t>(i)].value, i + 1);
  });
}

// A handler that the switch has not seen would run inside: all are blocked then.
TEST(Handlers, ThatWereInstalledPastLibcHaveTheirSignalsBlocked) {
  in_own_process([] {
    install(SIGUSR2);
    EXPECT_TRUE(do_handlers_wait());
    const auto kernels = reinterpret_cast<decltype(&::sigaction)>(::dlsym(RTLD_NEXT, "sigaction"));
    struct sigaction action {};
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(kernels(SIGUSR1, &action, nullptr), 0);
    for (std::uint32_t i = 0; i < kCallsBetweenLooks; ++i) static_cast<void>(do_handlers_wait());
    EXPECT_FALSE(do_handlers_wait());
    {
      const Inside inside;
      send(SIGUSR1, 5);
      send(SIGUSR2, 6);
      EXPECT_EQ(came_count, 0);
    }
    EXPECT_EQ(all_that_came(), (std::vector<Came>{{SIGUSR1, 5, false}, {SIGUSR2, 6, false}}));
    struct sigaction before {};
    ASSERT_EQ(replace_action(SIGUSR2, nullptr, &before), 0);
    EXPECT_EQ(before.sa_sigaction, note);
  });
}

}  // namespace
}  // namespace ib::host_abi::stream_switch
