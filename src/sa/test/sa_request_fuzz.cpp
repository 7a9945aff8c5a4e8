// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Any requests to a server, with ports that come and go in between: every answer is whole, what the
// server holds stays within its limits, and nothing is left when all ports are gone.
//
// Input: steps. A step starts with a byte: 0 lets time pass, 1 takes a port down or brings it up, 2
// answers a Report, any other one is a request: port, method, attribute, eight bytes of mask, a
// byte that says which GIDs are put into the record, its length and its bytes.
#include "base/assert.h"
#include "base/fuzz_input.h"
#include "sa/records/inform_info.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/multi_path_record.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"
#include "sa/server/server.h"
#include "sa/test/fake_subnet_test.h"
#include "verbs/gid.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ib::sa {
namespace {

constexpr std::size_t kPorts = 4;
constexpr std::uint64_t kSmKey = 0x11;
constexpr ServerLimits kLimits{
    4096,
    {8, 6},
    {8, 6},
    {8, 6, 4, 2},
};

class Fuzz {
 public:
  Fuzz(const std::uint8_t* data, std::size_t size) : input_(data, size) {
    subnet_.ports[1].lmc = 1;
    subnet_.ports[2].pkeys = {0x8001, 0x7fff};
    subnet_.ports[3].mtu = 3;
    subnet_.make_switch(3, 5);
    subnet_.ports[3].linear_top = 200;
    subnet_.ports[3].other_pkeys[1] = {0x8001};
    subnet_.ports[3].other_pkeys[2] = {};
    subnet_.ports[3].multicast[3] = {1};
    subnet_.links = {{{0, 1}, {3, 1}}, {{1, 1}, {3, 2}}, {{2, 1}, {3, 3}}};
  }

  void run() {
    while (!input_.is_over()) step();
    for (std::size_t port = 0; port < kPorts; ++port) {
      if (subnet_.ports[port].is_up) toggle(port);
    }
    IB_ASSERT(server_.groups().group_count() == 0 && server_.groups().membership_count() == 0);
    IB_ASSERT(server_.services().count() == 0 && !server_.deadline());
    IB_ASSERT(server_.subscriptions().count() == 0 && !server_.take_report());
  }

 private:
  void step() {
    switch (input_.byte()) {
      case 0:
        now_ += std::chrono::seconds(input_.byte());
        server_.on_time(now_);
        break;
      case 1: toggle(input_.byte() % kPorts); break;
      case 2:
        if (const auto report = server_.take_report()) {
          server_.on_report_done(report->subscription, (input_.byte() & 1) != 0);
        }
        break;
      default: request(); break;
    }
    IB_ASSERT(server_.groups().group_count() <= kLimits.groups.groups);
    IB_ASSERT(server_.services().count() <= kLimits.services.services);
    IB_ASSERT(server_.subscriptions().count() <= kLimits.subscriptions.subscriptions);
  }

  void toggle(std::size_t port) {
    FakePort& p = subnet_.ports[port];
    p.is_up = !p.is_up;
    if (p.is_up) {
      server_.on_port_up(*subnet_.port(static_cast<std::uint32_t>(port)));
    } else {
      server_.on_port_down(p.gids, p.pkeys);
    }
  }

  void request() {
    constexpr std::uint8_t kMethods[]{method::kGet,     method::kSet,           method::kGetTable,
                                      method::kDelete,  method::kGetTraceTable, method::kReport,
                                      method::kGetMulti};
    constexpr std::uint16_t kAttributes[]{attribute::kPathRecord,
                                          attribute::kMcMemberRecord,
                                          attribute::kServiceRecord,
                                          attribute::kInformInfo,
                                          attribute::kNodeRecord,
                                          attribute::kPortInfoRecord,
                                          attribute::kInformInfoRecord,
                                          attribute::kClassPortInfo,
                                          0x7777,
                                          attribute::kSlToVlRecord,
                                          attribute::kSwitchInfoRecord,
                                          attribute::kLinearForwardingRecord,
                                          attribute::kMulticastForwardingRecord,
                                          attribute::kSmInfoRecord,
                                          attribute::kLinkRecord,
                                          attribute::kGuidInfoRecord,
                                          attribute::kPkeyTableRecord,
                                          attribute::kVlArbitrationRecord,
                                          attribute::kMultiPathRecord};
    Request request;
    const std::size_t from = input_.byte() % (kPorts + 1);
    request.lid = from < kPorts ? subnet_.ports[from].lid : std::uint16_t{0x999};
    request.method = input_.one_of(kMethods);
    request.attribute = input_.one_of(kAttributes);
    request.components = input_.number(8);
    const std::uint8_t hints = input_.byte();
    if ((hints & 1) != 0) request.sm_key = kSmKey;
    std::vector<std::byte> record(input_.byte());
    for (std::byte& b : record) b = static_cast<std::byte>(input_.byte());
    put_gids(request.attribute, hints, record);
    request.record = record;
    const std::optional<Answer> answer = server_.handle(request, now_);
    IB_ASSERT(answer.has_value() == (request.method != method::kReport));
    if (answer) check(request, *answer);
  }

  // Random bytes never hit a GID.
  void put_gids(std::uint16_t attribute, std::uint8_t hints, std::vector<std::byte>& record) const {
    const auto put = [&](std::uint16_t at, const verbs::Gid& gid) {
      if (record.size() < at + gid.size()) return;
      for (std::size_t i = 0; i < gid.size(); ++i) record[at + i] = static_cast<std::byte>(gid[i]);
    };
    const verbs::Gid& first = subnet_.ports[hints >> 2 & 3].gids[0];
    const verbs::Gid& second = subnet_.ports[hints >> 4 & 3].gids[0];
    if ((hints & 2) == 0) return;
    if (attribute == attribute::kPathRecord) {
      put(path_field::kSgid.byte, first);
      put(path_field::kDgid.byte, second);
    } else if (attribute == attribute::kMultiPathRecord) {
      put(multi_path_field::kGids, first);
      put(multi_path_field::kGids + 16, second);
    } else if (attribute == attribute::kMcMemberRecord) {
      verbs::Gid mgid{0xff, 0x12, 0x40, 0x1b};
      mgid[15] = static_cast<std::uint8_t>(hints >> 4);
      put(mc_field::kPortGid.byte, first);
      if ((hints & 0x80) == 0) put(mc_field::kMgid.byte, mgid);
    } else if (attribute == attribute::kServiceRecord) {
      put(service_field::kGid.byte, first);
    }
  }

  static void check(const Request& request, const Answer& answer) {
    // Get and Set have the same response, as have GetTable and GetTraceTable [IBA1 15.2.2].
    std::uint8_t asked = request.method;
    if (asked == method::kSet) asked = method::kGet;
    if (asked == method::kGetTraceTable) asked = method::kGetTable;
    IB_ASSERT(answer.method == (asked | mad::method::kResponseBit));
    IB_ASSERT(answer.bytes.size() <= kLimits.answer_bytes);
    if (answer.status != sa_status::kOk) {
      IB_ASSERT(answer.count == 0 && answer.bytes.empty());
    } else if (request.method == method::kGetTable || request.method == method::kGetMulti) {
      IB_ASSERT(answer.stride % 8 == 0 && answer.bytes.size() == answer.count * answer.stride);
    } else {
      IB_ASSERT(answer.count == 1 && !answer.bytes.empty() && answer.bytes.size() <= kDataSize);
    }
  }

  FuzzInput input_;
  FakeSubnet subnet_{kPorts};
  Server server_{subnet_, {kSmKey, 18, kLimits}};
  Instant now_{std::chrono::seconds(1)};
};

}  // namespace
}  // namespace ib::sa

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ib::sa::Fuzz(data, size).run();
  return 0;
}
