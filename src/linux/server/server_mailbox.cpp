// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_mailbox.h"

#include "base/assert.h"
#include "linux/server/memory_file.h"
#include "verbs/control.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace ib::os {
namespace {

using platform::NativeHandle;
using verbs::control::ReplyHeader;
using verbs::control::RequestHeader;

// Returns 0 where there is no whole header.
template <class Header>
std::uint64_t tag_of(std::span<const std::byte> message) {
  Header header;
  if (message.size() < sizeof header) return 0;
  std::memcpy(&header, message.data(), sizeof header);
  return header.tag;
}

}  // namespace

Result<std::unique_ptr<ServerMailbox>> ServerMailbox::create(NativeHandle& file,
                                                             std::string& reason) {
  Result<NativeHandle> made = make_shared_file("softib-mailbox", MailboxPage::kBytes, reason);
  if (!made) return made.error();
  void* const at =
      ::mmap(nullptr, MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->get(), 0);
  if (at == MAP_FAILED) return refused("mmap (mailbox)", errno, reason);
  file = *std::move(made);
  return std::make_unique<ServerMailbox>(new (at) MailboxPage{});
}

ServerMailbox::~ServerMailbox() {
  (void)::munmap(page_, MailboxPage::kBytes);
}

std::span<const std::byte> ServerMailbox::take(std::span<std::byte> buffer) {
  IB_ASSERT(!pending_ && buffer.size() >= MailboxPage::kRequestBytes);
  taken_ = page_->asked.load(std::memory_order_acquire);
  pending_ = true;
  const std::uint32_t length = page_->request_length.load(std::memory_order_relaxed);
  const std::size_t size = std::min<std::size_t>(length, MailboxPage::kRequestBytes);
  std::memcpy(buffer.data(), page_->request, size);
  tag_ = tag_of<RequestHeader>(buffer.first(size));
  return buffer.first(size);
}

bool ServerMailbox::is_answer(std::span<const std::byte> message) const {
  return pending_ && message.size() >= sizeof(ReplyHeader) && tag_of<ReplyHeader>(message) == tag_;
}

bool ServerMailbox::put(std::span<const std::byte> answer) {
  IB_ASSERT(pending_ && fits(answer));
  std::memcpy(page_->answer, answer.data(), answer.size());
  finish(answer.size());
  return page_->client_sleeps.load(std::memory_order_seq_cst) != 0 &&
         page_->client_sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

void ServerMailbox::answer_elsewhere() {
  IB_ASSERT(pending_);
  finish(0);
}

void ServerMailbox::finish(std::size_t length) {
  page_->answer_length.store(static_cast<std::uint32_t>(length), std::memory_order_relaxed);
  page_->server_core.store(core_hint(), std::memory_order_relaxed);
  page_->answered.store(taken_, std::memory_order_seq_cst);
  pending_ = false;
}

}  // namespace ib::os
