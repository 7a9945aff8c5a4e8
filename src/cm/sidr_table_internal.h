// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SidrTable: exchanges of SIDR_REQ and SIDR_REP at either end, found by their ID, by the number
// that the other side gave the request, and by their deadline.
#pragma once

#include "base/time.h"
#include "cm/connection_internal.h"
#include "cm/numbers_internal.h"
#include "cm/quotas_internal.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

namespace ib::cm {

namespace sidr_state {

struct Asked {
  Resend req;
};
struct Asking {  // the consumer has to answer
  ListenerId listener{};
};
struct Answered {
  KeptMad rep;
};
struct Done {};

}  // namespace sidr_state

struct SidrExchange {
  SidrId id{};
  bool is_owned = true;
  std::uint64_t transaction_id = 0;
  std::uint32_t request_id = 0;
  std::uint64_t service_id = 0;
  MadAddress peer;
  std::optional<Instant> deadline;
  std::variant<sidr_state::Asked, sidr_state::Asking, sidr_state::Answered, sidr_state::Done> state;
};

class SidrTable {
 public:
  explicit SidrTable(std::uint64_t seed) : request_ids_(seed) {}

  // For a request of this side: with a request ID that nobody else has.
  SidrExchange& create_request();
  // For a request of another side. It is indexed: there is none with this source and ID.
  SidrExchange& create_answer(const MadAddress& from, std::uint32_t request_id);
  void erase(SidrExchange& exchange);
  // Messages of the other side do not lead here any more.
  void forget_remote(SidrExchange& exchange);

  // Returns null if there is none.
  SidrExchange* find(std::uint32_t id) const;
  SidrExchange* find_request(std::uint32_t request_id) const;
  SidrExchange* find_answer(const MadAddress& from, std::uint32_t request_id) const;
  std::size_t size() const { return all_.size(); }

  void set_deadline(SidrExchange& exchange, std::optional<Instant> deadline);
  std::optional<Instant> deadline() const;
  SidrExchange* due(Instant now) const;

 private:
  struct Key {
    Peer peer;
    std::uint32_t qpn = 0;
    std::uint32_t request_id = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return PeerHash()(key.peer) ^ (key.qpn * 0x9e37'79b1u + key.request_id);
    }
  };
  SidrExchange& create();
  static Key key_of(const MadAddress& from, std::uint32_t request_id);

  std::uint32_t next_id_ = 1;
  Numbers request_ids_;
  std::unordered_map<std::uint32_t, std::unique_ptr<SidrExchange>> all_;
  std::unordered_map<std::uint32_t, SidrExchange*> requests_;  // by request ID
  std::unordered_map<Key, SidrExchange*, KeyHash> remote_;
  std::set<std::pair<Instant, std::uint32_t>> deadlines_;
};

}  // namespace ib::cm
