// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/rdma_cm/command_connection.h"

#include "host_abi/preload/device_files/process_page.h"
#include "host_abi/preload/own_descriptors.h"
#include "host_abi/preload/system_calls.h"
#include "linux/descriptor_table.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace ib::host_abi::preload {
namespace {

// A word describes a connection: descriptor (16 bits), process (22 bits), inode of the socket (the
// lowest 26 bits). 0: none.
constexpr unsigned kInodeBits = 26;
constexpr unsigned kProcessBits = 22;
constexpr int kMostDescriptor = (1 << 16) - 1;

constexpr std::uint64_t bits(std::uint64_t value, unsigned count) {
  return value & ((std::uint64_t{1} << count) - 1);
}

constexpr std::uint64_t process_part(int process) {
  return bits(static_cast<std::uint64_t>(process), kProcessBits) << kInodeBits;
}

constexpr std::uint64_t process_part(std::uint64_t word) {
  return bits(word >> kInodeBits, kProcessBits) << kInodeBits;
}

// Returns 0 if the descriptor is not a socket.
std::uint64_t describe(int fd, int process) {
  struct ::statx now;
  if (fd > kMostDescriptor || sys::stat(fd, "", AT_EMPTY_PATH, now) != 0) return 0;
  if (!S_ISSOCK(now.stx_mode)) return 0;
  return static_cast<std::uint64_t>(fd) << (kProcessBits + kInodeBits) | process_part(process) |
         bits(now.stx_ino, kInodeBits);
}

// The kernel orders an unmapping before a mapping at the same place. ThreadSanitizer does not see
// our calls, but this.
std::atomic<unsigned> unmapped{0};

void unmap(os::MailboxPage* page) {
  if (page == nullptr) return;
  unmapped.fetch_add(1, std::memory_order_release);
  sys::munmap(page, os::MailboxPage::kBytes);
}

os::MailboxPage* map(int file) {
  void* const at =
      sys::mmap(nullptr, os::MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return nullptr;
  static_cast<void>(unmapped.load(std::memory_order_acquire));
  auto* const page = static_cast<os::MailboxPage*>(at);
  // A child would write into what its parent uses.
  if (sys::madvise(page, os::MailboxPage::kBytes, MADV_DONTFORK) == 0) return page;
  unmap(page);
  return nullptr;
}

// The connections that are kept, with their pages: one for a thread that waits for an event, and
// others for the commands meanwhile. A thread or signal handler that finds all claimed does without
// them.
class Shelf {
 public:
  struct Kept {
    std::uint64_t word = 0;  // 0: none
    os::MailboxPage* page = nullptr;
  };

  // Returns the number of its process. Relaxed: all threads that look it up find the same.
  int process() {
    const int known = number_.load(std::memory_order_relaxed);
    if (known != 0) return known;
    const int number = sys::process_id();
    number_.store(number, std::memory_order_relaxed);
    return number;
  }

  Kept take(int process) {
    for (Place& place : places_) {
      std::uint64_t word = place.word.load(std::memory_order_acquire);
      if (word == 0 || word == claim(process) ||
          !place.word.compare_exchange_strong(word, claim(process))) {
        continue;
      }
      const Kept kept{word, place.page};
      place.page = nullptr;
      place.word.store(0, std::memory_order_release);
      // After a vfork() it is the parent's, which may use the page.
      if (process_part(word) == process_part(process)) return kept;
    }
    return {};
  }

  // Returns false if there is no room.
  bool put(int process, Kept kept) {
    for (Place& place : places_) {
      std::uint64_t none = 0;
      if (!place.word.compare_exchange_strong(none, claim(process))) continue;
      place.page = kept.page;
      place.word.store(kept.word, std::memory_order_release);
      return true;
    }
    return false;
  }

 private:
  struct Place {
    std::atomic<std::uint64_t> word{0};
    os::MailboxPage* page = nullptr;  // the claimer's
  };

  // No word has descriptor 0 and inode 0: those that are kept have high descriptors.
  static std::uint64_t claim(int process) { return process_part(process); }

  std::array<Place, 4> places_;
  std::atomic<int> number_{0};  // 0: not looked up yet
};

Shelf* shelf() {
  return of_this_process<Shelf>();
}

// So many commands without a mailbox are worth one. Relaxed, as it counts and no more.
constexpr unsigned kOften = 8;
std::atomic<unsigned> socket_commands{0};

}  // namespace

int CommandConnection::this_process() {
  Shelf* const of = shelf();
  return of != nullptr ? of->process() : sys::process_id();
}

CommandConnection::CommandConnection(int process) : process_(process) {
  Shelf* const from = shelf();
  const Shelf::Kept kept = from != nullptr ? from->take(process) : Shelf::Kept{};
  if (kept.word != 0) {
    socket_ = static_cast<int>(kept.word >> (kProcessBits + kInodeBits));
    was_kept_ = true;
    is_checked_ = false;
    word_ = kept.word;
    mailbox_ = os::ClientMailbox(kept.page);
    if (kept.page != nullptr || is_still_there()) return;
  }
  renew();
}

CommandConnection::~CommandConnection() {
  close();
}

bool CommandConnection::is_still_there() {
  if (is_checked_) return socket_ >= 0;
  is_checked_ = true;
  if (describe(socket_, process_) != word_) socket_ = -1;
  return socket_ >= 0;
}

void CommandConnection::close() {
  if (socket_ >= 0) own::unprotect(socket_);
  if (is_still_there()) sys::close(socket_);
  unmap(mailbox_.page());
  socket_ = -1;
  mailbox_ = {};
}

// Returns false if softibd does not answer: what the socket brings next is not known then.
bool CommandConnection::open_mailbox() {
  int file = -1;
  const Status status = remote::open_mailbox(socket_, file);
  if (status == Status::Disconnected) return false;
  if (status != Status::Ok) return true;
  mailbox_ = os::ClientMailbox(map(file));
  sys::close(file);
  return true;
}

void CommandConnection::keep() {
  if (!was_kept_) {
    const int moved = os::duplicate_high(socket_);
    if (moved < 0) return;
    sys::close(socket_);
    socket_ = moved;
    own::protect(moved);
    word_ = describe(socket_, process_);
  }
  if (word_ == 0) return;
  const bool lacks_mailbox = mailbox_.page() == nullptr && was_kept_;
  if (lacks_mailbox &&
      socket_commands.fetch_add(1, std::memory_order_relaxed) % kOften == kOften - 1 &&
      !open_mailbox()) {
    return;
  }
  // One that was kept is as it was, or the next check of it fails.
  Shelf* const to = shelf();
  if (to == nullptr || !to->put(process_, {word_, mailbox_.page()})) return;
  socket_ = -1;
  is_checked_ = true;
  mailbox_ = {};
}

void CommandConnection::renew() {
  close();
  was_kept_ = false;
  is_checked_ = true;
  socket_ = remote::connect(why_);
}

}  // namespace ib::host_abi::preload
