// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of the fabric, which may be any node's: datagrams, messages on connections with any
// offload, requests for connections, answers that nobody waits for.
#include "ulp/ipoib/test/fuzz_host_test.h"

namespace ib::ipoib {
namespace {

Offload offload_from(FuzzInput& input) {
  Offload offload;
  offload.needs_checksum = (input.byte() & 1) != 0;
  offload.segmentation = static_cast<Segmentation>(input.byte() % 4);
  offload.segment_size = static_cast<std::uint16_t>(input.number(2));
  offload.checksum_start = static_cast<std::uint16_t>(input.number(2));
  offload.checksum_offset = input.byte();
  return offload;
}

constexpr std::uint16_t kTypes[] = {kTypeIpv4, kTypeIpv6, kTypeArp, kTypeIpv6};

void repair(FuzzInput& input, Bytes message) {
  if (message.size() < sizeof(Encapsulation) + 56) return;
  const std::uint8_t kind = input.byte();
  const std::uint16_t type = input.one_of(kTypes);
  put(message, 0, Encapsulation{type, std::uint16_t{0}});
  const Bytes packet = message.subspan(sizeof(Encapsulation));
  if (type == kTypeIpv4) {
    packet[0] = std::byte{0x45};
    put(packet, 2, Be16(static_cast<std::uint16_t>(packet.size())));
    if ((kind & 8) != 0) packet[9] = static_cast<std::byte>(kUdp);
  } else if (type == kTypeIpv6) {
    packet[0] = std::byte{0x60};
    put(packet, 4, Be16(static_cast<std::uint16_t>(packet.size() - sizeof(Ipv6Header))));
    packet[6] = static_cast<std::byte>(kIcmpv6);
    packet[7] = std::byte{255};
  } else {
    put(packet, 0,
        ArpHeader{std::uint16_t{32}, kTypeIpv4, 20, 4, static_cast<std::uint16_t>(kind % 2 + 1)});
    put(packet, 8, to_bytes({Qpn{input.byte() + 2u}, fuzz_gid(input.byte() % 8), input.byte()}));
  }
}

DatagramSource source_from(FuzzBench& bench, FuzzInput& input) {
  DatagramSource source;
  source.qpn = Qpn{input.byte()};
  source.slid = Lid{input.byte()};
  source.has_grh = (input.byte() & 3) != 0;
  source.sgid = fuzz_gid(input.byte() % 8);
  const Gid groups[] = {fuzz_gid(1), GroupMapping(2, Pkey{0xffff}).broadcast(),
                        GroupMapping(2, Pkey{0x8001}).broadcast(),
                        bench.interface.snapshot(bench.now).groups.front().mgid};
  source.dgid = input.one_of(groups);
  return source;
}

void one_message(FuzzBench& bench, FuzzInput& input, std::uint8_t action, ConnectionId connection) {
  const Offload offload = (action & 1) != 0 ? offload_from(input) : Offload{};
  std::vector<std::byte> buffer(kHeadroom + input.number(2) % 4096);
  const Bytes message = Bytes(buffer).subspan(kHeadroom);
  for (std::byte& byte : message) {
    if (input.is_over()) break;
    byte = static_cast<std::byte>(input.byte());
  }
  if ((action & 2) != 0) repair(input, message);
  if ((action & 4) != 0) {
    bench.interface.on_connection_message(connection, {message, offload}, bench.now);
  } else {
    bench.interface.on_datagram(source_from(bench, input), {message, offload}, bench.now);
  }
}

ConnectionId one_request(FuzzBench& bench, FuzzInput& input) {
  std::array<std::byte, 16> data{};
  for (std::byte& byte : data) byte = static_cast<std::byte>(input.byte());
  const auto accepted = bench.interface.on_connect_request(
      {fuzz_gid(input.byte() % 8), ConstBytes(data).first(input.byte() % 17)}, bench.now);
  return accepted ? accepted->id : ConnectionId{};
}

}  // namespace
}  // namespace ib::ipoib

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ib::ipoib;
  ib::FuzzInput input(data, size);
  FuzzBench bench(input);
  bench.introduce(2, kFlagRc);
  ConnectionId connection{};
  for (unsigned turns = 0; !input.is_over() && turns < 32; ++turns) {
    const std::uint8_t action = input.byte();
    switch (action >> 4) {
      case 0: connection = one_request(bench, input); break;
      case 1:
        bench.interface.on_connection_lost(ConnectionId{input.byte()}, ib::Status::Timeout,
                                           bench.now);
        break;
      case 2: bench.pass(std::chrono::seconds(input.byte())); break;
      case 3: bench.answer(); break;
      case 4:
        bench.interface.on_port_event(PortEvent{static_cast<std::uint8_t>(input.byte() % 3)},
                                      bench.now);
        break;
      case 5: {
        // The kernel sends to whoever has introduced itself.
        std::vector<std::byte> frame(64);
        put(Bytes(frame), 0, EthernetHeader{bench.mac_of_neighbour().bytes, {}, kTypeIpv4});
        frame[14] = std::byte{0x45};
        frame[17] = std::byte{50};
        bench.interface.on_frame({{}, frame}, bench.now);
        break;
      }
      default: one_message(bench, input, action, connection);
    }
  }
  bench.end();
  return 0;
}
