// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/command_connection.h"

#include "host_abi/preload/system_calls.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace ib::host_abi::preload {
namespace {

// Descriptor (16 bits), process (22 bits), inode of the socket (the lowest 26 bits). 0: none.
std::atomic<std::uint64_t> kept{0};
constexpr unsigned kInodeBits = 26;
constexpr unsigned kProcessBits = 22;
constexpr int kMostDescriptor = (1 << 16) - 1;

constexpr std::uint64_t bits(std::uint64_t value, unsigned count) {
  return value & ((std::uint64_t{1} << count) - 1);
}

// Of the kept connection. The taker owns it.
std::atomic<os::MailboxPage*> kept_page{nullptr};

// So many commands without a mailbox are worth one.
constexpr unsigned kOften = 8;
std::atomic<unsigned> socket_commands{0};

void unmap(os::MailboxPage* page) {
  sys::munmap(page, os::MailboxPage::kBytes);
}

// Returns 0 if the descriptor is not a socket.
std::uint64_t describe(int fd, int process) {
  struct ::statx now;
  if (fd > kMostDescriptor || sys::stat(fd, "", AT_EMPTY_PATH, now) != 0) return 0;
  if (!S_ISSOCK(now.stx_mode)) return 0;
  return static_cast<std::uint64_t>(fd) << (kProcessBits + kInodeBits) |
         bits(static_cast<std::uint64_t>(process), kProcessBits) << kInodeBits |
         bits(now.stx_ino, kInodeBits);
}

}  // namespace

CommandConnection::CommandConnection(int process) : process_(process) {
  const std::uint64_t word = kept.exchange(0, std::memory_order_acq_rel);
  const auto fd = static_cast<int>(word >> (kProcessBits + kInodeBits));
  if (word != 0 && describe(fd, process) == word) {
    socket_ = fd;
    was_kept_ = true;
    word_ = word;
    take_page();
    return;
  }
  socket_ = remote::connect(why_);
}

CommandConnection::~CommandConnection() {
  close();
}

void CommandConnection::close() {
  if (socket_ >= 0) sys::close(socket_);
  if (mailbox_.page() != nullptr) unmap(mailbox_.page());
  socket_ = -1;
  mailbox_ = {};
}

// The kept page, if it is this connection's.
void CommandConnection::take_page() {
  os::MailboxPage* const page = kept_page.exchange(nullptr, std::memory_order_acq_rel);
  if (page == nullptr) return;
  if (page->client_note.load(std::memory_order_relaxed) == word_) {
    mailbox_ = os::ClientMailbox(page);
  } else {
    unmap(page);
  }
}

// Returns false if the connection has had one, which is lost: two threads kept theirs at once.
bool CommandConnection::open_mailbox() {
  int file = -1;
  const Status status = remote::open_mailbox(socket_, file);
  if (status == Status::InvalidState) return false;
  if (status != Status::Ok) return true;
  void* const at =
      sys::mmap(nullptr, os::MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  sys::close(file);
  // A failed call's result is a small negative number, or -1.
  if (at == MAP_FAILED) return true;
  mailbox_ = os::ClientMailbox(static_cast<os::MailboxPage*>(at));
  mailbox_.page()->client_note.store(word_, std::memory_order_relaxed);
  return true;
}

void CommandConnection::keep() {
  if (!was_kept_) {
    const int moved = sys::duplicate_high(socket_);
    if (moved < 0) return;
    sys::close(socket_);
    socket_ = moved;
    word_ = describe(socket_, process_);
  }
  if (word_ == 0) return;
  const bool may_have_one = mailbox_.page() == nullptr && was_kept_;
  if (may_have_one &&
      socket_commands.fetch_add(1, std::memory_order_relaxed) % kOften == kOften - 1 &&
      !open_mailbox()) {
    return;
  }
  // The page first: who finds the word may use it at once.
  os::MailboxPage* const page = mailbox_.page();
  if (os::MailboxPage* const other = kept_page.exchange(page, std::memory_order_acq_rel)) {
    unmap(other);
  }
  // One that was kept is as it was, or the next check of it fails.
  std::uint64_t none = 0;
  if (kept.compare_exchange_strong(none, word_, std::memory_order_acq_rel)) {
    socket_ = -1;
    mailbox_ = {};
    return;
  }
  os::MailboxPage* still = page;
  if (page != nullptr && !kept_page.compare_exchange_strong(still, nullptr)) mailbox_ = {};
}

void CommandConnection::renew() {
  close();
  was_kept_ = false;
  socket_ = remote::connect(why_);
}

}  // namespace ib::host_abi::preload
