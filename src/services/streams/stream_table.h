// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamTable: all streams, by number, by the names of their TCP connection, and by the sessions
// that have them.
//
// Thread rule: the executor's thread.
#pragma once

#include "services/streams/stream.h"
#include "verbs/control_streams.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

namespace ib::services {

class StreamTable {
 public:
  using All = std::map<std::uint64_t, std::unique_ptr<Stream>>;

  Stream& add();
  void erase(std::uint64_t number) { all_.erase(number); }
  // Returns nullptr if there is none.
  Stream* find(std::uint64_t number) const;
  const All& all() const { return all_; }
  bool is_empty() const { return all_.empty(); }
  // The one after this number, or the first one. There is one.
  Stream& after(std::uint64_t number) const;

  // Between connecting and being claimed a stream is found by its names.
  void enter_names(Stream& stream);
  void leave_names(Stream& stream);
  // `node`: of the process that has accepted it. Returns nullptr if there is none.
  Stream* find_by_names(const verbs::control::StreamAcceptIn& in, std::uint32_t node) const;

  // Those that are open, and not claimed.
  std::vector<Stream*> unclaimed() const;

  // A session has got an end.
  void hold(Stream& stream, std::uint32_t end, std::uint64_t session);
  // No session has it any more.
  void release(const Stream& stream);
  // The session is over: the streams that it had.
  std::set<std::uint64_t> take_held(std::uint64_t session);

 private:
  All all_;
  std::uint64_t last_ = 0;
  std::unordered_multimap<std::uint64_t, Stream*> by_names_;  // by a hash of both
  std::unordered_map<std::uint64_t, std::set<std::uint64_t>> held_;
};

}  // namespace ib::services
