// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Segments of TCP and UDP: each has the headers of the whole with its own lengths, sequence number,
// IPv4 identification and checksums.
#include "ulp/ipoib/packets/segmentation.h"

#include "ulp/ipoib/packets/checksum.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr std::size_t kIp = sizeof(Encapsulation);
constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kPsh = 0x08;
constexpr std::uint8_t kCwr = 0x80;

bool is_tcp(Segmentation kind) {
  return kind != Segmentation::Udp;
}

// The headers are those of this kind of segmentation, and the Offload points to them.
Status check_headers(ConstBytes packet, const Offload& offload, const IpPacket& ip) {
  const bool tcp = is_tcp(offload.segmentation);
  if (offload.segmentation == Segmentation::Tcp4 && ip.is_v6) return Status::Malformed;
  if (offload.segmentation == Segmentation::Tcp6 && !ip.is_v6) return Status::Malformed;
  const std::uint8_t protocol = tcp ? kTcp : kUdp;
  // Of IPv6, extension headers may lie in between.
  const bool has_extensions = ip.is_v6 && offload.checksum_start > ip.payload;
  if (!has_extensions && (ip.protocol != protocol || offload.checksum_start != ip.payload)) {
    return Status::Malformed;
  }
  if (ip.is_fragment || ip.length != packet.size()) return Status::Malformed;
  const std::size_t field = tcp ? offsetof(TcpHeader, checksum) : offsetof(UdpHeader, checksum);
  return offload.checksum_offset == field ? Status::Ok : Status::Malformed;
}

Result<std::size_t> transport_header_length(ConstBytes transport, Segmentation kind) {
  const std::size_t least = is_tcp(kind) ? sizeof(TcpHeader) : sizeof(UdpHeader);
  if (transport.size() < least) return Status::Malformed;
  if (!is_tcp(kind)) return least;
  const std::size_t length = (get<TcpHeader>(transport).data_offset >> 4u) * std::size_t{4};
  if (length < least || length > transport.size()) return Status::Malformed;
  return length;
}

}  // namespace

Result<Segmenter> Segmenter::create(ConstBytes message, const Offload& offload, std::size_t mtu) {
  if (message.size() < kIp || offload.segmentation == Segmentation::None) return Status::Malformed;
  const ConstBytes packet = message.subspan(kIp);
  const auto ip = parse_ip(get<Encapsulation>(message).type, packet);
  if (!ip) return Status::Malformed;
  IB_CHECK(check(offload, packet.size()));
  IB_CHECK(check_headers(packet, offload, *ip));
  if (offload.checksum_start > packet.size()) return Status::Malformed;
  IB_TRY(transport_length,
         transport_header_length(packet.subspan(offload.checksum_start), offload.segmentation));

  Segmenter result;
  result.message_ = message;
  result.kind_ = offload.segmentation;
  result.ip_payload_ = kIp + offload.checksum_start;
  result.headers_ = result.ip_payload_ + transport_length;
  if (result.headers_ > kMostHeaderBytes) return Status::Malformed;
  const std::size_t header_bytes = result.headers_ - kIp;
  if (header_bytes >= mtu) return Status::LimitExceeded;
  result.segment_size_ = std::min<std::size_t>(offload.segment_size, mtu - header_bytes);
  return result;
}

std::optional<Outgoing> Segmenter::next() {
  const std::size_t payload = message_.size() - headers_;
  const bool is_first = index_ == 0;
  if (done_ >= payload && !is_first) return std::nullopt;
  const std::size_t size = std::min(segment_size_, payload - done_);
  const ConstBytes body = message_.subspan(headers_ + done_, size);
  write_headers(size, body, is_first, done_ + size == payload);
  done_ += size;
  ++index_;
  return Outgoing{ConstBytes(head_).first(headers_), body, {}};
}

void Segmenter::write_headers(std::size_t payload, ConstBytes body, bool is_first, bool is_last) {
  std::copy_n(message_.begin(), headers_, head_.begin());
  const Bytes head = Bytes(head_).first(headers_);
  const Bytes transport = head.subspan(ip_payload_);
  const std::size_t transport_size = transport.size() + payload;
  if (is_tcp(kind_)) {
    write_tcp(transport, is_first, is_last);
  } else {
    auto udp = get<UdpHeader>(transport);
    udp.length = static_cast<std::uint16_t>(transport_size);
    udp.checksum = 0;
    put(transport, 0, udp);
  }

  ChecksumSum sum;
  const std::uint8_t protocol = is_tcp(kind_) ? kTcp : kUdp;
  const std::size_t ip_size = ip_payload_ - kIp + transport_size;
  if (get<Encapsulation>(head).type == kTypeIpv4) {
    auto ip = get<Ipv4Header>(head, kIp);
    ip.total_length = static_cast<std::uint16_t>(ip_size);
    ip.id = static_cast<std::uint16_t>(ip.id + index_);
    ip = with_checksum(ip, head.subspan(kIp + sizeof ip, ip_payload_ - kIp - sizeof ip));
    put(head, kIp, ip);
    sum.add_pseudo(ip, protocol, transport_size);
  } else {
    auto ip = get<Ipv6Header>(head, kIp);
    ip.payload_length = static_cast<std::uint16_t>(ip_size - sizeof ip);
    put(head, kIp, ip);
    sum.add_pseudo(ip, protocol, transport_size);
  }
  const std::uint16_t complement = sum.add(transport).add(body).complement();
  const std::size_t field =
      is_tcp(kind_) ? offsetof(TcpHeader, checksum) : offsetof(UdpHeader, checksum);
  put(transport, field, Be16(complement != 0 ? complement : std::uint16_t{0xffff}));
}

void Segmenter::write_tcp(Bytes transport, bool is_first, bool is_last) {
  auto tcp = get<TcpHeader>(transport);
  tcp.sequence = tcp.sequence + static_cast<std::uint32_t>(done_);
  // The end of the data belongs to its last segment, the answer to a congestion mark to the first.
  if (!is_last) tcp.flags &= static_cast<std::uint8_t>(~(kFin | kPsh));
  if (!is_first) tcp.flags &= static_cast<std::uint8_t>(~kCwr);
  tcp.checksum = 0;
  put(transport, 0, tcp);
}

}  // namespace ib::ipoib
