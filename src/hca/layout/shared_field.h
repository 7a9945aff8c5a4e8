// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fields of device memory that are rewritten while other processes may read them.
//
// They give no order to other fields. A field that must be read after another was written has an
// order of its own: Shared32 and Shared64 (layout.h), or an epoch (epoch.h).
#pragma once

#include "verbs/types.h"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace ib::hca {

// Each use is one load or one store; a reader that needs the value twice keeps a copy.
template <class T>
class Relaxed {
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));

 public:
  constexpr Relaxed() = default;
  constexpr explicit Relaxed(T value) : value_(value) {}
  [[gnu::always_inline]] operator T() const { return value_.load(std::memory_order_relaxed); }
  T operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return value;
  }

 private:
  std::atomic<T> value_{};
};

// A reader beside a change may get half of each: a GID that is no port's.
class SharedGid {
 public:
  operator verbs::Gid() const {
    const std::uint64_t words[] = {first_, second_};
    verbs::Gid gid;
    std::memcpy(gid.data(), words, sizeof words);
    return gid;
  }
  SharedGid& operator=(const verbs::Gid& gid) {
    std::uint64_t words[2];
    std::memcpy(words, gid.data(), sizeof words);
    first_ = words[0];
    second_ = words[1];
    return *this;
  }

 private:
  Relaxed<std::uint64_t> first_;
  Relaxed<std::uint64_t> second_;
};

// An address vector [IBA1 11.2.2.1], but for its local port.
struct SharedAddress {
  SharedGid dgid;
  Relaxed<std::uint32_t> flow_label;
  Relaxed<std::uint16_t> dlid;  // 0: none, as of an Ethernet port
  Relaxed<std::uint8_t> sgid_index;
  Relaxed<std::uint8_t> hop_limit;
  Relaxed<std::uint8_t> traffic_class;
  Relaxed<std::uint8_t> is_global;
  Relaxed<std::uint8_t> sl;
  Relaxed<std::uint8_t> src_path_bits;
  Relaxed<std::uint8_t> static_rate;

  SharedAddress& operator=(const verbs::AddressVector& av) {
    dgid = av.dgid;
    flow_label = av.flow_label;
    dlid = av.dlid;
    sgid_index = av.sgid_index;
    hop_limit = av.hop_limit;
    traffic_class = av.traffic_class;
    is_global = av.is_global;
    sl = av.sl;
    src_path_bits = av.src_path_bits;
    static_rate = av.static_rate;
    return *this;
  }
};

}  // namespace ib::hca
