// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that carries /dev/infiniband/rdma_cm: buffers
// of OpenRdmaCm and RdmaCm (docs/design/0016-rdma-cm-device.md). Fixed layout, the same on 32 and
// 64 bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::verbs::control {

// The number of the device file: a miscellaneous device of Linux, of those with dynamic minors.
inline constexpr std::uint32_t kRdmaCmMajor = 10;
inline constexpr std::uint32_t kRdmaCmMinor = 58;

struct OpenRdmaCmIn {
  std::array<char, 64> node{};     // virtual host, NUL terminated; empty: the first one
  std::array<char, 64> program{};  // for people
};

// The bytes that a program wrote to the device, as they are: a header and a command of
// rdma/rdma_user_cm.h.
inline constexpr std::size_t kRdmaCmBytes = 512;
inline constexpr std::uint32_t kRdmaCmGetEvent = 12;  // a command of librdmacm
namespace rdma_cm_in_flag {
inline constexpr std::uint32_t kTakesAhead = 1;  // in a mailbox: RdmaCmAhead is welcome
// GET_EVENT, in a mailbox: if there is no event, the answer may come a moment later, with the
// event.
inline constexpr std::uint32_t kMayWait = 2;
}  // namespace rdma_cm_in_flag
struct RdmaCmHead {
  std::uint32_t file = 0;         // information of OpenRdmaCm
  std::uint32_t from_file = 0;    // MIGRATE_ID: of the old descriptor; 0: not given
  std::uint64_t size = 0;         // of what was written; longer than `bytes`: the rest is missing
  std::uint32_t option_size = 0;  // SET_OPTION: bytes of `option`
  std::uint32_t flags = 0;        // rdma_cm_in_flag
};
// May end behind what there is: `bytes` up to `size`, or all of it and `option` up to option_size.
struct RdmaCmIn {
  RdmaCmHead head;
  std::array<std::uint8_t, kRdmaCmBytes> bytes{};
  std::array<std::uint8_t, kRdmaCmBytes> option{};
};

enum class RdmaCmNeed : std::uint32_t {
  Nothing = 0,
  Option = 1,  // send the request again with need_size bytes of the program's from need_address on
  File = 2,    // ... with the file of the program's descriptor need_address
};
namespace rdma_cm_flag {
// The program has got the last event: it takes one message (an answer with tag 0) from the
// connection that opened the file, so that it is readable no more.
inline constexpr std::uint32_t kDrained = 1;
inline constexpr std::uint32_t kOldFileDrained = 2;  // MIGRATE_ID: from that of the old descriptor
}  // namespace rdma_cm_flag
struct RdmaCmOut {
  std::int32_t result = 0;    // 0, or an error number of Linux, negative
  std::uint32_t flags = 0;    // rdma_cm_flag
  std::uint64_t address = 0;  // in the program, for `size` bytes
  std::uint32_t size = 0;
  RdmaCmNeed need = RdmaCmNeed::Nothing;
  std::uint64_t need_address = 0;
  std::uint32_t need_size = 0;
  std::uint32_t ahead_size = 0;  // bytes of RdmaCmAhead that follow
  std::array<std::uint8_t, 344> bytes{};
};
// The answer to a command that is to be expected after an event: a header, the address for the
// answer, and 32 bits each for the id and for an option or a state. `size` bytes follow, and zeros
// up to the next multiple of 8.
//
// Or, first in the list, the next event, before the program wants it: the answer to
// GET_EVENT. Its `id` is the number of an offer in the mailbox (linux/mailbox.h): to take that is
// to get the event. `option` has the rdma_cm_flag that holds then.
struct RdmaCmAhead {
  std::uint32_t code = 0;
  std::uint32_t id = 0;
  std::uint32_t option = 0;
  std::uint32_t size = 0;
};
inline constexpr std::size_t kMostRdmaCmAhead = 1920;
}  // namespace ib::verbs::control
