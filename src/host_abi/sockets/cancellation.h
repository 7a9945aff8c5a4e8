// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads that are cancelled (pthread_cancel) in a call of the switch. librdmacm cannot bear it: a
// thread that ends inside keeps its locks and its place among those that sleep. So a call is not
// cancelled but where it is about to wait and holds nothing but what it has named here.
//
// The unwinding runs no destructors: this library has none for it, as its unwinder would be another
// one than the program's.
#pragma once

#include <cstdint>

namespace ib::host_abi::sockets {

// Stands in a call of the program's: from enter() on this thread is not cancelled.
class Uncancelled {
 public:
  using Clean = void (*)(void* what);
  // Part: of a call that has entered already. Otherwise a signal handler's call has interrupted it.
  enum class Kind : std::uint8_t { Call, Part };

  Uncancelled() = default;
  ~Uncancelled() { leave(); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;
  // `clean` gives back what the call has where it comes to end_if_cancelled().
  void enter(Clean clean, void* what, Kind kind = Kind::Call);
  void leave();

 private:
  friend void end_if_cancelled();
  static void clean_up(void*);

  bool entered_ = false;
  Kind kind_ = Kind::Call;
  int before_ = 0;
  Clean clean_ = nullptr;
  void* what_ = nullptr;
  Uncancelled* outer_ = nullptr;
};

// A call that does not wait.
class NotWaiting : public Uncancelled {
 public:
  NotWaiting() { enter(nullptr, nullptr); }
};

// Ends this thread here if it has been cancelled, unless a signal handler stands between.
void end_if_cancelled();

}  // namespace ib::host_abi::sockets
