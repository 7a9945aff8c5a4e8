// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SendBatch: the work requests between ibv_wr_start() and ibv_wr_complete(). They are built here
// and posted at the end, because ibv_wr_abort() must be able to take all of them back.
//
// Memory is kept from batch to batch, so that building does not allocate once warmed up. Used under
// the send lock of the queue pair. The first error sticks and is reported by take_error().
#pragma once

#include "base/address.h"
#include "base/result.h"
#include "user/work_request.h"
#include "verbs/control_buffers.h"
#include "verbs/post_refusal.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <vector>

namespace ib::user {
class MemoryWindow;
}

namespace ib::host_abi {

using verbs::control::PostRefusal;

struct BatchLimits {
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
};

class SendBatch {
 public:
  explicit SendBatch(const BatchLimits& limits) : limits_(limits) {}

  void start() {
    requests_.clear();
    sges_.clear();
    data_.clear();
    if (error_ != 0) refusal_ = {};
    error_ = 0;
  }
  std::size_t size() const { return requests_.size(); }
  int error() const { return error_; }
  // Keeps the first error, with a report for the trace about the newest request
  // (verbs/post_refusal.h).
  void set_error(int error, PostRefusal why, std::uint64_t value = 0, std::uint64_t limit = 0) {
    if (error_ != 0) return;
    error_ = error;
    refusal_.cause = static_cast<verbs::control::Cause>(why);
    refusal_.length = value;
    refusal_.detail = limit;
    refusal_.opcode = current().opcode;
    refusal_.wr_id = current().wr_id;
  }
  // Meaningful after an error; without a cause there is no report.
  const verbs::control::TraceErrorIn& refusal() const { return refusal_; }

  // Opens the next request; the setters below are about it. Valid until the next begin().
  hca::SendWqe& begin(verbs::WrOpcode opcode, std::uint64_t wr_id, std::uint32_t flags);
  // The newest request, for attributes that come in calls of their own (UD address, XRC).
  hca::SendWqe& current() { return requests_.empty() ? scratch_ : requests_.back().request; }

  void set_sge(const user::Sge& sge) { set_sges({&sge, 1}); }
  void set_sges(std::span<const user::Sge> list);
  void start_inline();
  void add_inline(const void* bytes, std::size_t length);

  // The newest request binds this.
  void set_window(user::MemoryWindow& window) {
    if (error_ == 0 && !requests_.empty()) requests_.back().window = &window;
  }

  // Hands every request to `post(const hca::SendWqe&, user::MemoryWindow* bound) -> Status`, in
  // order, up to the first refusal.
  template <class Post>
  Status post(Post&& post) {
    for (Pending& one : requests_) {
      user::set_sges(one.request, std::span(sges_).subspan(one.first_sge, one.sge_count));
      if (one.inlined && one.sge_count != 0) {
        // The bytes have their final place only now.
        sges_[one.first_sge].address = address_of(data_.data() + one.first_byte);
      }
      const Status status = post(one.request, one.window);
      if (status != Status::Ok) return status;
    }
    return Status::Ok;
  }

 private:
  struct Pending {
    hca::SendWqe request;
    user::MemoryWindow* window = nullptr;
    std::size_t first_sge = 0;
    std::size_t sge_count = 0;
    std::size_t first_byte = 0;
    bool inlined = false;
  };

  void out_of_memory() {
    if (error_ == 0) error_ = ENOMEM;
  }

  BatchLimits limits_;
  int error_ = 0;
  verbs::control::TraceErrorIn refusal_;
  hca::SendWqe scratch_;  // written to if a request could not be opened
  std::vector<Pending> requests_;
  std::vector<user::Sge> sges_;
  std::vector<std::byte> data_;
};

inline hca::SendWqe& SendBatch::begin(verbs::WrOpcode opcode, std::uint64_t wr_id,
                                      std::uint32_t flags) {
  if (error_ != 0 || requests_.size() >= limits_.max_wr) {
    set_error(ENOMEM, PostRefusal::BatchTooLong, 0, limits_.max_wr);
    return scratch_;
  }
  try {
    Pending& one = requests_.emplace_back();
    one.first_sge = sges_.size();
    one.first_byte = data_.size();
    one.request.opcode = opcode;
    one.request.wr_id = wr_id;
    user::set_flags(one.request, flags);
    return one.request;
  } catch (const std::bad_alloc&) {
    out_of_memory();
    return scratch_;
  }
}

inline void SendBatch::set_sges(std::span<const user::Sge> list) {
  if (error_ != 0) return;
  if (requests_.empty()) return set_error(EINVAL, PostRefusal::BatchOrder);
  if (list.size() > limits_.max_sge) {
    return set_error(EINVAL, PostRefusal::SendSges, list.size(), limits_.max_sge);
  }
  Pending& one = requests_.back();
  try {
    sges_.resize(one.first_sge);
    sges_.insert(sges_.end(), list.begin(), list.end());
  } catch (const std::bad_alloc&) {
    out_of_memory();
    return;
  }
  one.sge_count = list.size();
}

inline void SendBatch::start_inline() {
  if (error_ != 0) return;
  if (requests_.empty()) return set_error(EINVAL, PostRefusal::BatchOrder);
  Pending& one = requests_.back();
  if (!verbs::may_be_inline(one.request.opcode)) {
    return set_error(EINVAL, PostRefusal::SendNoInline);
  }
  one.inlined = true;
  one.sge_count = 0;
  user::set_flags(one.request, one.request.flags | verbs::send_flag::kInline);
  sges_.resize(one.first_sge);
  data_.resize(one.first_byte);
}

inline void SendBatch::add_inline(const void* bytes, std::size_t length) {
  if (error_ != 0 || length == 0) return;
  Pending& one = requests_.back();
  const std::size_t before = data_.size() - one.first_byte;
  if (length > limits_.max_inline || before + length > limits_.max_inline) {
    return set_error(EINVAL, PostRefusal::SendInline, before + length, limits_.max_inline);
  }
  try {
    const auto* from = static_cast<const std::byte*>(bytes);
    data_.insert(data_.end(), from, from + length);
    if (one.sge_count == 0) {
      sges_.push_back({});
      one.sge_count = 1;
    }
  } catch (const std::bad_alloc&) {
    out_of_memory();
    return;
  }
  sges_[one.first_sge].length = static_cast<std::uint32_t>(data_.size() - one.first_byte);
}

}  // namespace ib::host_abi
