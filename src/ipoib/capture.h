// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Capture: what an interface sends and receives as packets of InfiniBand in a pcap file: ERF
// records of type 21, which tshark and Wireshark dissect down to ARP and IP.
//
// A packet has the headers that the link would give it [IBA1 5.2]: LRH, GRH if it is addressed by
// GID, BTH, DETH if it is a datagram; its CRCs are 0. A message of several packets is one record,
// as captures of a host with segmentation offload have it.
#pragma once

#include "platform/control_channel.h"
#include "ulp/ipoib/interface.h"
#include "verbs/types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ib::ipoib::driver {

class Capture {
 public:
  struct Route {
    std::uint16_t slid = 0;
    std::uint16_t dlid = 0;
    std::uint8_t service_level = 0;
    std::uint16_t pkey = 0xffff;
    std::uint32_t dest_qpn = 0;
    // Of a datagram: Q_Key and number of the sender's queue pair.
    struct Datagram {
      std::uint32_t qkey = 0;
      std::uint32_t source_qpn = 0;
    };
    std::optional<Datagram> datagram;
    // Source and destination of a GRH.
    std::optional<std::pair<Gid, Gid>> gids;
  };

  // ! IoError: the file cannot be made.
  static Result<std::unique_ptr<Capture>> create(const std::string& path);

  void add(const Route& route, const Outgoing& message);
  void add(const Route& route, std::span<const std::byte> message) {
    add(route, {{}, message, {}});
  }

 private:
  explicit Capture(platform::NativeHandle file) : file_(std::move(file)) {}
  void put(std::span<const std::uint8_t> bytes);

  platform::NativeHandle file_;
  std::vector<std::uint8_t> packet_;
  std::vector<std::uint8_t> record_;
};

}  // namespace ib::ipoib::driver
