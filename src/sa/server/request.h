// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request to the subnet administrator, and its answer: what is in a MAD besides its transport.
#pragma once

#include "sa/records/field.h"
#include "sa/records/header.h"
#include "sa/server/partitions.h"
#include "sa/server/topology.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ib::sa {

struct Request {
  // From where it came.
  std::uint16_t lid = 0;
  std::uint32_t qpn = 1;
  std::optional<verbs::Gid> gid{};  // if it had a GRH

  std::uint8_t method = 0;
  std::uint16_t attribute = 0;
  std::uint32_t modifier = 0;
  std::uint64_t sm_key = 0;
  std::uint64_t components = 0;
  std::span<const std::byte> record;  // may be shorter than the attribute: the rest is zero
};

struct Answer {
  std::uint8_t method = 0;
  std::uint16_t status = sa_status::kOk;
  std::uint16_t stride = 0;      // distance of records in bytes; 0: there is one, not a table
  std::size_t count = 0;         // records
  std::vector<std::byte> bytes;  // the records, padded
};

// The sender of a request. A trusted one, which has the SM_Key, sees ports of all partitions.
struct Requester {
  EndPort port;
  std::uint32_t qpn = 1;
  bool is_trusted = false;

  bool may_see(const EndPort& other) const {
    return is_trusted || other.index == port.index ||
           common_pkey(port.pkeys, other.pkeys).has_value();
  }
  bool may_see(const NodePort& other) const {
    return other.pkeys.empty() || other.end.index == port.index || is_trusted ||
           common_pkey(port.pkeys, other.pkeys).has_value();
  }
  bool has_gid(const verbs::Gid& gid) const {
    return std::find(port.gids.begin(), port.gids.end(), gid) != port.gids.end();
  }
};

// Records of an answer. A limit keeps a request from filling the memory.
class RecordList {
 public:
  RecordList(std::size_t record_size, std::size_t max_records)
      : stride_(stride_of(record_size)), max_records_(max_records) {}

  // Returns false if there is no room.
  template <std::size_t N>
  bool add(const std::array<std::byte, N>& record) {
    if (count_ == max_records_) {
      overflowed_ = true;
      return false;
    }
    bytes_.resize((count_ + 1) * stride_);
    std::copy(record.begin(), record.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(count_ * stride_));
    ++count_;
    return true;
  }
  std::size_t count() const { return count_; }
  std::size_t max_records() const { return max_records_; }
  bool overflowed() const { return overflowed_; }
  std::size_t stride() const { return stride_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::size_t stride_;
  std::size_t max_records_;
  std::size_t count_ = 0;
  bool overflowed_ = false;
  std::vector<std::byte> bytes_;
};

}  // namespace ib::sa
