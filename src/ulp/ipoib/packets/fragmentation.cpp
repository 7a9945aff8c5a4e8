// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fragments of an IPv4 packet; the packet may be a fragment already.
#include "ulp/ipoib/packets/checksum.h"
#include "ulp/ipoib/packets/segmentation.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr std::size_t kIp = sizeof(Encapsulation);
constexpr std::byte kEndOfOptions{0};
constexpr std::byte kNoOperation{1};
constexpr std::byte kCopied{0x80};  // the option is in all fragments

}  // namespace

Result<Fragmenter> Fragmenter::create(ConstBytes message, std::size_t mtu, bool ignore_flag) {
  if (message.size() < kIp || get<Encapsulation>(message).type != kTypeIpv4) {
    return Status::NotSupported;
  }
  const ConstBytes packet = message.subspan(kIp);
  const auto ip = parse_ipv4(packet);
  if (!ip) return Status::Malformed;
  auto header = get<Ipv4Header>(packet);
  if ((header.fragment & kDontFragment) != 0 && !ignore_flag) return Status::NotSupported;
  // Eight bytes are the smallest fragment.
  if (ip->payload + 8 > mtu) return Status::LimitExceeded;

  Fragmenter result;
  result.first_offset_ = header.fragment & kFragmentOffset;
  result.more_follow_ = (header.fragment & kMoreFragments) != 0;
  result.payload_ = packet.subspan(ip->payload, ip->length - ip->payload);
  if (result.first_offset_ + result.payload_.size() / 8 > kFragmentOffset) return Status::Malformed;
  result.mtu_ = mtu;
  result.head_size_ = kIp + ip->payload;
  std::copy_n(message.begin(), result.head_size_, result.head_.begin());
  return result;
}

std::optional<Outgoing> Fragmenter::next() {
  if (done_ >= payload_.size()) return std::nullopt;
  if (done_ != 0) strip_options();
  const std::size_t header_size = head_size_ - kIp;
  const std::size_t left = payload_.size() - done_;
  const std::size_t most = (mtu_ - header_size) / 8 * 8;
  const bool is_last = left <= mtu_ - header_size;
  const std::size_t size = is_last ? left : most;

  const Bytes head = Bytes(head_).first(head_size_);
  auto ip = get<Ipv4Header>(head, kIp);
  ip.version_length = static_cast<std::uint8_t>(0x40 | header_size / 4);
  ip.total_length = static_cast<std::uint16_t>(header_size + size);
  ip.fragment = static_cast<std::uint16_t>((first_offset_ + done_ / 8) |
                                           (!is_last || more_follow_ ? kMoreFragments : 0u));
  put(head, kIp, with_checksum(ip, head.subspan(kIp + sizeof ip)));
  const ConstBytes body = payload_.subspan(done_, size);
  done_ += size;
  return Outgoing{head, body, {}};
}

// Fragments after the first have only the options that are to be copied. Does nothing the second
// time.
void Fragmenter::strip_options() {
  std::size_t from = kIp + sizeof(Ipv4Header);
  std::size_t to = from;
  while (from < head_size_ && head_[from] != kEndOfOptions) {
    std::size_t length = 1;
    if (head_[from] != kNoOperation) {
      if (from + 1 >= head_size_) break;
      length = std::to_integer<std::size_t>(head_[from + 1]);
      if (length < 2 || from + length > head_size_) break;
      if ((head_[from] & kCopied) != std::byte{0}) {
        std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(from), length,
                    head_.begin() + static_cast<std::ptrdiff_t>(to));
        to += length;
      }
    }
    from += length;
  }
  while (to % 4 != 0) head_[to++] = kEndOfOptions;
  head_size_ = to;
}

}  // namespace ib::ipoib
