// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A hostile peer sends packets of the multi-packet protocol: whatever it sends, in whatever order,
// nothing grows beyond its limit, and all of it ends.
#include "base/assert.h"
#include "base/fuzz_input.h"
#include "mad/rmpp.h"

#include <algorithm>
#include <cstring>

namespace {

using namespace ib;
using namespace ib::mad;

constexpr std::uint8_t kClasses[] = {mgmt_class::kSubnAdm, mgmt_class::kDevMgt, 0x31, 0x4f,
                                     mgmt_class::kPerf};
constexpr std::uint8_t kMethods[] = {method::kGetTable, method::kGetTableResp, method::kGetMulti,
                                     method::kGetMultiResp};

// Small numbers are likely: they are those that meet.
std::uint32_t number(FuzzInput& input) {
  const std::uint8_t kind = input.byte();
  return kind < 240 ? kind % 24 : static_cast<std::uint32_t>(input.number(4));
}

Mad packet(FuzzInput& input) {
  Mad mad{};
  MadHeader header;
  header = {1, input.one_of(kClasses), 2, input.one_of(kMethods), 0, 0, input.byte() % 3u, 1, 0, 0};
  std::memcpy(mad.data(), &header, sizeof header);
  RmppHeader rmpp;
  const std::uint8_t kind = input.byte();
  rmpp.version = kind < 250 ? kRmppVersion : kind;
  rmpp.type = static_cast<std::uint8_t>(input.byte() % 6);
  rmpp.time_flags = input.byte();
  rmpp.status = input.byte() < 200 ? std::uint8_t{0} : input.byte();
  rmpp.segment = number(input);
  rmpp.length_window = number(input) * (input.byte() < 128 ? 1u : 20u);
  set_rmpp_header(mad, rmpp);
  return mad;
}

Peer peer(FuzzInput& input) {
  return {1, static_cast<std::uint16_t>(1 + input.byte() % 3), 1u + input.byte() % 2u, {}};
}

void drain(Rmpp& rmpp, const Rmpp::Options& options, Instant now) {
  for (int outputs = 0; rmpp.poll(now); ++outputs) IB_ASSERT(outputs < 10000);
  IB_ASSERT(rmpp.bytes() <= options.max_bytes);
  IB_ASSERT(rmpp.receptions() <= options.max_receptions);
  IB_ASSERT(rmpp.sends() <= options.max_sends);
  IB_ASSERT(rmpp.sent_bytes() <= options.max_sent_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Rmpp::Options options;
  options.receive.max_bytes = 8000;
  options.max_bytes = 20000;
  options.max_bytes_per_peer = 10000;
  options.max_receptions = 6;
  options.max_receptions_per_peer = 3;
  options.max_sends = 4;
  options.max_sent_bytes = 5000;
  options.max_lingering = 3;
  Rmpp rmpp(options);
  Instant now{std::chrono::seconds(1)};
  while (!input.is_over()) {
    const std::uint8_t what = input.byte();
    if (what < 20) {
      now += std::chrono::milliseconds(input.number(2));
    } else if (what < 40) {
      const Mad headers = packet(input);
      std::vector<std::byte> message(headers.begin(), headers.end());
      message.resize(input.number(2) % 4000);
      (void)rmpp.send(peer(input), std::move(message), input.byte() % 2 == 0, now);
    } else if (what < 44) {
      rmpp.cancel(input.byte());
    } else {
      const Peer from = peer(input);
      (void)rmpp.on_packet(from, packet(input), input.byte() % 8 != 0, now);
    }
    drain(rmpp, options, now);
  }
  for (int rounds = 0; rmpp.next_deadline(); ++rounds) {
    IB_ASSERT(rounds < 10000);
    now = std::max(now, *rmpp.next_deadline());
    drain(rmpp, options, now);
  }
  IB_ASSERT(rmpp.bytes() == 0 && rmpp.receptions() == 0 && rmpp.sends() == 0);
  return 0;
}
