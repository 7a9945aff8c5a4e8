// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/rdma_cm/answers_ahead.h"

#include "linux/process/client_relax.h"

#include <algorithm>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

using verbs::control::kRdmaCmGetEvent;
using verbs::control::RdmaCmAhead;

// The commands that are answered ahead.
struct Question {
  std::uint32_t code;
  std::uint16_t in;
  std::uint16_t out;
  std::uint64_t response;
  std::uint32_t id;
  std::uint32_t option;
};
static_assert(sizeof(Question) == AnswersAhead::kQuestionBytes);

}  // namespace

// The time is stored before the number is, so who reads the number gets that time, or the time of a
// command that is about to get the next one, with which all that is kept ends.
std::uint32_t AnswersAhead::command_follows() {
  since_.store(os::monotonic_now().time_since_epoch().count(), std::memory_order_relaxed);
  return turn_.fetch_add(1, std::memory_order_seq_cst) + 1;
}

AnswersAhead::Turn AnswersAhead::last_turn() const {
  const std::uint32_t number = turn_.load(std::memory_order_seq_cst);
  return {number, Instant(Duration(since_.load(std::memory_order_relaxed)))};
}

void AnswersAhead::keep(Turn turn, std::uint32_t file, std::span<const std::byte> answers) {
  if (answers.empty() || answers.size() > bytes_.size() || !try_lock()) return;
  std::memcpy(bytes_.data(), answers.data(), answers.size());
  size_ = answers.size();
  kept_turn_ = turn.number;
  file_ = file;
  until_ = turn.since + kGoodFor;
  unlock();
}

std::size_t AnswersAhead::find(std::uint32_t file, std::span<const std::uint8_t> command,
                               std::span<std::uint8_t> to) {
  Question question;
  if (command.size() != sizeof question) return 0;
  std::memcpy(&question, command.data(), sizeof question);
  const std::size_t after_header = sizeof question - offsetof(Question, response);
  if (question.in != after_header || !try_lock()) return 0;
  std::size_t size = 0;
  if (is_good_for(file)) {
    size = find_kept({question.code, question.id, question.option, 0}, question.out, to);
  }
  unlock();
  return size;
}

// It is the first of the list.
bool AnswersAhead::find_event(std::uint32_t file, std::size_t room, Event& to) {
  if (!try_lock()) return false;
  const bool is_there = is_good_for(file) && read_event(std::span(bytes_).first(size_), room, to);
  unlock();
  return is_there;
}

bool AnswersAhead::read_event(std::span<const std::byte> answers, std::size_t room, Event& to) {
  RdmaCmAhead first;
  if (answers.size() < sizeof first) return false;
  std::memcpy(&first, answers.data(), sizeof first);
  if (first.code != kRdmaCmGetEvent || first.size > answers.size() - sizeof first ||
      first.size > std::min(room, to.bytes.size())) {
    return false;
  }
  to.offer = first.id;
  to.flags = first.option;
  to.size = first.size;
  std::memcpy(to.bytes.data(), answers.data() + sizeof first, first.size);
  return true;
}

bool AnswersAhead::is_good_for(std::uint32_t file) const {
  return size_ != 0 && kept_turn_ == turn_.load(std::memory_order_seq_cst) && file_ == file &&
         os::monotonic_now() < until_;
}

std::size_t AnswersAhead::find_kept(const RdmaCmAhead& wanted, std::size_t room,
                                    std::span<std::uint8_t> to) const {
  std::size_t at = 0;
  RdmaCmAhead each;
  while (at + sizeof each <= size_) {
    std::memcpy(&each, bytes_.data() + at, sizeof each);
    at += sizeof each;
    if (each.size > size_ - at) return 0;
    if (each.code == wanted.code && each.id == wanted.id && each.option == wanted.option) {
      if (each.size > room || each.size > to.size()) return 0;
      std::memcpy(to.data(), bytes_.data() + at, each.size);
      return each.size;
    }
    at += (std::size_t{each.size} + 7) & ~std::size_t{7};
  }
  return 0;
}

}  // namespace ib::host_abi::preload
