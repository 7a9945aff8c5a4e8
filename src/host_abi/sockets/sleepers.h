// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ends the sleeps of this process's threads when another thread has changed what they wait for: the
// items of an epoll set, an edge that counts again, a direction of a connection that is shut.
//
// A thread reads the count of news, looks at what it waits for, and sleeps with that count: news
// that come after the look end its sleep.
#pragma once

#include <cstdint>

namespace ib::host_abi::sockets {

struct SleepersPlace;

std::uint32_t count_of_news();
// There are news. Wakes all: it is seldom, and they look again.
void wake_sleepers();

// A thread that is about to sleep.
class Sleeper {
 public:
  Sleeper();
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  // Readable as soon as there are news. -1: there was no descriptor left.
  int fd() const;

 private:
  SleepersPlace* place_;
};

void forget_sleepers_of_parent();

}  // namespace ib::host_abi::sockets
