// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners and connections, for people and tools (`softib connections`): those of programs, and
// those of drivers in softibd.
#pragma once

#include "base/time.h"
#include "fabric/model.h"
#include "services/rdma_cm/command/endpoint_address.h"
#include "services/rdma_cm/connector/connector.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ib::services::rdma_cm {

struct Id;

struct Listing {
  std::uint32_t id = 0;
  std::uint32_t node = 0;
  // Its owner is a program, or the driver of that name in softibd.
  bool is_driver = false;
  std::uint32_t pid = 0;  // 0: of a driver
  std::string program;
  const char* space = "";  // "TCP"; "": only the service id counts
  const char* state = "";  // "listening"
  verbs::QpType qp_type = verbs::QpType::Rc;
  EndpointAddress local;
  EndpointAddress peer;  // of no family: none
  std::uint64_t service_id = 0;
  const fabric::Port* port = nullptr;  // nullptr: any
  std::uint32_t qpn = 0;               // 0: not known yet
  std::uint32_t peer_qpn = 0;
  Duration age{};
  Progress progress;
  std::string waits_for;           // in words; empty: for nothing
  std::uint32_t backlog = 0;       // of a listener: requests that may wait for its program
  std::uint32_t backlog_used = 0;  // and that wait
  std::uint32_t events_waiting = 0;
  std::vector<verbs::Gid> groups;        // multicast
  std::optional<std::size_t> other_end;  // its place in the same list
};

// The row of an id, without its age, groups and other end.
Listing listing_of(const Id& id, Progress progress);

// Sets `other_end` of both ends of each connection that are in the list: each names the other's
// address, or queue pair.
void find_other_ends(std::vector<Listing>& all);

}  // namespace ib::services::rdma_cm
