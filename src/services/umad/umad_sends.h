// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadSends: MADs of programs that wait for a response, or for the end of their transfer in several
// packets. A response belongs to the request with its transaction id and class.
//
// Pure: times are arguments.
#pragma once

#include "base/time.h"
#include "services/gsi/gsi.h"
#include "services/umad/umad_agents.h"
#include "services/umad/umad_header.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ib::services {

struct UmadSend {
  UmadAgentNumber agent = 0;
  UmadHeader header{};  // as the program wrote it
  GsiAddress to;
  std::vector<std::byte> message;  // with the transaction id that it has on the wire

  bool has_response_time() const { return header.timeout_ms != 0; }
};

class UmadSends {
 public:
  using Id = std::uint64_t;  // 0: none
  enum class Due : std::uint8_t { Resend, TimedOut };
  struct Event {
    Id id = 0;
    Due due = Due::Resend;
  };

  // Whether the program has such a one already.
  bool has_like(const UmadSend& send) const;
  // Waits for its response time, and again for each retry; not at all while it is suspended.
  Id begin(UmadSend send, Instant now);
  void suspend(Id id);
  void resume(Id id, Instant now);
  const UmadSend& at(Id id) const { return entries_.at(id).send; }
  // The request that a response is for; 0: none.
  Id find(std::uint64_t tid, std::uint8_t mgmt_class) const;
  // It is over. Nothing if it was over before.
  std::optional<UmadSend> end(Id id);
  std::vector<Id> of_agent(UmadAgentNumber agent) const;
  std::size_t size_of(UmadAgentNumber agent) const;

  // One that is due. It stays: Resend waits again, TimedOut is to be ended.
  std::optional<Event> poll(Instant now);
  std::optional<Instant> next_deadline() const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Key {
    std::uint64_t tid = 0;
    std::uint8_t mgmt_class = 0;
    bool is_response = false;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14
  };
  struct Entry {
    UmadSend send;
    Key key;
    std::uint32_t retries_left = 0;
    std::optional<Instant> due{};
  };

  static Key key_of(const UmadSend& send);
  void set_due(Id id, Entry& entry, std::optional<Instant> due);

  Id last_ = 0;
  std::map<Id, Entry> entries_;
  std::multimap<Key, Id> by_key_;
  std::set<std::pair<UmadAgentNumber, Id>> by_agent_;
  std::map<UmadAgentNumber, std::size_t> counts_;
  std::set<std::pair<Instant, Id>> due_;
};

}  // namespace ib::services
