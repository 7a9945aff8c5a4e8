// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bytes that programs read from and write to /dev/infiniband/umadN: structures of
// rdma/ib_user_mad.h. Numbers are those of the machine, except as their types say.
#pragma once

#include "base/big_endian.h"
#include "verbs/control_umad.h"
#include "verbs/types.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::services {

// Before each MAD. Files that have not enabled P_Keys have the first 56 bytes of it.
struct UmadHeader {
  std::uint32_t id = 0;  // of the agent
  std::uint32_t status = 0;
  std::uint32_t timeout_ms = 0;
  std::uint32_t retries = 0;
  std::uint32_t length = 0;  // of a MAD that came: with this header
  Be32 qpn;
  Be32 qkey;
  Be16 lid;
  std::uint8_t sl = 0;
  std::uint8_t path_bits = 0;
  std::uint8_t grh_present = 0;
  std::uint8_t gid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  verbs::Gid gid{};
  Be32 flow_label;
  std::uint16_t pkey_index = 0;
  std::array<std::uint8_t, 6> reserved{};
};
static_assert(sizeof(UmadHeader) == verbs::control::kUmadHeaderWithPkey);
static_assert(offsetof(UmadHeader, pkey_index) == verbs::control::kUmadHeader);

inline constexpr std::uint32_t kUmadTimedOut = 110;  // status: ETIMEDOUT of Linux

// struct ib_user_mad_reg_req.
struct UmadRegisterIn {
  std::uint32_t id = 0;
  std::array<std::uint32_t, 4> methods{};
  std::uint8_t qpn = 0;
  std::uint8_t mgmt_class = 0;
  std::uint8_t class_version = 0;
  std::array<std::uint8_t, 3> oui{};
  std::uint8_t rmpp_version = 0;
};
static_assert(sizeof(UmadRegisterIn) == 28);

// struct ib_user_mad_reg_req2.
struct UmadRegister2In {
  std::uint32_t id = 0;
  std::uint32_t qpn = 0;
  std::uint8_t mgmt_class = 0;
  std::uint8_t class_version = 0;
  std::uint16_t ignored = 0;
  std::uint32_t flags = 0;
  std::array<std::uint64_t, 2> methods{};
  std::uint32_t oui = 0;
  std::uint8_t rmpp_version = 0;
  std::array<std::uint8_t, 3> reserved{};
};
static_assert(sizeof(UmadRegister2In) == 40);
inline constexpr std::uint32_t kUmadUserRmpp = 1;  // its only flag

}  // namespace ib::services
