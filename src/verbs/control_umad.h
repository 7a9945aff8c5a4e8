// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that carries /dev/infiniband/umadN and issmN
// (docs/design/0026-umad-devices.md): its codes and buffers. Fixed layout, the same on 32 and 64
// bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::verbs::control {

// Codes of file 0, no Attach needed.
//
// A connection that has sent Open is the open device: softibd sends a UmadMessage in it for each
// MAD that the program is to read (an answer with tag 0), and its end closes the file. The other
// codes are for the file of their connection. They bring the socket to which their answer goes,
// since MADs come by the connection itself; without one there is no answer.
enum class UmadCode : std::uint32_t {
  // OpenUmadIn -> -; information = a number for the file, not used again soon. An issm device that
  // is open: pends until it is closed.
  // ! NotFound: no such node or device; DeviceBusy: it is open, and kDoNotWait; InvalidState: this
  // connection is an open device
  Open = 96,
  // - -> UmadDone; fd: where the answer goes
  EnablePkey = 97,
  // The program's struct ib_user_mad_reg_req -> UmadDone; fd
  Register = 98,
  // The program's struct ib_user_mad_reg_req2 -> UmadDone; fd
  Register2 = 99,
  // The id as 4 bytes -> UmadDone; fd
  Unregister = 100,
  // The bytes that the program has written to the device -> UmadDone; fds: where the answer goes,
  // and a
  // memfd with these bytes instead of an input buffer. Without an answer: an error loses the MAD.
  Send = 101,
  // UmadMessage, with what follows it -> -; fds: any, the memfd of the message. The program has
  // taken it by mistake: it comes again, first.
  PutBack = 102,
};
constexpr bool is_umad(std::uint32_t code) {
  return code >= static_cast<std::uint32_t>(UmadCode::Open) &&
         code <= static_cast<std::uint32_t>(UmadCode::PutBack);
}

// Numbers of the character devices, as Linux has them: umadN is N, issmN follows.
inline constexpr std::uint32_t kUmadMajor = 231;
inline constexpr std::uint32_t kIssmFirstMinor = 64;
inline constexpr std::uint32_t kMostUmads = 64;  // of a node

enum class UmadKind : std::uint32_t { Umad = 0, Issm = 1 };
namespace umad_open_flag {
inline constexpr std::uint32_t kDoNotWait = 1;  // O_NONBLOCK
}  // namespace umad_open_flag
struct OpenUmadIn {
  std::array<char, 64> node{};     // virtual host, NUL terminated; empty: the first one
  std::array<char, 64> program{};  // for people
  std::uint32_t unit = 0;          // N of umadN, issmN
  UmadKind kind = UmadKind::Umad;
  std::uint32_t flags = 0;  // umad_open_flag
  std::uint32_t reserved = 0;
};

// How far a request has come. The status is one of ib::Status; the reply header's is Ok.
struct UmadDone {
  std::uint32_t status = 0;
  std::uint32_t id = 0;           // of an agent that was registered
  std::uint32_t flags = 0;        // Register2 with flags that are not known: those that are
  std::uint32_t header_size = 0;  // of this file: kUmadHeader or kUmadHeaderWithPkey
  std::uint32_t agents = 0;       // of this file, a bit each
  std::uint32_t reserved = 0;
};

// A MAD has a header before it, struct ib_user_mad_hdr of rdma/ib_user_mad.h, which is longer for
// files that have enabled P_Keys.
inline constexpr std::size_t kUmadHeader = 56;
inline constexpr std::size_t kUmadHeaderWithPkey = 64;
inline constexpr std::uint32_t kUmadAgents = 32;  // of a file
inline constexpr std::size_t kUmadMadBytes = 256;
inline constexpr std::size_t kUmadMostShort = kUmadHeaderWithPkey + kUmadMadBytes;
inline constexpr std::size_t kUmadLeastWritten = 36;  // bytes of a MAD
inline constexpr std::size_t kUmadMostWritten = std::size_t{16} * 1024 * 1024;

// A MAD for the program: `header_size` bytes of header and the MAD's bytes follow, of these at most
// kUmadMadBytes. A longer one (RMPP) brings a memfd with all of it, its header first.
struct UmadMessage {
  std::uint32_t header_size = 0;
  std::uint32_t size = 0;  // of the MAD
  std::uint32_t number = 0;
  std::uint32_t reserved = 0;
};
inline constexpr std::size_t kMostUmadMessage = sizeof(UmadMessage) + kUmadMostShort;

static_assert(sizeof(OpenUmadIn) == 144 && offsetof(OpenUmadIn, unit) == 128);
static_assert(sizeof(UmadDone) == 24 && sizeof(UmadMessage) == 16);

}  // namespace ib::verbs::control
