// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptors of this process that are links of streams, and its listeners.
//
// A descriptor of a stream is its link (streams/end.h), which the kernel duplicates, hands to
// children and closes; the table only says which end it belongs to. A number that was closed by
// system call and means another file by now leaves the table at the next look.
//
// Thread rule: any thread, and signal handlers: find() and what drops references take no lock and
// free nothing. Sockets that nobody refers to are used again by add().
#pragma once

#include "host_abi/sockets/common/file_identity.h"
#include "host_abi/streams/spin_habit.h"
#include "streams/end.h"
#include "verbs/control_streams.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace ib::host_abi::stream_switch {

enum class Kind : std::uint8_t { Stream, Listener };

struct Socket {
  std::atomic<std::uint32_t> references{0};
  std::atomic<std::uint32_t> numbers{0};  // of this process, which mean it
  std::atomic<std::uint32_t> uses{0};     // of this place: one for each stream and listener
  // These do not change in the table.
  Kind kind = Kind::Stream;
  int family = 0;
  std::uint64_t file = 0;    // file_identity.h
  std::uint64_t stream = 0;  // of a stream, and which end
  std::uint32_t end_number = 0;
  verbs::control::StreamAddress address;  // of a listener

  // Opened by the process `generation`, which may be a parent of this one (fabric.h).
  std::atomic<streams::End*> end{nullptr};
  std::atomic<std::uint32_t> generation{0};
  // Other processes may have the link: forks() when it was made, or has come.
  std::atomic<std::uint32_t> forks{0};
  std::atomic<bool> is_inherited{false};
  std::atomic<bool> has_urgent_inline{false};  // SO_OOBINLINE
  std::atomic<int> readers{0};                 // threads that sleep in a call to read it
  std::atomic<bool> is_nonblocking{false};     // known in a sandbox only (sandbox.h)
  std::atomic<std::uint64_t> left{0};          // LeftBy: who has left it rung (left_rung.h)
  std::atomic<bool> is_never_left{false};      // others wait for it, too
  std::atomic<bool> has_waited{false};         // a read of it has, at the link
  std::atomic<std::uint32_t> additions{0};     // to epoll sets, by the program
  std::atomic<std::int64_t> added_ns{0};       // the first time
  SpinHabit habit;                             // of threads that wait for it alone
  Socket* next = nullptr;                      // of those without references

  void reset();
};

// Keeps a socket from being used for another stream.
class Ref {
 public:
  Ref() = default;
  explicit Ref(Socket* socket) : socket_(socket) {}
  Ref(Ref&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { let_go(); }
  void let_go();
  explicit operator bool() const { return socket_ != nullptr; }
  Socket* operator->() const { return socket_; }
  Socket& operator*() const { return *socket_; }
  // Leaves the reference to the caller, which calls release().
  Socket* take() { return std::exchange(socket_, nullptr); }

 private:
  Socket* socket_ = nullptr;
};
void release(Socket* socket);

inline constexpr int kMostDescriptors = 65536;

// Returns nothing for descriptors that are not in the table, at the price of a load. Of the others
// the kernel says whether they are still the same files.
Ref find(int fd);
Ref find_stream(int fd);
// A call at `fd` that has found it ends now: one that follows at once needs no look.
void note_use(int fd);
// As find_stream(), without that look: for what is found again before it is used.
Ref find_unchecked(int fd);
// A socket that is not in the table yet, with one reference. Returns nothing if memory is short.
Ref make();
// Gives `fd` to `socket`; `file` of the socket is that of the descriptor. Replaces what was there.
// Returns false if the number is too large.
bool put(int fd, Ref socket);
bool has_place(int fd);
void copy(int from, int to);
// The descriptor is about to be closed, or replaced. Returns what it was; `numbers` of it counts
// without this one.
Ref forget(int fd);
bool is_in_table(int fd);
// The first descriptor of the table at or above `from`; -1 if there is none.
int next_in_table(int from);
bool has_any_stream();

// The thread that has left a stream rung, and the epoll set that it waits in, or none, in one word.
class LeftBy {
 public:
  // Nobody.
  LeftBy() = default;
  // Another process may have, for whoever waits there.
  static LeftBy others() { return LeftBy(nullptr, kAnySet); }
  static constexpr int kNoSet = kMostDescriptors - 2;
  // `thread`: an address of its own. `set` may be kNoSet.
  LeftBy(const void* thread, int set)
      : word_(static_cast<std::uint64_t>(set) << kSetShift |
              reinterpret_cast<std::uintptr_t>(thread)) {}
  explicit LeftBy(std::uint64_t word) : word_(word) {}

  std::uint64_t word() const { return word_; }
  bool is_anybody() const { return word_ != 0; }
  bool is(const void* thread) const {
    return (word_ & ((std::uint64_t{1} << kSetShift) - 1)) ==
           reinterpret_cast<std::uintptr_t>(thread);
  }
  int set() const { return static_cast<int>(word_ >> kSetShift); }
  bool is_in_any_set() const { return set() == kAnySet; }
  bool is_in_no_set() const { return set() == kNoSet; }

 private:
  static constexpr int kSetShift = 48;  // addresses of programs have fewer bits
  static constexpr int kAnySet = kMostDescriptors - 1;
  std::uint64_t word_ = 0;
};
LeftBy left_by(const Socket& stream);
void begin_leaving(Socket& stream, LeftBy by);
// Returns false if nobody has left it.
bool stop_leaving(Socket& stream);
int left_count();
// At least those of `set`.
int left_count(int set);

// Children of fork() that this process has made.
std::uint32_t forks();
// Whether other processes may have the link.
inline bool is_shared(const Socket& stream) {
  return stream.is_inherited.load() || stream.forks.load() != forks();
}

void lock_table();
void unlock_table();
void begin_table_as_child();

}  // namespace ib::host_abi::stream_switch
