// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames of the kernel, which may be a hostile program's: any bytes with any virtio_net_hdr, and
// frames whose headers are right up to some byte.
#include "ulp/ipoib/test/fuzz_host_test.h"

namespace ib::ipoib {
namespace {

VirtioHeader header_from(FuzzInput& input) {
  VirtioHeader header;
  header.flags = input.byte();
  header.gso_type = input.byte();
  header.gso_size = static_cast<std::uint16_t>(input.number(2));
  header.checksum_start = static_cast<std::uint16_t>(input.number(2));
  header.checksum_offset = input.byte();
  return header;
}

// Sizes are exact: a byte beyond shows.
std::vector<std::byte> bytes_from(FuzzInput& input) {
  std::vector<std::byte> bytes(input.number(2) % 4096);
  for (std::byte& byte : bytes) {
    if (input.is_over()) break;
    byte = static_cast<std::byte>(input.byte());
  }
  return bytes;
}

constexpr std::uint16_t kTypes[] = {kTypeIpv4, kTypeIpv6, kTypeArp, 0x8100, kTypeIpv4, kTypeIpv6};

// A frame that gets past the first checks: its Ethernet and IP headers are made right.
void repair(FuzzBench& bench, FuzzInput& input, std::vector<std::byte>& frame) {
  if (frame.size() < sizeof(EthernetHeader) + sizeof(Ipv6Header)) return;
  const MacAddress groups[] = {
      kBroadcastMac, {{0x01, 0, 0x5e, 1, 2, 3}}, {{0x33, 0x33, 0, 0, 0, 1}}};
  const std::uint8_t kind = input.byte();
  const MacAddress to = (kind & 1) != 0 ? bench.mac_of_neighbour() : groups[(kind >> 1) % 3];
  const std::uint16_t type = input.one_of(kTypes);
  put(Bytes(frame), 0, EthernetHeader{to.bytes, bench.interface.mac().bytes, type});
  const Bytes packet = Bytes(frame).subspan(sizeof(EthernetHeader));
  if (type == kTypeIpv4) {
    packet[0] = std::byte{0x45};
    put(packet, 2, Be16(static_cast<std::uint16_t>(packet.size())));
    if ((kind & 8) != 0) packet[9] = static_cast<std::byte>(kUdp);
    if ((kind & 16) != 0) packet[16] = std::byte{239};
  } else if (type == kTypeIpv6) {
    packet[0] = std::byte{0x60};
    put(packet, 4, Be16(static_cast<std::uint16_t>(packet.size() - sizeof(Ipv6Header))));
    if ((kind & 8) != 0) packet[6] = static_cast<std::byte>(kIcmpv6);
    if ((kind & 16) != 0) packet[24] = std::byte{0xff};
    // A neighbour solicitation with the own address.
    if ((kind & 32) != 0 && packet.size() >= 72) {
      packet[40] = std::byte{135};
      packet[64] = packet[65] = std::byte{1};
      put(packet, 66, bench.interface.mac().bytes);
    }
  } else if (type == kTypeArp) {
    put(packet, 0, ArpHeader{std::uint16_t{1}, kTypeIpv4, 6, 4, std::uint16_t{1}});
    put(packet, 8, bench.interface.mac().bytes);
  }
}

}  // namespace
}  // namespace ib::ipoib

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ib::ipoib;
  ib::FuzzInput input(data, size);
  FuzzBench bench(input);
  bench.introduce(2, kFlagRc);
  bench.introduce(3, 0);
  for (unsigned frames = 0; !input.is_over() && frames < 32; ++frames) {
    const std::uint8_t action = input.byte();
    const VirtioHeader header = (action & 1) != 0 ? header_from(input) : VirtioHeader{};
    std::vector<std::byte> frame = bytes_from(input);
    if ((action & 2) != 0) repair(bench, input, frame);
    bench.interface.on_frame({header, frame}, bench.now);
    if ((action & 4) != 0) bench.answer();
    if ((action & 8) != 0) bench.pass(std::chrono::seconds(input.byte()));
  }
  bench.end();
  return 0;
}
