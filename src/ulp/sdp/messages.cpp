// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes of a message to its meaning and back: the header that each kind has after the BSDH.
#include "ulp/sdp/messages.h"

#include <cstring>

namespace ib::sdp {
namespace {

template <class Header>
Header take(std::span<const std::byte> bytes, std::size_t offset) {
  Header header;
  std::memcpy(&header, bytes.data() + offset, sizeof header);
  return header;
}

template <class Header>
void put(HeaderBytes& out, const Header& header) {
  std::memcpy(out.bytes.data() + out.length, &header, sizeof header);
  out.length += static_cast<std::uint32_t>(sizeof header);
}

bool may_have_payload(Mid mid) {
  return mid == Mid::Data || mid == Mid::SrcAvail || mid == Mid::SinkAvail;
}

constexpr unsigned kHighestMode = 2;

Status parse_own_header(std::span<const std::byte> bytes, Message& message) {
  constexpr std::size_t kAt = sizeof(Bsdh);
  switch (message.mid) {
    case Mid::SrcAvail: {
      const auto header = take<SrcAvailHeader>(bytes, kAt);
      message.size = header.length;
      message.rkey = header.rkey;
      message.address = header.address;
      break;
    }
    case Mid::SinkAvail: {
      const auto header = take<SinkAvailHeader>(bytes, kAt);
      message.size = header.length;
      message.rkey = header.rkey;
      message.address = header.address;
      message.non_discards = header.non_discards;
      break;
    }
    case Mid::RdmaWrCompl:
    case Mid::RdmaRdCompl:
    case Mid::ChRcvBuf:
    case Mid::ChRcvBufAck: message.size = take<SizeHeader>(bytes, kAt).size; break;
    case Mid::ModeChange: {
      const unsigned change = take<ModeChangeHeader>(bytes, kAt).change;
      const unsigned mode = (change >> 4) & 7u;
      if (mode > kHighestMode) return Status::Malformed;
      message.mode = static_cast<Mode>(mode);
      message.of_sending_half = (change & 0x80u) != 0;
      break;
    }
    case Mid::SuspComm: message.address = take<SuspCommHeader>(bytes, kAt).service_id; break;
    case Mid::Hello:
    case Mid::HelloAck:
    case Mid::DisConn:
    case Mid::AbortConn:
    case Mid::SendSm:
    case Mid::SrcAvailCancel:
    case Mid::SinkAvailCancel:
    case Mid::SinkCancelAck:
    case Mid::SuspCommAck:
    case Mid::Data: break;
  }
  return Status::Ok;
}

}  // namespace

std::uint32_t header_length(Mid mid) {
  constexpr std::uint32_t kBase = sizeof(Bsdh);
  switch (mid) {
    case Mid::Hello:
    case Mid::HelloAck: return 0;
    case Mid::DisConn:
    case Mid::AbortConn:
    case Mid::SendSm:
    case Mid::SrcAvailCancel:
    case Mid::SinkAvailCancel:
    case Mid::SinkCancelAck:
    case Mid::SuspCommAck:
    case Mid::Data: return kBase;
    case Mid::RdmaWrCompl:
    case Mid::RdmaRdCompl:
    case Mid::ChRcvBuf:
    case Mid::ChRcvBufAck: return kBase + sizeof(SizeHeader);
    case Mid::ModeChange: return kBase + sizeof(ModeChangeHeader);
    case Mid::SuspComm: return kBase + sizeof(SuspCommHeader);
    case Mid::SrcAvail: return kBase + sizeof(SrcAvailHeader);
    case Mid::SinkAvail: return kBase + sizeof(SinkAvailHeader);
  }
  return 0;
}

Result<Message> parse(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Bsdh)) return Status::Malformed;
  const auto base = take<Bsdh>(bytes, 0);
  Message message;
  message.mid = static_cast<Mid>(base.mid);
  message.header_length = header_length(message.mid);
  if (message.header_length == 0 || bytes.size() < message.header_length) return Status::Malformed;
  if (base.length != bytes.size()) return Status::Malformed;
  message.flags = base.flags;
  message.buffers = base.buffers;
  message.sequence = base.sequence;
  message.acknowledged = base.acknowledged;
  message.payload = base.length - message.header_length;
  if (message.payload != 0 && !may_have_payload(message.mid)) return Status::Malformed;
  IB_CHECK(parse_own_header(bytes, message));
  return message;
}

HeaderBytes write(const Message& message) {
  HeaderBytes out;
  put(out,
      Bsdh{static_cast<std::uint8_t>(message.mid), message.flags, message.buffers,
           header_length(message.mid) + message.payload, message.sequence, message.acknowledged});
  switch (message.mid) {
    case Mid::SrcAvail:
      put(out, SrcAvailHeader{message.size, message.rkey, message.address});
      break;
    case Mid::SinkAvail:
      put(out, SinkAvailHeader{message.size, message.rkey, message.address, message.non_discards});
      break;
    case Mid::RdmaWrCompl:
    case Mid::RdmaRdCompl:
    case Mid::ChRcvBuf:
    case Mid::ChRcvBufAck: put(out, SizeHeader{message.size}); break;
    case Mid::ModeChange: {
      const unsigned change =
          static_cast<unsigned>(message.mode) << 4 | (message.of_sending_half ? 0x80u : 0u);
      put(out, ModeChangeHeader{static_cast<std::uint8_t>(change), {}});
      break;
    }
    case Mid::SuspComm: put(out, SuspCommHeader{message.address}); break;
    case Mid::Hello:
    case Mid::HelloAck:
    case Mid::DisConn:
    case Mid::AbortConn:
    case Mid::SendSm:
    case Mid::SrcAvailCancel:
    case Mid::SinkAvailCancel:
    case Mid::SinkCancelAck:
    case Mid::SuspCommAck:
    case Mid::Data: break;
  }
  return out;
}

}  // namespace ib::sdp
