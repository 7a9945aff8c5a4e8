// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Traffic: one of two processes that exchange a random mix of everything over several connections
// until one of them dies. Run by `conformance_peer --traffic`; kill_test.cpp has the whole
// exchange.
//
// Its standard input is a socket: it sends a TrafficPlace, receives its peer's, sends one byte when
// it is connected, receives one byte as the start and, once its peer was killed, another one. Then
// it sends a TrafficReport, receives a last byte, cleans up and exits.
#pragma once

#include "test_host.h"
#include "verbs/types.h"

#include <array>
#include <cstdint>

namespace ib::conformance {

inline constexpr std::size_t kTrafficPairs = 4;  // RC, RC, RC with an SRQ, UC

struct TrafficPlace {
  std::array<std::uint32_t, kTrafficPairs> qpn{};
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t ok = 0;
  verbs::AddressVector way;  // by which others reach its port
};

struct TrafficReport {
  std::uint64_t completed = 0;    // successes
  std::uint64_t waited_ns = 0;    // from the second byte to the last completion
  std::uint32_t outstanding = 0;  // requests that never completed
  std::uint32_t surprises = 0;    // completions of requests that were not outstanding
  std::uint32_t first_error = 0;  // completion status
  std::uint32_t odd_errors = 0;   // other than retry exceeded and flush
};

int run_traffic(const HostSettings& settings, std::uint64_t seed, int control);

}  // namespace ib::conformance
