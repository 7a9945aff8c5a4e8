// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Table: softibd's book of one kind of object. The index of an entry is, for those that are in
// device memory, its place there; its handle is what clients call it (control::handle_of).
//
// Indexes are reused in the order they were given back, and only when many are waiting, so that a
// key keeps naming nothing for long, and a handle 2^8 times as long; yet a program that creates and
// destroys without end does not touch all of a sparse table.
#pragma once

#include "base/assert.h"
#include "verbs/control.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace ib::drivers {

template <class T>
class Table {
 public:
  static constexpr std::size_t kRest = 1024;  // freed indexes that rest before one is reused

  using HandleKind = verbs::control::HandleKind;

  // Indexes [first, end).
  Table(HandleKind kind, std::uint32_t first, std::uint32_t end)
      : kind_(kind), next_(first), end_(end) {
    IB_ASSERT(end <= 1u << verbs::control::kHandleIndexBits);
  }

  // A new object; nullptr if the table is full. T has `index`, `handle` and `serial`.
  T* create() {
    std::uint32_t index = 0;
    if (next_ < end_ && resting_.size() <= kRest) {
      index = next_++;
      objects_.resize(index + 1);
      counts_.resize(index + 1);
    } else if (!resting_.empty()) {
      index = resting_.front();
      resting_.pop_front();
    } else {
      return nullptr;
    }
    objects_[index] = std::make_unique<T>();
    objects_[index]->index = index;
    objects_[index]->handle = verbs::control::handle_of(kind_, counts_[index]++, index);
    objects_[index]->serial = ++serial_;
    ++count_;
    return objects_[index].get();
  }

  T* find(std::uint64_t index) const {
    return index < objects_.size() ? objects_[static_cast<std::size_t>(index)].get() : nullptr;
  }
  // Returns the object that a client's handle names, or nullptr if the handle names none.
  T* find_handle(std::uint32_t handle) const {
    T* object = find(verbs::control::index_of(handle));
    return object != nullptr && object->handle == handle ? object : nullptr;
  }
  // The object that had this index then, if it still exists.
  T* find(std::uint32_t index, std::uint64_t serial) const {
    T* object = find(index);
    return object != nullptr && object->serial == serial ? object : nullptr;
  }

  void destroy(std::uint32_t index) {
    IB_ASSERT(find(index) != nullptr);
    objects_[index].reset();
    resting_.push_back(index);
    --count_;
  }

  std::size_t count() const { return count_; }

  template <class F>
  void for_each(F&& f) const {
    for (const auto& object : objects_) {
      if (object != nullptr) f(*object);
    }
  }

 private:
  HandleKind kind_;
  std::uint32_t next_;
  std::uint32_t end_;
  std::vector<std::unique_ptr<T>> objects_;
  std::vector<std::uint8_t> counts_;  // by index: how often it was given out
  std::deque<std::uint32_t> resting_;
  std::size_t count_ = 0;
  std::uint64_t serial_ = 0;
};

}  // namespace ib::drivers
