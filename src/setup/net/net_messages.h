// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages between `softib` and softib-net: on an AF_UNIX SOCK_SEQPACKET connection one
// request, and one answer. The connection of a Join stays: it is the program's hold on the network
// of its node until its last copy is closed.
#pragma once

#include "base/result.h"
#include "setup/ipoib_mode.h"
#include "setup/runtime_dir.h"
#include "verbs/gid.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ib::softib {

// The socket, lock and log of softib-net for a fabric, in a folder of their own: names of fabrics
// have dots. Throws as fabric_files().
inline std::string net_dir(const std::string& runtime_dir) {
  return runtime_dir + "/net";
}
inline FabricFiles net_files(const std::string& runtime_dir, const std::string& fabric) {
  return fabric_files(net_dir(runtime_dir), fabric);
}

enum class NetCode : std::uint32_t {
  // NetRequest, with the addresses of the node; fds of the answer: its user namespace and its
  // network namespace. Makes the network if there is none. The text of an Ok answer is a warning.
  // ! DeviceBusy: it is there in another mode, and `needs_mode` is set; AccessDenied and so on: it
  // cannot be made; the text says why
  Join = 1,
  // The same in the network namespace that comes as a fd; no fds in the answer. It stays until
  // Detach, or until the fabric goes down.
  // ! DeviceBusy: the node has a network; AlreadyExists: the name of an interface is taken there
  Attach = 2,
  // ! NotFound: the node is not attached
  Detach = 3,
  // The answer has one fd, with the JSON of the driver, or of all nodes (`node` is empty).
  // ! NotFound
  Report = 4,
};

enum class PlanKind : std::uint8_t {
  Address = 1,      // of the interface of a port
  OnLink = 2,       // a route to a network at that interface
  Unreachable = 3,  // a route to a network that is not here; of no port
};
struct PlanEntry {
  verbs::Gid ip{};  // IPv4: ::ffff:a.b.c.d
  std::uint8_t bits = 0;
  PlanKind kind = PlanKind::Address;
  std::uint16_t port = 0;  // as InterfaceSpec::port
};
static_assert(sizeof(PlanEntry) == 20);

inline constexpr std::uint32_t kNetVersion = 2;
inline constexpr std::size_t kMostPlanEntries = 160;

struct NetRequest {
  std::uint32_t version = kNetVersion;
  NetCode code = NetCode::Join;
  std::array<char, 64> node{};
  std::array<char, 108> socket{};        // of softibd
  std::uint32_t entries = 0;             // that follow
  IpoibMode mode = IpoibMode::Datagram;  // of a network that is made
  std::uint32_t needs_mode = 0;          // 1: one that is there has to have this mode, too
};
static_assert(sizeof(NetRequest) == 192);
inline constexpr std::size_t kMostNetRequest =
    sizeof(NetRequest) + kMostPlanEntries * sizeof(PlanEntry);

// A text follows.
struct NetAnswer {
  std::uint32_t status = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(NetAnswer) == 8);
inline constexpr std::size_t kMostNetText = 4096;

// A request that has been checked: names and numbers are what they seem.
struct ParsedNetRequest {
  NetCode code = NetCode::Join;
  std::string node;  // not empty, unless the code is Report
  std::string socket;
  std::vector<PlanEntry> plan;
  IpoibMode mode = IpoibMode::Datagram;
  bool needs_mode = false;
};
// ! Malformed, NotSupported (another version)
Result<ParsedNetRequest> parse_net_request(std::span<const std::byte> bytes);
std::vector<std::byte> write_net_request(const ParsedNetRequest& request);

}  // namespace ib::softib
