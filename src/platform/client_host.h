// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operating system for the user HCA (user/): connections to softibd, device memory, memory of
// other processes, moving its own pages, sleeping and waking, threads and time.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "platform/barriers.h"
#include "platform/control_channel.h"
#include "platform/process_name.h"
#include "platform/request_channel.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ib::platform {

// A file mapped into this process for as long as the object lives.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::byte* base() const = 0;
  virtual std::uint64_t size() const = 0;  // of the mapping (address space)
  virtual std::uint64_t file_size() = 0;   // of the file, now; maps its new part
};

// Pages of this process that were moved into a file at the same address (linux/adopt/adopt.h has
// the method).
struct AdoptedPages {
  NativeHandle file;          // memfd of `length` bytes, or more
  std::uint64_t address = 0;  // page aligned
  std::uint64_t length = 0;
  std::uint64_t copied = 0;  // bytes that the program had touched before
};

// The means that stops the program's threads while pages move.
enum class AdoptMode : std::uint32_t {
  None,            // nothing: pages move only while the program has one thread
  UserFaultsOnly,  // a userfaultfd at which system calls fail (EFAULT): likewise
  Full,            // a userfaultfd at which threads wait, in system calls too
};

class ClientHost {
 public:
  virtual ~ClientHost() = default;

  virtual Instant now() = 0;  // monotonic
  virtual Barriers& barriers() = 0;
  virtual std::uint32_t pid() = 0;
  // Another one in each process that is forked from this one, even where it has the same pid().
  virtual std::uint64_t process_number() = 0;
  virtual std::uint64_t page_size() = 0;

  // A connection of its own to the softibd that the environment names.
  virtual Result<std::unique_ptr<ControlChannel>> connect(std::string& reason) = 0;
  virtual Result<std::unique_ptr<RequestChannel>> connect_for_requests(std::string& reason) = 0;

  // Maps `space` bytes of address space over `file` (shared, read-write, not in core dumps, not
  // inherited by a forked child). Beyond the file's end there is address space only, without access
  // until file_size() has seen the file grow. Less space where the process may not have so much.
  virtual Result<std::unique_ptr<MappedFile>> map(const NativeHandle& file, std::uint64_t space,
                                                  std::string& reason) = 0;

  // The name of this process for others.
  virtual Nameplate nameplate() = 0;
  // Path 2: memory of another process. Ok only if all of it was moved. AccessDenied: not permitted
  // (ptrace rules, seccomp); Malformed: not mapped, there or here; NotFound: no process has this
  // id; Disconnected: another process has it (nothing was written there). After a failed read the
  // content of `to` is undefined.
  virtual Status read_process(const ProcessName& who, std::uint64_t from, void* to,
                              std::size_t length) = 0;
  virtual Status write_process(const ProcessName& who, std::uint64_t to, const void* from,
                               std::size_t length) = 0;
  // Memory of this process that may be unmapped or protected: returns an error, raises no signal.
  // Much slower than memcpy for short copies. The last bytes become visible last.
  virtual OwnCopy copy_own(void* to, const void* from, std::size_t length) = 0;
  // Returns whether all of it can be read (or written). Touches it all; for reports of a failure.
  virtual bool is_accessible(const void* at, std::size_t length, bool write) = 0;

  // Path 1. `adopt` moves the whole private anonymous pages inside [address, address + length), of
  // which the program has touched at most `most` bytes; NotSupported if there are none or more, or
  // one of them is not private anonymous memory (or memory that `give_back` returned), or is a
  // stack; DeviceBusy if the kernel may hold one for I/O in flight. Fails without a change. Pages
  // move in steps: if a later step fails, the result is Ok with the pages before it (`length`).
  //
  // To be called while the program registers this memory: pages that another thread unmaps
  // meanwhile come back.
  virtual Result<AdoptedPages> adopt(std::uint64_t address, std::uint64_t length,
                                     std::uint64_t most) = 0;
  // The opposite: private pages with the same content, which MADV_DONTNEED zeroes, at the same
  // place. Returns false, and changes nothing, if the kernel may hold one of the pages for I/O.
  virtual bool give_back(const AdoptedPages& pages) = 0;
  enum class Presence { Gone, Partial, Whole };
  // Returns how much of [address, address + length), which lies in `pages`, is still mapped there.
  virtual Presence adopted_presence(const AdoptedPages& pages, std::uint64_t address,
                                    std::uint64_t length) = 0;

  // Sleeping on a word of device memory; returns at once if the word is not `expected`. Spurious
  // returns are allowed. `wake` wakes all sleepers, in any process.
  virtual void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) = 0;
  virtual void wake(std::atomic<std::uint32_t>& word) = 0;

  // Waits shortly for another thread: a pause, from kYieldRound on yielding the core, after very
  // many rounds a short sleep.
  static constexpr std::uint32_t kYieldRound = 128;
  virtual void relax(std::uint32_t round) = 0;

  // A pipe whose ends are close-on-exec; write end non-blocking.
  virtual Status make_pipe(NativeHandle& read_end, NativeHandle& write_end) = 0;
  // For a handle that is used again and again: the program itself will hardly close it by mistake.
  virtual NativeHandle keep(NativeHandle handle) = 0;
  // Writes all of `bytes` or nothing: InsufficientResources if the pipe is full; NotFound if the
  // program has closed a handle that was kept.
  virtual Status write_pipe(int write_end, std::span<const std::byte> bytes) = 0;
  // Whether a pipe holds bytes that nobody has read. Either end; false if it was closed.
  virtual bool holds_bytes(int pipe_end) = 0;

  // A joinable background thread with all signals blocked. Leaks nothing when the process exits
  // without joining.
  class Thread {
   public:
    virtual ~Thread() = default;  // joins
  };
  virtual Result<std::unique_ptr<Thread>> start_thread(const char* name,
                                                       std::function<void()> body) = 0;

  virtual std::string setting(const char* name) = 0;  // an environment variable; empty if unset
};

}  // namespace ib::platform
