// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes one record for each message that PortInterface sends or takes; nothing of the traffic
// waits for it.
#include "ipoib/capture.h"

#include "base/big_endian.h"
#include "linux/process/client_handle.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace ib::ipoib::driver {

namespace {

constexpr std::uint32_t kErf = 197;  // LINKTYPE_ERF
constexpr std::uint8_t kInfiniBand = 21;
constexpr std::size_t kErfHeader = 16;
constexpr std::size_t kMostOnWire = 65'535 - kErfHeader;
constexpr std::uint8_t kUdSendOnly = 0x64;
constexpr std::uint8_t kRcSendOnly = 0x04;
constexpr std::size_t kCrcs = 4 + 2;

class Bytes {
 public:
  explicit Bytes(std::vector<std::uint8_t>& to) : to_(to) {}
  template <class Field>
  void add(const Field& field) {
    const std::size_t at = to_.size();
    to_.resize(at + sizeof field);
    std::memcpy(to_.data() + at, &field, sizeof field);
  }
  void add(std::span<const std::byte> bytes, std::size_t most) {
    const std::size_t count = std::min(bytes.size(), most);
    const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    to_.insert(to_.end(), first, first + count);
  }
  void zeros(std::size_t count) { to_.insert(to_.end(), count, 0); }

 private:
  std::vector<std::uint8_t>& to_;
};

void add_headers(Bytes& out, const Capture::Route& route, std::size_t payload) {
  constexpr std::uint8_t kBthNext = 2, kGrhNext = 3;  // LNH [IBA1 7.7.4]
  constexpr std::size_t kMostWords = 0x7ff;           // of PktLen
  const std::size_t padding = (4 - payload % 4) % 4;
  const std::size_t behind_grh = 12 + (route.datagram ? 8u : 0u) + payload + padding + 4;
  const std::size_t words = (8 + (route.gids ? 40u : 0u) + behind_grh) / 4;
  out.add(std::uint8_t{0});  // VL, LVer
  out.add(static_cast<std::uint8_t>(route.service_level << 4 | (route.gids ? kGrhNext : kBthNext)));
  out.add(Be16(route.dlid));
  out.add(Be16(static_cast<std::uint16_t>(std::min(words, kMostWords))));
  out.add(Be16(route.slid));
  if (route.gids) {
    out.add(Be32(6u << 28));
    out.add(Be16(static_cast<std::uint16_t>(behind_grh)));
    out.add(std::uint8_t{0x1b});  // next header: BTH
    out.add(std::uint8_t{0});
    out.add(route.gids->first.bytes);
    out.add(route.gids->second.bytes);
  }
  out.add(route.datagram ? kUdSendOnly : kRcSendOnly);
  out.add(static_cast<std::uint8_t>(padding << 4));
  out.add(Be16(route.pkey));
  out.add(Be32(route.dest_qpn & 0xff'ffffu));
  out.add(Be32(0));  // PSN
  if (!route.datagram) return;
  out.add(Be32(route.datagram->qkey));
  out.add(Be32(route.datagram->source_qpn & 0xff'ffffu));
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::create(const std::string& path) {
  platform::NativeHandle file =
      os::own_descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return os::no_descriptor(errno);
  std::unique_ptr<Capture> capture(new Capture(std::move(file)));
  Bytes out(capture->record_);
  out.add(std::uint32_t{0xa1b2c3d4});  // microseconds, in the byte order of this machine
  out.add(std::uint16_t{2});
  out.add(std::uint16_t{4});
  for (const std::uint32_t each : {0u, 0u, 65'535u, kErf}) out.add(each);
  capture->put(capture->record_);
  return capture;
}

void Capture::add(const Route& route, const Outgoing& message) {
  const std::size_t payload = message.size();
  packet_.clear();
  Bytes packet(packet_);
  add_headers(packet, route, payload);
  packet.add(message.head, kMostOnWire - kCrcs - packet_.size());
  packet.add(message.body, kMostOnWire - kCrcs - packet_.size());
  packet.zeros(std::min((4 - payload % 4) % 4 + kCrcs, kMostOnWire - packet_.size()));
  const std::uint32_t length = static_cast<std::uint32_t>(packet_.size() + kErfHeader);
  record_.clear();
  Bytes head(record_);
  std::timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  head.add(static_cast<std::uint32_t>(now.tv_sec));
  head.add(static_cast<std::uint32_t>(now.tv_nsec / 1000));
  head.add(length);
  head.add(length);
  // The time stamp of ERF: seconds and their 2^32nd parts, little-endian.
  const std::uint64_t fraction = (static_cast<std::uint64_t>(now.tv_nsec) << 32) / 1'000'000'000;
  const std::uint64_t stamp = static_cast<std::uint64_t>(now.tv_sec) << 32 | fraction;
  for (unsigned i = 0; i < 8; ++i) head.add(static_cast<std::uint8_t>(stamp >> (8 * i)));
  head.add(kInfiniBand);
  head.add(std::uint8_t{4});  // records of varying length
  head.add(Be16(static_cast<std::uint16_t>(length)));
  head.add(Be16(0));  // lost
  head.add(Be16(static_cast<std::uint16_t>(packet_.size())));
  record_.insert(record_.end(), packet_.begin(), packet_.end());
  put(record_);
}

// A full disk ends the capture, not the traffic.
void Capture::put(std::span<const std::uint8_t> bytes) {
  if (!file_.valid()) return;
  if (::write(file_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    file_.reset();
  }
}

}  // namespace ib::ipoib::driver
