// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners: finds the one that a request is for, by service ID, port and private data.
//
// Invariant: of two listeners that could get the same request, exactly one compares private data,
// and that one goes first; or both compare different data; or one is a fallback and goes last.
#pragma once

#include "base/result.h"
#include "cm/requests.h"
#include "cm/types.h"
#include "cm/waiting_room.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ib::cm {

struct Listener {
  ListenerId id{};
  std::uint64_t service_id = 0;  // masked
  std::uint64_t service_mask = 0;
  ServiceKind kind = ServiceKind::Both;
  std::uint8_t port = 0;
  WaitingRoom waiting;
  bool compares = false;
  bool is_fallback = false;
  std::uint8_t offset = 0;
  std::vector<std::uint8_t> value;  // masked
  std::vector<std::uint8_t> mask;
};

class Listeners {
 public:
  Listeners(std::uint32_t max_listeners, std::uint32_t max_backlog)
      : max_listeners_(max_listeners), max_backlog_(max_backlog) {}

  Result<ListenerId> add(const Listen& listen);
  void remove(ListenerId id);
  // Returns null if there is no such listener.
  Listener* find(ListenerId id);
  // Returns null if no listener matches. `kind` is Connections or Datagrams.
  Listener* match(std::uint64_t service_id, std::uint8_t port, ServiceKind kind,
                  ByteSpan private_data);

 private:
  ListenerId keep(Listener&& listener, std::uint32_t backlog, std::vector<Listener*>& list);
  Listener* best_of(const std::vector<Listener*>& candidates, std::uint64_t service_id,
                    std::uint8_t port, ServiceKind kind, ByteSpan private_data);

  std::uint32_t max_listeners_;
  std::uint32_t max_backlog_;
  std::uint32_t next_id_ = 1;
  std::unordered_map<std::uint32_t, Listener> all_;
  std::unordered_map<std::uint64_t, std::vector<Listener*>> exact_;  // by service ID
  std::vector<Listener*> masked_;                                    // whose mask leaves bits out
  std::vector<Listener*> fallbacks_;
};

}  // namespace ib::cm
